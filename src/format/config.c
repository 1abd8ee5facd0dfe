/* SPDX-License-Identifier: Apache-2.0 */
#include "format/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "format/hparams_io.h"

enum { MAX_CONFIG_BYTES = 16 << 20 };
static const char path[] = "config.json";
static const char generation_path[] = "generation_config.json";

/* --- small getters ------------------------------------------------------------------------------------ */

static aegis_status optional_u32(const json_t *o, const char *key, uint32_t max, uint32_t *out, aegis_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL || json_is_null(v))
        return AEGIS_OK;
    return aeg_json_get_u32(o, key, path, 0, max, out, err);
}

static aegis_status optional_f64(const json_t *o, const char *key, const char *file, double *out, aegis_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL || json_is_null(v))
        return AEGIS_OK;
    AEG_TRY(aeg_json_get_f64(o, key, file, out, err));
    if (!isfinite(*out))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is not finite", file, key);
    return AEGIS_OK;
}

static aegis_status optional_bool(const json_t *o, const char *key, bool *out, aegis_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL || json_is_null(v))
        return AEGIS_OK;
    if (!json_is_boolean(v))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is not a boolean", path, key);
    *out = json_is_true(v);
    return AEGIS_OK;
}

/* A member that must be absent, null or this text. */
static aegis_status only_text(const json_t *o, const char *key, const char *expected, aegis_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (v == NULL || json_is_null(v) || (json_is_string(v) && strcmp(json_string_value(v), expected) == 0))
        return AEGIS_OK;
    return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is '%.60s', expected '%s'", path, key,
                    json_is_string(v) ? json_string_value(v) : "not a string", expected);
}

static aegis_status parse_file(json_t **out, const char *folder, const char *name, aeg_memory *memory,
                               aegis_error *err)
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

/* --- qwen3_5_moe ---------------------------------------------------------------------------------------- */

static aegis_status get_layer_types(aeg_hparams *h, const json_t *text, aegis_error *err)
{
    const json_t *types = json_object_get(text, "layer_types");
    uint32_t interval = 4;
    if (types == NULL || json_is_null(types)) {
        AEG_TRY(optional_u32(text, "full_attention_interval", AEG_MAX_LAYERS, &interval, err));
        if (interval == 0)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: 'full_attention_interval' is 0, expected 1 or more", path);
        for (uint32_t i = 0; i < h->n_layers; i++)
            h->mixer[i] = (i + 1) % interval == 0 ? AEG_MIXER_ATTENTION : AEG_MIXER_GDN;
        return AEGIS_OK;
    }
    if (!json_is_array(types) || json_array_size(types) != h->n_layers)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'layer_types' has %zu entries, expected %u", path,
                        json_array_size(types), h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (type != NULL && strcmp(type, "full_attention") == 0)
            h->mixer[i] = AEG_MIXER_ATTENTION;
        else if (type != NULL && strcmp(type, "linear_attention") == 0)
            h->mixer[i] = AEG_MIXER_GDN;
        else
            return aeg_fail(err, AEGIS_E_MODEL,
                            "%s: 'layer_types'[%u] is '%.60s', expected full_attention or linear_attention", path, i,
                            type == NULL ? "not a string" : type);
    }
    return AEGIS_OK;
}

static aegis_status get_mrope(aeg_hparams *h, const json_t *rope, aegis_error *err)
{
    const json_t *sections = json_object_get(rope, "mrope_section");
    bool interleaved = true;
    if (sections == NULL || json_is_null(sections))
        return AEGIS_OK;
    AEG_TRY(optional_bool(rope, "mrope_interleaved", &interleaved, err));
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

static aegis_status get_rope(aeg_hparams *h, const json_t *text, aegis_error *err)
{
    const json_t *rope = json_object_get(text, "rope_parameters");
    double factor = 0.25;
    if (!json_is_object(rope)) /* the older place */
        rope = json_object_get(text, "rope_scaling");
    h->rope_theta = 1e7;
    AEG_TRY(optional_f64(text, "rope_theta", path, &h->rope_theta, err));
    AEG_TRY(optional_f64(text, "partial_rotary_factor", path, &factor, err));
    if (json_is_object(rope)) {
        AEG_TRY(optional_f64(rope, "rope_theta", path, &h->rope_theta, err));
        AEG_TRY(optional_f64(rope, "partial_rotary_factor", path, &factor, err));
        AEG_TRY(only_text(rope, "rope_type", "default", err));
        AEG_TRY(get_mrope(h, rope, err));
    }
    if (!(factor > 0 && factor <= 1))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'partial_rotary_factor' is %g, expected above 0, at most 1", path, factor);
    h->rope_dim = (uint32_t)((double)h->head_dim * factor);
    return AEGIS_OK;
}

static aegis_status get_refused(const json_t *text, aegis_error *err)
{
    bool bias = false;
    AEG_TRY(optional_bool(text, "attention_bias", &bias, err));
    if (bias)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'attention_bias' is true, expected false", path);
    AEG_TRY(only_text(text, "hidden_act", "silu", err));
    if (json_array_size(json_object_get(text, "mlp_only_layers")) > 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'mlp_only_layers' is not empty: dense layers are not supported", path);
    uint32_t step = 1;
    AEG_TRY(optional_u32(text, "decoder_sparse_step", UINT32_MAX, &step, err));
    if (step != 1)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'decoder_sparse_step' is %u, expected 1", path, step);
    return AEGIS_OK;
}

static aegis_status get_text(aeg_hparams *h, const json_t *text, aegis_error *err)
{
    double eps = 0;
    const struct {
        const char *key;
        uint32_t *out, min, max;
    } numbers[] = {
        { "vocab_size", &h->vocab_size, 1, AEG_MAX_DIM },
        { "hidden_size", &h->hidden_size, 1, AEG_MAX_DIM },
        { "num_hidden_layers", &h->n_layers, 1, AEG_MAX_LAYERS },
        { "max_position_embeddings", &h->max_n_ctx, 1, AEG_MAX_CONTEXT },
        { "num_attention_heads", &h->n_heads, 1, AEG_MAX_HEADS },
        { "num_key_value_heads", &h->n_kv_heads, 1, AEG_MAX_HEADS },
        { "linear_num_key_heads", &h->gdn_k_heads, 1, AEG_MAX_HEADS },
        { "linear_num_value_heads", &h->gdn_v_heads, 1, AEG_MAX_HEADS },
        { "linear_key_head_dim", &h->gdn_k_dim, 1, AEG_MAX_HEAD_DIM },
        { "linear_value_head_dim", &h->gdn_v_dim, 1, AEG_MAX_HEAD_DIM },
        { "linear_conv_kernel_dim", &h->conv_kernel, 4, 4 },
        { "num_experts", &h->n_experts, 1, AEG_MAX_EXPERTS },
        { "num_experts_per_tok", &h->top_k, 1, AEG_MAX_TOP_K },
        { "moe_intermediate_size", &h->expert_width, 1, AEG_MAX_DIM },
    };
    for (size_t i = 0; i < AEG_ARRAY_LEN(numbers); i++)
        AEG_TRY(aeg_json_get_u32(text, numbers[i].key, path, numbers[i].min, numbers[i].max, numbers[i].out, err));
    AEG_TRY(optional_u32(text, "shared_expert_intermediate_size", AEG_MAX_DIM, &h->shared_width, err));
    h->head_dim = h->hidden_size / h->n_heads;
    AEG_TRY(optional_u32(text, "head_dim", AEG_MAX_HEAD_DIM, &h->head_dim, err));
    AEG_TRY(aeg_json_get_f64(text, "rms_norm_eps", path, &eps, err));
    h->rms_eps = (float)eps;
    h->attn_gate = true;
    AEG_TRY(optional_bool(text, "attn_output_gate", &h->attn_gate, err));
    h->norm_top_k = true; /* the published code always renormalises, whatever the config says */
    AEG_TRY(get_refused(text, err));
    AEG_TRY(get_layer_types(h, text, err));
    return get_rope(h, text, err);
}

/* --- tokens and sampling -------------------------------------------------------------------------------- */

static aegis_status add_eos(aeg_hparams *h, const json_t *v, const char *file, aegis_error *err)
{
    const json_int_t id = json_integer_value(v);
    if (!json_is_integer(v) || id < 0 || id >= (json_int_t)h->vocab_size)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: an 'eos_token_id' is not an integer of 0 to %u", file, h->vocab_size - 1);
    for (uint32_t i = 0; i < h->n_eos; i++)
        if (h->eos[i] == (uint32_t)id)
            return AEGIS_OK;
    if (h->n_eos == AEG_MAX_EOS)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: more than %d 'eos_token_id' values", file, AEG_MAX_EOS);
    h->eos[h->n_eos++] = (uint32_t)id;
    return AEGIS_OK;
}

static aegis_status get_eos(aeg_hparams *h, const json_t *o, const char *file, aegis_error *err)
{
    const json_t *v = json_object_get(o, "eos_token_id");
    if (v == NULL || json_is_null(v))
        return AEGIS_OK;
    if (!json_is_array(v))
        return add_eos(h, v, file, err);
    for (size_t i = 0; i < json_array_size(v); i++)
        AEG_TRY(add_eos(h, json_array_get(v, i), file, err));
    return AEGIS_OK;
}

static aegis_status get_bos(aeg_hparams *h, const json_t *o, const char *file, aegis_error *err)
{
    const json_t *v = json_object_get(o, "bos_token_id");
    if (v == NULL || json_is_null(v) || h->bos_id >= 0)
        return AEGIS_OK;
    uint32_t id = 0;
    AEG_TRY(aeg_json_get_u32(o, "bos_token_id", file, 0, h->vocab_size - 1, &id, err));
    h->bos_id = (int32_t)id;
    return AEGIS_OK;
}

static aegis_status get_sampling(aeg_hparams *h, const json_t *g, aegis_error *err)
{
    const struct {
        const char *key;
        double *out, max;
    } numbers[] = {
        { "temperature", &h->temperature, 100 },         { "top_p", &h->top_p, 1 },
        { "min_p", &h->min_p, 1 },                       { "repetition_penalty", &h->repeat_penalty, 100 },
        { "presence_penalty", &h->presence_penalty, 100 },
    };
    for (size_t i = 0; i < AEG_ARRAY_LEN(numbers); i++) {
        AEG_TRY(optional_f64(g, numbers[i].key, generation_path, numbers[i].out, err));
        if (*numbers[i].out > numbers[i].max)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is %g, expected at most %g", generation_path, numbers[i].key,
                            *numbers[i].out, numbers[i].max);
        if (*numbers[i].out < 0)
            *numbers[i].out = -1;
    }
    const json_t *top_k = json_object_get(g, "top_k");
    uint32_t k = 0;
    if (top_k != NULL && !json_is_null(top_k)) {
        AEG_TRY(aeg_json_get_u32(g, "top_k", generation_path, 0, INT32_MAX, &k, err));
        h->top_k_sampling = (int32_t)k;
    }
    if (json_is_false(json_object_get(g, "do_sample")))
        h->temperature = 0; /* greedy, whatever temperature it lists */
    return AEGIS_OK;
}

static aegis_status get_generation(aeg_config *c, const char *folder, const json_t *root, const json_t *text,
                                   aegis_error *err)
{
    aeg_hparams *h = &c->hparams;
    char full[AEG_PATH_MAX];
    json_t *g = NULL;
    AEG_TRY(aeg_path_join(full, folder, generation_path, err));
    if (aeg_file_exists(full)) {
        AEG_TRY(parse_file(&g, folder, generation_path, c->memory, err));
        aegis_status status = get_eos(h, g, generation_path, err);
        if (status == AEGIS_OK)
            status = get_bos(h, g, generation_path, err);
        if (status == AEGIS_OK)
            status = get_sampling(h, g, err);
        json_decref(g);
        AEG_TRY(status);
    }
    /* generation_config knows the stops of the chat form; the others only the end of a document */
    if (h->n_eos == 0)
        AEG_TRY(get_eos(h, text, path, err));
    if (h->n_eos == 0)
        AEG_TRY(get_eos(h, root, path, err));
    AEG_TRY(get_bos(h, text, path, err));
    return get_bos(h, root, path, err);
}

/* --- quantisation ------------------------------------------------------------------------------------------ */

static aegis_status get_quant(const json_t *o, const char *module, uint32_t *bits, uint32_t *group, aegis_error *err)
{
    *bits = 4;
    *group = 64;
    AEG_TRY(only_text(o, "mode", "affine", err));
    AEG_TRY(optional_u32(o, "bits", 64, bits, err));
    AEG_TRY(optional_u32(o, "group_size", 1 << 16, group, err));
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

static aegis_status get_quantisation(aeg_config *c, const json_t *root, aegis_error *err)
{
    json_t *q = json_object_get(root, "quantization");
    if (!json_is_object(q))
        q = json_object_get(root, "quantization_config");
    if (!json_is_object(q))
        return AEGIS_OK;
    const json_t *method = json_object_get(q, "quant_method");
    if (method != NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: quant_method '%.60s' is not supported; expected MLX affine or no "
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

/* --- the whole ------------------------------------------------------------------------------------------- */

static aegis_status check_model_type(const json_t *root, aegis_error *err)
{
    const char *type = json_string_value(json_object_get(root, "model_type"));
    const char *architecture = json_string_value(json_array_get(json_object_get(root, "architectures"), 0));
    if (type != NULL && (strcmp(type, "qwen3_5_moe") == 0 || strcmp(type, "qwen3_5_moe_text") == 0))
        return AEGIS_OK;
    return aeg_fail(err, AEGIS_E_MODEL, "%s: model_type '%.60s' (architecture '%.80s') is not supported; this version "
                    "runs qwen3_5_moe (Qwen3.5 and Qwen3.6 MoE)", path, type == NULL ? "missing" : type,
                    architecture == NULL ? "not given" : architecture);
}

static aegis_status fill(aeg_config *c, const char *folder, const json_t *root, aegis_error *err)
{
    AEG_TRY(check_model_type(root, err));
    const json_t *text = json_object_get(root, "text_config");
    if (text == NULL)
        text = root; /* text-only conversions are flat */
    if (!json_is_object(text))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'text_config' is not an object", path);
    aeg_hparams_init(&c->hparams);
    memcpy(c->hparams.family, "qwen35moe", sizeof "qwen35moe");
    AEG_TRY(get_text(&c->hparams, text, err));
    AEG_TRY(optional_bool(root, "tie_word_embeddings", &c->tie_embeddings, err));
    AEG_TRY(optional_bool(text, "tie_word_embeddings", &c->tie_embeddings, err));
    AEG_TRY(get_quantisation(c, root, err));
    AEG_TRY(get_generation(c, folder, root, text, err));
    return aeg_hparams_check(&c->hparams, path, err);
}

aegis_status aeg_config_load(aeg_config *out, const char *folder, aeg_memory *memory, aegis_error *err)
{
    aeg_config c = { .memory = memory };
    json_t *root = NULL;
    aegis_status status = parse_file(&root, folder, path, memory, err);
    if (status == AEGIS_OK)
        status = fill(&c, folder, root, err);
    json_decref(root);
    if (status != AEGIS_OK)
        aeg_config_free(&c);
    *out = c;
    return status;
}

void aeg_config_free(aeg_config *config)
{
    for (uint32_t i = 0; i < config->n_overrides; i++)
        aeg_free(config->memory, config->overrides[i].module);
    aeg_free(config->memory, config->overrides);
    *config = (aeg_config){ 0 };
}
