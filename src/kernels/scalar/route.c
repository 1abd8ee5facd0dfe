/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/route.c - scores, groups and the exact top-k of kernels/route.h. */
#include "kernels/register.h"
#include "kernels/router_key.h"
#include "kernels/scalar/sums.h"

static void scores(const aeg_route_args *a, float *s)
{
    if (a->sigmoid) {
        for (uint32_t i = 0; i < a->n; i++)
            s[i] = aeg_sigmoid(a->logits[i]);
        return;
    }
    const float max = aeg_max16(a->logits, a->n);
    for (uint32_t i = 0; i < a->n; i++)
        s[i] = aeg_expf(a->logits[i] - max);
    const float total = aeg_sum16(s, a->n);
    for (uint32_t i = 0; i < a->n; i++)
        s[i] /= total;
}

void aeg_scalar_route(const aeg_route_args *a)
{
    float *s = a->scratch;
    int32_t *keys = (int32_t *)(void *)(s + a->n);
    scores(a, s);
    for (uint32_t i = 0; i < a->n; i++)
        keys[i] = aeg_router_key(aeg_route_choice(a, s, i));
    if (a->n_groups > 1)
        aeg_route_exclude(a, s, keys, keys + a->n);
    for (uint32_t j = 0; j < a->top_k; j++) {
        const uint32_t best = aeg_route_best(keys, 0, a->n, UINT32_MAX);
        keys[best] = AEG_ROUTER_KEY_TAKEN;
        aeg_router_insert(a->ids, j, (uint16_t)best);
    }
    aeg_route_weights(a, s);
}
