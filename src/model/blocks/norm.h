/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/norm.h - RMS norm of several rows, split over the team by row. */
#ifndef AEG_MODEL_BLOCKS_NORM_H
#define AEG_MODEL_BLOCKS_NORM_H

#include "model/blocks/linear.h"

/* y[n, width] = rmsnorm(x[n, width]) * w. y may be x. */
void aeg_norm_rows(const aeg_compute *c, float *y, const float *x, const float *w, uint32_t n, uint32_t width,
                   float eps);

#endif
