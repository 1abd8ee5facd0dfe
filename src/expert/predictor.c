/* SPDX-License-Identifier: Apache-2.0 */
#include "expert/predictor.h"

/* Samples before the averages are believed: about one token of a large model. */
enum { MIN_SAMPLES = 32 };

/* A pause longer than this is a person thinking, not a layer computing. */
static const uint64_t longest_idle_ns = 1000000000u;

static void add_sample(double *average, uint32_t *n, double sample)
{
    if (*n < MIN_SAMPLES)
        (*n)++;
    *average += (sample - *average) / *n;
}

void aeg_predictor_begin(aeg_predictor *p, uint64_t now_ns, bool ordered)
{
    if (p->end_ns != 0 && p->ordered == ordered && now_ns - p->end_ns < longest_idle_ns) {
        aeg_predictor_pace *pace = &p->pace[ordered];
        add_sample(&pace->idle_ns, &pace->n_idle, (double)(now_ns - p->end_ns));
    }
    p->ordered = ordered;
    p->begin_ns = p->end_ns = now_ns;
}

void aeg_predictor_end(aeg_predictor *p, uint64_t now_ns, uint32_t n_reads)
{
    aeg_predictor_pace *pace = &p->pace[p->ordered];
    if (n_reads > 0)
        add_sample(&pace->read_ns, &pace->n_read, (double)(now_ns - p->begin_ns) / n_reads);
    p->end_ns = now_ns;
}

void aeg_predictor_forget(aeg_predictor *p) { p->end_ns = 0; }

uint32_t aeg_predictor_limit(const aeg_predictor *p)
{
    if (p->prefetch == 0 || (p->prefetch > 0 && !p->ordered))
        return (uint32_t)p->prefetch;
    const aeg_predictor_pace *pace = &p->pace[p->ordered];
    if (pace->n_idle < MIN_SAMPLES || pace->n_read < MIN_SAMPLES || pace->read_ns <= 0.0)
        return 0;
    const double n = pace->idle_ns / pace->read_ns;
    return n < 1e6 ? (uint32_t)n : 1000000u;
}
