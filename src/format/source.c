/* SPDX-License-Identifier: Apache-2.0 */
#include "format/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 256 << 10 };

#define PLAIN(type, bits) [AEG_DT_##type] = { #type, 1, bits }
#define BLOCK(type, block, bytes) [AEG_DT_##type] = { #type, block, 8 * (bytes) }

static const aeg_dtype_info dtypes[AEG_DT_N] = {
    PLAIN(BOOL, 8), PLAIN(U8, 8), PLAIN(I8, 8), PLAIN(F8_E4M3, 8), PLAIN(F8_E5M2, 8), PLAIN(F8_E8M0, 8),
    PLAIN(F8_E4M3FNUZ, 8), PLAIN(F8_E5M2FNUZ, 8), PLAIN(F6_E2M3, 6), PLAIN(F6_E3M2, 6), PLAIN(F4, 4), PLAIN(I16, 16),
    PLAIN(U16, 16), PLAIN(F16, 16), PLAIN(BF16, 16), PLAIN(I32, 32), PLAIN(U32, 32), PLAIN(F32, 32), PLAIN(I64, 64),
    PLAIN(U64, 64), PLAIN(F64, 64), PLAIN(C64, 64),
    BLOCK(Q4_0, 32, 18), BLOCK(Q4_1, 32, 20), BLOCK(Q5_0, 32, 22), BLOCK(Q5_1, 32, 24), BLOCK(Q8_0, 32, 34),
    BLOCK(Q8_1, 32, 36), BLOCK(Q2_K, 256, 84), BLOCK(Q3_K, 256, 110), BLOCK(Q4_K, 256, 144), BLOCK(Q5_K, 256, 176),
    BLOCK(Q6_K, 256, 210), BLOCK(Q8_K, 256, 292), BLOCK(IQ2_XXS, 256, 66), BLOCK(IQ2_XS, 256, 74),
    BLOCK(IQ3_XXS, 256, 98), BLOCK(IQ1_S, 256, 50), BLOCK(IQ4_NL, 32, 18), BLOCK(IQ3_S, 256, 110),
    BLOCK(IQ2_S, 256, 82), BLOCK(IQ4_XS, 256, 136), BLOCK(IQ1_M, 256, 56), BLOCK(TQ1_0, 256, 54),
    BLOCK(TQ2_0, 256, 66), BLOCK(MXFP4, 32, 17), BLOCK(NVFP4, 64, 36), BLOCK(Q1_0, 128, 18), BLOCK(Q2_0, 64, 18),
};

const aeg_dtype_info *aeg_dtype_get(uint32_t dtype) { return &dtypes[dtype]; }
const char *aeg_dtype_name(uint32_t dtype) { return dtype < AEG_DT_N ? dtypes[dtype].name : "?"; }

char *aeg_shape_text(char *out, const aeg_tensor *t)
{
    size_t n = (size_t)snprintf(out, AEG_SHAPE_TEXT, "[");
    for (uint32_t i = 0; i < t->rank; i++)
        n += (size_t)snprintf(out + n, AEG_SHAPE_TEXT - n, "%s%llu", i == 0 ? "" : ", ", (unsigned long long)t->dims[i]);
    snprintf(out + n, AEG_SHAPE_TEXT - n, "]");
    return out;
}

bool aeg_tensor_size(const aeg_tensor *t, uint64_t *bytes)
{
    const aeg_dtype_info *type = &dtypes[t->dtype];
    uint64_t n = type->bits;
    for (uint32_t i = 0; i + 1 < t->rank; i++)
        if (!aeg_mul(n, t->dims[i], &n))
            return false;
    const uint64_t row = t->rank == 0 ? 1 : t->dims[t->rank - 1];
    if (row % type->block != 0 || !aeg_mul(n, row / type->block, &n) || n % 8 != 0)
        return false;
    *bytes = n / 8;
    return true;
}

/* --- filling ------------------------------------------------------------------------------------------------- */

aegis_status aeg_source_init(aeg_source *source, uint32_t n_files, const char *path, aeg_memory *memory, aegis_error *err)
{
    *source = (aeg_source){ .memory = memory };
    source->files = aeg_calloc(memory, n_files, sizeof *source->files);
    source->paths = aeg_calloc(memory, n_files, sizeof *source->paths);
    source->headers = aeg_calloc(memory, n_files, sizeof *source->headers);
    if (source->files == NULL || source->paths == NULL || source->headers == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for %u files", path, n_files);
    return AEGIS_OK;
}

aegis_status aeg_source_add(aeg_source *source, const aeg_tensor *t, const char *path, aegis_error *err)
{
    if (source->n_tensors == AEG_SOURCE_MAX_TENSORS)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: more than %d tensors", path, AEG_SOURCE_MAX_TENSORS);
    if (source->n_tensors == source->capacity) {
        const uint32_t n = source->capacity < 64 ? 64 : source->capacity + source->capacity / 2;
        aeg_tensor *grown = aeg_realloc(source->memory, source->tensors, (size_t)n * sizeof *grown);
        if (grown == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for a table of %u tensors", path, n);
        source->tensors = grown;
        source->capacity = n;
    }
    source->tensors[source->n_tensors++] = *t;
    return AEGIS_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const aeg_tensor *)a)->name, ((const aeg_tensor *)b)->name);
}

aegis_status aeg_source_sort(aeg_source *source, aegis_error *err)
{
    if (source->n_tensors > 0)
        qsort(source->tensors, source->n_tensors, sizeof *source->tensors, by_name);
    for (uint32_t i = 1; i < source->n_tensors; i++) {
        const aeg_tensor *a = &source->tensors[i - 1], *b = &source->tensors[i];
        if (strcmp(a->name, b->name) == 0)
            return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' is in %s and again in %s", a->name,
                            source->paths[a->file], source->paths[b->file]);
    }
    return AEGIS_OK;
}

void aeg_source_close(aeg_source *source)
{
    for (uint32_t i = 0; i < source->n_files; i++) {
        aeg_raw_close(&source->files[i]);
        aeg_free(source->memory, source->paths[i]);
        aeg_free(source->memory, source->headers[i]);
    }
    aeg_free(source->memory, source->files);
    aeg_free(source->memory, source->paths);
    aeg_free(source->memory, source->headers);
    aeg_free(source->memory, source->tensors);
    *source = (aeg_source){ 0 };
}

/* --- reading -------------------------------------------------------------------------------------------------- */

const aeg_tensor *aeg_source_find(const aeg_source *source, const char *name)
{
    const aeg_tensor key = { .name = name };
    return source->n_tensors == 0 ? NULL : bsearch(&key, source->tensors, source->n_tensors, sizeof key, by_name);
}

aegis_status aeg_source_read_file(aeg_source *source, uint32_t file, uint64_t offset, size_t n, void *dst,
                                  aegis_error *err)
{
    aeg_raw *raw = &source->files[file];
    const size_t piece = AEG_MIN(n, (size_t)PIECE);
    uint8_t *buffer = aeg_raw_buffer(source->memory, aeg_raw_room(piece));
    if (buffer == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory to read %zu bytes", raw->name, piece);
    aegis_status status = AEGIS_OK;
    for (size_t done = 0; done < n && status == AEGIS_OK;) {
        const uint8_t *p;
        const size_t now = AEG_MIN(n - done, (size_t)PIECE);
        status = aeg_raw_view(raw, offset + done, now, buffer, &p, err);
        if (status == AEGIS_OK)
            memcpy((uint8_t *)dst + done, p, now);
        done += now;
    }
    aeg_raw_buffer_free(source->memory, buffer);
    return status;
}

static aegis_status check_range(const aeg_tensor *t, uint64_t begin, size_t n, aegis_error *err)
{
    uint64_t end;
    if (aeg_add(begin, n, &end) && end <= t->bytes)
        return AEGIS_OK;
    return aeg_fail(err, AEGIS_E_RUNTIME, "tensor '%.200s': %zu bytes at %llu of %llu", t->name, n,
                    (unsigned long long)begin, (unsigned long long)t->bytes);
}

aegis_status aeg_source_view(aeg_source *source, const aeg_tensor *t, uint64_t begin, size_t n, uint8_t *buffer,
                             const uint8_t **out, aegis_error *err)
{
    AEG_TRY(check_range(t, begin, n, err));
    const aegis_status status = aeg_raw_view(&source->files[t->file], t->offset + begin, n, buffer, out, err);
    return status == AEGIS_OK ? status : aeg_wrap(err, status, "tensor '%.200s'", t->name);
}

aegis_status aeg_source_read(aeg_source *source, const aeg_tensor *t, uint64_t begin, size_t n, void *dst,
                             aegis_error *err)
{
    AEG_TRY(check_range(t, begin, n, err));
    const aegis_status status = aeg_source_read_file(source, t->file, t->offset + begin, n, dst, err);
    return status == AEGIS_OK ? status : aeg_wrap(err, status, "tensor '%.200s'", t->name);
}
