/* SPDX-License-Identifier: Apache-2.0 */
/* What a token touches, and from it the predicted decode speed of a plan. */
#include <string.h>

#include "base/checked.h"
#include "engine/engine_parts.h"
#include "plan/predict.h"

enum { TYPICAL_POSITION = 512 }; /* KV rows of a token in the middle of a usual answer */

static bool is_shared(const char *name) { return strstr(name, ".shared.") != NULL; }

void aeg_engine_touched(const aegis_engine *e, aegis_touched *out)
{
    const aeg_store *store = e->store;
    const aeg_hparams *hp = &store->hparams;
    *out = (aegis_touched){ .record_bytes = store->experts.record_bytes,
                            .state_bytes = 2 * aeg_account_bytes(&e->accounts, AEG_ACCT_STATE) };
    for (uint32_t i = 0; i < store->n_tensors; i++) {
        out->dense_bytes += store->tensors[i].bytes;
        if (is_shared(store->tensors[i].name))
            out->shared_bytes += store->tensors[i].bytes;
    }
    for (uint32_t layer = 0; layer < hp->n_layers; layer++) {
        if (aeg_has_experts(hp, layer))
            out->expert_bytes += hp->top_k * (store->experts.gate_up_bytes[layer] + store->experts.down_bytes[layer]);
    }
    /* Keys and values; latent rows are both. */
    out->kv_position_bytes = (e->kv.cfg.latent != 0 ? 1ull : 2ull) * e->kv.cfg.n_layers * e->kv.cfg.n_kv_heads *
                             aeg_kv_read_bytes(&e->kv);
}

void aeg_engine_predict(aegis_engine *e)
{
    const aeg_hparams *hp = &e->store->hparams;
    const aegis_measured *m = &e->settings.measured;
    aegis_plan *p = &e->plan;
    aegis_touched t;
    aeg_engine_touched(e, &t);
    const bool sim = e->settings.io == AEG_IO_SIM, all = p->expert_slots >= p->n_experts_total;
    const aeg_hit_curve *curve = &e->store->hit_curve;
    p->typical_hit_curve = m->hit_rate <= 0 && !all && curve->n == 0;
    if (m->hit_rate > 0)
        p->predicted_hit_rate = m->hit_rate;
    else if (all)
        p->predicted_hit_rate = 1;
    else if (curve->n > 0)
        p->predicted_hit_rate = aeg_hit_curve_at(curve, p->expert_slots);
    else
        p->predicted_hit_rate = aeg_predict_typical_hit_rate(p->expert_slots, p->n_experts_total);
    const uint32_t position = m->position != 0 ? m->position : AEG_MIN((uint32_t)TYPICAL_POSITION, p->n_ctx);
    const uint64_t uses = (uint64_t)aeg_moe_layers(hp) * hp->top_k;
    aeg_predict_inputs in = {
        .n_layers = aeg_moe_layers(hp), .top_k = hp->top_k, .dense_bytes = t.dense_bytes, .shared_bytes = t.shared_bytes,
        .state_bytes = t.state_bytes + position * t.kv_position_bytes,
        .expert_bytes = uses > 0 ? t.expert_bytes / uses : 0, .record_bytes = t.record_bytes,
        .hit_rate = p->predicted_hit_rate, .read_bandwidth = m->read_bytes_per_s,
        .disk_bytes_per_s = sim ? e->settings.sim_bytes_per_s : m->disk_bytes_per_s,
        .disk_latency_s = sim ? e->settings.sim_latency_s : m->disk_latency_s,
    };
    const aeg_prediction out = aeg_predict(&in);
    in.state_bytes = t.state_bytes + p->n_ctx * t.kv_position_bytes;
    p->predicted_position = position;
    p->predicted_full_tok_s = aeg_predict(&in).tok_s;
    p->predicted_decode_tok_s = out.tok_s;
    p->predicted_hidden = out.hidden;
}
