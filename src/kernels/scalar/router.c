/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/router.c - softmax and the exact top-k. k passes for the largest: k is 8 or so. */
#include "kernels/register.h"
#include "kernels/router_key.h"
#include "kernels/scalar/sums.h"

void aeg_scalar_router(uint16_t *ids, float *weights, const float *logits, uint32_t n, uint32_t top_k, int renormalise,
                       float *scratch)
{
    const float max = aeg_max16(logits, n);
    float total = 0.0f;
    if (!renormalise) {
        for (uint32_t i = 0; i < n; i++)
            scratch[i] = aeg_expf(logits[i] - max);
        total = aeg_sum16(scratch, n);
    }
    for (uint32_t i = 0; i < n; i++)
        scratch[i] = 0.0f; /* 1 where taken */
    for (uint32_t j = 0; j < top_k; j++) {
        uint32_t best = 0;
        int32_t best_key = AEG_ROUTER_KEY_TAKEN;
        for (uint32_t i = 0; i < n; i++) {
            const int32_t key = aeg_router_key(logits[i]);
            if (scratch[i] == 0.0f && key > best_key) {
                best = i;
                best_key = key;
            }
        }
        scratch[best] = 1.0f;
        aeg_router_insert(ids, j, (uint16_t)best);
    }
    aeg_router_weights(weights, ids, top_k, logits, max, renormalise, total);
}
