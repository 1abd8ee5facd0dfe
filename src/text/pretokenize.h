/* SPDX-License-Identifier: Apache-2.0 */
/* text/pretokenize.h - cutting text into the pieces that BPE works on, by the model's own patterns.
 *
 * Patterns are written for Oniguruma (Ruby syntax), which the reference tokenizers use, and run here in
 * PCRE2 10.4x with UTF, UCP and multi-line anchors. aeg_pattern_translate() rewrites what differs (\s and
 * \S mean Unicode White_Space, \p{Han} a script and not its extensions) and refuses by name what it does not
 * know, since a pattern that only nearly means the same is silent damage.
 *
 * Long runs: `\s+(?!\S)` on a run of spaces is one step back per match, so linear, but PCRE2 counts steps
 * against a limit (10 million by default), which a 20 MB run of spaces meets. The limit is raised to 2^30,
 * which no text of AEG_TOKENIZER_MAX_TEXT reaches under the known patterns; a pattern of exponential cost
 * ends in an error after seconds. The alternative, cutting long runs beforehand, would need a proof per pattern.
 * JIT is used where the system allows it; otherwise, or if its stack is too small, the interpreter.
 * Thread: an open object is immutable; each thread brings its own aeg_pretok_run.
 */
#ifndef AEG_TEXT_PRETOKENIZE_H
#define AEG_TEXT_PRETOKENIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

typedef struct aeg_pretok aeg_pretok;

typedef struct {
    const char *text;
    uint32_t n;
    bool drop_gaps; /* text that no match covers is dropped, not a piece of its own */
} aeg_pretok_pattern;

enum { AEG_PRETOK_MAX_PATTERNS = 8 };

/* Each pattern cuts the pieces that the one before left; with no pattern a text is one piece.
 * AEGIS_E_MODEL: a pattern is not understood. */
aegis_status aeg_pretok_open(aeg_pretok **out, const aeg_pretok_pattern *patterns, uint32_t n_patterns,
                             aeg_memory *memory, aegis_error *err);
void aeg_pretok_close(aeg_pretok *p); /* NULL allowed */

/* Never compile for the machine (tests compare both ways). Before the first run only. */
void aeg_pretok_no_jit(aeg_pretok *p);

typedef struct aeg_pretok_run aeg_pretok_run;

aegis_status aeg_pretok_begin(aeg_pretok_run **out, const aeg_pretok *p, aegis_error *err);
void aeg_pretok_end(const aeg_pretok *p, aeg_pretok_run *run); /* NULL allowed */

typedef aegis_status (*aeg_pretok_fn)(void *ctx, const uint8_t *piece, size_t n, aegis_error *err);

/* Call `piece` for each piece of valid UTF-8 `text`, in order; pieces are never empty. Stops at the first
 * failure of `piece`. */
aegis_status aeg_pretok_split(const aeg_pretok *p, aeg_pretok_run *run, const uint8_t *text, size_t n,
                              aeg_pretok_fn piece, void *ctx, aegis_error *err);

/* The same pattern for PCRE2, NUL-terminated (aeg_free). */
aegis_status aeg_pattern_translate(const char *text, size_t n, char **out, aeg_memory *memory, aegis_error *err);

#endif
