/* SPDX-License-Identifier: Apache-2.0 */
/* format/gguf.h - a GGUF file, version 2 or 3, or a split set of them: its metadata, and its tensors as a source.
 *
 * Opening reads the headers only. Everything in them is checked before it is used: counts against the bytes that are
 * left, strings and arrays against the file, shapes and sizes without overflow, offsets against the file's end and
 * each other, alignment, types, names and keys given twice. Bad bytes are AEGIS_E_MODEL naming file, key or tensor, found
 * and expected; a failed read is AEGIS_E_IO. Values stay where they lie in the header: a vocabulary of 250,000 strings is no
 * allocation of its own. Memory: the headers, and one entry per key and tensor.
 * Thread: owner only.
 */
#ifndef AEG_FORMAT_GGUF_H
#define AEG_FORMAT_GGUF_H

#include <stdbool.h>
#include <stdint.h>

#include "format/source.h"

/* As in the file. */
typedef enum {
    AEG_GGUF_U8, AEG_GGUF_I8, AEG_GGUF_U16, AEG_GGUF_I16, AEG_GGUF_U32, AEG_GGUF_I32, AEG_GGUF_F32, AEG_GGUF_BOOL,
    AEG_GGUF_STRING, AEG_GGUF_ARRAY, AEG_GGUF_U64, AEG_GGUF_I64, AEG_GGUF_F64, AEG_GGUF_N_TYPES,
} aeg_gguf_type;

enum {
    AEG_GGUF_MAX_HEADER = 256 << 20, /* 20 times that of the largest public vocabulary */
    AEG_GGUF_MAX_KV = 1 << 16,
    AEG_GGUF_MAX_KEY = 65535,
    AEG_GGUF_MAX_NAME = 63,          /* of a tensor, as in the reference reader */
    AEG_GGUF_MAX_DIMS = 4,
    AEG_GGUF_MAX_ALIGN = 1 << 20,
};

/* A loan from the header, not NUL terminated; any bytes. */
typedef struct {
    const char *p;
    size_t n;
} aeg_gguf_text;

typedef struct {
    aeg_gguf_text key;
    uint8_t type;        /* aeg_gguf_type; never AEG_GGUF_ARRAY: the type of the elements */
    bool array;
    uint64_t count;      /* elements; 1 if it is no array */
    const uint8_t *data; /* the first element, unaligned */
} aeg_gguf_kv;

typedef struct {
    aeg_source source;   /* the tensors of all parts; dims reversed, so that the last one is contiguous */
    uint32_t n_kv;
    aeg_gguf_kv *kv;     /* of the first part, sorted by key */
} aeg_gguf;

/* Does the file begin like one? False if it cannot be read. */
bool aeg_gguf_probe(const char *path);

/* `path`: a file, or the first part of a split set (the others are found by their names). On failure *out is zeroed. */
aegis_status aeg_gguf_open(aeg_gguf *out, const char *path, aeg_memory *memory, aegis_error *err);
void aeg_gguf_close(aeg_gguf *g); /* accepts a zeroed one */

/* --- metadata (gguf_meta.c) --- */

const aeg_gguf_kv *aeg_gguf_find(const aeg_gguf *g, const char *key); /* NULL if absent */
const char *aeg_gguf_type_name(uint32_t type);
bool aeg_gguf_text_is(aeg_gguf_text text, const char *s);

/* Element `index` (< count) of any integer type, or a bool; false if it is of another type or beyond int64. */
bool aeg_gguf_int_at(const aeg_gguf_kv *kv, uint64_t index, int64_t *out);
/* Element `index` as a number of any type; false for strings. */
bool aeg_gguf_number_at(const aeg_gguf_kv *kv, uint64_t index, double *out);

/* Scalars by key. Absent: *out is untouched and *found (may be NULL) false. Another type, or a number out of
 * [min, max], is AEGIS_E_MODEL with the key and the value. */
aegis_status aeg_gguf_int(const aeg_gguf *g, const char *key, int64_t min, int64_t max, int64_t *out, bool *found,
                          aegis_error *err);
aegis_status aeg_gguf_number(const aeg_gguf *g, const char *key, double *out, bool *found, aegis_error *err);
aegis_status aeg_gguf_bool(const aeg_gguf *g, const char *key, bool *out, bool *found, aegis_error *err);
aegis_status aeg_gguf_string(const aeg_gguf *g, const char *key, aeg_gguf_text *out, bool *found, aegis_error *err);
/* An array of the given kind of elements (any integers, any numbers, strings); *out NULL if absent. */
typedef enum { AEG_GGUF_INTS, AEG_GGUF_NUMBERS, AEG_GGUF_STRINGS } aeg_gguf_kind;
aegis_status aeg_gguf_array(const aeg_gguf *g, const char *key, aeg_gguf_kind kind, const aeg_gguf_kv **out,
                            aegis_error *err);

/* The strings of an array, from the first on. */
typedef struct {
    const uint8_t *p;
    uint64_t left;
} aeg_gguf_strings;

aeg_gguf_strings aeg_gguf_each(const aeg_gguf_kv *kv); /* kv: an array of strings, or NULL: none */
bool aeg_gguf_next(aeg_gguf_strings *strings, aeg_gguf_text *out);

#endif
