/* SPDX-License-Identifier: Apache-2.0 */
#include "kv/kv.h"

#include <string.h>

aegis_status aeg_kv_init(aeg_kv *out, aeg_arena *arena, const aeg_kv_config *cfg, aegis_error *err)
{
    const size_t row = cfg->head_dim * (cfg->kind == AEG_KV_F16 ? sizeof(uint16_t) : sizeof(float));
    const uint64_t bytes = (uint64_t)cfg->n_layers * cfg->n_kv_heads * cfg->n_ctx * row;
    uint8_t *k = aeg_arena_alloc(arena, bytes, AEG_CACHE_LINE);
    uint8_t *v = aeg_arena_alloc(arena, bytes, AEG_CACHE_LINE);
    AEG_TRY(aeg_arena_check(arena, err));
    *out = (aeg_kv){ .cfg = *cfg, .row_bytes = row, .k = k, .v = v };
    return AEGIS_OK;
}

static size_t row_offset(const aeg_kv *kv, uint32_t layer, uint32_t head, uint32_t pos)
{
    return (((size_t)layer * kv->cfg.n_kv_heads + head) * kv->cfg.n_ctx + pos) * kv->row_bytes;
}

void *aeg_kv_k(const aeg_kv *kv, uint32_t layer, uint32_t head, uint32_t pos)
{
    return kv->k + row_offset(kv, layer, head, pos);
}

void *aeg_kv_v(const aeg_kv *kv, uint32_t layer, uint32_t head, uint32_t pos)
{
    return kv->v + row_offset(kv, layer, head, pos);
}

void aeg_kv_append(aeg_kv *kv, const aeg_kernels *kernels, uint32_t layer, uint32_t head, uint32_t pos,
                   const float *key, const float *value)
{
    const size_t offset = row_offset(kv, layer, head, pos);
    if (kv->cfg.kind == AEG_KV_F16) {
        kernels->store_f16((uint16_t *)(kv->k + offset), key, kv->cfg.head_dim);
        kernels->store_f16((uint16_t *)(kv->v + offset), value, kv->cfg.head_dim);
    } else {
        memcpy(kv->k + offset, key, kv->row_bytes);
        memcpy(kv->v + offset, value, kv->row_bytes);
    }
}
