/* SPDX-License-Identifier: Apache-2.0 */
/* session/session.h - one timeline of tokens and what can be re-used of it.
 *
 * Callers hand the full token list; the session finds the longest beginning that it still holds. KV rows can be cut
 * at any length; the recurrent state cannot, so continuing from an earlier length needs a checkpoint.
 * Memory: the token list from `arena`. Thread: owner only; `cancel` may be set by any thread or signal.
 */
#ifndef AEG_SESSION_SESSION_H
#define AEG_SESSION_SESSION_H

#include <stdatomic.h>
#include <stddef.h>

#include "model/model.h"

typedef struct {
    uint64_t prefill_tokens, decode_tokens, prefill_ns, decode_ns, first_step_ns;
} aeg_session_stats;

typedef struct {
    aeg_model *model;
    aeg_state *state;
    uint32_t n_ctx, chunk, vocab_size;
    uint32_t *tokens;
    uint32_t n_tokens;
    bool has_logits;           /* of the last token */
    bool after_prefill;        /* the next step is the first one */
    bool recurrent;            /* the model has GDN layers */
    aeg_watch routes;          /* its router is called where no other watch is given; NULL: off */
    atomic_int cancel;
    aeg_session_stats stats;
} aeg_session;

typedef struct {
    aeg_model *model;
    aeg_state *state;
    uint32_t n_ctx, chunk, vocab_size;
    bool recurrent;
} aeg_session_config;

aegis_status aeg_session_init(aeg_session *out, aeg_arena *arena, const aeg_session_config *cfg, aegis_error *err);

/* Same contracts as aegis_session_sync, _step, _clear, _checkpoint (aegis.h). */
aegis_status aeg_session_sync(aeg_session *s, const uint32_t *tokens, size_t n, size_t *n_reused,
                              const aeg_watch *watch, aegis_error *err);
/* Was a cancel asked for? Asking forgets it. */
bool aeg_session_take_cancel(aeg_session *s);
aegis_status aeg_session_step(aeg_session *s, uint32_t token, aegis_error *err);
void aeg_session_clear(aeg_session *s);
void aeg_session_checkpoint(aeg_session *s);

#endif
