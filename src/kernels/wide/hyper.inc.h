/* SPDX-License-Identifier: Apache-2.0 */
/* wide/hyper.inc.h - hyper-connections: the 4 x 4 mix is one vector, l_swap1 and 2 stay in a row, 4 and 8 in a column
 * (scalar/hyper.c). After hadamard.inc.h's primitives. */
#include <string.h>

#include "kernels/strip.h"

/* Bytes ahead: each of the eight runs of fn is too short for the hardware's own look-ahead. */
enum { HYPER_AHEAD = 1024 };

LANES_INLINE lanes load_stored(const uint32_t kind, const uint8_t *p)
{
    const void *v = p;
    return kind == AEG_W_BF16 ? l_load_bf16(v) : kind == AEG_W_F16 ? l_load_f16(v) : l_load(v);
}

/* HYPER_STREAMS streams from `first`, with both row blocks of fn: one chain alone would wait for its own sums. */
LANES_INLINE void add_stream_dots(const uint32_t kind, const aeg_hyper_dots_args *a, uint32_t first, lanes *sum)
{
    enum { N = HYPER_STREAMS, BLOCKS = 2, STEP = 4, LINE = 64 };
    const size_t tile = AEG_ROWS * aeg_scale_bytes(kind);
    const uint8_t *w[N][BLOCKS];
    const float *x[N];
    lanes d[N][BLOCKS];
    AEG_UNROLL for (uint32_t s = 0; s < N; s++) {
        const size_t at = (first + s) * a->stride + a->column;
        x[s] = a->x + at;
        AEG_UNROLL for (uint32_t b = 0; b < BLOCKS; b++) {
            w[s][b] = a->fn->data + b * a->fn->block_stride + at * tile;
            d[s][b] = l_set1(0.0f);
        }
    }
    for (size_t c = 0; c < a->n; c += STEP)
        AEG_UNROLL for (uint32_t s = 0; s < N; s++)
            AEG_UNROLL for (uint32_t b = 0; b < BLOCKS; b++) {
                AEG_UNROLL for (uint32_t i = 0; i < STEP * tile; i += LINE)
                    __builtin_prefetch((const void *)((uintptr_t)w[s][b] + c * tile + HYPER_AHEAD + i), 0, 3);
                AEG_UNROLL for (uint32_t i = 0; i < STEP; i++)
                    d[s][b] = l_fma(load_stored(kind, w[s][b] + (c + i) * tile), l_set1(x[s][c + i]), d[s][b]);
            }
    AEG_UNROLL for (uint32_t s = 0; s < N; s++)
        AEG_UNROLL for (uint32_t b = 0; b < BLOCKS; b++) sum[b] = l_add(sum[b], d[s][b]);
}

LANES_INLINE void all_dots(const uint32_t kind, const aeg_hyper_dots_args *a)
{
    lanes sum[2] = { l_set1(0.0f), l_set1(0.0f) };
    float rest[AEG_ROWS];
    for (uint32_t s = 0; s < AEG_HYPER_STREAMS; s += HYPER_STREAMS)
        add_stream_dots(kind, a, s, sum);
    l_store(a->dots, sum[0]);
    l_store(rest, sum[1]);
    memcpy(a->dots + AEG_ROWS, rest, (AEG_HYPER_GATES - AEG_ROWS) * sizeof(float));
}

static void hyper_dots(const aeg_hyper_dots_args *a)
{
    switch (a->fn->type.kind) {
    case AEG_W_BF16: all_dots(AEG_W_BF16, a); break;
    case AEG_W_F16: all_dots(AEG_W_F16, a); break;
    default: all_dots(AEG_W_F32, a);
    }
}

LANES_INLINE lanes mix_divide(lanes m, lanes t, lanes swapped, lanes eps)
{
    return l_div(m, l_add(l_add(t, swapped), eps));
}

static void hyper_gates(const aeg_hyper_args *a)
{
    enum { S = AEG_HYPER_STREAMS };
    const float r = 1.0f / sqrtf(a->sum_squares / (float)a->width + a->rms_eps);
    for (uint32_t s = 0; s < S; s++) {
        a->out->pre[s] = aeg_sigmoid(fmaf(a->dots[s] * r, a->scale[0], a->base[s]));
        a->out->post[s] = 2.0f * aeg_sigmoid(fmaf(a->dots[S + s] * r, a->scale[1], a->base[S + s]));
    }
    const lanes low = l_set1(-a->clamp), eps = l_set1(a->eps);
    lanes m = l_fma(l_mul(l_load(a->dots + 2 * S), l_set1(r)), l_set1(a->scale[2]), l_load(a->base + 2 * S));
    m = l_neg(l_max(l_neg(l_max(m, low)), low));
    lanes top = l_max(m, l_swap1(m));
    top = l_max(top, l_swap2(top));
    m = l_exp(l_sub(m, top));
    for (uint32_t sweep = 0; sweep < a->iters; sweep++) {
        lanes t = l_add(m, l_swap1(m));
        m = mix_divide(m, t, l_swap2(t), eps);
        t = l_add(m, l_swap4(m));
        m = mix_divide(m, t, l_swap8(t), eps);
    }
    l_store(a->out->mix, m);
}

static void hyper_collapse(float *y, const float *x, size_t stride, const float *pre, uint32_t n)
{
    const lanes p0 = l_set1(pre[0]), p1 = l_set1(pre[1]), p2 = l_set1(pre[2]), p3 = l_set1(pre[3]);
    const float *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const lanes v = l_fma(p1, l_load(x1 + i), l_mul(p0, l_load(x + i)));
        l_store(y + i, l_fma(p3, l_load(x3 + i), l_fma(p2, l_load(x2 + i), v)));
    }
    for (; i < n; i++)
        y[i] = fmaf(pre[3], x3[i], fmaf(pre[2], x2[i], fmaf(pre[1], x1[i], pre[0] * x[i])));
}

static void hyper_update(float *x, size_t stride, const float *y, const aeg_hyper_gates *g, uint32_t n)
{
    enum { S = AEG_HYPER_STREAMS };
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const lanes yi = l_load(y + i);
        lanes old[S];
        for (uint32_t s = 0; s < S; s++)
            old[s] = l_load(x + s * stride + i);
        for (uint32_t d = 0; d < S; d++) {
            lanes v = l_mul(l_set1(g->post[d]), yi);
            for (uint32_t s = 0; s < S; s++)
                v = l_fma(l_set1(g->mix[d * S + s]), old[s], v);
            l_store(x + d * stride + i, v);
        }
    }
    for (; i < n; i++) {
        const float old[S] = { x[i], x[stride + i], x[2 * stride + i], x[3 * stride + i] };
        for (uint32_t d = 0; d < S; d++) {
            float v = g->post[d] * y[i];
            for (uint32_t s = 0; s < S; s++)
                v = fmaf(g->mix[d * S + s], old[s], v);
            x[d * stride + i] = v;
        }
    }
}
