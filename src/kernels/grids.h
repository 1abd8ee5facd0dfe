/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/grids.h - the grid points of IQ2 and IQ3 as magnitudes: four bytes per word, element 0 lowest; a point of
 * IQ2 is two words, 2*index and 2*index + 1. Kernels look up by 32-bit word. */
#ifndef AEG_KERNELS_GRIDS_H
#define AEG_KERNELS_GRIDS_H

#include <stdint.h>

extern const uint32_t aeg_grid_iq2_xxs[2 * 256], aeg_grid_iq2_xs[2 * 512], aeg_grid_iq2_s[2 * 1024];
extern const uint32_t aeg_grid_iq3_xxs[256], aeg_grid_iq3_s[512];

#endif
