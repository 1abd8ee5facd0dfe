/* SPDX-License-Identifier: Apache-2.0 */
/* Medians and ratios of bench, the burst line of doctor, and the options that --ab puts over others. */
#include "support/t.h"

#include <math.h>
#include <string.h>

#include "bench_bounds.h"
#include "bench_stats.h"
#include "doctor.h"
#include "options.h"

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * (1 + fabs(b)); }

static void medians_quartiles_and_spread(void **state)
{
    (void)state;
    const double values[] = { 4, 1, 3, 2, 10 };
    aeg_bench_figures runs[5] = { 0 };
    aeg_bench_summary s;
    for (int i = 0; i < 5; i++)
        runs[i].value[AEG_BENCH_decode_tok_s] = values[i];
    aeg_bench_summarise(runs, 5, &s);
    assert_true(near(s.median.value[AEG_BENCH_decode_tok_s], 3));
    assert_true(near(s.q1.value[AEG_BENCH_decode_tok_s], 2) && near(s.q3.value[AEG_BENCH_decode_tok_s], 4));
    assert_true(near(s.spread.value[AEG_BENCH_decode_tok_s], 3));
    assert_true(s.spread.value[AEG_BENCH_hit_rate] == 0); /* all zero */
    aeg_bench_summarise(runs, 4, &s);
    assert_true(near(s.median.value[AEG_BENCH_decode_tok_s], 2.5));
    aeg_bench_summarise(runs, 1, &s);
    assert_true(near(s.median.value[AEG_BENCH_decode_tok_s], 4) && near(s.q3.value[AEG_BENCH_decode_tok_s], 4));
}

/* When the machine slows down half way, pairs see the difference of the settings and medians may not. */
static void pairs_are_compared_as_pairs(void **state)
{
    (void)state;
    const double a[] = { 10, 10, 2 }, b[] = { 11, 11, 2.2 };
    aeg_bench_figures runs_a[3] = { 0 }, runs_b[3] = { 0 }, ratio, pair;
    for (int i = 0; i < 3; i++) {
        runs_a[i].value[AEG_BENCH_decode_tok_s] = a[i];
        runs_b[i].value[AEG_BENCH_decode_tok_s] = b[(i + 1) % 3];
    }
    aeg_bench_compare(runs_a, runs_b, 3, &ratio, &pair);
    assert_true(near(ratio.value[AEG_BENCH_decode_tok_s], 1.1));
    assert_true(near(pair.value[AEG_BENCH_decode_tok_s], 1.1)); /* of 1.1, 0.22, 5.5 */
    assert_true(ratio.value[AEG_BENCH_hit_rate] == 0);
}

/* Two tokens of two layers: 2 ms of other work and 2 ms of experts each; one layer misses 3 experts of 1 MB, the others none. */
static void bounds_by_token_and_by_layer(void **state)
{
    (void)state;
    aeg_bench_work w = { .dense_s = 2e-3, .expert_s = 2e-3, .read_bytes = 1.5e6, .record_bytes = 1e6, .wait_bytes_per_s = 1e9,
                         .disk_bytes_per_s = 0.5e9, .layers_missing = { [0] = 3, [3] = 1 }, .tokens = 2 };
    assert_true(near(aeg_bench_bound(&w, 1e9), 4e-3) && near(aeg_bench_bound(&w, 0.5e9), 5e-3));
    assert_true(near(aeg_bench_layer_bound(&w, 1e9), 2e-3 + (3 * 1e-3 + 3e-3) / 2)); /* 5 ms: that layer cannot hide 2 of its 3 */
    assert_true(near(aeg_bench_layer_bound(&w, 0), 4e-3));                           /* nothing is read */
    aeg_bench_figures f = { .value = { [AEG_BENCH_decode_tok_s] = 100 } };
    aeg_bench_find_bounds(&w, &f);
    assert_true(near(f.value[AEG_BENCH_layers_missing], 0.25));
    assert_true(near(f.value[AEG_BENCH_bound_tok_s], 200) && near(f.value[AEG_BENCH_bound_share], 0.5));
    assert_true(near(f.value[AEG_BENCH_run_bound_tok_s], 250) && near(f.value[AEG_BENCH_run_bound_share], 0.4));
    assert_true(near(f.value[AEG_BENCH_layer_bound_tok_s], 200) && near(f.value[AEG_BENCH_layer_bound_share], 0.5));
    aeg_bench_figures unknown = { 0 };
    w.disk_bytes_per_s = 0;
    aeg_bench_find_bounds(&w, &unknown);
    assert_true(unknown.value[AEG_BENCH_bound_tok_s] == 0 && unknown.value[AEG_BENCH_run_bound_tok_s] > 0);
    memset(w.layers_missing, 0, sizeof w.layers_missing); /* a model without experts in any layer */
    assert_true(near(aeg_bench_layer_bound(&w, 1e9), aeg_bench_bound(&w, 1e9)));
}

static void a_line_through_bursts(void **state)
{
    (void)state;
    const uint32_t n[] = { 1, 2, 4, 8 };
    double t[4], rate, latency;
    for (int i = 0; i < 4; i++)
        t[i] = 200e-6 + n[i] * 1e6 / 2e9;
    aeg_doctor_fit_bursts(n, t, 4, 1000000, &rate, &latency);
    assert_true(fabs(rate / 2e9 - 1) < 1e-6 && fabs(latency - 200e-6) < 1e-9);
    for (int i = 0; i < 4; i++)
        t[i] = n[i] * 1e-3 - 50e-6; /* faster than a line through the origin: no negative latency */
    aeg_doctor_fit_bursts(n, t, 4, 1000000, &rate, &latency);
    assert_true(latency == 0 && rate > 1e9 && rate < 1.06e9);
    const double nothing[4] = { 0 };
    aeg_doctor_fit_bursts(n, nothing, 4, 1000000, &rate, &latency);
    assert_true(rate == 0 && latency == 0);
}

static void options_go_over_options(void **state)
{
    (void)state;
    aeg_cli cli;
    aegis_error err;
    char *argv[] = { "aegis", "bench", "x", "--memory", "4GiB", "--prefetch", "off", "--tokens", "random", "-s", "7" };
    T_OK(aeg_options_parse(&cli, 11, argv, &err), &err);
    assert_true(cli.bench_tokens == 2 && cli.seed == 7 && cli.seed_given && cli.prefetch == 0);
    char words[] = "  --prefetch auto --chunk=32 --telemetry 'a file' -t \"2\" ";
    T_OK(aeg_options_override(&cli, words, &err), &err);
    assert_true(cli.prefetch == -1 && cli.chunk == 32 && cli.threads == 2 && cli.memory == 4ull << 30);
    assert_string_equal(cli.telemetry, "a file");
    char unknown[] = "--prefech off", argument[] = "other/model", missing[] = "--chunk", none[] = "";
    T_FAILS(aeg_options_override(&cli, unknown, &err), &err, AEGIS_E_USAGE, "--prefetch");
    T_FAILS(aeg_options_override(&cli, argument, &err), &err, AEGIS_E_USAGE, "other/model");
    T_FAILS(aeg_options_override(&cli, missing, &err), &err, AEGIS_E_USAGE, "needs a value");
    T_OK(aeg_options_override(&cli, none, &err), &err);
}

static void a_simulated_disk_may_have_a_latency(void **state)
{
    (void)state;
    aeg_cli cli;
    aegis_error err;
    char *plain[] = { "aegis", "bench", "x", "--sim-disk", "7GB/s" }, *both[] = { "aegis", "plan", "x", "--sim-disk", "7GB/s,80us" };
    T_OK(aeg_options_parse(&cli, 5, plain, &err), &err);
    assert_true(cli.sim_bytes_per_s == 7e9 && cli.sim_latency_us == 0 && cli.io == AEGIS_IO_SIM);
    T_OK(aeg_options_parse(&cli, 5, both, &err), &err);
    assert_true(cli.sim_bytes_per_s == 7e9 && cli.sim_latency_us == 80);
    char *bad[] = { "aegis", "bench", "x", "--sim-disk", "7GB/s,soon" };
    T_FAILS(aeg_options_parse(&cli, 5, bad, &err), &err, AEGIS_E_USAGE, "7GB/s,soon");
    char *real[] = { "aegis", "bench", "x", "--sim-disk", "7GB/s", "--io", "pread" };
    T_FAILS(aeg_options_parse(&cli, 7, real, &err), &err, AEGIS_E_USAGE, "--io sim");
    /* The same word is another option of another command. */
    char *run[] = { "aegis", "run", "x", "--tokens", "5" };
    T_OK(aeg_options_parse(&cli, 5, run, &err), &err);
    assert_true(cli.n_predict == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_quartiles_and_spread),
        cmocka_unit_test(pairs_are_compared_as_pairs),
        cmocka_unit_test(bounds_by_token_and_by_layer),
        cmocka_unit_test(a_line_through_bursts),
        cmocka_unit_test(options_go_over_options),
        cmocka_unit_test(a_simulated_disk_may_have_a_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
