/* SPDX-License-Identifier: Apache-2.0 */
/* The prediction against sums done by hand, and what must hold for any input. */
#include "support/t.h"

#include <math.h>

#include "plan/predict.h"

/* 40 layers, 8 of 256 experts, 1.77 MB each; memory 27 GB/s, disk 1.1 GB/s. */
static aeg_predict_inputs example(void)
{
    return (aeg_predict_inputs){ .n_layers = 40, .top_k = 8, .dense_bytes = 1100000000, .shared_bytes = 40 * 1769472,
                                 .state_bytes = 210000000, .expert_bytes = 1769472, .record_bytes = 1769472,
                                 .hit_rate = 1, .read_bandwidth = 27e9, .disk_bytes_per_s = 1.1e9 };
}

static void without_misses_only_memory_counts(void **state)
{
    (void)state;
    aeg_predict_inputs in = example();
    const double bytes = 1100000000.0 + 210000000.0 + 320 * 1769472.0;
    const double expected = bytes / (AEG_PREDICT_ETA * 27e9) + 40 * AEG_PREDICT_LAYER_S;
    const aeg_prediction p = aeg_predict(&in);
    assert_true(fabs(p.tok_s * expected - 1) < 1e-9);
    assert_true(p.hidden == 0 && p.read_s == 0);
    in.disk_bytes_per_s = 0; /* and no disk figure is needed */
    assert_true(fabs(aeg_predict(&in).tok_s / p.tok_s - 1) < 1e-12);
}

static void with_misses_only_a_slow_disk_counts(void **state)
{
    (void)state;
    aeg_predict_inputs in = example();
    in.hit_rate = 0;
    in.disk_bytes_per_s = 1e8;
    in.disk_latency_s = 1e-3;
    const double rate = AEG_PREDICT_ETA * 27e9, expert = 1769472 / rate;
    const double dense = (1100000000.0 + 210000000.0 - 40 * 1769472.0) / rate + 40 * AEG_PREDICT_LAYER_S;
    const double layer = 1e-3 + 8 * 1769472 / 1e8 + AEG_PREDICT_WAKE_S + expert; /* the last one cannot hide */
    const aeg_prediction p = aeg_predict(&in);
    assert_true(fabs(p.tok_s * (dense + 40 * layer) - 1) < 1e-9);
    assert_true(fabs(p.read_s / (40 * (1e-3 + 8 * 1769472 / 1e8)) - 1) < 1e-9);
    /* The shared expert and seven experts were computed meanwhile. */
    assert_true(fabs(p.hidden * p.read_s / (40 * (8 * expert - AEG_PREDICT_WAKE_S)) - 1) < 1e-9);
}

static void half_the_misses_are_half_the_bytes(void **state)
{
    (void)state;
    aeg_predict_inputs in = example();
    in.hit_rate = 0.5;
    const aeg_prediction p = aeg_predict(&in);
    assert_true(fabs(p.read_s / (160 * 1769472 / 1.1e9) - 1) < 1e-9);
    assert_true(p.hidden > 0 && p.hidden < 1);
    /* Between no overlap and a perfect one. */
    const double computing = p.dense_s + p.experts_s;
    assert_true(1 / p.tok_s < computing + p.read_s + 40 * AEG_PREDICT_WAKE_S && 1 / p.tok_s > fmax(computing, p.read_s));
}

static void what_is_not_known_gives_no_prediction(void **state)
{
    (void)state;
    aeg_predict_inputs in = example();
    in.hit_rate = 0.9;
    in.disk_bytes_per_s = 0;
    assert_true(aeg_predict(&in).tok_s == 0);
    in = example();
    in.read_bandwidth = 0;
    assert_true(aeg_predict(&in).tok_s == 0);
    in = (aeg_predict_inputs){ 0 };
    assert_true(aeg_predict(&in).tok_s == 0);
}

T_PROPERTY(better_inputs_never_predict_less, 2000)
{
    aeg_predict_inputs in = example();
    in.hit_rate = (double)t_below(1001) / 1000;
    in.disk_bytes_per_s = 1e7 * (1 + t_below(2000));
    in.disk_latency_s = 1e-6 * t_below(5000);
    in.n_layers = 1 + t_below(60);
    in.top_k = 1 + t_below(16);
    const double base = aeg_predict(&in).tok_s;
    T_CHECK(base > 0 && isfinite(base));
    aeg_predict_inputs better = in;
    better.hit_rate = fmin(1, in.hit_rate + 0.01 * t_below(50));
    T_CHECK(aeg_predict(&better).tok_s >= base * (1 - 1e-12));
    better = in;
    better.disk_bytes_per_s *= 1.5;
    T_CHECK(aeg_predict(&better).tok_s >= base * (1 - 1e-12));
    better = in;
    better.read_bandwidth *= 1.5;
    T_CHECK(aeg_predict(&better).tok_s >= base * (1 - 1e-12));
    better = in;
    better.disk_latency_s /= 2;
    T_CHECK(aeg_predict(&better).tok_s >= base * (1 - 1e-12));
}

static void the_typical_curve_rises_from_nothing_to_all(void **state)
{
    (void)state;
    double last = 0;
    for (uint32_t slots = 0; slots <= 10240; slots += 16) {
        const double rate = aeg_predict_typical_hit_rate(slots, 10240);
        assert_true(rate >= last && rate <= 1);
        last = rate;
    }
    assert_true(aeg_predict_typical_hit_rate(0, 10240) == 0);
    assert_true(last == 1 && aeg_predict_typical_hit_rate(20000, 10240) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_misses_only_memory_counts),
        cmocka_unit_test(with_misses_only_a_slow_disk_counts),
        cmocka_unit_test(half_the_misses_are_half_the_bytes),
        cmocka_unit_test(what_is_not_known_gives_no_prediction),
        cmocka_unit_test(better_inputs_never_predict_less),
        cmocka_unit_test(the_typical_curve_rises_from_nothing_to_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
