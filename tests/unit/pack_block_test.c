/* SPDX-License-Identifier: Apache-2.0 */
/* The MLX rule against published vectors; fast packing against the slow aeg_tile_pack, every width. */
#include "support/t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/half.h"
#include "format/names.h"
#include "pack/block.h"
#include "pack/quant.h"

static const struct {
    uint32_t group, bits;
    const char *scale, *bias, *bytes;
} vectors[] = {
    { 32, 2, "-0.640625", "1.28125", "269d48279e8967d2" },
    { 32, 3, "-0.256249994", "1.28125", "56c1cb297635fcac829f53ec" },
    { 32, 4, "-0.128124997", "1.28125", "3c1ae7b592704d2bf8c6a3815e3c09d7" },
    { 32, 5, "-0.061011903", "1.28125", "fa50f1bac26502c7d325f1337daa807e653383e3" },
    { 32, 6, "-0.0305059515", "1.28125", "73930e9f4ec18a097077d41ea39fd18e4a80bb152f67d0e1" },
    { 32, 8, "-0.00749268988", "1.28125", "d136a70d7dee53c42a9a0071e147b81d8efe64d53aab1181f258c82e9e0475e5" },
    { 64, 2, "0.6875", "-1.375", "d861b6982176982d668b1d6687d96286" },
    { 64, 3, "0.275000006", "-1.375", "a94e54de99ca03537968bc339577a6f2c058672aef4ce581" },
    { 64, 4, "0.137500003", "-1.375", "b2d517395c8ea2c406285b7d91b3e5184a6c8ea2d407395b7da1c3e6284a6c90" },
    { 64, 5, "0.0625", "-1.375", "06ab0e053d9af9482cda0ec882157f829acc3c1c16e9f625b98abb400d5e1e8a8a34fb92d8c41d98" },
    { 64, 6, "0.03125", "-1.375",
      "0b5ce91f913a33d68b071bd91b502a2f957b03dac8171f1a2b546b3f99b813de0927135b3b58a80f9df923d24a371798" },
    { 64, 8, "0.00772471912", "-1.375",
      "2cc255eb7d10a639ce61f78a1cb245da6d009628be51e7790ca235ca5df38618ae41d669ff9224ba4de375089e31c659ef8114aa3dd265fb"
      "8e20b649de71049a" },
};

static void quantising_is_that_of_mlx(void **state)
{
    (void)state;
    for (size_t v = 0; v < sizeof vectors / sizeof vectors[0]; v++) {
        const uint32_t group = vectors[v].group, bits = vectors[v].bits;
        float w[64], scale, bias;
        uint8_t codes[64], again[64], packed[64];
        char hex[129] = { 0 };
        for (uint32_t i = 0; i < group; i++)
            w[i] = (float)((int)((37 * i + 11) % 64) - (group == 32 ? 20 : 44)) / 32.0f;
        T_CHECK(aeg_quantise_group(w, group, bits, codes, &scale, &bias));
        T_CHECK(scale == strtof(vectors[v].scale, NULL) && bias == strtof(vectors[v].bias, NULL));
        aeg_codes_pack(codes, group, bits, packed);
        for (uint32_t i = 0; i < group * bits / 8; i++)
            sprintf(hex + 2 * i, "%02x", packed[i]);
        if (strcmp(hex, vectors[v].bytes) != 0)
            fail_msg("group %u, %u bits: %s", group, bits, hex);
        aeg_codes_unpack(packed, group, bits, again);
        T_CHECK(memcmp(codes, again, group) == 0);
    }
    T_CHECK(aeg_stored_bits(AEG_W_BF16, -0.128124997f) == 0xbe03);
}

static void odd_groups(void **state)
{
    (void)state;
    float w[32], scale, bias;
    uint8_t codes[32];
    for (int i = 0; i < 32; i++)
        w[i] = 5.0f; /* all equal: every code 0, value = bias */
    T_CHECK(aeg_quantise_group(w, 32, 4, codes, &scale, &bias));
    T_CHECK(bias == 5.0f && codes[0] == 0 && codes[31] == 0 && isfinite(scale));
    memset(w, 0, sizeof w);
    T_CHECK(aeg_quantise_group(w, 32, 4, codes, &scale, &bias) && bias == 0.0f && codes[7] == 0);
    w[3] = 1e-30f; /* below the smallest step */
    T_CHECK(aeg_quantise_group(w, 32, 4, codes, &scale, &bias) && bias == 0.0f && isfinite(scale));
    w[3] = (float)NAN;
    T_CHECK(!aeg_quantise_group(w, 32, 4, codes, &scale, &bias));
    w[3] = -(float)NAN;
    T_CHECK(!aeg_quantise_group(w, 32, 4, codes, &scale, &bias));
    w[3] = (float)INFINITY;
    T_CHECK(!aeg_quantise_group(w, 32, 4, codes, &scale, &bias));
    w[3] = 3e38f;
    w[4] = -3e38f; /* the range overflows */
    T_CHECK(!aeg_quantise_group(w, 32, 4, codes, &scale, &bias));
}

/* --- blocks -------------------------------------------------------------------------------------------------- */

enum { MAX_COLS = 512 };

typedef struct {
    aeg_rows rows;
    uint8_t codes[AEG_ROWS][MAX_COLS];
    uint8_t weight[AEG_ROWS * MAX_COLS * 4], scales[AEG_ROWS * MAX_COLS], biases[AEG_ROWS * MAX_COLS];
} block_case;

/* n_rows random rows of an affine type; every byte of scales and biases is random. */
static void fill_affine(block_case *c, aeg_weight_type type, uint32_t n_rows, uint32_t n_cols)
{
    c->rows = (aeg_rows){ .type = type, .n_cols = n_cols, .weight = c->weight + 1, .scales = c->scales + 1,
                          .biases = c->biases + 1 }; /* sources are not aligned */
    t_fill_random(c->scales, sizeof c->scales);
    t_fill_random(c->biases, sizeof c->biases);
    for (uint32_t r = 0; r < n_rows; r++) {
        for (uint32_t i = 0; i < n_cols; i++)
            c->codes[r][i] = (uint8_t)t_below(1u << type.bits);
        aeg_codes_pack(c->codes[r], n_cols, type.bits, c->weight + 1 + r * aeg_rows_weight_bytes(type, n_cols));
    }
}

static void expect_tiles(const block_case *c, uint32_t n_rows, uint8_t *out)
{
    const aeg_weight_type type = c->rows.type;
    const size_t s = type.scale_kind == AEG_W_F32 ? 4 : 2, row = aeg_rows_scale_bytes(type, c->rows.n_cols);
    for (uint32_t g = 0; g < c->rows.n_cols / type.group; g++) {
        uint8_t codes[AEG_ROWS * 128] = { 0 };
        uint32_t scales[AEG_ROWS] = { 0 }, biases[AEG_ROWS] = { 0 };
        for (uint32_t r = 0; r < n_rows; r++) {
            memcpy(codes + (size_t)r * type.group, c->codes[r] + (size_t)g * type.group, type.group);
            memcpy(&scales[r], c->rows.scales + r * row + g * s, s);
            memcpy(&biases[r], c->rows.biases + r * row + g * s, s);
        }
        aeg_tile_pack(type, codes, scales, biases, out + g * aeg_tile_bytes(type));
    }
}

static void moving_equals_the_slow_way(void **state)
{
    (void)state;
    static const uint8_t widths[] = { 2, 3, 4, 5, 6, 8 }, groups[] = { 32, 64, 128 };
    block_case *c = malloc(sizeof *c);
    uint8_t *want = malloc(1 << 18), *got = malloc(1 << 18);
    for (size_t b = 0; b < sizeof widths; b++)
        for (size_t g = 0; g < sizeof groups; g++)
            for (uint8_t kind = AEG_W_F32; kind <= AEG_W_BF16; kind++) {
                const aeg_weight_type type = { .kind = AEG_W_AFFINE, .bits = widths[b], .group = groups[g], .scale_kind = kind };
                const uint32_t n_rows = 1 + (uint32_t)t_below(AEG_ROWS), cols = groups[g] * (1 + (uint32_t)t_below(4));
                const size_t bytes = aeg_block_bytes(type, cols);
                fill_affine(c, type, n_rows, cols);
                expect_tiles(c, n_rows, want);
                memset(got, 0xa5, bytes + 1);
                T_CHECK(aeg_block_pack(&c->rows, n_rows, type, got));
                T_CHECK(memcmp(got, want, bytes) == 0 && got[bytes] == 0xa5);
            }
    free(want);
    free(got);
    free(c);
}

/* Any width from any other: the same as quantising the values of the row. */
static void changing_the_width_quantises_the_values(void **state)
{
    (void)state;
    static const uint8_t widths[] = { 2, 3, 4, 5, 6, 8 };
    block_case *c = malloc(sizeof *c);
    uint8_t *got = malloc(1 << 18), *row = malloc(1 << 14);
    for (size_t in = 0; in < sizeof widths; in++)
        for (size_t out = 0; out < sizeof widths; out++) {
            const aeg_weight_type a = { .kind = AEG_W_AFFINE, .bits = widths[in], .group = 64, .scale_kind = AEG_W_F16 };
            aeg_weight_type b = a;
            b.bits = widths[out];
            if (in == out)
                continue;
            fill_affine(c, a, 3, 128);
            for (size_t i = 0; i < 3 * 2; i++) { /* tame scales and biases */
                const uint16_t s = aeg_f16_from_f32(t_normal()), z = aeg_f16_from_f32(t_normal());
                memcpy(c->scales + 1 + 2 * i, &s, 2);
                memcpy(c->biases + 1 + 2 * i, &z, 2);
            }
            T_CHECK(aeg_block_pack(&c->rows, 3, b, got));
            for (uint32_t r = 0; r < 3; r++)
                for (uint32_t g = 0; g < 2; g++) {
                    float w[64], scale, bias;
                    uint8_t codes[64], tile[AEG_ROWS * 64];
                    uint32_t scales[AEG_ROWS], biases[AEG_ROWS];
                    uint16_t s, z;
                    memcpy(&s, c->scales + 1 + 2 * (2 * r + g), 2);
                    memcpy(&z, c->biases + 1 + 2 * (2 * r + g), 2);
                    for (uint32_t i = 0; i < 64; i++) {
                        w[i] = aeg_f32_from_f16(s) * (float)c->codes[r][64 * g + i];
                        w[i] = w[i] + aeg_f32_from_f16(z);
                    }
                    T_CHECK(aeg_quantise_group(w, 64, b.bits, codes, &scale, &bias));
                    aeg_tile_unpack(b, got + g * aeg_tile_bytes(b), tile, scales, biases);
                    T_CHECK(memcmp(codes, tile + 64 * r, 64) == 0);
                    T_CHECK(scales[r] == aeg_stored_bits(AEG_W_F16, scale) && biases[r] == aeg_stored_bits(AEG_W_F16, bias));
                }
            /* the embedding's form of row 0 has the same codes */
            T_CHECK(aeg_embed_row_pack(&c->rows, b, row));
            uint8_t codes[64], tile[AEG_ROWS * 64];
            uint32_t scales[AEG_ROWS], biases[AEG_ROWS];
            aeg_codes_unpack(row, 64, b.bits, codes);
            aeg_tile_unpack(b, got, tile, scales, biases);
            T_CHECK(memcmp(codes, tile, 64) == 0);
        }
    free(row);
    free(got);
    free(c);
}

/* --- ggml types ---------------------------------------------------------------------------------------------- */

/* Random rows without infinities: the top exponent bit of every 16-bit number is 0 wherever a scale may be. */
static void fill_blocks(block_case *c, uint8_t kind, uint32_t n_cols)
{
    c->rows = (aeg_rows){ .type = { .kind = kind }, .n_cols = n_cols, .weight = c->weight + 1 };
    t_fill_random(c->weight, sizeof c->weight);
    for (size_t i = 0; i < sizeof c->weight; i++)
        c->weight[i] &= 0xbf;
}

static void blocks_are_moved_and_missing_rows_are_zero(void **state)
{
    (void)state;
    block_case *c = malloc(sizeof *c);
    uint8_t *got = malloc(1 << 18);
    for (uint8_t kind = AEG_W_Q8_0; kind < AEG_W_BLOCKS_END; kind++) {
        const uint32_t n_rows = 1 + (uint32_t)t_below(AEG_ROWS);
        fill_blocks(c, kind, MAX_COLS);
        const size_t bytes = aeg_block_bytes(c->rows.type, MAX_COLS), row_bytes = aeg_rows_weight_bytes(c->rows.type, MAX_COLS);
        T_CHECK(aeg_rows_scale_bytes(c->rows.type, MAX_COLS) == 0);
        memset(got, 0xa5, bytes + 1);
        T_CHECK(aeg_block_pack(&c->rows, n_rows, c->rows.type, got));
        T_CHECK(got[bytes] == 0xa5);
        const aeg_weights w = { .type = c->rows.type, .n_rows = AEG_ROWS, .n_cols = MAX_COLS, .block_stride = bytes, .data = got };
        for (uint32_t r = 0; r < AEG_ROWS; r++) {
            float a[MAX_COLS], b[MAX_COLS] = { 0 };
            uint8_t back[MAX_COLS / 32 * 34];
            aeg_weights_row(&w, r, a);
            if (r < n_rows) {
                aeg_blocks_unpack_lane(kind, got, MAX_COLS, r, back);
                T_CHECK(memcmp(back, aeg_rows_at(&c->rows, r).weight, row_bytes) == 0);
                aeg_blocks_source_row(kind, back, MAX_COLS, b);
            }
            for (uint32_t i = 0; i < MAX_COLS; i++)
                T_CHECK(a[i] == b[i]);
        }
        T_CHECK(aeg_embed_row_pack(&c->rows, c->rows.type, got));
        T_CHECK(memcmp(got, c->rows.weight, row_bytes) == 0);
    }
    free(got);
    free(c);
}

/* Asking for affine codes quantises the values, whatever the block. */
static void blocks_become_affine_by_their_values(void **state)
{
    enum { COLS = 384 };
    (void)state;
    const aeg_weight_type out = { .kind = AEG_W_AFFINE, .bits = 4, .group = 64, .scale_kind = AEG_W_F16 };
    block_case *c = malloc(sizeof *c);
    uint8_t *got = malloc(1 << 18), *want = malloc(1 << 18);
    for (uint8_t kind = AEG_W_Q8_0; kind < AEG_W_BLOCKS_END; kind++) {
        float w[2][512];
        const uint32_t cols = aeg_block_shape_of(kind).cols == 32 ? COLS : 512;
        fill_blocks(c, kind, cols);
        const aeg_rows plain = { .type = { .kind = AEG_W_F32 }, .n_cols = cols, .weight = (const uint8_t *)w };
        for (uint32_t r = 0; r < 2; r++)
            aeg_blocks_source_row(kind, aeg_rows_at(&c->rows, r).weight, cols, w[0] + r * cols);
        T_CHECK(aeg_block_pack(&c->rows, 2, out, got));
        T_CHECK(aeg_block_pack(&plain, 2, out, want));
        T_CHECK(memcmp(got, want, aeg_block_bytes(out, cols)) == 0);
        T_CHECK(aeg_embed_row_pack(&c->rows, out, got));
        T_CHECK(aeg_embed_row_pack(&plain, out, want));
        T_CHECK(memcmp(got, want, aeg_rows_weight_bytes(out, cols) + 2 * aeg_rows_scale_bytes(out, cols)) == 0);
    }
    free(want);
    free(got);
    free(c);
}

/* Known codes, and a 130 x 130 matrix, whose last block of 2 x 2 has a scale of its own. */
static void f8_codes_have_the_known_values(void **state)
{
    enum { SIDE = 130 };
    static const struct { uint8_t code; float value; } known[] = {
        { 0x00, 0 }, { 0x01, 0.001953125f }, { 0x07, 0.013671875f }, { 0x08, 0.015625f }, { 0x38, 1 }, { 0x3f, 1.875f },
        { 0x45, 3.25f }, { 0x7e, 448 }, { 0xb8, -1 }, { 0xfe, -448 } };
    static uint8_t codes[SIDE * SIDE], scale_bytes[2 * SIDE * sizeof(float)];
    const aeg_tensor weight = { .dims = { SIDE, SIDE }, .rank = 2 };
    const aeg_source_matrix m = { .weight = &weight, .n_rows = SIDE, .n_cols = SIDE };
    const float tensor[2][2] = { { 1, 2 }, { 4, 0.5f } };
    float out[SIDE];
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_true(aeg_f8_value(1, known[i].code) == known[i].value);
    assert_true(signbit(aeg_f8_value(1, 0x80)) && aeg_f8_value(1, 0x80) == 0);
    memset(codes, 0x45, sizeof codes);
    for (uint32_t r = 0; r < SIDE; r++)
        memcpy(scale_bytes + r * sizeof tensor[0], tensor[aeg_source_scale_row(&m, r)], sizeof tensor[0]);
    const aeg_rows rows = { .type = { .kind = AEG_W_F8 }, .n_cols = SIDE, .weight = codes, .scales = scale_bytes };
    assert_int_equal(aeg_rows_bytes(rows.type, SIDE), SIDE + 2 * sizeof(float));
    for (uint32_t r = 0; r < SIDE; r++) {
        const aeg_rows row = aeg_rows_at(&rows, r);
        aeg_rows_floats(&row, 0, SIDE, out);
        for (uint32_t c = 0; c < SIDE; c++)
            assert_true(out[c] == 3.25f * tensor[r / 128][c / 128]);
    }
    assert_true(out[129] == 1.625f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f8_codes_have_the_known_values),
        cmocka_unit_test(quantising_is_that_of_mlx),
        cmocka_unit_test(odd_groups),
        cmocka_unit_test(moving_equals_the_slow_way),
        cmocka_unit_test(changing_the_width_quantises_the_values),
        cmocka_unit_test(blocks_are_moved_and_missing_rows_are_zero),
        cmocka_unit_test(blocks_become_affine_by_their_values),
    };
    return cmocka_run_group_tests_name("pack_block", tests, NULL, NULL);
}
