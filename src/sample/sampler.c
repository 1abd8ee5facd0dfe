/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/sampler.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/math.h"
#include "sample/random.h"

struct aeg_sampler {
    uint32_t vocab_size;
    uint64_t step;        /* draws made since aeg_sampler_set                            */
    aegis_sampling set;
    float *logits;        /* [vocab_size] after bias and penalties                       */
    uint32_t *ids;        /* [vocab_size] candidates; token counts while penalties apply */
};

/* The tokens that may still be drawn, best first unless `sorted` is false (then ascending id, all of them). */
typedef struct {
    uint32_t *ids;
    uint32_t n;
    bool sorted;
    float max;            /* largest logit */
    float inverse_temperature;
} candidates;

aegis_status aeg_sampler_init(aeg_sampler **out, aeg_arena *arena, uint32_t vocab_size, aegis_error *err)
{
    if (vocab_size == 0 || vocab_size > AEG_SAMPLER_MAX_VOCAB)
        return aeg_fail(err, AEGIS_E_USAGE, "sampler: vocabulary of %u tokens, expected 1 to %d", vocab_size,
                        AEG_SAMPLER_MAX_VOCAB);
    aeg_sampler *s = AEG_ARENA_ARRAY(arena, aeg_sampler, 1);
    float *logits = AEG_ARENA_ARRAY(arena, float, vocab_size);
    uint32_t *ids = AEG_ARENA_ARRAY(arena, uint32_t, vocab_size);
    if (aeg_arena_measuring(arena)) {
        *out = NULL;
        return AEGIS_OK;
    }
    AEG_TRY(aeg_arena_check(arena, err));
    *s = (aeg_sampler){ .vocab_size = vocab_size, .logits = logits, .ids = ids };
    aegis_sampling_greedy(&s->set);
    *out = s;
    return AEGIS_OK;
}

void aeg_sampler_set(aeg_sampler *s, const aegis_sampling *settings)
{
    s->set = *settings;
    s->step = 0;
}

uint32_t aeg_sampler_argmax(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    float top = -INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        if (logits[i] > top) { /* false for a NaN, and for a tie */
            top = logits[i];
            best = i;
        }
    }
    return best;
}

static float repair(float logit)
{
    if (isnan(logit))
        return -INFINITY;
    return logit > FLT_MAX ? FLT_MAX : logit;
}

static bool penalties_on(const aegis_sampling *p)
{
    return p->repeat_penalty != 1 || p->presence_penalty != 0 || p->frequency_penalty != 0;
}

/* Each distinct recent token once: the division of the repeat penalty must not be applied per occurrence. */
static void apply_penalties(aeg_sampler *s, const uint32_t *recent, size_t n_recent)
{
    const aegis_sampling *p = &s->set;
    const size_t last_n = p->penalty_last_n == 0 ? AEG_SAMPLER_DEFAULT_LAST_N : p->penalty_last_n;
    const size_t first = n_recent > last_n ? n_recent - last_n : 0;
    uint32_t *count = s->ids;

    for (size_t i = first; i < n_recent; i++)
        if (recent[i] < s->vocab_size)
            count[recent[i]] = 0;
    for (size_t i = first; i < n_recent; i++)
        if (recent[i] < s->vocab_size)
            count[recent[i]]++;
    for (size_t i = first; i < n_recent; i++) {
        const uint32_t id = recent[i];
        if (id >= s->vocab_size || count[id] == 0)
            continue;
        float x = s->logits[id];
        if (p->repeat_penalty != 1) /* towards less likely on both sides of zero */
            x = x > 0 ? x / (float)p->repeat_penalty : x * (float)p->repeat_penalty;
        x -= (float)p->presence_penalty + (float)count[id] * (float)p->frequency_penalty;
        s->logits[id] = repair(x);
        count[id] = 0;
    }
}

static void adjust(aeg_sampler *s, const float *logits, const uint32_t *recent, size_t n_recent)
{
    for (uint32_t i = 0; i < s->vocab_size; i++)
        s->logits[i] = repair(logits[i]);
    for (uint32_t i = 0; i < s->set.n_bias; i++)
        if (s->set.bias[i].id < s->vocab_size)
            s->logits[s->set.bias[i].id] = repair(s->logits[s->set.bias[i].id] + s->set.bias[i].bias);
    if (penalties_on(&s->set) && n_recent > 0)
        apply_penalties(s, recent, n_recent);
}

static bool better(const float *logits, uint32_t a, uint32_t b)
{
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

/* Binary heap of ids; the root is the best one, or the worst with `worst`. */
static void sift_down(uint32_t *heap, uint32_t n, uint32_t at, const float *logits, bool worst)
{
    const uint32_t moving = heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && better(logits, heap[child + 1], heap[child]) != worst)
            child++;
        if (better(logits, heap[child], moving) == worst)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static void heapify(uint32_t *heap, uint32_t n, const float *logits, bool worst)
{
    for (uint32_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i, logits, worst);
}

/* Move the root behind the heap; the heap shrinks by one. */
static void pop(uint32_t *heap, uint32_t n, const float *logits, bool worst)
{
    const uint32_t root = heap[0];
    heap[0] = heap[n - 1];
    sift_down(heap, n - 1, 0, logits, worst);
    heap[n - 1] = root;
}

/* The k best ids, best first: a heap of k with the worst at its root; most tokens cost one comparison. */
static void select_top_k(aeg_sampler *s, candidates *c, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++)
        s->ids[i] = i;
    heapify(s->ids, k, s->logits, true);
    for (uint32_t i = k; i < s->vocab_size; i++) {
        if (!better(s->logits, i, s->ids[0]))
            continue;
        s->ids[0] = i;
        sift_down(s->ids, k, 0, s->logits, true);
    }
    for (uint32_t n = k; n > 1; n--)
        pop(s->ids, n, s->logits, true);
    *c = (candidates){ .ids = s->ids, .n = k, .sorted = true };
}

/* exp((logit - max) / temperature): the best token weighs exactly 1. */
static double weight(const aeg_sampler *s, const candidates *c, uint32_t id)
{
    return (double)aeg_expf((s->logits[id] - c->max) * c->inverse_temperature);
}

static double sum_weights(const aeg_sampler *s, const candidates *c)
{
    double sum = 0;
    for (uint32_t i = 0; i < c->n; i++)
        sum += weight(s, c, c->ids[i]);
    return sum;
}

/* Sorted candidates: the shortest beginning that holds `share` of the weight. */
static void cut_top_p(const aeg_sampler *s, candidates *c, double share)
{
    const double enough = share * sum_weights(s, c);
    double sum = 0;
    uint32_t n = 0;
    while (n < c->n && (n == 0 || sum < enough))
        sum += weight(s, c, c->ids[n++]);
    c->n = n;
}

/* The same when all tokens are candidates: pop them best first until there is enough. */
static void cut_top_p_of_all(const aeg_sampler *s, candidates *c, double share)
{
    const double enough = share * sum_weights(s, c);
    const uint32_t all = c->n;
    double sum = 0;
    uint32_t n = 0;
    heapify(c->ids, all, s->logits, false);
    while (n < all && (n == 0 || sum < enough)) {
        sum += weight(s, c, c->ids[0]);
        pop(c->ids, all - n, s->logits, false);
        n++;
    }
    c->ids += all - n; /* popped ones lie behind the heap, the first one last: turn them round */
    c->n = n;
    c->sorted = true;
    for (uint32_t i = 0, j = n - 1; i < j; i++, j--) {
        const uint32_t swap = c->ids[i];
        c->ids[i] = c->ids[j];
        c->ids[j] = swap;
    }
}

/* Drop what weighs less than `share` of the best token. Keeps the order, and the best token. */
static void cut_min_p(const aeg_sampler *s, candidates *c, double share)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (weight(s, c, c->ids[i]) >= share)
            c->ids[n++] = c->ids[i];
    if (n > 0)
        c->n = n;
}

static uint32_t draw(const aeg_sampler *s, const candidates *c, double uniform)
{
    double left = uniform * sum_weights(s, c);
    uint32_t last = c->ids[0];
    for (uint32_t i = 0; i < c->n; i++) {
        const double w = weight(s, c, c->ids[i]);
        if (w <= 0)
            continue;
        if (left < w)
            return c->ids[i];
        left -= w;
        last = c->ids[i];
    }
    return last; /* only by rounding: uniform < 1 */
}

uint32_t aeg_sampler_next(aeg_sampler *s, const float *logits, const uint32_t *recent, size_t n_recent)
{
    const aegis_sampling *p = &s->set;
    adjust(s, logits, recent, n_recent);
    const uint32_t best = aeg_sampler_argmax(s->logits, s->vocab_size);
    if (p->temperature <= 0)
        return best;

    const double uniform = aeg_random_uniform((uint64_t)p->seed, s->step++);
    if (p->top_k == 1 || s->logits[best] == -INFINITY)
        return best;

    candidates c = { .ids = s->ids, .n = s->vocab_size };
    if (p->top_k > 0 && (uint32_t)p->top_k < s->vocab_size)
        select_top_k(s, &c, (uint32_t)p->top_k);
    else
        for (uint32_t i = 0; i < s->vocab_size; i++)
            s->ids[i] = i;
    c.max = s->logits[best];
    c.inverse_temperature = (float)(1.0 / p->temperature);

    if (p->top_p < 1 && c.sorted)
        cut_top_p(s, &c, p->top_p);
    else if (p->top_p < 1)
        cut_top_p_of_all(s, &c, p->top_p);
    if (p->min_p > 0)
        cut_min_p(s, &c, p->min_p);
    return draw(s, &c, uniform);
}
