/* SPDX-License-Identifier: Apache-2.0 */
/* unit/streamer_case.h - a small file of expert records whose bytes say whose they are, and a streamer on it. */
#ifndef AEG_TESTS_STREAMER_CASE_H
#define AEG_TESTS_STREAMER_CASE_H

#include "support/t.h"

#include "expert/streamer.h"

enum {
    CASE_LAYERS = 3,
    CASE_EXPERTS = 16,
    CASE_TOP_K = 4,
    CASE_DOWN = 2 * 4096,    /* used: 5000 + layer bytes of two pages */
    CASE_RECORD = 3 * 4096,  /* used: 4000 - layer bytes of the third */
};

typedef struct {
    aeg_io_kind kind;
    uint32_t depth, n_slots;
    int32_t prefetch;
    uint64_t split_bytes;
    double sim_bytes_per_s, sim_latency_s;
    int (*fault)(void *ctx, uint32_t file, uint64_t offset);
    void *fault_ctx;
} case_config;

typedef struct {
    aeg_store store;
    aeg_io *io;
    aeg_streamer *streamer;
    aeg_arena io_arena, tables, slots;
    uint32_t n_slots, n_events;
    aeg_streamer_event last;
    bool has_bytes;          /* the back end really reads */
} case_state;

const char *case_path(void); /* the file, made once */
void case_restore(void);     /* writes it again after a test has damaged it */
void case_fill_store(aeg_store *store);
void case_open(case_state *c, const case_config *cfg);
void case_close(case_state *c);

/* `n` random ascending experts, and how often each is used. Returns n. */
uint32_t case_choose(uint16_t *experts, uint32_t *uses, uint32_t n);

void case_check_view(const case_state *c, uint32_t layer, const uint16_t *experts, const aeg_expert_view *view);

/* Takes, checks and gives back all views of the present demand. */
aegis_status case_take_all(case_state *c, uint32_t layer, const uint16_t *experts, uint32_t n, aegis_error *err);

#endif
