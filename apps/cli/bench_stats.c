/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_stats.h"

#include <stdlib.h>

const char *const aeg_bench_metric_names[AEG_BENCH_N_METRICS] = {
#define X(name) #name,
    AEG_BENCH_METRICS(X)
#undef X
};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between the neighbours of place q * (n - 1). */
static double quantile(const double *sorted, uint32_t n, double q)
{
    const double place = q * (n - 1);
    const uint32_t low = (uint32_t)place, high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

void aeg_bench_summarise(const aeg_bench_figures *runs, uint32_t n, aeg_bench_summary *out)
{
    *out = (aeg_bench_summary){ 0 };
    for (uint32_t m = 0; m < AEG_BENCH_N_METRICS; m++) {
        double sorted[AEG_BENCH_MAX_RUNS];
        for (uint32_t i = 0; i < n; i++)
            sorted[i] = runs[i].value[m];
        qsort(sorted, n, sizeof sorted[0], by_value);
        const double middle = quantile(sorted, n, 0.5);
        out->median.value[m] = middle;
        out->q1.value[m] = quantile(sorted, n, 0.25);
        out->q3.value[m] = quantile(sorted, n, 0.75);
        out->spread.value[m] = middle != 0 ? (sorted[n - 1] - sorted[0]) / middle : 0;
    }
}

static double ratio_of(double a, double b) { return a != 0 ? b / a : 0; }

void aeg_bench_compare(const aeg_bench_figures *a, const aeg_bench_figures *b, uint32_t n, aeg_bench_figures *ratio,
                       aeg_bench_figures *pair)
{
    aeg_bench_summary of_a, of_b, of_pairs;
    aeg_bench_figures pairs[AEG_BENCH_MAX_RUNS] = { 0 };
    aeg_bench_summarise(a, n, &of_a);
    aeg_bench_summarise(b, n, &of_b);
    *ratio = (aeg_bench_figures){ 0 };
    for (uint32_t m = 0; m < AEG_BENCH_N_METRICS; m++) {
        ratio->value[m] = ratio_of(of_a.median.value[m], of_b.median.value[m]);
        for (uint32_t i = 0; i < n; i++)
            pairs[i].value[m] = ratio_of(a[i].value[m], b[i].value[m]);
    }
    aeg_bench_summarise(pairs, n, &of_pairs);
    *pair = of_pairs.median;
}
