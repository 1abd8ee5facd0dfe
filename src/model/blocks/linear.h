/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/linear.h - y = W x for several matrices that eat the same input.
 *
 * The input rows are quantised once (blocks of min(group, 64)) and shared; the row blocks of all matrices form one
 * range that is split over the team, so there is one barrier however many matrices there are.
 * `exact` matrices (router, gates) read the f32 input whatever --activations says.
 */
#ifndef AEG_MODEL_BLOCKS_LINEAR_H
#define AEG_MODEL_BLOCKS_LINEAR_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/threads.h"
#include "kernels/kernels.h"

/* What every block needs to compute. */
typedef struct {
    const aeg_kernels *kernels;
    aeg_team *team;
    aeg_act_kind act;      /* --activations */
} aeg_compute;

/* Room for quantised rows. */
typedef struct {
    int8_t *q8;
    int16_t *q16;
    float *d, *s;
    int32_t *sums; /* NULL where no weights of the model read them */
} aeg_act_room;

/* For `rows` rows of `n_cols` columns at most (the product counts). act: what --activations says, with AEG_ACT_SUMS where
 * the model has weights that read sums of codes. */
void aeg_act_room_init(aeg_act_room *room, aeg_arena *arena, aeg_act_kind act, uint64_t rows, uint64_t n_cols);

/* Codes of rows [0, n) of x [n, n_cols] into room: blocks of `block`. F32: only the view is made. */
aeg_acts aeg_quantize_rows(const aeg_compute *c, const aeg_act_room *room, const float *x, uint32_t n,
                           uint32_t n_cols, uint32_t block);

/* Do matrices of this type read codes with these activations, or f32? */
bool aeg_reads_codes(const aeg_compute *c, aeg_weight_type type);

/* The pieces that aeg_quantize_rows is made of, for jobs that make codes beside other things: columns x [n_cols] into the room
 * from element `at` on, a multiple of block; a row into its place; the rows of a room as activations (codes must be made by
 * then); room and rows from element or row on. Thread: any; disjoint places. */
void aeg_quantize_codes(const aeg_kernels *k, aeg_act_kind act, const aeg_act_room *room, size_t at, const float *x,
                        uint32_t n_cols, uint32_t block);
void aeg_quantize_row(const aeg_compute *c, const aeg_act_room *room, uint32_t row, const float *x, uint32_t n_cols,
                      uint32_t block);
aeg_acts aeg_act_view(const aeg_compute *c, const aeg_act_room *room, const float *x, uint32_t n_cols, uint32_t block);
aeg_act_room aeg_act_room_at(const aeg_act_room *room, uint64_t element); /* a multiple of the block, of MIN_ACT_BLOCK at least */
aeg_acts aeg_acts_from(const aeg_acts *acts, uint32_t row);

/* Activation block that a weight type wants: min(group, 64); ggml types: 32; plain types: 64. */
uint32_t aeg_act_block(aeg_weight_type type);

typedef struct {
    const aeg_weights *w;
    float *y;              /* [n, y_stride] */
    size_t y_stride;
    bool exact;
    float *add;            /* [n, y_stride] y is added to this afterwards, or NULL */
} aeg_linear_out;

enum { AEG_LINEAR_MAX = 8 };

/* All outs[i].w have n_cols columns; n_outs <= AEG_LINEAR_MAX; n >= 1. */
void aeg_linear(const aeg_compute *c, const aeg_act_room *room, const float *x, uint32_t n, uint32_t n_cols,
                const aeg_linear_out *outs, uint32_t n_outs);

#endif
