/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/moe_wave.h - a wave: some experts computed together, in two steps of the team.
 *
 * Step one is gate, up and silu(gate) * up, and the codes of the result that the down matrices read: its units are the
 * rows of one activation block, so a unit finishes its codes alone. Step two is down, then the sums: its units are row
 * blocks of the output, and a thread has everything that is added to its columns. Two barriers, however many experts.
 * The shared expert is a view like the others whose tokens are all tokens and whose output has its own rows.
 */
#ifndef AEG_MODEL_BLOCKS_MOE_WAVE_H
#define AEG_MODEL_BLOCKS_MOE_WAVE_H

#include "model/blocks/linear.h"
#include "model/blocks/routes.h"

enum { AEG_WAVE_VIEWS = 64 };

/* An expert and the tokens that it meets. */
typedef struct {
    aeg_weights gate, up, down; /* gate and up may be interleaved by row block: up.data one block after gate.data */
    const uint32_t *token;      /* [n] rows of the input, or NULL for 0..n-1 */
    uint32_t n;
    float *y;                   /* [n][hidden] its output */
    size_t row0;                /* set by the run: its first row in the buffers, */
    uint32_t first_unit;        /* and its first unit of step one                */
} aeg_wave_view;

/* What is added once the outputs of the wave are there. For each column: acc = 0 if `clear`; the routes in [route0,
 * route1) in that order, acc += weight * y; with `finish` acc += sigmoid(shared_logit) * shared, or + shared without a
 * gate, then x += acc. */
typedef struct {
    bool clear, finish;
    const aeg_routes *routes;
    uint32_t route0, route1;
    const float *y;             /* [route1 - route0][hidden]     */
    float *acc;                 /* [n][hidden]                   */
    const float *shared;        /* [n][hidden], or NULL          */
    const float *shared_logit;  /* [n], or NULL: no gate         */
    float *x;                   /* [n][hidden]                   */
    uint32_t n;
} aeg_wave_sums;

/* Room for `rows` hidden rows. Rows of all widths lie `stride` apart: the widest expert's, rounded up. */
typedef struct {
    uint32_t stride;
    float *gate_up;         /* [rows][2 * stride] */
    float *h;               /* [rows][stride]     */
    aeg_act_room room;      /* codes of h         */
} aeg_wave_scratch;

void aeg_wave_scratch_init(aeg_wave_scratch *s, aeg_arena *arena, aeg_act_kind act, uint64_t rows, uint32_t width);

/* The room of `rows` rows for a network of this width: as many rows as it has then, which is returned. */
uint32_t aeg_wave_widen(aeg_wave_scratch *s, uint32_t rows, uint32_t width);

/* Can experts of these types share a wave? They must read the same codes. */
bool aeg_wave_alike(const aeg_wave_view *a, const aeg_wave_view *b);

/* views [n_views <= AEG_WAVE_VIEWS], all alike; u: the input rows in the form that their gate matrices read
 * (aeg_wave_input). hidden: outputs of the down matrices. */
void aeg_wave_run(const aeg_compute *c, aeg_wave_scratch *s, const aeg_acts *u, aeg_wave_view *views, uint32_t n_views,
                  uint32_t hidden, const aeg_wave_sums *sums);

/* Rows [0, n) of u [n, n_cols] as the gate and up matrices of `view` read them. */
aeg_acts aeg_wave_input(const aeg_compute *c, const aeg_act_room *room, const float *u, uint32_t n,
                        const aeg_wave_view *view);

#endif
