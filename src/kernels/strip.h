/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/strip.h - up to 8 tokens that meet the same expanded weights, and the loop over them; shared by the
 * matmuls of every wide level. */
#ifndef AEG_KERNELS_STRIP_H
#define AEG_KERNELS_STRIP_H

#include <assert.h>

#include "kernels/planes.h"

#define AEG_INLINE static inline __attribute__((always_inline))

/* Full unrolling of loops whose bounds are constants after inlining: the accumulators must become registers. */
#if defined(__clang__)
#define AEG_UNROLL _Pragma("unroll")
#define AEG_UNROLL_KNOWN
#else
#define AEG_UNROLL _Pragma("GCC unroll 16")
#define AEG_UNROLL_KNOWN AEG_UNROLL
#endif
/* AEG_UNROLL_KNOWN: where a body is also compiled for a bound that is not known then, which clang's pragma reports as a failure. */

typedef struct {
    uint32_t n;                    /* tokens, 1..AEG_STRIP                                  */
    const float *f32[AEG_STRIP];   /* the row of x of each token, in the kind that is asked */
    const int8_t *q8[AEG_STRIP];
    const int16_t *q16[AEG_STRIP];
    const float *d[AEG_STRIP], *s[AEG_STRIP];
    const int32_t *sums[AEG_STRIP];
    float *y[AEG_STRIP];           /* the token's row of y                                  */
} aeg_strip;

typedef void (*aeg_strip_fn)(const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0, uint32_t block1);

AEG_INLINE void aeg_strip_begin(aeg_strip *s, const aeg_matmul_args *a, aeg_act_kind act, uint32_t m0)
{
    const aeg_acts *x = a->x;
    s->n = a->n - m0 < AEG_STRIP ? a->n - m0 : AEG_STRIP;
    for (uint32_t m = 0; m < s->n; m++) {
        const size_t row = a->rows ? a->rows[m0 + m] : m0 + m;
        s->y[m] = a->y + (m0 + m) * a->y_stride;
        if (act == AEG_ACT_F32) {
            s->f32[m] = x->f32 + row * x->n_cols;
            continue;
        }
        s->d[m] = x->d + row * (x->n_cols / x->block);
        s->s[m] = x->s + row * (x->n_cols / x->block);
        s->sums[m] = x->sums ? x->sums + row * (x->n_cols / AEG_SUM_COLS) : NULL;
        if (act == AEG_ACT_I8)
            s->q8[m] = x->q8 + row * x->n_cols;
        else
            s->q16[m] = x->q16 + row * x->n_cols;
    }
}

/* Calls fn for every strip. With several strips a few row blocks at a time stay in the second-level cache while
 * all tokens pass, and a strip's activations stay in the first level while those blocks pass. */
AEG_INLINE void aeg_for_strips(const aeg_matmul_args *a, aeg_act_kind act, uint32_t block0, uint32_t block1,
                               aeg_strip_fn fn)
{
    enum { BLOCKS = 8 };
    aeg_strip s;
    /* else quantised for another matrix */
    assert(act == AEG_ACT_F32 || (a->w->type.kind == AEG_W_AFFINE ? a->x->block <= a->w->type.group : a->x->block == 32));
    assert(act == AEG_ACT_F32 || !aeg_weight_reads_sums(a->w->type) || a->x->sums != NULL);
    while (block0 < block1) {
        const uint32_t next = a->n > AEG_STRIP && block1 - block0 > BLOCKS ? block0 + BLOCKS : block1;
        for (uint32_t m0 = 0; m0 < a->n; m0 += AEG_STRIP) {
            aeg_strip_begin(&s, a, act, m0);
            fn(a, &s, block0, next);
        }
        block0 = next;
    }
}

AEG_INLINE uint32_t aeg_rows_of_block(const aeg_weights *w, uint32_t block)
{
    const uint32_t left = w->n_rows - block * AEG_ROWS;
    return left < AEG_ROWS ? left : AEG_ROWS;
}

/* One token reads every weight once, so memory decides. A core reads several streams faster than one (a plain loop on two
 * cores of an EPYC 9005: one stream 52, two 56, four 60 GB/s; eight lose), if they are not too short: a range of row blocks
 * is walked as so many runs side by side, a tile of each in turn. No sum changes its order. */
enum { AEG_LANES = 4 };

/* Row blocks block, block + step, ... block + (AEG_LANES - 1) * step for the strip's one token. */
typedef void (*aeg_lanes_fn)(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block, uint32_t step);

/* Returns the first row block that is left: fewer than AEG_LANES are. */
AEG_INLINE uint32_t aeg_run_lanes(aeg_lanes_fn fn, const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0,
                                  uint32_t block1)
{
    const uint32_t step = (block1 - block0) / AEG_LANES;
    for (uint32_t i = 0; i < step; i++)
        fn(a, x, block0 + i, step);
    return block0 + AEG_LANES * step;
}

/* How far ahead of a single stream weights are fetched, and of each of AEG_LANES. */
enum { AEG_AHEAD = 4096, AEG_AHEAD_LANES = 1536 };

/* Fetch the n_bytes that are `ahead` of p: a loop that also computes is too slow for the hardware to run ahead across
 * pages, and it has to start anew at every expert. With 8 tokens from memory, int8 on AVX-512: 120 -> 190 GMAC/s at
 * 4 bits, 83 -> 139 at 8 (EPYC 9005, one core); with one token long matrices gain nothing, the experts' short ones 2 %
 * (gate, up) to 20 % (down). A hint only: addresses past the end of the weights are harmless. */
AEG_INLINE void aeg_prefetch(const uint8_t *p, uint32_t n_bytes, const uint32_t ahead)
{
    enum { LINE = 64 };
    AEG_UNROLL for (uint32_t i = 0; i < n_bytes; i += LINE)
        __builtin_prefetch((const void *)((uintptr_t)p + ahead + i), 0, 3);
}

AEG_INLINE int32_t aeg_load32(const void *p)
{
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

#endif
