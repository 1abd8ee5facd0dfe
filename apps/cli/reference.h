/* SPDX-License-Identifier: Apache-2.0 */
/* reference.h - logits of somebody else in a safetensors file, one row at a time.
 *
 * The file holds `ids` [n] (I32 or I64) and `logits` [m, vocab] (F32 or F16): row r belongs to position n - m + r.
 * Everything in the header is checked against the size of the file. Thread: owner only.
 */
#ifndef AEG_CLI_REFERENCE_H
#define AEG_CLI_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct {
    int fd;
    const char *path;
    uint32_t n, first;        /* positions; the first one with logits */
    uint32_t vocab_size;
    uint32_t *ids;            /* [n] */
    bool half;
    uint64_t logits_offset;   /* in the file */
    void *row;                /* [vocab_size] as stored */
    float *values;            /* [vocab_size] f32 */
} aeg_reference;

aegis_status aeg_reference_open(aeg_reference *r, const char *path, aegis_error *err);
void aeg_reference_close(aeg_reference *r);

/* Logits of a position in [first, n) into r->values. */
aegis_status aeg_reference_read(aeg_reference *r, uint32_t pos, aegis_error *err);

#endif
