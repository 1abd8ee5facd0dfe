/* SPDX-License-Identifier: Apache-2.0 */
/* expert/replay_trace.h - recorded routes: which experts every token chose in every layer, as a file.
 *
 * File, little-endian:
 *   0  8  magic "AEGROUTE"          8  u32 version (1)      12  u32 n_layers     16  u32 n_experts   20  u32 top_k
 *  24 u64 n_tokens                 32 u64 model_key of the store (aeg_store)    40 24 zero bytes
 *  64     n_tokens records: one byte of AEG_ROUTE_ flags, then n_layers * top_k expert ids in layer order,
 *         ascending inside a layer, each one byte if n_experts <= 256 and a u16 else; nothing after them.
 * A step is what the engine evaluates at once: one token in decode, a chunk of tokens in prefill.
 *
 * Thread: owner only. The writer holds one step in memory, the reader the whole trace.
 */
#ifndef AEG_EXPERT_REPLAY_TRACE_H
#define AEG_EXPERT_REPLAY_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

enum {
    AEG_ROUTE_PREFILL = 1, /* the token was evaluated by a prefill                   */
    AEG_ROUTE_STEP = 2,    /* first token of its step                                */
    AEG_ROUTE_TEXT = 4,    /* first token of a text: the session was empty before it */
};

enum { AEG_TRACE_HEADER = 64, AEG_TRACE_MAX_BYTES = 1 << 30 };

typedef struct {
    uint32_t n_layers, n_experts, top_k;
    uint64_t model_key;
} aeg_trace_shape;

/* ---- writing ---- */

typedef struct aeg_trace_writer aeg_trace_writer;

/* Steps have at most max_step tokens. AEGIS_E_IO: the file cannot be created. */
aegis_status aeg_trace_create(aeg_trace_writer **out, const char *path, const aeg_trace_shape *shape, uint32_t max_step,
                              aeg_memory *memory, aegis_error *err);

/* The next step belongs to a prefill; the next token starts a text. */
void aeg_trace_set_prefill(aeg_trace_writer *w, bool prefill);
void aeg_trace_start_text(aeg_trace_writer *w);

/* One token's choice [top_k] in one layer. Order: layer 0 of all tokens of a step, layer 1 of all, ... as the
 * engine's watch calls; the step is written when its last layer is complete. Errors are kept until the end. */
void aeg_trace_add(aeg_trace_writer *w, uint32_t layer, const uint16_t *ids);

/* Complete the header, sync and close; *n_tokens may be NULL. AEGIS_E_IO: something was not written, the file
 * is removed. `w` is freed in any case; NULL is allowed. */
aegis_status aeg_trace_finish(aeg_trace_writer *w, uint64_t *n_tokens, aegis_error *err);

/* ---- reading ---- */

typedef struct {
    aeg_trace_shape shape;
    uint64_t n_tokens;
    uint8_t *flags;      /* [n_tokens]                                   */
    uint16_t *ids;       /* [n_tokens][n_layers][top_k], ascending       */
    aeg_memory *memory;
} aeg_trace;

/* AEGIS_E_MODEL: not a trace, another version, truncated, or an id, order or flag that cannot be; the
 * message names token and layer. */
aegis_status aeg_trace_read(aeg_trace *out, const char *path, aeg_memory *memory, aegis_error *err);
void aeg_trace_free(aeg_trace *t); /* {0} allowed */

#endif
