/* SPDX-License-Identifier: Apache-2.0 */
/* wide/route.inc.h - the scores and keys of kernels/route.h on 16 lanes; groups are few and stay scalar. After
 * router.inc.h. */

static void sigmoid_scores(float *s, const float *logits, uint32_t n)
{
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        l_store(s + i, l_sigmoid(l_load(logits + i)));
    for (; i < n; i++)
        s[i] = aeg_sigmoid(logits[i]);
}

static void softmax_scores(float *s, const float *logits, uint32_t n)
{
    const float max = max_logit(logits, n), total = exp_total(logits, n, max);
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        l_store(s + i, l_div(l_exp(l_sub(l_load(logits + i), l_set1(max))), l_set1(total)));
    for (; i < n; i++)
        s[i] = aeg_expf(logits[i] - max) / total;
}

static void choice_keys(const aeg_route_args *a, int32_t *keys, const float *s)
{
    uint32_t i = 0;
    for (; i + LANES <= a->n; i += LANES) {
        const lanes c = a->bias != NULL ? l_add(l_load(s + i), l_load(a->bias + i)) : l_load(s + i);
        i_store(keys + i, i_router_key(c));
    }
    for (; i < a->n; i++)
        keys[i] = aeg_router_key(aeg_route_choice(a, s, i));
}

static void route(const aeg_route_args *a)
{
    float *s = a->scratch;
    int32_t *keys = (int32_t *)(void *)(s + a->n);
    if (a->sigmoid)
        sigmoid_scores(s, a->logits, a->n);
    else
        softmax_scores(s, a->logits, a->n);
    choice_keys(a, keys, s);
    if (a->n_groups > 1)
        aeg_route_exclude(a, s, keys, keys + a->n);
    for (uint32_t j = 0; j < a->top_k; j++)
        aeg_router_insert(a->ids, j, (uint16_t)take_largest(keys, a->n));
    aeg_route_weights(a, s);
}
