/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/scan.h"
#include "format/safetensors_set.h"

enum { PIECE = 256 << 10 };

static const struct {
    const char *name;
    uint32_t bits;
} dtypes[AEG_ST_N_DTYPES] = {
    [AEG_ST_BOOL] = { "BOOL", 8 },       [AEG_ST_U8] = { "U8", 8 },           [AEG_ST_I8] = { "I8", 8 },
    [AEG_ST_F8_E4M3] = { "F8_E4M3", 8 }, [AEG_ST_F8_E5M2] = { "F8_E5M2", 8 }, [AEG_ST_F8_E8M0] = { "F8_E8M0", 8 },
    [AEG_ST_F8_E4M3FNUZ] = { "F8_E4M3FNUZ", 8 }, [AEG_ST_F8_E5M2FNUZ] = { "F8_E5M2FNUZ", 8 },
    [AEG_ST_F6_E2M3] = { "F6_E2M3", 6 }, [AEG_ST_F6_E3M2] = { "F6_E3M2", 6 }, [AEG_ST_F4] = { "F4", 4 },
    [AEG_ST_I16] = { "I16", 16 },        [AEG_ST_U16] = { "U16", 16 },        [AEG_ST_F16] = { "F16", 16 },
    [AEG_ST_BF16] = { "BF16", 16 },      [AEG_ST_I32] = { "I32", 32 },        [AEG_ST_U32] = { "U32", 32 },
    [AEG_ST_F32] = { "F32", 32 },        [AEG_ST_I64] = { "I64", 64 },        [AEG_ST_U64] = { "U64", 64 },
    [AEG_ST_F64] = { "F64", 64 },        [AEG_ST_C64] = { "C64", 64 },
};

const char *aeg_st_dtype_name(uint32_t dtype) { return dtype < AEG_ST_N_DTYPES ? dtypes[dtype].name : "?"; }

char *aeg_st_shape_text(char *out, const aeg_st_tensor *t)
{
    size_t n = (size_t)snprintf(out, AEG_ST_SHAPE_TEXT, "[");
    for (uint32_t i = 0; i < t->rank; i++)
        n += (size_t)snprintf(out + n, AEG_ST_SHAPE_TEXT - n, "%s%llu", i == 0 ? "" : ", ",
                              (unsigned long long)t->dims[i]);
    snprintf(out + n, AEG_ST_SHAPE_TEXT - n, "]");
    return out;
}

/* --- one header ------------------------------------------------------------------------------------ */

static aegis_status get_shape(aeg_scan *s, aeg_st_tensor *t, aegis_error *err)
{
    AEG_TRY(aeg_scan_expect(s, '[', err));
    if (aeg_scan_take(s, ']'))
        return AEGIS_OK;
    for (bool more = true; more;) {
        if (t->rank == AEG_ST_MAX_RANK)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': more than %d dimensions", s->path, t->name,
                            AEG_ST_MAX_RANK);
        AEG_TRY(aeg_scan_uint(s, &t->dims[t->rank++], err));
        AEG_TRY(aeg_scan_more(s, ']', &more, err));
    }
    return AEGIS_OK;
}

static aegis_status get_dtype(aeg_scan *s, aeg_st_tensor *t, aegis_error *err)
{
    char *name;
    AEG_TRY(aeg_scan_string(s, &name, 32, err));
    for (uint8_t i = 0; i < AEG_ST_N_DTYPES; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            t->dtype = i;
            return AEGIS_OK;
        }
    return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': unknown dtype '%s'", s->path, t->name, name);
}

/* The members of one tensor; offsets stay relative to the data and are checked by the caller. */
static aegis_status get_members(aeg_scan *s, aeg_st_tensor *t, uint64_t *end, aegis_error *err)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    int seen = 0;
    AEG_TRY(aeg_scan_expect(s, '{', err));
    for (bool more = true; more;) {
        char *key;
        AEG_TRY(aeg_scan_string(s, &key, AEG_ST_MAX_NAME, err));
        AEG_TRY(aeg_scan_expect(s, ':', err));
        const int member = strcmp(key, "dtype") == 0          ? DTYPE
                           : strcmp(key, "shape") == 0        ? SHAPE
                           : strcmp(key, "data_offsets") == 0 ? OFFSETS
                                                              : 0;
        if (member == 0 || (seen & member))
            return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': %s member '%.100s'", s->path, t->name,
                            member == 0 ? "unknown" : "second", key);
        seen |= member;
        if (member == DTYPE) {
            AEG_TRY(get_dtype(s, t, err));
        } else if (member == SHAPE) {
            AEG_TRY(get_shape(s, t, err));
        } else {
            AEG_TRY(aeg_scan_expect(s, '[', err));
            AEG_TRY(aeg_scan_uint(s, &t->offset, err));
            AEG_TRY(aeg_scan_expect(s, ',', err));
            AEG_TRY(aeg_scan_uint(s, end, err));
            AEG_TRY(aeg_scan_expect(s, ']', err));
        }
        AEG_TRY(aeg_scan_more(s, '}', &more, err));
    }
    if (seen != ALL)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': expected dtype, shape and data_offsets, found %s%s%s",
                        s->path, t->name, seen & DTYPE ? "dtype " : "", seen & SHAPE ? "shape " : "",
                        seen & OFFSETS ? "data_offsets" : "");
    return AEGIS_OK;
}

static aegis_status check_size(const aeg_scan *s, aeg_st_tensor *t, uint64_t end, aegis_error *err)
{
    char shape[AEG_ST_SHAPE_TEXT];
    uint64_t bits = dtypes[t->dtype].bits;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!aeg_mul(bits, t->dims[i], &bits))
            return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': shape %s overflows 64 bits", s->path, t->name,
                            aeg_st_shape_text(shape, t));
    if (end < t->offset)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': data_offsets [%llu, %llu] run backwards", s->path,
                        t->name, (unsigned long long)t->offset, (unsigned long long)end);
    if (bits % 8 != 0 || bits / 8 != end - t->offset)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': data_offsets span %llu bytes, but %s %s is %llu bits",
                        s->path, t->name, (unsigned long long)(end - t->offset), dtypes[t->dtype].name,
                        aeg_st_shape_text(shape, t), (unsigned long long)bits);
    t->bytes = end - t->offset;
    return AEGIS_OK;
}

static aegis_status get_metadata(aeg_scan *s, aegis_error *err)
{
    AEG_TRY(aeg_scan_expect(s, '{', err));
    if (aeg_scan_take(s, '}'))
        return AEGIS_OK;
    for (bool more = true; more;) {
        char *text;
        AEG_TRY(aeg_scan_string(s, &text, SIZE_MAX, err));
        AEG_TRY(aeg_scan_expect(s, ':', err));
        AEG_TRY(aeg_scan_string(s, &text, SIZE_MAX, err));
        AEG_TRY(aeg_scan_more(s, '}', &more, err));
    }
    return AEGIS_OK;
}

static aegis_status add_tensor(aeg_st *st, const aeg_st_tensor *t, uint32_t *capacity, const char *path,
                               aegis_error *err)
{
    if (st->n_tensors == AEG_ST_MAX_TENSORS)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: more than %d tensors", path, AEG_ST_MAX_TENSORS);
    if (st->n_tensors == *capacity) {
        const uint32_t n = *capacity < 64 ? 64 : *capacity + *capacity / 2;
        aeg_st_tensor *grown = aeg_realloc(st->memory, st->tensors, (size_t)n * sizeof *grown);
        if (grown == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for a table of %u tensors", path, n);
        st->tensors = grown;
        *capacity = n;
    }
    st->tensors[st->n_tensors++] = *t;
    return AEGIS_OK;
}

static aegis_status parse_header(aeg_st *st, uint32_t file, size_t n, uint32_t *capacity, aegis_error *err)
{
    aeg_scan s = { .start = st->headers[file], .p = st->headers[file], .end = st->headers[file] + n,
                   .path = st->paths[file] };
    bool metadata = false;
    if (n == 0 || *s.p != '{')
        return aeg_scan_fail(&s, "expected '{' as the first byte", err);
    s.p++;
    for (bool more = !aeg_scan_take(&s, '}'); more;) {
        aeg_st_tensor t = { .file = file };
        uint64_t end = 0;
        char *name;
        AEG_TRY(aeg_scan_string(&s, &name, AEG_ST_MAX_NAME, err));
        AEG_TRY(aeg_scan_expect(&s, ':', err));
        t.name = name;
        if (strcmp(name, "__metadata__") == 0) {
            if (metadata)
                return aeg_scan_fail(&s, "a second __metadata__", err);
            metadata = true;
            AEG_TRY(get_metadata(&s, err));
        } else {
            AEG_TRY(get_members(&s, &t, &end, err));
            AEG_TRY(check_size(&s, &t, end, err));
            AEG_TRY(add_tensor(st, &t, capacity, s.path, err));
        }
        AEG_TRY(aeg_scan_more(&s, '}', &more, err));
    }
    while (s.p < s.end)
        if (*s.p++ != ' ')
            return aeg_scan_fail(&s, "something else than spaces after the header object", err);
    return AEGIS_OK;
}

static int by_offset(const void *a, const void *b)
{
    const aeg_st_tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    /* empty tensors sit before the one that starts at the same byte */
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* The tensors of one file must tile its data exactly. Offsets become positions in the file. */
static aegis_status check_offsets(aeg_st *st, uint32_t file, uint32_t first, uint64_t data, aegis_error *err)
{
    uint64_t at = 0;
    if (st->n_tensors > first)
        qsort(st->tensors + first, st->n_tensors - first, sizeof *st->tensors, by_offset);
    for (uint32_t i = first; i < st->n_tensors; i++) {
        aeg_st_tensor *t = &st->tensors[i];
        if (t->offset != at)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s' begins at data byte %llu, expected %llu (%s)",
                            st->paths[file], t->name, (unsigned long long)t->offset, (unsigned long long)at,
                            t->offset < at ? "overlap" : "hole");
        at += t->bytes; /* both below 2^63 */
        t->offset += data;
    }
    if (at != st->files[file].bytes - data)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %llu bytes of data, but its tensors end at %llu (file truncated?)",
                        st->paths[file], (unsigned long long)(st->files[file].bytes - data), (unsigned long long)at);
    return AEGIS_OK;
}

static aegis_status read_bytes(aeg_raw *raw, uint64_t offset, size_t n, uint8_t *dst, aeg_memory *memory,
                               aegis_error *err)
{
    const size_t piece = n < PIECE ? n : PIECE;
    uint8_t *buffer = aeg_raw_buffer(memory, aeg_raw_room(piece));
    if (buffer == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory to read %zu bytes", raw->name, piece);
    aegis_status status = AEGIS_OK;
    for (size_t done = 0; done < n && status == AEGIS_OK;) {
        const uint8_t *p;
        const size_t now = n - done < PIECE ? n - done : PIECE;
        status = aeg_raw_view(raw, offset + done, now, buffer, &p, err);
        if (status == AEGIS_OK)
            memcpy(dst + done, p, now);
        done += now;
    }
    aeg_raw_buffer_free(memory, buffer);
    return status;
}

static aegis_status load_file(aeg_st *st, uint32_t file, uint32_t *capacity, aegis_error *err)
{
    const char *path = st->paths[file];
    aeg_raw *raw = &st->files[file];
    uint8_t head[8];
    uint64_t n = 0;
    AEG_TRY(aeg_raw_open(raw, path, err));
    if (raw->bytes < sizeof head)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %llu bytes, expected at least 8", path, (unsigned long long)raw->bytes);
    AEG_TRY(read_bytes(raw, 0, sizeof head, head, st->memory, err));
    for (int i = 7; i >= 0; i--)
        n = n << 8 | head[i];
    if (n > AEG_ST_MAX_HEADER || n > raw->bytes - sizeof head)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: a header of %llu bytes, expected at most %llu", path,
                        (unsigned long long)n,
                        (unsigned long long)AEG_MIN((uint64_t)AEG_ST_MAX_HEADER, raw->bytes - sizeof head));
    st->headers[file] = aeg_malloc(st->memory, (size_t)n + 1);
    if (st->headers[file] == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for its header of %llu bytes", path, (unsigned long long)n);
    AEG_TRY(read_bytes(raw, sizeof head, (size_t)n, (uint8_t *)st->headers[file], st->memory, err));
    const uint32_t first = st->n_tensors;
    AEG_TRY(parse_header(st, file, (size_t)n, capacity, err));
    return check_offsets(st, file, first, sizeof head + n, err);
}

/* --- the set --------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const aeg_st_tensor *)a)->name, ((const aeg_st_tensor *)b)->name);
}

static aegis_status load_files(aeg_st *st, const aeg_st_names *names, const char *path, aegis_error *err)
{
    uint32_t capacity = 0;
    st->files = aeg_calloc(st->memory, names->n, sizeof *st->files);
    st->paths = aeg_calloc(st->memory, names->n, sizeof *st->paths);
    st->headers = aeg_calloc(st->memory, names->n, sizeof *st->headers);
    if (st->files == NULL || st->paths == NULL || st->headers == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for %u files", path, names->n);
    for (uint32_t i = 0; i < names->n; i++) {
        st->paths[i] = aeg_st_join(st->memory, names->in_folder ? path : NULL, names->name[i]);
        if (st->paths[i] == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for a path", path);
        st->n_files = i + 1;
        AEG_TRY(load_file(st, i, &capacity, err));
    }
    if (st->n_tensors > 0)
        qsort(st->tensors, st->n_tensors, sizeof *st->tensors, by_name);
    for (uint32_t i = 1; i < st->n_tensors; i++) {
        const aeg_st_tensor *a = &st->tensors[i - 1], *b = &st->tensors[i];
        if (strcmp(a->name, b->name) == 0)
            return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' is in %s and again in %s", a->name, st->paths[a->file],
                            st->paths[b->file]);
    }
    return AEGIS_OK;
}

aegis_status aeg_st_open(aeg_st *out, const char *path, aeg_memory *memory, aegis_error *err)
{
    aeg_st st = { .memory = memory };
    aeg_st_names names = { .memory = memory };
    aegis_status status = aeg_st_list(&names, path, err);
    if (status == AEGIS_OK)
        status = load_files(&st, &names, path, err);
    if (status == AEGIS_OK)
        status = aeg_st_check_index(&names, &st, path, err);
    aeg_st_names_free(&names);
    if (status != AEGIS_OK)
        aeg_st_close(&st);
    *out = st;
    return status;
}

void aeg_st_close(aeg_st *st)
{
    for (uint32_t i = 0; i < st->n_files; i++) {
        aeg_raw_close(&st->files[i]);
        aeg_free(st->memory, st->paths[i]);
        aeg_free(st->memory, st->headers[i]);
    }
    aeg_free(st->memory, st->files);
    aeg_free(st->memory, st->paths);
    aeg_free(st->memory, st->headers);
    aeg_free(st->memory, st->tensors);
    *st = (aeg_st){ 0 };
}

const aeg_st_tensor *aeg_st_find(const aeg_st *st, const char *name)
{
    const aeg_st_tensor key = { .name = name };
    return st->n_tensors == 0 ? NULL : bsearch(&key, st->tensors, st->n_tensors, sizeof key, by_name);
}

aegis_status aeg_st_view(aeg_st *st, const aeg_st_tensor *t, uint64_t begin, size_t n, uint8_t *buffer,
                         const uint8_t **out, aegis_error *err)
{
    uint64_t end;
    if (!aeg_add(begin, n, &end) || end > t->bytes)
        return aeg_fail(err, AEGIS_E_RUNTIME, "tensor '%.200s': %zu bytes at %llu of %llu", t->name, n,
                        (unsigned long long)begin, (unsigned long long)t->bytes);
    const aegis_status status = aeg_raw_view(&st->files[t->file], t->offset + begin, n, buffer, out, err);
    return status == AEGIS_OK ? status : aeg_wrap(err, status, "tensor '%.200s'", t->name);
}

aegis_status aeg_st_read(aeg_st *st, const aeg_st_tensor *t, uint64_t begin, size_t n, void *dst, aegis_error *err)
{
    uint64_t end;
    if (!aeg_add(begin, n, &end) || end > t->bytes)
        return aeg_fail(err, AEGIS_E_RUNTIME, "tensor '%.200s': %zu bytes at %llu of %llu", t->name, n,
                        (unsigned long long)begin, (unsigned long long)t->bytes);
    const aegis_status status = read_bytes(&st->files[t->file], t->offset + begin, n, dst, st->memory, err);
    return status == AEGIS_OK ? status : aeg_wrap(err, status, "tensor '%.200s'", t->name);
}
