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

#endif
