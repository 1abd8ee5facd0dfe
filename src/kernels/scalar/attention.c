/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/attention.c - one block of positions, and the merge of two blocks (formulas: attention.h). */
#include "kernels/register.h"
#include "kernels/scalar/sums.h"

/* A row of the cache as f32: itself, or expanded into `buffer`. */
static const float *kv_row(const void *base, size_t stride, uint32_t pos, uint32_t n, aeg_kv_kind kind, float *buffer)
{
    const void *row = (const uint8_t *)base + pos * stride;
    if (kind == AEG_KV_F32)
        return row;
    const uint16_t *halves = row;
    for (uint32_t i = 0; i < n; i++)
        buffer[i] = aeg_f32_from_f16(halves[i]);
    return buffer;
}

static void attend_query(const aeg_attn_args *a, aeg_kv_kind kind, uint32_t token, uint32_t head)
{
    float buffer[AEG_ATTN_MAX_DIM], w[AEG_ATTN_BLOCK];
    const uint32_t n = a->n_pos + token < AEG_ATTN_BLOCK ? a->n_pos + token : AEG_ATTN_BLOCK;
    const uint32_t value_dim = aeg_attn_value_dim(a);
    const size_t row = (size_t)token * a->n_rep + head;
    const float *q = a->q + token * a->q_token + head * a->q_stride;
    float *acc = a->acc + row * value_dim;

    for (uint32_t p = 0; p < n; p++)
        w[p] = a->scale * aeg_dot16(q, kv_row(a->k, a->kv_stride, p, a->head_dim, kind, buffer), a->head_dim);
    const float m = aeg_max16(w, n);
    for (uint32_t p = 0; p < n; p++)
        w[p] = aeg_expf(w[p] - m);
    a->out_m[row] = m;
    a->out_l[row] = aeg_sum16(w, n);

    for (uint32_t d = 0; d < value_dim; d++)
        acc[d] = 0.0f;
    for (uint32_t p = 0; p < n; p++) {
        const float *v = kv_row(a->v, a->kv_stride, p, value_dim, kind, buffer);
        for (uint32_t d = 0; d < value_dim; d++)
            acc[d] = fmaf(w[p], v[d], acc[d]);
    }
}

static void attend(const aeg_attn_args *a, aeg_kv_kind kind)
{
    for (uint32_t t = 0; t < a->n_tokens; t++)
        for (uint32_t h = 0; h < a->n_rep; h++)
            attend_query(a, kind, t, h);
}

void aeg_scalar_attn_f32(const aeg_attn_args *a) { attend(a, AEG_KV_F32); }
void aeg_scalar_attn_f16(const aeg_attn_args *a) { attend(a, AEG_KV_F16); }

void aeg_scalar_attn_merge(float *m, float *l, float *acc, float m2, float l2, const float *acc2, uint32_t head_dim)
{
    const float top = aeg_maxf(*m, m2);
    /* m = -inf is the empty start; -inf - -inf would be a NaN */
    const float f = *m == -INFINITY ? 0.0f : aeg_expf(*m - top);
    const float f2 = aeg_expf(m2 - top);
    *l = fmaf(*l, f, l2 * f2);
    for (uint32_t d = 0; d < head_dim; d++)
        acc[d] = fmaf(acc[d], f, acc2[d] * f2);
    *m = top;
}
