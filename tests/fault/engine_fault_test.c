/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation and every read failing in turn: a clean error, and the next try works. And: after open, nothing on
 * the token path allocates. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/t_engine.h"

/* --- the system calls and allocators below us (linked with --wrap) ------------------------------------ */

ssize_t __real_pread(int fd, void *buf, size_t n, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t offset);
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

static _Atomic long reads_until_fault; /* 0: none; counts down to the failing one */
static _Atomic int fault_hit, fault_short;
static _Atomic long n_allocations;

ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t offset)
{
    if (reads_until_fault > 0 && --reads_until_fault == 0) {
        fault_hit = 1;
        if (fault_short)
            return 0;
        errno = EIO;
        return -1;
    }
    return __real_pread(fd, buf, n, offset);
}

void *__wrap_malloc(size_t n)
{
    n_allocations++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    n_allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    n_allocations++;
    return __real_realloc(p, n);
}

/* Sanitizers make an open ten times slower: they look at fewer of the faults. */
enum { STRIDE = T_SLOW ? 9 : 1 };

/* --- one use of the engine ------------------------------------------------------------------------------ */

static int count_text(void *ctx, const char *bytes, size_t n)
{
    (void)bytes;
    *(size_t *)ctx += n;
    return 0;
}

static aegis_status answer(aegis_engine *e, size_t *n_text, aegis_error *err)
{
    char *prompt = NULL;
    size_t n = 0, n_ids = 0;
    uint32_t *ids = NULL;
    aegis_status status = aegis_template(e, "[{\"role\":\"user\",\"content\":\"Say hello.\"}]", NULL, -1, true, &prompt, &n, err);
    if (status == AEGIS_OK)
        status = aegis_tokenize(e, prompt, n, true, &ids, &n_ids, err);
    if (status == AEGIS_OK) {
        aegis_generation g = { .max_tokens = 4, .text = count_text, .ctx = n_text };
        aegis_generated out;
        aegis_sampling_greedy(&g.sampling);
        status = aegis_generate(e, ids, n_ids, &g, &out, err);
    }
    aegis_free_ids(ids);
    aegis_text_free(prompt);
    return status;
}

static aegis_status use(const aegis_options *o, aegis_error *err)
{
    aegis_engine *e = NULL;
    size_t n_text = 0;
    aegis_status status = aegis_engine_open(&e, o, err);
    if (status == AEGIS_OK)
        status = answer(e, &n_text, err);
    aegis_engine_close(e);
    T_CHECK(status != AEGIS_OK || n_text > 0);
    return status;
}

/* A model without text, given by ids: a prompt and a step. */
static aegis_status use_ids(const aegis_options *o, aegis_error *err)
{
    enum { N = 24 };
    uint32_t ids[N];
    aegis_engine *e = NULL;
    for (uint32_t i = 0; i < N; i++)
        ids[i] = i * 37 % 384;
    aegis_status status = aegis_engine_open(&e, o, err);
    if (status == AEGIS_OK)
        status = aegis_session_sync(e, ids, N, NULL, NULL, err);
    if (status == AEGIS_OK)
        status = aegis_session_step(e, 5, err);
    aegis_engine_close(e);
    return status;
}

static aegis_options small_options(void)
{
    aegis_options o = t_engine_options(T_STORE_DEMO);
    o.n_ctx = 128;
    o.n_threads = 1;
    o.memory_bytes = T_SANITIZED ? 4ull << 30 : 64u << 20; /* a sanitizer keeps freed memory, and the plan counts it */
    o.io = AEGIS_IO_PREAD;
    return o;
}

typedef aegis_status (*use_fn)(const aegis_options *o, aegis_error *err);

static aegis_options other_family(void)
{
    aegis_options o = small_options();
    o.store = T_STORE_8("qwen3next");
    return o;
}

static void allocations_fail(aegis_options o, use_fn run)
{
    aegis_error err;
    uint64_t n = 1;
    /* Parsing the manifest makes thousands of like ones: beyond 200, every 23rd, unless all are asked for. */
    const bool all = getenv("AEGIS_TEST_ALL") != NULL;
    for (;; n += all ? 1 : (n < 200 ? 1 : 23) * STRIDE) {
        t_fault_at(n);
        const aegis_status status = run(&o, &err);
        const bool hit = t_fault_hit();
        t_fault_at(0);
        if (!hit)
            break;
        if (status != AEGIS_OK)
            T_CHECK(strlen(err.message) > 0);
    }
    printf("allocations: %llu\n", (unsigned long long)n);
    T_CHECK(n > 100);
    T_OK(run(&o, &err), &err);
}

static void every_allocation_fails_in_turn(void **state) { (void)state; allocations_fail(small_options(), use); }
static void every_allocation_of_another_family_fails_in_turn(void **state) { (void)state; allocations_fail(other_family(), use_ids); }

static void reads_fail(aegis_options o, use_fn run, bool shortened)
{
    aegis_error err;
    long n = 1, n_unnoticed = 0;
    fault_short = shortened;
    const bool all = getenv("AEGIS_TEST_ALL") != NULL;
    for (;; n += all ? 1 : (n < 100 ? 1 : 7) * STRIDE) {
        fault_hit = 0;
        reads_until_fault = n;
        const aegis_status status = run(&o, &err);
        reads_until_fault = 0;
        if (!fault_hit)
            break;
        if (status == AEGIS_OK) {
            n_unnoticed++;
            continue;
        }
        T_CHECK(status == AEGIS_E_IO || status == AEGIS_E_MODEL);
        T_CHECK(strlen(err.message) > 0);
    }
    printf("reads: %ld\n", n);
    T_CHECK(n > 50);
    /* One probe per file asks whether direct reads are allowed and uses none of the bytes. */
    T_CHECK(shortened && !T_SLOW ? n_unnoticed == 3 : n_unnoticed <= 3);
    T_OK(run(&o, &err), &err);
}

static void every_read_fails_in_turn(void **state) { (void)state; reads_fail(small_options(), use, false); }
static void every_read_ends_early_in_turn(void **state) { (void)state; reads_fail(small_options(), use, true); }
static void every_read_of_another_family_fails_in_turn(void **state) { (void)state; reads_fail(other_family(), use_ids, false); }

/* A failed read in the middle of an answer: the same engine answers the next request. */
static void the_next_request_works(void **state)
{
    (void)state;
    const aegis_options o = small_options();
    aegis_engine *e = t_engine_open(&o);
    aegis_error err;
    fault_short = 0;
    for (long n = 1; n < 200; n += 9) {
        size_t n_text = 0;
        aegis_session_clear(e);
        reads_until_fault = n;
        const aegis_status status = answer(e, &n_text, &err);
        const bool hit = reads_until_fault == 0;
        reads_until_fault = 0;
        T_CHECK(!hit || status == AEGIS_E_IO);
        T_OK(answer(e, &n_text, &err), &err);
    }
    aegis_engine_close(e);
}

/* Copy the store and overwrite n bytes of one of its files. */
static const char *damaged_store(const char *file, long offset, int value, size_t n)
{
    static char path[4096];
    char command[8300], name[4200];
    snprintf(path, sizeof path, "%s/store", t_folder());
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s'", path, T_STORE_DEMO, path);
    T_CHECK(system(command) == 0);
    snprintf(name, sizeof name, "%s/%s", path, file);
    FILE *f = fopen(name, "r+b");
    T_CHECK(f != NULL && fseek(f, offset, SEEK_SET) == 0);
    for (size_t i = 0; i < n; i++)
        fputc(value, f);
    T_CHECK(fclose(f) == 0);
    return path;
}

static aegis_options resident_options(void)
{
    aegis_options o = small_options();
    o.memory_bytes = T_SANITIZED ? 6ull << 30 : 1u << 30;
    return o;
}

static uint64_t misses(const aegis_engine *e)
{
    aegis_stats stats;
    aegis_engine_stats(e, &stats);
    return stats.expert_misses;
}

static void count_bytes(void *ctx, uint64_t done, uint64_t total)
{
    uint64_t *last = ctx;
    T_CHECK(done > *last && done <= total);
    *last = done;
}

/* After a preload nothing is missing; one that fails or is cancelled in the middle leaves an engine that goes on. */
static void preload_reads_everything_once(void **state)
{
    (void)state;
    const aegis_options o = resident_options();
    aegis_error err;
    for (long fault = 1; fault < 600; fault += 67 * STRIDE) {
        aegis_engine *e = t_engine_open(&o);
        aegis_info info;
        uint64_t last = 0;
        size_t n_text = 0;
        aegis_engine_info(e, &info);
        fault_short = 0;
        reads_until_fault = fault;
        T_FAILS(aegis_engine_preload(e, count_bytes, &last, &err), &err, AEGIS_E_IO, "experts.bin: expert ");
        aegis_engine_cancel(e);
        T_FAILS(aegis_engine_preload(e, NULL, NULL, &err), &err, AEGIS_E_CANCELLED, "experts were read");
        last = 0;
        T_OK(aegis_engine_preload(e, count_bytes, &last, &err), &err);
        assert_int_equal(last, info.plan.n_experts_total * info.touched.record_bytes);
        T_OK(answer(e, &n_text, &err), &err);
        assert_int_equal(misses(e), 0);
        aegis_engine_close(e);
    }
    aegis_options small = o;
    aegis_plan plan;
    T_OK(aegis_plan_compute(&o, &plan, &err), &err);
    small.memory_bytes = (plan.minimum_bytes + plan.all_resident_bytes) / 2; /* a sanitizer grows between plan and open */
    aegis_engine *e = t_engine_open(&small);
    T_FAILS(aegis_engine_preload(e, NULL, NULL, &err), &err, AEGIS_E_BUDGET, "needs a budget of ");
    size_t n_text = 0;
    T_OK(answer(e, &n_text, &err), &err);
    aegis_engine_close(e);
}

static void damaged_weights_are_refused(void **state)
{
    (void)state;
    aegis_options o = small_options();
    aegis_error err;
    o.store = damaged_store("dense.bin", 500000, 0x5a, 3);
    T_FAILS(use(&o, &err), &err, AEGIS_E_MODEL, "is damaged");
    /* Experts are not hashed at open (they are read one by one, later): scales that are no numbers are noticed. */
    o.store = damaged_store("experts.bin", 0, 0xff, 24u << 20);
    T_FAILS(use(&o, &err), &err, AEGIS_E_MODEL, "not finite");
}

static void an_outline_plans_and_does_not_open(void **state)
{
    (void)state;
    aegis_options o = small_options();
    aegis_plan real, outline;
    aegis_engine *e = NULL;
    aegis_error err;
    o.store = T_STORE_DEMO;
    T_OK(aegis_plan_compute(&o, &real, &err), &err);
    o.store = T_STORE_OUTLINE;
    T_OK(aegis_plan_compute(&o, &outline, &err), &err);
    assert_true(outline.fits && outline.slot_bytes == real.slot_bytes);
    if (!T_SANITIZED) /* whose memory grows from plan to plan, and counts */
        assert_true(outline.expert_slots == real.expert_slots && outline.minimum_bytes == real.minimum_bytes &&
                    outline.max_n_ctx == real.max_n_ctx && outline.total_bytes == real.total_bytes);
    T_FAILS(aegis_engine_open(&e, &o, &err), &err, AEGIS_E_MODEL, "an outline to plan with");
    assert_null(e);
    T_OK(aegis_engine_open_text(&e, o.store, &err), &err); /* of its own, and whole */
    aegis_engine_close(e);
}

static void nothing_on_the_token_path_allocates(void **state)
{
    (void)state;
    aegis_options o = small_options();
    o.io = AEGIS_IO_AUTO;
    o.prefetch = -1;
    o.n_threads = 2;
    o.n_checkpoints = 1;
    aegis_engine *e = t_engine_open(&o);
    aegis_error err;
    static const uint32_t ids[] = { 5, 17, 250, 9, 1000, 4, 77 };
    aegis_generation g = { .max_tokens = 16, .ignore_eos = true };
    aegis_generated out;
    aegis_sampling_greedy(&g.sampling);
    g.sampling.temperature = 0.8;
    T_OK(aegis_session_sync(e, ids, 3, NULL, NULL, &err), &err);
    const long before = n_allocations;
    T_OK(aegis_generate(e, ids, 7, &g, &out, &err), &err);
    aegis_session_checkpoint(e);
    T_CHECK(out.n_generated == 16);
    T_CHECK(n_allocations == before);
    aegis_engine_close(e);
}

static long allocations_of_open(uint32_t n_threads, uint32_t *n_planned)
{
    aegis_options o = small_options();
    o.n_threads = n_threads;
    const long before = n_allocations;
    aegis_engine *e = t_engine_open(&o);
    const long n = n_allocations - before;
    aegis_info info;
    aegis_engine_info(e, &info);
    *n_planned = info.plan.n_threads;
    aegis_engine_close(e);
    return n;
}

static void measuring_threads_allocates_nothing(void **state)
{
    (void)state;
    uint32_t n_auto, n_named;
    allocations_of_open(0, &n_auto); /* the first one also fills what libraries keep */
    const long with = allocations_of_open(0, &n_auto), without = allocations_of_open(n_auto, &n_named);
    assert_int_equal(n_named, n_auto);
    assert_int_equal(with, without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_in_turn), cmocka_unit_test(every_read_fails_in_turn),
        cmocka_unit_test(every_read_ends_early_in_turn),  cmocka_unit_test(the_next_request_works),
        cmocka_unit_test(every_allocation_of_another_family_fails_in_turn),
        cmocka_unit_test(every_read_of_another_family_fails_in_turn),
        cmocka_unit_test(preload_reads_everything_once),
        cmocka_unit_test(damaged_weights_are_refused),
        cmocka_unit_test(an_outline_plans_and_does_not_open),
        cmocka_unit_test(nothing_on_the_token_path_allocates),
        cmocka_unit_test(measuring_threads_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
