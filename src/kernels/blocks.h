/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/blocks.h - the block types of ggml in the x16 layout: shapes of tiles, and the one formula of them all.
 *
 * A tile is 16 rows x one source block (32 or 256 columns): a header, then for every *piece* of 32 columns its
 * codes. Nothing is rounded or expanded but 6-bit scales of Q4_K and Q5_K, IQ4_XS (whole bytes here); the table in
 * docs/store-format.md names every byte, ADR 0008 says why. Each piece is read as
 *     value = scale * code + bias,   code = u - offset, u unsigned
 * with a scale (and bias) per `sub` = 16 or 32 columns; scale is d times the integer sub-scale, bias is m or
 * -(dmin * integer): all exact in f32 (f16 has 11 bits, sub-scales and codes together at most 13), so
 *     w = fmaf(scale, (float)code, bias)                                   bias +0 where there is none
 * is the format's value whatever order it names, and a product is one chain over the columns of a row:
 *     F32:      per column  y = fmaf(w, x, y)
 *     I8, I16:  per `sub` columns, activation blocks of 32:  y = fmaf(scale * d, (float)dot, y), dot = sum of code * q,
 *               an exact integer, scale * d rounded once; where the type has a bias: y = fmaf(bias, d * (float)sum, y),
 *               sum = sum of q over the same columns, the product rounded once.
 */
#ifndef AEG_KERNELS_BLOCKS_H
#define AEG_KERNELS_BLOCKS_H

#include "kernels/weights.h"

enum { AEG_BLOCK_MAX_COLS = 256, AEG_BLOCK_MAX_BYTES = 210, AEG_MAX_SUBS = 2 };

typedef struct {
    uint8_t bits;         /* of a code in planes; 0: a grid index stands for 4 or 8 codes          */
    uint8_t sub;          /* columns with one scale                                               */
    uint8_t offset;       /* code = u - offset                                                    */
    bool bias;
    uint16_t cols;        /* of a block, and of a tile                                            */
    uint16_t header;      /* bytes before the first piece                                         */
    uint16_t piece;       /* bytes of 16 rows x 32 columns of codes                               */
    uint16_t source;      /* bytes of a block of ggml                                             */
} aeg_block_shape;

/* Always inlined: with a constant kind everything below is a constant. */
static inline __attribute__((always_inline)) aeg_block_shape aeg_block_shape_of(uint32_t kind)
{
    switch (kind) { /*                           bits sub offset bias  cols header piece source */
    case AEG_W_Q8_0: return (aeg_block_shape){ 8, 32, 128, false, 32, 32, 512, 34 };
    case AEG_W_Q4_0: return (aeg_block_shape){ 4, 32, 8, false, 32, 32, 256, 18 };
    case AEG_W_Q4_1: return (aeg_block_shape){ 4, 32, 0, true, 32, 64, 256, 20 };
    case AEG_W_Q5_0: return (aeg_block_shape){ 5, 32, 16, false, 32, 32, 320, 22 };
    case AEG_W_Q5_1: return (aeg_block_shape){ 5, 32, 0, true, 32, 64, 320, 24 };
    case AEG_W_Q2_K: return (aeg_block_shape){ 2, 16, 0, true, 256, 320, 128, 84 };
    case AEG_W_Q3_K: return (aeg_block_shape){ 3, 16, 4, false, 256, 224, 192, 110 };
    case AEG_W_Q4_K: return (aeg_block_shape){ 4, 32, 0, true, 256, 320, 256, 144 };
    case AEG_W_Q5_K: return (aeg_block_shape){ 5, 32, 0, true, 256, 320, 320, 176 };
    case AEG_W_Q6_K: return (aeg_block_shape){ 6, 16, 32, false, 256, 288, 384, 210 };
    case AEG_W_IQ4_NL: return (aeg_block_shape){ 4, 32, 128, false, 32, 32, 256, 18 };
    case AEG_W_IQ4_XS: return (aeg_block_shape){ 4, 32, 128, false, 256, 160, 256, 136 };
    case AEG_W_MXFP4: return (aeg_block_shape){ 4, 32, 16, false, 32, 16, 256, 17 };
    case AEG_W_IQ3_XXS: return (aeg_block_shape){ 0, 32, 64, false, 256, 32, 192, 98 };
    case AEG_W_IQ3_S: return (aeg_block_shape){ 0, 32, 64, false, 256, 96, 208, 110 };
    case AEG_W_IQ2_XXS: return (aeg_block_shape){ 0, 32, 64, false, 256, 32, 128, 66 };
    case AEG_W_IQ2_XS: return (aeg_block_shape){ 0, 16, 64, false, 256, 160, 128, 74 };
    case AEG_W_IQ2_S: return (aeg_block_shape){ 0, 16, 64, false, 256, 160, 144, 82 };
    default: return (aeg_block_shape){ 0, 0, 0, false, 0, 0, 0, 0 };
    }
}

static inline size_t aeg_block_tile_bytes(aeg_block_shape s)
{
    return s.header + (size_t)s.cols / AEG_PLANE_COLS * s.piece;
}

/* Bytes of a row in the source. */
static inline size_t aeg_block_source_bytes(uint32_t kind, uint32_t n_cols)
{
    const aeg_block_shape s = aeg_block_shape_of(kind);
    return (size_t)n_cols / s.cols * s.source;
}

/* u of a 4-bit code where it is looked up: the codebook of IQ4 plus 128, twice the FP4 values plus 16. */
extern const uint8_t aeg_iq4_codes[16], aeg_fp4_codes[16];

static inline __attribute__((always_inline)) const uint8_t *aeg_block_lookup(uint32_t kind)
{
    return kind == AEG_W_IQ4_NL || kind == AEG_W_IQ4_XS ? aeg_iq4_codes : kind == AEG_W_MXFP4 ? aeg_fp4_codes : NULL;
}

/* --- slow and exact: packing, reading back, and the scalar products ------------------------------------------- */

/* Row `lane` of a row block from its n_cols/cols source blocks; the lane's bytes of dst must be zero. False if a
 * scale of a block is not a finite number. */
bool aeg_blocks_pack_lane(uint32_t kind, const uint8_t *source, uint32_t n_cols, uint32_t lane, uint8_t *dst);
/* And back: the same bytes. */
void aeg_blocks_unpack_lane(uint32_t kind, const uint8_t *src, uint32_t n_cols, uint32_t lane, uint8_t *source);

/* Columns [32*piece, 32*piece + 32) of one lane of a tile. */
typedef struct {
    int8_t code[AEG_PLANE_COLS];
    float scale[AEG_MAX_SUBS], bias[AEG_MAX_SUBS]; /* of each half; equal where sub is 32 */
} aeg_piece;
void aeg_block_piece(aeg_piece *out, uint32_t kind, const uint8_t *tile, uint32_t piece, uint32_t lane);
/* Its 32 values. */
void aeg_piece_values(const aeg_piece *p, float *out);

/* A row of source blocks as f32 [n_cols]. */
void aeg_blocks_source_row(uint32_t kind, const uint8_t *source, uint32_t n_cols, float *out);

#endif
