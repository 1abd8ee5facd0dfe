/* SPDX-License-Identifier: Apache-2.0 */
/* The "hparams" object of a manifest. */
#include <string.h>

#include "format/family.h"
#include "format/hparams_io.h"

static aegis_status get_bool(const json_t *o, const char *key, const char *path, bool *out, aegis_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_boolean(v))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is missing or not a boolean", path, key);
    *out = json_is_true(v);
    return AEGIS_OK;
}

static aegis_status get_i32(const json_t *o, const char *key, const char *path, int32_t *out, aegis_error *err)
{
    const json_t *v = json_object_get(o, key);
    const json_int_t i = json_integer_value(v);
    if (!json_is_integer(v) || i < -1 || i > INT32_MAX)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is missing or not an integer of -1 or more", path, key);
    *out = (int32_t)i;
    return AEGIS_OK;
}

static aegis_status get_u32_array(const json_t *o, const char *key, const char *path, uint32_t *out, size_t max,
                                  size_t *n, aegis_error *err)
{
    const json_t *a;
    AEG_TRY(aeg_json_get_array(o, key, path, &a, err));
    *n = json_array_size(a);
    if (*n > max)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' has %zu values, expected at most %zu", path, key, *n, max);
    for (size_t i = 0; i < *n; i++) {
        const json_t *v = json_array_get(a, i);
        const json_int_t x = json_integer_value(v);
        if (!json_is_integer(v) || x < 0 || x > UINT32_MAX)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s'[%zu] is not an integer of 32 bits", path, key, i);
        out[i] = (uint32_t)x;
    }
    return AEGIS_OK;
}

static aegis_status get_floats(aeg_hparams *h, const json_t *o, const char *path, aegis_error *err)
{
    double eps = 0;
    AEG_TRY(aeg_json_get_f64(o, "rms_eps", path, &eps, err));
    h->rms_eps = (float)eps;
    AEG_TRY(aeg_json_get_f64(o, "rope_theta", path, &h->rope_theta, err));
    AEG_TRY(aeg_json_get_f64(o, "temperature", path, &h->temperature, err));
    AEG_TRY(aeg_json_get_f64(o, "top_p", path, &h->top_p, err));
    AEG_TRY(aeg_json_get_f64(o, "min_p", path, &h->min_p, err));
    AEG_TRY(aeg_json_get_f64(o, "repeat_penalty", path, &h->repeat_penalty, err));
    return aeg_json_get_f64(o, "presence_penalty", path, &h->presence_penalty, err);
}

static aegis_status get_mixers(aeg_hparams *h, const json_t *o, const char *path, aegis_error *err)
{
    const char *text;
    AEG_TRY(aeg_json_get_string(o, "mixers", path, &text, err));
    if (strlen(text) != h->n_layers)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'mixers' has %zu letters, expected %u", path, strlen(text), h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        const char *letter = memchr(aeg_mixer_letters, text[i], sizeof aeg_mixer_letters);
        if (letter == NULL)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: 'mixers' holds '%c', expected 'g', 'a' or 'm'", path, text[i]);
        h->mixer[i] = (uint8_t)(letter - aeg_mixer_letters);
    }
    return AEGIS_OK;
}

static aegis_status get_choice(const json_t *o, const aeg_hparams_field *f, const char *path, uint8_t *out, aegis_error *err)
{
    const char *text;
    AEG_TRY(aeg_json_get_string(o, f->name, path, &text, err));
    for (uint8_t i = 0; f->choices[i] != NULL; i++)
        if (strcmp(f->choices[i], text) == 0) {
            *out = i;
            return AEGIS_OK;
        }
    return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is '%.60s', expected one like '%s'", path, f->name, text, f->choices[0]);
}

static aegis_status get_optional(aeg_hparams *h, const json_t *o, const char *path, aegis_error *err)
{
    for (size_t i = 0; i < aeg_n_hparams_optional; i++) {
        const aeg_hparams_field *f = &aeg_hparams_optional[i];
        char *at = (char *)h + f->offset;
        double value = 0;
        if (json_object_get(o, f->name) == NULL)
            continue;
        switch (f->kind) {
        case AEG_FIELD_U32: AEG_TRY(aeg_json_get_u32(o, f->name, path, 0, UINT32_MAX, (uint32_t *)(void *)at, err)); break;
        case AEG_FIELD_BOOL: AEG_TRY(get_bool(o, f->name, path, (bool *)at, err)); break;
        case AEG_FIELD_CHOICE: AEG_TRY(get_choice(o, f, path, (uint8_t *)at, err)); break;
        case AEG_FIELD_F32:
            AEG_TRY(aeg_json_get_f64(o, f->name, path, &value, err));
            *(float *)(void *)at = (float)value;
        }
    }
    return AEGIS_OK;
}

aegis_status aeg_hparams_parse(aeg_hparams *out, const json_t *o, const char *path, aegis_error *err)
{
    aeg_hparams h;
    const char *family;
    size_t n = 0;
    aeg_hparams_init(&h);
    AEG_TRY(aeg_json_get_string(o, "family", path, &family, err));
    if (!aeg_family_known(family))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: family '%.60s' is not one that this version runs (%s)", path, family,
                        aeg_family_list);
    memcpy(h.family, family, strlen(family) + 1);
    const struct {
        const char *key;
        uint32_t *value;
    } numbers[] = {
        { "vocab_size", &h.vocab_size },   { "hidden_size", &h.hidden_size }, { "n_layers", &h.n_layers },
        { "max_n_ctx", &h.max_n_ctx },     { "n_heads", &h.n_heads },         { "n_kv_heads", &h.n_kv_heads },
        { "head_dim", &h.head_dim },       { "rope_dim", &h.rope_dim },       { "gdn_k_heads", &h.gdn_k_heads },
        { "gdn_v_heads", &h.gdn_v_heads }, { "gdn_k_dim", &h.gdn_k_dim },     { "gdn_v_dim", &h.gdn_v_dim },
        { "conv_kernel", &h.conv_kernel }, { "n_experts", &h.n_experts },     { "top_k", &h.top_k },
        { "expert_width", &h.expert_width }, { "shared_width", &h.shared_width },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        AEG_TRY(aeg_json_get_u32(o, numbers[i].key, path, 0, UINT32_MAX, numbers[i].value, err));
    AEG_TRY(get_bool(o, "attn_gate", path, &h.attn_gate, err));
    AEG_TRY(get_bool(o, "gdn_v_tiled", path, &h.gdn_v_tiled, err));
    AEG_TRY(get_bool(o, "norm_top_k", path, &h.norm_top_k, err));
    AEG_TRY(get_i32(o, "bos_id", path, &h.bos_id, err));
    AEG_TRY(get_i32(o, "top_k_sampling", path, &h.top_k_sampling, err));
    AEG_TRY(get_u32_array(o, "mrope_section", path, h.mrope_section, 3, &n, err));
    if (n != 3)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'mrope_section' has %zu values, expected 3", path, n);
    AEG_TRY(get_u32_array(o, "eos", path, h.eos, AEG_MAX_EOS, &n, err));
    h.n_eos = (uint32_t)n;
    AEG_TRY(get_floats(&h, o, path, err));
    AEG_TRY(get_optional(&h, o, path, err));
    if (h.n_layers < 1 || h.n_layers > AEG_MAX_LAYERS)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: n_layers is %u, expected 1 to %d", path, h.n_layers, AEG_MAX_LAYERS);
    AEG_TRY(get_mixers(&h, o, path, err));
    AEG_TRY(aeg_hparams_check(&h, path, err));
    *out = h;
    return AEGIS_OK;
}
