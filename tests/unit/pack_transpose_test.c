/* SPDX-License-Identifier: Apache-2.0 */
/* Rows turned into columns, as K_b of latent attention needs: plain numbers bit for bit, codes as the f32 they stand for. */
#include <string.h>

#include "kernels/half.h"
#include "pack/block.h"
#include "support/t.h"

enum { N = 24, COLS = 64, MAX_ROW = 4 * COLS };

static void check(aeg_weight_type type, const uint8_t *weight, const uint8_t *scales, const uint8_t *biases)
{
    static uint8_t out[COLS * N * 4];
    const aeg_rows rows = { .type = type, .n_cols = COLS, .weight = weight, .scales = scales, .biases = biases };
    const aeg_weight_type made = aeg_transposed_type(type);
    const aeg_rows back = { .type = made, .n_cols = N, .weight = out };
    aeg_rows_transpose(&rows, N, out);
    for (uint32_t r = 0; r < N; r++) {
        const aeg_rows row = aeg_rows_at(&rows, r);
        float want[COLS], got[N];
        aeg_rows_floats(&row, 0, COLS, want);
        for (uint32_t c = 0; c < COLS; c++) {
            const aeg_rows column = aeg_rows_at(&back, c);
            aeg_rows_floats(&column, 0, N, got);
            T_CHECK(aeg_f32_bits(got[r]) == aeg_f32_bits(want[c]));
        }
    }
}

static void plain_numbers_stay_what_they_are(void **state)
{
    (void)state;
    static uint8_t bytes[N * MAX_ROW];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i % 4 == 3 || i % 2 == 1 ? 0x3c + i % 5 : t_random());
    const uint8_t kinds[] = { AEG_W_F32, AEG_W_F16, AEG_W_BF16 };
    for (int i = 0; i < 3; i++) {
        const aeg_weight_type type = { .kind = kinds[i] };
        T_CHECK(aeg_weight_type_equal(aeg_transposed_type(type), type));
        check(type, bytes, NULL, NULL);
    }
}

static void codes_become_the_numbers_that_they_stand_for(void **state)
{
    (void)state;
    static uint8_t codes[N * COLS];
    static uint16_t scales[N * 2], biases[N * 2], q8_0[N * 2 * 17];
    t_fill_random(codes, sizeof codes);
    t_fill_random(q8_0, sizeof q8_0);
    for (int i = 0; i < N * 2; i++) {
        scales[i] = aeg_bf16_from_f32(t_normal());
        biases[i] = aeg_bf16_from_f32(t_normal());
        q8_0[i * 17] = aeg_f16_from_f32(t_normal()); /* a block is its scale and 32 bytes */
    }
    const aeg_weight_type affine = { .kind = AEG_W_AFFINE, .bits = 4, .scale_kind = AEG_W_BF16, .group = 32 };
    check(affine, codes, (const uint8_t *)scales, (const uint8_t *)biases);
    check((aeg_weight_type){ .kind = AEG_W_Q8_0 }, (const uint8_t *)q8_0, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(plain_numbers_stay_what_they_are),
                                        cmocka_unit_test(codes_become_the_numbers_that_they_stand_for) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
