/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample/random.h"

static aeg_arena the_arena;

static aeg_sampler *new_sampler(uint32_t vocab_size)
{
    aeg_sampler *s = NULL;
    aeg_arena measure = aeg_arena_measure("sampler");
    assert_int_equal(aeg_sampler_init(&s, &measure, vocab_size, NULL), AEGIS_OK);
    assert_null(s);
    assert_int_equal(aeg_arena_map(&the_arena, "sampler", measure.used, false, NULL), AEGIS_OK);
    assert_int_equal(aeg_sampler_init(&s, &the_arena, vocab_size, NULL), AEGIS_OK);
    assert_int_equal(the_arena.used, measure.used);
    return s;
}

static void drop_sampler(void) { aeg_arena_unmap(&the_arena); }

static aegis_sampling sampling(double temperature)
{
    aegis_sampling p;
    aegis_sampling_greedy(&p);
    p.temperature = temperature;
    return p;
}

static void philox_gives_the_published_vectors(void **state)
{
    (void)state;
    static const struct { uint32_t counter[4], key[2], out[4]; } known[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { ~0u, ~0u, ~0u, ~0u }, { ~0u, ~0u }, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t out[4];
        aeg_random_block(out, known[i].counter, known[i].key);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

static void greedy_takes_the_lowest_id_on_a_tie(void **state)
{
    (void)state;
    aeg_sampler *s = new_sampler(5);
    const float logits[5] = { 1, 3, -2, 3, 3 };
    assert_int_equal(aeg_sampler_next(s, logits, NULL, 0), 1);
    drop_sampler();
}

/* Softmax of { 0, 1, 2, 3 } at T = 1: counts of 40,000 draws lie within 5 standard deviations. */
static void draws_follow_the_softmax(void **state)
{
    (void)state;
    enum { N = 40000 };
    aeg_sampler *s = new_sampler(4);
    const float logits[4] = { 0, 1, 2, 3 };
    for (int variant = 0; variant < 2; variant++) { /* all tokens; sorted top-k with the same set */
        aegis_sampling p = sampling(1);
        p.seed = 7 + variant;
        if (variant == 1)
            p.top_p = 0.999999999;
        aeg_sampler_set(s, &p);
        uint32_t count[4] = { 0 };
        for (int i = 0; i < N; i++)
            count[aeg_sampler_next(s, logits, NULL, 0)]++;
        const double z = 1 + exp(1) + exp(2) + exp(3);
        for (int k = 0; k < 4; k++) {
            const double q = exp(k) / z;
            assert_true(fabs(count[k] - N * q) < 5 * sqrt(N * q * (1 - q)));
        }
    }
    drop_sampler();
}

static uint32_t seen_set(aeg_sampler *s, const aegis_sampling *p, const float *logits, int n_draws)
{
    uint32_t seen = 0;
    aeg_sampler_set(s, p);
    for (int i = 0; i < n_draws; i++)
        seen |= 1u << aeg_sampler_next(s, logits, NULL, 0);
    return seen;
}

static void filters_keep_exactly_the_right_tokens(void **state)
{
    (void)state;
    aeg_sampler *s = new_sampler(6);
    /* probabilities .4 .3 .15 .1 .04 .01, shuffled */
    const float logits[6] = { logf(.1f), logf(.4f), logf(.01f), logf(.3f), logf(.15f), logf(.04f) };
    aegis_sampling p = sampling(1);
    assert_int_equal(seen_set(s, &p, logits, 5000), 0x3f);
    p.top_k = 2;
    assert_int_equal(seen_set(s, &p, logits, 2000), 1u << 1 | 1u << 3);
    p.top_k = 0;
    p.top_p = 0.75; /* .4 + .3 < .75 <= .4 + .3 + .15 */
    assert_int_equal(seen_set(s, &p, logits, 3000), 1u << 1 | 1u << 3 | 1u << 4);
    p.top_k = 4; /* of .95: .4 + .3 = .7 < .7125 */
    assert_int_equal(seen_set(s, &p, logits, 3000), 1u << 1 | 1u << 3 | 1u << 4);
    p.top_p = 0;
    assert_int_equal(seen_set(s, &p, logits, 500), 1u << 1);
    p.top_k = 0;
    p.top_p = 1;
    p.min_p = 0.2; /* at least .08 */
    assert_int_equal(seen_set(s, &p, logits, 5000), 1u << 0 | 1u << 1 | 1u << 3 | 1u << 4);
    p.min_p = 1;
    assert_int_equal(seen_set(s, &p, logits, 500), 1u << 1);
    drop_sampler();
}

static void top_k_ties_keep_the_lower_ids(void **state)
{
    (void)state;
    aeg_sampler *s = new_sampler(8);
    const float logits[8] = { 1, 2, 1, 2, 1, 2, 1, 1 };
    aegis_sampling p = sampling(5);
    p.top_k = 5;
    assert_int_equal(seen_set(s, &p, logits, 3000), 1u << 1 | 1u << 3 | 1u << 5 | 1u << 0 | 1u << 2);
    drop_sampler();
}

/* top-k by heap against a full sort, on random logits with many ties. */
static int by_logit(const void *a, const void *b, void *logits)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const float lx = ((const float *)logits)[x], ly = ((const float *)logits)[y];
    return lx != ly ? (lx < ly ? 1 : -1) : (x > y) - (x < y);
}

static void top_k_agrees_with_a_full_sort(void **state)
{
    (void)state;
    enum { V = 300 };
    aeg_sampler *s = new_sampler(V);
    srand(1);
    for (int round = 0; round < 200; round++) {
        float logits[V];
        uint32_t order[V];
        for (uint32_t i = 0; i < V; i++) {
            logits[i] = (float)(rand() % 40) * 0.01f;
            order[i] = i;
        }
        qsort_r(order, V, sizeof order[0], by_logit, logits);
        aegis_sampling p = sampling(1);
        p.top_k = 1 + rand() % V;
        p.top_p = round % 2 ? 0.5 : 1;
        p.seed = round;
        aeg_sampler_set(s, &p);
        bool allowed[V] = { false };
        for (int i = 0; i < p.top_k; i++)
            allowed[order[i]] = true;
        for (int i = 0; i < 50; i++)
            assert_true(allowed[aeg_sampler_next(s, logits, NULL, 0)]);
    }
    drop_sampler();
}

static void penalties_do_what_their_formulas_say(void **state)
{
    (void)state;
    aeg_sampler *s = new_sampler(4);
    const float logits[4] = { 4, 3.5f, -1, -1.5f };
    const uint32_t recent[] = { 0, 0, 2 };
    aegis_sampling p = sampling(0);
    p.repeat_penalty = 1.1; /* 4 / 1.1 = 3.64: once, not per occurrence */
    aeg_sampler_set(s, &p);
    assert_int_equal(aeg_sampler_next(s, logits, recent, 3), 0);
    p.repeat_penalty = 1.2; /* 3.33 */
    aeg_sampler_set(s, &p);
    assert_int_equal(aeg_sampler_next(s, logits, recent, 3), 1);

    const float negative[4] = { -9, -9, -1, -1.5f }; /* -1 * 1.6 < -1.5 */
    p.repeat_penalty = 1.6;
    aeg_sampler_set(s, &p);
    assert_int_equal(aeg_sampler_next(s, negative, recent, 3), 3);

    p = sampling(0);
    p.presence_penalty = 0.4;
    aeg_sampler_set(s, &p);
    assert_int_equal(aeg_sampler_next(s, logits, recent, 3), 0); /* 3.6 */
    p.presence_penalty = 0;
    p.frequency_penalty = 0.3; /* twice: 3.4 */
    aeg_sampler_set(s, &p);
    assert_int_equal(aeg_sampler_next(s, logits, recent, 3), 1);
    p.penalty_last_n = 2; /* one 0 is out of sight: 3.7 */
    aeg_sampler_set(s, &p);
    assert_int_equal(aeg_sampler_next(s, logits, recent, 3), 0);
    const uint32_t outside[] = { 99, 4 }; /* ids that are no tokens are passed over */
    assert_int_equal(aeg_sampler_next(s, logits, outside, 2), 0);
    drop_sampler();
}

static void bias_moves_and_bans_tokens(void **state)
{
    (void)state;
    aeg_sampler *s = new_sampler(3);
    const float logits[3] = { 5, 4, 1 };
    aegis_sampling p = sampling(0);
    p.n_bias = 2;
    p.bias[0].id = 0;
    p.bias[0].bias = -INFINITY;
    p.bias[1].id = 77;
    p.bias[1].bias = 10;
    aeg_sampler_set(s, &p);
    assert_int_equal(aeg_sampler_next(s, logits, NULL, 0), 1);
    p.bias[1].id = 2;
    aeg_sampler_set(s, &p);
    assert_int_equal(aeg_sampler_next(s, logits, NULL, 0), 2);
    p.temperature = 1;
    assert_int_equal(seen_set(s, &p, logits, 2000) & 1u, 0);
    drop_sampler();
}

/* The whole point of a counter-based generator: these ids are the same on every machine. */
static void same_seed_same_tokens(void **state)
{
    (void)state;
    enum { V = 1000, N = 16 };
    aeg_sampler *s = new_sampler(V);
    float logits[V];
    for (int i = 0; i < V; i++)
        logits[i] = (float)((i * 7919) % 1000) * 0.005f;
    static const int64_t seeds[] = { 1, 1 + (INT64_C(1) << 32), INT64_MIN, -1 };
    uint32_t first[4][N];
    for (int k = 0; k < 4; k++) {
        aegis_sampling p = sampling(0.8);
        p.top_k = 40;
        p.top_p = 0.95;
        p.seed = seeds[k];
        aeg_sampler_set(s, &p);
        for (int i = 0; i < N; i++)
            first[k][i] = aeg_sampler_next(s, logits, NULL, 0);
        aeg_sampler_set(s, &p);
        for (int i = 0; i < N; i++)
            assert_int_equal(aeg_sampler_next(s, logits, NULL, 0), first[k][i]);
        for (int other = 0; other < k; other++)
            assert_memory_not_equal(first[k], first[other], sizeof first[k]);
    }
    static const uint32_t pinned[N] = { 914, 25, 889, 988, 889, 926, 136, 778,
                                        272, 568, 210, 383, 815, 815, 309, 136 };
    assert_memory_equal(first[0], pinned, sizeof pinned);
    drop_sampler();
}

static void odd_logits_have_a_defined_answer(void **state)
{
    (void)state;
    aeg_sampler *s = new_sampler(4);
    const float none[4] = { -INFINITY, NAN, -INFINITY, NAN };
    const float some[4] = { NAN, -INFINITY, -5, NAN };
    const float top[4] = { 0, INFINITY, 3, NAN };
    for (int k = 0; k < 4; k++) {
        aegis_sampling p = sampling(k == 0 ? 0 : 1.5);
        p.top_k = k == 2 ? 2 : 0;
        p.top_p = k == 3 ? 0.9 : 1;
        aeg_sampler_set(s, &p);
        for (int i = 0; i < 50; i++) {
            assert_int_equal(aeg_sampler_next(s, none, NULL, 0), 0);
            assert_int_equal(aeg_sampler_next(s, some, NULL, 0), 2);
            assert_int_equal(aeg_sampler_next(s, top, NULL, 0), 1);
        }
    }
    drop_sampler();
}

static void a_vocabulary_of_one_works(void **state)
{
    (void)state;
    aeg_sampler *s = new_sampler(1);
    const float logits[1] = { -3 };
    const uint32_t recent[1] = { 0 };
    aegis_sampling p = sampling(1);
    p.top_k = 1000000;
    p.top_p = 0.5;
    p.min_p = 0.5;
    p.repeat_penalty = 2;
    aeg_sampler_set(s, &p);
    assert_int_equal(aeg_sampler_next(s, logits, recent, 1), 0);
    drop_sampler();
    aeg_arena arena = aeg_arena_measure("sampler");
    assert_int_equal(aeg_sampler_init(&s, &arena, 0, NULL), AEGIS_E_USAGE);
}

static void settings_out_of_range_are_named(void **state)
{
    (void)state;
    aegis_error err;
    aegis_sampling p = sampling(0.7);
    assert_int_equal(aegis_sampling_check(&p, &err), AEGIS_OK);
    p.temperature = -1;
    assert_int_equal(aegis_sampling_check(&p, &err), AEGIS_E_USAGE);
    assert_non_null(strstr(err.message, "temperature"));
    p.temperature = NAN;
    assert_int_equal(aegis_sampling_check(&p, &err), AEGIS_E_USAGE);
    p = sampling(1);
    p.top_p = 1.01;
    assert_int_equal(aegis_sampling_check(&p, &err), AEGIS_E_USAGE);
    assert_non_null(strstr(err.message, "top_p"));
    p = sampling(1);
    p.repeat_penalty = 0;
    assert_int_equal(aegis_sampling_check(&p, &err), AEGIS_E_USAGE);
    p = sampling(1);
    p.top_k = -1;
    assert_int_equal(aegis_sampling_check(&p, &err), AEGIS_E_USAGE);
    p = sampling(1);
    p.n_bias = 1;
    p.bias[0].bias = NAN;
    assert_int_equal(aegis_sampling_check(&p, &err), AEGIS_E_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_vectors),
        cmocka_unit_test(greedy_takes_the_lowest_id_on_a_tie),
        cmocka_unit_test(draws_follow_the_softmax),
        cmocka_unit_test(filters_keep_exactly_the_right_tokens),
        cmocka_unit_test(top_k_ties_keep_the_lower_ids),
        cmocka_unit_test(top_k_agrees_with_a_full_sort),
        cmocka_unit_test(penalties_do_what_their_formulas_say),
        cmocka_unit_test(bias_moves_and_bans_tokens),
        cmocka_unit_test(same_seed_same_tokens),
        cmocka_unit_test(odd_logits_have_a_defined_answer),
        cmocka_unit_test(a_vocabulary_of_one_works),
        cmocka_unit_test(settings_out_of_range_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
