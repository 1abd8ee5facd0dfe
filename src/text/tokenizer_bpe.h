/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer_bpe.h - byte-pair merging of one piece.
 *
 * Start from the token of each byte; join the adjacent pair of lowest rank, leftmost on ties, until no pair has
 * a merge. Short pieces scan for the lowest rank; long ones keep a heap, so a piece of n bytes costs n log n.
 * Thread: the room belongs to one encode call.
 */
#ifndef AEG_TEXT_TOKENIZER_BPE_H
#define AEG_TEXT_TOKENIZER_BPE_H

#include "base/memory.h"
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

/* A piece of any length below 2^32. The ids stand in room->id, and so do *n_ids of them, until the next call. */
aegis_status aeg_bpe_long(const aeg_token_table *t, aeg_bpe_room *room, const uint8_t *piece, size_t n,
                          size_t *n_ids, aegis_error *err);

void aeg_bpe_room_free(aeg_bpe_room *room);

#endif
