/* SPDX-License-Identifier: Apache-2.0 */
#include "format/config_read.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"

enum { MAX_CONFIG_BYTES = 16 << 20 };
static const char path[] = AEG_CONFIG_PATH;

aegis_status aeg_config_u32(const json_t *o, const char *key, uint32_t max, uint32_t *out, aegis_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL || json_is_null(v))
        return AEGIS_OK;
    return aeg_json_get_u32(o, key, path, 0, max, out, err);
}

aegis_status aeg_config_f64(const json_t *o, const char *key, const char *file, double *out, aegis_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL || json_is_null(v))
        return AEGIS_OK;
    AEG_TRY(aeg_json_get_f64(o, key, file, out, err));
    if (!isfinite(*out))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is not finite", file, key);
    return AEGIS_OK;
}

aegis_status aeg_config_bool(const json_t *o, const char *key, bool *out, aegis_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL || json_is_null(v))
        return AEGIS_OK;
    if (!json_is_boolean(v))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is not a boolean", path, key);
    *out = json_is_true(v);
    return AEGIS_OK;
}

aegis_status aeg_config_only(const json_t *o, const char *key, const char *expected, aegis_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL || json_is_null(v) || (json_is_string(v) && strcmp(json_string_value(v), expected) == 0))
        return AEGIS_OK;
    return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is '%.60s', expected '%s'", path, key,
                    json_is_string(v) ? json_string_value(v) : "not a string", expected);
}

aegis_status aeg_config_parse(json_t **out, const char *folder, const char *name, aeg_memory *memory, aegis_error *err)
{
    char full[AEG_PATH_MAX];
    char *text = NULL;
    size_t n = 0;
    AEG_TRY(aeg_path_join(full, folder, name, err));
    AEG_TRY(aeg_file_read(&text, &n, full, MAX_CONFIG_BYTES, memory, err));
    aegis_status status = aeg_json_parse(out, text, n, name, AEGIS_E_MODEL, err);
    aeg_free(memory, text);
    if (status == AEGIS_OK && !json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        status = aeg_fail(err, AEGIS_E_MODEL, "%s: expected an object", name);
    }
    return status;
}

aegis_status aeg_config_f32(const json_t *o, const char *key, float *out, aegis_error *err)
{
    double value = (double)*out;
    AEG_TRY(aeg_config_f64(o, key, path, &value, err));
    *out = (float)value;
    return AEGIS_OK;
}

aegis_status aeg_config_only_bool(const json_t *o, const char *key, bool expected, aegis_error *err)
{
    bool value = expected;
    AEG_TRY(aeg_config_bool(o, key, &value, err));
    if (value != expected)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is %s, expected %s", path, key, value ? "true" : "false",
                        expected ? "true" : "false");
    return AEGIS_OK;
}

aegis_status aeg_config_numbers(const json_t *o, const aeg_config_number *numbers, size_t n, aegis_error *err)
{
    for (size_t i = 0; i < n; i++)
        AEG_TRY(aeg_json_get_u32(o, numbers[i].key, path, numbers[i].min, numbers[i].max, numbers[i].out, err));
    return AEGIS_OK;
}

/* --- groups of members ------------------------------------------------------------------------------------- */

aegis_status aeg_config_body(aeg_hparams *h, const json_t *text, aegis_error *err)
{
    double eps = 0;
    const aeg_config_number numbers[] = {
        { "vocab_size", &h->vocab_size, 1, AEG_MAX_DIM },
        { "hidden_size", &h->hidden_size, 1, AEG_MAX_DIM },
        { "num_hidden_layers", &h->n_layers, 1, AEG_MAX_LAYERS },
        { "max_position_embeddings", &h->max_n_ctx, 1, AEG_MAX_CONTEXT },
        { "num_attention_heads", &h->n_heads, 1, AEG_MAX_HEADS },
    };
    AEG_TRY(aeg_config_numbers(text, numbers, AEG_ARRAY_LEN(numbers), err));
    AEG_TRY(aeg_json_get_f64(text, "rms_norm_eps", path, &eps, err));
    h->rms_eps = (float)eps;
    AEG_TRY(aeg_config_only_bool(text, "attention_bias", false, err));
    AEG_TRY(aeg_config_only_bool(text, "use_sliding_window", false, err));
    return aeg_config_only(text, "hidden_act", "silu", err);
}

aegis_status aeg_config_attention(aeg_hparams *h, const json_t *text, aegis_error *err)
{
    h->n_kv_heads = h->n_heads;
    h->head_dim = h->hidden_size / h->n_heads;
    AEG_TRY(aeg_config_u32(text, "num_key_value_heads", AEG_MAX_HEADS, &h->n_kv_heads, err));
    AEG_TRY(aeg_config_u32(text, "head_dim", AEG_MAX_HEAD_DIM, &h->head_dim, err));
    if (h->n_kv_heads == 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'num_key_value_heads' is 0, expected 1 or more", path);
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->mixer[i] = AEG_MIXER_ATTENTION;
    return AEGIS_OK;
}

static aegis_status get_mrope(aeg_hparams *h, const json_t *rope, aegis_error *err)
{
    const json_t *sections = json_object_get(rope, "mrope_section");
    bool interleaved = true;
    if (sections == NULL || json_is_null(sections))
        return AEGIS_OK;
    AEG_TRY(aeg_config_bool(rope, "mrope_interleaved", &interleaved, err));
    if (!interleaved)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'mrope_interleaved' is false, expected true", path);
    if (!json_is_array(sections) || json_array_size(sections) != 3)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'mrope_section' has %zu entries, expected 3", path,
                        json_array_size(sections));
    for (size_t i = 0; i < 3; i++) {
        const json_t *v = json_array_get(sections, i);
        const json_int_t n = json_integer_value(v);
        if (!json_is_integer(v) || n < 0 || n > AEG_MAX_HEAD_DIM)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: 'mrope_section'[%zu] is not an integer of 0 to %d", path, i,
                            AEG_MAX_HEAD_DIM);
        h->mrope_section[i] = (uint32_t)n;
    }
    return AEGIS_OK;
}

const json_t *aeg_config_rope_object(const json_t *text)
{
    const json_t *rope = json_object_get(text, "rope_parameters");
    if (!json_is_object(rope)) /* the older place */
        rope = json_object_get(text, "rope_scaling");
    return json_is_object(rope) ? rope : NULL;
}

aegis_status aeg_config_rope(aeg_hparams *h, const json_t *text, double theta, double factor, aegis_error *err)
{
    const json_t *rope = aeg_config_rope_object(text);
    h->rope_theta = theta;
    AEG_TRY(aeg_config_f64(text, "rope_theta", path, &h->rope_theta, err));
    AEG_TRY(aeg_config_f64(text, "partial_rotary_factor", path, &factor, err));
    if (rope != NULL) {
        AEG_TRY(aeg_config_f64(rope, "rope_theta", path, &h->rope_theta, err));
        AEG_TRY(aeg_config_f64(rope, "partial_rotary_factor", path, &factor, err));
        AEG_TRY(aeg_config_only(rope, "rope_type", "default", err));
        AEG_TRY(aeg_config_only(rope, "type", "default", err));
        AEG_TRY(get_mrope(h, rope, err));
    }
    if (!(factor > 0 && factor <= 1))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'partial_rotary_factor' is %g, expected above 0, at most 1", path, factor);
    h->rope_dim = (uint32_t)((double)h->head_dim * factor);
    return AEGIS_OK;
}

aegis_status aeg_config_experts(aeg_hparams *h, const json_t *text, const char *width, aegis_error *err)
{
    /* transformers 5 writes qwen3_moe with the second name */
    const char *count = json_object_get(text, "num_experts") == NULL && json_object_get(text, "num_local_experts") != NULL
                            ? "num_local_experts"
                            : "num_experts";
    uint32_t step = 1;
    const aeg_config_number numbers[] = {
        { count, &h->n_experts, 1, AEG_MAX_EXPERTS },
        { "num_experts_per_tok", &h->top_k, 1, AEG_MAX_TOP_K },
        { width, &h->expert_width, 1, AEG_MAX_DIM },
    };
    AEG_TRY(aeg_config_numbers(text, numbers, AEG_ARRAY_LEN(numbers), err));
    AEG_TRY(aeg_config_u32(text, "decoder_sparse_step", UINT32_MAX, &step, err));
    if (step != 1)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'decoder_sparse_step' is %u, expected 1", path, step);
    if (json_array_size(json_object_get(text, "mlp_only_layers")) > 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'mlp_only_layers' is not empty: dense layers are not supported", path);
    return AEGIS_OK;
}
