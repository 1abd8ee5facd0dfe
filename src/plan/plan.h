/* SPDX-License-Identifier: Apache-2.0 */
/* plan/plan.h - every byte has an account, and the accounts fit the budget or nothing is opened.
 *
 * Accounts are arenas. A builder runs first on measuring arenas, then on real ones of exactly those sizes
 * (base/arena.h). `extra` counts what lives outside arenas: the runtime, library heaps with a ceiling.
 * Thread: owner only.
 */
#ifndef AEG_PLAN_PLAN_H
#define AEG_PLAN_PLAN_H

#include <stdint.h>

#include "base/arena.h"

typedef enum {
    AEG_ACCT_RUNTIME,     /* binary, libraries, stacks, page tables, kernel memory charged to us */
    AEG_ACCT_TEXT,        /* tokenizer tables, template, their scratch                            */
    AEG_ACCT_DENSE,       /* weights used by every token                                          */
    AEG_ACCT_KV,
    AEG_ACCT_STATE,       /* recurrent state                                                      */
    AEG_ACCT_CHECKPOINTS,
    AEG_ACCT_ACTIVATIONS, /* scratch of one chunk, logits, sampler                                */
    AEG_ACCT_IO,          /* rings, bounce buffers, thread stacks, streamer tables                */
    AEG_ACCT_SLOTS,       /* expert slots: what is left                                           */
    AEG_N_ACCOUNTS,
} aeg_account;

typedef struct {
    aeg_arena arena[AEG_N_ACCOUNTS];
    uint64_t extra[AEG_N_ACCOUNTS];
} aeg_accounts;

const char *aeg_account_name(aeg_account account); /* "expert slots" */

void aeg_accounts_measure(aeg_accounts *a);
/* Bytes of one account (arena rounded up to pages, plus extra), and of all. */
uint64_t aeg_account_bytes(const aeg_accounts *a, aeg_account account);
uint64_t aeg_accounts_total(const aeg_accounts *a);

/* Map real arenas of the measured sizes; on failure nothing stays mapped. */
aegis_status aeg_accounts_map(aeg_accounts *real, const aeg_accounts *measured, aegis_error *err);
void aeg_accounts_unmap(aeg_accounts *a);

/* What the process costs besides its arenas: each mapped file counted whole (its pages may all be touched or
 * be charged to us as page cache), anonymous memory of libc and libraries, kernel memory of the process and
 * of `n_threads` threads, and page tables for `mapped_bytes` of arenas. */
uint64_t aeg_runtime_bytes(uint32_t n_threads, uint64_t mapped_bytes);

#endif
