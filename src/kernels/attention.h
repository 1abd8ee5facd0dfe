/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/attention.h - one block of positions for the queries that share a KV head: arguments and formulas.
 *
 * A block is at most AEG_ATTN_BLOCK positions, all inside one block of absolute positions. It is worked on for
 * n_tokens consecutive tokens at once, so that keys and values are fetched (and codes expanded) once for all of
 * them; token t sees min(n_pos + t, AEG_ATTN_BLOCK) positions. Every (token, head) is computed on its own: how
 * many of them share a call never shows in the bits.
 *
 * f32 and f16 rows, per query h and position p:
 *   score = scale * dot(q_h, k_p) (16 partial sums); m = max score; w_p = exp(score - m); l = sum of w (16 partial
 *   sums over p); acc[d] = fmaf(w_p, v_p[d], acc[d]), p ascending.
 * Rows of codes (q8, t4, t3: kernels/kv_codes.h):
 *   score = (float)dot(query codes, key codes) * (k_scale_p * (q_scale_h * scale)), the dot in integers; m, w, l as
 *   above; x_p = w_p * v_scale_p; s = max x / 32767; W_p = round(x_p * (1/s)) (the rule of quantize_i16);
 *   acc[d] = (float)(sum of W_p * code_p[d]) * s, the sum in integers: 256 * 32767 * 127 < 2^31.
 * Latent rows of codes (attn_q8_latent): a row is value_dim codes with k_scale (which is v_scale too), then `rotary` codes
 * with k_rotary_scale; all of it in the interleaving of values, and turned into that of keys on the way:
 *   score = fmaf((float)dot of the rotary codes, k_rotary_scale_p * (q_rotary_scale_h * scale),
 *                (float)dot of the others * (k_scale_p * (q_scale_h * scale)))
 *   and the rest as above.
 * The sums are exact, so their order is free. Rounding a weight to 1/32767 of the block's largest is 300 times less
 * than what a 4-bit code loses.
 */
#ifndef AEG_KERNELS_ATTENTION_H
#define AEG_KERNELS_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

enum { AEG_ATTN_BLOCK = 256, AEG_ATTN_MAX_DIM = 1024 };

typedef enum { AEG_KV_F32, AEG_KV_F16, AEG_KV_Q8, AEG_KV_T4, AEG_KV_T3 } aeg_kv_kind;

static inline int aeg_kv_is_codes(aeg_kv_kind kind) { return kind >= AEG_KV_Q8; }

typedef struct {
    uint32_t n_tokens, n_rep;        /* queries: n_tokens * n_rep                                        */
    uint32_t n_pos;                  /* positions that the first token sees, >= 1                        */
    uint32_t head_dim;               /* multiple of 16, <= AEG_ATTN_MAX_DIM; codes: a power of two >= 64 */
    uint32_t value_dim;              /* f32, f16: of a value if not head_dim (0: it is); multiple of 16  */
    const float *q;                  /* f32, f16: rows q_stride apart, tokens q_token floats apart       */
    size_t q_stride, q_token;
    const int8_t *q_codes;           /* codes: rows head_dim apart, tokens q_token bytes apart, in the   */
    const float *q_scale;            /* order of aeg_kv_place; scales q_scale_token apart                */
    size_t q_scale_token;
    const void *k, *v;               /* first position of the block                                      */
    size_t kv_stride;                /* f32, f16: bytes between positions                                */
    const float *k_scale, *v_scale;  /* codes: one per position, readable to a multiple of 16            */
    uint32_t rotary;                 /* latent codes: head_dim = value_dim + rotary, multiples of 64     */
    const float *q_rotary_scale, *k_rotary_scale; /* latent codes: like q_scale and k_scale              */
    float scale;
    float *out_m, *out_l, *acc;      /* [n_tokens][n_rep], acc with [value_dim]                          */
    void *scratch;                   /* aeg_attn_scratch_bytes, 64-byte aligned                          */
} aeg_attn_args;

static inline uint32_t aeg_attn_value_dim(const aeg_attn_args *a) { return a->value_dim != 0 ? a->value_dim : a->head_dim; }

enum { AEG_ATTN_VALUE_TILE = 64 };   /* positions whose codes are expanded at a time */

/* Bytes of scratch that a call with these shapes may use. */
static inline size_t aeg_attn_scratch_bytes(aeg_kv_kind kind, uint32_t n_tokens, uint32_t n_rep, uint32_t head_dim)
{
    const size_t scores = (size_t)n_rep * AEG_ATTN_BLOCK * sizeof(float), rows = (size_t)n_tokens * n_rep;
    if (!aeg_kv_is_codes(kind))
        return scores; /* one token after the other */
    return rows * AEG_ATTN_BLOCK * (sizeof(float) + sizeof(int16_t)) /* scores, weights */
           + rows * (head_dim + 1) * sizeof(int32_t)                 /* sums, steps     */
           + rows * 24                                               /* queries         */
           + (size_t)AEG_ATTN_VALUE_TILE * head_dim + 64;            /* expanded codes  */
}

#endif
