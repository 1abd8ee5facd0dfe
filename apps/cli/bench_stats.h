/* SPDX-License-Identifier: Apache-2.0 */
/* bench_stats.h - the figures of a repetition, and what is said of several: median, quartiles, spread. Thread: any. */
#ifndef AEG_CLI_BENCH_STATS_H
#define AEG_CLI_BENCH_STATS_H

#include <stdbool.h>
#include <stdint.h>

enum { AEG_BENCH_MAX_RUNS = 64 };

/* Names are those of the JSON object. Those from prefill_read_s on need a disk figure and are 0 without one. */
#define AEG_BENCH_METRICS(X) \
    X(prefill_tok_s) X(prefill_wait_s) X(prefill_compute_s) X(prefill_read_bytes) X(decode_tok_s) X(ttft_s) X(first_step_s) \
    X(disk_bytes_per_token) X(hit_rate) X(disk_busy) X(disk_busy_bytes_per_s) X(disk_busy_while_waiting) \
    X(disk_bytes_per_s_while_waiting) X(wait_ms_per_token) X(compute_ms_per_token) X(dense_ms_per_token) X(expert_ms_per_token) \
    X(embed_ms_per_token) X(layers_missing) X(run_bound_tok_s) X(run_bound_share) X(layer_bound_tok_s) X(layer_bound_share) \
    X(peak_bytes) \
    X(prefill_read_s) X(prefill_share_of_bound) X(bound_tok_s) X(bound_share)

enum {
#define X(name) AEG_BENCH_##name,
    AEG_BENCH_METRICS(X)
#undef X
    AEG_BENCH_N_METRICS,
};
static inline bool aeg_bench_needs_disk(uint32_t metric) { return metric >= AEG_BENCH_prefill_read_s; }
extern const char *const aeg_bench_metric_names[AEG_BENCH_N_METRICS];

typedef struct {
    double value[AEG_BENCH_N_METRICS];
    uint64_t tokens_hash;  /* of the tokens that were decoded */
} aeg_bench_figures;

/* spread: (largest - smallest) / median, 0 where the median is 0. Quartiles between two runs are interpolated. */
typedef struct { aeg_bench_figures median, q1, q3, spread; } aeg_bench_summary;

/* n in 1..AEG_BENCH_MAX_RUNS. */
void aeg_bench_summarise(const aeg_bench_figures *runs, uint32_t n, aeg_bench_summary *out);

/* ratio: median of b / median of a. pair: median of the ratios b[i] / a[i]. A figure that is 0 on side a gives 0. */
void aeg_bench_compare(const aeg_bench_figures *a, const aeg_bench_figures *b, uint32_t n, aeg_bench_figures *ratio,
                       aeg_bench_figures *pair);

#endif
