/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/routes.h"

#include <string.h>

void aeg_routes_init(aeg_routes *r, aeg_arena *arena, uint32_t chunk, uint32_t top_k, uint32_t n_experts)
{
    const uint64_t n = (uint64_t)chunk * top_k;
    r->ids = AEG_ARENA_ARRAY(arena, uint16_t, n);
    r->weights = AEG_ARENA_ARRAY(arena, float, n);
    r->token = AEG_ARENA_ARRAY(arena, uint32_t, n);
    r->weight = AEG_ARENA_ARRAY(arena, float, n);
    r->experts = AEG_ARENA_ARRAY(arena, uint16_t, n_experts);
    r->uses = AEG_ARENA_ARRAY(arena, uint32_t, n_experts);
    r->first = AEG_ARENA_ARRAY(arena, uint32_t, n_experts + 1);
    r->cursor = AEG_ARENA_ARRAY(arena, uint32_t, n_experts);
}

void aeg_choose_experts(const aeg_kernels *k, const aeg_hparams *hp, const float *bias, const float *logits, uint32_t top_k,
                        float *scratch, uint16_t *ids, float *weights)
{
    if (hp->router_score == AEG_ROUTER_SOFTMAX && bias == NULL && hp->n_groups == 1 && hp->routed_scale == 1.0f) {
        k->router(ids, weights, logits, hp->n_experts, top_k, hp->norm_top_k, scratch);
        return;
    }
    const aeg_route_args a = {
        .logits = logits, .bias = bias, .n = hp->n_experts, .top_k = top_k, .n_groups = hp->n_groups,
        .top_groups = hp->top_groups, .sigmoid = hp->router_score == AEG_ROUTER_SIGMOID, .renormalise = hp->norm_top_k,
        .group_top2 = hp->group_score == AEG_GROUP_TOP2, .scale = hp->routed_scale, .scratch = scratch, .ids = ids,
        .weights = weights,
    };
    k->route(&a);
}

void aeg_routes_group(aeg_routes *r, uint32_t n, uint32_t top_k, uint32_t n_experts)
{
    r->n_routes = n * top_k;
    r->n_needed = 0;
    memset(r->cursor, 0, n_experts * sizeof r->cursor[0]);
    for (uint32_t i = 0; i < r->n_routes; i++)
        r->cursor[r->ids[i]]++;

    uint32_t at = 0;
    for (uint32_t e = 0; e < n_experts; e++) {
        const uint32_t uses = r->cursor[e];
        if (uses == 0)
            continue;
        r->experts[r->n_needed] = (uint16_t)e;
        r->uses[r->n_needed] = uses;
        r->first[r->n_needed++] = at;
        r->cursor[e] = at; /* from count to the place of its next route */
        at += uses;
    }
    r->first[r->n_needed] = at;

    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < top_k; i++) {
            const uint32_t route = r->cursor[r->ids[t * top_k + i]]++;
            r->token[route] = t;
            r->weight[route] = r->weights[t * top_k + i];
        }
}
