/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer_pre.h - how a byte-level vocabulary cuts text, by the name that GGUF files give it
 * (tokenizer.ggml.pre): the file names the patterns, it does not carry them. Thread: any. */
#ifndef AEG_TEXT_TOKENIZER_PRE_H
#define AEG_TEXT_TOKENIZER_PRE_H

#include <stdbool.h>

#include "text/tokenizer_table.h"

typedef struct {
    const char *name;
    const char *patterns[AEG_TT_MAX_PATTERNS]; /* one after the other; NULL at the end */
    uint32_t options;                          /* AEG_TT_NFC, AEG_TT_IGNORE_MERGES     */
    bool bos;                                  /* a beginning is added where the file does not say */
} aeg_pre;

/* NULL if the name is not known. */
const aeg_pre *aeg_pre_find(const char *name, size_t n);

/* "deepseek-llm, ...": for messages. */
void aeg_pre_list(char *out, size_t room);

#endif
