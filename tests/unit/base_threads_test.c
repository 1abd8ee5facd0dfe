/* SPDX-License-Identifier: Apache-2.0 */
#include "support/t.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/threads.h"

enum { MAX_UNITS = 3000 };

typedef struct {
    uint8_t done[MAX_UNITS];         /* not atomic: ranges are disjoint, which tsan checks */
    _Atomic uint32_t seen[256];      /* by thread: how often it was called                 */
    uint32_t n;
    uint32_t n_threads;
    _Atomic uint32_t bad;
} job;

static void mark(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    job *j = ctx;
    if (begin >= end || end > j->n || thread >= j->n_threads)
        atomic_fetch_add(&j->bad, 1);
    atomic_fetch_add(&j->seen[thread], 1);
    for (uint32_t i = begin; i < end && i < MAX_UNITS; i++)
        j->done[i]++;
}

typedef struct {
    aeg_arena arena;
    aeg_team *team;
} crew;

static crew crew_open(uint32_t n_threads)
{
    aegis_error err;
    crew c = { 0 };
    aeg_arena plan = aeg_arena_measure("threads");
    T_OK(aeg_team_init(&c.team, &plan, n_threads, &err), &err);
    assert_null(c.team);
    c.arena = t_arena(plan.used);
    T_OK(aeg_team_init(&c.team, &c.arena, n_threads, &err), &err);
    assert_int_equal(c.arena.used, plan.used);
    assert_int_equal(aeg_team_size(c.team), n_threads);
    return c;
}

static void crew_close(crew *c)
{
    aeg_team_close(c->team);
    aeg_arena_unmap(&c->arena);
}

static void check_job(aeg_team *team, uint32_t n_threads, uint32_t n)
{
    static job j;
    memset(&j, 0, sizeof j);
    j.n = n;
    j.n_threads = n_threads;
    aeg_team_run(team, n, mark, &j);
    assert_int_equal(j.bad, 0);
    for (uint32_t i = 0; i < n; i++)
        if (j.done[i] != 1)
            fail_msg("%u threads, %u units: unit %u was done %u times", n_threads, n, i, j.done[i]);
    for (uint32_t t = n_threads; t < AEG_ARRAY_LEN(j.seen); t++)
        assert_int_equal(j.seen[t], 0);
}

static void every_unit_is_done_exactly_once(void **state)
{
    (void)state;
    for (uint32_t n_threads = 1; n_threads <= 8; n_threads++) {
        crew c = crew_open(n_threads);
        for (uint32_t n = 0; n <= 40; n++)
            check_job(c.team, n_threads, n);
        for (uint32_t i = 0; i < 30; i++)
            check_job(c.team, n_threads, (uint32_t)t_below(MAX_UNITS));
        check_job(c.team, n_threads, MAX_UNITS);
        crew_close(&c);
    }
    check_job(NULL, 1, 17);
}

static void count(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    (void)thread;
    atomic_fetch_add_explicit((_Atomic uint64_t *)ctx, end - begin, memory_order_relaxed);
}

/* Back to back jobs, with pauses now and then so that workers fall asleep in between. */
static void ten_thousand_jobs(void **state)
{
    (void)state;
    _Atomic uint64_t total = 0;
    uint64_t expected = 0;
    crew c = crew_open(4);
    for (uint32_t i = 0; i < 10000; i++) {
        const uint32_t n = (uint32_t)t_below(9);
        expected += n;
        aeg_team_run(c.team, n, count, &total);
        if (total != expected)
            fail_msg("job %u returned before it was done", i);
        if (i % 500 == 0)
            usleep(300);
    }
    crew_close(&c);
}

typedef struct {
    uint32_t from[512], to[512];
} relay;

static void rotate(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    relay *r = ctx;
    (void)thread;
    for (uint32_t i = begin; i < end; i++)
        r->to[i] = r->from[(i + 1) % 512] + 1;
}

static void what_one_job_wrote_the_next_one_reads(void **state)
{
    (void)state;
    static relay r[2];
    crew c = crew_open(5);
    memset(r, 0, sizeof r);
    uint32_t reference[512], next[512];
    for (uint32_t i = 0; i < 512; i++)
        reference[i] = r[0].from[i] = i * 7919u;
    for (int step = 0; step < 400; step++) {
        aeg_team_run(c.team, 512, rotate, &r[0]);
        memcpy(r[0].from, r[0].to, sizeof r[0].to);
        for (uint32_t i = 0; i < 512; i++)
            next[i] = reference[(i + 1) % 512] + 1;
        memcpy(reference, next, sizeof next);
    }
    assert_memory_equal(r[0].from, reference, sizeof reference);
    crew_close(&c);
}

static void fewer_threads_do_the_same_work(void **state)
{
    (void)state;
    crew c = crew_open(6);
    for (uint32_t i = 0; i < 200; i++) {
        const uint32_t n_active = 1 + (uint32_t)t_below(6);
        aeg_team_use(c.team, n_active);
        assert_int_equal(aeg_team_in_use(c.team), n_active);
        check_job(c.team, n_active, (uint32_t)t_below(400));
        if (i % 50 == 0)
            usleep(300);
    }
    crew_close(&c); /* also while some are out of use */
}

/* A worker that is held up costs its present piece only: the others take the rest of its range. */
static void hold_up(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    job *j = ctx;
    if (thread == 1)
        usleep(2000);
    atomic_fetch_add(&j->seen[thread], end - begin);
}

static void the_others_finish_for_one_that_lags(void **state)
{
    (void)state;
    static job j;
    crew c = crew_open(2);
    memset(&j, 0, sizeof j);
    for (uint32_t i = 0; i < 20; i++)
        aeg_team_run(c.team, 800, hold_up, &j);
    assert_int_equal(j.seen[0] + j.seen[1], 20 * 800);
    assert_true(j.seen[1] <= 20 * 800 / 4);
    crew_close(&c);
}

static void a_bad_count_is_refused(void **state)
{
    (void)state;
    aegis_error err;
    aeg_team *team = NULL;
    aeg_arena plan = aeg_arena_measure("threads");
    T_FAILS(aeg_team_init(&team, &plan, 0, &err), &err, AEGIS_E_USAGE, "threads: 0");
    T_FAILS(aeg_team_init(&team, &plan, AEG_MAX_THREADS + 1, &err), &err, AEGIS_E_USAGE, "257");
    aeg_arena tiny = t_arena(AEG_PAGE);
    T_FAILS(aeg_team_init(&team, &tiny, 4, &err), &err, AEGIS_E_BUDGET, "'test'");
    assert_null(team);
    aeg_team_close(NULL);
    aeg_arena_unmap(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_is_done_exactly_once),
        cmocka_unit_test(ten_thousand_jobs),
        cmocka_unit_test(what_one_job_wrote_the_next_one_reads),
        cmocka_unit_test(fewer_threads_do_the_same_work),
        cmocka_unit_test(the_others_finish_for_one_that_lags),
        cmocka_unit_test(a_bad_count_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
