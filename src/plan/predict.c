/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/predict.h"

#include <stddef.h>

#include "base/checked.h"

/* Probability that m of k are misses, for m from 0 upwards: p(m+1) = p(m) * (k-m)/(m+1) * miss/hit. */
static double first_term(uint32_t k, double hit)
{
    double p = 1;
    for (uint32_t i = 0; i < k; i++)
        p *= hit;
    return p;
}

typedef struct {
    double shared, expert, record, latency;
} layer_times;

static double read_time(const layer_times *t, uint32_t n) { return n == 0 ? 0 : t->latency + n * t->record; }

static double wake_time(double waited) { return AEG_PREDICT_WAKE_S * AEG_MIN(1.0, waited / AEG_PREDICT_SPIN_S); }

static double layer_time(const layer_times *t, uint32_t k, uint32_t n_misses)
{
    const double computing = t->shared + k * t->expert + n_misses * AEG_PREDICT_ARRIVAL_S;
    const double read = read_time(t, n_misses), reading = n_misses == 0 ? 0 : read + wake_time(read) + t->expert;
    return AEG_MAX(computing, reading);
}

/* Expected time of a layer's experts, and of its reads alone. */
static double expect(const layer_times *t, uint32_t k, double hit, double *reading)
{
    if (hit <= 0) {
        *reading = read_time(t, k);
        return layer_time(t, k, k);
    }
    double p = first_term(k, hit), sum = 0;
    *reading = 0;
    for (uint32_t m = 0; m <= k; m++) {
        sum += p * layer_time(t, k, m);
        *reading += p * read_time(t, m);
        p *= (double)(k - m) / (m + 1) * ((1 - hit) / hit);
    }
    return sum;
}

aeg_prediction aeg_predict(const aeg_predict_inputs *in)
{
    aeg_prediction out = { 0 };
    const double hit = AEG_MIN(AEG_MAX(in->hit_rate, 0.0), 1.0);
    if (in->read_bandwidth <= 0 || in->n_layers == 0 || (hit < 1 && in->disk_bytes_per_s <= 0))
        return out;
    const double rate = AEG_PREDICT_ETA * in->read_bandwidth, n = in->n_layers;
    const layer_times t = {
        .shared = (double)in->shared_bytes / n / rate,
        .expert = (double)in->expert_bytes / rate,
        .record = hit < 1 ? (double)in->record_bytes / in->disk_bytes_per_s : 0,
        .latency = hit < 1 ? in->disk_latency_s : 0,
    };
    double reading = 0;
    const double layer = expect(&t, in->top_k, hit, &reading), computing = t.shared + in->top_k * t.expert;
    out.dense_s = (double)(in->dense_bytes + in->state_bytes) / rate + n * AEG_PREDICT_LAYER_S;
    out.experts_s = n * in->top_k * t.expert;
    out.read_s = n * reading;
    out.hidden = reading > 0 ? AEG_MAX(0.0, 1 - (layer - computing) / reading) : 0;
    const double token = out.dense_s - n * t.shared + n * layer;
    out.tok_s = token > 0 ? 1 / token : 0;
    return out;
}

double aeg_predict_typical_hit_rate(uint32_t n_slots, uint32_t n_experts_total)
{
    /* Share of slots, rate. Published measurements on a 256-expert, top-8 model (8 % to 38 % of slots), and what small
     * pools give with an admission by frequency; below them a straight line to nothing. */
    static const struct { double share, rate; } points[] = {
        { 0, 0 }, { 0.028, 0.20 }, { 0.087, 0.50 }, { 0.107, 0.56 }, { 0.16, 0.65 }, { 0.267, 0.835 }, { 0.38, 0.89 },
        { 0.80, 0.98 }, { 1, 1 },
    };
    if (n_experts_total == 0 || n_slots >= n_experts_total)
        return 1;
    const double share = (double)n_slots / n_experts_total;
    size_t i = 1;
    while (points[i].share < share)
        i++;
    const double along = (share - points[i - 1].share) / (points[i].share - points[i - 1].share);
    return points[i - 1].rate + along * (points[i].rate - points[i - 1].rate);
}
