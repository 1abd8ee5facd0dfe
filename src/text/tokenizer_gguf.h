/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer_gguf.h - the tokenizer in the metadata of a GGUF file (tokenizer.ggml.*) -> a table.
 *
 * Two models: "gpt2" (byte-level BPE by merges; the file names its patterns, tokenizer_pre.h) and "llama" (BPE by scores,
 * tokenizer_score.h). Another model or pattern, a merge of unknown tokens, ids beyond the vocabulary are AEGIS_E_MODEL.
 * Memory: about 40 bytes per token besides the table. Thread: any.
 */
#ifndef AEG_TEXT_TOKENIZER_GGUF_H
#define AEG_TEXT_TOKENIZER_GGUF_H

#include "format/gguf.h"
#include "text/tokenizer_build.h"

/* As aeg_tokenizer_compile. *out = NULL if the file has no tokenizer ("none" or no key). */
aegis_status aeg_tokenizer_compile_gguf(const aeg_gguf *g, uint8_t **out, size_t *out_n, aeg_memory *memory,
                                        aegis_error *err);

/* As in the file, and in SentencePiece. */
enum { AEG_PIECE_NORMAL = 1, AEG_PIECE_UNKNOWN, AEG_PIECE_CONTROL, AEG_PIECE_USER, AEG_PIECE_UNUSED, AEG_PIECE_BYTE };

#endif
