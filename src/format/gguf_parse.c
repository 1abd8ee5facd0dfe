/* SPDX-License-Identifier: Apache-2.0 */
#include "format/gguf_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* The smallest records: a key of one byte with a value of one; a name of one byte without dimensions. */
enum { MIN_KV = 8 + 1 + 4 + 1, MIN_TENSOR = 8 + 1 + 4 + 4 + 8 };
enum { DEFAULT_ALIGN = 32, MIN_ALIGN = 8, NO_TYPE = 255 };
#define MAX_DIM ((uint64_t)1 << 40)
#define MAX_STRING ((uint64_t)1 << 30)
#define MAX_ELEMENTS ((uint64_t)1 << 30)

/* Bytes of a value; 0: strings and arrays carry their length. */
static const uint8_t value_bytes[AEG_GGUF_N_TYPES] = {
    [AEG_GGUF_U8] = 1,  [AEG_GGUF_I8] = 1,   [AEG_GGUF_U16] = 2, [AEG_GGUF_I16] = 2, [AEG_GGUF_U32] = 4, [AEG_GGUF_I32] = 4,
    [AEG_GGUF_F32] = 4, [AEG_GGUF_BOOL] = 1, [AEG_GGUF_U64] = 8, [AEG_GGUF_I64] = 8, [AEG_GGUF_F64] = 8,
};

/* ggml's numbers; those it has withdrawn (4, 5, 31-33, 36-38) are unknown. */
static uint8_t dtype_of(uint32_t id)
{
    static const uint8_t types[] = {
        AEG_DT_F32, AEG_DT_F16, AEG_DT_Q4_0, AEG_DT_Q4_1, NO_TYPE, NO_TYPE, AEG_DT_Q5_0, AEG_DT_Q5_1,
        AEG_DT_Q8_0, AEG_DT_Q8_1, AEG_DT_Q2_K, AEG_DT_Q3_K, AEG_DT_Q4_K, AEG_DT_Q5_K, AEG_DT_Q6_K, AEG_DT_Q8_K,
        AEG_DT_IQ2_XXS, AEG_DT_IQ2_XS, AEG_DT_IQ3_XXS, AEG_DT_IQ1_S, AEG_DT_IQ4_NL, AEG_DT_IQ3_S, AEG_DT_IQ2_S,
        AEG_DT_IQ4_XS, AEG_DT_I8, AEG_DT_I16, AEG_DT_I32, AEG_DT_I64, AEG_DT_F64, AEG_DT_IQ1_M, AEG_DT_BF16,
        NO_TYPE /* 31 */, NO_TYPE, NO_TYPE, AEG_DT_TQ1_0, AEG_DT_TQ2_0, NO_TYPE, NO_TYPE, NO_TYPE, AEG_DT_MXFP4,
        AEG_DT_NVFP4, AEG_DT_Q1_0, AEG_DT_Q2_0,
    };
    return id < sizeof types ? types[id] : NO_TYPE;
}

/* Where we are. Lengths are checked against the whole file, bytes are touched only inside [start, end). */
typedef struct {
    const uint8_t *start, *p, *end;
    uint64_t file_bytes;
    const char *path;
    bool more;
    aegis_error *err;
} cursor;

static uint64_t position(const cursor *c) { return (uint64_t)(c->p - c->start); }
static uint64_t left_in_file(const cursor *c) { return c->file_bytes - position(c); }

/* n more bytes are there to be read. */
static bool take(cursor *c, uint64_t n, const char *what, aegis_status *status)
{
    if (n > left_in_file(c)) {
        *status = aeg_fail(c->err, AEGIS_E_MODEL, "%s: byte %llu: %s of %llu bytes, but the file has %llu more (file truncated?)", c->path,
                           (unsigned long long)position(c), what, (unsigned long long)n, (unsigned long long)left_in_file(c));
        return false;
    }
    if (n > (uint64_t)(c->end - c->p)) {
        c->more = true;
        *status = AEGIS_E_MODEL; /* no message: the caller reads on and starts again */
        return false;
    }
    return true;
}

static aegis_status get(cursor *c, uint32_t bytes, const char *what, uint64_t *out)
{
    aegis_status status = AEGIS_OK;
    uint64_t v = 0;
    if (!take(c, bytes, what, &status))
        return status;
    for (uint32_t i = bytes; i-- > 0;)
        v = v << 8 | c->p[i];
    c->p += bytes;
    *out = v;
    return AEGIS_OK;
}

static aegis_status get_text(cursor *c, const char *what, uint64_t max, aeg_gguf_text *out)
{
    aegis_status status = AEGIS_OK;
    uint64_t n = 0;
    AEG_TRY(get(c, 8, what, &n));
    if (n > max)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: byte %llu: %s of %llu bytes, expected at most %llu", c->path,
                        (unsigned long long)position(c) - 8, what, (unsigned long long)n, (unsigned long long)max);
    if (!take(c, n, what, &status))
        return status;
    *out = (aeg_gguf_text){ .p = (const char *)c->p, .n = (size_t)n };
    c->p += n;
    return AEGIS_OK;
}

static int shown(aeg_gguf_text t) { return (int)(t.n < 200 ? t.n : 200); }

static aegis_status check_name(const cursor *c, const char *what, aeg_gguf_text t)
{
    if (t.n == 0)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: an empty %s before byte %llu", c->path, what, (unsigned long long)position(c));
    for (size_t i = 0; i < t.n; i++)
        if ((uint8_t)t.p[i] < 0x20 || t.p[i] == 0x7f)
            return aeg_fail(c->err, AEGIS_E_MODEL, "%s: a %s before byte %llu has the control character %u", c->path, what,
                            (unsigned long long)position(c), (uint8_t)t.p[i]);
    const size_t valid = aeg_utf8_valid((const uint8_t *)t.p, t.n); /* names go into manifests, which are JSON */
    if (valid < t.n)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: a %s before byte %llu is not UTF-8: byte %zu is 0x%02x", c->path, what,
                        (unsigned long long)position(c), valid, (uint8_t)t.p[valid]);
    return AEGIS_OK;
}

/* --- metadata --------------------------------------------------------------------------------------------------- */

/* The elements of a value that has `kv->count` of `kv->type`. */
static aegis_status get_elements(cursor *c, aeg_gguf_kv *kv)
{
    aegis_status status = AEGIS_OK;
    const uint32_t size = value_bytes[kv->type], smallest = size == 0 ? 8 : size;
    if (kv->count > MAX_ELEMENTS || kv->count > left_in_file(c) / smallest)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: '%.*s': %llu elements of %s in the %llu bytes that are left (file truncated?)", c->path,
                        shown(kv->key), kv->key.p, (unsigned long long)kv->count, aeg_gguf_type_name(kv->type),
                        (unsigned long long)left_in_file(c));
    kv->data = c->p;
    char what[256];
    snprintf(what, sizeof what, "'%.*s': a %s", shown(kv->key), kv->key.p, size == 0 ? "string" : "value");
    if (size == 0) {
        aeg_gguf_text text;
        for (uint64_t i = 0; i < kv->count; i++)
            AEG_TRY(get_text(c, what, MAX_STRING, &text));
        return AEGIS_OK;
    }
    if (!take(c, kv->count * size, what, &status))
        return status;
    for (uint64_t i = 0; kv->type == AEG_GGUF_BOOL && i < kv->count; i++)
        if (c->p[i] > 1)
            return aeg_fail(c->err, AEGIS_E_MODEL, "%s: '%.*s': a bool of value %u, expected 0 or 1", c->path, shown(kv->key),
                            kv->key.p, c->p[i]);
    c->p += kv->count * size;
    return AEGIS_OK;
}

static aegis_status get_type(cursor *c, const aeg_gguf_kv *kv, bool element, uint64_t *type)
{
    AEG_TRY(get(c, 4, "a value type", type));
    if (*type >= AEG_GGUF_N_TYPES)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: '%.*s': value type %llu, expected 0 to %d", c->path, shown(kv->key), kv->key.p,
                        (unsigned long long)*type, AEG_GGUF_N_TYPES - 1);
    if (element && *type == AEG_GGUF_ARRAY)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: '%.*s': an array of arrays, which is not supported", c->path,
                        shown(kv->key), kv->key.p);
    return AEGIS_OK;
}

static aegis_status get_kv(cursor *c, aeg_gguf_kv *kv)
{
    uint64_t type = 0;
    *kv = (aeg_gguf_kv){ .count = 1 };
    AEG_TRY(get_text(c, "a key", AEG_GGUF_MAX_KEY, &kv->key));
    AEG_TRY(check_name(c, "key", kv->key));
    AEG_TRY(get_type(c, kv, false, &type));
    if (type == AEG_GGUF_ARRAY) {
        kv->array = true;
        AEG_TRY(get_type(c, kv, true, &type));
        AEG_TRY(get(c, 8, "an array's length", &kv->count));
    }
    kv->type = (uint8_t)type;
    return get_elements(c, kv);
}

/* Read as soon as it is met: everything behind depends on it. */
static aegis_status note_alignment(const cursor *c, const aeg_gguf_kv *kv, uint32_t *alignment)
{
    int64_t v = 0;
    if (!aeg_gguf_text_is(kv->key, "general.alignment"))
        return AEGIS_OK;
    if (kv->array || kv->type != AEG_GGUF_U32 || !aeg_gguf_int_at(kv, 0, &v))
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: 'general.alignment' is %s%s, expected u32", c->path,
                        kv->array ? "an array of " : "", aeg_gguf_type_name(kv->type));
    if (v < MIN_ALIGN || v > AEG_GGUF_MAX_ALIGN || (v & (v - 1)) != 0)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: 'general.alignment' is %lld, expected a power of two from %d to %d", c->path,
                        (long long)v, MIN_ALIGN, AEG_GGUF_MAX_ALIGN);
    *alignment = (uint32_t)v;
    return AEGIS_OK;
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

static aegis_status get_shape(cursor *c, aeg_gguf_tensor *x)
{
    uint64_t n_dims = 0;
    AEG_TRY(get(c, 4, "a number of dimensions", &n_dims));
    if (n_dims > AEG_GGUF_MAX_DIMS)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: tensor '%.*s': %llu dimensions, expected at most %d", c->path, shown(x->name),
                        x->name.p, (unsigned long long)n_dims, AEG_GGUF_MAX_DIMS);
    x->t.rank = (uint8_t)n_dims;
    for (uint32_t i = 0; i < x->t.rank; i++) {
        uint64_t *dim = &x->t.dims[x->t.rank - 1 - i];
        AEG_TRY(get(c, 8, "a dimension", dim));
        if (*dim > MAX_DIM)
            return aeg_fail(c->err, AEGIS_E_MODEL, "%s: tensor '%.*s': dimension %u is %llu, expected at most 2^40", c->path,
                            shown(x->name), x->name.p, i, (unsigned long long)*dim);
    }
    return AEGIS_OK;
}

static aegis_status get_size(cursor *c, aeg_gguf_tensor *x, uint32_t alignment)
{
    uint64_t id = 0;
    char shape[AEG_SHAPE_TEXT];
    AEG_TRY(get(c, 4, "a tensor type", &id));
    x->t.dtype = dtype_of((uint32_t)id);
    if (x->t.dtype == NO_TYPE)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: tensor '%.*s' has type number %llu, which is no type of ggml that we know",
                        c->path, shown(x->name), x->name.p, (unsigned long long)id);
    const aeg_dtype_info *type = aeg_dtype_get(x->t.dtype);
    if (!aeg_tensor_size(&x->t, &x->t.bytes))
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: tensor '%.*s': shape %s of %s overflows or is no multiple of %u values a row",
                        c->path, shown(x->name), x->name.p, aeg_shape_text(shape, &x->t), type->name, type->block);
    AEG_TRY(get(c, 8, "an offset", &x->t.offset));
    if (x->t.offset % alignment != 0)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: tensor '%.*s' begins at data byte %llu, expected a multiple of %u", c->path,
                        shown(x->name), x->name.p, (unsigned long long)x->t.offset, alignment);
    /* against the real size of the file: whatever was multiplied above cannot matter beyond it */
    if (x->t.bytes > c->file_bytes || x->t.offset > c->file_bytes - x->t.bytes)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: tensor '%.*s', %s of %s, has %llu bytes from data byte %llu on, but the file "
                        "has %llu (file truncated?)", c->path, shown(x->name), x->name.p, aeg_shape_text(shape, &x->t), type->name,
                        (unsigned long long)x->t.bytes, (unsigned long long)x->t.offset, (unsigned long long)c->file_bytes);
    return AEGIS_OK;
}

/* --- the header --------------------------------------------------------------------------------------------------- */

static aegis_status get_version(cursor *c, uint32_t *version)
{
    uint64_t magic = 0, v = 0;
    AEG_TRY(get(c, 4, "a magic number", &magic));
    if (magic != 0x46554747)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: not a GGUF file: it begins with %02x %02x %02x %02x", c->path, c->start[0],
                        c->start[1], c->start[2], c->start[3]);
    AEG_TRY(get(c, 4, "a version", &v));
    if ((v & 0xffff) == 0 && v != 0)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: a big-endian GGUF file, which is not supported", c->path);
    if (v != 2 && v != 3)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: GGUF version %llu, expected 2 or 3", c->path, (unsigned long long)v);
    *version = (uint32_t)v;
    return AEGIS_OK;
}

static aegis_status get_count(cursor *c, const char *what, uint32_t smallest, uint64_t max, uint32_t *out)
{
    uint64_t n = 0;
    AEG_TRY(get(c, 8, "a count", &n));
    const uint64_t room = left_in_file(c) / smallest;
    if (n > room)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: %llu %s, but the %llu bytes that are left hold at most %llu (file truncated?)",
                        c->path, (unsigned long long)n, what, (unsigned long long)left_in_file(c), (unsigned long long)room);
    if (n > max)
        return aeg_fail(c->err, AEGIS_E_MODEL, "%s: %llu %s, expected at most %llu", c->path, (unsigned long long)n, what,
                        (unsigned long long)max);
    *out = (uint32_t)n;
    return AEGIS_OK;
}

static aegis_status walk(cursor *c, aeg_gguf_head *h, aeg_gguf_kv *kv, aeg_gguf_tensor *tensors)
{
    AEG_TRY(get_version(c, &h->version));
    AEG_TRY(get_count(c, "tensors", MIN_TENSOR, AEG_SOURCE_MAX_TENSORS, &h->n_tensors));
    AEG_TRY(get_count(c, "keys", MIN_KV, AEG_GGUF_MAX_KV, &h->n_kv));
    for (uint32_t i = 0; i < h->n_kv; i++) {
        aeg_gguf_kv one;
        AEG_TRY(get_kv(c, &one));
        AEG_TRY(note_alignment(c, &one, &h->alignment));
        if (kv != NULL)
            kv[i] = one;
    }
    for (uint32_t i = 0; i < h->n_tensors; i++) {
        aeg_gguf_tensor x = { .name = { 0 } };
        AEG_TRY(get_text(c, "a tensor's name", AEG_GGUF_MAX_NAME, &x.name));
        AEG_TRY(check_name(c, "tensor's name", x.name));
        AEG_TRY(get_shape(c, &x));
        AEG_TRY(get_size(c, &x, h->alignment));
        if (tensors != NULL)
            tensors[i] = x;
    }
    h->header_bytes = position(c);
    h->data_offset = aeg_align_up(h->header_bytes, h->alignment);
    return AEGIS_OK;
}

aegis_status aeg_gguf_parse(aeg_gguf_head *head, aeg_gguf_kv *kv, aeg_gguf_tensor *tensors, const uint8_t *bytes, size_t n,
                            uint64_t file_bytes, const char *path, bool *more, aegis_error *err)
{
    cursor c = { .start = bytes, .p = bytes, .end = bytes + n, .file_bytes = file_bytes, .path = path, .err = err };
    *head = (aeg_gguf_head){ .alignment = DEFAULT_ALIGN };
    const aegis_status status = walk(&c, head, kv, tensors);
    *more = c.more;
    return c.more ? AEGIS_OK : status;
}

static int by_key(const void *a, const void *b)
{
    const aeg_gguf_text *x = &((const aeg_gguf_kv *)a)->key, *y = &((const aeg_gguf_kv *)b)->key;
    const int order = memcmp(x->p, y->p, AEG_MIN(x->n, y->n));
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

aegis_status aeg_gguf_sort(aeg_gguf_kv *kv, uint32_t n, const char *path, aegis_error *err)
{
    if (n > 0)
        qsort(kv, n, sizeof *kv, by_key);
    for (uint32_t i = 1; i < n; i++)
        if (by_key(&kv[i - 1], &kv[i]) == 0)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: key '%.*s' is given twice", path, shown(kv[i].key), kv[i].key.p);
    return AEGIS_OK;
}
