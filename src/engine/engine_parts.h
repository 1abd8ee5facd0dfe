/* SPDX-License-Identifier: Apache-2.0 */
/* engine/engine_parts.h - what the files of this folder share: the open engine and how it is built. */
#ifndef AEG_ENGINE_ENGINE_PARTS_H
#define AEG_ENGINE_ENGINE_PARTS_H

#include "aegis/aegis.h"
#include "base/memory.h"
#include "base/threads.h"
#include "expert/store.h"
#include "expert/streamer.h"
#include "io/io.h"
#include "kernels/kernels.h"
#include "kv/kv.h"
#include "kv/state.h"
#include "model/model.h"
#include "plan/plan.h"
#include "sample/sampler.h"
#include "session/session.h"
#include "text/jinja.h"
#include "text/tokenizer.h"

/* Options with every default resolved. */
typedef struct {
    uint64_t budget;
    uint32_t n_ctx, n_threads, chunk, n_slots, n_checkpoints;
    uint32_t cpu_mask;
    bool tune_threads;         /* n_threads is what there is; decoding uses what is fastest */
    aeg_act_kind act;
    aeg_kv_kind kv;
    aeg_io_kind io;
    double sim_bytes_per_s, sim_latency_s;
    int32_t prefetch;
    aegis_measured measured;
} aeg_settings;

typedef struct {
    int fd;                    /* -1: off */
    uint64_t dropped;          /* lines that could not be written */
} aeg_telemetry;

struct aegis_engine {
    aeg_memory heap;           /* the store's tables and this object */
    aeg_store *store;
    aeg_settings settings;
    aegis_plan plan;
    aeg_accounts accounts;
    aeg_kernels kernels;
    aeg_team *team;
    aeg_io *io;
    aeg_streamer *streamer;
    aeg_kv kv;
    aeg_state state;
    aeg_model *model;
    aeg_sampler *sampler;
    aeg_session session;
    bool text_only;

    aeg_memory text_memory;    /* ceiling: part of the text account */
    uint8_t *tokenizer_table;
    uint64_t tokenizer_bytes;
    aeg_tokenizer *tokenizer;
    aeg_jinja *template;

    aeg_telemetry telemetry;
    aeg_streamer_stats streamer_base; /* subtracted by aegis_stats after a reset */
    aeg_io_stats io_base;
    uint64_t embed_base_ns;
    uint32_t n_threads_used;   /* of decode steps */
    double open_seconds;
};

/* settings.c: options -> settings; checks ranges and the hyper-parameters' limits (AEGIS_E_USAGE). */
aegis_status aeg_settings_resolve(aeg_settings *s, const aegis_options *o, const aeg_store *store, aegis_error *err);

/* build.c: run every module's init on e->accounts, measuring or real, with e->settings. */
aegis_status aeg_engine_build(aegis_engine *e, aegis_error *err);
void aeg_engine_unbuild(aegis_engine *e);

/* budget.c: choose chunk and slots for the budget; fills settings and plan. e->store and settings are set.
 * A budget that is too small is not an error: plan.fits is false. */
aegis_status aeg_engine_plan(aegis_engine *e, aegis_error *err);

/* forecast.c: bytes of a token; the predicted speed of e->plan (0 if a rate is not known). The accounts are measured. */
void aeg_engine_touched(const aegis_engine *e, aegis_touched *out);
void aeg_engine_predict(aegis_engine *e);

/* engine_text.c */
/* Heap that text may take, all parts; and the ceiling of the caller's own part (prompts, answers). */
uint64_t aeg_text_heap_bytes(uint32_t n_ctx);
uint64_t aeg_text_caller_bytes(uint32_t n_ctx);
void aeg_text_set_ceilings(aegis_engine *e); /* after open: from now on the plan's numbers hold */
aegis_status aeg_text_size(aegis_engine *e, aegis_error *err); /* e->tokenizer_bytes */
aegis_status aeg_text_open(aegis_engine *e, aegis_error *err);
void aeg_text_close(aegis_engine *e);

/* telemetry.c */
aegis_status aeg_telemetry_open(aeg_telemetry *t, const char *path, aegis_error *err);
void aeg_telemetry_close(aeg_telemetry *t);
void aeg_telemetry_layer(void *ctx, const aeg_streamer_event *event); /* ctx: aeg_telemetry */

#endif
