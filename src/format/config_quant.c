/* SPDX-License-Identifier: Apache-2.0 */
/* What config.json says of quantisation: MLX's, by module; or FP8 in blocks, where the tensors tell what has it. */
#include "format/config_read.h"

#include <stdlib.h>
#include <string.h>

static const char path[] = AEG_CONFIG_PATH;

static aegis_status get_quant(const json_t *o, const char *module, uint32_t *bits, uint32_t *group, aegis_error *err)
{
    *bits = 4;
    *group = 64;
    AEG_TRY(aeg_config_only(o, "mode", "affine", err));
    AEG_TRY(aeg_config_u32(o, "bits", 64, bits, err));
    AEG_TRY(aeg_config_u32(o, "group_size", 1 << 16, group, err));
    if (*bits < 2 || *bits > 8 || *bits == 7 || (*group != 32 && *group != 64 && *group != 128))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %.200s: %u bits in groups of %u, expected 2, 3, 4, 5, 6 or 8 bits in "
                        "groups of 32, 64 or 128", path, module, *bits, *group);
    return AEGIS_OK;
}

static int by_module(const void *a, const void *b)
{
    return strcmp(((const aeg_config_override *)a)->module, ((const aeg_config_override *)b)->module);
}

static aegis_status get_overrides(aeg_config *c, json_t *q, aegis_error *err)
{
    const char *key;
    json_t *v;
    c->overrides = aeg_calloc(c->memory, json_object_size(q), sizeof *c->overrides);
    if (c->overrides == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for %zu quantisation entries", path, json_object_size(q));
    json_object_foreach(q, key, v) {
        if (!json_is_object(v) && !json_is_boolean(v))
            continue;
        aeg_config_override *o = &c->overrides[c->n_overrides];
        o->module = aeg_strdup(c->memory, key);
        if (o->module == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for a module name", path);
        c->n_overrides++;
        o->quantised = !json_is_false(v);
        o->bits = c->bits;
        o->group = c->group;
        if (json_is_object(v))
            AEG_TRY(get_quant(v, key, &o->bits, &o->group, err));
    }
    if (c->n_overrides > 0)
        qsort(c->overrides, c->n_overrides, sizeof *c->overrides, by_module);
    return AEGIS_OK;
}

static aegis_status get_fp8(aeg_config *c, const json_t *q, aegis_error *err)
{
    const json_t *size = json_object_get(q, "weight_block_size");
    AEG_TRY(aeg_config_only(q, "fmt", "e4m3", err));
    AEG_TRY(aeg_config_only(q, "activation_scheme", "dynamic", err));
    if (json_array_size(size) != 2)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'weight_block_size' is missing or no list of two numbers, expected [%d, %d]", path,
                        AEG_F8_BLOCK, AEG_F8_BLOCK);
    for (size_t i = 0; i < 2; i++)
        if (json_integer_value(json_array_get(size, i)) != AEG_F8_BLOCK)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: number %zu of 'weight_block_size' is %lld, expected [%d, %d]", path, i,
                            (long long)json_integer_value(json_array_get(size, i)), AEG_F8_BLOCK, AEG_F8_BLOCK);
    c->fp8 = true;
    return AEGIS_OK;
}

aegis_status aeg_config_quantisation(aeg_config *c, const json_t *root, aegis_error *err)
{
    json_t *q = json_object_get(root, "quantization");
    if (!json_is_object(q))
        q = json_object_get(root, "quantization_config");
    if (!json_is_object(q))
        return AEGIS_OK;
    const json_t *method = json_object_get(q, "quant_method");
    if (json_is_string(method) && strcmp(json_string_value(method), "fp8") == 0)
        return get_fp8(c, q, err);
    if (method != NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: quant_method '%.60s' is not supported; expected MLX affine, fp8 or no "
                        "quantisation", path, json_is_string(method) ? json_string_value(method) : "?");
    c->quantised = true;
    AEG_TRY(get_quant(q, "quantization", &c->bits, &c->group, err));
    return get_overrides(c, q, err);
}

bool aeg_config_quant(const aeg_config *config, const char *module, uint32_t *bits, uint32_t *group)
{
    *bits = config->bits;
    *group = config->group;
    if (!config->quantised || config->n_overrides == 0)
        return config->quantised;
    size_t low = 0, high = config->n_overrides;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        const int order = strcmp(config->overrides[mid].module, module);
        if (order == 0) {
            *bits = config->overrides[mid].bits;
            *group = config->overrides[mid].group;
            return config->overrides[mid].quantised;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return true;
}
