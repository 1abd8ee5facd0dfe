/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/scan.h"
#include "format/safetensors_set.h"

/* --- one header ------------------------------------------------------------------------------------ */

static aegis_status get_shape(aeg_scan *s, aeg_tensor *t, aegis_error *err)
{
    AEG_TRY(aeg_scan_expect(s, '[', err));
    if (aeg_scan_take(s, ']'))
        return AEGIS_OK;
    for (bool more = true; more;) {
        if (t->rank == AEG_SOURCE_MAX_RANK)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': more than %d dimensions", s->path, t->name,
                            AEG_SOURCE_MAX_RANK);
        AEG_TRY(aeg_scan_uint(s, &t->dims[t->rank++], err));
        AEG_TRY(aeg_scan_more(s, ']', &more, err));
    }
    return AEGIS_OK;
}

static aegis_status get_dtype(aeg_scan *s, aeg_tensor *t, aegis_error *err)
{
    char *name;
    AEG_TRY(aeg_scan_string(s, &name, 32, err));
    for (uint8_t i = 0; i < AEG_DT_N_PLAIN; i++)
        if (strcmp(name, aeg_dtype_name(i)) == 0) {
            t->dtype = i;
            return AEGIS_OK;
        }
    return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': unknown dtype '%s'", s->path, t->name, name);
}

/* The members of one tensor; offsets stay relative to the data and are checked by the caller. */
static aegis_status get_members(aeg_scan *s, aeg_tensor *t, uint64_t *end, aegis_error *err)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    int seen = 0;
    AEG_TRY(aeg_scan_expect(s, '{', err));
    for (bool more = true; more;) {
        char *key;
        AEG_TRY(aeg_scan_string(s, &key, AEG_SOURCE_MAX_NAME, err));
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

static aegis_status check_size(const aeg_scan *s, aeg_tensor *t, uint64_t end, aegis_error *err)
{
    char shape[AEG_SHAPE_TEXT];
    uint64_t bits = aeg_dtype_get(t->dtype)->bits;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!aeg_mul(bits, t->dims[i], &bits))
            return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': shape %s overflows 64 bits", s->path, t->name,
                            aeg_shape_text(shape, t));
    if (end < t->offset)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': data_offsets [%llu, %llu] run backwards", s->path,
                        t->name, (unsigned long long)t->offset, (unsigned long long)end);
    if (bits % 8 != 0 || bits / 8 != end - t->offset)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.200s': data_offsets span %llu bytes, but %s %s is %llu bits",
                        s->path, t->name, (unsigned long long)(end - t->offset), aeg_dtype_name(t->dtype),
                        aeg_shape_text(shape, t), (unsigned long long)bits);
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

static aegis_status parse_header(aeg_source *st, uint32_t file, size_t n, aegis_error *err)
{
    aeg_scan s = { .start = st->headers[file], .p = st->headers[file], .end = st->headers[file] + n,
                   .path = st->paths[file] };
    bool metadata = false;
    if (n == 0 || *s.p != '{')
        return aeg_scan_fail(&s, "expected '{' as the first byte", err);
    s.p++;
    for (bool more = !aeg_scan_take(&s, '}'); more;) {
        aeg_tensor t = { .file = file };
        uint64_t end = 0;
        char *name;
        AEG_TRY(aeg_scan_string(&s, &name, AEG_SOURCE_MAX_NAME, err));
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
            AEG_TRY(aeg_source_add(st, &t, s.path, err));
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
    const aeg_tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    /* empty tensors sit before the one that starts at the same byte */
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* The tensors of one file must tile its data exactly. Offsets become positions in the file. */
static aegis_status check_offsets(aeg_source *st, uint32_t file, uint32_t first, uint64_t data, aegis_error *err)
{
    uint64_t at = 0;
    if (st->n_tensors > first)
        qsort(st->tensors + first, st->n_tensors - first, sizeof *st->tensors, by_offset);
    for (uint32_t i = first; i < st->n_tensors; i++) {
        aeg_tensor *t = &st->tensors[i];
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

static aegis_status load_file(aeg_source *st, uint32_t file, aegis_error *err)
{
    const char *path = st->paths[file];
    aeg_raw *raw = &st->files[file];
    uint8_t head[8];
    uint64_t n = 0;
    AEG_TRY(aeg_raw_open(raw, path, err));
    if (raw->bytes < sizeof head)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %llu bytes, expected at least 8 (file truncated?)", path, (unsigned long long)raw->bytes);
    AEG_TRY(aeg_source_read_file(st, file, 0, sizeof head, head, err));
    for (int i = 7; i >= 0; i--)
        n = n << 8 | head[i];
    if (n > AEG_ST_MAX_HEADER)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: a header of %llu bytes, expected at most %d", path, (unsigned long long)n,
                        AEG_ST_MAX_HEADER);
    if (n > raw->bytes - sizeof head)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: a header of %llu bytes, but the file has %llu more (file truncated?)", path,
                        (unsigned long long)n, (unsigned long long)(raw->bytes - sizeof head));
    st->headers[file] = aeg_malloc(st->memory, (size_t)n + 1);
    if (st->headers[file] == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for its header of %llu bytes", path, (unsigned long long)n);
    AEG_TRY(aeg_source_read_file(st, file, sizeof head, (size_t)n, st->headers[file], err));
    const uint32_t first = st->n_tensors;
    AEG_TRY(parse_header(st, file, (size_t)n, err));
    return check_offsets(st, file, first, sizeof head + n, err);
}

/* --- the set --------------------------------------------------------------------------------------- */

static aegis_status load_files(aeg_source *st, const aeg_st_names *names, const char *path, aegis_error *err)
{
    AEG_TRY(aeg_source_init(st, names->n, path, names->memory, err));
    for (uint32_t i = 0; i < names->n; i++) {
        st->paths[i] = aeg_st_join(st->memory, names->in_folder ? path : NULL, names->name[i]);
        if (st->paths[i] == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for a path", path);
        st->n_files = i + 1;
        AEG_TRY(load_file(st, i, err));
    }
    return aeg_source_sort(st, err);
}

aegis_status aeg_st_open(aeg_source *out, const char *path, aeg_memory *memory, aegis_error *err)
{
    aeg_source st = { .memory = memory };
    aeg_st_names names = { .memory = memory };
    aegis_status status = aeg_st_list(&names, path, err);
    if (status == AEGIS_OK)
        status = load_files(&st, &names, path, err);
    if (status == AEGIS_OK)
        status = aeg_st_check_index(&names, &st, path, err);
    aeg_st_names_free(&names);
    if (status != AEGIS_OK)
        aeg_source_close(&st);
    *out = st;
    return status;
}
