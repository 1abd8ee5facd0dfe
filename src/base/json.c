/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stddef.h>

static aeg_memory json_memory = { .name = "json" };

/* Jansson 2.14 ignores a failed growth of its lexer's text buffer: a character is dropped, and if that
 * was a closing quote the lexer then reads past the end (or asserts). So that buffer must never fail to grow. It is
 * the first block of a parse and only ever doubles; once memory was refused, its growth comes from a reserve
 * that was set aside for the longest token of the text, every other request fails, and the parse ends soon. */
static _Thread_local struct {
    bool parsing, refused;
    void *buffer, *grown;     /* the text buffer; a block that may be about to replace it */
    size_t size;              /* of buffer; 0 before the first block */
    uint8_t *reserve;
    size_t reserve_bytes, reserve_used;
} lexer;

static void *take_reserve(size_t n)
{
    const size_t at = (lexer.reserve_used + 15) / 16 * 16;
    if (n != 2 * lexer.size || at > lexer.reserve_bytes || n > lexer.reserve_bytes - at)
        return NULL;
    lexer.reserve_used = at + n;
    return lexer.reserve + at;
}

static void *json_malloc_hook(size_t n)
{
    void *p = lexer.parsing && lexer.refused ? NULL : aeg_malloc(&json_memory, n);
    if (p == NULL) {
        lexer.refused = true;
        p = lexer.parsing && lexer.size > 0 ? take_reserve(n) : NULL;
    }
    if (lexer.parsing && lexer.size == 0) {
        lexer.buffer = p;
        lexer.size = n;
    } else if (lexer.parsing && n == 2 * lexer.size) {
        lexer.grown = p;
    }
    return p;
}

static void json_free_hook(void *p)
{
    const uint8_t *byte = p;
    if (lexer.parsing && p != NULL && p == lexer.buffer) {
        lexer.buffer = lexer.grown;
        lexer.size *= 2;
    }
    if (lexer.reserve == NULL || byte < lexer.reserve || byte >= lexer.reserve + lexer.reserve_bytes)
        aeg_free(&json_memory, p);
}

aeg_memory *aeg_json_memory(void) { return &json_memory; }

void aeg_json_init(void)
{
    static bool done;
    if (!done) {
        json_set_alloc_funcs(json_malloc_hook, json_free_hook);
        done = true;
    }
}

/* Jansson's own nesting limit is 2048, deep enough to hurt a small stack: count first. */
static bool too_deep(const char *text, size_t n, int limit)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > limit)
                return true;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return false;
}

/* Bytes of the longest string (quotes and escapes included), number or word. */
static size_t longest_token(const char *text, size_t n)
{
    size_t longest = 0;
    for (size_t i = 0; i < n;) {
        const size_t begin = i;
        if (text[i++] == '"') {
            while (i < n && text[i] != '"')
                i += text[i] == '\\' ? 2 : 1;
            i = i < n ? i + 1 : n;
        } else {
            while (i < n && text[i] != '"' && text[i] != ',' && (uint8_t)text[i] > ' ')
                i++;
        }
        if (i - begin > longest)
            longest = i - begin;
    }
    return longest;
}

aegis_status aeg_json_parse(json_t **out, const char *text, size_t n, const char *path,
                            aegis_status status, aegis_error *err)
{
    enum { MAX_DEPTH = 64, FIRST = 16 };
    aeg_json_init();
    if (too_deep(text, n, MAX_DEPTH))
        return aeg_fail(err, status, "%s: JSON nested deeper than %d levels", path, MAX_DEPTH);
    /* the buffer doubles until the token fits; all its sizes together are at most twice the last */
    const size_t reserve_bytes = 4 * (longest_token(text, n) + 2 * FIRST);
    uint8_t *reserve = aeg_malloc(&json_memory, reserve_bytes);
    if (reserve == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for its JSON", path);
    json_error_t e;
    lexer.parsing = true;
    lexer.refused = false;
    lexer.buffer = lexer.grown = NULL;
    lexer.size = lexer.reserve_used = 0;
    lexer.reserve = reserve;
    lexer.reserve_bytes = reserve_bytes;
    json_t *value = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    lexer.parsing = false;
    if (lexer.refused) {
        json_decref(value);
        value = NULL;
        status = aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for its JSON", path);
    } else if (value == NULL) {
        aeg_fail(err, status, "%s: not valid JSON at line %d column %d: %s", path, e.line, e.column, e.text);
    }
    lexer.reserve = NULL;
    aeg_free(&json_memory, reserve);
    if (value == NULL)
        return status;
    *out = value;
    return AEGIS_OK;
}

static const char *type_name(const json_t *v)
{
    if (v == NULL)
        return "nothing";
    switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: return "null";
    }
    return "something unknown";
}

static aegis_status wrong(const json_t *v, const char *key, const char *path, const char *expected,
                          aegis_error *err)
{
    return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is %s, expected %s", path, key, type_name(v), expected);
}

aegis_status aeg_json_get_u64(const json_t *object, const char *key, const char *path, uint64_t *out,
                              aegis_error *err)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v))
        return wrong(v, key, path, "an integer", err);
    const json_int_t i = json_integer_value(v);
    if (i < 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is %lld, expected 0 or more", path, key, (long long)i);
    *out = (uint64_t)i;
    return AEGIS_OK;
}

aegis_status aeg_json_get_u32(const json_t *object, const char *key, const char *path, uint32_t min,
                              uint32_t max, uint32_t *out, aegis_error *err)
{
    uint64_t v = 0;
    AEG_TRY(aeg_json_get_u64(object, key, path, &v, err));
    if (v < min || v > max)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is %llu, expected %u to %u", path, key,
                        (unsigned long long)v, min, max);
    *out = (uint32_t)v;
    return AEGIS_OK;
}

aegis_status aeg_json_get_f64(const json_t *object, const char *key, const char *path, double *out,
                              aegis_error *err)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_number(v))
        return wrong(v, key, path, "a number", err);
    *out = json_number_value(v);
    return AEGIS_OK;
}

aegis_status aeg_json_get_string(const json_t *object, const char *key, const char *path,
                                 const char **out, aegis_error *err)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_string(v))
        return wrong(v, key, path, "a string", err);
    *out = json_string_value(v);
    return AEGIS_OK;
}

aegis_status aeg_json_get_object(const json_t *object, const char *key, const char *path,
                                 const json_t **out, aegis_error *err)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_object(v))
        return wrong(v, key, path, "an object", err);
    *out = v;
    return AEGIS_OK;
}

aegis_status aeg_json_get_array(const json_t *object, const char *key, const char *path,
                                const json_t **out, aegis_error *err)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_array(v))
        return wrong(v, key, path, "an array", err);
    *out = v;
    return AEGIS_OK;
}
