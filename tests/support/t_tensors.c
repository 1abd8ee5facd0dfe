/* SPDX-License-Identifier: Apache-2.0 */
#include "support/t_tensors.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/t.h"

struct t_tensors {
    char path[4096];
    char *bytes;
    t_tensor *list;
    size_t n;
};

static uint32_t dtype_bytes(const char *dtype)
{
    static const struct { const char *name; uint32_t n; } known[] = {
        { "F32", 4 }, { "I32", 4 }, { "U32", 4 }, { "F16", 2 }, { "BF16", 2 }, { "I16", 2 },
        { "U16", 2 }, { "I8", 1 },  { "U8", 1 },  { "BOOL", 1 }, { "I64", 8 }, { "F64", 8 },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(dtype, known[i].name) == 0)
            return known[i].n;
    return 0;
}

static void read_entry(t_tensor *out, const char *name, const json_t *value, const char *data, uint64_t n_data)
{
    const json_t *shape = json_object_get(value, "shape"), *span = json_object_get(value, "data_offsets");
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->dtype, sizeof out->dtype, "%s", json_string_value(json_object_get(value, "dtype")));
    out->n_dims = (uint32_t)json_array_size(shape);
    T_CHECK(out->n_dims <= 8);
    out->n_elements = 1;
    for (uint32_t i = 0; i < out->n_dims; i++) {
        out->dim[i] = (uint64_t)json_integer_value(json_array_get(shape, i));
        out->n_elements *= out->dim[i];
    }
    const uint64_t begin = (uint64_t)json_integer_value(json_array_get(span, 0));
    const uint64_t end = (uint64_t)json_integer_value(json_array_get(span, 1));
    out->n_bytes = end - begin;
    out->data = data + begin;
    T_CHECK(begin <= end && end <= n_data);
    T_CHECK(out->n_bytes == out->n_elements * dtype_bytes(out->dtype));
}

t_tensors *t_tensors_open(const char *path)
{
    t_tensors *t = calloc(1, sizeof *t);
    T_CHECK(t != NULL);
    snprintf(t->path, sizeof t->path, "%s%s", path[0] == '/' ? "" : AEGIS_SOURCE_DIR "/", path);
    size_t n = 0;
    t->bytes = t_read_file(t->path, &n);
    uint64_t n_header;
    T_CHECK(n >= 8);
    memcpy(&n_header, t->bytes, 8);
    T_CHECK(n_header <= n - 8);

    json_t *root = json_loadb(t->bytes + 8, n_header, 0, NULL);
    T_CHECK(json_is_object(root));
    t->list = calloc(json_object_size(root) + 1, sizeof *t->list);
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value)
        if (strcmp(name, "__metadata__") != 0)
            read_entry(&t->list[t->n++], name, value, t->bytes + 8 + n_header, n - 8 - n_header);
    json_decref(root);
    return t;
}

void t_tensors_close(t_tensors *t)
{
    if (t == NULL)
        return;
    free(t->list);
    t_free(t->bytes);
    free(t);
}

size_t t_tensors_count(const t_tensors *t) { return t->n; }

const t_tensor *t_tensors_at(const t_tensors *t, size_t i)
{
    T_CHECK(i < t->n);
    return &t->list[i];
}

static const t_tensor *find(const t_tensors *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->list[i].name, name) == 0)
            return &t->list[i];
    return NULL;
}

bool t_tensors_has(const t_tensors *t, const char *name) { return find(t, name) != NULL; }

const t_tensor *t_tensors_get(const t_tensors *t, const char *name, ...)
{
    char text[160];
    va_list ap;
    va_start(ap, name);
    vsnprintf(text, sizeof text, name, ap);
    va_end(ap);
    const t_tensor *found = find(t, text);
    if (found == NULL)
        fail_msg("%s: no tensor '%s'", t->path, text);
    return found;
}

static float half_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
    uint32_t u;
    float f;
    if (exponent == 0) {
        f = (float)mantissa * 0x1p-24f;
        return sign ? -f : f;
    }
    u = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | mantissa << 13;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Data may start at any byte of the file: copy instead of casting. */
#define LOAD(type, t, i)                                            \
    type v;                                                         \
    memcpy(&v, (const char *)(t)->data + (i) * sizeof v, sizeof v)

float t_tensor_f32(const t_tensor *t, uint64_t i)
{
    T_CHECK(i < t->n_elements);
    if (strcmp(t->dtype, "F32") == 0) {
        LOAD(float, t, i);
        return v;
    }
    if (strcmp(t->dtype, "F16") == 0) {
        LOAD(uint16_t, t, i);
        return half_to_f32(v);
    }
    if (strcmp(t->dtype, "BF16") == 0) {
        LOAD(uint16_t, t, i);
        const uint32_t u = (uint32_t)v << 16;
        float f;
        memcpy(&f, &u, sizeof f);
        return f;
    }
    return (float)t_tensor_i64(t, i);
}

int64_t t_tensor_i64(const t_tensor *t, uint64_t i)
{
    T_CHECK(i < t->n_elements);
    const bool is_signed = t->dtype[0] == 'I';
    switch (dtype_bytes(t->dtype)) {
    case 1: {
        LOAD(uint8_t, t, i);
        return is_signed ? (int64_t)(int8_t)v : (int64_t)v;
    }
    case 2: {
        LOAD(uint16_t, t, i);
        return is_signed ? (int64_t)(int16_t)v : (int64_t)v;
    }
    case 4: {
        LOAD(uint32_t, t, i);
        return is_signed ? (int64_t)(int32_t)v : (int64_t)v;
    }
    default: {
        LOAD(int64_t, t, i);
        return v;
    }
    }
}
