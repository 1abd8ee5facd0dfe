/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer_open.h - what an open tokenizer is made of; for the tokenizer's own files. */
#ifndef AEG_TEXT_TOKENIZER_OPEN_H
#define AEG_TEXT_TOKENIZER_OPEN_H

#include "text/normalize.h"
#include "text/pretokenize.h"
#include "text/tokenizer.h"
#include "text/tokenizer_added.h"

struct aeg_tokenizer {
    aeg_memory *memory;
    aeg_token_table table;
    aeg_normal_form form;
    aeg_pretok *pretok;
    aeg_added_set raw;        /* matched before normalisation */
    aeg_added_set normalized; /* matched after                */
};

/* Bytes of a token in a text that is decoded; false: it adds none. *run_start goes from call to call, true at first: where a
 * vocabulary puts a space in front of each chunk, the first piece of a run between special tokens loses it again. */
bool aeg_tokenizer_text(const aeg_tokenizer *tok, uint32_t id, bool skip_special, bool *run_start, const uint8_t **bytes,
                        size_t *n);

#endif
