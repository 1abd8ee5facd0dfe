/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokens a repetition decodes. Greedy decoding soon goes round in a circle on many models, and a repetition with
 * the same tokens finds its own experts in the slots: so they are drawn, with another seed each time. */
#include <math.h>

#include "bench.h"

uint64_t aeg_bench_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t largest(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

static uint32_t draw(uint64_t *state, const float *logits, uint32_t n)
{
    const float top = logits[largest(logits, n)];
    const double u = (double)(aeg_bench_random(state) >> 11) * 0x1p-53;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += expf(logits[i] - top);
    double left = u * sum;
    for (uint32_t i = 0; i < n; i++) {
        left -= expf(logits[i] - top);
        if (left < 0)
            return i;
    }
    return n - 1;
}

uint32_t aeg_bench_choose(aeg_bench_tokens how, uint64_t *state, const float *logits, uint32_t n)
{
    switch (how) {
    case AEG_BENCH_GREEDY: return largest(logits, n);
    case AEG_BENCH_RANDOM: return (uint32_t)(aeg_bench_random(state) % n);
    default: return draw(state, logits, n);
    }
}
