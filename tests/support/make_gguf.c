/* SPDX-License-Identifier: Apache-2.0 */
/* make_gguf OUT_DIR - tests/data/qwen35moe-tiny as GGUF, the way public converters write it: "tiny.gguf", and the same numbers with
 * gate|up and q|k|v of attention in one tensor each, in three files of which the first has no tensors.
 *
 * What changes on the way: norms get their 1 (not the gated one), value heads go from "the heads of a key head together" to
 * "all first ones, then all second ones", A_log becomes -exp(A_log), vectors and the router become f32. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "format/gguf.h"
#include "support/gguf_write.h"
#include "support/t.h"
#include "support/t_tensors.h"

enum { F32 = 0, BF16 = 30, ALIGN = 32, MAX_TENSORS = 200 };
enum { LAYERS = 4, HIDDEN = 128, VOCAB = 512, K_HEADS = 2, RATIO = 2, HEAD = 64, EXPERTS = 16, WIDTH = 64, TAPS = 4, KV_ROWS = 128 };
#define PREFIX "model.language_model."

typedef struct {
    char name[64];
    uint32_t n_dims, type;
    uint64_t ne[3];
    gw data;
} item;

static struct {
    const t_tensors *hf;
    item items[MAX_TENSORS];
    uint32_t n;
} out;

static item *add(const char *name, uint32_t type, uint64_t ne0, uint64_t ne1, uint64_t ne2)
{
    T_CHECK(out.n < MAX_TENSORS);
    item *x = &out.items[out.n++];
    *x = (item){ .type = type, .ne = { ne0, ne1, ne2 }, .n_dims = ne2 > 0 ? 3 : ne1 > 0 ? 2 : 1 };
    snprintf(x->name, sizeof x->name, "%s", name);
    return x;
}

static const t_tensor *source(uint32_t layer, const char *name)
{
    return layer == UINT32_MAX ? t_tensors_get(out.hf, "%s", name) : t_tensors_get(out.hf, PREFIX "layers.%u.%s", layer, name);
}

static const char *block(uint32_t layer, const char *name)
{
    static char text[64];
    snprintf(text, sizeof text, "blk.%u.%s", layer, name);
    return text;
}

/* Where value head `now` of the file was before. */
static uint32_t head_before(uint32_t now) { return now % K_HEADS * RATIO + now / K_HEADS; }

/* Rows [first, first + n) of `bytes` each. */
static void rows(item *x, const t_tensor *t, uint64_t first, uint64_t n, size_t bytes)
{
    gw_raw(&x->data, (const uint8_t *)t->data + first * bytes, n * bytes);
}

/* Rows whose last K_HEADS * RATIO * run belong to value heads of `run` rows each. */
static void rows_by_head(item *x, const t_tensor *t, uint64_t plain, uint64_t run, size_t bytes)
{
    rows(x, t, 0, plain, bytes);
    for (uint32_t head = 0; head < K_HEADS * RATIO; head++)
        rows(x, t, plain + head_before(head) * run, run, bytes);
}

static void matrix(const char *name, const t_tensor *t, uint64_t ne0, uint64_t ne1)
{
    rows(add(name, BF16, ne0, ne1, 0), t, 0, ne1, ne0 * 2);
}

static void floats(const char *name, const t_tensor *t, float plus, uint64_t ne0, uint64_t ne1)
{
    item *x = add(name, F32, ne0, ne1, 0);
    for (uint64_t i = 0; i < t->n_elements; i++)
        gw_raw(&x->data, &(float){ t_tensor_f32(t, i) + plus }, 4);
}

static void gdn(uint32_t l)
{
    const uint32_t heads = K_HEADS * RATIO, key = K_HEADS * HEAD, value = heads * HEAD;
    rows_by_head(add(block(l, "attn_qkv.weight"), BF16, HIDDEN, 2 * key + value, 0), source(l, "linear_attn.in_proj_qkv.weight"),
                 2 * key, HEAD, HIDDEN * 2);
    rows_by_head(add(block(l, "attn_gate.weight"), BF16, HIDDEN, value, 0), source(l, "linear_attn.in_proj_z.weight"), 0, HEAD, HIDDEN * 2);
    rows_by_head(add(block(l, "ssm_beta.weight"), BF16, HIDDEN, heads, 0), source(l, "linear_attn.in_proj_b.weight"), 0, 1, HIDDEN * 2);
    rows_by_head(add(block(l, "ssm_alpha.weight"), BF16, HIDDEN, heads, 0), source(l, "linear_attn.in_proj_a.weight"), 0, 1, HIDDEN * 2);
    item *conv = add(block(l, "ssm_conv1d.weight"), BF16, TAPS, 2 * key + value, 0);
    rows_by_head(conv, source(l, "linear_attn.conv1d.weight"), 2 * key, HEAD, TAPS * 2);
    item *a = add(block(l, "ssm_a"), F32, heads, 0, 0), *dt = add(block(l, "ssm_dt.bias"), F32, heads, 0, 0);
    for (uint32_t h = 0; h < heads; h++) {
        gw_raw(&a->data, &(float){ -expf(t_tensor_f32(source(l, "linear_attn.A_log"), head_before(h))) }, 4);
        gw_raw(&dt->data, &(float){ t_tensor_f32(source(l, "linear_attn.dt_bias"), head_before(h)) }, 4);
    }
    floats(block(l, "ssm_norm.weight"), source(l, "linear_attn.norm.weight"), 0, HEAD, 0);
    item *o = add(block(l, "ssm_out.weight"), BF16, value, HIDDEN, 0); /* its columns are value heads */
    for (uint32_t row = 0; row < HIDDEN; row++)
        for (uint32_t h = 0; h < heads; h++)
            rows(o, source(l, "linear_attn.out_proj.weight"), row * heads + head_before(h), 1, HEAD * 2);
}

static void attention(uint32_t l, bool fused)
{
    const t_tensor *q = source(l, "self_attn.q_proj.weight"), *k = source(l, "self_attn.k_proj.weight");
    const t_tensor *v = source(l, "self_attn.v_proj.weight"), *o = source(l, "self_attn.o_proj.weight");
    const uint64_t q_rows = q->dim[0];
    if (fused) {
        item *x = add(block(l, "attn_qkv.weight"), BF16, HIDDEN, q_rows + 2 * KV_ROWS, 0);
        rows(x, q, 0, q_rows, HIDDEN * 2), rows(x, k, 0, KV_ROWS, HIDDEN * 2), rows(x, v, 0, KV_ROWS, HIDDEN * 2);
    } else {
        matrix(block(l, "attn_q.weight"), q, HIDDEN, q_rows);
        matrix(block(l, "attn_k.weight"), k, HIDDEN, KV_ROWS);
        matrix(block(l, "attn_v.weight"), v, HIDDEN, KV_ROWS);
    }
    matrix(block(l, "attn_output.weight"), o, o->dim[1], HIDDEN);
    floats(block(l, "attn_q_norm.weight"), source(l, "self_attn.q_norm.weight"), 1, HEAD, 0);
    floats(block(l, "attn_k_norm.weight"), source(l, "self_attn.k_norm.weight"), 1, HEAD, 0);
}

static void experts(uint32_t l, bool fused)
{
    const t_tensor *gate_up = source(l, "mlp.experts.gate_up_proj"), *down = source(l, "mlp.experts.down_proj");
    if (fused)
        rows(add(block(l, "ffn_gate_up_exps.weight"), BF16, HIDDEN, 2 * WIDTH, EXPERTS), gate_up, 0, 2 * WIDTH * EXPERTS, HIDDEN * 2);
    for (uint32_t part = 0; part < 2 && !fused; part++) {
        item *x = add(block(l, part == 0 ? "ffn_gate_exps.weight" : "ffn_up_exps.weight"), BF16, HIDDEN, WIDTH, EXPERTS);
        for (uint32_t e = 0; e < EXPERTS; e++)
            rows(x, gate_up, (2 * e + part) * WIDTH, WIDTH, HIDDEN * 2);
    }
    rows(add(block(l, "ffn_down_exps.weight"), BF16, WIDTH, HIDDEN, EXPERTS), down, 0, HIDDEN * EXPERTS, WIDTH * 2);
    matrix(block(l, "ffn_gate_inp.weight"), source(l, "mlp.gate.weight"), HIDDEN, EXPERTS);
    matrix(block(l, "ffn_gate_inp_shexp.weight"), source(l, "mlp.shared_expert_gate.weight"), HIDDEN, 1);
    out.items[out.n - 1].n_dims = 1;
    matrix(block(l, "ffn_gate_shexp.weight"), source(l, "mlp.shared_expert.gate_proj.weight"), HIDDEN, WIDTH);
    matrix(block(l, "ffn_up_shexp.weight"), source(l, "mlp.shared_expert.up_proj.weight"), HIDDEN, WIDTH);
    matrix(block(l, "ffn_down_shexp.weight"), source(l, "mlp.shared_expert.down_proj.weight"), WIDTH, HIDDEN);
}

/* Values of other tensors in the shapes of a block that predicts one token more: nothing computes with them. */
static void draft_block(void)
{
    matrix(block(LAYERS, "nextn.eh_proj.weight"), source(3, "self_attn.o_proj.weight"), 2 * HIDDEN, HIDDEN);
    floats(block(LAYERS, "nextn.enorm.weight"), source(3, "input_layernorm.weight"), 1, HIDDEN, 0);
    floats(block(LAYERS, "attn_norm.weight"), source(3, "input_layernorm.weight"), 1, HIDDEN, 0);
}

static void all_tensors(bool fused)
{
    matrix("token_embd.weight", source(UINT32_MAX, PREFIX "embed_tokens.weight"), HIDDEN, VOCAB);
    floats("output_norm.weight", source(UINT32_MAX, PREFIX "norm.weight"), 1, HIDDEN, 0);
    matrix("output.weight", source(UINT32_MAX, "lm_head.weight"), HIDDEN, VOCAB);
    for (uint32_t l = 0; l < LAYERS; l++) {
        floats(block(l, "attn_norm.weight"), source(l, "input_layernorm.weight"), 1, HIDDEN, 0);
        floats(block(l, "post_attention_norm.weight"), source(l, "post_attention_layernorm.weight"), 1, HIDDEN, 0);
        if (l % 4 == 3)
            attention(l, fused);
        else
            gdn(l);
        experts(l, fused);
    }
    draft_block();
}

/* --- files ------------------------------------------------------------------------------------------------------------- */

enum { N_KEYS = 22, N_SPLIT_KEYS = 3 };

static void keys(gw *w)
{
    static const struct {
        const char *key;
        uint32_t value;
    } counts[] = {
        { "block_count", LAYERS + 1 }, { "nextn_predict_layers", 1 }, { "context_length", 4096 }, { "embedding_length", HIDDEN }, { "attention.head_count", 4 },
        { "attention.head_count_kv", 2 }, { "attention.key_length", HEAD }, { "attention.value_length", HEAD },
        { "rope.dimension_count", 16 }, { "expert_count", EXPERTS }, { "expert_used_count", 4 },
        { "expert_feed_forward_length", WIDTH }, { "expert_shared_feed_forward_length", WIDTH }, { "ssm.conv_kernel", TAPS },
        { "ssm.state_size", HEAD }, { "ssm.group_count", K_HEADS }, { "ssm.time_step_rank", K_HEADS * RATIO },
        { "ssm.inner_size", K_HEADS * RATIO * HEAD },
    };
    char key[80];
    gw_key_text(w, "general.architecture", "qwen35moe");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        snprintf(key, sizeof key, "qwen35moe.%s", counts[i].key);
        gw_key_u32(w, key, counts[i].value);
    }
    gw_key_f32(w, "qwen35moe.attention.layer_norm_rms_epsilon", 1e-6f);
    gw_key_f32(w, "qwen35moe.rope.freq_base", 1e7f);
    gw_key_array(w, "qwen35moe.rope.dimension_sections", AEG_GGUF_I32, 4);
    gw_int(w, 4, 4), gw_int(w, 2, 4), gw_int(w, 2, 4), gw_int(w, 0, 4);
}

/* Tensors [first, first + n); part 0 of a set has the keys. */
static void write_part(const char *path, uint32_t first, uint32_t n, uint32_t part, uint32_t parts)
{
    gw w = { 0 };
    uint64_t at = 0;
    gw_head(&w, 3, n, (part == 0 ? N_KEYS : 0) + (parts > 1 ? N_SPLIT_KEYS : 0));
    if (part == 0)
        keys(&w);
    if (parts > 1) {
        gw_key_int(&w, "split.no", AEG_GGUF_U16, part, 2);
        gw_key_int(&w, "split.count", AEG_GGUF_U16, parts, 2);
        gw_key_int(&w, "split.tensors.count", AEG_GGUF_I32, out.n, 4);
    }
    for (uint32_t i = first; i < first + n; i++) {
        const item *x = &out.items[i];
        gw_tensor(&w, x->name, x->n_dims, x->ne, x->type, at);
        at += (x->data.n + ALIGN - 1) / ALIGN * ALIGN;
    }
    for (uint32_t i = first; i < first + n; i++) {
        gw_pad(&w, ALIGN);
        gw_raw(&w, out.items[i].data.p, out.items[i].data.n);
    }
    gw_write(&w, path);
    gw_free(&w);
}

static void clear(void)
{
    for (uint32_t i = 0; i < out.n; i++)
        gw_free(&out.items[i].data);
    out.n = 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    t_tensors *hf = t_tensors_open("tests/data/qwen35moe-tiny/model.safetensors");
    out.hf = hf;
    aegis_error err;
    T_OK(aeg_make_dirs(argv[1], &err), &err); /* the first test to run finds no folder above it either */
    all_tensors(false);
    write_part(t_path(argv[1], "tiny.gguf"), 0, out.n, 0, 1);
    clear();
    all_tensors(true);
    write_part(t_path(argv[1], "split-00001-of-00003.gguf"), 0, 0, 0, 3);
    write_part(t_path(argv[1], "split-00002-of-00003.gguf"), 0, out.n / 2, 1, 3);
    write_part(t_path(argv[1], "split-00003-of-00003.gguf"), out.n / 2, out.n - out.n / 2, 2, 3);
    clear();
    t_tensors_close(hf);
    return 0;
}
