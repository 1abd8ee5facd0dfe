/* SPDX-License-Identifier: Apache-2.0 */
/* block_moves.c - where each field of a ggml block goes in its tile. A type is a list of moves of 1 to 8 bits; packing
 * follows them forwards, unpacking backwards, so what is packed comes back bit for bit. Source layouts: the block
 * structs of ggml. */
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/planes.h"

enum { MAX_MOVES = 560, HALVES = 2 * AEG_ROWS /* bytes of 16 f16 numbers */ };

typedef struct {
    uint16_t from, to;      /* byte of the block; byte of the tile for lane 0 */
    uint8_t lane_bytes;     /* from one lane to the next in the tile          */
    uint8_t from_shift, to_shift, mask, flip;
} move;

typedef struct {
    uint32_t n;
    aeg_block_shape shape;
    move m[MAX_MOVES];
} moves;

static void add(moves *ms, move m) { ms->m[ms->n++] = m; }

/* n whole bytes that stay together; the next lane's follow them. */
static void add_bytes(moves *ms, uint32_t from, uint32_t to, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        add(ms, (move){ .from = (uint16_t)(from + i), .to = (uint16_t)(to + i), .lane_bytes = (uint8_t)n, .mask = 0xff });
}

/* A field of a byte per lane. */
static void add_field(moves *ms, uint32_t from, uint32_t from_shift, uint32_t bits, uint32_t to, uint32_t to_shift)
{
    add(ms, (move){ .from = (uint16_t)from, .to = (uint16_t)to, .lane_bytes = 1, .from_shift = (uint8_t)from_shift,
                    .to_shift = (uint8_t)to_shift, .mask = (uint8_t)((1u << bits) - 1) });
}

/* The low (first = 0) or high part of a code, `bits` wide, of one column: kernels/planes.h. */
static void add_part(moves *ms, uint32_t col, uint32_t from, uint32_t from_shift, uint32_t first, uint32_t bits)
{
    const uint32_t quad = col % AEG_PLANE_COLS / 4, plane = first + quad * bits / 8;
    const uint32_t to = ms->shape.header + col / AEG_PLANE_COLS * ms->shape.piece + plane * AEG_PLANE_BYTES + col % 4;
    add(ms, (move){ .from = (uint16_t)from, .to = (uint16_t)to, .lane_bytes = 4, .from_shift = (uint8_t)from_shift,
                    .to_shift = (uint8_t)(quad * bits % 8), .mask = (uint8_t)((1u << bits) - 1),
                    .flip = bits == 8 ? 0x80 : 0 });
}

static void add_low(moves *ms, uint32_t col, uint32_t from, uint32_t from_shift)
{
    add_part(ms, col, from, from_shift, 0, aeg_low_bits(ms->shape.bits));
}

static void add_high(moves *ms, uint32_t col, uint32_t from, uint32_t from_shift)
{
    const uint32_t low = aeg_low_bits(ms->shape.bits);
    add_part(ms, col, from, from_shift, low, ms->shape.bits - low);
}

/* --- blocks of 32 --------------------------------------------------------------------------------------------- */

static void q8_0(moves *ms)
{
    add_bytes(ms, 0, 0, 2);
    for (uint32_t i = 0; i < 32; i++)
        add_low(ms, i, 2 + i, 0);
}

/* Byte j has element j in its low and element j + 16 in its high nibble; `fifth` is the place of the top bits. */
static void nibbles(moves *ms, uint32_t n_halves, uint32_t fifth, uint32_t at)
{
    for (uint32_t i = 0; i < n_halves; i++)
        add_bytes(ms, 2 * i, i * HALVES, 2);
    for (uint32_t i = 0; i < 32; i++) {
        add_low(ms, i, at + i % 16, i / 16 * 4);
        if (fifth)
            add_high(ms, i, fifth + i / 8, i % 8);
    }
}

static void mxfp4(moves *ms)
{
    add_bytes(ms, 0, 0, 1);
    nibbles(ms, 0, 0, 1);
}

/* --- K-quants --------------------------------------------------------------------------------------------------- */

static void q2_k(moves *ms)
{
    add_bytes(ms, 80, 0, 2);
    add_bytes(ms, 82, HALVES, 2);
    for (uint32_t j = 0; j < 16; j++)
        add_field(ms, j, 0, 8, 2 * HALVES + 16 * j, 0);
    for (uint32_t i = 0; i < 256; i++)
        add_low(ms, i, 16 + 32 * (i / 128) + i % 32, 2 * (i / 32 % 4));
}

/* The 6-bit scales stay packed (nibbles of two neighbours, top bits of four): whole bytes would be 3.6 % more. */
static void q3_k(moves *ms)
{
    add_bytes(ms, 108, 0, 2);
    for (uint32_t j = 0; j < 16; j++) {
        add_field(ms, 96 + j % 8, 4 * (j / 8), 4, HALVES + 16 * (j / 2), 4 * (j % 2));
        add_field(ms, 104 + j % 4, 2 * (j / 4), 2, HALVES + 128 + 16 * (j / 4), 2 * (j % 4));
    }
    for (uint32_t i = 0; i < 256; i++) {
        add_low(ms, i, 32 + 32 * (i / 128) + i % 32, 2 * (i / 32 % 4));
        add_high(ms, i, i % 32, i / 32);
    }
}

/* d, dmin, and eight pairs of 6-bit scale and min, whole bytes each. */
static void q4_k_header(moves *ms)
{
    add_bytes(ms, 0, 0, 2);
    add_bytes(ms, 2, HALVES, 2);
    for (uint32_t k = 0; k < 8; k++) {
        const uint32_t scale = 2 * HALVES + 32 * k, min = scale + 16;
        if (k < 4) {
            add_field(ms, 4 + k, 0, 6, scale, 0);
            add_field(ms, 8 + k, 0, 6, min, 0);
            continue;
        }
        add_field(ms, 8 + k, 0, 4, scale, 0);
        add_field(ms, k, 6, 2, scale, 4);
        add_field(ms, 8 + k, 4, 4, min, 0);
        add_field(ms, 4 + k, 6, 2, min, 4);
    }
}

static void q4_k(moves *ms)
{
    q4_k_header(ms);
    for (uint32_t i = 0; i < 256; i++)
        add_low(ms, i, 16 + 32 * (i / 64) + i % 32, 4 * (i / 32 % 2));
}

static void q5_k(moves *ms)
{
    q4_k_header(ms);
    for (uint32_t i = 0; i < 256; i++) {
        add_low(ms, i, 48 + 32 * (i / 64) + i % 32, 4 * (i / 32 % 2));
        add_high(ms, i, 16 + i % 32, i / 32);
    }
}

static void q6_k(moves *ms)
{
    add_bytes(ms, 208, 0, 2);
    for (uint32_t j = 0; j < 16; j++)
        add_field(ms, 192 + j, 0, 8, HALVES + 16 * j, 0);
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t half = i / 128, g = i % 128 / 32, l = i % 32;
        add_low(ms, i, 64 * half + 32 * (g % 2) + l, 4 * (g / 2));
        add_high(ms, i, 128 + 32 * half + l, 2 * g);
    }
}

static void iq4_xs(moves *ms)
{
    add_bytes(ms, 0, 0, 2);
    for (uint32_t k = 0; k < 8; k++) {
        add_field(ms, 4 + k / 2, 4 * (k % 2), 4, HALVES + 16 * k, 0);
        add_field(ms, 2 + k / 4, 2 * (k % 4), 2, HALVES + 16 * k, 4);
    }
    for (uint32_t i = 0; i < 256; i++)
        add_low(ms, i, 8 + 16 * (i / 32) + i % 16, i % 32 / 16 * 4);
}

/* --- grids: lane r holds the indices and signs of row r as 32-bit words ---------------------------------------- */

/* `n` words of 4 bytes of each piece: source at from + k * from_step, in the piece at to. */
static void add_words(moves *ms, uint32_t from, uint32_t from_step, uint32_t to, uint32_t n)
{
    for (uint32_t k = 0; k < 8; k++)
        for (uint32_t i = 0; i < n; i++)
            add_bytes(ms, from + k * from_step + 4 * i, ms->shape.header + k * ms->shape.piece + to + 64 * i, 4);
}

/* One byte of each of n pieces (or pairs of pieces), at `to` of the tile, `to_step` on for the next. */
static void add_piece_bytes(moves *ms, uint32_t from, uint32_t to, uint32_t to_step, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        add_bytes(ms, from + k, to + k * to_step, 1);
}

static void iq2_xxs(moves *ms)
{
    add_bytes(ms, 0, 0, 2);
    add_words(ms, 2, 8, 0, 2);
}

static void iq2_xs(moves *ms)
{
    add_bytes(ms, 0, 0, 2);
    add_piece_bytes(ms, 66, HALVES, 16, 8);
    add_words(ms, 2, 8, 0, 2);
}

static void iq2_s(moves *ms)
{
    add_bytes(ms, 0, 0, 2);
    add_piece_bytes(ms, 74, HALVES, 16, 8);
    add_words(ms, 2, 4, 0, 1);
    add_words(ms, 34, 4, 64, 1);
    add_piece_bytes(ms, 66, ms->shape.header + 128u, ms->shape.piece, 8);
}

static void iq3_xxs(moves *ms)
{
    add_bytes(ms, 0, 0, 2);
    add_words(ms, 2, 8, 0, 2);
    add_words(ms, 66, 4, 128, 1);
}

static void iq3_s(moves *ms)
{
    add_bytes(ms, 0, 0, 2);
    add_piece_bytes(ms, 106, HALVES, 16, 4);
    add_words(ms, 2, 8, 0, 2);
    add_words(ms, 74, 4, 128, 1);
    add_piece_bytes(ms, 66, ms->shape.header + 192u, ms->shape.piece, 8);
}

static void make_moves(moves *ms, uint32_t kind)
{
    ms->n = 0;
    ms->shape = aeg_block_shape_of(kind);
    switch (kind) {
    case AEG_W_Q8_0: q8_0(ms); break;
    case AEG_W_Q4_0: nibbles(ms, 1, 0, 2); break;
    case AEG_W_Q4_1: nibbles(ms, 2, 0, 4); break;
    case AEG_W_Q5_0: nibbles(ms, 1, 2, 6); break;
    case AEG_W_Q5_1: nibbles(ms, 2, 4, 8); break;
    case AEG_W_Q2_K: q2_k(ms); break;
    case AEG_W_Q3_K: q3_k(ms); break;
    case AEG_W_Q4_K: q4_k(ms); break;
    case AEG_W_Q5_K: q5_k(ms); break;
    case AEG_W_Q6_K: q6_k(ms); break;
    case AEG_W_IQ4_NL: nibbles(ms, 1, 0, 2); break;
    case AEG_W_IQ4_XS: iq4_xs(ms); break;
    case AEG_W_MXFP4: mxfp4(ms); break;
    case AEG_W_IQ3_XXS: iq3_xxs(ms); break;
    case AEG_W_IQ3_S: iq3_s(ms); break;
    case AEG_W_IQ2_XXS: iq2_xxs(ms); break;
    case AEG_W_IQ2_XS: iq2_xs(ms); break;
    default: iq2_s(ms); break;
    }
}

/* --- using them -------------------------------------------------------------------------------------------------- */

static bool finite_half(const uint8_t *p) { return (p[1] & 0x7c) != 0x7c; }

static bool scales_finite(uint32_t kind, const uint8_t *block)
{
    switch (kind) {
    case AEG_W_MXFP4: return block[0] != 0xff;
    case AEG_W_Q2_K: return finite_half(block + 80) && finite_half(block + 82);
    case AEG_W_Q3_K: return finite_half(block + 108);
    case AEG_W_Q6_K: return finite_half(block + 208);
    case AEG_W_Q4_1:
    case AEG_W_Q5_1:
    case AEG_W_Q4_K:
    case AEG_W_Q5_K: return finite_half(block) && finite_half(block + 2);
    default: return finite_half(block);
    }
}

bool aeg_blocks_pack_lane(uint32_t kind, const uint8_t *source, uint32_t n_cols, uint32_t lane, uint8_t *dst)
{
    moves ms;
    make_moves(&ms, kind);
    const size_t tile = aeg_block_tile_bytes(ms.shape);
    for (uint32_t col = 0; col < n_cols; col += ms.shape.cols, source += ms.shape.source, dst += tile) {
        if (!scales_finite(kind, source))
            return false;
        for (const move *m = ms.m, *end = ms.m + ms.n; m < end; m++) {
            uint8_t *to = dst + m->to + lane * m->lane_bytes;
            *to = (uint8_t)(*to | (((source[m->from] >> m->from_shift) & m->mask) ^ m->flip) << m->to_shift);
        }
    }
    return true;
}

void aeg_blocks_unpack_lane(uint32_t kind, const uint8_t *src, uint32_t n_cols, uint32_t lane, uint8_t *source)
{
    moves ms;
    make_moves(&ms, kind);
    const size_t tile = aeg_block_tile_bytes(ms.shape);
    memset(source, 0, (size_t)n_cols / ms.shape.cols * ms.shape.source);
    for (uint32_t col = 0; col < n_cols; col += ms.shape.cols, source += ms.shape.source, src += tile)
        for (const move *m = ms.m, *end = ms.m + ms.n; m < end; m++) {
            const uint32_t field = ((src[m->to + lane * m->lane_bytes] >> m->to_shift) & m->mask) ^ m->flip;
            source[m->from] = (uint8_t)(source[m->from] | field << m->from_shift);
        }
}

void aeg_blocks_source_row(uint32_t kind, const uint8_t *source, uint32_t n_cols, float *out)
{
    enum { MAX_TILE = 3360 };
    uint8_t tile[MAX_TILE];
    aeg_piece p;
    moves ms;
    make_moves(&ms, kind);
    const size_t bytes = aeg_block_tile_bytes(ms.shape);
    for (uint32_t col = 0; col < n_cols; source += ms.shape.source) {
        memset(tile, 0, bytes);
        for (const move *m = ms.m, *end = ms.m + ms.n; m < end; m++)
            tile[m->to] = (uint8_t)(tile[m->to] |
                                    (((source[m->from] >> m->from_shift) & m->mask) ^ m->flip) << m->to_shift);
        for (uint32_t k = 0; k < ms.shape.cols / AEG_PLANE_COLS; k++, col += AEG_PLANE_COLS) {
            aeg_block_piece(&p, kind, tile, k, 0);
            aeg_piece_values(&p, out + col);
        }
    }
}
