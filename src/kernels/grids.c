/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/grids.h"

#include "kernels/grids.inc.h"

/* Level -> magnitude: 8, 25, 43; 4, 12, 20, 28, 36, 44, 52, 62; 1, 3, 5 .. 15. */
#define IQ2_LEVEL(l) (8u + 17u * (l) + ((l) == 2u ? 1u : 0u))
#define IQ3_XXS_LEVEL(l) (4u + 8u * (l) + ((l) == 7u ? 2u : 0u))
#define IQ3_S_LEVEL(l) (1u + 2u * (l))

#define FOUR(level, word, bits)                                                                   \
    (level((word) & ((1u << (bits)) - 1)) | level(((word) >> (bits)) & ((1u << (bits)) - 1)) << 8 | \
     level(((word) >> 2 * (bits)) & ((1u << (bits)) - 1)) << 16 |                                  \
     level(((word) >> 3 * (bits)) & ((1u << (bits)) - 1)) << 24)

#define IQ2_POINT(word) FOUR(IQ2_LEVEL, word##u, 2), FOUR(IQ2_LEVEL, word##u >> 8, 2),
#define IQ3_XXS_POINT(word) FOUR(IQ3_XXS_LEVEL, word##u, 3),
#define IQ3_S_POINT(word) FOUR(IQ3_S_LEVEL, word##u, 3),

const uint32_t aeg_grid_iq2_xxs[2 * 256] = { AEG_IQ2_XXS_POINTS(IQ2_POINT) };
const uint32_t aeg_grid_iq2_xs[2 * 512] = { AEG_IQ2_XS_POINTS(IQ2_POINT) };
const uint32_t aeg_grid_iq2_s[2 * 1024] = { AEG_IQ2_S_POINTS(IQ2_POINT) };
const uint32_t aeg_grid_iq3_xxs[256] = { AEG_IQ3_XXS_POINTS(IQ3_XXS_POINT) };
const uint32_t aeg_grid_iq3_s[512] = { AEG_IQ3_S_POINTS(IQ3_S_POINT) };
