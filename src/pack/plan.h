/* SPDX-License-Identifier: Apache-2.0 */
/* pack/plan.h - what a pack will read and write, decided before the first byte is written.
 *
 * Opens the source, finds every tensor, checks every shape, chooses every type and place. Memory: tables on the
 * counter given. Thread: owner only.
 */
#ifndef AEG_PACK_PLAN_H
#define AEG_PACK_PLAN_H

#include "aegis/pack.h"
#include "base/error.h"
#include "base/memory.h"
#include "expert/store.h"
#include "format/config.h"
#include "format/gguf.h"
#include "format/layout.h"
#include "format/names.h"
#include "format/safetensors.h"
#include "pack/block.h"

typedef struct {
    aeg_layout_entry entry;
    aeg_source_matrix matrix; /* a vector: only matrix.weight */
    aeg_vector_change change;
    aeg_weight_type out;
    uint64_t offset, bytes;
    uint64_t xxh3;            /* filled while writing, as below */
} aeg_plan_tensor;

typedef struct {
    aeg_weight_type gate_up_in, down_in, gate_up, down;
    uint64_t gate_up_bytes, down_bytes, xxh3;
    bool stacked;             /* the experts share tensors: several can be read at once */
} aeg_plan_layer;

typedef struct {
    const aeg_tensor *tensor;
    const char *name;
    uint64_t offset, xxh3;
} aeg_plan_raw_tensor;

/* Tensors that go into a file as they are, sorted by name. */
typedef struct {
    uint32_t n;
    aeg_plan_raw_tensor *tensors;
} aeg_plan_raw;

typedef struct {
    aeg_memory *memory;
    aeg_source *st;           /* of the safetensors below or of the gguf */
    aeg_source safetensors;
    aeg_gguf gguf;            /* zeroed if the source is none */
    aeg_config config;
    aeg_names names;
    uint32_t n_tensors;
    aeg_plan_tensor *tensors;
    aeg_plan_layer *layers;   /* [n_layers]; those without experts are 0 */
    aeg_plan_raw vision, mtp;
    aeg_source_matrix embed;
    aeg_weight_type embed_out;
    uint64_t embed_row_bytes, embed_xxh3;
    uint64_t record_bytes, down_offset;
    uint64_t file_bytes[AEG_N_FILES];
    uint64_t source_bytes;    /* that will be read */
    size_t min_window;        /* input buffer that the largest step needs */
    size_t scale_room;        /* of which for the scales of F8, as they are */
    size_t max_block;         /* largest row block written */
} aeg_plan;

/* On failure *out is zeroed. */
aegis_status aeg_plan_open(aeg_plan *out, const char *src, int expert_bits, int dense_bits, aeg_memory *memory,
                           aegis_error *err);
void aeg_plan_close(aeg_plan *plan);

/* Is the source a GGUF file? */
static inline bool aeg_plan_is_gguf(const aeg_plan *plan) { return plan->gguf.source.n_files > 0; }

/* Source bytes of one row of a matrix: codes or numbers, scales, biases; of F8 with scales of its own. */
size_t aeg_plan_row_bytes(aeg_weight_type type, uint32_t n_cols);

/* Bytes that a matrix of the dense file is read from. */
uint64_t aeg_plan_source_bytes(const aeg_source_matrix *m);

/* Does any matrix change its type? Then computing takes longer than reading and writing. */
bool aeg_plan_requantises(const aeg_plan *plan);

#endif
