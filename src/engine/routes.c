/* SPDX-License-Identifier: Apache-2.0 */
/* Recording routes: the session's watch of routers, written to a file; and their replay. */
#include "aegis/routes.h"

#include <string.h>

#include "base/checked.h"
#include "engine/engine_parts.h"
#include "expert/replay.h"

static aeg_memory recorders = { .name = "routes" };

struct aegis_recorder {
    aegis_engine *engine;
    aeg_trace_writer *writer;
};

static void on_router(void *ctx, uint32_t layer, uint32_t pos, const uint16_t *ids)
{
    const aegis_recorder *r = ctx;
    (void)pos;
    aeg_trace_add(r->writer, layer - r->engine->store->hparams.n_dense_layers, ids);
}

aegis_status aegis_recorder_open(aegis_recorder **out, aegis_engine *engine, const char *path, aegis_error *err)
{
    if (engine->text_only)
        return aeg_fail(err, AEGIS_E_USAGE, "the engine was opened for text only");
    if (engine->session.routes.router != NULL)
        return aeg_fail(err, AEGIS_E_USAGE, "routes file %s: this engine's routes are being recorded already", path);
    const aeg_hparams *h = &engine->store->hparams;
    const aeg_trace_shape shape = { .n_layers = aeg_moe_layers(h), .n_experts = h->n_experts, .top_k = h->top_k,
                                    .model_key = engine->store->model_key };
    aegis_recorder *r = aeg_calloc(&recorders, 1, sizeof *r);
    if (r == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "routes file %s: no memory", path);
    const aegis_status status = aeg_trace_create(&r->writer, path, &shape, engine->settings.chunk, &recorders, err);
    if (status != AEGIS_OK) {
        aeg_free(&recorders, r);
        return status;
    }
    r->engine = engine;
    engine->session.routes = (aeg_watch){ .ctx = r, .router = on_router };
    *out = r;
    return AEGIS_OK;
}

void aegis_recorder_prefill(aegis_recorder *r, bool prefill) { aeg_trace_set_prefill(r->writer, prefill); }
void aegis_recorder_text(aegis_recorder *r) { aeg_trace_start_text(r->writer); }

aegis_status aegis_recorder_close(aegis_recorder *r, uint64_t *n_tokens, aegis_error *err)
{
    if (r == NULL)
        return AEGIS_OK;
    r->engine->session.routes = (aeg_watch){ 0 };
    const aegis_status status = aeg_trace_finish(r->writer, n_tokens, err);
    aeg_free(&recorders, r);
    return status;
}

/* ---- replay ---- */

static aegis_status check_shape(const aeg_trace *t, const aeg_store *store, const char *path, aegis_error *err)
{
    const aeg_hparams *h = &store->hparams;
    const aeg_trace_shape *s = &t->shape;
    if (s->n_layers != aeg_moe_layers(h) || s->n_experts != h->n_experts || s->top_k != h->top_k)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: routes of %u layers, %u experts, top %u; the store has %u, %u, %u", path,
                        s->n_layers, s->n_experts, s->top_k, aeg_moe_layers(h), h->n_experts, h->top_k);
    return AEGIS_OK;
}

/* From a quarter of what one token needs to all: dense where the curve bends. */
static uint32_t default_sizes(uint32_t *sizes, const aeg_trace_shape *s)
{
    static const double of_token[] = { 0.25, 0.5, 0.75 }, of_all[] = { 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.375,
                                                                      0.45, 0.6, 0.8, 1.0 };
    const double token = (double)s->n_layers * s->top_k, all = (double)s->n_layers * s->n_experts;
    uint32_t n = 0;
    for (size_t i = 0; i < AEG_ARRAY_LEN(of_token) + AEG_ARRAY_LEN(of_all); i++) {
        const double size = i < AEG_ARRAY_LEN(of_token) ? of_token[i] * token : of_all[i - AEG_ARRAY_LEN(of_token)] * all;
        const uint32_t slots = AEG_MAX((uint32_t)(size + 0.5), s->top_k);
        uint32_t at = n;
        while (at > 0 && sizes[at - 1] > slots)
            at--;
        if (at > 0 && sizes[at - 1] == slots)
            continue;
        for (uint32_t j = n++; j > at; j--)
            sizes[j] = sizes[j - 1];
        sizes[at] = slots;
    }
    return n;
}

static aegis_status replay_size(const aegis_replay_options *o, const aeg_replay_stream *stream, uint32_t slots,
                                aeg_hit_curve *curve, aegis_error *err)
{
    for (uint32_t p = 0; p < (o->only_slots ? 1 : aeg_n_replay_policies); p++) {
        aeg_replay_result r;
        AEG_TRY(aeg_replay_run(stream, &aeg_replay_policies[p], slots, &recorders, &r, err));
        if (p == 0)
            curve->points[curve->n++] = (aeg_hit_point){ slots, r.uses > 0 ? (double)r.hits / (double)r.uses : 0.0 };
        const aegis_replay_row row = {
            .policy = aeg_replay_policies[p].name, .slots = slots, .uses = r.uses, .hits = r.hits,
            .prefill_uses = r.prefill_uses, .prefill_hits = r.prefill_hits,
            .misses_per_token = stream->n_decode_tokens > 0 ? (double)(r.uses - r.hits) / (double)stream->n_decode_tokens : 0,
        };
        if (o->row != NULL)
            o->row(o->ctx, &row);
    }
    return AEGIS_OK;
}

static aegis_status replay(const aegis_replay_options *o, const aeg_store *store, aeg_trace *t, aeg_replay_stream *stream,
                           aegis_replay_info *info, aegis_error *err)
{
    aeg_hit_curve curve = { 0 };
    uint32_t sizes[AEGIS_REPLAY_MAX_SIZES], n = o->n_sizes;
    AEG_TRY(aeg_trace_read(t, o->trace, &recorders, err));
    AEG_TRY(check_shape(t, store, o->trace, err));
    AEG_TRY(aeg_replay_stream_make(stream, t, &recorders, err));
    if (info != NULL)
        *info = (aegis_replay_info){ .n_layers = t->shape.n_layers, .n_experts = t->shape.n_experts, .top_k = t->shape.top_k,
                                     .n_tokens = t->n_tokens, .n_decode_tokens = stream->n_decode_tokens,
                                     .n_texts = stream->n_texts, .same_model = t->shape.model_key == store->model_key };
    if (o->save_curve && stream->n_decode_tokens == 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: no decode step was recorded, so there is no hit curve to save", o->trace);
    if (n == 0)
        n = default_sizes(sizes, &t->shape);
    else
        memcpy(sizes, o->sizes, AEG_MIN(n, (uint32_t)AEGIS_REPLAY_MAX_SIZES) * sizeof sizes[0]);
    if (n > AEGIS_REPLAY_MAX_SIZES)
        return aeg_fail(err, AEGIS_E_USAGE, "replay at %u pool sizes, expected at most %d", n, AEGIS_REPLAY_MAX_SIZES);
    for (uint32_t i = 0; i < n; i++)
        AEG_TRY(replay_size(o, stream, sizes[i], &curve, err));
    return o->save_curve ? aeg_hit_curve_save(&curve, o->store, &recorders, err) : AEGIS_OK;
}

aegis_status aegis_replay(const aegis_replay_options *options, aegis_replay_info *info, aegis_error *err)
{
    aeg_store *store;
    aeg_trace trace = { 0 };
    aeg_replay_stream stream = { 0 };
    AEG_TRY(aeg_store_open(&store, options->store, &recorders, err));
    const aegis_status status = replay(options, store, &trace, &stream, info, err);
    aeg_replay_stream_free(&stream);
    aeg_trace_free(&trace);
    aeg_store_close(store);
    return status;
}
