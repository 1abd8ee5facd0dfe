/* SPDX-License-Identifier: Apache-2.0 */
/* format/gguf_parse.h - one GGUF header from bytes in memory. Internal to format/ and its tests. Thread: any. */
#ifndef AEG_FORMAT_GGUF_PARSE_H
#define AEG_FORMAT_GGUF_PARSE_H

#include "format/gguf.h"

/* A tensor as its record has it. `t.offset` is relative to the data; t.name is not set. */
typedef struct {
    aeg_gguf_text name;
    aeg_tensor t;
} aeg_gguf_tensor;

typedef struct {
    uint32_t version, n_kv, n_tensors, alignment;
    uint64_t header_bytes; /* up to the end of the last record */
    uint64_t data_offset;  /* of the data section, in the file */
} aeg_gguf_head;

/* Walk the header in bytes[0, n), the beginning of a file of file_bytes (>= n), and check all of it. kv[head.n_kv] and
 * tensors[head.n_tensors] are filled where they are not NULL, so a first call without them measures. *more becomes true,
 * and nothing else counts, if the header goes on behind byte n. */
aegis_status aeg_gguf_parse(aeg_gguf_head *head, aeg_gguf_kv *kv, aeg_gguf_tensor *tensors, const uint8_t *bytes, size_t n,
                            uint64_t file_bytes, const char *path, bool *more, aegis_error *err);

/* Sort by key; a key given twice is AEGIS_E_MODEL. */
aegis_status aeg_gguf_sort(aeg_gguf_kv *kv, uint32_t n, const char *path, aegis_error *err);

#endif
