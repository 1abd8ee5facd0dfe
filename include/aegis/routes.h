/* SPDX-License-Identifier: Apache-2.0 */
/* routes.h - which experts a model chose, recorded while it runs, and what a pool of slots would make of them.
 *
 * A recording is a file (src/expert/replay_trace.h describes every byte). A replay sends it through cache policies
 * at several pool sizes, in the engine's order: layer by layer, all uses of a step counted and its hits pinned before a
 * victim is chosen. Policies: docs/adr/0007-cache-policy.md.
 * Thread: a recorder belongs to its engine's thread; a replay needs no engine. Memory: heap of the library, outside
 * of an engine's budget: a recorder holds one step, a replay the whole recording.
 */
#ifndef AEGIS_ROUTES_H
#define AEGIS_ROUTES_H

#include "aegis/aegis.h"

typedef struct aegis_recorder aegis_recorder;

/* Record every token that the engine evaluates from here on (calls with a watch of their own are not seen).
 * One recorder for an engine at a time. AEGIS_E_IO: the file cannot be created. */
aegis_status aegis_recorder_open(aegis_recorder **out, aegis_engine *engine, const char *path, aegis_error *err);
/* Mark what comes: steps of a prefill or of decode (as at the beginning); a text that starts from an empty session. */
void aegis_recorder_prefill(aegis_recorder *recorder, bool prefill);
void aegis_recorder_text(aegis_recorder *recorder);
/* Complete and close the file. AEGIS_E_IO: something could not be written; the file is removed. NULL allowed. Call it
 * before the engine is closed. */
aegis_status aegis_recorder_close(aegis_recorder *recorder, uint64_t *n_tokens, aegis_error *err);

enum { AEGIS_REPLAY_MAX_SIZES = 16 };

typedef struct {
    const char *policy;        /* "slots": the one in use; a constant text */
    uint32_t slots;
    uint64_t uses, hits;                 /* of decode steps: (layer, expert) pairs */
    uint64_t prefill_uses, prefill_hits; /* of prefill steps, an expert counted once per step */
    double misses_per_token;             /* decode */
} aegis_replay_row;

typedef struct {
    uint32_t n_layers, n_experts, top_k;
    uint64_t n_tokens, n_decode_tokens, n_texts;
    bool same_model;           /* recorded with this very store */
} aegis_replay_info;

typedef struct {
    const char *trace;         /* recorded file                                            */
    const char *store;         /* whose layers, experts and top_k it must have             */
    uint32_t n_sizes;          /* 0: a range from a quarter of one token's experts to all  */
    uint32_t sizes[AEGIS_REPLAY_MAX_SIZES]; /* slots, each >= top_k, ascending             */
    bool only_slots;           /* the policy in use alone                                  */
    bool save_curve;           /* keep the hit rates of the policy in use in the store's manifest */
    void (*row)(void *ctx, const aegis_replay_row *row); /* each policy at each size; may be NULL */
    void *ctx;
} aegis_replay_options;

/* AEGIS_E_MODEL: the trace is damaged or was recorded with a model of another shape. *info may be NULL. */
aegis_status aegis_replay(const aegis_replay_options *options, aegis_replay_info *info, aegis_error *err);

#endif
