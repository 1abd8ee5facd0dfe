/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/router_key.h - logits as integers of the same order, for the exact top-k of the router, and the part of
 * it that runs once per chosen expert. Thread: any. */
#ifndef AEG_KERNELS_ROUTER_KEY_H
#define AEG_KERNELS_ROUTER_KEY_H

#include "kernels/math.h"

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

#endif
