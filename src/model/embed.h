/* SPDX-License-Identifier: Apache-2.0 */
/* model/embed.h - the embedding rows of a chunk, read together.
 *
 * embed.bin never sits in memory: a token reads its row. All distinct rows of a chunk are on their way at once, as many
 * as there are places; a token that comes twice is read once. Other reads of the same queue (guesses that are still on
 * their way) are handed to their streamer.
 * Memory: AEG_EMBED_PLACES rows at most and a table of 8 to 16 bytes per token of a chunk. Both are idle outside aeg_embed_read, so
 * they may be carved where other scratch lies. Thread: owner only.
 */
#ifndef AEG_MODEL_EMBED_H
#define AEG_MODEL_EMBED_H

#include "base/arena.h"
#include "base/error.h"
#include "expert/store.h"
#include "expert/streamer.h"
#include "io/io.h"

enum { AEG_EMBED_PLACES = 32 }; /* the depth of the engine's queue */

typedef struct {
    const aeg_store_embed *table;
    uint32_t n_places, n_buckets;
    uint64_t place_bytes;      /* the blocks that a row may touch */
    uint8_t *places;           /* [n_places][place_bytes]         */
    uint32_t *buckets;         /* [n_buckets] place in the chunk of a token's first occurrence, plus one */
} aeg_embed_room;

void aeg_embed_room_init(aeg_embed_room *room, aeg_arena *arena, const aeg_store_embed *table, uint32_t chunk);

/* x [n][n_cols] f32: rows of tokens[n], n <= chunk, each below n_rows. `streamer` may be NULL if nothing else is read
 * through `io`. AEGIS_E_IO names the token; none of these reads is in flight afterwards, unless
 * waiting for the queue itself failed: then the queue is of no further use. */
aegis_status aeg_embed_read(aeg_embed_room *room, aeg_io *io, aeg_streamer *streamer, const uint32_t *tokens, uint32_t n,
                            float *x, aegis_error *err);

#endif
