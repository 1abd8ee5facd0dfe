/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/attend.h - softmax attention of a chunk of queries over the KV cache.
 *
 * Positions are walked in fixed blocks of AEG_ATTN_BLOCK absolute positions that are merged in order, so the bits depend
 * neither on the chunk nor on the threads. A block is fetched (and its codes expanded) once for all query heads of
 * its KV head, and in prefill for some tokens; decode gives blocks to threads, so that one token uses every core at long
 * contexts, and groups of heads too while blocks are few; some blocks at a time, so that its partial results do not grow with
 * the context. The rows of the chunk itself must be in the cache.
 */
#ifndef AEG_MODEL_BLOCKS_ATTEND_H
#define AEG_MODEL_BLOCKS_ATTEND_H

#include "kv/kv.h"
#include "model/blocks/linear.h"

/* Partial results of queries in flight. */
typedef struct {
    uint32_t tile_rows;    /* queries of a prefill tile: tokens * n_rep */
    uint32_t round_blocks; /* blocks of positions that a decode step has in flight */
    float *part_m, *part_l, *part_acc;
    float *run_m, *run_l;  /* while blocks are merged: prefill [threads][tile_rows], decode [n_heads] */
    uint8_t *scratch;      /* [threads][scratch_bytes] of the kernels */
    size_t scratch_bytes;
} aeg_attend_scratch;

/* `kv`: the cache's shapes and kind. */
void aeg_attend_scratch_init(aeg_attend_scratch *s, aeg_arena *arena, const aeg_kv_config *kv, uint32_t n_heads,
                             uint32_t chunk, uint32_t n_threads);

typedef struct {
    const aeg_compute *c;
    const aeg_kv *kv;
    uint32_t layer;                 /* of the cache */
    uint32_t n_heads;               /* query heads: a multiple of the cache's KV heads, neighbours share one */
    float scale;
    uint32_t n, pos0;               /* tokens at positions pos0.. */
    const float *q;                 /* f32, f16: heads q_stride, tokens q_token floats apart */
    size_t q_stride, q_token;
    const int8_t *q_codes;          /* codes: [n][n_heads][aeg_kv_code_dim], */
    const float *q_scale;           /* [n][n_heads]                          */
    const float *q_rotary_scale;    /* latent codes: [n][n_heads]            */
    float *o;                       /* out [n][n_heads][value_dim of the cache] */
    /* Called once for each result when it is complete, by any thread; NULL: not. */
    void (*finish)(void *ctx, uint32_t token, uint32_t head, float *o, uint32_t thread);
    void *finish_ctx;
    aeg_attend_scratch *s;
} aeg_attend_args;

void aeg_attend(const aeg_attend_args *args);

#endif
