/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer_bpe.h - byte-pair merging of one piece.
 *
 * Start from the token of each byte (of each character, where scores give the ranks: tokenizer_score.h); join the adjacent pair of lowest rank, leftmost on ties, until no pair has
 * a merge. Short pieces scan for the lowest rank; long ones keep a heap, n log n steps for n bytes.
 *
 * Very long pieces (a megabyte of spaces is one) go window by window, so that room and time per byte stay those
 * of one window. What makes it exact: a row of tokens is the result for its text if and only if each neighbouring
 * pair is the result for the text of the two. (Follow the merges of the whole text up to the first that crosses a
 * border of the row: until then each token's part merges as it does on its own, so the same merge would come first
 * across that border with only the two tokens there.) So each window starts at the border of a token that the
 * window before found some way from its own end, and only the pair across that border needs checking.
 * Thread: the room belongs to one encode call.
 */
#ifndef AEG_TEXT_TOKENIZER_BPE_H
#define AEG_TEXT_TOKENIZER_BPE_H

#include "base/memory.h"
#include "text/tokenizer.h"
#include "text/tokenizer_table.h"

typedef struct {
    aeg_memory *memory;
    size_t n_max;   /* bytes of piece there is room for */
    uint64_t *heap; /* one block with id and length     */
    uint32_t *id;
    uint16_t *length;
} aeg_bpe_room;

enum { AEG_BPE_SHORT = 48 }; /* bytes; the scan is quadratic, the heap has a constant cost */

/* Ids of a piece of 1 to AEG_BPE_SHORT bytes into `ids` (room for n); returns their number. */
uint32_t aeg_bpe_short(const aeg_token_table *t, const uint8_t *piece, uint32_t n, uint32_t *ids);

/* The whole piece (below 2^32 bytes) in one window. The ids stand in room->id, and so do *n_ids of them, until the next call. */
aegis_status aeg_bpe_long(const aeg_token_table *t, aeg_bpe_room *room, const uint8_t *piece, size_t n,
                          size_t *n_ids, aegis_error *err);

enum { AEG_BPE_WINDOW = 64 << 10, AEG_BPE_MIN_WINDOW = 4 * AEG_TOKEN_MAX_BYTES };

typedef void (*aeg_bpe_emit)(void *ctx, const uint32_t *ids, size_t n);

/* The same in windows of `window` bytes (at least AEG_BPE_MIN_WINDOW). *exact becomes false, and what was emitted
 * is worthless, if two windows do not fit together: try again with a larger one; one that holds the piece fits. */
aegis_status aeg_bpe_windows(const aeg_token_table *t, aeg_bpe_room *room, const uint8_t *piece, size_t n, size_t window,
                             aeg_bpe_emit emit, void *ctx, bool *exact, aegis_error *err);

void aeg_bpe_room_free(aeg_bpe_room *room);

#endif
