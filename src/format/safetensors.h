/* SPDX-License-Identifier: Apache-2.0 */
/* format/safetensors.h - the tensors of a safetensors file, a sharded set or a folder of model*.safetensors.
 *
 * Opening reads and checks the headers only (every rule of the container: offsets without holes, sizes equal to
 * shape times type, no duplicate name in or across shards). Memory: the header texts and one table entry per tensor.
 * Bad bytes are AEGIS_E_MODEL naming file, tensor, found and expected; a failed read is AEGIS_E_IO.
 * Thread: owner only.
 */
#ifndef AEG_FORMAT_SAFETENSORS_H
#define AEG_FORMAT_SAFETENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "format/rawfile.h"

enum {
    AEG_ST_MAX_RANK = 8,
    AEG_ST_MAX_NAME = 1024,
    AEG_ST_MAX_HEADER = 100000000, /* the reference reader's limit */
    AEG_ST_MAX_TENSORS = 1 << 20,
    AEG_ST_MAX_FILES = 1000,       /* each holds a file descriptor while open */
};

typedef enum {
    AEG_ST_BOOL, AEG_ST_U8, AEG_ST_I8, AEG_ST_F8_E4M3, AEG_ST_F8_E5M2, AEG_ST_F8_E8M0, AEG_ST_F8_E4M3FNUZ,
    AEG_ST_F8_E5M2FNUZ, AEG_ST_F6_E2M3, AEG_ST_F6_E3M2, AEG_ST_F4, AEG_ST_I16, AEG_ST_U16, AEG_ST_F16,
    AEG_ST_BF16, AEG_ST_I32, AEG_ST_U32, AEG_ST_F32, AEG_ST_I64, AEG_ST_U64, AEG_ST_F64, AEG_ST_C64,
    AEG_ST_N_DTYPES,
} aeg_st_dtype;

typedef struct {
    const char *name;     /* lives as long as the set */
    uint64_t dims[AEG_ST_MAX_RANK];
    uint64_t offset;      /* in its file */
    uint64_t bytes;
    uint32_t file;        /* index into the set's files */
    uint8_t dtype, rank;
} aeg_st_tensor;

typedef struct {
    aeg_memory *memory;
    uint32_t n_files;
    aeg_raw *files;
    char **paths, **headers; /* one text each per file; names point into the headers */
    uint32_t n_tensors;
    aeg_st_tensor *tensors;  /* sorted by name */
} aeg_st;

/* `path`: a .safetensors file, or a folder with model.safetensors, or with model.safetensors.index.json and its
 * shards, or (index stale or absent) with model*.safetensors. On failure *out is zeroed. */
aegis_status aeg_st_open(aeg_st *out, const char *path, aeg_memory *memory, aegis_error *err);
void aeg_st_close(aeg_st *st); /* accepts a zeroed one */

const aeg_st_tensor *aeg_st_find(const aeg_st *st, const char *name); /* NULL if absent */

/* Bytes [begin, begin + n) of a tensor through `buffer`, as aeg_raw_view. */
aegis_status aeg_st_view(aeg_st *st, const aeg_st_tensor *t, uint64_t begin, size_t n, uint8_t *buffer,
                         const uint8_t **out, aegis_error *err);
/* The same copied to dst, in pieces; for small tensors and tests. */
aegis_status aeg_st_read(aeg_st *st, const aeg_st_tensor *t, uint64_t begin, size_t n, void *dst, aegis_error *err);

const char *aeg_st_dtype_name(uint32_t dtype);

/* "[248320, 2048]" into out[AEG_ST_SHAPE_TEXT]; returns out. */
enum { AEG_ST_SHAPE_TEXT = 192 };
char *aeg_st_shape_text(char *out, const aeg_st_tensor *t);

#endif
