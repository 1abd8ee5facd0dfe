/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer_added.h - finding added tokens in text: leftmost, then longest. Thread: any. */
#ifndef AEG_TEXT_TOKENIZER_ADDED_H
#define AEG_TEXT_TOKENIZER_ADDED_H

#include "text/tokenizer_table.h"

/* One of the two groups of added tokens, with the entries of each first byte at hand. */
typedef struct {
    const aeg_token_table *t;
    uint32_t n;
    uint32_t first[257]; /* entries whose text begins with byte b: first[b] .. first[b + 1] */
} aeg_added_set;

typedef struct {
    size_t start, end; /* in the text, with the whitespace that the token strips */
    uint32_t id;
} aeg_added_match;

void aeg_added_set_init(aeg_added_set *set, const aeg_token_table *t, bool normalized);

/* The next added token in text[at..n), valid UTF-8; false if there is none. A match never starts before `at`. */
bool aeg_added_next(const aeg_added_set *set, const uint8_t *text, size_t n, size_t at, aeg_added_match *match);

#endif
