/* SPDX-License-Identifier: Apache-2.0 */
#include "format/hparams_io.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

typedef struct {
    const char *name;
    uint32_t value, min, max;
} limit;

static aegis_status check_limits(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const limit limits[] = {
        { "vocab_size", h->vocab_size, 1, AEG_MAX_DIM },
        { "hidden_size", h->hidden_size, 1, AEG_MAX_DIM },
        { "n_layers", h->n_layers, 1, AEG_MAX_LAYERS },
        { "max_n_ctx", h->max_n_ctx, 1, AEG_MAX_CONTEXT },
        { "n_heads", h->n_heads, 1, AEG_MAX_HEADS },
        { "n_kv_heads", h->n_kv_heads, 1, AEG_MAX_HEADS },
        { "head_dim", h->head_dim, 2, AEG_MAX_HEAD_DIM },
        { "rope_dim", h->rope_dim, 0, h->head_dim },
        { "gdn_k_heads", h->gdn_k_heads, 1, AEG_MAX_HEADS },
        { "gdn_v_heads", h->gdn_v_heads, 1, AEG_MAX_HEADS },
        { "gdn_k_dim", h->gdn_k_dim, 1, AEG_MAX_HEAD_DIM },
        { "gdn_v_dim", h->gdn_v_dim, 1, AEG_MAX_HEAD_DIM },
        { "conv_kernel", h->conv_kernel, 4, 4 },
        { "n_experts", h->n_experts, 1, AEG_MAX_EXPERTS },
        { "top_k", h->top_k, 1, h->n_experts < AEG_MAX_TOP_K ? h->n_experts : AEG_MAX_TOP_K },
        { "expert_width", h->expert_width, 1, AEG_MAX_DIM },
        { "shared_width", h->shared_width, 0, AEG_MAX_DIM },
        { "n_eos", h->n_eos, 0, AEG_MAX_EOS },
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].value < limits[i].min || limits[i].value > limits[i].max)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: %s is %u, expected %u to %u", path, limits[i].name,
                            limits[i].value, limits[i].min, limits[i].max);
    return AEGIS_OK;
}

static aegis_status check_relations(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const uint32_t *m = h->mrope_section;
    if (h->n_heads % h->n_kv_heads != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u heads over %u KV heads, expected a multiple", path, h->n_heads,
                        h->n_kv_heads);
    if (h->gdn_v_heads % h->gdn_k_heads != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u value heads over %u key heads, expected a multiple", path,
                        h->gdn_v_heads, h->gdn_k_heads);
    if (h->rope_dim % 2 != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u dimensions rotate, expected an even number", path, h->rope_dim);
    const uint64_t sections = (uint64_t)m[0] + m[1] + m[2];
    if (sections != 0 && sections != h->rope_dim / 2)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: mrope_section adds up to %llu, expected %u", path,
                        (unsigned long long)sections, h->rope_dim / 2);
    if ((uint64_t)h->n_heads * h->head_dim * 2 > AEG_MAX_DIM ||
        2 * (uint64_t)h->gdn_k_heads * h->gdn_k_dim + (uint64_t)h->gdn_v_heads * h->gdn_v_dim > AEG_MAX_DIM)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: the heads together are wider than %d", path, AEG_MAX_DIM);
    if (!(h->rms_eps > 0) || h->rms_eps > 1)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: rms_eps is %g, expected above 0, at most 1", path, (double)h->rms_eps);
    if (!(h->rope_theta >= 1) || h->rope_theta > 1e15)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: rope_theta is %g, expected 1 to 1e15", path, h->rope_theta);
    return AEGIS_OK;
}

/* A negative number means "not given". */
static aegis_status check_sampling(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const struct {
        const char *name;
        double value, max;
    } limits[] = {
        { "temperature", h->temperature, 100 },       { "top_p", h->top_p, 1 },
        { "min_p", h->min_p, 1 },                     { "repeat_penalty", h->repeat_penalty, 100 },
        { "presence_penalty", h->presence_penalty, 100 },
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (!(limits[i].value <= limits[i].max))
            return aeg_fail(err, AEGIS_E_MODEL, "%s: %s is %g, expected at most %g", path, limits[i].name,
                            limits[i].value, limits[i].max);
    if (h->bos_id < -1 || h->bos_id >= (int64_t)h->vocab_size)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: bos id %d, expected below %u", path, h->bos_id, h->vocab_size);
    for (uint32_t i = 0; i < h->n_eos; i++)
        if (h->eos[i] >= h->vocab_size)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: eos id %u, expected below %u", path, h->eos[i], h->vocab_size);
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (h->mixer[i] > AEG_MIXER_ATTENTION)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: layer %u has mixer %u", path, i, h->mixer[i]);
    return AEGIS_OK;
}

aegis_status aeg_hparams_check(const aeg_hparams *h, const char *path, aegis_error *err)
{
    AEG_TRY(check_limits(h, path, err));
    AEG_TRY(check_relations(h, path, err));
    return check_sampling(h, path, err);
}

/* --- the manifest's "hparams" object ---------------------------------------------------------------- */

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
        if (text[i] != 'g' && text[i] != 'a')
            return aeg_fail(err, AEGIS_E_MODEL, "%s: 'mixers' holds '%c', expected 'g' or 'a'", path, text[i]);
        h->mixer[i] = text[i] == 'a' ? AEG_MIXER_ATTENTION : AEG_MIXER_GDN;
    }
    return AEGIS_OK;
}

aegis_status aeg_hparams_parse(aeg_hparams *out, const json_t *o, const char *path, aegis_error *err)
{
    aeg_hparams h = { 0 };
    const char *family;
    size_t n = 0;
    AEG_TRY(aeg_json_get_string(o, "family", path, &family, err));
    if (strcmp(family, "qwen35moe") != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: family '%.60s' is not one that this version runs (qwen35moe)", path,
                        family);
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
    AEG_TRY(check_limits(&h, path, err));
    AEG_TRY(get_mixers(&h, o, path, err));
    AEG_TRY(aeg_hparams_check(&h, path, err));
    *out = h;
    return AEGIS_OK;
}
