/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer_spm.h - a SentencePiece model file (tokenizer.model) -> a table.
 *
 * Reads the protobuf of the file itself: pieces (text, score, type), the kind of training, the normaliser's switches. Only
 * BPE with byte pieces and without normalisation rules is understood; anything else is AEGIS_E_MODEL by name.
 * Which control pieces are found in text, and which tokens stand around it, is in tokenizer_config.json (may be NULL: those
 * that the pieces' names tell). Thread: any.
 */
#ifndef AEG_TEXT_TOKENIZER_SPM_H
#define AEG_TEXT_TOKENIZER_SPM_H

#include "text/tokenizer.h"

/* As aeg_tokenizer_compile. */
aegis_status aeg_tokenizer_compile_spm(const uint8_t *model, size_t n, const char *config_json, size_t config_n, uint8_t **out,
                                       size_t *out_n, aeg_memory *memory, aegis_error *err);

#endif
