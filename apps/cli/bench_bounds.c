/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_bounds.h"

#include "base/checked.h"

static double read_s(double bytes, double rate) { return rate > 0 ? bytes / rate : 0; }

double aeg_bench_bound(const aeg_bench_work *w, double rate)
{
    const double reads = read_s(w->read_bytes, rate);
    return w->dense_s + AEG_MAX(reads, w->expert_s);
}

double aeg_bench_layer_bound(const aeg_bench_work *w, double rate)
{
    double layers = 0, sum = 0;
    for (uint32_t m = 0; m <= AEGIS_MISSES_MAX; m++)
        layers += (double)w->layers_missing[m];
    if (layers == 0)
        return aeg_bench_bound(w, rate);
    const double expert_s = w->expert_s * w->tokens / layers;
    for (uint32_t m = 0; m <= AEGIS_MISSES_MAX; m++) {
        const double reads = read_s(m * w->record_bytes, rate);
        sum += (double)w->layers_missing[m] * AEG_MAX(reads, expert_s);
    }
    return w->dense_s + sum / w->tokens;
}

static void set(double *v, uint32_t tok_s, uint32_t share, double bound_s)
{
    v[tok_s] = bound_s > 0 ? 1 / bound_s : 0;
    v[share] = v[AEG_BENCH_decode_tok_s] * bound_s;
}

static double missing_share(const aeg_bench_work *w)
{
    double all = 0;
    for (uint32_t m = 0; m <= AEGIS_MISSES_MAX; m++)
        all += (double)w->layers_missing[m];
    return all > 0 ? 1 - (double)w->layers_missing[0] / all : 0;
}

void aeg_bench_find_bounds(const aeg_bench_work *w, aeg_bench_figures *out)
{
    double *v = out->value;
    v[AEG_BENCH_layers_missing] = missing_share(w);
    set(v, AEG_BENCH_run_bound_tok_s, AEG_BENCH_run_bound_share, aeg_bench_bound(w, w->wait_bytes_per_s));
    set(v, AEG_BENCH_layer_bound_tok_s, AEG_BENCH_layer_bound_share, aeg_bench_layer_bound(w, w->wait_bytes_per_s));
    if (w->disk_bytes_per_s > 0)
        set(v, AEG_BENCH_bound_tok_s, AEG_BENCH_bound_share, aeg_bench_bound(w, w->disk_bytes_per_s));
}
