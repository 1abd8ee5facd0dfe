/* SPDX-License-Identifier: Apache-2.0 */
/* All experts into memory before the first token, for budgets that hold them all. */
#include "engine_parts.h"

#include "base/checked.h"

enum { BATCH = 64, VIEWS = 16 }; /* experts in one demand: several times what the queue holds */

/* As if a step asked for these experts of a layer and no token used them: the cache's counts stay as they are. */
static aegis_status read_batch(aegis_engine *e, uint32_t layer, uint32_t first, uint32_t n, aegis_error *err)
{
    static const uint32_t uses[BATCH]; /* none */
    uint16_t ids[BATCH];
    aeg_expert_view views[VIEWS];
    uint32_t got;
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (uint16_t)(first + i);
    AEG_TRY(aeg_streamer_demand(e->streamer, layer, ids, uses, n, false, err));
    do {
        AEG_TRY(aeg_streamer_take(e->streamer, views, VIEWS, &got, err));
        for (uint32_t i = 0; i < got; i++)
            aeg_streamer_done(e->streamer, &views[i]);
    } while (got > 0);
    return AEGIS_OK;
}

static aegis_status read_all(aegis_engine *e, aegis_progress progress, void *ctx, aegis_error *err)
{
    const aeg_hparams *hp = &e->store->hparams;
    const uint64_t record = e->store->experts.record_bytes, total = e->plan.n_experts_total * record;
    uint64_t done = 0;
    for (uint32_t layer = hp->n_dense_layers; layer < hp->n_layers; layer++)
        for (uint32_t first = 0; first < hp->n_experts; first += BATCH) {
            const uint32_t n = AEG_MIN(hp->n_experts - first, (uint32_t)BATCH);
            if (aeg_session_take_cancel(&e->session))
                return aeg_fail(err, AEGIS_E_CANCELLED, "cancelled while the experts were read");
            AEG_TRY(read_batch(e, layer, first, n, err));
            done += n * record;
            if (progress != NULL)
                progress(ctx, done, total);
        }
    return AEGIS_OK;
}

aegis_status aegis_engine_preload(aegis_engine *e, aegis_progress progress, void *ctx, aegis_error *err)
{
    if (e->text_only)
        return aeg_fail(err, AEGIS_E_USAGE, "the engine was opened for text only");
    if (e->plan.expert_slots < e->plan.n_experts_total)
        return aeg_fail(err, AEGIS_E_BUDGET, "reading all %u experts ahead needs a budget of %llu bytes; that of %llu has slots for %u: "
                        "without it, experts are read when they are needed", e->plan.n_experts_total,
                        (unsigned long long)e->plan.all_resident_bytes, (unsigned long long)e->plan.budget_bytes,
                        e->plan.expert_slots);
    const aegis_status status = read_all(e, progress, ctx, err);
    if (status != AEGIS_OK)
        aeg_streamer_abort(e->streamer);
    aegis_engine_stats_reset(e);
    return status;
}
