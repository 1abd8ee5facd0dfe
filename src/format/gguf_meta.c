/* SPDX-License-Identifier: Apache-2.0 */
/* Reading metadata. Writers choose integer widths as they like, so every getter takes any. */
#include <stdlib.h>
#include <string.h>

#include "format/gguf.h"

const char *aeg_gguf_type_name(uint32_t type)
{
    static const char *const names[AEG_GGUF_N_TYPES] = { "u8", "i8", "u16", "i16", "u32", "i32", "f32",
                                                         "bool", "string", "array", "u64", "i64", "f64" };
    return type < AEG_GGUF_N_TYPES ? names[type] : "?";
}

bool aeg_gguf_text_is(aeg_gguf_text text, const char *s)
{
    return strlen(s) == text.n && memcmp(text.p, s, text.n) == 0;
}

static int compare_key(const void *key, const void *entry)
{
    const char *s = key;
    const aeg_gguf_text *t = &((const aeg_gguf_kv *)entry)->key;
    const size_t n = strlen(s);
    const int order = memcmp(s, t->p, AEG_MIN(n, t->n));
    return order != 0 ? order : (n > t->n) - (n < t->n);
}

const aeg_gguf_kv *aeg_gguf_find(const aeg_gguf *g, const char *key)
{
    return g->n_kv == 0 ? NULL : bsearch(key, g->kv, g->n_kv, sizeof g->kv[0], compare_key);
}

/* --- elements ------------------------------------------------------------------------------------------------- */

bool aeg_gguf_int_at(const aeg_gguf_kv *kv, uint64_t index, int64_t *out)
{
    static const uint8_t bytes[AEG_GGUF_N_TYPES] = {
        [AEG_GGUF_U8] = 1,  [AEG_GGUF_I8] = 1,  [AEG_GGUF_U16] = 2,  [AEG_GGUF_I16] = 2, [AEG_GGUF_U32] = 4,
        [AEG_GGUF_I32] = 4, [AEG_GGUF_U64] = 8, [AEG_GGUF_I64] = 8, [AEG_GGUF_BOOL] = 1,
    };
    const uint32_t n = bytes[kv->type];
    uint64_t v = 0;
    if (n == 0)
        return false;
    for (uint32_t i = n; i-- > 0;)
        v = v << 8 | kv->data[index * n + i];
    switch (kv->type) {
    case AEG_GGUF_I8: *out = (int8_t)v; return true;
    case AEG_GGUF_I16: *out = (int16_t)v; return true;
    case AEG_GGUF_I32: *out = (int32_t)v; return true;
    case AEG_GGUF_U64: *out = (int64_t)v; return v <= INT64_MAX;
    default: *out = (int64_t)v; return true;
    }
}

bool aeg_gguf_number_at(const aeg_gguf_kv *kv, uint64_t index, double *out)
{
    int64_t v;
    float f;
    if (kv->type == AEG_GGUF_F32) {
        memcpy(&f, kv->data + index * sizeof f, sizeof f);
        *out = (double)f;
        return true;
    }
    if (kv->type == AEG_GGUF_F64) {
        memcpy(out, kv->data + index * sizeof *out, sizeof *out);
        return true;
    }
    if (kv->type == AEG_GGUF_BOOL || !aeg_gguf_int_at(kv, index, &v))
        return false;
    *out = (double)v;
    return true;
}

static aeg_gguf_text text_at(const uint8_t *p)
{
    uint64_t n;
    memcpy(&n, p, sizeof n);
    return (aeg_gguf_text){ .p = (const char *)p + sizeof n, .n = (size_t)n };
}

aeg_gguf_strings aeg_gguf_each(const aeg_gguf_kv *kv)
{
    return kv == NULL ? (aeg_gguf_strings){ 0 } : (aeg_gguf_strings){ .p = kv->data, .left = kv->count };
}

bool aeg_gguf_next(aeg_gguf_strings *strings, aeg_gguf_text *out)
{
    if (strings->left == 0)
        return false;
    strings->left--;
    *out = text_at(strings->p);
    strings->p = (const uint8_t *)out->p + out->n;
    return true;
}

/* --- scalars by key ---------------------------------------------------------------------------------------------- */

static aegis_status wrong_type(const aeg_gguf *g, const char *key, const aeg_gguf_kv *kv, const char *expected,
                               aegis_error *err)
{
    return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is %s%s, expected %s", g->source.paths[0], key, kv->array ? "an array of " : "",
                    aeg_gguf_type_name(kv->type), expected);
}

/* NULL if absent. */
static const aeg_gguf_kv *look_up(const aeg_gguf *g, const char *key, bool *found)
{
    const aeg_gguf_kv *kv = aeg_gguf_find(g, key);
    if (found != NULL)
        *found = kv != NULL;
    return kv;
}

aegis_status aeg_gguf_int(const aeg_gguf *g, const char *key, int64_t min, int64_t max, int64_t *out, bool *found,
                          aegis_error *err)
{
    const aeg_gguf_kv *kv = look_up(g, key, found);
    int64_t v = 0;
    if (kv == NULL)
        return AEGIS_OK;
    if (kv->array || kv->type == AEG_GGUF_BOOL || !aeg_gguf_int_at(kv, 0, &v))
        return wrong_type(g, key, kv, "an integer", err);
    if (v < min || v > max)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is %lld, expected %lld to %lld", g->source.paths[0], key, (long long)v,
                        (long long)min, (long long)max);
    *out = v;
    return AEGIS_OK;
}

aegis_status aeg_gguf_number(const aeg_gguf *g, const char *key, double *out, bool *found, aegis_error *err)
{
    const aeg_gguf_kv *kv = look_up(g, key, found);
    double v = 0;
    if (kv == NULL)
        return AEGIS_OK;
    if (kv->array || !aeg_gguf_number_at(kv, 0, &v))
        return wrong_type(g, key, kv, "a number", err);
    if (!(v >= -1e300 && v <= 1e300))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is %g, expected a finite number", g->source.paths[0], key, v);
    *out = v;
    return AEGIS_OK;
}

aegis_status aeg_gguf_bool(const aeg_gguf *g, const char *key, bool *out, bool *found, aegis_error *err)
{
    const aeg_gguf_kv *kv = look_up(g, key, found);
    if (kv == NULL)
        return AEGIS_OK;
    if (kv->array || kv->type != AEG_GGUF_BOOL)
        return wrong_type(g, key, kv, "a bool", err);
    *out = kv->data[0] != 0;
    return AEGIS_OK;
}

aegis_status aeg_gguf_string(const aeg_gguf *g, const char *key, aeg_gguf_text *out, bool *found, aegis_error *err)
{
    const aeg_gguf_kv *kv = look_up(g, key, found);
    if (kv == NULL)
        return AEGIS_OK;
    if (kv->array || kv->type != AEG_GGUF_STRING)
        return wrong_type(g, key, kv, "a string", err);
    *out = text_at(kv->data);
    return AEGIS_OK;
}

aegis_status aeg_gguf_array(const aeg_gguf *g, const char *key, aeg_gguf_kind kind, const aeg_gguf_kv **out,
                            aegis_error *err)
{
    static const char *const expected[] = { "an array of integers", "an array of numbers", "an array of strings" };
    const aeg_gguf_kv *kv = aeg_gguf_find(g, key);
    *out = NULL;
    if (kv == NULL)
        return AEGIS_OK;
    const bool real = kv->type == AEG_GGUF_F32 || kv->type == AEG_GGUF_F64, text = kv->type == AEG_GGUF_STRING;
    const bool fits = kind == AEG_GGUF_STRINGS ? text : kind == AEG_GGUF_NUMBERS ? !text : !text && !real;
    if (!kv->array || !fits)
        return wrong_type(g, key, kv, expected[kind], err);
    *out = kv;
    return AEGIS_OK;
}
