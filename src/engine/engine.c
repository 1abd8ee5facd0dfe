/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "engine/engine_parts.h"
#include "model/tune.h"

/* Engine objects themselves; what an engine holds is on its own counters. */
static aeg_memory engines = { .name = "engines" };

static aegis_engine *new_engine(void)
{
    aegis_engine *e = aeg_calloc(&engines, 1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->heap.name = "engine";
    e->text_memory.name = "text";
    e->telemetry.fd = -1;
    return e;
}

void aegis_engine_close(aegis_engine *e)
{
    if (e == NULL)
        return;
    aeg_text_close(e);
    aeg_engine_unbuild(e);
    aeg_telemetry_close(&e->telemetry);
    aeg_store_close(e->store);
    aeg_free(&engines, e);
}

static aegis_status open_store(aegis_engine *e, const aegis_options *o, aegis_error *err)
{
    if (o->store == NULL)
        return aeg_fail(err, AEGIS_E_USAGE, "no model was named");
    AEG_TRY(aeg_store_open(&e->store, o->store, &e->heap, err));
    return aeg_settings_resolve(&e->settings, o, e->store, err);
}

aegis_status aegis_plan_compute(const aegis_options *options, aegis_plan *plan, aegis_error *err)
{
    aegis_engine *e = new_engine();
    if (e == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for the engine object");
    aegis_status status = open_store(e, options, err);
    if (status == AEGIS_OK)
        status = aeg_text_size(e, err);
    if (status == AEGIS_OK)
        status = aeg_engine_plan(e, err);
    if (status == AEGIS_OK)
        *plan = e->plan;
    aegis_engine_close(e);
    return status;
}

static void choose_kernels(aegis_engine *e)
{
    const char *dropped = NULL;
    aeg_kernels_init(&e->kernels, e->settings.cpu_mask);
    aeg_kernels_self_check(&e->kernels, &dropped);
    if (dropped != NULL)
        aeg_log(AEG_LOG_NOTICE, "the %s kernels gave wrong answers on this processor and are not used", dropped);
    if (e->settings.cpu_mask == AEG_CPU_SCALAR)
        aeg_log(AEG_LOG_NOTICE, "computing with the scalar kernels, which are slow");
}

static aegis_status open_parts(aegis_engine *e, const aegis_options *options, aegis_error *err)
{
    AEG_TRY(open_store(e, options, err));
    if (e->store->outline)
        return aeg_fail(err, AEGIS_E_MODEL, "store %s: an outline to plan with, its weights were never written; pack the model", options->store);
    AEG_TRY(aeg_telemetry_open(&e->telemetry, options->telemetry, err));
    AEG_TRY(aeg_text_size(e, err));
    choose_kernels(e);
    AEG_TRY(aeg_engine_plan(e, err));
    if (!e->plan.fits)
        return aegis_plan_refuse(&e->plan, err);

    const aeg_accounts measured = e->accounts;
    AEG_TRY(aeg_accounts_map(&e->accounts, &measured, err));
    AEG_TRY(aeg_engine_build(e, err));
    e->n_threads_used = e->settings.tune_threads ? aeg_model_tune(e->model) : e->settings.n_threads;
    aeg_text_set_ceilings(e);
    AEG_TRY(aeg_text_open(e, err));
    aeg_session_clear(&e->session);
    return AEGIS_OK;
}

aegis_status aegis_engine_open(aegis_engine **out, const aegis_options *options, aegis_error *err)
{
    const uint64_t start = aeg_now_ns();
    aegis_engine *e = new_engine();
    if (e == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for the engine object");
    const aegis_status status = open_parts(e, options, err);
    if (status != AEGIS_OK) {
        aegis_engine_close(e);
        return status;
    }
    e->open_seconds = (double)(aeg_now_ns() - start) * 1e-9;
    aegis_engine_stats_reset(e);
    *out = e;
    return AEGIS_OK;
}

aegis_status aegis_engine_open_text(aegis_engine **out, const char *store, aegis_error *err)
{
    aegis_engine *e = new_engine();
    if (e == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for the engine object");
    e->text_only = true;
    aegis_status status = aeg_store_open(&e->store, store, &e->heap, err);
    if (status == AEGIS_OK)
        status = aeg_text_size(e, err);
    if (status == AEGIS_OK)
        status = aeg_arena_map(&e->accounts.arena[AEG_ACCT_TEXT], "text", e->tokenizer_bytes, false, err);
    if (status == AEGIS_OK) {
        e->tokenizer_table = aeg_arena_alloc(&e->accounts.arena[AEG_ACCT_TEXT], e->tokenizer_bytes, AEG_PAGE);
        status = aeg_text_open(e, err);
    }
    if (status != AEGIS_OK) {
        aegis_engine_close(e);
        return status;
    }
    *out = e;
    return AEGIS_OK;
}

void aegis_engine_info(const aegis_engine *e, aegis_info *info)
{
    const aeg_hparams *hp = &e->store->hparams;
    *info = (aegis_info){
        .plan = e->plan, .family = hp->family, .cpu = e->text_only ? "" : aeg_cpu_name(e->kernels.cpu),
        .io = e->io == NULL ? "" : aeg_io_describe(e->io), .path = e->store->path,
        .vocab_size = hp->vocab_size, .hidden_size = hp->hidden_size, .n_layers = hp->n_layers, .n_dense_layers = hp->n_dense_layers,
        .n_streams = hp->hc_streams != 0 ? hp->hc_streams : 1,
        .n_experts = hp->n_experts, .top_k = hp->top_k, .n_eos = hp->n_eos,
        .has_tokenizer = e->store->has_tokenizer, .has_template = e->store->has_template,
        .temperature = hp->temperature, .top_p = hp->top_p, .min_p = hp->min_p, .repeat_penalty = hp->repeat_penalty,
        .presence_penalty = hp->presence_penalty, .top_k_sampling = hp->top_k_sampling,
        .open_seconds = e->open_seconds, .n_threads_used = e->n_threads_used,
        .caller_text_bytes = e->text_only ? 0 : aeg_text_caller_bytes(e->settings.n_ctx),
    };
    for (uint32_t i = 0; i < AEG_MIN(hp->n_eos, (uint32_t)AEG_ARRAY_LEN(info->eos)); i++)
        info->eos[i] = hp->eos[i];
    if (!e->text_only)
        aeg_engine_touched(e, &info->touched);
}

void aegis_engine_cancel(aegis_engine *e)
{
    /* relaxed: pairs with the exchange in session.c; nothing else is published */
    atomic_store_explicit(&e->session.cancel, 1, memory_order_relaxed);
}

void aegis_engine_stats(const aegis_engine *e, aegis_stats *out)
{
    const aeg_session_stats *s = &e->session.stats;
    *out = (aegis_stats){ .decode_tokens = s->decode_tokens, .prefill_tokens = s->prefill_tokens,
                          .decode_ns = s->decode_ns, .prefill_ns = s->prefill_ns, .first_step_ns = s->first_step_ns };
    aeg_process_memory now;
    if (aeg_process_memory_now(&now))
        out->peak_bytes = now.peak_bytes;
    if (e->text_only)
        return;
    const aeg_streamer_stats st = aeg_streamer_get_stats(e->streamer), *st0 = &e->streamer_base;
    const aeg_io_stats io = aeg_io_get_stats(e->io);
    out->expert_hits = st.hits - st0->hits;
    out->expert_misses = st.misses - st0->misses;
    out->prefetch_hits = st.prefetch_hits - st0->prefetch_hits;
    out->expert_uses = out->expert_hits + out->expert_misses + out->prefetch_hits;
    _Static_assert((int)AEGIS_MISSES_MAX == (int)AEG_STREAMER_MISSES, "one count for each");
    for (uint32_t m = 0; m <= AEGIS_MISSES_MAX; m++)
        out->layers_missing[m] = st.by_misses[m] - st0->by_misses[m];
    out->read_bytes = st.read_bytes - st0->read_bytes;
    out->wait_ns = st.wait_ns - st0->wait_ns;
    out->disk_bytes = io.bytes - e->io_base.bytes;
    out->disk_busy_ns = io.busy_ns - e->io_base.busy_ns;
    out->wait_bytes = io.wait_bytes[AEG_FILE_EXPERTS] - e->io_base.wait_bytes[AEG_FILE_EXPERTS];
    out->wait_busy_ns = st.wait_busy_ns - st0->wait_busy_ns;
    out->expert_ns = st.held_ns - st0->held_ns;
    out->embed_ns = aeg_model_embed_ns(e->model) - e->embed_base_ns;
    out->telemetry_dropped = e->telemetry.dropped;
}

void aegis_engine_stats_reset(aegis_engine *e)
{
    e->session.stats = (aeg_session_stats){ 0 };
    if (e->text_only)
        return;
    e->streamer_base = aeg_streamer_get_stats(e->streamer);
    e->io_base = aeg_io_get_stats(e->io);
    e->embed_base_ns = aeg_model_embed_ns(e->model);
}

/* --- evaluation: the session behind the public names --------------------------------------------- */

static aegis_status need_model(const aegis_engine *e, aegis_error *err)
{
    if (e->text_only)
        return aeg_fail(err, AEGIS_E_USAGE, "the engine was opened for text only");
    return AEGIS_OK;
}

aegis_status aegis_session_sync(aegis_engine *e, const uint32_t *tokens, size_t n, size_t *n_reused,
                                const aegis_watch *watch, aegis_error *err)
{
    AEG_TRY(need_model(e, err));
    if (watch == NULL)
        return aeg_session_sync(&e->session, tokens, n, n_reused, NULL, err);
    const aeg_watch w = { .ctx = watch->ctx, .logits_from = watch->logits_from, .logits = watch->logits,
                          .hidden = watch->hidden, .final = watch->final, .router = watch->router };
    return aeg_session_sync(&e->session, tokens, n, n_reused, &w, err);
}

aegis_status aegis_session_step(aegis_engine *e, uint32_t token, aegis_error *err)
{
    AEG_TRY(need_model(e, err));
    return aeg_session_step(&e->session, token, err);
}

void aegis_session_checkpoint(aegis_engine *e)
{
    if (!e->text_only)
        aeg_session_checkpoint(&e->session);
}

void aegis_session_clear(aegis_engine *e)
{
    if (!e->text_only)
        aeg_session_clear(&e->session);
}

const uint32_t *aegis_session_tokens(const aegis_engine *e, size_t *n)
{
    *n = e->session.n_tokens;
    return e->session.tokens;
}

const float *aegis_session_logits(const aegis_engine *e) { return aeg_model_logits(e->model); }
