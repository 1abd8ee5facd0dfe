/* SPDX-License-Identifier: Apache-2.0 */
/* format/source.h - the tensors of a published model, whatever files they came from.
 *
 * A reader (safetensors.h, gguf.h) opens the files, checks every rule of its format and fills a source: where each
 * tensor's bytes lie, of what type and shape. What comes after (names, packing) sees only this.
 * Memory: one table entry per tensor and the header texts. Thread: owner only.
 */
#ifndef AEG_FORMAT_SOURCE_H
#define AEG_FORMAT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "format/rawfile.h"

enum {
    AEG_SOURCE_MAX_RANK = 8,
    AEG_SOURCE_MAX_NAME = 1024,
    AEG_SOURCE_MAX_TENSORS = 1 << 20,
    AEG_SOURCE_MAX_FILES = 1000, /* each holds a file descriptor while open */
};

/* First what safetensors has, then ggml's block types. */
typedef enum {
    AEG_DT_BOOL, AEG_DT_U8, AEG_DT_I8, AEG_DT_F8_E4M3, AEG_DT_F8_E5M2, AEG_DT_F8_E8M0, AEG_DT_F8_E4M3FNUZ,
    AEG_DT_F8_E5M2FNUZ, AEG_DT_F6_E2M3, AEG_DT_F6_E3M2, AEG_DT_F4, AEG_DT_I16, AEG_DT_U16, AEG_DT_F16,
    AEG_DT_BF16, AEG_DT_I32, AEG_DT_U32, AEG_DT_F32, AEG_DT_I64, AEG_DT_U64, AEG_DT_F64, AEG_DT_C64,
    AEG_DT_N_PLAIN,
    AEG_DT_Q4_0 = AEG_DT_N_PLAIN, AEG_DT_Q4_1, AEG_DT_Q5_0, AEG_DT_Q5_1, AEG_DT_Q8_0, AEG_DT_Q8_1, AEG_DT_Q2_K,
    AEG_DT_Q3_K, AEG_DT_Q4_K, AEG_DT_Q5_K, AEG_DT_Q6_K, AEG_DT_Q8_K, AEG_DT_IQ2_XXS, AEG_DT_IQ2_XS, AEG_DT_IQ3_XXS,
    AEG_DT_IQ1_S, AEG_DT_IQ4_NL, AEG_DT_IQ3_S, AEG_DT_IQ2_S, AEG_DT_IQ4_XS, AEG_DT_IQ1_M, AEG_DT_TQ1_0, AEG_DT_TQ2_0,
    AEG_DT_MXFP4, AEG_DT_NVFP4, AEG_DT_Q1_0, AEG_DT_Q2_0,
    AEG_DT_N,
} aeg_dtype;

/* `bits` for `block` elements along the contiguous dimension. */
typedef struct {
    const char *name; /* "BF16", "Q4_K" */
    uint16_t block;
    uint16_t bits;
} aeg_dtype_info;

const aeg_dtype_info *aeg_dtype_get(uint32_t dtype); /* dtype < AEG_DT_N */
const char *aeg_dtype_name(uint32_t dtype);          /* "?" beyond */

typedef struct {
    const char *name;     /* lives as long as the source */
    uint64_t dims[AEG_SOURCE_MAX_RANK]; /* the last one is contiguous in memory, for every format */
    uint64_t offset;      /* in its file */
    uint64_t bytes;
    uint32_t file;        /* index into the source's files */
    uint8_t dtype, rank;
} aeg_tensor;

typedef struct {
    aeg_memory *memory;
    uint32_t n_files;
    aeg_raw *files;
    char **paths, **headers; /* one text each per file; names point into the headers */
    uint32_t n_tensors, capacity;
    aeg_tensor *tensors;     /* sorted by name once open */
} aeg_source;

/* --- for readers --- */

/* Room for n files, none open. AEGIS_E_MEMORY names `path`. */
aegis_status aeg_source_init(aeg_source *source, uint32_t n_files, const char *path, aeg_memory *memory, aegis_error *err);
aegis_status aeg_source_add(aeg_source *source, const aeg_tensor *t, const char *path, aegis_error *err);
/* Sort by name; a name given twice is AEGIS_E_MODEL naming both files. */
aegis_status aeg_source_sort(aeg_source *source, aegis_error *err);
/* Bytes [offset, offset + n) of a file, in pieces. */
aegis_status aeg_source_read_file(aeg_source *source, uint32_t file, uint64_t offset, size_t n, void *dst,
                                  aegis_error *err);
/* Bytes of shape times type; false if that overflows, is no whole number of bytes, or does not fill whole blocks. */
bool aeg_tensor_size(const aeg_tensor *t, uint64_t *bytes);

/* --- for everybody --- */

void aeg_source_close(aeg_source *source); /* accepts a zeroed one */

const aeg_tensor *aeg_source_find(const aeg_source *source, const char *name); /* NULL if absent */

/* Bytes [begin, begin + n) of a tensor through `buffer`, as aeg_raw_view. */
aegis_status aeg_source_view(aeg_source *source, const aeg_tensor *t, uint64_t begin, size_t n, uint8_t *buffer,
                             const uint8_t **out, aegis_error *err);
/* The same copied to dst, in pieces; for small tensors and tests. */
aegis_status aeg_source_read(aeg_source *source, const aeg_tensor *t, uint64_t begin, size_t n, void *dst,
                             aegis_error *err);

/* "[248320, 2048]" into out[AEG_SHAPE_TEXT]; returns out. */
enum { AEG_SHAPE_TEXT = 192 };
char *aeg_shape_text(char *out, const aeg_tensor *t);

#endif
