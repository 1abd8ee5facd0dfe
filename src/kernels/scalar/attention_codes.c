/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/attention_codes.c - one block of positions whose keys and values are codes (formulas: attention.h). */
#include "kernels/kv_codes.h"
#include "kernels/register.h"
#include "kernels/scalar/sums.h"

enum { MAX_WEIGHT = 32767 };

typedef struct {
    const uint8_t *bytes;
    uint32_t row_bytes, d;
    aeg_kv_kind kind;
    size_t (*at)(uint32_t row_bytes, uint32_t pos, uint32_t b);
} code_rows;

static uint32_t byte_of(const code_rows *r, uint32_t pos, uint32_t b) { return r->bytes[r->at(r->row_bytes, pos, b)]; }

static int32_t code_of(const code_rows *r, uint32_t pos, uint32_t e)
{
    if (r->kind == AEG_KV_Q8)
        return (int8_t)byte_of(r, pos, e);
    if (r->kind == AEG_KV_T4)
        return aeg_kv_table4[byte_of(r, pos, e / 2) >> e % 2 * 4 & 15];
    const uint32_t low = byte_of(r, pos, e / 4) >> e % 4 * 2 & 3, top = byte_of(r, pos, r->d / 4 + e / 8) >> e % 8 & 1;
    return aeg_kv_table3[low | top << 2];
}

/* w[p] = weights of one query over n positions; x = w * v_scale in codes of `*step` */
static void quantize_weights(int32_t *codes, float *step, const float *w, const float *v_scale, uint32_t n)
{
    float x[AEG_ATTN_BLOCK];
    uint32_t largest = 0;
    for (uint32_t p = 0; p < n; p++) {
        x[p] = w[p] * v_scale[p];
        const uint32_t magnitude = aeg_f32_bits(x[p]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    const float top = aeg_f32_from_bits(largest);
    const int broken = largest >= 0x7f800000u, empty = top < 1e-30f;
    *step = broken ? aeg_f32_from_bits(0x7fc00000u) : empty ? 0.0f : top / (float)MAX_WEIGHT;
    const float inverse = broken || empty ? 0.0f : 1.0f / *step;
    for (uint32_t p = 0; p < n; p++)
        codes[p] = broken || empty ? 0 : (int32_t)((x[p] * inverse + AEG_ROUND_MAGIC) - AEG_ROUND_MAGIC);
}

/* dot product of codes [first, end) of a query and of position p */
static float code_dot(const code_rows *keys, const int8_t *q, uint32_t p, uint32_t first, uint32_t end)
{
    int32_t dot = 0;
    for (uint32_t i = first; i < end; i++)
        dot += q[i] * code_of(keys, p, aeg_kv_place(keys->kind, i));
    return (float)dot;
}

static void attend_query(const aeg_attn_args *a, const code_rows *keys, const code_rows *values, uint32_t token,
                         uint32_t head)
{
    const uint32_t row = token * a->n_rep + head, value_dim = aeg_attn_value_dim(a), d = a->head_dim - a->rotary;
    const uint32_t n = a->n_pos + token < AEG_ATTN_BLOCK ? a->n_pos + token : AEG_ATTN_BLOCK;
    const int8_t *q = a->q_codes + token * a->q_token + (size_t)head * a->head_dim;
    const size_t at = token * a->q_scale_token + head;
    const float q_scale = a->q_scale[at] * a->scale;
    const float q_rotary_scale = a->rotary > 0 ? a->q_rotary_scale[at] * a->scale : 0.0f;
    float w[AEG_ATTN_BLOCK], step;
    int32_t codes[AEG_ATTN_BLOCK];

    for (uint32_t p = 0; p < n; p++) {
        w[p] = code_dot(keys, q, p, 0, d) * (a->k_scale[p] * q_scale);
        if (a->rotary > 0)
            w[p] = fmaf(code_dot(keys, q, p, d, a->head_dim), a->k_rotary_scale[p] * q_rotary_scale, w[p]);
    }
    const float m = aeg_max16(w, n);
    for (uint32_t p = 0; p < n; p++)
        w[p] = aeg_expf(w[p] - m);
    a->out_m[row] = m;
    a->out_l[row] = aeg_sum16(w, n);

    quantize_weights(codes, &step, w, a->v_scale, n);
    for (uint32_t e = 0; e < value_dim; e++) {
        int32_t sum = 0;
        for (uint32_t p = 0; p < n; p++)
            sum += codes[p] * code_of(values, p, e);
        a->acc[(size_t)row * value_dim + e] = (float)sum * step;
    }
}

static void attend_codes(const aeg_attn_args *a, aeg_kv_kind kind)
{
    const uint32_t row_bytes = aeg_kv_row_bytes(kind, a->head_dim);
    const code_rows keys = { a->k, row_bytes, a->head_dim, kind, a->rotary > 0 ? aeg_kv_value_at : aeg_kv_key_at };
    const code_rows values = { a->v, row_bytes, a->head_dim, kind, aeg_kv_value_at };
    for (uint32_t t = 0; t < a->n_tokens; t++)
        for (uint32_t h = 0; h < a->n_rep; h++)
            attend_query(a, &keys, &values, t, h);
}

void aeg_scalar_attn_q8(const aeg_attn_args *a) { attend_codes(a, AEG_KV_Q8); }
void aeg_scalar_attn_q8_latent(const aeg_attn_args *a) { attend_codes(a, AEG_KV_Q8); }
void aeg_scalar_attn_t4(const aeg_attn_args *a) { attend_codes(a, AEG_KV_T4); }
void aeg_scalar_attn_t3(const aeg_attn_args *a) { attend_codes(a, AEG_KV_T3); }
