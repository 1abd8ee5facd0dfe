/* SPDX-License-Identifier: Apache-2.0 */
#include "support/t.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"

static void every_byte_is_counted_and_given_back(void **state)
{
    (void)state;
    T_MEMORY(m);
    char *a = aeg_malloc(&m, 1000);
    assert_in_range(m.in_use, 1000, 1100);
    char *b = aeg_calloc(&m, 10, 50);
    for (int i = 0; i < 500; i++)
        assert_int_equal(b[i], 0);
    char *c = aeg_strdup(&m, "expert");
    assert_string_equal(c, "expert");
    assert_in_range(m.in_use, 1507, 1700);
    const uint64_t peak = m.in_use;
    aeg_free(&m, b);
    memset(a, 'x', 1000);
    a = aeg_realloc(&m, a, 5000);
    assert_int_equal(a[999], 'x');
    a = aeg_realloc(&m, a, 10);
    assert_int_equal(a[9], 'x');
    aeg_free(&m, a);
    aeg_free(&m, c);
    aeg_free(&m, NULL);
    t_no_leak(&m);
    assert_true(m.peak >= peak);
    assert_in_range(m.peak, 5000, 7000);
}

static void the_ceiling_holds(void **state)
{
    (void)state;
    aeg_memory m = { .name = "small", .ceiling = 4096 };
    char *a = aeg_malloc(&m, 3000);
    assert_non_null(a);
    assert_null(aeg_malloc(&m, 2000));
    a[0] = 'k';
    assert_null(aeg_realloc(&m, a, 100000)); /* refused: the old block stays */
    assert_int_equal(a[0], 'k');
    assert_null(aeg_malloc(&m, SIZE_MAX));
    assert_null(aeg_malloc(&m, SIZE_MAX - 8)); /* with its header it would wrap */
    assert_null(aeg_calloc(&m, SIZE_MAX / 2, 3));
    assert_null(aeg_calloc(&m, SIZE_MAX / 16 + 2, 16)); /* wraps to 16 bytes */
    assert_null(aeg_realloc(&m, a, SIZE_MAX - 8));
    assert_true(m.peak <= m.ceiling);
    aeg_free(&m, a);

    /* The largest block that fits leaves less than one header of room. */
    size_t n = 5000;
    char *b = NULL;
    while (b == NULL && n > 0)
        b = aeg_malloc(&m, --n);
    assert_in_range(m.in_use, 4096 - 1, 4096);
    aeg_free(&m, b);
    t_no_leak(&m);
}

static void the_fault_hook_fails_exactly_the_nth_call(void **state)
{
    (void)state;
    T_MEMORY(m);
    for (uint64_t n = 1; n <= 4; n++) {
        t_fault_at(n);
        void *a = aeg_malloc(&m, 8);
        void *b = aeg_calloc(&m, 1, 8);
        void *c = aeg_realloc(&m, NULL, 8);
        void *d = aeg_strdup(&m, "d");
        assert_true((a == NULL) == (n == 1));
        assert_true((b == NULL) == (n == 2));
        assert_true((c == NULL) == (n == 3));
        assert_true((d == NULL) == (n == 4));
        assert_true(t_fault_hit());
        aeg_free(&m, a);
        aeg_free(&m, b);
        aeg_free(&m, c);
        aeg_free(&m, d);
    }
    t_fault_at(0);
    t_no_leak(&m);
}

static void calls_are_counted(void **state)
{
    (void)state;
    T_MEMORY(m);
    const uint64_t before = aeg_memory_calls();
    void *p = aeg_malloc(&m, 1);
    p = aeg_realloc(&m, p, 2);
    aeg_free(&m, p);
    assert_int_equal(aeg_memory_calls() - before, 2);
}

static aeg_memory shared = { .name = "shared", .ceiling = 64 << 10 };

static void *allocate_a_lot(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1664525u + 1013904223u;
        const size_t n = seed >> 18;
        char *p = aeg_malloc(&shared, n);
        if (p != NULL && n > 0)
            p[n - 1] = 1;
        aeg_free(&shared, p);
    }
    return NULL;
}

static void threads_never_pass_the_ceiling_together(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_a_lot, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    t_no_leak(&shared);
    assert_true(shared.peak <= shared.ceiling);
    assert_true(shared.peak > 16 << 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_counted_and_given_back),
        cmocka_unit_test(the_ceiling_holds),
        cmocka_unit_test(the_fault_hook_fails_exactly_the_nth_call),
        cmocka_unit_test(calls_are_counted),
        cmocka_unit_test(threads_never_pass_the_ceiling_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
