/* SPDX-License-Identifier: Apache-2.0 */
/* Prompt -> tokens -> text: sampling, detokenising and stopping. */
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "engine/engine_parts.h"
#include "sample/stop.h"

#ifndef AEGIS_VERSION
#define AEGIS_VERSION "unknown"
#endif

const char *aegis_version(void) { return AEGIS_VERSION; }

void aegis_sampling_default(const aegis_engine *e, aegis_sampling *s)
{
    const aeg_hparams *hp = &e->store->hparams;
    aegis_sampling_greedy(s);
    if (hp->temperature >= 0)
        s->temperature = hp->temperature;
    if (hp->top_k_sampling >= 0)
        s->top_k = hp->top_k_sampling;
    if (hp->top_p > 0)
        s->top_p = hp->top_p;
    if (hp->min_p >= 0)
        s->min_p = hp->min_p;
    if (hp->repeat_penalty > 0)
        s->repeat_penalty = hp->repeat_penalty;
    if (hp->presence_penalty >= 0)
        s->presence_penalty = hp->presence_penalty;
}

typedef struct {
    aegis_engine *e;
    const aegis_generation *g;
    aeg_detok detok;
    aeg_stopper stopper;
} answer;

static bool is_eos(const aegis_engine *e, uint32_t id)
{
    for (uint32_t i = 0; i < e->store->hparams.n_eos; i++)
        if (e->store->hparams.eos[i] == id)
            return true;
    return false;
}

/* 0 go on, 1 a stop string, 2 the callback asked to stop. */
static int emit(answer *a, uint32_t id)
{
    if (a->e->tokenizer == NULL)
        return 0;
    size_t n = 0;
    const char *bytes = aeg_detok_push(&a->detok, id, &n);
    const int rc = aeg_stopper_push(&a->stopper, bytes, n, a->g->text, a->g->ctx);
    return rc == 0 ? 0 : a->stopper.stopped ? 1 : 2;
}

static void flush(answer *a)
{
    if (a->e->tokenizer == NULL || a->stopper.stopped)
        return;
    size_t n = 0;
    const char *bytes = aeg_detok_flush(&a->detok, &n);
    if (aeg_stopper_push(&a->stopper, bytes, n, a->g->text, a->g->ctx) == 0)
        aeg_stopper_finish(&a->stopper, a->g->text, a->g->ctx);
}

/* One token; true when generation ends with out->stop set. */
static aegis_status next_token(answer *a, aegis_generated *out, bool *ended, aegis_error *err)
{
    aegis_engine *e = a->e;
    const aegis_generation *g = a->g;
    const float *logits = aeg_model_logits(e->model);
    const uint32_t id = aeg_sampler_next(e->sampler, logits, e->session.tokens, e->session.n_tokens);

    *ended = true;
    out->n_generated++;
    if (g->token != NULL)
        g->token(g->ctx, id, logits);
    if (!g->ignore_eos && is_eos(e, id)) {
        out->stop = AEGIS_STOP_EOS;
        return AEGIS_OK;
    }
    const int stop = emit(a, id);
    if (stop != 0) {
        out->stop = stop == 1 ? AEGIS_STOP_STRING : AEGIS_STOP_CALLBACK;
        return AEGIS_OK;
    }
    if (g->max_tokens != 0 && out->n_generated >= g->max_tokens) {
        out->stop = AEGIS_STOP_LENGTH;
        return AEGIS_OK;
    }
    if (e->session.n_tokens >= e->session.n_ctx) {
        out->stop = AEGIS_STOP_CONTEXT;
        return AEGIS_OK;
    }
    const aegis_status status = aeg_session_step(&e->session, id, err);
    if (status == AEGIS_E_CANCELLED) {
        out->stop = AEGIS_STOP_CANCELLED;
        return AEGIS_OK;
    }
    *ended = status != AEGIS_OK;
    return status;
}

static aegis_status prepare(answer *a, aegis_engine *e, const aegis_generation *g, aegis_error *err)
{
    if (e->text_only)
        return aeg_fail(err, AEGIS_E_USAGE, "the engine was opened for text only");
    if ((g->text != NULL || g->n_stops > 0) && e->tokenizer == NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: the store has no tokenizer, so answers are token ids only", e->store->path);
    AEG_TRY(aegis_sampling_check(&g->sampling, err));
    AEG_TRY(aeg_stopper_init(&a->stopper, g->stops, g->n_stops, err));
    a->e = e;
    a->g = g;
    if (e->tokenizer != NULL)
        aeg_detok_init(&a->detok, e->tokenizer, !g->special_text);
    aeg_sampler_set(e->sampler, &g->sampling);
    return AEGIS_OK;
}

aegis_status aegis_generate(aegis_engine *e, const uint32_t *prompt, size_t n_prompt, const aegis_generation *g,
                            aegis_generated *out, aegis_error *err)
{
    answer a;
    size_t reused = 0;
    const uint64_t start = aeg_now_ns();

    *out = (aegis_generated){ .n_prompt = (uint32_t)n_prompt };
    AEG_TRY(prepare(&a, e, g, err));
    aegis_status status = aeg_session_sync(&e->session, prompt, n_prompt, &reused, NULL, err);
    out->n_reused = (uint32_t)reused;
    if (status == AEGIS_E_CANCELLED) {
        out->stop = AEGIS_STOP_CANCELLED;
        return AEGIS_OK;
    }
    AEG_TRY(status);
    out->ttft_ns = aeg_now_ns() - start;

    bool ended = false;
    while (!ended && status == AEGIS_OK)
        status = next_token(&a, out, &ended, err);
    flush(&a);
    out->decode_ns = aeg_now_ns() - start - out->ttft_ns;
    return status;
}
