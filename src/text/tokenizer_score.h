/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer_score.h - a SentencePiece BPE vocabulary -> the parts of a tokenizer.
 *
 * SentencePiece joins, again and again, the adjacent pair whose text is a piece with the highest score (leftmost on ties).
 * That is merging by rank, with one merge for each way to cut a piece into two pieces and the order of scores for ranks (ties
 * share one), so the table and the search of byte-level BPE serve both. Its U+2581 for spaces is a plain space here; a text's
 * own U+2581 becomes one before encoding, as it does there. Characters that are no piece become byte tokens.
 * Thread: any.
 */
#ifndef AEG_TEXT_TOKENIZER_SCORE_H
#define AEG_TEXT_TOKENIZER_SCORE_H

#include "text/tokenizer_build.h"

typedef struct {
    const uint8_t *text; /* valid UTF-8, spaces as U+2581 */
    uint32_t n;
    float score;
    uint8_t type;        /* AEG_PIECE_NORMAL, ... (tokenizer_gguf.h) */
    bool registered;     /* a control piece that is found in text; the others decode to nothing */
} aeg_score_piece;

/* Is a control piece of this name found in text? A file does not say. Xing4.0 registers all but <_observation>, <_sep> and
 * <_control1> and up, whose text is ordinary text (its tokenizer's rule); no other vocabulary has such names. */
bool aeg_score_registered(const uint8_t *text, size_t n);

/* Fill s: tokens [s->n_tokens] and added (as many) have room and are zeroed, merges are allocated (s->merges is to be freed whatever
 * comes back). `pool`: room for all texts, kept as long as s. `space`: a text begins with a space of its own.
 * AEGIS_E_MODEL: byte pieces are missing. A piece with a character that is no piece is never given; a notice says so. */
aegis_status aeg_score_source(aeg_tokenizer_source *s, const aeg_score_piece *pieces, uint8_t *pool, bool space,
                              const char *path, aeg_memory *memory, aegis_error *err);

#endif
