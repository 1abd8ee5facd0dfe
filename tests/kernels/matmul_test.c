/* SPDX-License-Identifier: Apache-2.0 */
/* Every level's matmuls give the scalar bits: all types, random, worst-case and odd sizes, guards untouched.
 * test_kernels_matmul --bench [TYPE] times them instead. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/matmul_case.h"

static const uint8_t all_bits[] = { 2, 3, 4, 5, 6, 8 };
static const uint8_t all_groups[] = { 32, 64, 128 };
static const uint32_t all_rows[] = { 1, 5, 16, 17, 33, 130 };

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static case_level levels[5];
static int n_levels;

static aeg_matmul_fn function_of(const case_level *l, const matmul_case *c)
{
    return aeg_kernels_matmul(&l->k, c->type, c->act);
}

/* Runs one level, its row blocks cut at a random place. */
static void run_level(const case_level *l, const matmul_case *c, matmul_data *d)
{
    const uint32_t n_blocks = aeg_row_blocks(c->n_rows), cut = case_random() % (n_blocks + 1);
    const aeg_matmul_fn fn = function_of(l, c);
    case_clear_y(d);
    fn(&d->args, cut, n_blocks);
    fn(&d->args, 0, cut);
}

static void check_guards(const matmul_case *c, const matmul_data *d, const char *level, const char *what)
{
    for (uint32_t m = 0; m < c->n; m++)
        for (size_t i = c->n_rows; i < d->args.y_stride; i++)
            if (d->y[m * d->args.y_stride + i] != -12345678.0f)
                fail_msg("%s: %s: wrote output %zu of token %u", level, what, i, m);
}

static void check_case(const matmul_case *c)
{
    matmul_data d;
    char what[160];
    case_describe(what, sizeof what, c);
    case_make(&d, c);
    float *expected = malloc(d.y_floats * sizeof(float));
    assert_non_null(expected);
    for (int i = 0; i < n_levels; i++) {
        run_level(&levels[i], c, &d);
        check_guards(c, &d, levels[i].name, what);
        if (i == 0)
            memcpy(expected, d.y, d.y_floats * sizeof(float));
        for (size_t o = 0; o < d.y_floats; o++)
            if (memcmp(&expected[o], &d.y[o], sizeof(float)) != 0)
                fail_msg("%s: %s: output %zu is %.9g, expected %.9g", levels[i].name, what, o, (double)d.y[o],
                         (double)expected[o]);
    }
    free(expected);
    case_free(&d);
}

/* All token counts and row counts of a type; the other dimensions are drawn. */
static void check_type(aeg_weight_type type, aeg_act_kind act)
{
    const uint32_t step = aeg_weight_col_step(type);
    for (uint32_t r = 0; r < COUNT(all_rows); r++)
        for (uint32_t n = 1; n <= 9; n++) {
            const uint32_t longest = case_random() % 16 ? (step > 128 ? 2 * step : 384) : 2048;
            const matmul_case c = { .type = type, .act = act, .n_rows = all_rows[r], .n = n,
                                    .n_cols = step * (1 + case_random() % (longest / step)),
                                    .fill = (case_fill)(case_random() % N_FILLS),
                                    .gather = case_random() % 2, .interleave = case_random() % 2 };
            if (all_rows[r] < 100 || n % 4 == 1)
                check_case(&c);
        }
}

static void check_affine(aeg_act_kind act)
{
    for (uint32_t b = 0; b < COUNT(all_bits); b++)
        for (uint32_t g = 0; g < COUNT(all_groups); g++)
            for (uint8_t kind = AEG_W_F32; kind <= AEG_W_BF16; kind++)
                check_type((aeg_weight_type){ .kind = AEG_W_AFFINE, .bits = all_bits[b], .group = all_groups[g],
                                              .scale_kind = kind }, act);
}

static void int8_products_equal_scalar(void **state)
{
    (void)state;
    check_affine(AEG_ACT_I8);
}

static void int16_products_equal_scalar(void **state)
{
    (void)state;
    check_affine(AEG_ACT_I16);
}

static void f32_products_equal_scalar(void **state)
{
    (void)state;
    check_affine(AEG_ACT_F32);
}

static void plain_products_equal_scalar(void **state)
{
    (void)state;
    for (uint8_t kind = AEG_W_F32; kind <= AEG_W_BF16; kind++)
        for (int i = 0; i < 3; i++)
            check_type((aeg_weight_type){ .kind = kind }, AEG_ACT_F32);
}

static void f8_products_equal_scalar(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        check_type((aeg_weight_type){ .kind = AEG_W_F8 }, AEG_ACT_F32);
    for (int fill = FILL_HIGHEST; fill <= FILL_LOWEST; fill++)
        for (uint32_t n = 1; n <= 9; n++) {
            const matmul_case c = { .type = { .kind = AEG_W_F8 }, .n_rows = 48, .n_cols = 256, .n = n, .fill = (case_fill)fill };
            check_case(&c);
        }
}

/* The same rows as F8 and as f32 numbers: every bit of every product is the same. */
static void f8_products_equal_those_of_the_values(void **state)
{
    const matmul_case c = { .type = { .kind = AEG_W_F8 }, .n_rows = 48, .n_cols = 384, .n = 7 };
    matmul_data d;
    static float plain[48 * 384], row[384], expected[7 * (48 + CASE_GUARD)];
    (void)state;
    case_make(&d, &c);
    for (uint32_t r = 0; r < c.n_rows; r++) {
        aeg_weights_row(&d.w, r, row);
        for (uint32_t k = 0; k < c.n_cols; k++)
            plain[(r / AEG_ROWS * c.n_cols + k) * AEG_ROWS + r % AEG_ROWS] = row[k];
    }
    const aeg_weights w = { .n_rows = c.n_rows, .n_cols = c.n_cols, .block_stride = sizeof(float) * AEG_ROWS * c.n_cols,
                            .data = (const uint8_t *)plain };
    aeg_matmul_args a = d.args;
    a.w = &w;
    for (int i = 0; i < n_levels; i++) {
        case_clear_y(&d);
        levels[i].k.plain[AEG_W_F32](&a, 0, 3);
        memcpy(expected, d.y, sizeof expected);
        case_clear_y(&d);
        levels[i].k.f8(&d.args, 0, 3);
        assert_memory_equal(d.y, expected, sizeof expected);
    }
    case_free(&d);
}

static void check_blocks(aeg_act_kind act)
{
    for (uint8_t kind = AEG_W_Q8_0; kind < AEG_W_BLOCKS_END; kind++)
        check_type((aeg_weight_type){ .kind = kind }, act);
}

static void int8_products_of_blocks_equal_scalar(void **state)
{
    (void)state;
    check_blocks(AEG_ACT_I8);
}

static void int16_products_of_blocks_equal_scalar(void **state)
{
    (void)state;
    check_blocks(AEG_ACT_I16);
}

static void f32_products_of_blocks_equal_scalar(void **state)
{
    (void)state;
    check_blocks(AEG_ACT_F32);
}

/* A saturating instruction shows here and nowhere else. */
static void extreme_codes_do_not_saturate(void **state)
{
    (void)state;
    for (uint32_t b = 0; b < COUNT(all_bits); b++)
        for (uint32_t g = 0; g < COUNT(all_groups); g++)
            for (int fill = FILL_HIGHEST; fill <= FILL_LOWEST; fill++)
                for (uint32_t n = 1; n <= 9; n++)
                    for (int act = AEG_ACT_I8; act <= AEG_ACT_I16; act++) {
                        const matmul_case c = { .act = (aeg_act_kind)act, .n_rows = 16, .n_cols = 256, .n = n,
                                                .fill = (case_fill)fill,
                                                .type = { .kind = AEG_W_AFFINE, .bits = all_bits[b],
                                                          .group = all_groups[g], .scale_kind = AEG_W_F32 } };
                        check_case(&c);
                    }
}

static void extreme_codes_of_blocks_do_not_saturate(void **state)
{
    (void)state;
    for (uint8_t kind = AEG_W_Q8_0; kind < AEG_W_BLOCKS_END; kind++)
        for (int fill = FILL_HIGHEST; fill <= FILL_LOWEST; fill++)
            for (uint32_t n = 1; n <= 9; n += 2)
                for (int act = AEG_ACT_I8; act <= AEG_ACT_I16; act++) {
                    const matmul_case c = { .act = (aeg_act_kind)act, .n_rows = 16, .n_cols = 512, .n = n,
                                            .fill = (case_fill)fill, .type = { .kind = kind } };
                    check_case(&c);
                }
}

/* The oracle itself, against sums in double of the rows as they read back. */
static void check_rows(const matmul_case *c)
{
    matmul_data d;
    float row[512];
    case_make(&d, c);
    function_of(&levels[0], c)(&d.args, 0, aeg_row_blocks(c->n_rows));
    for (uint32_t m = 0; m < c->n; m++)
        for (uint32_t r = 0; r < c->n_rows; r++) {
            double sum = 0, size = 0;
            aeg_weights_row(&d.w, r, row);
            for (uint32_t k = 0; k < c->n_cols; k++) {
                const size_t at = (size_t)d.rows[m] * c->n_cols + k;
                const double x = c->act == AEG_ACT_F32 ? (double)d.x.f32[at]
                                 : (double)d.x.d[at / d.x.block] * (c->act == AEG_ACT_I8 ? d.x.q8[at] : d.x.q16[at]);
                sum += (double)row[k] * x;
                size += fabs((double)row[k] * x);
            }
            assert_true(fabs((double)d.y[m * d.args.y_stride + r] - sum) <= 1e-5 * size);
        }
    case_free(&d);
}

static void scalar_agrees_with_the_rows_of_the_matrix(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4 * COUNT(all_bits); i++) {
        const bool plain = i >= 3 * COUNT(all_bits);
        const matmul_case c = {
            .type = { .kind = plain ? (uint8_t)(i % 3) : AEG_W_AFFINE, .bits = plain ? 0 : all_bits[i % 6],
                      .group = plain ? 0 : all_groups[i / 6 % 3], .scale_kind = plain ? 0 : (uint8_t)(i % 3) },
            .act = plain ? AEG_ACT_F32 : (aeg_act_kind)(i / 6 % 3), .n_rows = 33, .n_cols = 512, .n = 2,
            .gather = true };
        check_rows(&c);
    }
    check_rows(&(matmul_case){ .type = { .kind = AEG_W_F8 }, .n_rows = 33, .n_cols = 512, .n = 2, .gather = true });
    for (uint8_t kind = AEG_W_Q8_0; kind < AEG_W_BLOCKS_END; kind++)
        for (int act = AEG_ACT_F32; act <= AEG_ACT_I16; act++) {
            const matmul_case c = { .type = { .kind = kind }, .act = (aeg_act_kind)act, .n_rows = 33, .n_cols = 512, .n = 2,
                                    .gather = true };
            check_rows(&c);
        }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0)
        return matmul_bench(argc > 2 ? argv[2] : NULL);
    n_levels = case_levels(levels);
    printf("levels:");
    for (int i = 0; i < n_levels; i++)
        printf(" %s%s", levels[i].name, i + 1 < n_levels ? "," : "\n");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalar_agrees_with_the_rows_of_the_matrix),
        cmocka_unit_test(extreme_codes_do_not_saturate),
        cmocka_unit_test(int8_products_equal_scalar),
        cmocka_unit_test(int16_products_equal_scalar),
        cmocka_unit_test(f32_products_equal_scalar),
        cmocka_unit_test(plain_products_equal_scalar),
        cmocka_unit_test(f8_products_equal_scalar),
        cmocka_unit_test(f8_products_equal_those_of_the_values),
        cmocka_unit_test(extreme_codes_of_blocks_do_not_saturate),
        cmocka_unit_test(int8_products_of_blocks_equal_scalar),
        cmocka_unit_test(int16_products_of_blocks_equal_scalar),
        cmocka_unit_test(f32_products_of_blocks_equal_scalar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
