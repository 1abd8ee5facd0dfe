/* SPDX-License-Identifier: Apache-2.0 */
/* model/rope.h - cosines and sines of rotary positions.
 *
 * Frequencies theta^(-2i/dim), with YaRN divided by its factor from the slow ones on (arXiv 2309.00071), are rounded to f32 and angles are f32 products, as the reference
 * implementation does; sin and cos are our own (double, fixed operations), so every machine gets the same bits.
 */
#ifndef AEG_MODEL_ROPE_H
#define AEG_MODEL_ROPE_H

#include <stdint.h>

#include "base/arena.h"
#include "format/hparams.h"

typedef struct {
    uint32_t half;         /* rope_dim / 2: pairs */
    float scale;           /* of cos and sin: 1, or YaRN's m(mscale) / m(mscale_all) */
    float *inv_freq;       /* [half]        */
    float *cos, *sin;      /* [chunk][half] */
} aeg_rope;

void aeg_rope_init(aeg_rope *rope, aeg_arena *arena, const aeg_hparams *hp, uint32_t chunk);

/* Fill rows 0..n-1 for positions pos0.. (text: all position axes are equal). n <= chunk. */
void aeg_rope_fill(aeg_rope *rope, uint32_t pos0, uint32_t n);

/* Correct to about 1e-9 for |angle| < 2^30; exposed for its test. */
void aeg_sincos(float angle, float *sin_out, float *cos_out);

#endif
