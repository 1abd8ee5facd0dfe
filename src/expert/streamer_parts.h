/* SPDX-License-Identifier: Apache-2.0 */
/* expert/streamer_parts.h - what streamer.c (demands), streamer_reads.c and streamer_guess.c share. Not for other folders. */
#ifndef AEG_EXPERT_STREAMER_PARTS_H
#define AEG_EXPERT_STREAMER_PARTS_H

#include "expert/predictor.h"
#include "expert/slots.h"
#include "expert/streamer.h"

#define NO_ENTRY UINT32_MAX

typedef enum {
    ENTRY_MISSING, /* has no slot yet                */
    ENTRY_FLIGHT,  /* in a slot, its read is running */
    ENTRY_READY,
    ENTRY_GIVEN,
    ENTRY_DONE,
    ENTRY_FAILED,
} entry_state;

typedef enum { FOUND_HIT, FOUND_PREFETCH, FOUND_MISS } found_kind;

typedef struct {
    uint32_t slot;
    uint16_t expert;
    uint8_t state; /* entry_state */
    uint8_t found; /* found_kind  */
} entry;

typedef enum { GUESS_NONE, GUESS_KEPT, GUESS_READ } guess_kind; /* KEPT: it was resident already */

typedef struct {
    uint32_t entry;       /* of the present demand, or NO_ENTRY */
    uint8_t parts;        /* reads still running                */
    uint8_t guess;        /* guess_kind, until its layer's demand */
    int os_code;          /* of a part that failed              */
} slot_use;

typedef struct {
    uint32_t layer, n, n_given, n_done;
    bool ordered;
    uint32_t n_missing, next_missing; /* none is missing before next_missing */
    uint32_t n_flight;
    uint32_t n_held;      /* slots of misses that are not done yet: the window */
    uint32_t found[3];    /* by found_kind */
    uint32_t failed;      /* entry whose read failed first, or NO_ENTRY */
    int os_code;
    uint64_t wait_ns;
} demand;

struct aeg_streamer {
    uint32_t first_layer; /* with experts: keys count from there; layers are the model's everywhere else */
    uint32_t n_layers, n_experts, top_k, n_slots, max_demand, file, depth, window;
    uint64_t record_bytes, down_offset, split_bytes;
    const aeg_store_experts *experts;
    aeg_io *io;
    aeg_slots *slots;
    uint8_t *memory;      /* n_slots * record_bytes */
    slot_use *uses;       /* [n_slots] */
    entry *entries;       /* [max_demand] */
    uint32_t *arrived;    /* [max_demand] entries READY and not given, in order of arrival (unordered) */
    uint32_t n_arrived, arrived_head;
    demand demand;
    aeg_predictor predictor;
    uint32_t *waiting;    /* [max_demand] keys of guesses not yet issued, best first */
    uint32_t n_waiting, waiting_head;
    uint32_t *guessed;    /* [max_demand] keys of open guesses, in slots */
    uint32_t n_guessed, n_guess_reads; /* all of them; those that were read, not found */
    uint64_t token, told_bytes, held_since_ns;
    void (*telemetry)(void *ctx, const aeg_streamer_event *event);
    void *telemetry_ctx;
    aeg_streamer_stats stats;
};

static inline uint32_t aeg_streamer_key(const aeg_streamer *s, uint32_t layer, uint32_t expert)
{
    return (layer - s->first_layer) * s->n_experts + expert;
}

static inline uint32_t aeg_streamer_layer(const aeg_streamer *s, uint32_t key) { return s->first_layer + key / s->n_experts; }

static inline bool aeg_streamer_has_layer(const aeg_streamer *s, uint32_t layer)
{
    return layer >= s->first_layer && layer < s->n_layers;
}

/* Is there room in the queue for a record of `layer`? */
bool aeg_streamer_has_room(const aeg_streamer *s, uint32_t layer);
/* Queue the reads of the slot's record. The slot is FILLING, and there is room. */
void aeg_streamer_queue_reads(aeg_streamer *s, uint32_t slot);
/* Take completions, at least `min` of them (clamped to what is in flight). */
aegis_status aeg_streamer_reap(aeg_streamer *s, uint32_t min, aegis_error *err);

/* Send guesses that wait, as far as demand reads leave the queue to them. */
void aeg_streamer_pump_guesses(aeg_streamer *s);
/* The guess in `slot`, if there is one, came true or was wasted. */
void aeg_streamer_close_guess(aeg_streamer *s, uint32_t slot, bool wasted);
/* Guesses for `layer` have been used by now or never will be. */
void aeg_streamer_close_guesses(aeg_streamer *s, uint32_t layer);
/* A victim was in the slot; it may have been a guess that nobody came for. */
void aeg_streamer_forget_guess(aeg_streamer *s, uint32_t slot);

#endif
