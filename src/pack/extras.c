/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/extras.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer.h"
#include "text/tokenizer_gguf.h"
#include "text/tokenizer_spm.h"

enum { MAX_SMALL = 16 << 20 };

aegis_status aeg_extras_put(aeg_sink *sink, const char *folder, aeg_pack_file *file, const void *data, size_t n,
                            aegis_error *err)
{
    char path[AEG_PATH_MAX];
    AEG_TRY(aeg_path_join(path, folder, file->name, err));
    AEG_TRY(aeg_sink_open(sink, path, 0, err));
    aeg_sink_hash_reset(sink);
    AEG_TRY(aeg_sink_append(sink, data, n, err));
    file->bytes = n;
    file->xxh3 = aeg_sink_hash(sink);
    return aeg_sink_close(sink, err);
}

static aegis_status put(aeg_extras *x, const char *name, const void *data, size_t n, aegis_error *err)
{
    aeg_pack_file *file = &x->files[x->n_files];
    file->name = name;
    AEG_TRY(aeg_extras_put(x->sink, x->folder, file, data, n, err));
    x->n_files++;
    return AEGIS_OK;
}

/* The whole file, or *out = NULL if there is none. */
static aegis_status read_optional(aeg_extras *x, const char *dir, const char *name, size_t max, char **out, size_t *n,
                                  aegis_error *err)
{
    char path[AEG_PATH_MAX];
    *out = NULL;
    *n = 0;
    AEG_TRY(aeg_path_join(path, dir, name, err));
    return aeg_file_exists(path) ? aeg_file_read(out, n, path, max, x->memory, err) : AEGIS_OK;
}

static aegis_status copy(aeg_extras *x, const char *dir, const char *name, aegis_error *err)
{
    char *text;
    size_t n;
    AEG_TRY(read_optional(x, dir, name, MAX_SMALL, &text, &n, err));
    if (text == NULL)
        return AEGIS_OK;
    const aegis_status status = put(x, name, text, n, err);
    aeg_free(x->memory, text);
    return status;
}

static aegis_status write_tokenizer(aeg_extras *x, const char *config, size_t config_n, aegis_error *err)
{
    char *text;
    size_t n, table_n = 0;
    uint8_t *table = NULL;
    AEG_TRY(read_optional(x, x->tokenizer_dir, "tokenizer.json", AEG_TOKENIZER_MAX_JSON, &text, &n, err));
    const bool json = text != NULL;
    if (!json)
        AEG_TRY(read_optional(x, x->tokenizer_dir, "tokenizer.model", AEG_TOKENIZER_MAX_JSON, &text, &n, err));
    if (text == NULL)
        return AEGIS_OK;
    aegis_status status = json ? aeg_tokenizer_compile(text, n, config, config_n, &table, &table_n, x->memory, err)
                               : aeg_tokenizer_compile_spm((const uint8_t *)text, n, config, config_n, &table, &table_n, x->memory, err);
    aeg_free(x->memory, text);
    if (status == AEGIS_OK)
        status = put(x, "tokenizer.bin", table, table_n, err);
    aeg_free(x->memory, table);
    return status;
}

/* A string, or a list of {"name", "template"}: "default", else the first. NULL if there is none. */
static const char *find_template(const json_t *v)
{
    if (json_is_string(v))
        return json_string_value(v);
    const char *first = NULL;
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *o = json_array_get(v, i);
        const char *name = json_string_value(json_object_get(o, "name"));
        const char *text = json_string_value(json_object_get(o, "template"));
        if (text != NULL && name != NULL && strcmp(name, "default") == 0)
            return text;
        if (first == NULL)
            first = text;
    }
    return first;
}

/* From a JSON text with a member chat_template. */
static aegis_status template_member(aeg_extras *x, const char *json, size_t n, const char *path, bool *found,
                                    aegis_error *err)
{
    json_t *root = NULL;
    AEG_TRY(aeg_json_parse(&root, json, n, path, AEGIS_E_MODEL, err));
    const char *text = find_template(json_object_get(root, "chat_template"));
    *found = text != NULL;
    const aegis_status status = text == NULL ? AEGIS_OK : put(x, "chat_template.jinja", text, strlen(text), err);
    json_decref(root);
    return status;
}

static aegis_status write_template(aeg_extras *x, const char *config, size_t config_n, aegis_error *err)
{
    const uint32_t before = x->n_files;
    char *text;
    size_t n;
    bool found = false;
    AEG_TRY(copy(x, x->tokenizer_dir, "chat_template.jinja", err));
    if (x->n_files > before)
        return AEGIS_OK;
    AEG_TRY(read_optional(x, x->tokenizer_dir, "chat_template.json", MAX_SMALL, &text, &n, err));
    if (text != NULL) {
        const aegis_status status = template_member(x, text, n, "chat_template.json", &found, err);
        aeg_free(x->memory, text);
        if (status != AEGIS_OK || found)
            return status;
    }
    return config == NULL ? AEGIS_OK : template_member(x, config, config_n, "tokenizer_config.json", &found, err);
}

static aegis_status write_from_gguf(aeg_extras *x, aegis_error *err)
{
    uint8_t *table = NULL;
    size_t n = 0;
    aeg_gguf_text text = { 0 };
    bool found = false;
    AEG_TRY(aeg_tokenizer_compile_gguf(x->gguf, &table, &n, x->memory, err));
    const aegis_status status = table == NULL ? AEGIS_OK : put(x, "tokenizer.bin", table, n, err);
    aeg_free(x->memory, table);
    AEG_TRY(status);
    AEG_TRY(aeg_gguf_string(x->gguf, "tokenizer.chat_template", &text, &found, err));
    return found && text.n > 0 ? put(x, "chat_template.jinja", text.p, text.n, err) : AEGIS_OK;
}

aegis_status aeg_extras_write(aeg_extras *x, aegis_error *err)
{
    if (x->tokenizer_dir == NULL)
        return write_from_gguf(x, err);
    char *config;
    size_t config_n;
    AEG_TRY(read_optional(x, x->tokenizer_dir, "tokenizer_config.json", MAX_SMALL, &config, &config_n, err));
    aegis_status status = write_tokenizer(x, config, config_n, err);
    if (status == AEGIS_OK)
        status = write_template(x, config, config_n, err);
    aeg_free(x->memory, config);
    if (status == AEGIS_E_MODEL)
        return aeg_wrap_path(err, status, "", x->tokenizer_dir);
    AEG_TRY(status);
    if (x->gguf == NULL)
        AEG_TRY(copy(x, x->src, "config.json", err));
    return copy(x, x->tokenizer_dir, "preprocessor_config.json", err);
}

static uint64_t size_of(const char *dir, const char *name)
{
    char path[AEG_PATH_MAX];
    struct stat st;
    if (aeg_path_join(path, dir, name, NULL) != AEGIS_OK || stat(path, &st) != 0)
        return 0;
    return (uint64_t)st.st_size + 4096;
}

/* The table has about 16 bytes per token and 27 per merge or pair of pieces, and the texts. */
static uint64_t estimate_gguf(const aeg_gguf *g)
{
    enum { PER_ENTRY = 160 };
    const aeg_gguf_kv *tokens = aeg_gguf_find(g, "tokenizer.ggml.tokens"), *merges = aeg_gguf_find(g, "tokenizer.ggml.merges");
    return (1 << 20) + ((tokens == NULL ? 0 : tokens->count) + (merges == NULL ? 0 : merges->count)) * PER_ENTRY;
}

uint64_t aeg_extras_estimate(const char *src, const char *tokenizer_dir, const aeg_gguf *gguf)
{
    if (tokenizer_dir == NULL)
        return estimate_gguf(gguf);
    return size_of(src, "config.json") + size_of(tokenizer_dir, "tokenizer.json") +
           8 * size_of(tokenizer_dir, "tokenizer.model") +
           size_of(tokenizer_dir, "tokenizer_config.json") + size_of(tokenizer_dir, "chat_template.jinja") +
           size_of(tokenizer_dir, "preprocessor_config.json");
}
