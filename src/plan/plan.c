/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <stdbool.h>

#include "base/checked.h"

/* Arenas of at least this size may use 2 MiB pages: fewer TLB misses on sequential weights. */
static const uint64_t HUGE_FROM = 64ull << 20;

const char *aeg_account_name(aeg_account account)
{
    static const char *const names[AEG_N_ACCOUNTS] = {
        [AEG_ACCT_RUNTIME] = "runtime",         [AEG_ACCT_TEXT] = "text",
        [AEG_ACCT_DENSE] = "dense",             [AEG_ACCT_KV] = "kv",
        [AEG_ACCT_STATE] = "recurrent state",   [AEG_ACCT_CHECKPOINTS] = "checkpoints",
        [AEG_ACCT_ACTIVATIONS] = "activations", [AEG_ACCT_IO] = "io",
        [AEG_ACCT_SLOTS] = "expert slots",
    };
    return names[account];
}

void aeg_accounts_measure(aeg_accounts *a)
{
    for (uint32_t i = 0; i < AEG_N_ACCOUNTS; i++) {
        a->arena[i] = aeg_arena_measure(aeg_account_name((aeg_account)i));
        a->extra[i] = 0;
    }
}

uint64_t aeg_account_bytes(const aeg_accounts *a, aeg_account account)
{
    return aeg_align_up(a->arena[account].used, AEG_PAGE) + a->extra[account];
}

uint64_t aeg_accounts_total(const aeg_accounts *a)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < AEG_N_ACCOUNTS; i++)
        sum += aeg_account_bytes(a, (aeg_account)i);
    return sum;
}

aegis_status aeg_accounts_map(aeg_accounts *real, const aeg_accounts *measured, aegis_error *err)
{
    *real = (aeg_accounts){ 0 };
    for (uint32_t i = 0; i < AEG_N_ACCOUNTS; i++) {
        const uint64_t bytes = measured->arena[i].used;
        real->extra[i] = measured->extra[i];
        const aegis_status status = aeg_arena_map(&real->arena[i], aeg_account_name((aeg_account)i), bytes,
                                                  bytes >= HUGE_FROM, err);
        if (status != AEGIS_OK) {
            aeg_accounts_unmap(real);
            return status;
        }
    }
    return AEGIS_OK;
}

void aeg_accounts_unmap(aeg_accounts *a)
{
    for (uint32_t i = 0; i < AEG_N_ACCOUNTS; i++)
        aeg_arena_unmap(&a->arena[i]);
}
