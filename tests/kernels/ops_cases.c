/* SPDX-License-Identifier: Apache-2.0 */
/* ops_cases.c - one case per op of AEG_KERNEL_LIST: random shapes and values, one call. The table expands the same
 * list, so an op without a case does not compile. */
#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/kv_codes.h"
#include "ops_check.h"

enum { MAX_N = 600 };

#define CASE(name) static void run_##name(ops_world *w, const aeg_kernels *k)

/* Callers may pass an input as the output: half of the runs do. */
static float *output(ops_world *w, float *input, size_t n) { return ops_below(w, 2) ? input : ops_floats(w, n); }

CASE(rmsnorm)
{
    const uint32_t n = ops_size16(w, MAX_N);
    float *x = ops_floats(w, n), *weight = ops_floats(w, n), *y = output(w, x, n);
    k->rmsnorm(y, x, weight, n, 1e-6f);
}

CASE(rmsnorm_gated)
{
    const uint32_t n = ops_size16(w, MAX_N);
    float *o = ops_floats(w, n), *z = ops_floats(w, n), *weight = ops_floats(w, n), *y = output(w, o, n);
    k->rmsnorm_gated(y, o, z, weight, n, 1e-6f);
}

CASE(l2norm)
{
    const uint32_t n = ops_size16(w, MAX_N);
    k->l2norm(ops_floats(w, n), n, 1e-6f, 0.0883883461f);
}

CASE(silu_mul)
{
    const uint32_t n = ops_size(w, MAX_N);
    float *gate = ops_floats(w, n), *up = ops_floats(w, n), *y = output(w, gate, n);
    k->silu_mul(y, gate, up, n);
}

CASE(sigmoid_mul)
{
    const uint32_t n = ops_size(w, MAX_N);
    float *x = ops_floats(w, n), *gate = ops_floats(w, n);
    k->sigmoid_mul(x, gate, n);
}

CASE(add)
{
    const uint32_t n = ops_size(w, MAX_N);
    float *y = ops_floats(w, n), *x = ops_floats(w, n);
    k->add(y, x, n);
}

CASE(axpy)
{
    const uint32_t n = ops_size(w, MAX_N);
    float *y = ops_floats(w, n), *x = ops_floats(w, n);
    k->axpy(y, ops_value(w), x, n);
}

CASE(dot)
{
    const uint32_t n = ops_size16(w, MAX_N);
    float *a = ops_floats(w, n), *b = ops_floats(w, n), *y = ops_floats(w, 1);
    *y = k->dot(a, b, n);
}

CASE(router)
{
    const uint32_t n = ops_size(w, MAX_N), most = n < 16 ? n : 16, top_k = 1 + ops_below(w, most);
    float *logits = ops_floats(w, n), *weights = ops_floats(w, top_k), *scratch = ops_scratch(w, n);
    uint16_t *ids = ops_bytes(w, top_k * sizeof *ids);
    if (ops_below(w, 3) == 0) /* ties */
        for (uint32_t i = 0; i < n; i++)
            logits[i] = rintf(logits[i]);
    k->router(ids, weights, logits, n, top_k, (int)ops_below(w, 2), scratch);
}

CASE(conv4_silu)
{
    const uint32_t n = ops_size(w, MAX_N);
    float *x[4], *weight = ops_floats(w, 4 * (size_t)n);
    for (int i = 0; i < 4; i++)
        x[i] = ops_floats(w, n);
    k->conv4_silu(output(w, x[3], n), x[0], x[1], x[2], x[3], weight, n);
}

CASE(gdn_gates)
{
    const uint32_t n = ops_size(w, 80);
    float *beta = ops_floats(w, n), *decay = ops_floats(w, n);
    float *b = ops_floats(w, n), *a = ops_floats(w, n), *a_log = ops_floats(w, n), *dt_bias = ops_floats(w, n);
    k->gdn_gates(beta, decay, b, a, a_log, dt_bias, n);
}

CASE(gdn)
{
    const uint32_t dk = 4 * (1 + ops_below(w, 10)), n_strips = 1 + ops_below(w, 9), dv = n_strips * AEG_GDN_STRIP;
    const uint32_t n_tokens = 1 + ops_below(w, 4), gap = ops_below(w, 3);
    float *state = ops_floats(w, (size_t)dk * dv), *qk = ops_floats(w, (size_t)n_tokens * (2 * dk + gap));
    float *v = ops_floats(w, (size_t)n_tokens * (dv + gap)), *o = ops_floats(w, (size_t)n_tokens * (dv + gap));
    float *decay = ops_floats(w, 2 * n_tokens), *beta = ops_floats(w, n_tokens);
    const aeg_gdn_args a = {
        .state = state, .q = qk, .k = qk + dk, .q_stride = 2 * dk + gap, .k_stride = 2 * dk + gap,
        .v = v, .v_stride = dv + gap, .decay = decay, .beta = beta, .decay_stride = 2, .beta_stride = 1,
        .o = o, .o_stride = dv + gap, .dk = dk, .dv = dv, .n_tokens = n_tokens,
    };
    const uint32_t cut = ops_below(w, n_strips + 1); /* as two threads would share it */
    k->gdn(&a, 0, cut);
    k->gdn(&a, cut, n_strips);
}

CASE(rope)
{
    const uint32_t half = ops_size(w, 130);
    float *x = ops_floats(w, 2 * (size_t)half), *c = ops_floats(w, half), *s = ops_floats(w, half);
    k->rope(x, c, s, half);
}

CASE(rope_pairs)
{
    const uint32_t half = ops_size(w, 130);
    float *x = ops_floats(w, 2 * (size_t)half), *c = ops_floats(w, half), *s = ops_floats(w, half);
    k->rope_pairs(x, c, s, half);
}

CASE(route)
{
    const uint32_t n_groups = ops_below(w, 3) ? 1 : 2 + ops_below(w, 8), size = ops_size(w, MAX_N / n_groups), n = n_groups * size;
    const uint32_t top_groups = 1 + ops_below(w, n_groups), left = top_groups * size;
    const uint32_t top_k = 1 + ops_below(w, left < 16 ? left : 16);
    float *logits = ops_floats(w, n), *bias = ops_floats(w, n), *weights = ops_floats(w, top_k);
    if (ops_below(w, 3) == 0) /* ties */
        for (uint32_t i = 0; i < n; i++)
            logits[i] = bias[i] = rintf(logits[i]);
    const aeg_route_args a = {
        .logits = logits, .bias = ops_below(w, 3) ? bias : NULL, .n = n, .top_k = top_k, .n_groups = n_groups,
        .top_groups = top_groups, .sigmoid = ops_below(w, 2), .renormalise = ops_below(w, 2), .group_top2 = ops_below(w, 2),
        .scale = 2.5f, .scratch = ops_scratch(w, aeg_route_scratch(n, n_groups)),
        .ids = ops_bytes(w, top_k * sizeof *a.ids), .weights = weights,
    };
    k->route(&a);
}

CASE(hyper_dots)
{
    const uint32_t kind = ops_below(w, 3), n = 4 * (1 + ops_below(w, 24)), column = 4 * ops_below(w, 8);
    const uint32_t stride = column + n + 4 * ops_below(w, 2), rows = 2 * AEG_ROWS, n_cols = 4 * stride;
    const aeg_weight_type type = { .kind = (uint8_t)kind };
    uint8_t *data = ops_bytes(w, (size_t)rows * n_cols * (kind == AEG_W_F32 ? 4 : 2));
    for (size_t i = 0; i < (size_t)rows * n_cols; i++) {
        const float v = ops_value(w);
        if (kind == AEG_W_F32)
            ((float *)(void *)data)[i] = v;
        else
            ((uint16_t *)(void *)data)[i] = kind == AEG_W_F16 ? aeg_f16_from_f32(v) : (uint16_t)(aeg_f32_bits(v) >> 16);
    }
    const aeg_weights fn = { .type = type, .n_rows = AEG_HYPER_GATES, .n_cols = n_cols,
                             .block_stride = aeg_block_bytes(type, n_cols), .data = data };
    const aeg_hyper_dots_args a = { .fn = &fn, .x = ops_floats(w, 4 * (size_t)stride), .stride = stride, .column = column,
                                    .n = n, .dots = ops_floats(w, AEG_HYPER_GATES) };
    k->hyper_dots(&a);
}

CASE(hyper_gates)
{
    const aeg_hyper_args a = {
        .dots = ops_floats(w, AEG_HYPER_GATES), .base = ops_floats(w, AEG_HYPER_GATES), .scale = ops_floats(w, 3),
        .sum_squares = fabsf(ops_value(w)), .width = 16 * (1 + ops_below(w, 100)), .rms_eps = 1e-6f,
        .clamp = ops_below(w, 2) ? 30.0f : 2.0f, .eps = 1e-6f, .iters = ops_below(w, 24),
        .out = (aeg_hyper_gates *)(void *)ops_floats(w, sizeof *a.out / sizeof(float)),
    };
    k->hyper_gates(&a);
}

CASE(hyper_collapse)
{
    const uint32_t n = ops_size(w, MAX_N), stride = n + ops_below(w, 3);
    float *x = ops_floats(w, 4 * (size_t)stride);
    k->hyper_collapse(output(w, x, n), x, stride, ops_floats(w, 4), n);
}

CASE(hyper_update)
{
    const uint32_t n = ops_size(w, MAX_N), stride = n + ops_below(w, 3);
    float *x = ops_floats(w, 4 * (size_t)stride), *y = ops_floats(w, n);
    k->hyper_update(x, stride, y, (const aeg_hyper_gates *)(void *)ops_floats(w, sizeof(aeg_hyper_gates) / sizeof(float)), n);
}

static void run_attention(ops_world *w, void (*attend)(const aeg_attn_args *), size_t size)
{
    const bool latent = ops_below(w, 3) == 0; /* MLA: a value is the beginning of its key */
    const uint32_t n_rep = 1 + ops_below(w, 9), head_dim = ops_size16(w, ops_below(w, 4) ? 128 : latent ? 576 : 512);
    const uint32_t value_dim = latent ? ops_size16(w, head_dim) : head_dim;
    const uint32_t n_tokens = ops_below(w, 3) ? 1 : 1 + ops_below(w, 4);
    const uint32_t n_pos = ops_size(w, ops_below(w, 8) ? 40 : AEG_ATTN_BLOCK), gap = 4 * ops_below(w, 3);
    const uint32_t n_rows = n_pos + n_tokens - 1 < AEG_ATTN_BLOCK ? n_pos + n_tokens - 1 : AEG_ATTN_BLOCK;
    const size_t stride = head_dim * size + gap, bytes = stride * n_rows;
    const size_t q_token = (size_t)n_rep * (head_dim + 3), n_queries = (size_t)n_tokens * n_rep;
    float *q = ops_floats(w, n_tokens * q_token);
    void *kv[2];
    for (int i = 0; i < 2; i++) {
        kv[i] = ops_bytes(w, bytes);
        for (size_t j = 0; j < bytes / size; j++) {
            const float v = ops_value(w);
            if (size == sizeof v)
                ((float *)kv[i])[j] = v;
            else
                ((uint16_t *)kv[i])[j] = aeg_f16_from_f32(v);
        }
    }
    const aeg_attn_args a = {
        .q = q, .q_stride = head_dim + 3, .q_token = q_token, .k = kv[0], .v = kv[latent ? 0 : 1], .kv_stride = stride,
        .n_tokens = n_tokens, .n_rep = n_rep, .n_pos = n_pos, .head_dim = head_dim, .scale = 0.0625f,
        .value_dim = latent ? value_dim : 0,
        .out_m = ops_floats(w, n_queries), .out_l = ops_floats(w, n_queries),
        .acc = ops_floats(w, n_queries * value_dim), .scratch = ops_scratch(w, (size_t)n_rep * AEG_ATTN_BLOCK),
    };
    attend(&a);
}

/* Codes never hold -128; all of them at the end of the range now and then. */
static int8_t *int8_codes(ops_world *w, size_t n)
{
    int8_t *codes = ops_bytes(w, n);
    const uint32_t kind = ops_below(w, 8);
    for (size_t i = 0; i < n; i++)
        codes[i] = kind == 0 ? 127 : kind == 1 ? -127 : (int8_t)(ops_below(w, 255) - 127);
    return codes;
}

/* Scales are not negative; what lies behind the last position may be anything. */
static float *scales(ops_world *w, uint32_t n)
{
    float *x = ops_floats(w, (n + 15) / 16 * 16);
    for (uint32_t i = 0; i < n; i++)
        x[i] = fabsf(x[i]);
    return x;
}

/* Scratch for coded rows, on a cache line as kernels/attention.h asks; buffers of a world lie anywhere. */
static void *aligned_scratch(ops_world *w, size_t bytes)
{
    enum { LINE = 64 };
    const uintptr_t p = (uintptr_t)ops_scratch(w, (bytes + LINE) / sizeof(float) + 1);
    return (void *)((p + LINE - 1) / LINE * LINE);
}

static void run_codes(ops_world *w, void (*attend)(const aeg_attn_args *), aeg_kv_kind kind)
{
    const uint32_t n_rep = 1 + ops_below(w, 9), head_dim = 64u << ops_below(w, ops_below(w, 3) ? 2 : 4);
    const uint32_t n_tokens = ops_below(w, 3) ? 1 : 1 + ops_below(w, 20), n_queries = n_tokens * n_rep;
    const uint32_t n_pos = ops_size(w, ops_below(w, 8) ? 40 : AEG_ATTN_BLOCK);
    const uint32_t n = n_pos + n_tokens - 1 < AEG_ATTN_BLOCK ? n_pos + n_tokens - 1 : AEG_ATTN_BLOCK;
    const size_t bytes = (size_t)((n + 15) / 16 * 16) * aeg_kv_row_bytes(kind, head_dim);
    const uint32_t q_gap = 16 * ops_below(w, 3);
    int8_t *q = int8_codes(w, n_tokens * ((size_t)n_rep * head_dim + q_gap));
    const aeg_attn_args a = {
        .n_tokens = n_tokens, .n_rep = n_rep, .n_pos = n_pos, .head_dim = head_dim,
        .q_codes = q, .q_token = (size_t)n_rep * head_dim + q_gap,
        .q_scale = ops_floats(w, n_tokens * ((size_t)n_rep + 1)), .q_scale_token = n_rep + 1,
        .k = int8_codes(w, bytes), .v = int8_codes(w, bytes), .k_scale = scales(w, n), .v_scale = scales(w, n),
        .scale = 0.0625f / 127.0f, .out_m = ops_floats(w, n_queries), .out_l = ops_floats(w, n_queries),
        .acc = ops_floats(w, (size_t)n_queries * head_dim),
        .scratch = aligned_scratch(w, aeg_attn_scratch_bytes(kind, n_tokens, n_rep, head_dim)),
    };
    attend(&a);
}

CASE(attn_q8) { run_codes(w, k->attn_q8, AEG_KV_Q8); }

CASE(attn_q8_latent)
{
    const uint32_t n_rep = 1 + ops_below(w, 12), value_dim = 64u << ops_below(w, ops_below(w, 3) ? 2 : 4);
    const uint32_t rotary = 64 * (1 + ops_below(w, 2)), head_dim = value_dim + rotary;
    const uint32_t n_tokens = ops_below(w, 3) ? 1 : 1 + ops_below(w, 8), n_queries = n_tokens * n_rep;
    const uint32_t n_pos = ops_size(w, ops_below(w, 8) ? 40 : AEG_ATTN_BLOCK);
    const uint32_t n = n_pos + n_tokens - 1 < AEG_ATTN_BLOCK ? n_pos + n_tokens - 1 : AEG_ATTN_BLOCK;
    const int8_t *rows = int8_codes(w, (size_t)((n + 15) / 16 * 16) * head_dim);
    const float *k_scale = scales(w, n);
    const aeg_attn_args a = {
        .n_tokens = n_tokens, .n_rep = n_rep, .n_pos = n_pos, .head_dim = head_dim, .value_dim = value_dim, .rotary = rotary,
        .q_codes = int8_codes(w, (size_t)n_queries * head_dim), .q_token = (size_t)n_rep * head_dim,
        .q_scale = ops_floats(w, n_queries), .q_rotary_scale = ops_floats(w, n_queries), .q_scale_token = n_rep,
        .k = rows, .v = rows, .k_scale = k_scale, .v_scale = k_scale, .k_rotary_scale = scales(w, n),
        .scale = 0.0625f / 127.0f, .out_m = ops_floats(w, n_queries), .out_l = ops_floats(w, n_queries),
        .acc = ops_floats(w, (size_t)n_queries * value_dim),
        .scratch = aligned_scratch(w, aeg_attn_scratch_bytes(AEG_KV_Q8, n_tokens, n_rep, head_dim)),
    };
    k->attn_q8_latent(&a);
}

CASE(attn_t4) { run_codes(w, k->attn_t4, AEG_KV_T4); }
CASE(attn_t3) { run_codes(w, k->attn_t3, AEG_KV_T3); }

CASE(hadamard)
{
    const uint32_t n = 16u << ops_below(w, 6);
    k->hadamard(ops_floats(w, n), n);
}

CASE(attn_f32) { run_attention(w, k->attn_f32, sizeof(float)); }
CASE(attn_f16) { run_attention(w, k->attn_f16, sizeof(uint16_t)); }

CASE(attn_merge)
{
    const uint32_t n = ops_size16(w, 512);
    float *ml = ops_floats(w, 4), *acc = ops_floats(w, n), *acc2 = ops_floats(w, n);
    if (ops_below(w, 3) == 0) { /* the first block */
        ml[0] = -INFINITY;
        ml[1] = 0.0f;
        memset(acc, 0, n * sizeof *acc);
    }
    k->attn_merge(&ml[0], &ml[1], acc, ml[2], ml[3], acc2, n);
}

CASE(store_f16)
{
    const uint32_t n = ops_size(w, MAX_N);
    float *x = ops_floats(w, n);
    k->store_f16(ops_bytes(w, n * sizeof(uint16_t)), x, n);
}

/* A few blocks, some all zero, some tiny. */
static float *blocks(ops_world *w, uint32_t n, uint32_t block)
{
    float *x = ops_floats(w, n);
    for (uint32_t b = 0; b < n / block; b++) {
        const uint32_t kind = ops_below(w, 8);
        for (uint32_t i = b * block; i < (b + 1) * block && kind < 2; i++)
            x[i] = kind == 0 ? 0.0f : x[i] * 1e-31f;
    }
    return x;
}

CASE(quantize_i8)
{
    const uint32_t block = 32u << ops_below(w, 2), n = block * (1 + ops_below(w, 9));
    float *x = blocks(w, n, block), *d = ops_floats(w, n / block), *s = ops_floats(w, n / block);
    k->quantize_i8(ops_bytes(w, n), d, s, x, n, block);
}

CASE(quantize_i16)
{
    const uint32_t block = 32u << ops_below(w, 2), n = block * (1 + ops_below(w, 9));
    float *x = blocks(w, n, block), *d = ops_floats(w, n / block), *s = ops_floats(w, n / block);
    k->quantize_i16(ops_bytes(w, n * sizeof(int16_t)), d, s, x, n, block);
}

static void random_bytes(ops_world *w, uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)ops_below(w, 256);
}

CASE(code_sums_i8)
{
    const uint32_t n = 16 * (1 + ops_below(w, 40));
    int8_t *q = ops_bytes(w, n);
    random_bytes(w, (uint8_t *)q, n);
    k->code_sums_i8(ops_bytes(w, n / 16 * sizeof(int32_t)), q, n);
}

CASE(code_sums_i16)
{
    const uint32_t n = 16 * (1 + ops_below(w, 40));
    int16_t *q = ops_bytes(w, n * sizeof(int16_t));
    random_bytes(w, (uint8_t *)q, n * sizeof(int16_t));
    k->code_sums_i16(ops_bytes(w, n / 16 * sizeof(int32_t)), q, n);
}

const ops_case ops_cases[] = {
#define CASE_ROW(name, ret, params) { #name, run_##name },
    AEG_KERNEL_LIST(CASE_ROW)
#undef CASE_ROW
};
const int n_ops_cases = sizeof ops_cases / sizeof *ops_cases;
