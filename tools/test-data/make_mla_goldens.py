#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden outputs of a tiny deepseek_v2, deepseek_v3 or xing4_0 model in Hugging Face form, by a float64 forward pass.

usage and files: as make_family_goldens.py, whose frame this uses

Written from the published definitions: attention in the expanded form (keys and values of every head), the cache never seen.
"""
import json
import sys

import numpy as np

import make_family_goldens as frame
from make_family_goldens import rms, sigmoid, silu, softmax


class Mla(frame.Model):
    def __init__(self, folder):
        self.c = c = json.load(open(f"{folder}/config.json"))
        self.w = {k: v.astype(np.float64) for k, v in frame.read_tensors(f"{folder}/model.safetensors").items()}
        self.eps, self.plus, self.top_k = c["rms_norm_eps"], 0.0, c["num_experts_per_tok"]
        self.n_layers, self.heads, self.n_experts = c["num_hidden_layers"], c["num_attention_heads"], c["n_routed_experts"]
        self.nope, self.rope, self.v_dim, self.rank = (c[k] for k in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                                                                      "kv_lora_rank"))
        self.streams = c.get("hc_mult", 0)
        self.yarn(c.get("rope_scaling"))

    def yarn(self, y):
        d, base = self.rope, self.c["rope_theta"]
        self.freq, self.scale = base ** (-np.arange(0, d, 2) / d), (self.nope + self.rope) ** -0.5
        if not y:
            return
        at = [d * np.log(y["original_max_position_embeddings"] / (turns * 2 * np.pi)) / (2 * np.log(base))
              for turns in (y["beta_fast"], y["beta_slow"])]
        low, high = max(np.floor(at[0]), 0), min(np.ceil(at[1]), d - 1)
        ramp = np.clip((np.arange(d // 2) - low) / max(high - low, 0.001), 0, 1)
        self.freq = self.freq / y["factor"] * ramp + self.freq * (1 - ramp)
        self.scale *= (0.1 * y["mscale_all_dim"] * np.log(y["factor"]) + 1) ** 2

    def rotate(self, x):  # [T, heads, rope], pairs of neighbours
        angle = np.arange(len(x))[:, None, None] * self.freq
        a, b, out = x[..., ::2], x[..., 1::2], np.empty_like(x)
        out[..., ::2], out[..., 1::2] = a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)
        return out

    def attention(self, n, u):
        T, H = len(u), self.heads
        w = lambda name: self.layer(n, f"self_attn.{name}.weight")
        if self.c["q_lora_rank"]:
            q = rms(u @ w("q_a_proj").T, w("q_a_layernorm"), self.eps) @ w("q_b_proj").T
        else:
            q = u @ w("q_proj").T
        q = q.reshape(T, H, self.nope + self.rope)
        z = u @ w("kv_a_proj_with_mqa").T
        kv = (rms(z[:, :self.rank], w("kv_a_layernorm"), self.eps) @ w("kv_b_proj").T).reshape(T, H, self.nope + self.v_dim)
        shared = np.repeat(self.rotate(z[:, None, self.rank:]), H, 1)
        k = np.concatenate([kv[..., :self.nope], shared], -1)
        q = np.concatenate([q[..., :self.nope], self.rotate(q[..., self.nope:])], -1)
        s = np.einsum("ihd,jhd->hij", q, k) * self.scale
        s[:, np.triu(np.ones((T, T), bool), 1)] = -np.inf
        return np.einsum("hij,jhd->ihd", softmax(s), kv[..., self.nope:]).reshape(T, -1) @ w("o_proj").T

    def network(self, prefix, u):
        w = lambda name: self.w[f"{prefix}.{name}_proj.weight"]
        return (silu(u @ w("gate").T) * (u @ w("up").T)) @ w("down").T

    def choose(self, n, u):
        c, logits = self.c, u @ self.layer(n, "mlp.gate.weight").T
        score = sigmoid(logits) if c["scoring_func"] == "sigmoid" else softmax(logits)
        choice = score.copy()
        if c["topk_method"] == "noaux_tc":
            choice += self.layer(n, "mlp.gate.e_score_correction_bias")
        if c["n_group"] > 1 and c["topk_method"] != "greedy":
            groups = np.sort(choice.reshape(len(u), c["n_group"], -1), -1)
            best = groups[..., -2:].sum(-1) if c["topk_method"] == "noaux_tc" else groups[..., -1]
            keep = np.zeros_like(best, bool)
            np.put_along_axis(keep, np.argsort(-best, -1, kind="stable")[:, :c["topk_group"]], True, -1)
            choice[~np.repeat(keep, self.n_experts // c["n_group"], 1)] = -np.inf
        order = np.argsort(-choice, -1, kind="stable")
        pick = order[:, :self.top_k]
        weight = np.take_along_axis(score, pick, -1)
        if c["norm_topk_prob"]:
            weight = weight / (weight.sum(-1, keepdims=True) + 1e-20)
        edge = np.take_along_axis(choice, order[:, self.top_k - 1:self.top_k + 1], -1)
        return pick, weight * c["routed_scaling_factor"], edge[:, 0] - edge[:, 1]

    def ffn(self, n, u, seen):
        mlp = f"model.layers.{n}.mlp"
        if n < self.c["first_k_dense_replace"]:
            return self.network(mlp, u)
        pick, weight, margin = self.choose(n, u)
        seen.append((pick, weight, margin))
        y = self.network(mlp + ".shared_experts", u)
        for e in range(self.n_experts):
            t, i = np.nonzero(pick == e)
            if len(t):
                y[t] += weight[t, i][:, None] * self.network(f"{mlp}.experts.{e}", u[t])
        return y

    def connect(self, n, where, x, norm, block):
        """One sublayer: behind a hyper-connection over x [T, streams, hidden], or plainly added to x [T, hidden]."""
        weight = self.layer(n, norm + ".weight")
        if not self.streams:
            return x + block(rms(x, weight, self.eps))
        S, p = self.streams, f"{where}_hc.hc_"
        base, scale = self.layer(n, p + "base"), self.layer(n, p + "scale")
        flat = x.reshape(len(x), -1)
        g = flat / np.sqrt((flat * flat).mean(-1, keepdims=True) + self.eps) @ self.layer(n, p + "fn").T
        pre = sigmoid(g[:, :S] * scale[0] + base[:S])
        post = 2 * sigmoid(g[:, S:2 * S] * scale[1] + base[S:2 * S])
        m = np.clip(g[:, 2 * S:] * scale[2] + base[2 * S:], self.c["mhc_h_res_clamp_min"], self.c["mhc_h_res_clamp_max"])
        m = m.reshape(-1, S, S)  # [to][from]
        m = np.exp(m - m.max(-1, keepdims=True))
        for _ in range(self.c["hc_sinkhorn_iters"]):
            m = m / (m.sum(-1, keepdims=True) + self.c["hc_eps"])
            m = m / (m.sum(-2, keepdims=True) + self.c["hc_eps"])
        y = block(rms(np.einsum("ts,tsh->th", pre, x), weight, self.eps))
        return post[:, :, None] * y[:, None] + np.einsum("tds,tsh->tdh", m, x)

    def forward(self, ids):
        x, seen = self.w["model.embed_tokens.weight"][ids], []
        if self.streams:
            x = np.repeat(x[:, None], self.streams, 1)
        states = [x]
        for n in range(self.n_layers):
            x = self.connect(n, "attn", x, "input_layernorm", lambda u: self.attention(n, u))
            x = self.connect(n, "ffn", x, "post_attention_layernorm", lambda u: self.ffn(n, u, seen))
            states.append(x)
        h = x.mean(1) if self.streams else x
        return self.norm(h, "model.norm.weight") @ self.w["lm_head.weight"].T, np.stack(states), seen


if __name__ == "__main__":
    frame.Model = Mla
    if len(sys.argv) == 4 and sys.argv[1] == "--check":
        frame.check(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 3:
        frame.make(sys.argv[1], sys.argv[2])
    else:
        sys.exit(__doc__)
