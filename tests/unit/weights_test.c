/* SPDX-License-Identifier: Apache-2.0 */
/* The x16 layout: packing and reading back, sizes, and the planes against the table in docs/store-format.md. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/half.h"
#include "kernels/weights.h"

static const uint8_t all_bits[] = { 2, 3, 4, 5, 6, 8 };
static const uint8_t all_groups[] = { 32, 64, 128 };

enum { N_BITS = 6, N_GROUPS = 3, N_SCALE_KINDS = 3, MAX_GROUP = 128, MAX_TILE = 128 + 4 * 64 * 8 };

static uint32_t seed = 12345;

static uint32_t random32(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

static aeg_weight_type affine_type(uint8_t bits, uint8_t group, uint8_t scale_kind)
{
    return (aeg_weight_type){ .kind = AEG_W_AFFINE, .bits = bits, .scale_kind = scale_kind, .group = group };
}

typedef struct {
    uint8_t codes[AEG_ROWS * MAX_GROUP];
    uint32_t scales[AEG_ROWS], biases[AEG_ROWS];
} plain_tile;

static void fill(plain_tile *t, aeg_weight_type type)
{
    const uint32_t code_mask = (1u << type.bits) - 1, scale_mask = type.scale_kind == AEG_W_F32 ? ~0u : 0xffffu;
    memset(t, 0, sizeof *t);
    for (uint32_t i = 0; i < (uint32_t)AEG_ROWS * type.group; i++)
        t->codes[i] = (uint8_t)(random32() & code_mask);
    for (uint32_t r = 0; r < AEG_ROWS; r++) {
        t->scales[r] = random32() & scale_mask;
        t->biases[r] = random32() & scale_mask;
    }
}

static void packing_and_reading_back_keeps_every_bit(void **state)
{
    (void)state;
    for (int b = 0; b < N_BITS; b++)
        for (int g = 0; g < N_GROUPS; g++)
            for (uint8_t kind = 0; kind < N_SCALE_KINDS; kind++) {
                const aeg_weight_type type = affine_type(all_bits[b], all_groups[g], kind);
                const size_t n = aeg_tile_bytes(type);
                uint8_t bytes[MAX_TILE + 1];
                plain_tile in, out;
                memset(bytes, 0xA5, sizeof bytes);
                memset(&out, 0, sizeof out);
                fill(&in, type);
                assert_true(n <= MAX_TILE);
                aeg_tile_pack(type, in.codes, in.scales, in.biases, bytes);
                assert_int_equal(bytes[n], 0xA5);
                aeg_tile_unpack(type, bytes, out.codes, out.scales, out.biases);
                assert_memory_equal(&in, &out, sizeof in);
            }
}

/* Where the table puts the parts of quad j: { first vector, bit } of the low part and of the high part. */
static void expect_place(uint32_t bits, uint32_t quad, uint32_t vector, uint32_t shift, uint32_t high_vector,
                         uint32_t high_shift)
{
    const aeg_weight_type type = affine_type((uint8_t)bits, 32, AEG_W_BF16);
    const uint32_t low = bits == 8 ? 8 : bits >= 4 ? 4 : 2;
    const uint32_t lane = random32() % AEG_ROWS, byte = random32() % 4, code = (1u << bits) - 1;
    plain_tile t;
    uint8_t bytes[MAX_TILE], expected[MAX_TILE];
    memset(&t, 0, sizeof t);
    memset(expected, 0, sizeof expected);
    t.codes[lane * 32 + 4 * quad + byte] = (uint8_t)code;
    aeg_tile_pack(type, t.codes, t.scales, t.biases, bytes);
    expected[64 + 64 * vector + 4 * lane + byte] = (uint8_t)(((1u << low) - 1) << shift);
    if (bits > low)
        expected[64 + 64 * high_vector + 4 * lane + byte] = (uint8_t)((code >> low) << high_shift);
    assert_memory_equal(bytes, expected, 64 + 64 * bits);
}

static void planes_follow_the_format_table(void **state)
{
    (void)state;
    for (uint32_t j = 0; j < 8; j++) {
        expect_place(8, j, j, 0, 0, 0);
        expect_place(4, j, j / 2, j % 2 * 4, 0, 0);
        expect_place(5, j, j / 2, j % 2 * 4, 4, j);
        expect_place(6, j, j / 2, j % 2 * 4, 4 + j / 4, j % 4 * 2);
        expect_place(2, j, j / 4, j % 4 * 2, 0, 0);
        expect_place(3, j, j / 4, j % 4 * 2, 2, j);
    }
}

static void sizes_are_those_of_the_format(void **state)
{
    (void)state;
    const aeg_weight_type mlx4 = affine_type(4, 64, AEG_W_BF16), wide = affine_type(8, 128, AEG_W_F32);
    const aeg_weight_type bf16 = { .kind = AEG_W_BF16 }, f32 = { .kind = AEG_W_F32 };
    assert_int_equal(aeg_tile_bytes(mlx4), 576);
    assert_int_equal(aeg_tile_bytes(wide), 128 + 2048);
    assert_int_equal(aeg_tile_bytes(affine_type(3, 32, AEG_W_F16)), 64 + 192);
    assert_int_equal(aeg_tile_bytes(bf16), 32);
    assert_int_equal(aeg_tile_bytes(f32), 64);
    assert_int_equal(aeg_block_bytes(mlx4, 2048), 32 * 576);
    assert_int_equal(aeg_block_bytes(bf16, 2048), 2048 * 32);
    assert_int_equal(aeg_matrix_bytes(mlx4, 17, 64), 2 * 576);
    assert_true(aeg_matrix_bytes(f32, 1u << 24, 1u << 24) == (1ull << 50));
}

static void invalid_types_are_told_apart(void **state)
{
    (void)state;
    assert_true(aeg_weight_type_valid(affine_type(4, 64, AEG_W_BF16)));
    assert_true(aeg_weight_type_valid((aeg_weight_type){ .kind = AEG_W_F16 }));
    assert_false(aeg_weight_type_valid(affine_type(7, 64, AEG_W_BF16)));
    assert_false(aeg_weight_type_valid(affine_type(1, 64, AEG_W_BF16)));
    assert_false(aeg_weight_type_valid(affine_type(16, 64, AEG_W_BF16)));
    assert_false(aeg_weight_type_valid(affine_type(4, 16, AEG_W_BF16)));
    assert_false(aeg_weight_type_valid(affine_type(4, 96, AEG_W_BF16)));
    assert_false(aeg_weight_type_valid(affine_type(4, 64, AEG_W_AFFINE)));
    assert_false(aeg_weight_type_valid((aeg_weight_type){ .kind = AEG_N_WEIGHT_KINDS }));
    assert_true(aeg_weight_type_equal(affine_type(4, 64, AEG_W_BF16), affine_type(4, 64, AEG_W_BF16)));
    assert_false(aeg_weight_type_equal(affine_type(4, 64, AEG_W_BF16), affine_type(4, 64, AEG_W_F16)));
    assert_false(aeg_weight_type_equal(affine_type(4, 64, AEG_W_BF16), affine_type(4, 32, AEG_W_BF16)));
    assert_false(aeg_weight_type_equal((aeg_weight_type){ .kind = AEG_W_F32 }, (aeg_weight_type){ .kind = AEG_W_BF16 }));
}

static void types_have_readable_names(void **state)
{
    (void)state;
    char text[AEG_TYPE_TEXT];
    assert_string_equal(aeg_weight_type_text(text, affine_type(4, 64, AEG_W_BF16)), "affine 4-bit g64 bf16");
    assert_string_equal(aeg_weight_type_text(text, (aeg_weight_type){ .kind = AEG_W_F16 }), "f16");
    assert_string_equal(aeg_weight_type_text(text, (aeg_weight_type){ .kind = 200 }), "?");
}

static void a_row_reads_back_as_scale_times_code_plus_bias(void **state)
{
    (void)state;
    const aeg_weight_type type = affine_type(6, 64, AEG_W_F16);
    enum { N_TILES = 2, ROW = 16 + 5 };
    static uint8_t data[4 * N_TILES * (64 + 2 * 64 * 6)];
    const size_t tile_bytes = aeg_tile_bytes(type);
    const aeg_weights w = { .type = type, .n_rows = 32, .n_cols = 64 * N_TILES, .data = data,
                            .block_stride = 2 * aeg_block_bytes(type, 64 * N_TILES) };
    float row[64 * N_TILES];
    plain_tile t[N_TILES];
    for (int i = 0; i < N_TILES; i++) {
        fill(&t[i], type);
        t[i].scales[5] = aeg_f16_from_f32(0.125f * (float)(i + 1));
        t[i].biases[5] = aeg_f16_from_f32(-3.5f);
        aeg_tile_pack(type, t[i].codes, t[i].scales, t[i].biases, data + w.block_stride + (size_t)i * tile_bytes);
    }
    aeg_weights_row(&w, ROW, row);
    for (int c = 0; c < 64 * N_TILES; c++) {
        const float scale = 0.125f * (float)(c / 64 + 1);
        assert_true(row[c] == fmaf(scale, (float)t[c / 64].codes[5 * 64 + c % 64], -3.5f));
    }

    uint16_t bf16[32 * AEG_ROWS];
    for (size_t i = 0; i < sizeof bf16 / sizeof bf16[0]; i++)
        bf16[i] = aeg_bf16_from_f32((float)i);
    const aeg_weights plain = { .type = { .kind = AEG_W_BF16 }, .n_rows = 16, .n_cols = 32,
                                .data = (const uint8_t *)bf16, .block_stride = sizeof bf16 };
    aeg_weights_row(&plain, 3, row);
    for (int c = 0; c < 32; c++)
        assert_true(row[c] == aeg_f32_from_bf16(bf16[c * AEG_ROWS + 3]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_and_reading_back_keeps_every_bit),
        cmocka_unit_test(planes_follow_the_format_table),
        cmocka_unit_test(sizes_are_those_of_the_format),
        cmocka_unit_test(invalid_types_are_told_apart),
        cmocka_unit_test(types_have_readable_names),
        cmocka_unit_test(a_row_reads_back_as_scale_times_code_plus_bias),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
