/* SPDX-License-Identifier: Apache-2.0 */
/* kv/kv.h - keys and values of the attention layers, one row per position.
 *
 * Per attention layer and KV head: K [n_ctx][head_dim] and V [n_ctx][head_dim], rotated keys, plain values, in
 * f32 or f16. Row-major, so that a block of positions is one sequential read. A chunk reads its own
 * keys back from here, in the stored format, so that prefill and decode see the same numbers.
 * Memory: carved once from the kv account; pages that were never written stay untouched.
 * Thread: append by the owner (any split by row); reads any while nobody writes the same row.
 */
#ifndef AEG_KV_KV_H
#define AEG_KV_KV_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "kernels/kernels.h"

typedef struct {
    uint32_t n_layers;    /* attention layers of the model */
    uint32_t n_kv_heads, head_dim, n_ctx;
    aeg_kv_kind kind;
} aeg_kv_config;

typedef struct {
    aeg_kv_config cfg;
    size_t row_bytes;     /* one position of one head */
    uint8_t *k, *v;       /* [n_layers][n_kv_heads][n_ctx][row_bytes] */
} aeg_kv;

/* Bytes of both tables; AEGIS_E_BUDGET if the real arena is too small. */
aegis_status aeg_kv_init(aeg_kv *out, aeg_arena *arena, const aeg_kv_config *cfg, aegis_error *err);

/* Row of one head at one position. */
void *aeg_kv_k(const aeg_kv *kv, uint32_t layer, uint32_t head, uint32_t pos);
void *aeg_kv_v(const aeg_kv *kv, uint32_t layer, uint32_t head, uint32_t pos);

/* Store one head's key and value [head_dim] f32 at `pos` < n_ctx. */
void aeg_kv_append(aeg_kv *kv, const aeg_kernels *kernels, uint32_t layer, uint32_t head, uint32_t pos,
                   const float *key, const float *value);

#endif
