/* SPDX-License-Identifier: Apache-2.0 */
/* pack/batch.h - row blocks and embedding rows on their way into a sink, made by several threads.
 *
 * Blocks are collected, then made at once into one stretch of the sink, each at its own place: the file's bytes are the same
 * for every number of threads. Changing types is what takes time (0.1 GB/s a thread); moving codes is as fast as a disk
 * with one. Memory: the table of blocks, and the threads' stacks (aeg_batch_bytes), counted.
 * Thread: owner only; the team works inside aeg_batch_flush.
 */
#ifndef AEG_PACK_BATCH_H
#define AEG_PACK_BATCH_H

#include "base/memory.h"
#include "format/names.h"
#include "pack/block.h"
#include "pack/sink.h"

typedef struct aeg_batch aeg_batch;

enum { AEG_BATCH_MAX_THREADS = 32 }; /* what keeps up with a fast disk; each costs a stack */

/* What aeg_batch_new takes from its counter. */
uint64_t aeg_batch_bytes(uint32_t n_threads);

/* Where no thread can be started one does it all, with a notice. `limit`: bytes made at once, at most the sink's room and at least the largest block. */
aegis_status aeg_batch_new(aeg_batch **out, aeg_sink *sink, size_t limit, uint32_t n_threads, aeg_memory *memory,
                           aegis_error *err);
void aeg_batch_free(aeg_batch *batch); /* NULL allowed */

/* One row block, or (n_rows 0) one embedding row. `rows` and `m` must stay until the next flush. */
typedef struct {
    aeg_rows rows;             /* from the first row of the block on */
    uint32_t n_rows;
    aeg_weight_type out;
    const aeg_source_matrix *m; /* for messages: its row `row` is the first */
    uint64_t row;
} aeg_batch_block;

/* Flushes when it is full. */
aegis_status aeg_batch_put(aeg_batch *batch, const aeg_batch_block *block, aegis_error *err);

/* Everything that was put is in the sink. Before anything else is written there, and before the source bytes go.
 * AEGIS_E_MODEL: the first block with a value that is not finite. */
aegis_status aeg_batch_flush(aeg_batch *batch, aegis_error *err);

#endif
