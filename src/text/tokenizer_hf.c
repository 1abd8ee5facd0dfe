/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer_hf.h"

#include <string.h>

#include "base/checked.h"

uint8_t *aeg_hf_pool(aeg_hf_reader *r, size_t n)
{
    if (n > r->pool_room - r->pool_n) {
        aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": its texts grow too much when they are unfolded");
        return NULL;
    }
    uint8_t *p = r->pool + r->pool_n;
    r->pool_n += n;
    return p;
}

uint32_t aeg_hf_find(const aeg_hf_reader *r, const char *text, size_t n)
{
    for (uint32_t i = 0; i < r->s.n_added; i++) {
        const aeg_source_token *t = &r->s.tokens[r->s.added[i].id];
        if (t->n == n && memcmp(t->bytes, text, n) == 0)
            return r->s.added[i].id;
    }
    const json_t *id = json_object_getn(r->vocab, text, n);
    return id != NULL ? (uint32_t)json_integer_value(id) : AEG_TOKEN_NONE;
}

aegis_status aeg_hf_only_keys(aeg_hf_reader *r, const json_t *object, const char *what, const char *const *keys)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": %s is not an object", what);
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        bool known = false;
        for (size_t i = 0; keys[i] != NULL && !known; i++)
            known = strcmp(keys[i], key) == 0;
        if (!known)
            return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": %s has '%s', which is not understood", what, key);
    }
    return AEGIS_OK;
}

/* bos_token and its like: a string, an object with "content", or null. */
static uint32_t named_token(const aeg_hf_reader *r, const json_t *config, const char *key)
{
    const json_t *v = json_object_get(config, key);
    if (json_is_object(v))
        v = json_object_get(v, "content");
    return json_is_string(v) ? aeg_hf_find(r, json_string_value(v), json_string_length(v)) : AEG_TOKEN_NONE;
}

static aegis_status read_config(aeg_hf_reader *r, const json_t *config)
{
    aeg_tokenizer_source *s = &r->s;
    s->bos = named_token(r, config, "bos_token");
    s->eos = named_token(r, config, "eos_token");
    s->pad = named_token(r, config, "pad_token");
    /* The template of tokenizer.json, if there is one, says it all; these are for files without. */
    if (s->n_prefix + s->n_suffix > 0)
        return AEGIS_OK;
    if (json_is_true(json_object_get(config, "add_bos_token"))) {
        if (s->bos == AEG_TOKEN_NONE)
            return aeg_fail(r->err, AEGIS_E_MODEL, "tokenizer_config.json: 'add_bos_token' without a known 'bos_token'");
        s->prefix[s->n_prefix++] = s->bos;
    }
    if (json_is_true(json_object_get(config, "add_eos_token"))) {
        if (s->eos == AEG_TOKEN_NONE)
            return aeg_fail(r->err, AEGIS_E_MODEL, "tokenizer_config.json: 'add_eos_token' without a known 'eos_token'");
        s->suffix[s->n_suffix++] = s->eos;
    }
    return AEGIS_OK;
}

static aegis_status read_all(aeg_hf_reader *r, const json_t *root, const json_t *config)
{
    /* truncation and padding are left alone: they are requests to a library, not properties of the model. */
    static const char *const keys[] = { "version", "truncation", "padding", "added_tokens", "normalizer",
                                        "pre_tokenizer", "post_processor", "decoder", "model", NULL };
    AEG_TRY(aeg_hf_only_keys(r, root, "the file", keys));
    const json_t *added = json_object_get(root, "added_tokens");
    const json_t *more = json_object_get(config, "added_tokens_decoder");
    AEG_TRY(aeg_hf_normalizer(r, json_object_get(root, "normalizer"), 0));
    AEG_TRY(aeg_hf_model(r, json_object_get(root, "model"), json_array_size(added) + json_object_size(more)));
    AEG_TRY(aeg_hf_added(r, added, more));
    AEG_TRY(aeg_hf_pre_tokenizer(r, json_object_get(root, "pre_tokenizer")));
    AEG_TRY(aeg_hf_post_processor(r, json_object_get(root, "post_processor"), 0));
    AEG_TRY(aeg_hf_decoder(r, json_object_get(root, "decoder"), 0));
    return read_config(r, config);
}

aegis_status aeg_tokenizer_compile(const char *json, size_t n, const char *config_json, size_t config_n,
                                   uint8_t **out, size_t *out_n, aeg_memory *memory, aegis_error *err)
{
    json_t *root = NULL, *config = NULL;
    aeg_hf_reader r = { .memory = memory, .err = err };
    r.s.bos = r.s.eos = r.s.pad = AEG_TOKEN_NONE;
    aegis_status status = AEGIS_OK;
    if (n > AEG_TOKENIZER_MAX_JSON || config_n > AEG_TOKENIZER_MAX_JSON)
        return aeg_fail(err, AEGIS_E_MODEL, AEG_HF_PATH ": %zu bytes, expected at most %d", AEG_MAX(n, config_n),
                        AEG_TOKENIZER_MAX_JSON);
    AEG_TRY_GOTO(aeg_json_parse(&root, json, n, AEG_HF_PATH, AEGIS_E_MODEL, err));
    if (config_json != NULL)
        AEG_TRY_GOTO(aeg_json_parse(&config, config_json, config_n, "tokenizer_config.json", AEGIS_E_MODEL, err));
    r.pool_room = n;
    r.pool = aeg_malloc(memory, r.pool_room);
    if (r.pool == NULL) {
        status = aeg_fail(err, AEGIS_E_MEMORY, AEG_HF_PATH ": no memory for %zu bytes of texts", n);
        goto done;
    }
    AEG_TRY_GOTO(read_all(&r, root, config));
    status = aeg_tokenizer_build(&r.s, out, out_n, memory, err);
done:
    aeg_free(memory, r.s.added);
    aeg_free(memory, r.s.merges);
    aeg_free(memory, r.s.tokens);
    aeg_free(memory, r.pool);
    json_decref(config);
    json_decref(root);
    return status;
}
