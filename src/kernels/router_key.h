/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/router_key.h - logits as integers of the same order, for the exact top-k of the router, and the parts of
 * it that run once per chosen expert or per group. Thread: any. */
#ifndef AEG_KERNELS_ROUTER_KEY_H
#define AEG_KERNELS_ROUTER_KEY_H

#include "kernels/math.h"
#include "kernels/route.h"

/* Keys compare like the logits; -0 equals +0; a NaN ranks below everything, so a broken logit is chosen last. */
#define AEG_ROUTER_KEY_NAN (INT32_MIN + 1)
#define AEG_ROUTER_KEY_TAKEN INT32_MIN

static inline int32_t aeg_router_key(float logit)
{
    if (logit != logit)
        return AEG_ROUTER_KEY_NAN;
    const uint32_t u = aeg_f32_bits(logit + 0.0f);
    return (int32_t)((u >> 31) ? u ^ 0x7fffffffu : u);
}

/* Insert `id` into ids[0..n), which stays ascending. */
static inline void aeg_router_insert(uint16_t *ids, uint32_t n, uint16_t id)
{
    while (n > 0 && ids[n - 1] > id) {
        ids[n] = ids[n - 1];
        n--;
    }
    ids[n] = id;
}

/* weights[j] = e_j / sum of the chosen e in ascending id order, or / `total` if not renormalising. */
static inline void aeg_router_weights(float *weights, const uint16_t *ids, uint32_t top_k, const float *logits,
                                      float max, int renormalise, float total)
{
    float sum = 0.0f;
    for (uint32_t j = 0; j < top_k; j++) {
        weights[j] = aeg_expf(logits[ids[j]] - max);
        sum += weights[j];
    }
    for (uint32_t j = 0; j < top_k; j++)
        weights[j] /= renormalise ? sum : total;
}

/* The score that decides the choice of expert i. */
static inline float aeg_route_choice(const aeg_route_args *a, const float *s, uint32_t i)
{
    return a->bias != NULL ? s[i] + a->bias[i] : s[i];
}

/* Largest key of experts [first, end) but `except`; the lower one of equals. */
static inline uint32_t aeg_route_best(const int32_t *keys, uint32_t first, uint32_t end, uint32_t except)
{
    uint32_t best = first == except ? first + 1 : first;
    for (uint32_t i = best; i < end; i++)
        if (i != except && keys[i] > keys[best])
            best = i;
    return best;
}

/* keys of the experts whose group is out become TAKEN. groups: [n_groups] scratch. */
static inline void aeg_route_exclude(const aeg_route_args *a, const float *s, int32_t *keys, int32_t *groups)
{
    const uint32_t size = a->n / a->n_groups;
    for (uint32_t g = 0; g < a->n_groups; g++) {
        const uint32_t end = (g + 1) * size, best = aeg_route_best(keys, g * size, end, UINT32_MAX);
        float score = aeg_route_choice(a, s, best);
        if (a->group_top2 && size > 1)
            score += aeg_route_choice(a, s, aeg_route_best(keys, g * size, end, best));
        groups[g] = aeg_router_key(score);
    }
    for (uint32_t i = 0; i < a->top_groups; i++)
        groups[aeg_route_best(groups, 0, a->n_groups, UINT32_MAX)] = AEG_ROUTER_KEY_TAKEN;
    for (uint32_t i = 0; i < a->n; i++)
        if (groups[i / size] != AEG_ROUTER_KEY_TAKEN)
            keys[i] = AEG_ROUTER_KEY_TAKEN;
}

static inline void aeg_route_weights(const aeg_route_args *a, const float *s)
{
    float sum = 0.0f;
    for (uint32_t j = 0; j < a->top_k; j++) {
        a->weights[j] = s[a->ids[j]];
        sum += a->weights[j];
    }
    for (uint32_t j = 0; j < a->top_k; j++)
        a->weights[j] = (a->renormalise ? a->weights[j] / (sum + 1e-20f) : a->weights[j]) * a->scale;
}

#endif
