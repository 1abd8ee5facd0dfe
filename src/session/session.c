/* SPDX-License-Identifier: Apache-2.0 */
#include "session/session.h"

#include <string.h>

#include "base/checked.h"
#include "base/clock.h"

aegis_status aeg_session_init(aeg_session *out, aeg_arena *arena, const aeg_session_config *cfg, aegis_error *err)
{
    uint32_t *tokens = AEG_ARENA_ARRAY(arena, uint32_t, cfg->n_ctx);
    AEG_TRY(aeg_arena_check(arena, err));
    *out = (aeg_session){ .model = cfg->model, .state = cfg->state, .n_ctx = cfg->n_ctx, .chunk = cfg->chunk,
                          .vocab_size = cfg->vocab_size, .recurrent = cfg->recurrent, .tokens = tokens };
    return AEGIS_OK;
}

void aeg_session_clear(aeg_session *s)
{
    s->n_tokens = 0;
    s->has_logits = false;
    aeg_state_reset(s->state);
    aeg_state_drop_after(s->state, 0);
}

void aeg_session_checkpoint(aeg_session *s)
{
    if (s->n_tokens > 0)
        aeg_state_save(s->state, s->n_tokens);
}

/* Go back to at most `limit` tokens, as far as the recurrent state allows. */
static void cut(aeg_session *s, uint32_t limit)
{
    if (limit >= s->n_tokens)
        return;
    s->has_logits = false;
    if (!s->recurrent) {
        s->n_tokens = limit;
        return;
    }
    aeg_state_drop_after(s->state, limit);
    const uint32_t best = aeg_state_best(s->state, limit);
    if (best == 0)
        aeg_state_reset(s->state);
    else
        aeg_state_load(s->state, best);
    s->n_tokens = best;
}

/* One forward. A failed one leaves the recurrent state half advanced: go back to the last checkpoint. */
static aegis_status forward(aeg_session *s, const uint32_t *tokens, uint32_t n, bool last, const aeg_watch *watch,
                            aegis_error *err)
{
    if (watch == NULL && s->routes.router != NULL)
        watch = &s->routes;
    const aegis_status status = aeg_model_forward(s->model, tokens, n, s->n_tokens, last, watch, err);
    if (status != AEGIS_OK) {
        const uint32_t held = s->n_tokens;
        s->n_tokens = held + 1; /* so that cut() does not take the live state for a good one */
        cut(s, held);
        return status;
    }
    memmove(s->tokens + s->n_tokens, tokens, n * sizeof tokens[0]);
    s->n_tokens += n;
    s->has_logits = last;
    return AEGIS_OK;
}

static aegis_status check_tokens(const aeg_session *s, const uint32_t *tokens, size_t n, aegis_error *err)
{
    if (n == 0)
        return aeg_fail(err, AEGIS_E_USAGE, "no tokens to evaluate");
    if (n > s->n_ctx)
        return aeg_fail(err, AEGIS_E_USAGE, "%zu tokens do not fit the context of %u; ask for a larger one with -c", n,
                        s->n_ctx);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] >= s->vocab_size)
            return aeg_fail(err, AEGIS_E_USAGE, "token %zu has id %u, expected 0 to %u", i, tokens[i],
                            s->vocab_size - 1);
    return AEGIS_OK;
}

bool aeg_session_take_cancel(aeg_session *s)
{
    /* relaxed: a flag alone, nothing is published with it */
    return atomic_exchange_explicit(&s->cancel, 0, memory_order_relaxed) != 0;
}

aegis_status aeg_session_sync(aeg_session *s, const uint32_t *tokens, size_t n, size_t *n_reused,
                              const aeg_watch *watch, aegis_error *err)
{
    AEG_TRY(check_tokens(s, tokens, n, err));
    uint32_t same = 0;
    while (same < s->n_tokens && same < n && s->tokens[same] == tokens[same])
        same++;
    /* The last token is evaluated again unless its logits are at hand; a watcher wants to see all. */
    if (watch != NULL)
        same = 0;
    else if (same == n && !(same == s->n_tokens && s->has_logits))
        same--;
    cut(s, same);
    if (n_reused != NULL)
        *n_reused = s->n_tokens;

    const uint64_t start = aeg_now_ns();
    while (s->n_tokens < n) {
        if (aeg_session_take_cancel(s))
            return aeg_fail(err, AEGIS_E_CANCELLED, "cancelled after %u of %zu tokens", s->n_tokens, n);
        const uint32_t m = (uint32_t)AEG_MIN((size_t)s->chunk, n - s->n_tokens);
        AEG_TRY(forward(s, tokens + s->n_tokens, m, s->n_tokens + m == n, watch, err));
        s->stats.prefill_tokens += m;
    }
    s->stats.prefill_ns += aeg_now_ns() - start;
    s->after_prefill = true;
    return AEGIS_OK;
}

aegis_status aeg_session_step(aeg_session *s, uint32_t token, aegis_error *err)
{
    AEG_TRY(check_tokens(s, &token, 1, err));
    if (s->n_tokens >= s->n_ctx)
        return aeg_fail(err, AEGIS_E_USAGE, "the context of %u tokens is full", s->n_ctx);
    if (aeg_session_take_cancel(s))
        return aeg_fail(err, AEGIS_E_CANCELLED, "cancelled");
    const uint64_t start = aeg_now_ns();
    AEG_TRY(forward(s, &token, 1, true, NULL, err));
    const uint64_t ns = aeg_now_ns() - start;
    if (s->after_prefill) {
        s->stats.first_step_ns = ns;
    } else {
        s->stats.decode_ns += ns;
        s->stats.decode_tokens++;
    }
    s->after_prefill = false;
    return AEGIS_OK;
}
