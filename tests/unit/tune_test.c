/* SPDX-License-Identifier: Apache-2.0 */
/* model/tune: which counts are tried, and which one given times choose. */
#include <string.h>

#include "base/threads.h"
#include "model/tune.h"
#include "support/t.h"

static void counts_double_up_to_all(void **state)
{
    (void)state;
    static const struct { uint32_t n, n_counts, counts[AEG_TUNE_COUNTS]; } rows[] = {
        { 1, 1, { 1 } }, { 2, 2, { 1, 2 } }, { 3, 3, { 1, 2, 3 } }, { 4, 3, { 1, 2, 4 } }, { 6, 4, { 1, 2, 4, 6 } },
        { 96, 8, { 1, 2, 4, 8, 16, 32, 64, 96 } }, { 255, 9, { 1, 2, 4, 8, 16, 32, 64, 128, 255 } },
        { AEG_MAX_THREADS, 9, { 1, 2, 4, 8, 16, 32, 64, 128, 256 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t counts[AEG_TUNE_COUNTS];
        assert_int_equal(aeg_tune_counts(counts, rows[i].n), rows[i].n_counts);
        assert_memory_equal(counts, rows[i].counts, rows[i].n_counts * sizeof counts[0]);
    }
}

static void the_smallest_count_near_the_best_is_chosen(void **state)
{
    (void)state;
    static const uint32_t counts[] = { 1, 2, 4, 6 };
    static const struct { double cost[4]; uint32_t want; } rows[] = {
        { { 10, 5, 2.5, 1.7 }, 6 },     /* scales                                            */
        { { 10, 11, 14, 30 }, 1 },      /* barriers cost more than threads bring             */
        { { 10, 5.1, 5.0, 4.99 }, 2 },  /* memory is busy with two: 2.2 % behind the best    */
        { { 10, 5.2, 5.0, 4.99 }, 4 },  /* 4.2 % behind                                      */
        { { 10, 5, 4, 6 }, 4 },         /* the best is in the middle                         */
        { { 103, 100, 100, 100 }, 1 },  /* 3 % is still near                                 */
        { { 103.1, 100, 100, 100 }, 2 },
        { { 7, 7, 7, 7 }, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(aeg_tune_choose(counts, rows[i].cost, 4), rows[i].want);
    assert_int_equal(aeg_tune_choose(counts, rows[0].cost, 1), 1);
}

static void one_disturbed_pass_does_not_show(void **state)
{
    (void)state;
    double three[] = { 3, 900, 2 }, even[] = { 4, 1, 3, 2 }, one[] = { 5 };
    assert_true(aeg_tune_median(three, 3) == 3);
    assert_true(aeg_tune_median(even, 4) == 3);
    assert_true(aeg_tune_median(one, 1) == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_double_up_to_all),
        cmocka_unit_test(the_smallest_count_near_the_best_is_chosen),
        cmocka_unit_test(one_disturbed_pass_does_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
