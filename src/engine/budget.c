/* SPDX-License-Identifier: Apache-2.0 */
/* From a budget to a plan: how many prompt tokens at once, how many expert slots. */
#include <stdio.h>

#include "base/checked.h"
#include "base/size.h"
#include "engine/engine_parts.h"

/* Prompt tokens per step, best first. A larger chunk reads each expert for more tokens, but its scratch takes
 * slots away: it may have a sixteenth of the budget. */
static const uint32_t CHUNKS[] = { 512, 256, 128, 64, 32, 16, 8, 4, 2, 1 };
enum { CHUNK_SHARE = 16 };

/* Total bytes with these settings; fills e->accounts with measuring arenas. */
static aegis_status measure(aegis_engine *e, uint32_t chunk, uint32_t n_slots, uint64_t *total, aegis_error *err)
{
    e->settings.chunk = chunk;
    e->settings.n_slots = n_slots;
    aeg_accounts_measure(&e->accounts);
    AEG_TRY(aeg_engine_build(e, err));
    e->accounts.extra[AEG_ACCT_TEXT] = aeg_text_heap_bytes(e->settings.n_ctx);
    e->accounts.extra[AEG_ACCT_RUNTIME] = aeg_runtime_bytes(e->settings.n_threads, aeg_accounts_total(&e->accounts));
    *total = aeg_accounts_total(&e->accounts);
    return AEGIS_OK;
}

static uint32_t all_slots(const aegis_engine *e)
{
    return aeg_moe_layers(&e->store->hparams) * e->store->hparams.n_experts;
}

/* The smallest total that runs at this context: fewest slots, and the asked-for or the smallest chunk. */
static aegis_status measure_minimum(aegis_engine *e, uint32_t asked_chunk, uint64_t *total, aegis_error *err)
{
    return measure(e, asked_chunk != 0 ? asked_chunk : 1, aeg_streamer_min_slots(e->store), total, err);
}

static aegis_status choose_chunk(aegis_engine *e, uint32_t *chunk, aegis_error *err)
{
    const uint32_t min_slots = aeg_streamer_min_slots(e->store);
    for (size_t i = 0; i < AEG_ARRAY_LEN(CHUNKS); i++) {
        const uint32_t candidate = AEG_MIN(CHUNKS[i], e->settings.n_ctx);
        uint64_t total = 0;
        AEG_TRY(measure(e, candidate, min_slots, &total, err));
        *chunk = candidate;
        if (total <= e->settings.budget &&
            aeg_account_bytes(&e->accounts, AEG_ACCT_ACTIVATIONS) <= e->settings.budget / CHUNK_SHARE)
            break;
    }
    return AEGIS_OK;
}

/* Most slots that fit: totals grow with the slots, so bisection finds them. */
static aegis_status choose_slots(aegis_engine *e, uint32_t chunk, uint32_t *n_slots, aegis_error *err)
{
    uint32_t low = aeg_streamer_min_slots(e->store), high = AEG_MAX(all_slots(e), low);
    while (low < high) {
        const uint32_t middle = high - (high - low) / 2;
        uint64_t total = 0;
        AEG_TRY(measure(e, chunk, middle, &total, err));
        if (total <= e->settings.budget)
            low = middle;
        else
            high = middle - 1;
    }
    *n_slots = low;
    return AEGIS_OK;
}

static aegis_status largest_context(aegis_engine *e, uint32_t asked_chunk, uint32_t *out, aegis_error *err)
{
    const uint32_t n_ctx = e->settings.n_ctx, most = e->store->hparams.max_n_ctx;
    uint32_t low = 0, high = most;
    while (low < high) {
        e->settings.n_ctx = high - (high - low) / 2;
        uint64_t total = 0;
        AEG_TRY(measure_minimum(e, AEG_MIN(asked_chunk, e->settings.n_ctx), &total, err));
        if (total <= e->settings.budget)
            low = e->settings.n_ctx;
        else
            high = e->settings.n_ctx - 1;
    }
    e->settings.n_ctx = n_ctx;
    *out = low;
    return AEGIS_OK;
}

static void describe(aegis_engine *e)
{
    aegis_plan *p = &e->plan;
    p->n_accounts = 0;
    for (uint32_t i = 0; i < AEG_N_ACCOUNTS; i++) {
        p->accounts[p->n_accounts].name = aeg_account_name((aeg_account)i);
        p->accounts[p->n_accounts++].bytes = aeg_account_bytes(&e->accounts, (aeg_account)i);
    }
    p->total_bytes = aeg_accounts_total(&e->accounts);
    p->n_ctx = e->settings.n_ctx;
    p->chunk = e->settings.chunk;
    p->n_threads = e->settings.n_threads;
    p->expert_slots = e->settings.n_slots;
    p->n_experts_total = all_slots(e);
    p->slot_bytes = e->store->experts.record_bytes;
    p->budget_bytes = e->settings.budget;
}

aegis_status aeg_engine_plan(aegis_engine *e, aegis_error *err)
{
    const uint32_t asked_chunk = e->settings.chunk;
    uint32_t chunk = asked_chunk, n_slots = aeg_streamer_min_slots(e->store);
    uint64_t total = 0;
    e->plan = (aegis_plan){ 0 };

    AEG_TRY(measure_minimum(e, asked_chunk, &e->plan.minimum_bytes, err));
    AEG_TRY(largest_context(e, asked_chunk, &e->plan.max_n_ctx, err));
    e->plan.fits = e->plan.minimum_bytes <= e->settings.budget;
    if (chunk == 0 && e->plan.fits)
        AEG_TRY(choose_chunk(e, &chunk, err));
    if (chunk == 0)
        chunk = 1;
    AEG_TRY(measure(e, chunk, AEG_MAX(all_slots(e), n_slots), &e->plan.all_resident_bytes, err));
    if (e->plan.fits)
        AEG_TRY(choose_slots(e, chunk, &n_slots, err));
    AEG_TRY(measure(e, chunk, n_slots, &total, err));
    describe(e);
    if (e->plan.fits) /* what cannot be opened has no speed */
        aeg_engine_predict(e);
    return AEGIS_OK;
}

aegis_status aegis_plan_refuse(const aegis_plan *plan, aegis_error *err)
{
    char context[64] = "";
    char budget[AEG_SIZE_TEXT], minimum[AEG_SIZE_TEXT], missing[AEG_SIZE_TEXT], bytes[AEG_SIZE_TEXT];
    char list[512];
    size_t at = 0;
    for (uint32_t i = 0; i < plan->n_accounts; i++) {
        if (plan->accounts[i].bytes == 0)
            continue;
        const int n = snprintf(list + at, sizeof list - at, "%s%s %s", at > 0 ? ", " : "", plan->accounts[i].name,
                               aeg_size_format(bytes, plan->accounts[i].bytes));
        if (n < 0 || (size_t)n >= sizeof list - at)
            break;
        at += (size_t)n;
    }
    if (plan->max_n_ctx > 0)
        snprintf(context, sizeof context, "; a context of %u tokens (-c %u) fits", plan->max_n_ctx, plan->max_n_ctx);
    return aeg_fail(err, AEGIS_E_BUDGET,
                    "the plan does not fit the budget of %s: %s more is needed (%s); the smallest budget that works "
                    "with a context of %u tokens is %s (--memory %llu)%s",
                    aeg_size_format(budget, plan->budget_bytes),
                    aeg_size_format(missing, plan->minimum_bytes - plan->budget_bytes), list, plan->n_ctx,
                    aeg_size_format(minimum, plan->minimum_bytes), (unsigned long long)plan->minimum_bytes,
                    context);
}
