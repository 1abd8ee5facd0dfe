/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/blocks.h"

#include <math.h>

#include "kernels/grids.h"
#include "kernels/planes.h"

/* -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113, each plus 128 */
const uint8_t aeg_iq4_codes[16] = { 1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241 };
/* 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12, each plus 16; code 8 is a zero */
const uint8_t aeg_fp4_codes[16] = { 16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4 };

enum { HALVES = 2 * AEG_ROWS };

static float half(const uint8_t *p, uint32_t lane) { return aeg_stored_float(AEG_W_F16, p, lane); }

static uint32_t word(const uint8_t *p, uint32_t lane)
{
    uint32_t u;
    memcpy(&u, p + 4 * (size_t)lane, sizeof u);
    return u;
}

/* --- scales -------------------------------------------------------------------------------------------------- */

/* Half of 2^(e-127), since the codes are doubled; e = 255 is refused when packing. */
static float fp4_scale(uint32_t e) { return aeg_f32_from_bits(e < 2 ? 0x00200000u << e : (e - 1) << 23); }

/* 2n+1 steps of the grid types: d times (n + 1/2) / 4, / 2, or d times (2n + 1). */
static float odd_scale(float d, uint32_t n, float step) { return d * ((float)(2 * n + 1) * step); }

static uint32_t q3_k_scale(const uint8_t *tile, uint32_t j, uint32_t lane)
{
    const uint8_t *low = tile + HALVES, *high = low + 128;
    return (low[16 * (j / 2) + lane] >> 4 * (j % 2) & 15u) | (high[16 * (j / 4) + lane] >> 2 * (j % 4) & 3u) << 4;
}

static float scale_of(uint32_t kind, const uint8_t *tile, const uint8_t *codes, uint32_t k, uint32_t h, uint32_t lane)
{
    const float d = kind == AEG_W_MXFP4 ? fp4_scale(tile[lane]) : half(tile, lane);
    switch (kind) {
    case AEG_W_Q2_K: return d * (float)(tile[2 * HALVES + 16 * (2 * k + h) + lane] & 15);
    case AEG_W_Q3_K: return d * (float)((int32_t)q3_k_scale(tile, 2 * k + h, lane) - 32);
    case AEG_W_Q4_K:
    case AEG_W_Q5_K: return d * (float)tile[2 * HALVES + 32 * k + lane];
    case AEG_W_Q6_K: return d * (float)(int8_t)tile[HALVES + 16 * (2 * k + h) + lane];
    case AEG_W_IQ4_XS: return d * (float)((int32_t)tile[HALVES + 16 * k + lane] - 32);
    case AEG_W_IQ3_XXS: return odd_scale(d, word(codes + 128, lane) >> 28, 0.25f);
    case AEG_W_IQ3_S: return odd_scale(d, tile[HALVES + 16 * (k / 2) + lane] >> 4 * (k % 2) & 15u, 1.0f);
    case AEG_W_IQ2_XXS: return odd_scale(d, word(codes + 64, lane) >> 28, 0.125f);
    case AEG_W_IQ2_XS:
    case AEG_W_IQ2_S: return odd_scale(d, tile[HALVES + 16 * k + lane] >> 4 * h & 15u, 0.125f);
    default: return d;
    }
}

static float bias_of(uint32_t kind, const uint8_t *tile, uint32_t k, uint32_t h, uint32_t lane)
{
    const float m = half(tile + HALVES, lane);
    switch (kind) {
    case AEG_W_Q4_1:
    case AEG_W_Q5_1: return m;
    case AEG_W_Q2_K: return -(m * (float)(tile[2 * HALVES + 16 * (2 * k + h) + lane] >> 4));
    default: return -(m * (float)tile[2 * HALVES + 32 * k + 16 + lane]); /* Q4_K, Q5_K */
    }
}

/* --- grids ----------------------------------------------------------------------------------------------------- */

/* The eighth sign makes the number of minus signs even. */
static uint32_t signs_of_7(uint32_t v)
{
    uint32_t parity = v ^ v >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return v | (parity & 1) << 7;
}

/* The signs of group l (8 columns). */
static uint32_t grid_signs(uint32_t kind, const uint8_t *codes, uint32_t l, uint32_t lane)
{
    switch (kind) {
    case AEG_W_IQ2_XXS: return signs_of_7(word(codes + 64, lane) >> 7 * l & 127);
    case AEG_W_IQ2_XS: return signs_of_7(word(codes + 64 * (l / 2), lane) >> (16 * (l % 2) + 9) & 127);
    case AEG_W_IQ2_S: return word(codes + 64, lane) >> 8 * l & 255;
    case AEG_W_IQ3_XXS: return signs_of_7(word(codes + 128, lane) >> 7 * l & 127);
    default: return word(codes + 128, lane) >> 8 * l & 255;
    }
}

/* The four magnitudes of quad j. */
static uint32_t grid_quad(uint32_t kind, const uint8_t *codes, uint32_t j, uint32_t lane)
{
    const uint32_t l = j / 2;
    switch (kind) {
    case AEG_W_IQ2_XXS: return aeg_grid_iq2_xxs[2 * (word(codes, lane) >> 8 * l & 255) + j % 2];
    case AEG_W_IQ2_XS: return aeg_grid_iq2_xs[2 * (word(codes + 64 * (l / 2), lane) >> 16 * (l % 2) & 511) + j % 2];
    case AEG_W_IQ2_S:
        return aeg_grid_iq2_s[2 * ((word(codes, lane) >> 8 * l & 255) | (codes[128 + lane] >> 2 * l & 3u) << 8) + j % 2];
    case AEG_W_IQ3_XXS: return aeg_grid_iq3_xxs[word(codes + 64 * (j / 4), lane) >> 8 * (j % 4) & 255];
    default: return aeg_grid_iq3_s[(word(codes + 64 * (j / 4), lane) >> 8 * (j % 4) & 255) | (codes[192 + lane] >> j & 1u) << 8];
    }
}

static void grid_codes(int8_t *out, uint32_t kind, const uint8_t *codes, uint32_t lane)
{
    for (uint32_t j = 0; j < AEG_QUADS; j++) {
        const uint32_t quad = grid_quad(kind, codes, j, lane);
        const uint32_t signs = grid_signs(kind, codes, j / 2, lane) >> 4 * (j % 2);
        for (uint32_t t = 0; t < 4; t++) {
            const int32_t magnitude = (int32_t)(quad >> 8 * t & 255);
            out[4 * j + t] = (int8_t)(signs >> t & 1 ? -magnitude : magnitude);
        }
    }
}

/* --- pieces ---------------------------------------------------------------------------------------------------- */

void aeg_block_piece(aeg_piece *out, uint32_t kind, const uint8_t *tile, uint32_t piece, uint32_t lane)
{
    const aeg_block_shape s = aeg_block_shape_of(kind);
    const uint8_t *codes = tile + s.header + (size_t)piece * s.piece, *lookup = aeg_block_lookup(kind);
    for (uint32_t h = 0; h < AEG_MAX_SUBS; h++) {
        out->scale[h] = scale_of(kind, tile, codes, piece, h, lane);
        out->bias[h] = s.bias ? bias_of(kind, tile, piece, h, lane) : 0.0f;
    }
    if (s.bits == 0) {
        grid_codes(out->code, kind, codes, lane);
        return;
    }
    for (uint32_t c = 0; c < AEG_PLANE_COLS; c++) {
        const uint32_t u = aeg_plane_code(s.bits, codes, lane, c);
        out->code[c] = (int8_t)((int32_t)(lookup ? lookup[u] : u) - s.offset);
    }
}

void aeg_piece_values(const aeg_piece *p, float *out)
{
    for (uint32_t c = 0; c < AEG_PLANE_COLS; c++)
        out[c] = fmaf(p->scale[c / AEG_SUM_COLS], (float)p->code[c], p->bias[c / AEG_SUM_COLS]);
}
