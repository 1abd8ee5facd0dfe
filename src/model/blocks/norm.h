/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks/norm.h - RMS norm of several rows, split over the team by row. */
#ifndef AEG_MODEL_BLOCKS_NORM_H
#define AEG_MODEL_BLOCKS_NORM_H

#include "model/blocks/linear.h"

/* y[n, width] = rmsnorm(rows of x) * w. y may be x if the rows of x, x_stride floats apart, are next to each other. */
void aeg_norm_rows(const aeg_compute *c, float *y, const float *x, size_t x_stride, const float *w, uint32_t n,
                   uint32_t width, float eps);

#endif
