/* SPDX-License-Identifier: Apache-2.0 */
/* expert/replay.h - recorded routes sent through cache policies: what a pool of slots would have hit.
 *
 * The order is the engine's: step by step, layer by layer; all uses of a layer are counted and its hits pinned
 * before a victim is chosen; decode needs all experts of a layer at once, prefill takes them in ascending order
 * through the streamer's window. Reads take no time here and nothing is guessed.
 * Memory: the heap given; a replay is no part of the token path. Thread: any, each with its own objects.
 */
#ifndef AEG_EXPERT_REPLAY_H
#define AEG_EXPERT_REPLAY_H

#include "expert/replay_trace.h"

/* One layer of one step: which experts it needs. */
typedef struct {
    uint64_t first;           /* of its accesses */
    uint32_t n;
    uint32_t n_tokens;        /* of the step */
    bool prefill, last;       /* last: the step ends with this layer */
} aeg_replay_demand;

typedef struct {
    aeg_trace_shape shape;
    uint64_t n_decode_tokens, n_texts;
    uint64_t n_demands, n_accesses;
    aeg_replay_demand *demands;
    uint32_t *keys;           /* [n_accesses] layer * n_experts + expert, ascending in a demand */
    uint32_t *uses;           /* [n_accesses] tokens of the step that use it                    */
    uint64_t *next;           /* [n_accesses] demand in which the key is needed next, UINT64_MAX: never */
    aeg_memory *memory;
} aeg_replay_stream;

aegis_status aeg_replay_stream_make(aeg_replay_stream *out, const aeg_trace *trace, aeg_memory *memory, aegis_error *err);
void aeg_replay_stream_free(aeg_replay_stream *s); /* {0} allowed */

typedef enum {
    AEG_REPLAY_SLOTS,   /* expert/slots.c itself, with the engine's settings */
    AEG_REPLAY_LRU,     /* least recently used goes                                                    */
    AEG_REPLAY_LFU,     /* fewest uses ever goes, of equals the least recently used                    */
    AEG_REPLAY_AGED,    /* LFU whose uses halve every `half_life` periods; of equals the most recent   */
    AEG_REPLAY_IDLE,    /* the same, and what was not used for `idle` periods counts half once more    */
    AEG_REPLAY_LAYERED, /* AGED, with a clock for each layer, so that in the middle of a step layers that have counted it and
                         * those that have not are compared fairly                                     */
    AEG_REPLAY_S3FIFO,  /* a small queue of a tenth, a main queue, a ghost queue                       */
    AEG_REPLAY_NEXT,    /* estimates when each is used next, the layers' circle included (aged counts) */
    AEG_REPLAY_BELADY,  /* what is needed farthest in the future goes: no policy hits more             */
} aeg_replay_kind;

/* How uses of a prefill step count for AGED and its kin. */
typedef enum { AEG_PREFILL_FULL, AEG_PREFILL_ONCE, AEG_PREFILL_NONE } aeg_replay_prefill;

typedef struct {
    const char *name;
    aeg_replay_kind kind;
    double half_life, idle;   /* periods of n_experts / top_k tokens, the mean time between uses of one expert */
    aeg_replay_prefill prefill;
} aeg_replay_policy;

/* What `aegis bench --replay` shows; the first one is the policy in use. */
extern const aeg_replay_policy aeg_replay_policies[];
extern const uint32_t aeg_n_replay_policies;

typedef struct {
    uint64_t uses, hits;                 /* decode: (layer, expert) pairs of each step */
    uint64_t prefill_uses, prefill_hits;
} aeg_replay_result;

/* n_slots >= top_k. */
aegis_status aeg_replay_run(const aeg_replay_stream *s, const aeg_replay_policy *policy, uint32_t n_slots,
                            aeg_memory *memory, aeg_replay_result *out, aegis_error *err);

#endif
