/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/planes.h"

bool aeg_weight_type_valid(aeg_weight_type type)
{
    if (type.kind == AEG_W_F32 || type.kind == AEG_W_F16 || type.kind == AEG_W_BF16)
        return true;
    if (aeg_weight_is_block(type) || type.kind == AEG_W_F8)
        return type.bits == 0 && type.scale_kind == 0 && type.group == 0;
    if (type.kind != AEG_W_AFFINE)
        return false;
    const bool bits = (type.bits >= 2 && type.bits <= 6) || type.bits == 8;
    const bool group = type.group == 32 || type.group == 64 || type.group == 128;
    return bits && group && type.scale_kind <= AEG_W_BF16;
}

bool aeg_weight_type_equal(aeg_weight_type a, aeg_weight_type b)
{
    if (a.kind != b.kind)
        return false;
    return a.kind != AEG_W_AFFINE || (a.bits == b.bits && a.group == b.group && a.scale_kind == b.scale_kind);
}

static const char *const kind_names[AEG_N_WEIGHT_KINDS] = {
    "f32",  "f16",  "bf16", "affine", "q8_0",   "q4_0",   "q4_1",  "q5_0",    "q5_1",  "q2_k",    "q3_k",
    "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4", "iq3_xxs", "iq3_s", "iq2_xxs", "iq2_xs", "iq2_s",
    "f8_e4m3",
};

static const char *kind_name(uint32_t kind) { return kind < AEG_N_WEIGHT_KINDS ? kind_names[kind] : "?"; }

uint32_t aeg_weight_kind_named(const char *name)
{
    uint32_t kind = 0;
    while (kind < AEG_N_WEIGHT_KINDS && (kind == AEG_W_AFFINE || strcmp(kind_names[kind], name) != 0))
        kind++;
    return kind;
}

char *aeg_weight_type_text(char *out, aeg_weight_type type)
{
    if (type.kind == AEG_W_AFFINE)
        snprintf(out, AEG_TYPE_TEXT, "affine %u-bit g%u %s", type.bits, type.group, kind_name(type.scale_kind));
    else
        snprintf(out, AEG_TYPE_TEXT, "%s", kind_name(type.kind));
    return out;
}

uint32_t aeg_weight_col_step(aeg_weight_type type)
{
    if (aeg_weight_is_block(type))
        return aeg_block_shape_of(type.kind).cols;
    if (type.kind == AEG_W_F8)
        return AEG_F8_COLS;
    return type.kind == AEG_W_AFFINE ? type.group : AEG_PLANE_COLS;
}

size_t aeg_tile_bytes(aeg_weight_type type)
{
    if (aeg_weight_is_block(type))
        return aeg_block_tile_bytes(aeg_block_shape_of(type.kind));
    if (type.kind == AEG_W_F8)
        return AEG_F8_HEADER + AEG_F8_COLS * AEG_ROWS;
    if (type.kind != AEG_W_AFFINE)
        return (size_t)AEG_ROWS * aeg_scale_bytes(type.kind);
    return aeg_header_bytes(type) + (size_t)type.group / AEG_PLANE_COLS * AEG_PLANE_BYTES * type.bits;
}

size_t aeg_block_bytes(aeg_weight_type type, uint32_t n_cols)
{
    const uint32_t tile_cols = type.kind > AEG_W_BF16 ? aeg_weight_col_step(type) : 1;
    return n_cols / tile_cols * aeg_tile_bytes(type);
}

uint64_t aeg_matrix_bytes(aeg_weight_type type, uint32_t n_rows, uint32_t n_cols)
{
    return (uint64_t)aeg_row_blocks(n_rows) * aeg_block_bytes(type, n_cols);
}

/* Set one code in planes that hold zeros. */
static void put_code(uint32_t bits, uint8_t *planes, uint32_t lane, uint32_t col, uint32_t code)
{
    const uint32_t low = aeg_low_bits(bits), high = bits - low, quad = col / 4;
    uint8_t *byte = planes + 4 * lane + col % 4;
    uint8_t *at = byte + quad * low / 8 * AEG_PLANE_BYTES;
    *at = (uint8_t)(*at | (code & ((1u << low) - 1)) << (quad * low % 8));
    if (high == 0)
        return;
    at = byte + (low + quad * high / 8) * AEG_PLANE_BYTES;
    *at = (uint8_t)(*at | ((code >> low) & ((1u << high) - 1)) << (quad * high % 8));
}

static void put_scale(uint32_t scale_kind, uint8_t *dst, uint32_t bits)
{
    if (scale_kind == AEG_W_F32) {
        memcpy(dst, &bits, 4);
    } else {
        const uint16_t h = (uint16_t)bits;
        memcpy(dst, &h, 2);
    }
}

static uint32_t get_scale(uint32_t scale_kind, const uint8_t *src)
{
    uint32_t u;
    uint16_t h;
    if (scale_kind == AEG_W_F32) {
        memcpy(&u, src, 4);
        return u;
    }
    memcpy(&h, src, 2);
    return h;
}

void aeg_tile_pack(aeg_weight_type type, const uint8_t *codes, const uint32_t *scales, const uint32_t *biases,
                   uint8_t *dst)
{
    const size_t scale_bytes = aeg_scale_bytes(type.scale_kind);
    memset(dst, 0, aeg_tile_bytes(type));
    for (size_t r = 0; r < AEG_ROWS; r++) {
        put_scale(type.scale_kind, dst + r * scale_bytes, scales[r]);
        put_scale(type.scale_kind, dst + (AEG_ROWS + r) * scale_bytes, biases[r]);
    }
    dst += aeg_header_bytes(type);
    for (uint32_t first = 0; first < type.group; first += AEG_PLANE_COLS) {
        for (uint32_t r = 0; r < AEG_ROWS; r++)
            for (uint32_t c = 0; c < AEG_PLANE_COLS; c++)
                put_code(type.bits, dst, r, c, codes[(size_t)r * type.group + first + c]);
        dst += (size_t)AEG_PLANE_BYTES * type.bits;
    }
}

void aeg_tile_unpack(aeg_weight_type type, const uint8_t *src, uint8_t *codes, uint32_t *scales, uint32_t *biases)
{
    const size_t scale_bytes = aeg_scale_bytes(type.scale_kind);
    for (size_t r = 0; r < AEG_ROWS; r++) {
        scales[r] = get_scale(type.scale_kind, src + r * scale_bytes);
        biases[r] = get_scale(type.scale_kind, src + (AEG_ROWS + r) * scale_bytes);
    }
    src += aeg_header_bytes(type);
    for (uint32_t first = 0; first < type.group; first += AEG_PLANE_COLS) {
        for (uint32_t r = 0; r < AEG_ROWS; r++)
            for (uint32_t c = 0; c < AEG_PLANE_COLS; c++)
                codes[(size_t)r * type.group + first + c] = (uint8_t)aeg_plane_code(type.bits, src, r, c);
        src += (size_t)AEG_PLANE_BYTES * type.bits;
    }
}

static void block_row(uint32_t kind, const uint8_t *tile, uint32_t n_cols, uint32_t lane, float *out)
{
    const aeg_block_shape s = aeg_block_shape_of(kind);
    aeg_piece p;
    for (uint32_t c = 0; c < n_cols; tile += aeg_block_tile_bytes(s))
        for (uint32_t k = 0; k < s.cols / AEG_PLANE_COLS; k++, c += AEG_PLANE_COLS) {
            aeg_block_piece(&p, kind, tile, k, lane);
            aeg_piece_values(&p, out + c);
        }
}

static void f8_row(const uint8_t *tile, uint32_t n_cols, uint32_t lane, float *out)
{
    for (uint32_t c = 0; c < n_cols; c++) {
        const uint32_t i = c % AEG_F8_COLS;
        if (c > 0 && i == 0)
            tile += aeg_tile_bytes((aeg_weight_type){ .kind = AEG_W_F8 });
        out[c] = aeg_f8_value(aeg_stored_float(AEG_W_F32, tile, lane), tile[AEG_F8_HEADER + i * AEG_ROWS + lane]);
    }
}

void aeg_weights_row(const aeg_weights *w, uint32_t row, float *out)
{
    const aeg_weight_type type = w->type;
    const uint32_t lane = row % AEG_ROWS;
    const size_t tile_bytes = aeg_tile_bytes(type);
    const uint8_t *tile = w->data + row / AEG_ROWS * w->block_stride;

    if (aeg_weight_is_block(type)) {
        block_row(type.kind, tile, w->n_cols, lane, out);
        return;
    }
    if (type.kind == AEG_W_F8) {
        f8_row(tile, w->n_cols, lane, out);
        return;
    }
    if (type.kind != AEG_W_AFFINE) {
        for (uint32_t c = 0; c < w->n_cols; c++, tile += tile_bytes)
            out[c] = aeg_stored_float(type.kind, tile, lane);
        return;
    }
    for (uint32_t c = 0; c < w->n_cols; tile += tile_bytes) {
        const float scale = aeg_stored_float(type.scale_kind, tile, lane);
        const float bias = aeg_stored_float(type.scale_kind, tile, AEG_ROWS + lane);
        const uint8_t *planes = tile + aeg_header_bytes(type);
        for (uint32_t i = 0; i < type.group; i++, c++) {
            const uint8_t *group = planes + i / AEG_PLANE_COLS * AEG_PLANE_BYTES * type.bits;
            out[c] = fmaf(scale, (float)aeg_plane_code(type.bits, group, lane, i % AEG_PLANE_COLS), bias);
        }
    }
}
