/* SPDX-License-Identifier: Apache-2.0 */
/* style: long: the public API reads as one book.
 *
 * aegis.h - the engine: open a store inside a memory budget, evaluate tokens, sample, generate.
 *
 * Simple part first: aegis_engine_open, aegis_generate, aegis_engine_close. Everything an open engine uses
 * was planned before the first weight was read; opening is refused (AEGIS_E_BUDGET) when it cannot fit.
 * The same tokens in give the same logits, bit for bit, at every budget, thread count, chunk size,
 * instruction set and read back end (DESIGN section 2).
 * Thread: an engine and its session belong to one thread at a time. aegis_engine_cancel: any thread, and
 * signal handlers.
 */
#ifndef AEGIS_AEGIS_H
#define AEGIS_AEGIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aegis/error.h"

typedef struct aegis_engine aegis_engine;

typedef enum { AEGIS_ACTIVATIONS_INT8, AEGIS_ACTIVATIONS_INT16, AEGIS_ACTIVATIONS_F32 } aegis_activations;
typedef enum { AEGIS_IO_AUTO, AEGIS_IO_URING, AEGIS_IO_PREAD, AEGIS_IO_NULL, AEGIS_IO_SIM } aegis_io;
typedef enum {                  /* keys and values: docs/adr/0006-kv-formats.md                        */
    AEGIS_KV_F32, AEGIS_KV_F16,
    AEGIS_KV_Q8,                /* rotated int8, one scale per head                                    */
    AEGIS_KV_T4, AEGIS_KV_T3,   /* rotated, 4 and 3 bits (TurboQuant)                                  */
} aegis_kv;

/* What is known of this machine, for the prediction of decode speed; 0: not known. It changes nothing else. */
typedef struct {
    double read_bytes_per_s;    /* from memory, all threads together                               */
    double disk_bytes_per_s;    /* direct reads of an expert record, several at once; AEGIS_IO_SIM
                                 * takes its own rate and latency                                  */
    double disk_latency_s;      /* m reads submitted together take latency + m * record / rate     */
    double hit_rate;            /* 0: the store's curve, or a typical one                          */
    uint32_t position;          /* context length a token meets; 0: 512                            */
} aegis_measured;

typedef struct {
    const char *store;          /* store folder (aegis_pack makes one)                             */
    uint64_t memory_bytes;      /* the budget of the whole process; 0: what is available less 1 GiB,
                                 * at most all-resident                                            */
    uint32_t n_ctx;             /* positions; 0: 4096 or the model's maximum if lower              */
    uint32_t n_threads;         /* 0: one per core this process may run on; opening measures how
                                 * many of them decode steps use (n_threads_used of aegis_info)    */
    const char *cpu;            /* "scalar", "avx2", "avx512", "neon"; NULL: the best there is     */
    aegis_activations activations;
    aegis_kv kv;
    aegis_io io;
    double sim_bytes_per_s, sim_latency_s; /* for AEGIS_IO_SIM                                     */
    int32_t prefetch;           /* experts guessed per layer; 0 off, -1 auto                       */
    uint32_t chunk;             /* prompt tokens per step; 0: chosen by the plan                   */
    uint32_t n_checkpoints;     /* saved recurrent states for re-using a prompt's beginning        */
    const char *telemetry;      /* file for one JSON line per step and layer; NULL: none           */
    aegis_measured measured;
} aegis_options;

/* --- plan --------------------------------------------------------------------------------------- */

enum { AEGIS_MAX_ACCOUNTS = 16 };

typedef struct {
    uint64_t budget_bytes, minimum_bytes, total_bytes, all_resident_bytes;
    bool fits;
    uint32_t n_ctx, max_n_ctx;   /* max_n_ctx: largest context that fits this budget (0: none) */
    uint32_t chunk, n_threads;
    uint32_t expert_slots, n_experts_total;
    uint64_t slot_bytes;
    double predicted_decode_tok_s; /* 0: no disk figure or read bandwidth known yet */
    uint32_t predicted_position; /* the context length that it was predicted for: the keys and values read, and */
    double predicted_full_tok_s; /* the same at the end of the context */
    double predicted_hit_rate;   /* that it was predicted with */
    double predicted_hidden;     /* share of the reading time behind computing */
    bool typical_hit_curve;      /* the store has no measured hit curve */
    uint32_t n_accounts;
    struct { const char *name; uint64_t bytes; } accounts[AEGIS_MAX_ACCOUNTS];
} aegis_plan;

/* What opening would use; reads the manifest only. A plan that does not fit is not an error here
 * (plan->fits is false). */
aegis_status aegis_plan_compute(const aegis_options *options, aegis_plan *plan, aegis_error *err);

/* AEGIS_E_BUDGET, and in *err what a plan that does not fit needs: the missing bytes, the accounts, the smallest budget and the
 * largest context that work. What opening says of it. */
aegis_status aegis_plan_refuse(const aegis_plan *plan, aegis_error *err);

/* --- engine ------------------------------------------------------------------------------------- */

/* AEGIS_E_BUDGET: says which accounts need what and the smallest budget that works. */
aegis_status aegis_engine_open(aegis_engine **out, const aegis_options *options, aegis_error *err);
void aegis_engine_close(aegis_engine *engine); /* NULL allowed */

typedef void (*aegis_progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);

/* Read every expert into its slot now instead of when it is needed first. Whole records, at the disk's speed; `progress` may be
 * NULL. AEGIS_E_BUDGET: the plan has fewer slots than the model has experts. AEGIS_E_CANCELLED: aegis_engine_cancel; what was
 * read stays, and the engine goes on. Statistics begin anew. */
aegis_status aegis_engine_preload(aegis_engine *engine, aegis_progress progress, void *ctx, aegis_error *err);

/* Bytes that decoding one token reads, for rooflines. */
typedef struct {
    uint64_t dense_bytes;       /* weights of every token: mixers, routers, shared experts, head */
    uint64_t shared_bytes;      /* of these, the shared experts                                  */
    uint64_t expert_bytes;      /* top_k routed experts of every layer                           */
    uint64_t state_bytes;       /* recurrent state, read and written                             */
    uint64_t kv_position_bytes; /* keys and values, per position of the context                  */
    uint64_t record_bytes;      /* one read of a missing expert                                  */
} aegis_touched;

typedef struct {
    aegis_plan plan;
    aegis_touched touched;
    const char *family, *cpu, *io, *path;   /* loans, as long as the engine */
    uint32_t vocab_size, hidden_size, n_layers, n_experts, top_k;
    uint32_t n_dense_layers;    /* leading layers without experts */
    uint32_t n_streams;         /* of the residual: 1, more with hyper-connections */
    uint32_t n_eos, eos[8];
    bool has_tokenizer, has_template;
    double temperature, top_p, min_p, repeat_penalty, presence_penalty; /* model defaults; < 0: not given */
    int32_t top_k_sampling;
    double open_seconds;
    uint64_t caller_text_bytes; /* what the plan allows the caller for prompts and answers; 0: no plan */
    uint32_t n_threads_used;    /* of plan.n_threads: by decode steps; prompts use all                 */
} aegis_info;
void aegis_engine_info(const aegis_engine *engine, aegis_info *info);

/* Stop the evaluation that is running (or the next one) at the next token or chunk: it returns
 * AEGIS_E_CANCELLED and the session keeps what was finished. Async-signal-safe. */
void aegis_engine_cancel(aegis_engine *engine);

enum { AEGIS_MISSES_MAX = 16 };

typedef struct {
    uint64_t decode_tokens, prefill_tokens;
    uint64_t decode_ns, prefill_ns, first_step_ns; /* first_step: the first decode step after a prefill */
    uint64_t expert_uses, expert_hits, expert_misses, prefetch_hits;
    uint64_t layers_missing[AEGIS_MISSES_MAX + 1]; /* steps of a layer that found 0, 1, ... experts missing; more: the last */
    uint64_t read_bytes, wait_ns;          /* expert reads and the time blocked on them */
    uint64_t disk_bytes, disk_busy_ns;     /* all reads; the time with at least one in flight */
    uint64_t wait_bytes, wait_busy_ns;     /* of expert reads and of that time: while blocked on experts */
    uint64_t expert_ns;                    /* computing with routed experts */
    uint64_t embed_ns;                     /* waiting for embedding rows, which are read from the disk */
    uint64_t telemetry_dropped;            /* lines that could not be written */
    uint64_t peak_bytes;                   /* VmHWM of this process, children not counted */
} aegis_stats;
void aegis_engine_stats(const aegis_engine *engine, aegis_stats *stats);
void aegis_engine_stats_reset(aegis_engine *engine);

/* --- text --------------------------------------------------------------------------------------- */

/* Tokens of a text; with `special`, added tokens written in the text are recognised. *ids: free with
 * aegis_free_ids. AEGIS_E_MODEL: the store has no tokenizer. */
aegis_status aegis_tokenize(aegis_engine *engine, const char *text, size_t n, bool special, uint32_t **ids,
                            size_t *n_ids, aegis_error *err);
void aegis_free_ids(uint32_t *ids);

/* The bytes of one token (a loan); special tokens give their name. */
aegis_status aegis_token_bytes(aegis_engine *engine, uint32_t id, const char **bytes, size_t *n,
                               bool *is_special, aegis_error *err);

/* Render the chat template. messages_json: an array of {"role","content",...}; tools_json NULL: none.
 * think: -1 template's default, 0, 1. *text: free with aegis_text_free. */
aegis_status aegis_template(aegis_engine *engine, const char *messages_json, const char *tools_json, int think,
                            bool add_generation_prompt, char **text, size_t *n, aegis_error *err);
void aegis_text_free(char *text);

/* Text services alone: tokenizer and template of a store, no weights, no budget. Accepted by aegis_tokenize,
 * aegis_template, aegis_token_bytes; anything else fails with AEGIS_E_USAGE. */
aegis_status aegis_engine_open_text(aegis_engine **out, const char *store, aegis_error *err);

/* --- evaluation --------------------------------------------------------------------------------- */

/* Called while tokens are evaluated, in ascending position (hidden and router: per layer, then position).
 * Pointers are loans for the call. Any may be NULL. */
typedef struct {
    void *ctx;
    uint32_t logits_from;   /* positions >= this get logits; the last one always does */
    void (*logits)(void *ctx, uint32_t pos, const float *logits);                   /* [vocab_size] */
    void (*hidden)(void *ctx, uint32_t layer, uint32_t pos, const float *x);        /* [n_streams][hidden_size]; layer 0 is the
                            * embedding, layer i the residual after i layers; unbounded, f32 */
    void (*final)(void *ctx, uint32_t pos, const float *x);                         /* after the final norm; for the
                            * positions of `logits` unless `hidden` is set: then for all */
    void (*router)(void *ctx, uint32_t layer, uint32_t pos, const uint16_t *ids);   /* [top_k], ascending id */
} aegis_watch;

/* Make the session's tokens equal to `tokens` (n >= 1, n <= n_ctx) and leave the logits of the last one ready:
 * re-uses the longest beginning it can (KV and a checkpoint of the recurrent state), evaluates the rest.
 * *n_reused may be NULL. Token ids >= vocab_size: AEGIS_E_USAGE. On error the session is empty or holds a
 * valid shorter beginning. */
aegis_status aegis_session_sync(aegis_engine *engine, const uint32_t *tokens, size_t n, size_t *n_reused,
                                const aegis_watch *watch, aegis_error *err);

/* Append one token and evaluate it: a decode step. AEGIS_E_USAGE when the context is full. */
aegis_status aegis_session_step(aegis_engine *engine, uint32_t token, aegis_error *err);

/* Remember the state here, so that a later sync can continue from this length (bounded, oldest dropped;
 * nothing happens with n_checkpoints = 0). */
void aegis_session_checkpoint(aegis_engine *engine);
void aegis_session_clear(aegis_engine *engine);
const uint32_t *aegis_session_tokens(const aegis_engine *engine, size_t *n);
const float *aegis_session_logits(const aegis_engine *engine); /* [vocab_size], a loan until the next call */

/* --- sampling and generation ----------------------------------------------------------------------- */

enum { AEGIS_MAX_STOPS = 16, AEGIS_MAX_BIAS = 256 };

typedef struct {
    double temperature;        /* 0: greedy (ties: lowest id)                    */
    int32_t top_k;             /* 0: all                                         */
    double top_p, min_p;       /* 1, 0: off                                      */
    double repeat_penalty;     /* 1: off                                         */
    double presence_penalty, frequency_penalty; /* 0: off                        */
    uint32_t penalty_last_n;   /* tokens looked back at; 0: 64                   */
    int64_t seed;              /* used as 64 bits                                */
    uint32_t n_bias;
    struct { uint32_t id; float bias; } bias[AEGIS_MAX_BIAS];
} aegis_sampling;

/* Greedy with everything off. */
void aegis_sampling_greedy(aegis_sampling *s);
/* The model's defaults (generation settings); greedy where it gives none. */
void aegis_sampling_default(const aegis_engine *engine, aegis_sampling *s);
/* AEGIS_E_USAGE naming the value that is out of range. */
aegis_status aegis_sampling_check(const aegis_sampling *s, aegis_error *err);

typedef enum { AEGIS_STOP_EOS, AEGIS_STOP_LENGTH, AEGIS_STOP_STRING, AEGIS_STOP_CONTEXT, AEGIS_STOP_CANCELLED,
               AEGIS_STOP_CALLBACK } aegis_stop;

typedef struct {
    uint32_t max_tokens;       /* 0: until the context is full */
    aegis_sampling sampling;
    uint32_t n_stops;
    const char *stops[AEGIS_MAX_STOPS]; /* generation ends before the text of any of these */
    bool ignore_eos;
    bool special_text;         /* include the names of special tokens in the text */
    /* Whole UTF-8 characters, as soon as no stop string can begin in them; non-zero stops. */
    int (*text)(void *ctx, const char *bytes, size_t n);
    /* Every sampled token, the ending one too, before its text; may be NULL. */
    void (*token)(void *ctx, uint32_t id, const float *logits);
    void *ctx;
} aegis_generation;

typedef struct {
    uint32_t n_prompt, n_reused, n_generated;
    aegis_stop stop;
    uint64_t ttft_ns, decode_ns;   /* to the first token; after it */
} aegis_generated;

/* Sync to the prompt, then sample until a stop. Works without a tokenizer if `text` is NULL. The answer's tokens
 * stay in the session; the ending token is not evaluated. AEGIS_STOP_CANCELLED is a normal return. */
aegis_status aegis_generate(aegis_engine *engine, const uint32_t *prompt, size_t n_prompt,
                            const aegis_generation *g, aegis_generated *out, aegis_error *err);

const char *aegis_version(void); /* "0.1.0 (commit)" */

#endif
