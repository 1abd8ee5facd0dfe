/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - a safetensors file written row by row, in any order.
 *
 * All shapes are known first, so the header is written once and each row goes to its place with pwrite: memory
 * does not grow with the file. What is written is pushed to the disk and dropped from the page cache as it
 * goes, because dirty pages would count to the budget. The file appears under its name only when complete; what is
 * no regular file (a device, a pipe, a folder) is never replaced, and a link leads to the file that is.
 * Format: 8 bytes header size, JSON header, data (github.com/huggingface/safetensors, README "Format").
 * Thread: owner only.
 */
#ifndef AEG_CLI_OUTPUT_H
#define AEG_CLI_OUTPUT_H

#include <stdint.h>

#include "base/error.h"
#include "base/file.h"

enum { AEG_OUTPUT_MAX_TENSORS = 8, AEG_OUTPUT_MAX_DIMS = 4 };

typedef struct {
    const char *name, *dtype;   /* "F32" or "I32": 4 bytes per element */
    uint32_t n_dims;
    uint64_t dims[AEG_OUTPUT_MAX_DIMS];
    uint64_t offset, row_bytes; /* filled by aeg_output_open; a row is the last dimension */
} aeg_output_tensor;

typedef struct {
    int fd;
    char path[AEG_PATH_MAX], partial[AEG_PATH_MAX];
    uint32_t n_tensors;
    aeg_output_tensor tensors[AEG_OUTPUT_MAX_TENSORS];
    uint64_t data_start, unsynced;
} aeg_output;

/* Before work that would be lost: could a file of this name be written? */
aegis_status aeg_output_check(const char *path, aegis_error *err);
/* Every byte of every tensor is zero until it is written. */
aegis_status aeg_output_open(aeg_output *out, const char *path, const aeg_output_tensor *tensors, uint32_t n_tensors,
                             aegis_error *err);
/* Row `row` (all dimensions but the last flattened) of tensor number `tensor`. */
aegis_status aeg_output_row(aeg_output *out, uint32_t tensor, uint64_t row, const void *data, aegis_error *err);
/* Sync and give the file its name; with `failed` remove it. */
aegis_status aeg_output_close(aeg_output *out, bool failed, aegis_error *err);

#endif
