/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/kv_codes.h - keys and values as codes: how a row is packed and where its bytes lie (ADR 0006).
 *
 * A row of head_dim = d elements, already rotated, is `scale * code[e]`, code in -127..127:
 *   q8  byte e is the code
 *   t4  16-entry table; byte e/2 holds the index of element e: even elements in the low nibble
 *   t3  8-entry table; bits 2*(e%4) of byte e/4 hold the low two bits of the index, then bit e%8 of byte d/4 + e/8
 *       its top bit
 * Rows are interleaved, so that one register holds the same piece of several positions:
 *   keys    16 positions; their 4-byte pieces i lie side by side: byte b of position p at
 *           (p/16)*16*row + (b/4)*64 + (p%16)*4 + b%4. A 4-byte piece (after expansion) is one operand of an int8
 *           dot, so scores come out one position per lane.
 *   values  4 positions, byte by byte: (p/4)*4*row + b*4 + p%4. A lane is an element, its bytes four positions.
 * Thread: any.
 */
#ifndef AEG_KERNELS_KV_CODES_H
#define AEG_KERNELS_KV_CODES_H

#include "kernels/attention.h"

enum { AEG_KV_KEY_GROUP = 16, AEG_KV_VALUE_GROUP = 4 };
enum { AEG_KV_MIN_CODED_DIM = 64, AEG_KV_MAX_CODED_DIM = 512 };

/* Lloyd-Max centroids of N(0,1) as int8; times the unit they are the float codebook within 1 % of a step
 * (spec/turboquant.md section 2). */
static const int8_t aeg_kv_table4[16] = { -127, -96, -75, -58, -44, -31, -18, -6, 6, 18, 31, 44, 58, 75, 96, 127 };
static const int8_t aeg_kv_table3[16] = { -127, -79, -45, -14, 14, 45, 79, 127 }; /* a register's worth; 8 used */

static inline uint32_t aeg_kv_row_bytes(aeg_kv_kind kind, uint32_t d)
{
    switch (kind) {
    case AEG_KV_F32: return d * 4;
    case AEG_KV_F16: return d * 2;
    case AEG_KV_Q8: return d;
    case AEG_KV_T4: return d / 2;
    default: return d / 8 * 3;
    }
}

static inline size_t aeg_kv_key_at(uint32_t row_bytes, uint32_t pos, uint32_t b)
{
    return (size_t)(pos / 16) * 16 * row_bytes + (size_t)(b / 4) * 64 + pos % 16 * 4 + b % 4;
}

static inline size_t aeg_kv_value_at(uint32_t row_bytes, uint32_t pos, uint32_t b)
{
    return (size_t)(pos / 4) * 4 * row_bytes + (size_t)b * 4 + pos % 4;
}

/* The element whose code is at place i of a query: the order in which a key's codes come out of its bytes when
 * each piece of 4 bytes is split into nibbles or pairs of bits, low ones first. */
static inline uint32_t aeg_kv_place(aeg_kv_kind kind, uint32_t i)
{
    if (kind == AEG_KV_T4)
        return i / 8 * 8 + i % 4 * 2 + i / 4 % 2;
    if (kind == AEG_KV_T3)
        return i / 16 * 16 + i % 4 * 4 + i / 4 % 4;
    return i;
}

#endif
