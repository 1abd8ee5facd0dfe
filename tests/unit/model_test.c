/* SPDX-License-Identifier: Apache-2.0 */
/* model/: sines, grouped routes, products of several matrices at once. */
#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "model/blocks/linear.h"
#include "model/blocks/routes.h"
#include "model/blocks/mla.h"
#include "model/rope.h"
#include "support/t.h"

static void sines_agree_with_double(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 200000; i++) {
        const float angle = i < 100000 ? (float)i * 0.37f : (float)(t_normal() * 3e5);
        float s, c;
        aeg_sincos(angle, &s, &c);
        T_CHECK(fabs((double)s - sin((double)angle)) < 1e-7 && fabs((double)c - cos((double)angle)) < 1e-7);
    }
}

/* x[i] = i + 1, 64 rotating dims, position 3, theta 1e7: computed in double precision elsewhere. */
static void a_known_row_rotates_right(void **state)
{
    (void)state;
    aeg_arena arena = t_arena(1 << 16);
    aeg_kernels k;
    aeg_rope rope;
    float x[64];
    aeg_kernels_init(&k, AEG_CPU_SCALAR);
    const aeg_hparams hp = { .rope_dim = 64, .rope_theta = 1e7 };
    aeg_rope_init(&rope, &arena, &hp, 4);
    aeg_rope_fill(&rope, 0, 4);
    for (uint32_t i = 0; i < 64; i++)
        x[i] = (float)(i + 1);
    k.rope(x, rope.cos + 3 * 32, rope.sin + 3 * 32, 32);
    static const struct { uint32_t at; double want; } rows[] = {
        { 0, -5.646953 }, { 1, -33.487975 }, { 2, -29.748113 }, { 31, 31.999968 },
        { 32, -32.528632 }, { 33, -6.209312 }, { 34, 18.682874 }, { 63, 64.000016 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        T_CHECK(fabs(x[rows[i].at] - rows[i].want) < 2e-5);
    aeg_arena_unmap(&arena);
}

T_PROPERTY(routes_are_grouped_by_expert_and_token, 200)
{
    const uint32_t n = (uint32_t)t_between(1, 40), n_experts = (uint32_t)t_between(1, 30);
    const uint32_t top_k = (uint32_t)t_between(1, n_experts < 6 ? n_experts : 6);
    aeg_arena arena = t_arena(1 << 18);
    aeg_routes r;
    aeg_routes_init(&r, &arena, n, top_k, n_experts);
    for (uint32_t t = 0; t < n; t++) {
        uint32_t id = 0, left = top_k; /* a random ascending choice */
        for (uint32_t i = 0; i < top_k; i++, left--, id++) {
            id += (uint32_t)t_below(n_experts - id - left + 1);
            r.ids[t * top_k + i] = (uint16_t)id;
            r.weights[t * top_k + i] = (float)(t * 1000 + id);
        }
    }
    aeg_routes_group(&r, n, top_k, n_experts);
    T_CHECK(r.n_routes == n * top_k && r.first[r.n_needed] == r.n_routes);
    for (uint32_t i = 0; i < r.n_needed; i++) {
        T_CHECK(i == 0 || r.experts[i] > r.experts[i - 1]);
        T_CHECK(r.first[i + 1] - r.first[i] == r.uses[i] && r.uses[i] > 0);
        for (uint32_t k = r.first[i]; k < r.first[i + 1]; k++) {
            T_CHECK(r.weight[k] == (float)(r.token[k] * 1000 + r.experts[i]));
            T_CHECK(k == r.first[i] || r.token[k] > r.token[k - 1]);
        }
    }
    aeg_arena_unmap(&arena);
}

/* The order in which a token names its experts is not the order of the sums: any permutation gives one table. */
T_PROPERTY(permuted_routes_give_the_same_table, 200)
{
    enum { N = 9, K = 5, EXPERTS = 20 };
    aeg_arena arena = t_arena(1 << 18);
    aeg_routes a, b;
    aeg_routes_init(&a, &arena, N, K, EXPERTS);
    aeg_routes_init(&b, &arena, N, K, EXPERTS);
    for (uint32_t t = 0; t < N; t++) {
        uint16_t deck[EXPERTS];
        for (uint32_t i = 0; i < EXPERTS; i++)
            deck[i] = (uint16_t)i;
        for (uint32_t i = 0; i < K; i++) { /* K different experts, in random order */
            const uint32_t j = (uint32_t)t_between(i, EXPERTS - 1);
            const uint16_t id = deck[j];
            deck[j] = deck[i];
            deck[i] = id;
            a.ids[t * K + i] = id;
            a.weights[t * K + i] = t_normal();
        }
        const uint32_t turn = (uint32_t)t_below(K);
        for (uint32_t i = 0; i < K; i++) {
            b.ids[t * K + i] = a.ids[t * K + (i + turn) % K];
            b.weights[t * K + i] = a.weights[t * K + (i + turn) % K];
        }
    }
    aeg_routes_group(&a, N, K, EXPERTS);
    aeg_routes_group(&b, N, K, EXPERTS);
    T_CHECK(a.n_needed == b.n_needed && a.n_routes == b.n_routes);
    T_CHECK(memcmp(a.experts, b.experts, a.n_needed * sizeof a.experts[0]) == 0);
    T_CHECK(memcmp(a.first, b.first, (a.n_needed + 1) * sizeof a.first[0]) == 0);
    T_CHECK(memcmp(a.token, b.token, a.n_routes * sizeof a.token[0]) == 0);
    T_CHECK(memcmp(a.weight, b.weight, a.n_routes * sizeof a.weight[0]) == 0);
    aeg_arena_unmap(&arena);
}

/* Packed 3-bit codes are the same numbers as the same codes stored as nibbles, on every level and path. */
T_PROPERTY(three_bits_equal_the_same_codes_as_nibbles, 30)
{
    enum { COLS = 256, ROWS = 48, N = 9, GROUP = 64, GROUPS = COLS / GROUP, BLOCKS = ROWS / 16 };
    static const uint32_t levels[] = { AEG_CPU_SCALAR, AEG_CPU_AVX2, AEG_CPU_AVX2 | AEG_CPU_AVX512, AEG_CPU_NEON };
    const aeg_weight_type three = { AEG_W_AFFINE, 3, AEG_W_BF16, GROUP }, four = { AEG_W_AFFINE, 4, AEG_W_BF16, GROUP };
    aeg_arena arena = t_arena(1 << 20);
    uint8_t *data[2] = { aeg_arena_alloc(&arena, aeg_matrix_bytes(three, ROWS, COLS), 64),
                         aeg_arena_alloc(&arena, aeg_matrix_bytes(four, ROWS, COLS), 64) };
    for (uint32_t tile = 0; tile < BLOCKS * GROUPS; tile++) {
        uint8_t codes[16 * GROUP];
        uint32_t scales[16], biases[16];
        for (uint32_t i = 0; i < sizeof codes; i++)
            codes[i] = (uint8_t)t_below(8);
        for (uint32_t i = 0; i < 16; i++) {
            scales[i] = aeg_bf16_from_f32(t_normal() * 0.02f);
            biases[i] = aeg_bf16_from_f32(t_normal() * 0.1f);
        }
        aeg_tile_pack(three, codes, scales, biases, data[0] + tile * aeg_tile_bytes(three));
        aeg_tile_pack(four, codes, scales, biases, data[1] + tile * aeg_tile_bytes(four));
    }
    float x[N * COLS], y[2][N * ROWS];
    for (uint32_t i = 0; i < N * COLS; i++)
        x[i] = t_normal();
    for (uint32_t level = 0; level < 4; level++)
        for (uint32_t act = AEG_ACT_F32; act <= AEG_ACT_I16; act++) {
            if ((aeg_cpu_detect() & levels[level]) != levels[level])
                continue;
            aeg_kernels k;
            aeg_kernels_init(&k, levels[level]);
            const aeg_compute c = { .kernels = &k, .act = (aeg_act_kind)act };
            aeg_act_room room;
            aeg_act_room_init(&room, &arena, c.act, N, COLS);
            for (uint32_t form = 0; form < 2; form++) {
                const aeg_weights w = { .type = form == 0 ? three : four, .n_rows = ROWS, .n_cols = COLS, .data = data[form],
                                        .block_stride = aeg_block_bytes(form == 0 ? three : four, COLS) };
                const aeg_linear_out out = { .w = &w, .y = y[form], .y_stride = ROWS };
                aeg_linear(&c, &room, x, N, COLS, &out, 1);
            }
            T_CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0);
        }
    aeg_arena_unmap(&arena);
}

/* Several matrices of mixed types at once, on all that the processor has, give what one row at a time gives in plain C. */
T_PROPERTY(matrices_at_once_equal_rows_alone, 40)
{
    enum { COLS = 256, OUTS = 8, MAX_ROWS = 40, MAX_N = 5 };
    static const aeg_weight_type types[] = {
        { AEG_W_AFFINE, 4, AEG_W_BF16, 64 }, { AEG_W_AFFINE, 8, AEG_W_F16, 32 },
        { AEG_W_AFFINE, 3, AEG_W_F32, 128 }, { AEG_W_BF16, 0, 0, 0 },
        { AEG_W_Q5_0, 0, 0, 0 }, { AEG_W_Q6_K, 0, 0, 0 }, { AEG_W_Q2_K, 0, 0, 0 }, { AEG_W_IQ4_NL, 0, 0, 0 },
    };
    aeg_arena arena = t_arena(4 << 20);
    aeg_kernels k, scalar;
    aeg_kernels_init(&k, aeg_cpu_detect());
    aeg_kernels_init(&scalar, AEG_CPU_SCALAR);
    aeg_team *team = NULL;
    T_OK(aeg_team_init(&team, &arena, (uint32_t)t_between(1, 3), NULL), NULL);
    const aeg_compute c = { .kernels = &k, .team = team, .act = (aeg_act_kind)t_below(3) };
    const aeg_compute plain = { .kernels = &scalar, .team = team, .act = c.act };
    const uint32_t n = (uint32_t)t_between(1, MAX_N);
    float x[MAX_N * COLS], y[OUTS][MAX_N * MAX_ROWS], alone[MAX_ROWS];
    for (uint32_t i = 0; i < n * COLS; i++)
        x[i] = t_normal();

    aeg_weights w[OUTS];
    aeg_linear_out outs[OUTS];
    for (uint32_t i = 0; i < OUTS; i++) {
        w[i] = (aeg_weights){ .type = types[i], .n_rows = (uint32_t)t_between(1, MAX_ROWS), .n_cols = COLS,
                              .block_stride = aeg_block_bytes(types[i], COLS) };
        const uint64_t bytes = aeg_matrix_bytes(types[i], w[i].n_rows, COLS);
        uint8_t *data = aeg_arena_alloc(&arena, bytes, 64);
        for (uint64_t b = 0; b < bytes; b++)
            data[b] = (uint8_t)(t_below(256) & 0x3b); /* small finite scales in every type */
        w[i].data = data;
        outs[i] = (aeg_linear_out){ .w = &w[i], .y = y[i], .y_stride = MAX_ROWS, .exact = t_below(2) == 0 };
    }
    aeg_act_room room;
    aeg_act_room_init(&room, &arena, (aeg_act_kind)(c.act | AEG_ACT_SUMS), MAX_N, COLS);
    aeg_linear(&c, &room, x, n, COLS, outs, OUTS);
    for (uint32_t i = 0; i < OUTS; i++)
        for (uint32_t t = 0; t < n; t++) {
            aeg_linear_out one = outs[i];
            one.y = alone;
            aeg_linear(&plain, &room, x + t * COLS, 1, COLS, &one, 1);
            T_CHECK(memcmp(alone, y[i] + t * MAX_ROWS, w[i].n_rows * sizeof(float)) == 0);
        }
    aeg_team_close(team);
    aeg_arena_unmap(&arena);
}

/* DeepSeek-V2/V3: 64 dims, theta 1e4, factor 40 from 4096 positions; pairs 0..10 stay, those from 23 on are divided. The
 * numbers are those of its published code in double precision. */
static void yarn_divides_the_slow_pairs(void **state)
{
    (void)state;
    static const struct { uint32_t pair; double want; } pairs[] = {
        { 0, 1 }, { 1, 0.749894209 }, { 10, 0.0562341325 }, { 11, 0.0390069266 }, { 16, 0.0055 }, { 22, 0.000177827941 },
        { 23, 3.33380358e-05 }, { 31, 3.33380358e-06 },
    };
    aeg_arena arena = t_arena(1 << 16);
    aeg_rope rope;
    aeg_hparams hp = { .rope_dim = 64, .rope_theta = 1e4, .yarn_factor = 40, .yarn_orig_ctx = 4096, .yarn_beta_fast = 32,
                       .yarn_beta_slow = 1, .yarn_mscale = 1, .yarn_mscale_all = 1, .qk_nope = 128, .qk_rope = 64 };
    aeg_rope_init(&rope, &arena, &hp, 1);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        T_CHECK(fabs(rope.inv_freq[pairs[i].pair] / pairs[i].want - 1) < 2e-6);
    T_CHECK(rope.scale == 1.0f);
    T_CHECK(fabs((double)aeg_mla_scale(&hp) - 0.1352337789) < 1e-7);
    hp.yarn_mscale_all = 0.707f; /* V2-Lite */
    T_CHECK(fabs((double)aeg_mla_scale(&hp) - 0.1147213868) < 1e-7);
    hp.yarn_factor = 0; /* no YaRN: Moonlight */
    T_CHECK(fabs((double)aeg_mla_scale(&hp) - 0.0721687836) < 1e-7);
    aeg_arena_unmap(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sines_agree_with_double), cmocka_unit_test(a_known_row_rotates_right), cmocka_unit_test(yarn_divides_the_slow_pairs),
        cmocka_unit_test(permuted_routes_give_the_same_table),
        cmocka_unit_test(three_bits_equal_the_same_codes_as_nibbles),
        cmocka_unit_test(routes_are_grouped_by_expert_and_token), cmocka_unit_test(matrices_at_once_equal_rows_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
