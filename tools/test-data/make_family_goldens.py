#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden outputs of a tiny qwen3_moe, qwen3_next or olmoe model in Hugging Face form, by a float64 forward pass.

usage: make_family_goldens.py FOLDER OUT.safetensors      FOLDER has config.json and model.safetensors
       make_family_goldens.py --check FOLDER GOLDEN        compare with goldens made elsewhere: names tN.logits or logits_N

Written from the published definitions of the families, with nothing of aegis in it: one token position after the other in
the recurrence, whole matrices elsewhere. Names and shapes of OUT: tests/data/README.md. Needs numpy.
"""
import json
import sys

import numpy as np

import safetensors_io

LENGTHS, ALL_UP_TO, LAST, GREEDY, MARGIN = (1, 7, 40, 300), 40, 4, 32, 0.05


def read_tensors(path):
    """{name: array}; bf16 widened to f32"""
    kinds, out = {"F32": "<f4", "I32": "<i4", "I16": "<i2", "I64": "<i8"}, {}
    for name, (dtype, shape, data, _) in safetensors_io.read(path)[1].items():
        if dtype == "BF16":
            out[name] = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
        else:
            out[name] = np.frombuffer(data, kinds[dtype]).reshape(shape)
    return out


def write_tensors(path, tensors):
    safetensors_io.write(path, {k: ({"f": "F32", "i": "I32"}[v.dtype.kind], list(v.shape), np.ascontiguousarray(v).tobytes())
                                for k, v in tensors.items()})


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def rms(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Model:
    def __init__(self, folder):
        self.c = c = json.load(open(f"{folder}/config.json"))
        self.w = {k: v.astype(np.float64) for k, v in read_tensors(f"{folder}/model.safetensors").items()}
        self.kind, self.eps = c["model_type"], c["rms_norm_eps"]
        self.plus = 1.0 if self.kind == "qwen3_next" else 0.0  # norms are stored around 0
        self.n_layers, self.heads, self.kv_heads = c["num_hidden_layers"], c["num_attention_heads"], c["num_key_value_heads"]
        self.dim = c.get("head_dim", c["hidden_size"] // self.heads)
        self.top_k = c["num_experts_per_tok"]
        self.n_experts = c.get("num_experts", c.get("num_local_experts"))
        self.renorm = self.kind == "qwen3_next" or c["norm_topk_prob"]
        rope = c.get("rope_parameters") or c
        rotary = int(self.dim * rope.get("partial_rotary_factor", 1.0))
        self.freq = rope["rope_theta"] ** (-np.arange(0, rotary, 2) / rotary)
        types = c.get("layer_types") or ["full_attention"] * self.n_layers
        self.linear = [t == "linear_attention" for t in types]

    def layer(self, n, name):
        return self.w[f"model.layers.{n}.{name}"]

    def norm(self, x, name):
        return rms(x, self.w[name] + self.plus, self.eps)

    def rotate(self, x):  # [T, heads, dim]
        half = len(self.freq)
        angle = np.arange(len(x))[:, None, None] * self.freq
        a, b = x[..., :half], x[..., half:2 * half]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle),
                               x[..., 2 * half:]], -1)

    def attention(self, n, u):
        T, D = len(u), self.dim
        q, k, v = (u @ self.layer(n, f"self_attn.{p}_proj.weight").T for p in "qkv")
        gate = None
        if self.kind == "qwen3_next":
            q = q.reshape(T, self.heads, 2 * D)
            q, gate = q[..., :D], q[..., D:]
        names = [f"model.layers.{n}.self_attn.{p}_norm.weight" for p in "qk"]
        if self.kind == "olmoe":
            q, k = self.norm(q, names[0]), self.norm(k, names[1])
            if self.c["clip_qkv"] is not None:
                q, k, v = (np.clip(x, -self.c["clip_qkv"], self.c["clip_qkv"]) for x in (q, k, v))
        q, k, v = q.reshape(T, self.heads, D), k.reshape(T, self.kv_heads, D), v.reshape(T, self.kv_heads, D)
        if self.kind != "olmoe":
            q, k = self.norm(q, names[0]), self.norm(k, names[1])
        q, k = self.rotate(q), self.rotate(k)
        k, v = (np.repeat(x, self.heads // self.kv_heads, 1) for x in (k, v))
        s = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(D)
        s[:, np.triu(np.ones((T, T), bool), 1)] = -np.inf
        o = np.einsum("hij,jhd->ihd", softmax(s), v)
        if gate is not None:
            o = o * sigmoid(gate)
        return o.reshape(T, -1) @ self.layer(n, "self_attn.o_proj.weight").T

    def delta_net(self, n, u):
        c, T = self.c, len(u)
        hk, hv = c["linear_num_key_heads"], c["linear_num_value_heads"]
        dk, dv, r = c["linear_key_head_dim"], c["linear_value_head_dim"], c["linear_num_value_heads"] // c["linear_num_key_heads"]
        # by key head: q, k, the value heads that read it, their output gates
        p = (u @ self.layer(n, "linear_attn.in_proj_qkvz.weight").T).reshape(T, hk, 2 * dk + 2 * r * dv)
        q, k, v, z = np.split(p, [dk, 2 * dk, 2 * dk + r * dv], -1)
        ba = (u @ self.layer(n, "linear_attn.in_proj_ba.weight").T).reshape(T, hk, 2 * r)
        b, a = ba[..., :r].reshape(T, hv), ba[..., r:].reshape(T, hv)
        x = np.concatenate([y.reshape(T, -1) for y in (q, k, v)], -1)
        taps = self.layer(n, "linear_attn.conv1d.weight")[:, 0, :]
        padded = np.concatenate([np.zeros((taps.shape[1] - 1, x.shape[1])), x])
        x = silu(sum(padded[j:j + T] * taps[:, j] for j in range(taps.shape[1])))
        q, k, v = np.split(x, [hk * dk, 2 * hk * dk], -1)
        q, k, v, z = q.reshape(T, hk, dk), k.reshape(T, hk, dk), v.reshape(T, hv, dv), z.reshape(T, hv, dv)
        q, k = (y / np.sqrt((y * y).sum(-1, keepdims=True) + 1e-6) for y in (q, k))
        q, k = np.repeat(q / np.sqrt(dk), r, 1), np.repeat(k, r, 1)
        beta = sigmoid(b)
        decay = np.exp(-np.exp(self.layer(n, "linear_attn.A_log")) * np.logaddexp(0, a + self.layer(n, "linear_attn.dt_bias")))
        S, o = np.zeros((hv, dk, dv)), np.zeros((T, hv, dv))
        for t in range(T):
            S = S * decay[t][:, None, None]
            delta = beta[t][:, None] * (v[t] - np.einsum("hkv,hk->hv", S, k[t]))
            S = S + k[t][:, :, None] * delta[:, None, :]
            o[t] = np.einsum("hkv,hk->hv", S, q[t])
        o = rms(o, self.layer(n, "linear_attn.norm.weight"), self.eps) * silu(z)
        return o.reshape(T, -1) @ self.layer(n, "linear_attn.out_proj.weight").T

    def expert(self, n, e):
        p = f"model.layers.{n}.mlp.experts."
        if p + "gate_up_proj" in self.w:
            gate, up = np.split(self.w[p + "gate_up_proj"][e], 2)
            return gate, up, self.w[p + "down_proj"][e]
        return tuple(self.w[f"{p}{e}.{x}_proj.weight"] for x in ("gate", "up", "down"))

    def moe(self, n, u, seen):
        p = softmax(u @ self.layer(n, "mlp.gate.weight").T)
        order = np.argsort(-p, -1, kind="stable")
        pick = order[:, :self.top_k]
        weight = np.take_along_axis(p, pick, -1)
        edge = np.take_along_axis(p, order[:, self.top_k - 1:self.top_k + 1], -1)
        if self.renorm:
            weight = weight / weight.sum(-1, keepdims=True)
        seen.append((pick, weight, edge[:, 0] - edge[:, 1]))
        y = np.zeros_like(u)
        for e in range(self.n_experts):
            t, i = np.nonzero(pick == e)
            if len(t):
                gate, up, down = self.expert(n, e)
                y[t] += weight[t, i][:, None] * ((silu(u[t] @ gate.T) * (u[t] @ up.T)) @ down.T)
        if self.kind == "qwen3_next":
            s = "mlp.shared_expert"
            h = silu(u @ self.layer(n, s + ".gate_proj.weight").T) * (u @ self.layer(n, s + ".up_proj.weight").T)
            y += sigmoid(u @ self.layer(n, s + "_gate.weight").T) * (h @ self.layer(n, s + ".down_proj.weight").T)
        return y

    def forward(self, ids):
        """logits [T, vocab], residual after the embedding and each layer, (pick, weight, margin) per layer"""
        x, seen = self.w["model.embed_tokens.weight"][ids], []
        streams = [x]
        for n in range(self.n_layers):
            u = self.norm(x, f"model.layers.{n}.input_layernorm.weight")
            x = x + (self.delta_net(n, u) if self.linear[n] else self.attention(n, u))
            x = x + self.moe(n, self.norm(x, f"model.layers.{n}.post_attention_layernorm.weight"), seen)
            streams.append(x)
        return self.norm(x, "model.norm.weight") @ self.w["lm_head.weight"].T, np.stack(streams), seen


def greedy(model, ids):
    """32 tokens after ids, and by how much each was best. (Everything is computed again at each step.)"""
    ids, gaps = list(ids), []
    for _ in range(GREEDY):
        last = model.forward(np.array(ids))[0][-1]
        best = np.sort(last)
        gaps.append(best[-1] - best[-2])
        ids.append(int(last.argmax()))
    return np.array(ids[-GREEDY:], np.int32), np.array(gaps, np.float32)


def prompt(model, n, vocab):
    """The seed whose closest choice of an expert is the least close, so that rounding does not decide it."""
    best = None
    for seed in range(20 if n <= ALL_UP_TO else 3):
        ids = np.random.default_rng(seed * 1000 + n).integers(0, vocab, n)
        margin = min(m.min() for _, _, m in model.forward(ids)[2])
        if best is None or margin > best[0]:
            best = (margin, ids)
    return best[1]


def make(folder, out):
    model, tensors = Model(folder), {}
    for n in LENGTHS:
        ids = prompt(model, n, model.c["vocab_size"])
        logits, streams, seen = model.forward(ids)
        tensors[f"ids_{n}"] = ids.astype(np.int32)
        tensors[f"logits_{n}"] = logits[0 if n <= ALL_UP_TO else n - LAST:].astype(np.float32)
        tensors[f"argmax_{n}"] = logits.argmax(-1).astype(np.int32)
        for layer, (pick, weight, margin) in enumerate(seen):
            tensors[f"router_{n}.{layer}.pick"] = pick.astype(np.int32)
            tensors[f"router_{n}.{layer}.weight"] = weight.astype(np.float32)
            tensors[f"router_{n}.{layer}.margin"] = margin.astype(np.float32)
        tensors[f"max_abs_{n}"] = abs(streams).reshape(len(streams), -1).max(-1).astype(np.float32)
        if n == 7:
            tensors["streams_7"] = streams.astype(np.float32)
        if n in (7, 40):
            tensors[f"greedy_{n}"], tensors[f"greedy_gap_{n}"] = greedy(model, ids)
        print(f"{n}: closest choice of an expert {min(m.min() for _, _, m in seen):.2e}, largest logit {abs(logits).max():.1f}")
    write_tensors(out, tensors)


def check(folder, golden):
    model, g = Model(folder), read_tensors(golden)
    for name in sorted(g):
        if name.endswith(".ids") or name.startswith("ids_"):
            n = len(g[name])
            key = name.replace("ids", "logits")
            logits = model.forward(g[name].astype(np.int64))[0]
            print(f"{n}: largest difference of logits {abs(logits[-len(g[key]):] - g[key]).max():.2e}")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--check":
        check(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 3:
        make(sys.argv[1], sys.argv[2])
    else:
        sys.exit(__doc__)
