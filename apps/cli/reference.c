/* SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "ui.h"

enum { MAX_HEADER = 1 << 20, MAX_VOCAB = 1 << 24, MAX_IDS = 1 << 26 };

typedef struct {
    const char *dtype;
    uint64_t dims[2];
    uint32_t n_dims;
    uint64_t begin, bytes; /* in the data part */
} entry;

static aegis_status find_entry(entry *e, const json_t *header, const char *path, const char *name, uint64_t data_bytes,
                               aegis_error *err)
{
    const json_t *tensor, *shape, *offsets;
    AEG_TRY(aeg_json_get_object(header, name, path, &tensor, err));
    AEG_TRY(aeg_json_get_string(tensor, "dtype", path, &e->dtype, err));
    AEG_TRY(aeg_json_get_array(tensor, "shape", path, &shape, err));
    AEG_TRY(aeg_json_get_array(tensor, "data_offsets", path, &offsets, err));
    e->n_dims = (uint32_t)json_array_size(shape);
    if (e->n_dims < 1 || e->n_dims > 2 || json_array_size(offsets) != 2)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%s' has %u dimensions, expected 1 or 2", path, name, e->n_dims);
    uint64_t bytes = strcmp(e->dtype, "F16") == 0 ? 2 : strcmp(e->dtype, "I64") == 0 ? 8 : 4;
    for (uint32_t i = 0; i < e->n_dims; i++) {
        const json_int_t dim = json_integer_value(json_array_get(shape, i));
        if (dim < 1 || !aeg_mul(bytes, (uint64_t)dim, &bytes))
            return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%s' has a dimension of %lld", path, name, (long long)dim);
        e->dims[i] = (uint64_t)dim;
    }
    const json_int_t begin = json_integer_value(json_array_get(offsets, 0));
    const json_int_t end = json_integer_value(json_array_get(offsets, 1));
    if (begin < 0 || end < begin || (uint64_t)end > data_bytes || (uint64_t)(end - begin) != bytes)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%s' lies at bytes %lld to %lld of %llu, expected %llu bytes",
                        path, name, (long long)begin, (long long)end, (unsigned long long)data_bytes,
                        (unsigned long long)bytes);
    e->begin = (uint64_t)begin;
    e->bytes = bytes;
    return AEGIS_OK;
}

static aegis_status read_ids(aeg_reference *r, const entry *e, uint64_t data_start, aegis_error *err)
{
    const bool wide = strcmp(e->dtype, "I64") == 0;
    if ((!wide && strcmp(e->dtype, "I32") != 0) || e->n_dims != 1 || e->dims[0] > MAX_IDS)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'ids' is %s with %u dimensions, expected I32 or I64 [n]", r->path,
                        e->dtype, e->n_dims);
    r->n = (uint32_t)e->dims[0];
    r->ids = aeg_malloc(aeg_ui_memory(), r->n * sizeof *r->ids);
    if (r->ids == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for %u token ids", r->n);
    if (!wide)
        return aeg_file_pread(r->fd, r->ids, e->bytes, data_start + e->begin, r->path, err);
    for (uint32_t i = 0; i < r->n; i++) {
        uint64_t id = 0;
        AEG_TRY(aeg_file_pread(r->fd, &id, sizeof id, data_start + e->begin + 8 * (uint64_t)i, r->path, err));
        r->ids[i] = (uint32_t)id;
    }
    return AEGIS_OK;
}

static aegis_status read_header(aeg_reference *r, json_t **header, uint64_t *data_start, uint64_t *data_bytes,
                                aegis_error *err)
{
    uint8_t size[8];
    uint64_t n = 0;
    struct stat st;
    AEG_TRY(aeg_file_pread(r->fd, size, sizeof size, 0, r->path, err));
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)size[i] << 8 * i;
    if (fstat(r->fd, &st) != 0 || n > MAX_HEADER || n + 8 > (uint64_t)st.st_size)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: header of %llu bytes, expected at most %d inside the file", r->path,
                        (unsigned long long)n, MAX_HEADER);
    char *text = aeg_malloc(aeg_ui_memory(), n);
    if (text == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a header of %llu bytes", (unsigned long long)n);
    aegis_status status = aeg_file_pread(r->fd, text, n, 8, r->path, err);
    if (status == AEGIS_OK)
        status = aeg_json_parse(header, text, n, r->path, AEGIS_E_MODEL, err);
    aeg_free(aeg_ui_memory(), text);
    *data_start = 8 + n;
    *data_bytes = (uint64_t)st.st_size - *data_start;
    return status;
}

static aegis_status read_tables(aeg_reference *r, const json_t *header, uint64_t data_start, uint64_t data_bytes,
                                aegis_error *err)
{
    entry ids, logits;
    AEG_TRY(find_entry(&ids, header, r->path, "ids", data_bytes, err));
    AEG_TRY(find_entry(&logits, header, r->path, "logits", data_bytes, err));
    AEG_TRY(read_ids(r, &ids, data_start, err));
    r->half = strcmp(logits.dtype, "F16") == 0;
    if ((!r->half && strcmp(logits.dtype, "F32") != 0) || logits.n_dims != 2 || logits.dims[0] > r->n ||
        logits.dims[1] > MAX_VOCAB)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'logits' is %s with %u dimensions, expected F32 or F16 [at most %u, vocabulary]",
                        r->path, logits.dtype, logits.n_dims, r->n);
    r->first = r->n - (uint32_t)logits.dims[0];
    r->vocab_size = (uint32_t)logits.dims[1];
    r->logits_offset = data_start + logits.begin;
    r->row = aeg_malloc(aeg_ui_memory(), (size_t)r->vocab_size * 4);
    r->values = aeg_malloc(aeg_ui_memory(), (size_t)r->vocab_size * 4);
    if (r->row == NULL || r->values == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a row of %u logits", r->vocab_size);
    return AEGIS_OK;
}

aegis_status aeg_reference_open(aeg_reference *r, const char *path, aegis_error *err)
{
    *r = (aeg_reference){ .fd = open(path, O_RDONLY | O_CLOEXEC), .path = path };
    if (r->fd < 0)
        return aeg_fail_os(err, AEGIS_E_USAGE, errno, "%s", path);
    posix_fadvise(r->fd, 0, 0, POSIX_FADV_RANDOM); /* no read-ahead: it would be page cache of ours */
    json_t *header = NULL;
    uint64_t data_start = 0, data_bytes = 0;
    aegis_status status = read_header(r, &header, &data_start, &data_bytes, err);
    if (status == AEGIS_OK)
        status = read_tables(r, header, data_start, data_bytes, err);
    json_decref(header);
    if (status != AEGIS_OK)
        aeg_reference_close(r);
    return status;
}

void aeg_reference_close(aeg_reference *r)
{
    if (r->path == NULL)
        return;
    if (r->fd >= 0)
        close(r->fd);
    aeg_free(aeg_ui_memory(), r->ids);
    aeg_free(aeg_ui_memory(), r->row);
    aeg_free(aeg_ui_memory(), r->values);
    *r = (aeg_reference){ .fd = -1 };
}

/* IEEE binary16; exact. */
static float half_value(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 0x1F, fraction = h & 0x3FF;
    float f;
    if (exponent == 0) {
        f = (float)fraction * 0x1p-24f;
        return sign != 0 ? -f : f;
    }
    const uint32_t bits = sign | (exponent == 31 ? 0xFFu : exponent + 112) << 23 | fraction << 13;
    memcpy(&f, &bits, sizeof f);
    return f;
}

aegis_status aeg_reference_read(aeg_reference *r, uint32_t pos, aegis_error *err)
{
    const uint64_t bytes = (uint64_t)r->vocab_size * (r->half ? 2 : 4);
    const uint64_t offset = r->logits_offset + (pos - r->first) * bytes;
    AEG_TRY(aeg_file_pread(r->fd, r->half ? r->row : r->values, bytes, offset, r->path, err));
    posix_fadvise(r->fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
    for (uint32_t i = 0; r->half && i < r->vocab_size; i++)
        r->values[i] = half_value(((const uint16_t *)r->row)[i]);
    return AEGIS_OK;
}
