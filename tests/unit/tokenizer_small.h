/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_small - a tokenizer.json of 256 byte tokens, a few merges, and whatever a test changes. */
#ifndef AEG_TESTS_TOKENIZER_SMALL_H
#define AEG_TESTS_TOKENIZER_SMALL_H

#include <stddef.h>

/* JSON texts; NULL: as described. The byte tokens have ids 0 to 255, in order of the bytes. */
typedef struct {
    const char *model_options; /* "" ; for instance "\"ignore_merges\": true," */
    const char *vocab;         /* ", \"he\": 256, \"hel\": 257, \"lo\": 258, \"hello\": 259, \"ll\": 260" */
    const char *merges;        /* "[\"h e\", \"l o\", \"l l\"]" */
    const char *added;         /* "[]" */
    const char *normalizer;    /* "null" */
    const char *pre_tokenizer; /* ByteLevel with its pattern */
    const char *post_processor; /* "null" */
    const char *decoder;       /* ByteLevel */
} small_tokenizer;

/* The text, in a static buffer that the next call overwrites. */
const char *small_tokenizer_json(const small_tokenizer *s);

#endif
