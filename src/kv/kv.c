/* SPDX-License-Identifier: Apache-2.0 */
#include "kv/kv.h"

#include <string.h>

#include "base/checked.h"
#include "kv/codes.h"

const char *aeg_kv_name(aeg_kv_kind kind)
{
    static const char *const names[] = { [AEG_KV_F32] = "f32", [AEG_KV_F16] = "f16", [AEG_KV_Q8] = "q8",
                                         [AEG_KV_T4] = "t4", [AEG_KV_T3] = "t3" };
    return names[kind];
}

static aegis_status check_dim(const aeg_kv_config *cfg, aegis_error *err)
{
    const uint32_t d = aeg_kv_value_dim(cfg);
    if (!aeg_kv_is_codes(cfg->kind) || cfg->n_layers == 0)
        return AEGIS_OK;
    if (cfg->latent != 0 && cfg->kind != AEG_KV_Q8)
        return aeg_fail(err, AEGIS_E_USAGE, "keys and values as %s: this model has latent attention (MLA), whose rows of %u "
                        "numbers are kept as f32, f16 or q8", aeg_kv_name(cfg->kind), cfg->head_dim);
    if ((d & (d - 1)) == 0 && d >= AEG_KV_MIN_CODED_DIM && d <= AEG_KV_MAX_CODED_DIM)
        return AEGIS_OK;
    return aeg_fail(err, AEGIS_E_USAGE, "keys and values as %s: this model's %s %u elements, expected a power of two "
                    "from %d to %d; f32 and f16 take any", aeg_kv_name(cfg->kind),
                    cfg->latent != 0 ? "latent rows have" : "heads have", d, AEG_KV_MIN_CODED_DIM, AEG_KV_MAX_CODED_DIM);
}

aegis_status aeg_kv_init(aeg_kv *out, aeg_arena *arena, const aeg_kv_config *cfg, aegis_error *err)
{
    AEG_TRY(check_dim(cfg, err));
    const bool coded = aeg_kv_is_codes(cfg->kind) && cfg->n_layers > 0;
    aeg_kv kv = { .cfg = *cfg, .row_bytes = aeg_kv_row_bytes(cfg->kind, coded ? aeg_kv_code_dim(cfg) : cfg->head_dim), .n_rows = cfg->n_ctx };
    if (coded)
        kv.n_rows = (cfg->n_ctx + AEG_KV_KEY_GROUP - 1) / AEG_KV_KEY_GROUP * AEG_KV_KEY_GROUP;
    const uint64_t rows = (uint64_t)cfg->n_layers * cfg->n_kv_heads * kv.n_rows;
    kv.k = aeg_arena_alloc(arena, rows * kv.row_bytes, AEG_CACHE_LINE);
    kv.v = cfg->latent != 0 ? kv.k : aeg_arena_alloc(arena, rows * kv.row_bytes, AEG_CACHE_LINE);
    if (coded) {
        kv.k_scale = aeg_arena_alloc(arena, rows * sizeof(float), AEG_CACHE_LINE);
        float **second = cfg->latent != 0 ? &kv.rotary_scale : &kv.v_scale;
        *second = aeg_arena_alloc(arena, rows * sizeof(float), AEG_CACHE_LINE);
        kv.v_scale = cfg->latent != 0 ? kv.k_scale : kv.v_scale;
        aeg_kv_signs(kv.signs, aeg_kv_value_dim(cfg));
    }
    AEG_TRY(aeg_arena_check(arena, err));
    *out = kv;
    return AEGIS_OK;
}

/* Rows before position `pos` of this head. */
static size_t row_index(const aeg_kv *kv, uint32_t layer, uint32_t head, uint32_t pos)
{
    return ((size_t)layer * kv->cfg.n_kv_heads + head) * kv->n_rows + pos;
}

static void append_codes(aeg_kv *kv, const aeg_kernels *kernels, size_t head_row, uint32_t pos, float *key, float *value)
{
    const uint32_t d = kv->cfg.head_dim, n = kv->row_bytes;
    uint8_t row[AEG_KV_MAX_CODED_DIM], *k = kv->k + head_row * n, *v = kv->v + head_row * n;
    aeg_kv_rotate(kernels, kv->signs, key, d);
    kv->k_scale[head_row + pos] = aeg_kv_encode(kernels, kv->cfg.kind, row, key, d);
    for (uint32_t b = 0; b < n; b += 4)
        memcpy(k + aeg_kv_key_at(n, pos, b), row + b, 4);
    aeg_kv_rotate(kernels, kv->signs, value, d);
    kv->v_scale[head_row + pos] = aeg_kv_encode(kernels, kv->cfg.kind, row, value, d);
    for (uint32_t b = 0; b < n; b++)
        v[aeg_kv_value_at(n, pos, b)] = row[b];
}

enum { MAX_ROTARY = 512 };

/* Both parts of a latent row to codes; what fills them up to 64 is 0. */
static void encode_latent(const aeg_kv *kv, const aeg_kernels *kernels, int8_t *row, float *scale, float *rotary_scale, float *x)
{
    const uint32_t latent = kv->cfg.latent, rotary = kv->cfg.head_dim - latent;
    memset(row, 0, kv->row_bytes);
    aeg_kv_rotate(kernels, kv->signs, x, latent);
    *scale = aeg_kv_encode(kernels, AEG_KV_Q8, (uint8_t *)row, x, latent);
    *rotary_scale = aeg_kv_encode(kernels, AEG_KV_Q8, (uint8_t *)row + latent, x + latent, rotary);
}

static void append_latent(aeg_kv *kv, const aeg_kernels *kernels, size_t first_row, uint32_t pos, float *key)
{
    const uint32_t n = kv->row_bytes;
    int8_t row[AEG_KV_MAX_CODED_DIM + MAX_ROTARY];
    uint8_t *k = kv->k + first_row * n;
    encode_latent(kv, kernels, row, &kv->k_scale[first_row + pos], &kv->rotary_scale[first_row + pos], key);
    for (uint32_t b = 0; b < n; b++)
        k[aeg_kv_value_at(n, pos, b)] = (uint8_t)row[b];
}

void aeg_kv_query_latent(const aeg_kv *kv, const aeg_kernels *kernels, int8_t *codes, float *scale, float *rotary_scale,
                         float *q)
{
    encode_latent(kv, kernels, codes, scale, rotary_scale, q);
}

void aeg_kv_append(aeg_kv *kv, const aeg_kernels *kernels, uint32_t layer, uint32_t head, uint32_t pos, float *key,
                   float *value)
{
    const size_t offset = row_index(kv, layer, head, pos) * kv->row_bytes;
    if (aeg_kv_is_codes(kv->cfg.kind) && kv->cfg.latent != 0) {
        append_latent(kv, kernels, row_index(kv, layer, head, 0), pos, key);
    } else if (aeg_kv_is_codes(kv->cfg.kind)) {
        append_codes(kv, kernels, row_index(kv, layer, head, 0), pos, key, value);
    } else if (kv->cfg.kind == AEG_KV_F16) {
        kernels->store_f16((uint16_t *)(void *)(kv->k + offset), key, kv->cfg.head_dim);
        if (kv->cfg.latent == 0)
            kernels->store_f16((uint16_t *)(void *)(kv->v + offset), value, kv->cfg.head_dim);
    } else {
        memcpy(kv->k + offset, key, kv->row_bytes);
        if (kv->cfg.latent == 0)
            memcpy(kv->v + offset, value, kv->row_bytes);
    }
}

void aeg_kv_query(const aeg_kv *kv, const aeg_kernels *kernels, int8_t *codes, float *scale, float *q)
{
    aeg_kv_rotate(kernels, kv->signs, q, kv->cfg.head_dim);
    *scale = aeg_kv_encode_query(kv->cfg.kind, codes, q, kv->cfg.head_dim);
}

void aeg_kv_block(const aeg_kv *kv, uint32_t layer, uint32_t head, uint32_t first, aeg_attn_args *args)
{
    const size_t row = row_index(kv, layer, head, first);
    args->k = kv->k + row * kv->row_bytes;
    args->v = kv->v + row * kv->row_bytes;
    args->kv_stride = kv->row_bytes;
    if (kv->k_scale != NULL) {
        args->k_scale = kv->k_scale + row;
        args->v_scale = kv->v_scale + row;
    }
    if (kv->rotary_scale != NULL)
        args->k_rotary_scale = kv->rotary_scale + row;
}

void aeg_kv_attend(const aeg_kv *kv, const aeg_kernels *kernels, const aeg_attn_args *args)
{
    switch (kv->cfg.kind) {
    case AEG_KV_F32: kernels->attn_f32(args); break;
    case AEG_KV_F16: kernels->attn_f16(args); break;
    case AEG_KV_Q8: (kv->cfg.latent != 0 ? kernels->attn_q8_latent : kernels->attn_q8)(args); break;
    case AEG_KV_T4: kernels->attn_t4(args); break;
    case AEG_KV_T3: kernels->attn_t3(args); break;
    }
}

void aeg_kv_output(const aeg_kv *kv, const aeg_kernels *kernels, float *o)
{
    if (aeg_kv_is_codes(kv->cfg.kind))
        aeg_kv_rotate_back(kernels, kv->signs, o, aeg_kv_value_dim(&kv->cfg));
}
