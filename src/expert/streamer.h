/* SPDX-License-Identifier: Apache-2.0 */
/* expert/streamer.h - experts' weights in memory when they are needed: the pool of slots and its reads.
 *
 * One pool of equal slots (record_bytes each), EMPTY -> FILLING -> READY -> (EMPTY | FILLING). A layer's step
 * calls aeg_streamer_demand() with the experts it needs, then takes views until all were given, and returns
 * each with aeg_streamer_done(). Demand reads go before guesses. The streamer decides where bytes
 * live and when they arrive, never what is computed.
 *
 * More experts than free slots is legal (prefill): reads then run in a window over the coldest slots.
 * A record is one read unless split_bytes or a hole between its parts says otherwise (ADR 0003).
 * Memory: tables carved from `arena`, slots from `slots` (a separate arena: the expert-slots account).
 * Thread: the decode thread only.
 */
#ifndef AEG_EXPERT_STREAMER_H
#define AEG_EXPERT_STREAMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "expert/store.h"
#include "io/io.h"

typedef struct aeg_streamer aeg_streamer;
struct aeg_streamer_event;

typedef struct aeg_streamer_event {
    uint64_t token;            /* running number of the demand's first token                    */
    uint32_t layer;
    uint32_t n_experts, hits, prefetch_hits, misses;
    uint64_t read_bytes, wait_ns;
} aeg_streamer_event;

typedef struct {
    const aeg_store *store;
    aeg_io *io;                /* owned by the caller; NULL while measuring                     */
    uint32_t file;             /* index of experts.bin in io                                    */
    uint32_t n_slots;          /* >= min_slots of aeg_streamer_min_slots                        */
    uint32_t max_demand;       /* most experts in one demand call (n_experts for prefill)       */
    int32_t prefetch;          /* experts guessed per layer: 0 off, -1 auto (measured idle time) */
    uint64_t split_bytes;      /* records of at least this size are read in two parts; 0 = never (ADR 0003) */
    void (*telemetry)(void *ctx, const aeg_streamer_event *event); /* per layer; may be NULL */
    void *telemetry_ctx;
} aeg_streamer_config;

/* Slots below which a model cannot run: top_k. */
uint32_t aeg_streamer_min_slots(const aeg_store *store);

/* Registers the slots with `io` as its buffer. */
aegis_status aeg_streamer_init(aeg_streamer **out, aeg_arena *arena, aeg_arena *slots,
                               const aeg_streamer_config *cfg, aegis_error *err);
void aeg_streamer_close(aeg_streamer *s); /* drains reads in flight; NULL allowed */

/* Start a layer's demand: `experts` ascending, no duplicates, n <= max_demand. `uses[i]` = tokens of this step
 * that use experts[i] (counts for the frequency rule). Misses are submitted before this returns, as many as
 * fit. `ordered`: views come strictly in ascending order (prefill sums straight into its result), else hits
 * first and then in order of arrival (decode). All views of the previous demand must be done. */
aegis_status aeg_streamer_demand(aeg_streamer *s, uint32_t layer, const uint16_t *experts,
                                 const uint32_t *uses, uint32_t n, bool ordered, aegis_error *err);

typedef struct {
    uint32_t index;            /* into the demand's experts[] */
    const uint8_t *gate_up;    /* valid until aeg_streamer_done */
    const uint8_t *down;
    uint32_t slot;
} aeg_expert_view;

/* At least one more view (blocks), at most max; everything that is ready now is returned together.
 * *n = 0 only when all views of the demand were given. AEGIS_E_IO names layer, expert, file offset. */
aegis_status aeg_streamer_take(aeg_streamer *s, aeg_expert_view *out, uint32_t max, uint32_t *n,
                               aegis_error *err);
/* The same without waiting: *n may be 0. */
aegis_status aeg_streamer_poll(aeg_streamer *s, aeg_expert_view *out, uint32_t max, uint32_t *n,
                               aegis_error *err);
void aeg_streamer_done(aeg_streamer *s, const aeg_expert_view *view);

/* Guess for a later layer: read these early if the disk is idle and slots allow. Best first (after an ordered demand: in
 * ascending id, as they will be taken). Never fails. */
void aeg_streamer_guess(aeg_streamer *s, uint32_t layer, const uint16_t *experts, uint32_t n);

/* A completion of this streamer's that another owner of reads in the same queue was given. */
void aeg_streamer_arrived(aeg_streamer *s, const aeg_io_done *done);

/* In a pause between demands: collect what has arrived and go on with the guesses. Cheap; never waits or fails. */
void aeg_streamer_pump(aeg_streamer *s);

/* After a failed step: forget the current demand, wait for its reads, keep what arrived. */
void aeg_streamer_abort(aeg_streamer *s);

/* Tokens pass: ages the frequency counts. Call once per step with the number of tokens computed. */
void aeg_streamer_tick(aeg_streamer *s, uint32_t n_tokens);

enum { AEG_STREAMER_MISSES = 16 }; /* more in one demand are counted as this many */

typedef struct {
    uint64_t demands, hits, prefetch_hits, misses, guesses, guesses_wasted;
    uint64_t by_misses[AEG_STREAMER_MISSES + 1]; /* demands that found 0, 1, ... experts missing */
    uint64_t read_bytes;
    uint64_t wait_ns;          /* decode thread blocked on experts */
    uint64_t wait_busy_ns;     /* of it: at least one read was in flight */
    uint64_t held_ns;          /* at least one view is out: the caller computes with it */
} aeg_streamer_stats;
aeg_streamer_stats aeg_streamer_get_stats(const aeg_streamer *s);

/* For measurements: what lies in the slot if it is READY, else NULL (its pages may never have been touched). */
const uint8_t *aeg_streamer_record(const aeg_streamer *s, uint32_t slot);

/* For tests and `show`: is the expert READY? */
bool aeg_streamer_resident(const aeg_streamer *s, uint32_t layer, uint32_t expert);

#endif
