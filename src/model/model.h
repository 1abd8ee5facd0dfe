/* SPDX-License-Identifier: Apache-2.0 */
/* model/model.h - a model evaluates a chunk of tokens: embedding, layers, head.
 *
 * A decode step is a chunk of one token; prefill is the same code with more. The chunk size never
 * changes the bits. Memory: weights from the `dense` arena, scratch from `activations`; a measuring arena only
 * needs the store's manifest. Thread: owner only (the team computes).
 */
#ifndef AEG_MODEL_MODEL_H
#define AEG_MODEL_MODEL_H

#include "base/threads.h"
#include "expert/store.h"
#include "expert/streamer.h"
#include "io/io.h"
#include "kernels/kernels.h"
#include "kv/kv.h"
#include "kv/state.h"

typedef struct aeg_model aeg_model;

typedef struct {
    const aeg_store *store;
    const aeg_kernels *kernels;
    aeg_team *team;
    aeg_io *io;                 /* dense.bin and embed.bin are files AEG_FILE_DENSE and AEG_FILE_EMBED of it */
    aeg_streamer *streamer;
    aeg_kv *kv;
    aeg_state *state;
    aeg_act_kind act;
    uint32_t n_ctx, chunk, n_threads;
    int32_t n_guess;            /* experts guessed per layer; 0 off, -1: as many as a token uses */
} aeg_model_config;

/* While measuring only store, act, n_ctx, chunk and n_threads are looked at. A real init reads dense.bin. */
aegis_status aeg_model_init(aeg_model **out, aeg_arena *activations, aeg_arena *dense, const aeg_model_config *cfg,
                            aegis_error *err);

/* What is seen while tokens are evaluated; the same members as aegis_watch (aegis.h). */
typedef struct {
    void *ctx;
    uint32_t logits_from;
    void (*logits)(void *ctx, uint32_t pos, const float *logits);
    void (*hidden)(void *ctx, uint32_t layer, uint32_t pos, const float *x); /* [streams * hidden] */
    void (*final)(void *ctx, uint32_t pos, const float *x);
    void (*router)(void *ctx, uint32_t layer, uint32_t pos, const uint16_t *ids);
} aeg_watch;

/* Evaluate n <= chunk tokens at positions pos0...; `last` asks for the logits of the last one. KV rows and the
 * recurrent state advance by n; on error the state is undefined and must be reset or reloaded. */
aegis_status aeg_model_forward(aeg_model *model, const uint32_t *tokens, uint32_t n, uint32_t pos0, bool last,
                               const aeg_watch *watch, aegis_error *err);

/* [vocab_size]: of the last forward with `last`; a loan until the next forward. */
const float *aeg_model_logits(const aeg_model *model);

/* Time spent on reading embedding rows since the model was opened. */
uint64_t aeg_model_embed_ns(const aeg_model *model);

/* Chunks of up to so many tokens read weights for little arithmetic and use the threads of tune.h (without it all); longer
 * ones compute and use all. */
enum { AEG_DECODE_TOKENS = 8 };

/* Largest activations that --chunk may ask for. */
enum { AEG_MAX_CHUNK = 4096 };

#endif
