/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/hyper.h - hyper-connections: four residual streams in place of one (Xing4.0; formulas: kernels/hyper.h).
 *
 * A connection stands around each sublayer. Entering it: 24 gates from the token's four streams, and their weighted sum as the
 * sublayer's input. Leaving it: the streams are mixed and the result is added to each. Two passes of the team per
 * sublayer: the one that updates the streams also makes the dot products of the next connection from what it has just
 * written (fixed blocks of COLUMNS of every stream, summed in order, so that nothing depends on the threads); the other
 * adds those up, makes gates and sum, and normalises it.
 * Streams are f32, unbounded (1e5 and more in the release): never narrow them.
 */
#ifndef AEG_MODEL_BLOCKS_HYPER_H
#define AEG_MODEL_BLOCKS_HYPER_H

#include "format/hparams.h"
#include "model/blocks/linear.h"
#include "model/weights.h"

typedef struct {
    uint32_t n_parts;       /* blocks of columns */
    float *dots;            /* [chunk][n_parts][24] of a block of all streams with fn */
    float *squares;         /* [chunk][n_parts]                                       */
    aeg_hyper_gates *gates; /* [chunk] of the connection that was entered last        */
    float *collapsed;       /* [chunk][hidden] its input, before the norm             */
} aeg_hyper_scratch;

void aeg_hyper_scratch_init(aeg_hyper_scratch *s, aeg_arena *arena, const aeg_hparams *hp, uint32_t chunk);

typedef struct {
    const aeg_compute *c;
    const aeg_hparams *hp;
    aeg_hyper_scratch *s;
    float *x;               /* [n][4][hidden] */
    uint32_t n;
} aeg_hyper;

/* Leave the connection that was entered last with the sublayer's result y [n, hidden], and begin `next`. y NULL: the model's
 * beginning, nothing to leave; next NULL: its end. */
void aeg_hyper_leave(const aeg_hyper *h, const float *y, const aeg_hyper_weights *next);

/* Enter the connection `w`, which must be the one that was begun: u [n, hidden] = rmsnorm of the weighted streams. */
void aeg_hyper_enter(const aeg_hyper *h, const aeg_hyper_weights *w, const float *norm, float *u);

/* y [n, hidden] = mean of the streams: what the final norm reads. */
void aeg_hyper_mean(const aeg_hyper *h, float *y);

#endif
