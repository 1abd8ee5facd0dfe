/* SPDX-License-Identifier: Apache-2.0 */
/* pack/write.h - the large files of a store, from a plan. Each source tensor is read once (a
 * matrix that becomes two, once for each). Thread: owner only. */
#ifndef AEG_PACK_WRITE_H
#define AEG_PACK_WRITE_H

#include "pack/batch.h"
#include "pack/plan.h"
#include "pack/sink.h"

typedef struct {
    aeg_plan *plan;             /* hashes are filled in */
    aeg_sink *sink;
    aeg_batch *batch;           /* into the sink */
    const char *folder;         /* where the files go */
    uint8_t *window;            /* aligned, window_bytes: what is read lands here */
    size_t window_bytes, window_used;
    const aegis_pack_options *options;
    uint64_t done_bytes;        /* of the source */
} aeg_pack_writer;

aegis_status aeg_write_dense(aeg_pack_writer *w, aegis_error *err);
aegis_status aeg_write_embed(aeg_pack_writer *w, aegis_error *err);
aegis_status aeg_write_experts(aeg_pack_writer *w, aegis_error *err);
/* Nothing where there are no tensors. */
aegis_status aeg_write_raw(aeg_pack_writer *w, aeg_store_file file, aeg_plan_raw *raw, aegis_error *err);

#endif
