/* SPDX-License-Identifier: Apache-2.0 */
/* expert/streamer: the right bytes at every pool size, back end and order of calls; a pinned expert stays. */
#include "unit/streamer_case.h"

#include <string.h>
#include <time.h>

#include "base/checked.h"

typedef struct {
    aeg_expert_view views[CASE_EXPERTS];
    uint32_t n;
} held_views;

static void finish_one(case_state *c, held_views *held, uint32_t k, uint32_t layer, const uint16_t *experts)
{
    /* Whatever happened since it was given, the bytes are still its own. */
    case_check_view(c, layer, experts, &held->views[k]);
    aeg_streamer_done(c->streamer, &held->views[k]);
    held->views[k] = held->views[--held->n];
}

static void random_guess(case_state *c)
{
    uint16_t experts[8];
    const uint32_t n = (uint32_t)t_between(1, 8);
    for (uint32_t i = 0; i < n; i++)
        experts[i] = (uint16_t)t_below(CASE_EXPERTS + 1);
    aeg_streamer_guess(c->streamer, (uint32_t)t_below(CASE_LAYERS + 1), experts, n);
}

/* One demand with random pauses, guesses and orders of giving back; now and then it is abandoned. */
static void random_demand(case_state *c)
{
    uint16_t experts[CASE_EXPERTS];
    uint32_t uses[CASE_EXPERTS];
    const bool ordered = t_below(2);
    const uint32_t n = case_choose(experts, uses, (uint32_t)t_below(t_below(2) ? CASE_TOP_K + 1 : CASE_EXPERTS + 1));
    const uint32_t layer = (uint32_t)t_below(CASE_LAYERS), quits = (uint32_t)t_below(40);
    bool given[CASE_EXPERTS] = { false };
    uint32_t n_given = 0, n_calls = 0;
    held_views held = { .n = 0 };
    const uint32_t events = c->n_events;
    aegis_error err;

    T_OK(aeg_streamer_demand(c->streamer, layer, experts, uses, n, ordered, &err), &err);
    while (n_given < n) {
        aeg_expert_view views[CASE_EXPERTS];
        uint32_t got = 0;
        if (n_calls++ == quits) {
            aeg_streamer_abort(c->streamer);
            return;
        }
        if (t_below(4) == 0)
            random_guess(c);
        while (held.n >= c->n_slots || (held.n > 0 && t_below(3) == 0))
            finish_one(c, &held, (uint32_t)t_below(held.n), layer, experts);
        T_OK(aeg_streamer_take(c->streamer, views, (uint32_t)t_between(1, c->n_slots - held.n), &got, &err), &err);
        T_CHECK(got > 0);
        for (uint32_t i = 0; i < got; i++) {
            T_CHECK(views[i].index < n && !given[views[i].index]);
            T_CHECK(!ordered || views[i].index == n_given);
            given[views[i].index] = true;
            n_given++;
            case_check_view(c, layer, experts, &views[i]);
            T_CHECK(aeg_streamer_resident(c->streamer, layer, experts[views[i].index]));
            held.views[held.n++] = views[i];
        }
    }
    T_CHECK(c->n_events == events + 1 && c->last.layer == layer && c->last.n_experts == n);
    T_CHECK(c->last.hits + c->last.prefetch_hits + c->last.misses == n);
    aeg_expert_view none;
    uint32_t got = 1;
    T_OK(aeg_streamer_take(c->streamer, &none, 1, &got, &err), &err);
    T_CHECK(got == 0);
    while (held.n > 0)
        finish_one(c, &held, (uint32_t)t_below(held.n), layer, experts);
    if (t_below(3) == 0)
        random_guess(c);
}

static case_config random_case(void)
{
    static const aeg_io_kind kinds[] = { AEG_IO_URING, AEG_IO_PREAD, AEG_IO_NULL, AEG_IO_SIM };
    static const int32_t prefetches[] = { 0, 1, 4, -1 };
    return (case_config){ .kind = kinds[t_below(4)],
                          .depth = (uint32_t)t_between(1, 10),
                          .n_slots = (uint32_t)t_between(CASE_TOP_K, t_below(2) ? 10 : CASE_LAYERS * CASE_EXPERTS + 3),
                          .prefetch = prefetches[t_below(4)],
                          .split_bytes = t_below(2) };
}

T_PROPERTY(whatever_is_asked_the_right_bytes_come, 150)
{
    case_state c;
    const case_config cfg = random_case();
    case_open(&c, &cfg);
    const uint64_t calls = aeg_memory_calls();
    for (int i = 0; i < 40; i++) {
        random_demand(&c);
        if (t_below(3) == 0)
            aeg_streamer_tick(c.streamer, (uint32_t)t_below(4));
    }
    T_CHECK(aeg_memory_calls() == calls);
    case_close(&c);
}

/* Runs a whole demand in the simplest way. */
static void run_demand(case_state *c, uint32_t layer, const uint16_t *experts, uint32_t n, bool ordered)
{
    static const uint32_t ones[CASE_EXPERTS] = { [0 ... CASE_EXPERTS - 1] = 1 };
    aegis_error err;
    T_OK(aeg_streamer_demand(c->streamer, layer, experts, ones, n, ordered, &err), &err);
    T_OK(case_take_all(c, layer, experts, n, &err), &err);
}

static void guesses_are_counted_and_never_outlive_their_layer(void **state)
{
    (void)state;
    case_state c;
    case_open(&c, &(case_config){ .kind = AEG_IO_NULL, .depth = 4, .n_slots = 8, .prefetch = 4 });
    const uint16_t first[] = { 1, 2, 3 }, later[] = { 1, 5, 7 };
    aeg_streamer_guess(c.streamer, 0, (const uint16_t[]){ 7, 1, 9, 4, 5 }, 5); /* the fifth is beyond the setting */
    run_demand(&c, 0, later, 3, false);
    T_CHECK(c.last.prefetch_hits == 2 && c.last.misses == 1 && c.last.hits == 0);
    T_CHECK(aeg_streamer_get_stats(c.streamer).guesses == 4 && aeg_streamer_get_stats(c.streamer).guesses_wasted == 2);
    run_demand(&c, 0, later, 3, false);
    T_CHECK(c.last.hits == 3); /* a guess that came true is an ordinary resident afterwards */
    run_demand(&c, 1, first, 3, false);
    T_CHECK(c.last.misses == 3 && c.last.read_bytes == 3 * CASE_RECORD);
    const aeg_streamer_stats stats = aeg_streamer_get_stats(c.streamer);
    T_CHECK(stats.by_misses[0] == 1 && stats.by_misses[1] == 1 && stats.by_misses[2] == 0 && stats.by_misses[3] == 1);
    case_close(&c);
}

static void demand_goes_before_guesses(void **state)
{
    (void)state;
    case_state c;
    case_open(&c, &(case_config){ .kind = AEG_IO_SIM, .depth = 4, .n_slots = 16, .prefetch = 4, .sim_latency_s = 2e-3 });
    const uint16_t now[] = { 0, 1, 2 }, next[] = { 8, 9 };
    const uint32_t uses[] = { 1, 1, 1 };
    aeg_expert_view views[3];
    aegis_error err;
    uint32_t n = 0, total = 0;
    T_OK(aeg_streamer_demand(c.streamer, 0, now, uses, 3, false, &err), &err);
    aeg_streamer_guess(c.streamer, 1, next, 2);
    T_CHECK(aeg_io_flight(c.io) == 3 && aeg_streamer_get_stats(c.streamer).guesses == 0);
    for (; total < 3; total += n) {
        T_OK(aeg_streamer_take(c.streamer, views + total, 3, &n, &err), &err);
        T_CHECK(total + n == 3 || aeg_streamer_get_stats(c.streamer).guesses == 0);
    }
    T_CHECK(aeg_streamer_get_stats(c.streamer).guesses == 2);
    for (uint32_t i = 0; i < 3; i++)
        aeg_streamer_done(c.streamer, &views[i]);
    run_demand(&c, 1, next, 2, false);
    T_CHECK(c.last.prefetch_hits == 2 && c.last.misses == 0);
    /* Guesses that had no chance to start are forgotten when the next demand comes. */
    T_OK(aeg_streamer_demand(c.streamer, 0, (const uint16_t[]){ 10 }, uses, 1, false, &err), &err);
    aeg_streamer_guess(c.streamer, 1, (const uint16_t[]){ 11 }, 1);
    aeg_streamer_abort(c.streamer);
    T_CHECK(aeg_io_flight(c.io) == 0 && aeg_streamer_resident(c.streamer, 0, 10)); /* what arrived is kept */
    run_demand(&c, 0, now, 3, false);
    T_CHECK(c.last.hits == 3 && aeg_streamer_get_stats(c.streamer).guesses == 2);
    case_close(&c);
}

static void sleep_ms(double ms)
{
    const struct timespec ts = { 0, (long)(ms * 1e6) };
    nanosleep(&ts, NULL);
}

/* The disk takes 1 ms per record. Layers that compute for 4 ms leave it idle, layers that compute for nothing do not. */
static uint64_t guesses_after(double compute_ms)
{
    case_state c;
    case_open(&c, &(case_config){ .kind = AEG_IO_SIM, .depth = 4, .n_slots = 8, .prefetch = -1,
                                  .sim_bytes_per_s = CASE_RECORD / 1e-3 });
    for (uint32_t i = 0; i < 80; i++) {
        const uint16_t now[] = { (uint16_t)(i % CASE_EXPERTS) }, next[] = { (uint16_t)((i + 7) % CASE_EXPERTS) };
        run_demand(&c, i % CASE_LAYERS, now, 1, false);
        aeg_streamer_guess(c.streamer, (i + 1) % CASE_LAYERS, next, 1);
        if (compute_ms > 0)
            sleep_ms(compute_ms);
    }
    const uint64_t guesses = aeg_streamer_get_stats(c.streamer).guesses;
    case_close(&c);
    return guesses;
}

static void automatic_guesses_need_idle_disk_time(void **state)
{
    (void)state;
    T_CHECK(guesses_after(0) == 0);
    T_CHECK(guesses_after(4) > 20);
}

/* A prefill over every expert of every layer leaves the experts in place that decode lives on. */
static void prefill_does_not_flush_the_hot_experts(void **state)
{
    (void)state;
    case_state c;
    uint16_t all[CASE_EXPERTS];
    const uint16_t hot[] = { 2, 5, 11 };
    case_open(&c, &(case_config){ .kind = AEG_IO_PREAD, .depth = 2, .n_slots = 3 * CASE_LAYERS + 6 });
    for (uint16_t i = 0; i < CASE_EXPERTS; i++)
        all[i] = i;
    for (uint32_t token = 0; token < 10; token++)
        for (uint32_t layer = 0; layer < CASE_LAYERS; layer++)
            run_demand(&c, layer, hot, 3, false);
    for (uint32_t layer = 0; layer < CASE_LAYERS; layer++) {
        run_demand(&c, layer, all, CASE_EXPERTS, true);
        T_CHECK(c.last.hits >= 3 && c.last.misses <= CASE_EXPERTS - 3); /* hits are used where they are */
    }
    for (uint32_t layer = 0; layer < CASE_LAYERS; layer++)
        for (uint32_t i = 0; i < 3; i++)
            T_CHECK(aeg_streamer_resident(c.streamer, layer, hot[i]));
    case_close(&c);
}

/* However deep the queue, prefill reads ahead into half of the pool at most, and decode into all of it. */
static void prefill_reads_ahead_in_a_window(void **state)
{
    (void)state;
    case_state c;
    const uint16_t experts[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
    const uint32_t uses[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    aegis_error err;
    case_open(&c, &(case_config){ .kind = AEG_IO_SIM, .depth = 16, .n_slots = 8, .sim_latency_s = 5e-3 });
    T_OK(aeg_streamer_demand(c.streamer, 0, experts, uses, 10, true, &err), &err);
    T_CHECK(aeg_io_flight(c.io) == 4);
    T_OK(case_take_all(&c, 0, experts, 10, &err), &err);
    T_OK(aeg_streamer_demand(c.streamer, 1, experts, uses, 10, false, &err), &err);
    T_CHECK(aeg_io_flight(c.io) == 8);
    T_OK(case_take_all(&c, 1, experts, 10, &err), &err);
    case_close(&c);
}

/* Every slot holds a hit that is due later than a missing expert: the last of them is read again. */
static void the_smallest_pool_can_prefill(void **state)
{
    (void)state;
    case_state c;
    uint16_t all[CASE_EXPERTS];
    const uint16_t tail[CASE_TOP_K] = { 12, 13, 14, 15 };
    for (uint16_t i = 0; i < CASE_EXPERTS; i++)
        all[i] = i;
    case_open(&c, &(case_config){ .kind = AEG_IO_URING, .depth = 8, .n_slots = CASE_TOP_K });
    run_demand(&c, 0, tail, CASE_TOP_K, false);
    run_demand(&c, 0, all, CASE_EXPERTS, true);
    T_CHECK(c.last.misses >= CASE_EXPERTS - CASE_TOP_K + 1 && c.last.hits >= 1);
    case_close(&c);
}

static void wrong_calls_are_refused_and_change_nothing(void **state)
{
    (void)state;
    case_state c;
    aegis_error err;
    const uint32_t uses[] = { 1, 1, 1, 1 };
    const uint16_t good[] = { 1, 2 }, descending[] = { 2, 1 }, twice[] = { 3, 3 }, beyond[] = { CASE_EXPERTS };
    case_open(&c, &(case_config){ .kind = AEG_IO_NULL, .depth = 4, .n_slots = CASE_TOP_K });
    T_FAILS(aeg_streamer_demand(c.streamer, CASE_LAYERS, good, uses, 2, false, &err), &err, AEGIS_E_USAGE, "layer 3");
    T_FAILS(aeg_streamer_demand(c.streamer, 0, descending, uses, 2, false, &err), &err, AEGIS_E_USAGE, "expert 1");
    T_FAILS(aeg_streamer_demand(c.streamer, 0, twice, uses, 2, false, &err), &err, AEGIS_E_USAGE, "expert 3");
    T_FAILS(aeg_streamer_demand(c.streamer, 0, beyond, uses, 1, false, &err), &err, AEGIS_E_USAGE, "expert 16");
    T_OK(aeg_streamer_demand(c.streamer, 0, good, uses, 2, false, &err), &err);
    T_FAILS(aeg_streamer_demand(c.streamer, 1, good, uses, 2, false, &err), &err, AEGIS_E_RUNTIME, "not done");
    T_OK(case_take_all(&c, 0, good, 2, &err), &err);
    /* A caller that keeps every slot and asks for more hears so and does not hang. */
    const uint16_t five[] = { 1, 2, 3, 4, 5 };
    const uint32_t five_uses[] = { 1, 1, 1, 1, 1 };
    aeg_expert_view views[5];
    uint32_t n = 0, total = 0;
    T_OK(aeg_streamer_demand(c.streamer, 0, five, five_uses, 5, false, &err), &err);
    for (; total < 4; total += n)
        T_OK(aeg_streamer_take(c.streamer, views + total, 5, &n, &err), &err);
    T_FAILS(aeg_streamer_take(c.streamer, views + 4, 1, &n, &err), &err, AEGIS_E_RUNTIME, "4 expert slots are held");
    aeg_streamer_done(c.streamer, &views[0]);
    T_OK(aeg_streamer_take(c.streamer, views + 4, 1, &n, &err), &err);
    T_CHECK(n == 1 && views[4].index == 4);
    case_close(&c);
    aeg_streamer_close(NULL);
}

static void a_pool_below_top_k_is_refused(void **state)
{
    (void)state;
    aeg_store store;
    aeg_arena plan = aeg_arena_measure("tables"), slots = aeg_arena_measure("slots");
    aeg_streamer *s = NULL;
    aegis_error err;
    case_fill_store(&store);
    aeg_streamer_config cfg = { .store = &store, .n_slots = CASE_TOP_K - 1, .max_demand = CASE_EXPERTS };
    T_CHECK(aeg_streamer_min_slots(&store) == CASE_TOP_K);
    T_FAILS(aeg_streamer_init(&s, &plan, &slots, &cfg, &err), &err, AEGIS_E_BUDGET, "3, expected at least 4");
    cfg.n_slots = CASE_TOP_K;
    store.experts.down_bytes[1] = CASE_RECORD;
    T_FAILS(aeg_streamer_init(&s, &plan, &slots, &cfg, &err), &err, AEGIS_E_MODEL, "layer 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_asked_the_right_bytes_come),
        cmocka_unit_test(guesses_are_counted_and_never_outlive_their_layer),
        cmocka_unit_test(demand_goes_before_guesses),
        cmocka_unit_test(automatic_guesses_need_idle_disk_time),
        cmocka_unit_test(prefill_does_not_flush_the_hot_experts),
        cmocka_unit_test(prefill_reads_ahead_in_a_window),
        cmocka_unit_test(the_smallest_pool_can_prefill),
        cmocka_unit_test(wrong_calls_are_refused_and_change_nothing),
        cmocka_unit_test(a_pool_below_top_k_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
