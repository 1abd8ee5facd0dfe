/* SPDX-License-Identifier: Apache-2.0 */
/* plan/plan.h: accounts add up, real ones are as large as measured, the runtime is not underestimated. */
#include <string.h>

#include "base/process.h"
#include "plan/plan.h"
#include "support/t.h"

static void accounts_add_up(void **state)
{
    (void)state;
    aeg_accounts a;
    aeg_accounts_measure(&a);
    T_CHECK(aeg_accounts_total(&a) == 0);
    aeg_arena_alloc(&a.arena[AEG_ACCT_KV], 5000, 64);
    a.extra[AEG_ACCT_TEXT] = 123;
    T_CHECK(aeg_account_bytes(&a, AEG_ACCT_KV) == 8192 && aeg_account_bytes(&a, AEG_ACCT_TEXT) == 123);
    T_CHECK(aeg_accounts_total(&a) == 8192 + 123);

    aeg_accounts real;
    T_OK(aeg_accounts_map(&real, &a, NULL), NULL);
    T_CHECK(real.arena[AEG_ACCT_KV].size == 8192 && aeg_arena_alloc(&real.arena[AEG_ACCT_KV], 5000, 64) != NULL);
    T_CHECK(aeg_arena_alloc(&real.arena[AEG_ACCT_KV], 8192, 64) == NULL);
    aegis_error err;
    T_FAILS(aeg_arena_check(&real.arena[AEG_ACCT_KV], &err), &err, AEGIS_E_BUDGET, "kv");
    aeg_accounts_unmap(&real);
}

static void every_account_has_a_name(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < AEG_N_ACCOUNTS; i++)
        T_CHECK(aeg_account_name((aeg_account)i) != NULL && strlen(aeg_account_name((aeg_account)i)) > 0);
}

static void the_runtime_covers_this_process(void **state)
{
    (void)state;
    aeg_process_memory now;
    T_CHECK(aeg_process_memory_now(&now));
    T_CHECK(aeg_runtime_bytes(1, 0) >= now.rss_bytes);
    /* An emulator holds more than any estimate, so what it holds at each moment is what counts there. */
    if (!T_SLOW)
        T_CHECK(aeg_runtime_bytes(1, 1u << 30) >= aeg_runtime_bytes(1, 0) + (1u << 30) / 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(accounts_add_up), cmocka_unit_test(every_account_has_a_name),
                                        cmocka_unit_test(the_runtime_covers_this_process) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
