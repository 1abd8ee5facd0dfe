/* SPDX-License-Identifier: Apache-2.0 */
/* The ggml block types: known values of one block and hashes over 50 random ones (from an independent decoder, checked
 * against ggml's), the grids against their hashes, and that a tile gives its source back bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/blocks.h"
#include "kernels/grids.h"
#include "kernels/half.h"

enum { MAX_BLOCKS = 50, MAX_VALUES = 12 };

typedef struct {
    uint32_t kind;
    uint16_t d, second;         /* places of the f16 scales; 0xffff: none */
    uint16_t second_bits;
    uint64_t hash_one;          /* of the patterned block                 */
    uint32_t seed;
    uint64_t hash_fifty;
    struct {
        uint16_t at;
        float value;
    } values[MAX_VALUES];
} vector;

enum { NONE = 0xffff, M = 0xA800, DMIN = 0x1C00 };

static const vector vectors[] = {
    { AEG_W_Q8_0, 0, NONE, 0, 0x9b08f7f493564527, 12345, 0xb5e491882fa87d69,
      { { 0, -0.5390625f }, { 1, 0.03125f }, { 2, 0.6015625f }, { 3, -0.828125f }, { 15, 0.015625f }, { 31, -0.859375f } } },
    { AEG_W_Q4_0, 0, NONE, 0, 0x9c443f17a83f9a01, 12346, 0xd7879588f8cd781e,
      { { 0, 0.0234375f }, { 1, -0.03125f }, { 2, 0.0390625f }, { 8, -0.0390625f }, { 16, 0.0234375f }, { 17, -0.0625f } } },
    { AEG_W_Q4_1, 0, 2, M, 0x5545263e699de1a5, 12347, 0x81e0323f2fd37b82,
      { { 0, 0.0703125f }, { 1, 0.015625f }, { 2, 0.0859375f }, { 7, 0.0625f }, { 17, 0.0390625f }, { 31, 0.0390625f } } },
    { AEG_W_Q5_0, 0, NONE, 0, 0x64740a3a26eec3cf, 12348, 0x05dcb24b8596fb42,
      { { 0, 0.1171875f }, { 1, 0.0625f }, { 2, -0.1171875f }, { 16, 0.1015625f }, { 17, -0.109375f }, { 31, 0.015625f } } },
    { AEG_W_Q5_1, 0, 2, M, 0xa74d810ac875d9cf, 12349, 0xc86bbcf969779a95,
      { { 0, 0.1015625f }, { 1, 0.046875f }, { 2, 0.1171875f }, { 7, -0.03125f }, { 16, 0.1484375f }, { 31, 0.0546875f } } },
    { AEG_W_Q2_K, 80, 82, DMIN, 0xd9886f59f6dfd613, 12350, 0x7b655e543090ca2e,
      { { 0, 0.0625f }, { 1, 0.1328125f }, { 16, -0.01171875f }, { 32, 0.12890625f }, { 64, 0.2890625f }, { 128, -0.01953125f },
        { 200, 0.04296875f }, { 255, -0.02734375f } } },
    { AEG_W_Q3_K, 108, NONE, 0, 0xab8b3b6f4ae96f1a, 12351, 0x8b9990581fc5c3de,
      { { 0, -0.0546875f }, { 1, 0.109375f }, { 16, 0.015625f }, { 32, -0.421875f }, { 63, 0.875f }, { 127, -0.75f },
        { 160, 0.015625f }, { 200, 0.609375f } } },
    { AEG_W_Q4_K, 0, 2, DMIN, 0x70ddb9f578a8c74f, 12352, 0x71c0eb2574115d93,
      { { 0, 0.72265625f }, { 1, 0.01171875f }, { 32, 1.6640625f }, { 64, 2.16796875f }, { 127, 3.390625f },
        { 128, 1.37890625f }, { 160, 5.21484375f }, { 200, 0.421875f } } },
    { AEG_W_Q5_K, 0, 2, DMIN, 0xc37e0855e9c7848f, 12353, 0x6b6714ccbd45d9e4,
      { { 0, 2.34765625f }, { 8, 1.53515625f }, { 32, 2.0078125f }, { 64, 2.16796875f }, { 127, 4.015625f },
        { 128, 4.00390625f }, { 160, 5.93359375f }, { 255, -0.08984375f } } },
    { AEG_W_Q6_K, 208, NONE, 0, 0xc0a208bc47447ee5, 12354, 0x68b6253b9c768a2d,
      { { 0, 1.2578125f }, { 2, -4.8515625f }, { 16, -2.734375f }, { 32, 8.6484375f }, { 47, -30.75f }, { 95, -21.5f },
        { 160, -4.2890625f }, { 255, 2.25f } } },
    { AEG_W_IQ4_NL, 0, NONE, 0, 0xf4e2b860b0a9b8e5, 12355, 0xa8e0c14a72196850,
      { { 0, 0.296875f }, { 1, -0.3828125f }, { 2, 0.5390625f }, { 8, -0.5078125f }, { 15, -0.6484375f }, { 31, -0.9921875f } } },
    { AEG_W_IQ4_XS, 0, NONE, 0, 0x5d7f3fa28a9076ba, 12356, 0xc9875cb110649d81,
      { { 0, -23.5625f }, { 3, 12.0078125f }, { 16, -2.265625f }, { 64, -17.875f }, { 128, 13.8125f }, { 160, 2.4375f },
        { 254, 8.203125f }, { 255, -5.859375f } } },
    { AEG_W_MXFP4, NONE, NONE, 0, 0x41d2d01d0d22ced2, 12364, 0x40657e76c754ec65,
      { { 0, 0.015625f }, { 1, -0.0234375f }, { 2, 0.03125f }, { 3, -0.046875f }, { 16, 0.09375f }, { 31, -0.0234375f } } },
    { AEG_W_IQ3_XXS, 0, NONE, 0, 0xa11696c4868c0302, 12357, 0x1451ae414120ade2,
      { { 0, -2.3203125f }, { 2, 1.4765625f }, { 16, -0.6328125f }, { 47, 3.1484375f }, { 64, -0.1640625f },
        { 128, -0.9140625f }, { 200, -0.8203125f }, { 255, 1.8984375f } } },
    { AEG_W_IQ3_S, 0, NONE, 0, 0xea20d3ea1e77213b, 12358, 0x53e1654f2cbdad79,
      { { 0, -0.2734375f }, { 2, 0.8203125f }, { 32, -1.1171875f }, { 64, -1.7578125f }, { 127, -1.8046875f },
        { 160, -0.7265625f }, { 254, 0.4921875f } } },
    { AEG_W_IQ2_XXS, 0, NONE, 0, 0x7ca36cbd0abc82fd, 12359, 0xd738baea37de4694,
      { { 0, -0.965820312f }, { 7, 0.561523438f }, { 32, -0.0078125f }, { 63, -0.0419921875f }, { 127, 0.1484375f },
        { 160, -0.122070312f }, { 255, -0.561523438f } } },
    { AEG_W_IQ2_XS, 0, NONE, 0, 0x69d7faeab5f33463, 12360, 0xac005d0f9f72b1a2,
      { { 0, 0.1796875f }, { 1, -0.561523438f }, { 16, 0.756835938f }, { 64, 0.2109375f }, { 128, 0.2421875f },
        { 200, -0.125976562f }, { 254, -0.2421875f } } },
    { AEG_W_IQ2_S, 0, NONE, 0, 0x7797a4cfb02f9cf7, 12361, 0xce7c226597dc6eac,
      { { 0, -0.0546875f }, { 7, -0.293945312f }, { 17, 0.377929688f }, { 32, -1.04980469f }, { 95, -0.659179688f },
        { 160, -0.0078125f }, { 255, -0.377929688f } } },
};
enum { N_VECTORS = sizeof vectors / sizeof vectors[0] };

static uint64_t fnv(uint64_t hash, const void *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    return hash;
}

static const uint64_t fnv_start = 0xcbf29ce484222325u;

static uint64_t hash_values(uint64_t hash, const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float plus_zero = v[i] + 0.0f;
        hash = fnv(hash, &plus_zero, sizeof plus_zero);
    }
    return hash;
}

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void set_scales(const vector *v, uint8_t *block)
{
    if (v->d != NONE)
        put16(block + v->d, 0x2000);
    if (v->second != NONE)
        put16(block + v->second, v->second_bits);
}

static uint32_t random_byte(uint32_t *s)
{
    *s = *s * 1664525u + 1013904223u;
    return *s >> 24;
}

static void random_blocks(const vector *v, uint8_t *blocks, uint32_t n)
{
    const aeg_block_shape shape = aeg_block_shape_of(v->kind);
    uint32_t s = v->seed;
    for (uint32_t b = 0; b < n; b++, blocks += shape.source) {
        for (uint32_t i = 0; i < shape.source; i++)
            blocks[i] = (uint8_t)random_byte(&s);
        set_scales(v, blocks);
        if (v->kind == AEG_W_MXFP4)
            blocks[0] = (uint8_t)(100 + b);
    }
}

static void every_kind_has_a_vector(void **state)
{
    (void)state;
    assert_int_equal(N_VECTORS, AEG_W_BLOCKS_END - AEG_W_Q8_0);
    for (uint32_t kind = AEG_W_Q8_0; kind < AEG_W_BLOCKS_END; kind++) {
        char text[AEG_TYPE_TEXT];
        const aeg_weight_type type = { .kind = (uint8_t)kind };
        bool found = false;
        for (size_t i = 0; i < N_VECTORS; i++)
            found = found || vectors[i].kind == kind;
        assert_true(found);
        assert_true(aeg_weight_type_valid(type));
        assert_int_equal(aeg_weight_kind_named(aeg_weight_type_text(text, type)), kind);
        assert_int_equal(aeg_tile_bytes(type) % 16, 0);
        /* the promise of ADR 0008: at most 3 % more than the source */
        assert_true(100 * aeg_tile_bytes(type) <= 103u * AEG_ROWS * aeg_block_shape_of(kind).source);
    }
    assert_int_equal(aeg_weight_kind_named("affine"), AEG_N_WEIGHT_KINDS);
    assert_int_equal(aeg_weight_kind_named("q8_K"), AEG_N_WEIGHT_KINDS);
}

static void one_block_has_the_known_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_VECTORS; i++) {
        const vector *v = &vectors[i];
        const aeg_block_shape shape = aeg_block_shape_of(v->kind);
        uint8_t block[AEG_BLOCK_MAX_BYTES];
        float out[AEG_BLOCK_MAX_COLS];
        for (uint32_t b = 0; b < shape.source; b++)
            block[b] = (uint8_t)(73 * b + 41);
        set_scales(v, block);
        if (v->kind == AEG_W_MXFP4)
            block[0] = 0x79;
        aeg_blocks_source_row(v->kind, block, shape.cols, out);
        for (size_t k = 0; k < MAX_VALUES && (k == 0 || v->values[k].at != 0); k++)
            if (out[v->values[k].at] != v->values[k].value)
                fail_msg("kind %u, element %u: %.9g, expected %.9g", v->kind, v->values[k].at, (double)out[v->values[k].at],
                         (double)v->values[k].value);
        assert_int_equal(hash_values(fnv_start, out, shape.cols), v->hash_one);
    }
}

static void fifty_blocks_have_the_known_hash(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_VECTORS; i++) {
        const aeg_block_shape shape = aeg_block_shape_of(vectors[i].kind);
        uint8_t blocks[MAX_BLOCKS * AEG_BLOCK_MAX_BYTES];
        float out[MAX_BLOCKS * AEG_BLOCK_MAX_COLS];
        random_blocks(&vectors[i], blocks, MAX_BLOCKS);
        aeg_blocks_source_row(vectors[i].kind, blocks, MAX_BLOCKS * shape.cols, out);
        assert_int_equal(hash_values(fnv_start, out, MAX_BLOCKS * shape.cols), vectors[i].hash_fifty);
    }
}

/* Sixteen rows of random bytes, scales too: the tile must give back every bit, and each row its own values. */
static void a_tile_gives_its_source_back(void **state)
{
    enum { BLOCKS = 3, MAX_TILE = 3360 };
    static uint8_t source[AEG_ROWS][BLOCKS * AEG_BLOCK_MAX_BYTES], tiles[BLOCKS * MAX_TILE];
    uint32_t seed = 77;
    (void)state;
    for (uint32_t kind = AEG_W_Q8_0; kind < AEG_W_BLOCKS_END; kind++) {
        const aeg_block_shape shape = aeg_block_shape_of(kind);
        const uint32_t n_cols = BLOCKS * shape.cols;
        const aeg_weights w = { .type = { .kind = (uint8_t)kind }, .n_rows = AEG_ROWS, .n_cols = n_cols,
                                .block_stride = sizeof tiles, .data = tiles };
        assert_true(aeg_block_bytes(w.type, n_cols) <= sizeof tiles);
        memset(tiles, 0, sizeof tiles);
        for (uint32_t r = 0; r < AEG_ROWS; r++) {
            do /* until no scale is an infinity or a NaN */
                for (uint32_t i = 0; i < BLOCKS * shape.source; i++)
                    source[r][i] = (uint8_t)random_byte(&seed);
            while (!aeg_blocks_pack_lane(kind, source[r], n_cols, r, memset(tiles, 0, sizeof tiles)));
        }
        memset(tiles, 0, sizeof tiles);
        for (uint32_t r = 0; r < AEG_ROWS; r++)
            assert_true(aeg_blocks_pack_lane(kind, source[r], n_cols, r, tiles));
        for (uint32_t r = 0; r < AEG_ROWS; r++) {
            uint8_t back[BLOCKS * AEG_BLOCK_MAX_BYTES];
            float a[BLOCKS * AEG_BLOCK_MAX_COLS], b[BLOCKS * AEG_BLOCK_MAX_COLS];
            aeg_blocks_unpack_lane(kind, tiles, n_cols, r, back);
            assert_memory_equal(back, source[r], BLOCKS * shape.source);
            aeg_blocks_source_row(kind, source[r], n_cols, a);
            aeg_weights_row(&w, r, b);
            assert_memory_equal(a, b, n_cols * sizeof(float));
        }
    }
}

static void scales_that_are_no_numbers_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_VECTORS; i++) {
        static uint8_t tile[2 * 3360];
        uint8_t blocks[2 * AEG_BLOCK_MAX_BYTES];
        const vector *v = &vectors[i];
        const aeg_block_shape shape = aeg_block_shape_of(v->kind);
        uint8_t *last = blocks + shape.source;
        random_blocks(v, blocks, 2);
        assert_true(aeg_blocks_pack_lane(v->kind, blocks, 2 * shape.cols, 5, tile));
        if (v->kind == AEG_W_MXFP4)
            last[0] = 255;
        else
            put16(last + (v->second != NONE ? v->second : v->d), 0x7c00);
        assert_false(aeg_blocks_pack_lane(v->kind, blocks, 2 * shape.cols, 5, tile));
    }
}

/* --- grids ------------------------------------------------------------------------------------------------------ */

static uint32_t level_of(const uint8_t *levels, uint32_t n, uint32_t magnitude)
{
    for (uint32_t i = 0; i < n; i++)
        if (levels[i] == magnitude)
            return i;
    fail_msg("%u is no magnitude of this grid", magnitude);
    return 0;
}

/* The table as code words again, ascending, against the hash of the list it came from. */
static void check_grid(const uint32_t *grid, uint32_t n, uint32_t words, const uint8_t *levels, uint32_t bits, uint64_t expected)
{
    uint64_t hash = fnv_start;
    uint32_t before = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t code = 0;
        for (uint32_t j = 0; j < 4 * words; j++)
            code |= level_of(levels, 1u << bits, grid[i * words + j / 4] >> 8 * (j % 4) & 255) << bits * j;
        assert_true(i == 0 || code > before);
        before = code;
        const uint8_t bytes[2] = { (uint8_t)code, (uint8_t)(code >> 8) };
        hash = fnv(hash, bytes, 2);
    }
    assert_int_equal(hash, expected);
}

static void grids_have_the_known_hashes(void **state)
{
    static const uint8_t iq2[4] = { 8, 25, 43, 255 }, iq3_xxs[8] = { 4, 12, 20, 28, 36, 44, 52, 62 },
                         iq3_s[8] = { 1, 3, 5, 7, 9, 11, 13, 15 };
    (void)state;
    check_grid(aeg_grid_iq2_xxs, 256, 2, iq2, 2, 0x6fca17f5c451905d);
    check_grid(aeg_grid_iq2_xs, 512, 2, iq2, 2, 0x29d6ac8e0e6b14e3);
    check_grid(aeg_grid_iq2_s, 1024, 2, iq2, 2, 0x641f9aa3fbd98694);
    check_grid(aeg_grid_iq3_xxs, 256, 1, iq3_xxs, 3, 0x79d733576d562547);
    check_grid(aeg_grid_iq3_s, 512, 1, iq3_s, 3, 0x55b224116d1e5ca2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_vector),
        cmocka_unit_test(one_block_has_the_known_values),
        cmocka_unit_test(fifty_blocks_have_the_known_hash),
        cmocka_unit_test(a_tile_gives_its_source_back),
        cmocka_unit_test(scales_that_are_no_numbers_are_refused),
        cmocka_unit_test(grids_have_the_known_hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
