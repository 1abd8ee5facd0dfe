/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/block.h"

#include <string.h>

#include "kernels/blocks.h"
#include "kernels/planes.h"
#include "pack/quant.h"

enum { MAX_GROUP = 128, CHUNK = AEG_BLOCK_MAX_COLS /* columns that become floats at once: whole blocks, whole groups */ };

size_t aeg_rows_weight_bytes(aeg_weight_type type, uint32_t n_cols)
{
    if (aeg_weight_is_block(type))
        return aeg_block_source_bytes(type.kind, n_cols);
    if (type.kind == AEG_W_F8)
        return n_cols;
    return type.kind == AEG_W_AFFINE ? (size_t)n_cols * type.bits / 8 : (size_t)n_cols * aeg_scale_bytes(type.kind);
}

size_t aeg_rows_scale_bytes(aeg_weight_type type, uint32_t n_cols)
{
    if (type.kind == AEG_W_F8)
        return sizeof(float) * ((n_cols + AEG_F8_COLS - 1) / AEG_F8_COLS);
    return type.kind == AEG_W_AFFINE ? (size_t)(n_cols / type.group) * aeg_scale_bytes(type.scale_kind) : 0;
}

size_t aeg_rows_bytes(aeg_weight_type type, uint32_t n_cols)
{
    return aeg_rows_weight_bytes(type, n_cols) + (type.kind == AEG_W_F8 ? 1 : 2) * aeg_rows_scale_bytes(type, n_cols);
}

aeg_rows aeg_rows_at(const aeg_rows *rows, uint64_t row)
{
    aeg_rows r = *rows;
    r.weight += row * aeg_rows_weight_bytes(r.type, r.n_cols);
    if (r.type.kind == AEG_W_AFFINE || r.type.kind == AEG_W_F8)
        r.scales += row * aeg_rows_scale_bytes(r.type, r.n_cols);
    if (r.type.kind == AEG_W_AFFINE)
        r.biases += row * aeg_rows_scale_bytes(r.type, r.n_cols);
    return r;
}

/* --- codes into planes -------------------------------------------------------------------------------------- */

static inline uint32_t load32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static inline void store32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }

/* 32 codes of one row -> its lane of `bits` planes (kernels/planes.h), a quad of four codes at a time. */
static inline __attribute__((always_inline)) void put_lane(uint32_t bits, const uint8_t *codes, uint8_t *dst)
{
    const uint32_t low = bits == 8 ? 8 : bits >= 4 ? 4 : 2, high = bits - low;
    const uint32_t low_mask = ((1u << low) - 1) * 0x01010101u, high_mask = ((1u << high) - 1) * 0x01010101u;
    uint32_t plane[8] = { 0 };
    for (uint32_t j = 0; j < AEG_QUADS; j++) {
        const uint32_t quad = load32(codes + 4 * j);
        plane[j * low / 8] |= (quad & low_mask) << (j * low % 8);
        if (high > 0)
            plane[low + j * high / 8] |= (quad >> low & high_mask) << (j * high % 8);
    }
    for (uint32_t p = 0; p < bits; p++)
        store32(dst + p * AEG_PLANE_BYTES, plane[p]);
}

static void put_lane_any(uint32_t bits, const uint8_t *codes, uint8_t *dst)
{
    switch (bits) {
    case 2: put_lane(2, codes, dst); break;
    case 3: put_lane(3, codes, dst); break;
    case 4: put_lane(4, codes, dst); break;
    case 5: put_lane(5, codes, dst); break;
    case 6: put_lane(6, codes, dst); break;
    default: put_lane(8, codes, dst); break;
    }
}

/* Eight 4-bit codes of MLX (nibble k = code k) -> one lane word (byte t = code t, code 4+t above it): the
 * nibbles of the two halves interleave. Two swaps do it for two words at a time. */
static inline uint64_t shuffle_nibbles(uint64_t x)
{
    x = (x & 0xff0000ffff0000ffu) | (x & 0x00ff000000ff0000u) >> 8 | (x & 0x0000ff000000ff00u) << 8;
    return (x & 0xf00ff00ff00ff00fu) | (x & 0x0f000f000f000f00u) >> 4 | (x & 0x00f000f000f000f0u) << 4;
}

/* One row of 4-bit codes into its lane of every tile of a row block. */
static void move_row_4(const uint8_t *src, uint32_t n_tiles, uint32_t group, size_t header, uint8_t *dst)
{
    for (uint32_t t = 0; t < n_tiles; t++) {
        dst += header;
        for (uint32_t first = 0; first < group; first += 16) {
            uint64_t x;
            memcpy(&x, src, 8);
            x = shuffle_nibbles(x);
            store32(dst, (uint32_t)x);
            store32(dst + AEG_PLANE_BYTES, (uint32_t)(x >> 32));
            src += 8;
            dst += 2 * AEG_PLANE_BYTES;
        }
    }
}

static inline __attribute__((always_inline)) void move_row(uint32_t bits, const uint8_t *src, uint32_t n_tiles,
                                                           uint32_t group, size_t header, uint8_t *dst)
{
    uint8_t codes[AEG_PLANE_COLS];
    for (uint32_t t = 0; t < n_tiles; t++) {
        dst += header;
        for (uint32_t first = 0; first < group; first += AEG_PLANE_COLS) {
            aeg_codes_unpack(src, AEG_PLANE_COLS, bits, codes);
            put_lane(bits, codes, dst);
            src += AEG_PLANE_COLS * bits / 8;
            dst += AEG_PLANE_BYTES * bits;
        }
    }
}

static void move_row_any(uint32_t bits, const uint8_t *src, uint32_t n_tiles, uint32_t group, size_t header, uint8_t *dst)
{
    switch (bits) {
    case 2: move_row(2, src, n_tiles, group, header, dst); break;
    case 3: move_row(3, src, n_tiles, group, header, dst); break;
    case 4: move_row_4(src, n_tiles, group, header, dst); break;
    case 5: move_row(5, src, n_tiles, group, header, dst); break;
    case 6: move_row(6, src, n_tiles, group, header, dst); break;
    default: move_row(8, src, n_tiles, group, header, dst); break;
    }
}

/* --- one row block, type unchanged ---------------------------------------------------------------------------- */

static void move_affine(const aeg_rows *rows, uint32_t n_rows, uint8_t *dst)
{
    const aeg_weight_type type = rows->type;
    const size_t tile = aeg_tile_bytes(type), s = aeg_scale_bytes(type.scale_kind);
    const uint32_t n_tiles = rows->n_cols / type.group;
    for (uint32_t r = 0; r < n_rows; r++) {
        const aeg_rows row = aeg_rows_at(rows, r);
        for (uint32_t t = 0; t < n_tiles; t++) {
            memcpy(dst + t * tile + r * s, row.scales + t * s, s);
            memcpy(dst + t * tile + (AEG_ROWS + r) * s, row.biases + t * s, s);
        }
        move_row_any(type.bits, row.weight, n_tiles, type.group, aeg_header_bytes(type), dst + (size_t)4 * r);
    }
}

static bool move_blocks(const aeg_rows *rows, uint32_t n_rows, uint8_t *dst)
{
    memset(dst, 0, aeg_block_bytes(rows->type, rows->n_cols));
    for (uint32_t r = 0; r < n_rows; r++)
        if (!aeg_blocks_pack_lane(rows->type.kind, aeg_rows_at(rows, r).weight, rows->n_cols, r, dst))
            return false;
    return true;
}

static void move_plain(const aeg_rows *rows, uint32_t n_rows, uint8_t *dst)
{
    const size_t s = aeg_scale_bytes(rows->type.kind);
    for (uint32_t r = 0; r < n_rows; r++) {
        const uint8_t *src = aeg_rows_at(rows, r).weight;
        uint8_t *d = dst + r * s;
        if (s == 2)
            for (uint32_t c = 0; c < rows->n_cols; c++)
                memcpy(d + (size_t)c * 2 * AEG_ROWS, src + (size_t)c * 2, 2);
        else
            for (uint32_t c = 0; c < rows->n_cols; c++)
                memcpy(d + (size_t)c * 4 * AEG_ROWS, src + (size_t)c * 4, 4);
    }
}

static void move_f8(const aeg_rows *rows, uint32_t n_rows, uint8_t *dst)
{
    const size_t tile = aeg_tile_bytes(rows->type);
    for (uint32_t r = 0; r < n_rows; r++) {
        const aeg_rows row = aeg_rows_at(rows, r);
        for (uint32_t t = 0; t < rows->n_cols / AEG_F8_COLS; t++) {
            uint8_t *to = dst + t * tile;
            memcpy(to + 4 * r, row.scales + 4 * t, 4);
            to += AEG_F8_HEADER + r;
            for (uint32_t c = 0; c < AEG_F8_COLS; c++)
                to[c * AEG_ROWS] = row.weight[t * AEG_F8_COLS + c];
        }
    }
}

/* --- through float32 --------------------------------------------------------------------------------------------- */

void aeg_rows_floats(const aeg_rows *row, uint32_t first, uint32_t n, float *out)
{
    const aeg_weight_type type = row->type;
    uint8_t codes[CHUNK];
    if (aeg_weight_is_block(type)) {
        aeg_blocks_source_row(type.kind, row->weight + aeg_block_source_bytes(type.kind, first), n, out);
        return;
    }
    if (type.kind == AEG_W_F8) {
        for (uint32_t i = 0; i < n; i++)
            out[i] = aeg_f8_value(aeg_stored_float(AEG_W_F32, row->scales, (first + i) / AEG_F8_COLS), row->weight[first + i]);
        return;
    }
    if (type.kind == AEG_W_BF16) {
        for (uint32_t i = 0; i < n; i++) {
            uint16_t h;
            memcpy(&h, row->weight + 2 * (size_t)(first + i), 2);
            out[i] = aeg_f32_from_bf16(h);
        }
        return;
    }
    if (type.kind != AEG_W_AFFINE) {
        for (uint32_t i = 0; i < n; i++)
            out[i] = aeg_stored_float(type.kind, row->weight, first + i);
        return;
    }
    aeg_codes_unpack(row->weight + (size_t)first * type.bits / 8, n, type.bits, codes);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t g = (first + i) / type.group;
        const float scaled = aeg_stored_float(type.scale_kind, row->scales, g) * (float)codes[i];
        out[i] = scaled + aeg_stored_float(type.scale_kind, row->biases, g);
    }
}

static uint32_t chunk_at(const aeg_rows *rows, uint32_t c) { return rows->n_cols - c < CHUNK ? rows->n_cols - c : CHUNK; }

void aeg_rows_transpose(const aeg_rows *rows, uint32_t n, uint8_t *dst)
{
    const size_t size = aeg_scale_bytes(aeg_transposed_type(rows->type).kind);
    float w[CHUNK];
    for (uint32_t r = 0; r < n; r++) {
        const aeg_rows row = aeg_rows_at(rows, r);
        for (uint32_t c = 0; c < rows->n_cols; c++) {
            uint8_t *to = dst + ((size_t)c * n + r) * size;
            if (rows->type.kind <= AEG_W_BF16) {
                memcpy(to, row.weight + c * size, size);
                continue;
            }
            if (c % CHUNK == 0)
                aeg_rows_floats(&row, c, chunk_at(rows, c), w);
            memcpy(to, &w[c % CHUNK], sizeof w[0]);
        }
    }
}

static void put_scale(uint32_t kind, uint8_t *dst, float value)
{
    const uint32_t bits = aeg_stored_bits(kind, value);
    const uint16_t half = (uint16_t)bits;
    if (kind == AEG_W_F32)
        memcpy(dst, &bits, 4);
    else
        memcpy(dst, &half, 2);
}

/* Groups of one row, `columns` at w, into lane r of tiles from d on. */
static bool quantise_groups(const float *w, uint32_t columns, aeg_weight_type out, uint32_t r, uint8_t *d)
{
    const size_t tile = aeg_tile_bytes(out), s = aeg_scale_bytes(out.scale_kind);
    uint8_t codes[MAX_GROUP];
    for (uint32_t c = 0; c < columns; c += out.group, d += tile) {
        float scale, bias;
        if (!aeg_quantise_group(w + c, out.group, out.bits, codes, &scale, &bias))
            return false;
        put_scale(out.scale_kind, d + r * s, scale);
        put_scale(out.scale_kind, d + (AEG_ROWS + r) * s, bias);
        uint8_t *planes = d + aeg_header_bytes(out) + (size_t)4 * r;
        for (uint32_t first = 0; first < out.group; first += AEG_PLANE_COLS, planes += AEG_PLANE_BYTES * out.bits)
            put_lane_any(out.bits, codes + first, planes);
    }
    return true;
}

static bool quantise_block(const aeg_rows *rows, uint32_t n_rows, aeg_weight_type out, uint8_t *dst)
{
    float w[CHUNK];
    for (uint32_t r = 0; r < n_rows; r++) {
        const aeg_rows row = aeg_rows_at(rows, r);
        for (uint32_t c = 0; c < rows->n_cols; c += CHUNK) {
            const uint32_t n = chunk_at(rows, c);
            aeg_rows_floats(&row, c, n, w);
            if (!quantise_groups(w, n, out, r, dst + c / out.group * aeg_tile_bytes(out)))
                return false;
        }
    }
    return true;
}

static void floats_block(const aeg_rows *rows, uint32_t n_rows, uint8_t *dst)
{
    float w[CHUNK];
    for (uint32_t r = 0; r < n_rows; r++) {
        const aeg_rows row = aeg_rows_at(rows, r);
        for (uint32_t c = 0; c < rows->n_cols; c++) {
            if (c % CHUNK == 0)
                aeg_rows_floats(&row, c, chunk_at(rows, c), w);
            memcpy(dst + sizeof w[0] * ((size_t)c * AEG_ROWS + r), &w[c % CHUNK], sizeof w[0]);
        }
    }
}

bool aeg_block_pack(const aeg_rows *rows, uint32_t n_rows, aeg_weight_type out, uint8_t *dst)
{
    if (n_rows < AEG_ROWS)
        memset(dst, 0, aeg_block_bytes(out, rows->n_cols));
    const bool same = aeg_weight_type_equal(rows->type, out);
    if (!same && out.kind == AEG_W_AFFINE)
        return quantise_block(rows, n_rows, out, dst);
    if (aeg_weight_is_block(out))
        return move_blocks(rows, n_rows, dst);
    if (!same)
        floats_block(rows, n_rows, dst);
    else if (out.kind == AEG_W_F8)
        move_f8(rows, n_rows, dst);
    else if (out.kind == AEG_W_AFFINE)
        move_affine(rows, n_rows, dst);
    else
        move_plain(rows, n_rows, dst);
    return true;
}

bool aeg_embed_row_pack(const aeg_rows *rows, aeg_weight_type out, uint8_t *dst)
{
    const size_t code_bytes = aeg_rows_weight_bytes(out, rows->n_cols);
    const size_t scale_bytes = aeg_rows_scale_bytes(out, rows->n_cols);
    if (aeg_weight_type_equal(rows->type, out)) {
        memcpy(dst, rows->weight, code_bytes);
        if (scale_bytes > 0) {
            memcpy(dst + code_bytes, rows->scales, scale_bytes);
            memcpy(dst + code_bytes + scale_bytes, rows->biases, scale_bytes);
        }
        return true;
    }
    float w[CHUNK];
    uint8_t codes[MAX_GROUP];
    if (out.kind == AEG_W_F32) {
        for (uint32_t c = 0; c < rows->n_cols; c += CHUNK) {
            aeg_rows_floats(rows, c, chunk_at(rows, c), w);
            memcpy(dst + sizeof w[0] * c, w, sizeof w[0] * chunk_at(rows, c));
        }
        return true;
    }
    const size_t s = aeg_scale_bytes(out.scale_kind);
    for (uint32_t c = 0, g = 0; c < rows->n_cols; c += out.group, g++) {
        float scale, bias;
        if (c % CHUNK == 0)
            aeg_rows_floats(rows, c, chunk_at(rows, c), w);
        if (!aeg_quantise_group(w + c % CHUNK, out.group, out.bits, codes, &scale, &bias))
            return false;
        aeg_codes_pack(codes, out.group, out.bits, dst + (size_t)c * out.bits / 8);
        put_scale(out.scale_kind, dst + code_bytes + g * s, scale);
        put_scale(out.scale_kind, dst + code_bytes + scale_bytes + g * s, bias);
    }
    return true;
}
