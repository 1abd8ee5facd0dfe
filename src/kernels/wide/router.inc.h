/* SPDX-License-Identifier: Apache-2.0 */
/* wide/router.inc.h - softmax and the exact top-k over integer keys (router_key.h), kept in scratch. */

static float max_logit(const float *logits, uint32_t n)
{
    float p[LANES];
    lanes m = l_set1(-INFINITY);
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        m = l_max(l_load(logits + i), m);
    l_store(p, m);
    for (; i < n; i++)
        p[i % LANES] = aeg_maxf(logits[i], p[i % LANES]);
    return l_max_all(l_load(p));
}

static float exp_total(const float *logits, uint32_t n, float max)
{
    float p[LANES];
    lanes sum = l_set1(0.0f);
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        sum = l_add(sum, l_exp(l_sub(l_load(logits + i), l_set1(max))));
    l_store(p, sum);
    for (; i < n; i++)
        p[i % LANES] += aeg_expf(logits[i] - max);
    return l_sum(l_load(p));
}

/* Index of the largest key, the lowest one of equals; it is then marked as taken. */
static uint32_t take_largest(int32_t *keys, uint32_t n)
{
    const uint32_t whole = n - n % LANES;
    int32_t best = AEG_ROUTER_KEY_TAKEN;
    uint32_t at = 0;
    if (whole > 0) {
        ilanes m = i_load(keys);
        for (uint32_t i = LANES; i < whole; i += LANES)
            m = i_max(m, i_load(keys + i));
        best = i_max_all(m);
    }
    for (uint32_t i = whole; i < n; i++)
        best = keys[i] > best ? keys[i] : best;
    for (; at < whole; at += LANES) {
        const int lane = i_find(i_load(keys + at), best);
        if (lane < LANES) {
            at += (uint32_t)lane;
            keys[at] = AEG_ROUTER_KEY_TAKEN;
            return at;
        }
    }
    while (keys[at] != best)
        at++;
    keys[at] = AEG_ROUTER_KEY_TAKEN;
    return at;
}

static void router(uint16_t *ids, float *weights, const float *logits, uint32_t n, uint32_t top_k, int renormalise,
                   float *scratch)
{
    int32_t *keys = (int32_t *)(void *)scratch;
    const float max = max_logit(logits, n);
    const float total = renormalise ? 0.0f : exp_total(logits, n, max);
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        i_store(keys + i, i_router_key(l_load(logits + i)));
    for (; i < n; i++)
        keys[i] = aeg_router_key(logits[i]);
    for (uint32_t j = 0; j < top_k; j++)
        aeg_router_insert(ids, j, (uint16_t)take_largest(keys, n));
    aeg_router_weights(weights, ids, top_k, logits, max, renormalise, total);
}
