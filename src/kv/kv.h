/* SPDX-License-Identifier: Apache-2.0 */
/* kv/kv.h - keys and values of the attention layers, one row per position.
 *
 * Per attention layer and KV head: K and V rows of n_ctx positions, keys after their rotary embedding, in one of five
 * types (ADR 0006). f32 and f16 lie row by row; q8, t4 and t3 are rotated, hold one f32 scale per row beside the
 * codes, and are interleaved as kernels/kv_codes.h says. Either way a block of positions is one sequential read. A
 * chunk reads its own keys back from here, in the stored type, so that prefill and decode see the same numbers.
 * Latent attention (MLA) has one row per layer and position for all heads: the normalised latent, then the rotated key, as
 * f32, f16 or q8. As q8 only the latent is rotated by the cache; each part has a scale of its own and fills whole 64 codes,
 * and rows lie as values do, because they are values and keys in one.
 * Memory: carved once from the kv account; pages that were never written stay untouched.
 * Thread: append by the owner (any split by row); reads any while nobody writes the same row.
 */
#ifndef AEG_KV_KV_H
#define AEG_KV_KV_H

#include "base/arena.h"
#include "kernels/kernels.h"
#include "kernels/kv_codes.h"

typedef struct {
    uint32_t n_layers;    /* attention layers of the model */
    uint32_t n_kv_heads, head_dim, n_ctx;
    uint32_t latent;      /* MLA: a row is key and value in one, the value its first `latent` numbers; else 0 */
    aeg_kv_kind kind;
} aeg_kv_config;

static inline uint32_t aeg_kv_value_dim(const aeg_kv_config *cfg) { return cfg->latent != 0 ? cfg->latent : cfg->head_dim; }

/* Codes of one query or key: a head, or a latent row whose parts are rounded up to 64. */
static inline uint32_t aeg_kv_code_dim(const aeg_kv_config *cfg)
{
    return cfg->latent != 0 ? (cfg->latent + 63) / 64 * 64 + (cfg->head_dim - cfg->latent + 63) / 64 * 64 : cfg->head_dim;
}

typedef struct {
    aeg_kv_config cfg;
    uint32_t n_rows;      /* per head: n_ctx, with codes rounded up to whole groups of 16 */
    uint32_t row_bytes;   /* one position of one head, its scale apart */
    uint8_t *k, *v;       /* [n_layers][n_kv_heads][n_rows][row_bytes]; latent: v is k */
    float *k_scale, *v_scale; /* [n_layers][n_kv_heads][n_rows]; NULL: f32, f16; latent: v_scale is k_scale */
    float *rotary_scale;  /* the same for the rotary part of latent codes, else NULL */
    float signs[AEG_KV_MAX_CODED_DIM]; /* of the rotation */
} aeg_kv;

/* "f32", "f16", "q8", "t4", "t3" */
const char *aeg_kv_name(aeg_kv_kind kind);

/* What attention reads of one key or value: its row and its scale. */
static inline uint32_t aeg_kv_read_bytes(const aeg_kv *kv)
{
    return kv->row_bytes + (aeg_kv_is_codes(kv->cfg.kind) ? (kv->cfg.latent != 0 ? 2u : 1u) * (uint32_t)sizeof(float) : 0);
}

/* Bytes of both tables; AEGIS_E_BUDGET if the real arena is too small, AEGIS_E_USAGE if head_dim (or the latent) cannot be
 * coded: a power of two from 64 to 512 can, latent rows only as q8. */
aegis_status aeg_kv_init(aeg_kv *out, aeg_arena *arena, const aeg_kv_config *cfg, aegis_error *err);

/* Store one head's key and value [head_dim] f32 at `pos` < n_ctx. Both are overwritten: codes are made in place. Latent:
 * `value` is not looked at. */
void aeg_kv_append(aeg_kv *kv, const aeg_kernels *kernels, uint32_t layer, uint32_t head, uint32_t pos, float *key,
                   float *value);

/* Codes only: one query head [head_dim], rotated in place, to int8 codes in the order of the keys' and their scale. */
void aeg_kv_query(const aeg_kv *kv, const aeg_kernels *kernels, int8_t *codes, float *scale, float *q);

/* Latent codes: the query [head_dim] of one head to aeg_kv_code_dim codes and the scales of both parts; q's latent part is
 * rotated in place. */
void aeg_kv_query_latent(const aeg_kv *kv, const aeg_kernels *kernels, int8_t *codes, float *scale, float *rotary_scale,
                         float *q);

/* The fields of `args` that say where keys and values lie, from position `first` on (a multiple of AEG_ATTN_BLOCK),
 * and the kernel that reads them. */
void aeg_kv_block(const aeg_kv *kv, uint32_t layer, uint32_t head, uint32_t first, aeg_attn_args *args);
void aeg_kv_attend(const aeg_kv *kv, const aeg_kernels *kernels, const aeg_attn_args *args);

/* A sum over values [aeg_kv_value_dim], in place: rotated back if the rows were rotated. */
void aeg_kv_output(const aeg_kv *kv, const aeg_kernels *kernels, float *o);

#endif
