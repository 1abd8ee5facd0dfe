/* SPDX-License-Identifier: Apache-2.0 */
#include "model/embed.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"

#define TAG_OURS (UINT64_C(1) << 63) /* then place << 32 | position in the chunk; a streamer's tags are slots */

static uint32_t buckets_for(uint32_t n)
{
    uint32_t buckets = 2;
    while (buckets < 2 * n)
        buckets *= 2;
    return buckets;
}

void aeg_embed_room_init(aeg_embed_room *room, aeg_arena *arena, const aeg_store_embed *table, uint32_t chunk)
{
    *room = (aeg_embed_room){ .table = table, .n_places = AEG_MIN(chunk, (uint32_t)AEG_EMBED_PLACES),
                              .n_buckets = buckets_for(chunk),
                              .place_bytes = aeg_align_up(table->row_bytes + AEG_IO_ALIGN - 1, AEG_IO_ALIGN) };
    room->places = aeg_arena_alloc(arena, room->n_places * room->place_bytes, AEG_PAGE);
    room->buckets = AEG_ARENA_ARRAY(arena, uint32_t, room->n_buckets);
}

typedef struct {
    aeg_embed_room *room;
    aeg_io *io;
    aeg_streamer *streamer;
    const uint32_t *tokens;
    float *x;
    uint32_t n, n_buckets, next, n_free, n_flight;
    uint32_t free[AEG_EMBED_PLACES];
    uint32_t failed;           /* position of the first row that could not be read, or n */
    int os_code;
} chunk_read;

/* Position of the token's first occurrence; `at` itself if there was none before. */
static uint32_t first_of(chunk_read *r, uint32_t at)
{
    const uint32_t mask = r->n_buckets - 1;
    uint32_t b = (r->tokens[at] * UINT32_C(2654435761)) & mask;
    while (r->room->buckets[b] != 0 && r->tokens[r->room->buckets[b] - 1] != r->tokens[at])
        b = (b + 1) & mask;
    if (r->room->buckets[b] == 0)
        r->room->buckets[b] = at + 1;
    return r->room->buckets[b] - 1;
}

static uint64_t row_offset(const chunk_read *r, uint32_t at)
{
    return r->tokens[at] * r->room->table->row_bytes;
}

static void queue_row(chunk_read *r, uint32_t at)
{
    const uint64_t offset = row_offset(r, at), first = offset - offset % AEG_IO_ALIGN;
    const uint64_t end = aeg_align_up(offset + r->room->table->row_bytes, AEG_IO_ALIGN);
    const uint32_t place = r->free[--r->n_free];
    const aeg_io_read read = { .file = AEG_FILE_EMBED, .bytes = (uint32_t)(end - first), .offset = first,
                               .dst = r->room->places + place * r->room->place_bytes,
                               .tag = TAG_OURS | (uint64_t)place << 32 | at };
    aeg_io_queue(r->io, &read);
    r->n_flight++;
}

static void queue_rows(chunk_read *r)
{
    for (; r->next < r->n && r->n_free > 0 && aeg_io_room(r->io) > 0; r->next++)
        if (first_of(r, r->next) == r->next)
            queue_row(r, r->next);
}

static void row_arrived(chunk_read *r, const aeg_io_done *done)
{
    const uint32_t place = (uint32_t)((done->tag & ~TAG_OURS) >> 32), at = (uint32_t)done->tag;
    const aeg_store_embed *table = r->room->table;
    const uint64_t skew = row_offset(r, at) % AEG_IO_ALIGN;
    r->n_flight--;
    r->free[r->n_free++] = place;
    /* A shorter file than its manifest says was refused at open; it may have been cut since. */
    const int os_code = done->os_code != 0 ? done->os_code : done->bytes < skew + table->row_bytes ? EIO : 0;
    if (os_code == 0) {
        aeg_store_embed_row(table, r->room->places + place * r->room->place_bytes + skew, r->x + (size_t)at * table->n_cols);
    } else if (r->failed == r->n) {
        r->failed = at;
        r->os_code = os_code;
        r->next = r->n;
    }
}

static aegis_status take_rows(chunk_read *r, aegis_error *err)
{
    aeg_io_done done[AEG_EMBED_PLACES];
    uint32_t n;
    AEG_TRY(aeg_io_wait(r->io, 1, done, AEG_EMBED_PLACES, &n, err));
    for (uint32_t i = 0; i < n; i++)
        if ((done[i].tag & TAG_OURS) != 0)
            row_arrived(r, &done[i]);
        else if (r->streamer != NULL)
            aeg_streamer_arrived(r->streamer, &done[i]);
    return AEGIS_OK;
}

/* The null back end reads nothing, and its places hold other scratch: rows must mean something there too. */
static aegis_status read_each(chunk_read *r, aegis_error *err)
{
    const aeg_store_embed *table = r->room->table;
    for (uint32_t t = 0; t < r->n; t++) {
        AEG_TRY(aeg_io_read_sync(r->io, AEG_FILE_EMBED, row_offset(r, t), r->room->places, table->row_bytes, err));
        aeg_store_embed_row(table, r->room->places, r->x + (size_t)t * table->n_cols);
    }
    return AEGIS_OK;
}

aegis_status aeg_embed_read(aeg_embed_room *room, aeg_io *io, aeg_streamer *streamer, const uint32_t *tokens, uint32_t n,
                            float *x, aegis_error *err)
{
    chunk_read r = { .room = room, .io = io, .streamer = streamer, .tokens = tokens, .x = x, .n = n, .failed = n,
                     .n_buckets = buckets_for(n), .n_free = room->n_places };
    const uint32_t n_cols = room->table->n_cols;
    if (!aeg_io_reads(io))
        return read_each(&r, err);
    memset(room->buckets, 0, r.n_buckets * sizeof *room->buckets);
    for (uint32_t i = 0; i < room->n_places; i++)
        r.free[i] = room->n_places - 1 - i;
    for (queue_rows(&r); r.n_flight > 0 || r.next < n; queue_rows(&r))
        AEG_TRY(take_rows(&r, err));
    if (r.failed < n)
        return aeg_fail_os(err, AEGIS_E_IO, r.os_code, "%s: the embedding of token %u, %llu bytes at offset %llu",
                           aeg_io_file_name(io, AEG_FILE_EMBED), tokens[r.failed], (unsigned long long)room->table->row_bytes,
                           (unsigned long long)row_offset(&r, r.failed));
    for (uint32_t t = 1; t < n; t++) {
        const uint32_t from = first_of(&r, t);
        if (from != t)
            memcpy(x + (size_t)t * n_cols, x + (size_t)from * n_cols, n_cols * sizeof *x);
    }
    return AEGIS_OK;
}
