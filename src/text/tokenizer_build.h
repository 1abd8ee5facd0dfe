/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer_build.h - from a tokenizer's parts, whatever file they came from, to its table.
 *
 * A reader (tokenizer.json, a GGUF's arrays, a SentencePiece model) fills a source; aeg_tokenizer_build()
 * checks it and writes the table of tokenizer_table.h. Everything in a source is a loan from the reader.
 */
#ifndef AEG_TEXT_TOKENIZER_BUILD_H
#define AEG_TEXT_TOKENIZER_BUILD_H

#include "text/tokenizer.h"
#include "text/tokenizer_table.h"

typedef struct {
    const uint8_t *bytes; /* what the token stands for, not its spelling in the byte alphabet */
    uint32_t n;
    uint32_t flags;       /* AEG_TT_PRESENT, ...; 0: an unused id */
} aeg_source_token;

typedef struct {
    uint32_t left, right, merged;
    uint32_t rank; /* with AEG_TT_SCORES, else the place in the list counts */
} aeg_source_merge;

typedef struct {
    const uint8_t *text; /* as it is matched: normalised if AEG_TT_NORMALIZED */
    uint32_t n;
    uint32_t id;
    uint32_t flags;      /* AEG_TT_LSTRIP, ... */
} aeg_source_added;

typedef struct {
    const char *text;
    uint32_t n;
    uint32_t flags;      /* AEG_TT_DROP_GAPS */
} aeg_source_pattern;

typedef struct {
    aeg_source_token *tokens;
    uint32_t n_tokens;
    aeg_source_merge *merges;   /* in order of rank; a pair given twice has the later rank */
    uint32_t n_merges;
    aeg_source_added *added;    /* sorted by the build */
    uint32_t n_added;
    aeg_source_pattern patterns[AEG_TT_MAX_PATTERNS];
    uint32_t n_patterns;
    uint32_t options;           /* AEG_TT_NFC, ... */
    uint32_t bos, eos, pad;
    uint32_t prefix[AEG_TT_MAX_TEMPLATE], suffix[AEG_TT_MAX_TEMPLATE];
    uint32_t n_prefix, n_suffix;
} aeg_tokenizer_source;

aegis_status aeg_tokenizer_build(const aeg_tokenizer_source *source, uint8_t **out, size_t *out_n,
                                 aeg_memory *memory, aegis_error *err);

/* The byte that a character of the byte alphabet stands for, or -1: 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand
 * for themselves, the other 68 bytes in ascending order are U+0100 and up. */
int aeg_byte_alphabet(uint32_t code);

#endif
