/* SPDX-License-Identifier: Apache-2.0 */
#include "base/read_rate.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"

void aeg_reader_read(aeg_reader *r, const void *p, uint64_t bytes, uint32_t thread)
{
    const uint64_t *words = p;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes / sizeof *words; i++)
        sum += words[i];
    __asm__ volatile("" : : "r"(sum)); /* used: the loop cannot be left out */
    r->bytes[thread] += bytes;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t bytes_read(const aeg_reader *r)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < AEG_MAX_THREADS; i++)
        sum += r->bytes[i];
    return sum;
}

aeg_read_rate aeg_read_rate_of(aeg_team *team, uint32_t passes, uint32_t n, aeg_work work, aeg_reader *ctx, uint64_t *bytes)
{
    double rates[AEG_READ_MAX_PASSES];
    uint64_t done = 0;
    for (uint32_t pass = 0; pass < passes; pass++) {
        const uint64_t before = bytes_read(ctx), start = aeg_now_ns();
        aeg_team_run(team, n, work, ctx);
        const uint64_t ns = AEG_MAX(aeg_now_ns() - start, 1u);
        done = bytes_read(ctx) - before;
        rates[pass] = (double)done * 1e9 / (double)ns;
    }
    if (bytes != NULL)
        *bytes = done;
    qsort(rates, passes, sizeof rates[0], by_value);
    return (aeg_read_rate){ .min = rates[0], .median = rates[passes / 2], .max = rates[passes - 1] };
}
