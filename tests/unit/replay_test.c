/* SPDX-License-Identifier: Apache-2.0 */
/* expert/replay: each policy on traces small enough to work out by hand, Belady against every possible choice, and the
 * pool of the engine against the replay's own model of it. */
#include "support/t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expert/replay.h"

enum { MAX_TOKENS = 4096 };

static uint16_t ids[MAX_TOKENS * 64];
static uint8_t flags[MAX_TOKENS];

static aeg_trace decode_trace(uint32_t n_layers, uint32_t n_experts, uint32_t top_k, uint64_t n_tokens)
{
    for (uint64_t i = 0; i < n_tokens; i++)
        flags[i] = AEG_ROUTE_STEP;
    return (aeg_trace){ .shape = { n_layers, n_experts, top_k, 0 }, .n_tokens = n_tokens, .flags = flags, .ids = ids };
}

/* One layer, one expert for each token: "abcab". */
static aeg_trace letters(const char *text)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint16_t)(text[i] - 'a');
    return decode_trace(1, 8, 1, n);
}

static aeg_replay_result run(const aeg_trace *t, const aeg_replay_policy *p, uint32_t n_slots)
{
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_replay_stream s;
    aeg_replay_result r;
    T_OK(aeg_replay_stream_make(&s, t, &memory, &err), &err);
    T_OK(aeg_replay_run(&s, p, n_slots, &memory, &r, &err), &err);
    aeg_replay_stream_free(&s);
    t_no_leak(&memory);
    return r;
}

static void small_traces_by_hand(void **state)
{
    (void)state;
    static const struct {
        aeg_replay_policy policy;
        const char *text;
        uint32_t n_slots;
        uint64_t hits;
    } cases[] = {
        /* a circle one longer than the pool: each has gone just before it is needed */
        { { .name = "lru", .kind = AEG_REPLAY_LRU }, "abcabcabc", 2, 0 },
        { { .name = "lru", .kind = AEG_REPLAY_LRU }, "abacabad", 2, 3 },
        /* the same circle: a is kept until b is needed later than c, and so on */
        { { .name = "belady", .kind = AEG_REPLAY_BELADY }, "abcabcabc", 2, 3 },
        { { .name = "lfu", .kind = AEG_REPLAY_LFU }, "aaabcbcaa", 2, 4 },
        /* c (1) goes in for b (1), b (2) for c (1), then c (2) for a: of equals the older one */
        { { .name = "lfu", .kind = AEG_REPLAY_LFU }, "aabcbcbc", 2, 3 },
        /* half-life 1 period = 8 tokens: a's 4 uses outlive b's 2 and c's 2 until c at token 10 (4.6 against 5.9 in
         * units of token 0), from where b and c stay; d at 20 takes the place of b (21.4; c 25.5) */
        { { .name = "aged", .kind = AEG_REPLAY_AGED, .half_life = 1 }, "aaaabbccbbccbbccbbccdb", 2, 15 },
        { { .name = "s3", .kind = AEG_REPLAY_S3FIFO }, "ab", 2, 0 },
        /* two slots, a small queue of none: a is used again and goes round once in main, b goes, then is a ghost's return */
        { { .name = "s3", .kind = AEG_REPLAY_S3FIFO }, "aabca", 2, 2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const aeg_trace t = letters(cases[i].text);
        const aeg_replay_result r = run(&t, &cases[i].policy, cases[i].n_slots);
        if (r.hits != cases[i].hits)
            print_error("%s on %s: %d hits, expected %d\n", cases[i].policy.name, cases[i].text, (int)r.hits,
                        (int)cases[i].hits);
        T_CHECK(r.hits == cases[i].hits && r.uses == strlen(cases[i].text));
    }
}

/* Experts that are needed together: a layer's hits are pinned before its misses choose, and a token's layers follow each
 * other. Two layers, top 2 of 3, three slots. */
static void hits_of_a_layer_are_not_its_victims(void **state)
{
    (void)state;
    static const uint16_t routes[][2] = { { 0, 1 }, { 0, 1 },   /* 2 misses; 1 goes in, then one of layer 0 goes: 2 misses */
                                          { 0, 1 }, { 1, 2 } };
    const aeg_replay_policy lru = { .name = "lru", .kind = AEG_REPLAY_LRU };
    memcpy(ids, routes, sizeof routes);
    const aeg_trace t = decode_trace(2, 3, 2, 2);
    /* LRU: layer 0 expert 0 goes for layer 1; then (0,1) hits and (0,0) evicts the oldest unpinned (1,0); then (1,1) hits
     * and (1,2) evicts (0,0), which was used before (0,1) in the same layer. */
    const aeg_replay_result r = run(&t, &lru, 3);
    T_CHECK(r.uses == 8 && r.hits == 2);
}

/* ---- Belady ---- */

typedef struct {
    const aeg_replay_stream *s;
    uint32_t n_slots, n_keys;
} choices;

/* The most hits from `demand` on, with `resident` (a bit per key) at its beginning. */
static uint32_t best_from(const choices *c, uint64_t demand, uint32_t resident)
{
    if (demand == c->s->n_demands)
        return 0;
    const aeg_replay_demand *d = &c->s->demands[demand];
    uint32_t needed = 0, best = 0;
    for (uint32_t i = 0; i < d->n; i++)
        needed |= 1u << c->s->keys[d->first + i];
    const uint32_t hits = (uint32_t)__builtin_popcount(needed & resident);
    const int over = __builtin_popcount(needed | resident) - (int)c->n_slots;
    const uint32_t free_to_go = resident & ~needed;
    /* every set of victims of the right size */
    for (uint32_t gone = free_to_go;; gone = (gone - 1) & free_to_go) {
        if (__builtin_popcount(gone) == (over > 0 ? over : 0)) {
            const uint32_t rest = best_from(c, demand + 1, (resident & ~gone) | needed);
            best = rest > best ? rest : best;
        }
        if (gone == 0)
            break;
    }
    return hits + best;
}

static void choose_experts(uint16_t *out, uint32_t n_experts, uint32_t top_k, uint32_t skew)
{
    uint32_t n = 0;
    while (n < top_k) {
        const uint16_t e = (uint16_t)(t_below(2) ? t_below(n_experts) : t_below(1 + n_experts / skew));
        uint32_t at = 0;
        while (at < n && out[at] < e)
            at++;
        if (at < n && out[at] == e)
            continue;
        memmove(out + at + 1, out + at, (n - at) * sizeof out[0]);
        out[at] = e;
        n++;
    }
}

static aeg_trace random_trace(uint32_t n_layers, uint32_t n_experts, uint32_t top_k, uint64_t n_tokens)
{
    for (uint64_t i = 0; i < n_tokens * n_layers; i++)
        choose_experts(ids + i * top_k, n_experts, top_k, 3);
    return decode_trace(n_layers, n_experts, top_k, n_tokens);
}

T_PROPERTY(belady_is_the_best_of_all_choices, 60)
{
    const uint32_t n_layers = (uint32_t)t_between(1, 2), top_k = (uint32_t)t_between(1, 2);
    const uint32_t n_slots = (uint32_t)t_between(top_k, 3);
    const aeg_trace t = random_trace(n_layers, 4, top_k, 8 / n_layers);
    const aeg_replay_policy belady = { .name = "belady", .kind = AEG_REPLAY_BELADY };
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_replay_stream s;
    aeg_replay_result r;
    T_OK(aeg_replay_stream_make(&s, &t, &memory, &err), &err);
    T_OK(aeg_replay_run(&s, &belady, n_slots, &memory, &r, &err), &err);
    T_CHECK(r.hits == best_from(&(choices){ &s, n_slots, n_layers * 4 }, 0, 0));
    aeg_replay_stream_free(&s);
    t_no_leak(&memory);
}

/* ---- what holds for every policy ---- */

static void make_prefills(uint64_t n_tokens)
{
    for (uint64_t i = 0, n; i < n_tokens; i += n) {
        const bool prefill = t_below(3) == 0;
        n = prefill ? 1 + t_below(40) : 1;
        for (uint64_t j = i; j < i + n && j < n_tokens; j++)
            flags[j] = (uint8_t)((prefill ? AEG_ROUTE_PREFILL : 0) | (j == i ? AEG_ROUTE_STEP : 0));
    }
}

T_PROPERTY(all_policies_see_the_same_uses_and_none_beats_belady, 20)
{
    const uint32_t n_layers = (uint32_t)t_between(1, 4), n_experts = (uint32_t)t_between(8, 32), top_k = 4;
    const uint32_t n_slots = (uint32_t)t_between(top_k, n_layers * n_experts);
    const aeg_trace t = random_trace(n_layers, n_experts, top_k, 300);
    const bool mixed = t_below(2);
    if (mixed)
        make_prefills(300);
    const aeg_replay_policy belady = { .name = "belady", .kind = AEG_REPLAY_BELADY };
    const aeg_replay_result best = run(&t, &belady, n_slots);
    for (uint32_t p = 0; p < aeg_n_replay_policies; p++) {
        const aeg_replay_result r = run(&t, &aeg_replay_policies[p], n_slots);
        T_CHECK(r.uses == best.uses && r.prefill_uses == best.prefill_uses && r.hits <= r.uses);
        T_CHECK(mixed || r.hits <= best.hits);
        if (n_slots == n_layers * n_experts) /* nothing ever goes */
            T_CHECK(r.hits == best.hits && r.prefill_hits == best.prefill_hits);
    }
}

/* expert/slots.c through its own calls against the replay's model of the rule it is meant to have. Its counts are f32 and
 * the model's are logarithms in f64, and of equal counts the pool's last use is when a slot was taken: ties may go the other way. */
T_PROPERTY(the_pool_is_what_the_model_says, 15)
{
    const uint32_t n_layers = (uint32_t)t_between(1, 6), n_experts = (uint32_t)t_between(8, 40), top_k = 4;
    const uint32_t n_slots = (uint32_t)t_between(top_k, n_layers * n_experts);
    const aeg_trace t = random_trace(n_layers, n_experts, top_k, 600);
    if (t_below(2))
        make_prefills(600);
    const aeg_replay_policy slots = { .name = "slots", .kind = AEG_REPLAY_SLOTS };
    const aeg_replay_policy model = { .name = "model", .kind = AEG_REPLAY_LAYERED, .half_life = 8 };
    const aeg_replay_result a = run(&t, &slots, n_slots), b = run(&t, &model, n_slots);
    T_CHECK(fabs((double)a.hits - (double)b.hits) <= 4.0 + 0.01 * (double)a.uses);
    T_CHECK(fabs((double)a.prefill_hits - (double)b.prefill_hits) <= 4.0 + 0.03 * (double)a.prefill_uses);
}

static void too_few_slots_are_refused(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_replay_stream s;
    aeg_replay_result r;
    const aeg_trace t = random_trace(1, 8, 4, 10);
    T_OK(aeg_replay_stream_make(&s, &t, &memory, &err), &err);
    T_FAILS(aeg_replay_run(&s, &aeg_replay_policies[0], 3, &memory, &r, &err), &err, AEGIS_E_USAGE, "3 slots");
    aeg_replay_stream_free(&s);
    t_no_leak(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_traces_by_hand),
        cmocka_unit_test(hits_of_a_layer_are_not_its_victims),
        cmocka_unit_test(belady_is_the_best_of_all_choices),
        cmocka_unit_test(all_policies_see_the_same_uses_and_none_beats_belady),
        cmocka_unit_test(the_pool_is_what_the_model_says),
        cmocka_unit_test(too_few_slots_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
