/* SPDX-License-Identifier: Apache-2.0 */
/* kv/kv.h and kv/state.h: rows land where they are read, and saved states come back. */
#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kv/kv.h"
#include "kv/state.h"
#include "support/t.h"

static void rows_are_read_back(aeg_kv_kind kind)
{
    const aeg_kv_config cfg = { .n_layers = 2, .n_kv_heads = 3, .head_dim = 16, .n_ctx = 5, .kind = kind };
    aeg_kernels kernels;
    aeg_kernels_init(&kernels, AEG_CPU_SCALAR);
    aeg_arena measure = aeg_arena_measure("kv");
    aeg_kv kv;
    T_OK(aeg_kv_init(&kv, &measure, &cfg, NULL), NULL);
    aeg_arena arena = t_arena(measure.used);
    T_OK(aeg_kv_init(&kv, &arena, &cfg, NULL), NULL);
    T_CHECK(arena.used == measure.used);

    for (uint32_t layer = 0; layer < 2; layer++)
        for (uint32_t head = 0; head < 3; head++)
            for (uint32_t pos = 0; pos < 5; pos++) {
                float k[16], v[16];
                for (uint32_t i = 0; i < 16; i++) {
                    k[i] = (float)(((layer * 3 + head) * 5 + pos) * 16 + i); /* below 2048: exact in f16 */
                    v[i] = -k[i];
                }
                aeg_kv_append(&kv, &kernels, layer, head, pos, k, v);
            }
    for (uint32_t row = 0; row < 2 * 3 * 5; row++)
        for (uint32_t i = 0; i < 16; i++) {
            aeg_attn_args at = { 0 };
            aeg_kv_block(&kv, row / 15, row / 5 % 3, 0, &at);
            const uint8_t *k = (const uint8_t *)at.k + row % 5 * at.kv_stride, *v = (const uint8_t *)at.v + row % 5 * at.kv_stride;
            const float got_k = kind == AEG_KV_F16 ? aeg_f32_from_f16(((const uint16_t *)(const void *)k)[i]) : ((const float *)(const void *)k)[i];
            const float got_v = kind == AEG_KV_F16 ? aeg_f32_from_f16(((const uint16_t *)(const void *)v)[i]) : ((const float *)(const void *)v)[i];
            T_CHECK(got_k == (float)(row * 16 + i) && got_v == -got_k);
        }
    aeg_arena_unmap(&arena);
}

static void f32_rows_are_read_back(void **state) { (void)state; rows_are_read_back(AEG_KV_F32); }
static void f16_rows_are_read_back(void **state) { (void)state; rows_are_read_back(AEG_KV_F16); }

static aeg_state make_state(aeg_arena *arena, aeg_arena *copies, uint32_t n_checkpoints)
{
    const aeg_state_config cfg = { .n_layers = 2, .v_heads = 2, .k_dim = 16, .v_dim = 16, .channels = 96,
                                   .n_checkpoints = n_checkpoints };
    aeg_state s;
    *arena = t_arena(1 << 16);
    *copies = t_arena(1 << 18);
    T_OK(aeg_state_init(&s, arena, copies, &cfg, NULL), NULL);
    return s;
}

static void a_saved_state_comes_back(void **state)
{
    (void)state;
    aeg_arena arena, copies;
    aeg_state s = make_state(&arena, &copies, 2);
    T_CHECK(aeg_state_best(&s, 100) == 0);
    for (uint32_t n = 1; n <= 3; n++) {
        s.live[7] = (float)n;
        aeg_state_conv(&s, 1)[95 + 2 * 96] = (float)(10 * n);
        aeg_state_save(&s, n);
    }
    T_CHECK(aeg_state_best(&s, 1) == 0); /* the oldest of three was dropped */
    T_CHECK(aeg_state_best(&s, 2) == 2 && aeg_state_best(&s, 100) == 3);
    aeg_state_reset(&s);
    T_CHECK(s.live[7] == 0);
    aeg_state_load(&s, 2);
    T_CHECK(s.live[7] == 2 && aeg_state_conv(&s, 1)[95 + 2 * 96] == 20);
    aeg_state_drop_after(&s, 2);
    T_CHECK(aeg_state_best(&s, 100) == 2);
    aeg_arena_unmap(&arena);
    aeg_arena_unmap(&copies);
}

static void without_checkpoints_saving_does_nothing(void **state)
{
    (void)state;
    aeg_arena arena, copies;
    aeg_state s = make_state(&arena, &copies, 0);
    aeg_state_save(&s, 5);
    T_CHECK(aeg_state_best(&s, 100) == 0);
    aeg_arena_unmap(&arena);
    aeg_arena_unmap(&copies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_rows_are_read_back), cmocka_unit_test(f16_rows_are_read_back),
        cmocka_unit_test(a_saved_state_comes_back), cmocka_unit_test(without_checkpoints_saving_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
