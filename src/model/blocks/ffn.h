/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/ffn.h - the ordinary feed-forward network of a layer without experts, from resident weights.
 *
 *   x += down(silu(gate u) * up u)
 * One expert that all tokens choose: it runs in the waves of moe_wave.h, in the room of the experts. It is many times wider
 * than they are, so a long chunk goes in pieces; the pieces never show in the bits.
 */
#ifndef AEG_MODEL_BLOCKS_FFN_H
#define AEG_MODEL_BLOCKS_FFN_H

#include "model/blocks/moe.h"

/* u, x [n, hidden]; w has the dense matrices. */
void aeg_ffn_forward(const aeg_moe *m, const aeg_layer_weights *w, const float *u, uint32_t n, float *x);

#endif
