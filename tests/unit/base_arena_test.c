/* SPDX-License-Identifier: Apache-2.0 */
#include "support/t.h"

#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/process.h"

/* A stand-in for a module's init: random pieces from a fixed seed. Pointers are NULL while measuring. */
static void init_like(aeg_arena *arena, uint64_t seed, uint8_t **pieces, uint64_t *sizes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const uint64_t align = (uint64_t)1 << (seed >> 33) % 13;
        sizes[i] = (seed >> 40) % 3000;
        pieces[i] = aeg_arena_alloc(arena, sizes[i], align);
        if (pieces[i] != NULL)
            assert_int_equal((uintptr_t)pieces[i] % align, 0);
    }
}

T_PROPERTY(measuring_gives_the_size_that_carving_uses, 300)
{
    enum { MAX = 60 };
    const uint64_t seed = t_random();
    const uint32_t n = (uint32_t)t_between(1, MAX);
    uint8_t *pieces[MAX];
    uint64_t sizes[MAX];
    aegis_error err;

    aeg_arena plan = aeg_arena_measure("plan");
    assert_true(aeg_arena_measuring(&plan));
    init_like(&plan, seed, pieces, sizes, n);
    for (uint32_t i = 0; i < n; i++)
        assert_null(pieces[i]);
    T_OK(aeg_arena_check(&plan, &err), &err);

    aeg_arena real = t_arena(plan.used);
    assert_false(aeg_arena_measuring(&real));
    init_like(&real, seed, pieces, sizes, n);
    T_OK(aeg_arena_check(&real, &err), &err);
    assert_int_equal(real.used, plan.used);

    /* Zero filled, inside, and no two pieces share a byte. */
    for (uint32_t i = 0; i < n; i++) {
        T_CHECK(pieces[i] >= real.base && pieces[i] + sizes[i] <= real.base + real.used);
        for (uint64_t k = 0; k < sizes[i]; k++)
            T_CHECK(pieces[i][k] == 0);
        memset(pieces[i], (int)(i + 1), sizes[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < sizes[i]; k++)
            T_CHECK(pieces[i][k] == (uint8_t)(i + 1));
    aeg_arena_unmap(&real);
    assert_null(real.base);
}

static void too_much_is_refused_and_remembered(void **state)
{
    (void)state;
    aegis_error err;
    aeg_arena arena = t_arena(AEG_PAGE);
    assert_non_null(aeg_arena_alloc(&arena, AEG_PAGE - 100, 1));
    assert_null(aeg_arena_alloc(&arena, 200, 1));
    T_FAILS(aeg_arena_check(&arena, &err), &err, AEGIS_E_BUDGET, "'test'");
    assert_non_null(aeg_arena_alloc(&arena, 100, 1)); /* what fits is still given */
    aeg_arena_unmap(&arena);
}

static void sizes_that_wrap_are_refused(void **state)
{
    (void)state;
    aeg_arena arena = t_arena(AEG_PAGE), plan = aeg_arena_measure("plan");
    aeg_arena_alloc(&arena, 64, 1);
    assert_null(aeg_arena_alloc(&arena, UINT64_MAX, 1));
    assert_null(aeg_arena_alloc(&arena, UINT64_MAX - 32, 64));
    assert_true(arena.overflow);
    assert_int_equal(arena.used, 64);
    aeg_arena_alloc(&plan, UINT64_MAX - 8, 1);
    aeg_arena_alloc(&plan, 64, 1);
    assert_true(plan.overflow);
    aeg_arena_unmap(&arena);
    aeg_arena_unmap(&arena); /* twice is allowed: it is zeroed */
    aeg_arena_unmap(&plan);
}

static void an_impossible_mapping_names_the_account(void **state)
{
    (void)state;
    aegis_error err;
    aeg_arena arena;
    T_FAILS(aeg_arena_map(&arena, "expert slots", (uint64_t)1 << 60, false, &err), &err, AEGIS_E_MEMORY,
            "'expert slots'");
}

static uint64_t resident(void)
{
    aeg_process_memory m;
    T_CHECK(aeg_process_memory_now(&m));
    return m.rss_bytes;
}

/* Mapped is not resident; touched is, whatever the system's setting for huge pages. */
static void only_touched_pages_are_resident(void **state)
{
    (void)state;
    if (T_SANITIZED)
        skip();
    enum { MIB = 1 << 20 };
    aeg_arena arena = t_arena(64 * MIB);
    const uint64_t before = resident();
    for (uint64_t at = 0; at < arena.size; at += 2 * MIB)
        arena.base[at] = 1; /* one byte in each 2 MiB */
    assert_true(resident() - before < 4 * MIB);
    memset(arena.base, 1, 32 * MIB);
    const uint64_t grown = resident() - before;
    assert_in_range(grown, 31 * MIB, 36 * MIB);
    aeg_arena_unmap(&arena);
    assert_true(resident() < before + 4 * MIB);
}

static void checked_arithmetic_sees_every_wrap(void **state)
{
    (void)state;
    uint64_t v = 7;
    assert_true(aeg_mul(UINT32_MAX, UINT32_MAX, &v) && v == 0xfffffffe00000001u);
    assert_false(aeg_mul((uint64_t)1 << 32, (uint64_t)1 << 32, &v));
    assert_true(aeg_mul(0, UINT64_MAX, &v) && v == 0);
    assert_true(aeg_add(UINT64_MAX - 1, 1, &v) && v == UINT64_MAX);
    assert_false(aeg_add(UINT64_MAX, 1, &v));
    assert_int_equal(aeg_align_up(0, 64), 0);
    assert_int_equal(aeg_align_up(1, 64), 64);
    assert_int_equal(aeg_align_up(64, 64), 64);
    assert_int_equal(aeg_div_up(0, 16), 0);
    assert_int_equal(aeg_div_up(17, 16), 2);
    assert_true(aeg_div_up(UINT64_MAX, 2) == (uint64_t)1 << 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measuring_gives_the_size_that_carving_uses),
        cmocka_unit_test(too_much_is_refused_and_remembered),
        cmocka_unit_test(sizes_that_wrap_are_refused),
        cmocka_unit_test(an_impossible_mapping_names_the_account),
        cmocka_unit_test(only_touched_pages_are_resident),
        cmocka_unit_test(checked_arithmetic_sees_every_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
