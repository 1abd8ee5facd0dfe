/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/planes.h - where a code sits in a plane group, and the header of a tile; shared by packing and by
 * the matmuls of every ISA.
 *
 * A code of `bits` bits is a low part and a high part of 8+0, 4+0, 4+1, 4+2, 2+0 or 2+1 bits. The planes of the
 * low part come first, low_bits vectors of 64 bytes, then high_bits vectors of the high part. In both, a part
 * w bits wide of quad j (columns 4j..4j+3) sits in vector j*w/8 at bit j*w%8 of byte 4*lane + column%4. */
#ifndef AEG_KERNELS_PLANES_H
#define AEG_KERNELS_PLANES_H

#include "kernels/half.h"
#include "kernels/weights.h"

enum { AEG_F8_HEADER = 4 * AEG_ROWS /* bytes of the scales of an F8 tile */, AEG_QUADS = AEG_PLANE_COLS / 4, AEG_PLANE_BYTES = 64, AEG_STRIP = 8 /* tokens that share an expansion */ };

static inline uint32_t aeg_low_bits(uint32_t bits) { return bits == 8 ? 8 : bits >= 4 ? 4 : 2; }

static inline uint32_t aeg_scale_bytes(uint32_t scale_kind) { return scale_kind == AEG_W_F32 ? 4 : 2; }

/* Bytes of the 16 scales and 16 biases before the planes. */
static inline size_t aeg_header_bytes(aeg_weight_type type)
{
    return (size_t)2 * AEG_ROWS * aeg_scale_bytes(type.scale_kind);
}

/* One element of an array of stored floats of kind AEG_W_F32, AEG_W_F16 or AEG_W_BF16. */
static inline float aeg_stored_float(uint32_t kind, const uint8_t *p, size_t i)
{
    uint32_t u;
    uint16_t h;
    if (kind == AEG_W_F32) {
        memcpy(&u, p + 4 * i, sizeof u);
        return aeg_f32_from_bits(u);
    }
    memcpy(&h, p + 2 * i, sizeof h);
    return kind == AEG_W_F16 ? aeg_f32_from_f16(h) : aeg_f32_from_bf16(h);
}

/* The code of row `lane`, column `col` of 32, of one plane group. */
static inline uint32_t aeg_plane_code(uint32_t bits, const uint8_t *planes, uint32_t lane, uint32_t col)
{
    const uint32_t low = aeg_low_bits(bits), high = bits - low, quad = col / 4;
    const uint8_t *byte = planes + 4 * lane + col % 4;
    uint32_t code = (byte[quad * low / 8 * AEG_PLANE_BYTES] >> (quad * low % 8)) & ((1u << low) - 1);
    byte += low * AEG_PLANE_BYTES;
    if (high)
        code |= ((byte[quad * high / 8 * AEG_PLANE_BYTES] >> (quad * high % 8)) & ((1u << high) - 1)) << low;
    return code;
}

#endif
