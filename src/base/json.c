/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stddef.h>

static aeg_memory json_memory = { .name = "json" };

/* Jansson 2.14 ignores a failed growth of its string buffer and drops a character: a value that
 * parsed while an allocation failed cannot be trusted, so we remember that one did. */
static _Thread_local bool refused;

static void *json_malloc_hook(size_t n)
{
    void *p = aeg_malloc(&json_memory, n);
    if (p == NULL)
        refused = true;
    return p;
}
static void json_free_hook(void *p) { aeg_free(&json_memory, p); }

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

aegis_status aeg_json_parse(json_t **out, const char *text, size_t n, const char *path,
                            aegis_status status, aegis_error *err)
{
    enum { MAX_DEPTH = 64 };
    aeg_json_init();
    if (too_deep(text, n, MAX_DEPTH))
        return aeg_fail(err, status, "%s: JSON nested deeper than %d levels", path, MAX_DEPTH);
    json_error_t e;
    refused = false;
    json_t *value = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    if (refused) {
        json_decref(value);
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for its JSON", path);
    }
    if (value == NULL)
        return aeg_fail(err, status, "%s: not valid JSON at line %d column %d: %s", path, e.line, e.column,
                        e.text);
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
