/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer_bpe.h"

#include "base/checked.h"
#include "base/utf8.h"

static uint32_t byte_id(const aeg_token_table *t, uint8_t byte)
{
    return aeg_tt_u32(t->section[AEG_TT_BYTE_IDS] + (size_t)byte * 4);
}

/* The symbol that merging starts with at `p`: the token of a byte, or of a character where scores decide (a byte of it, if
 * it has none); returns its bytes. */
static uint32_t first_symbol(const aeg_token_table *t, const uint8_t *p, size_t n, uint32_t *id)
{
    if ((t->f.options & AEG_TT_SCORES) != 0) {
        uint32_t code, length;
        if (aeg_utf8_step(p, n, &code, &length) == AEG_UTF8_OK && aeg_tt_find(t, p, length, id))
            return length;
    }
    *id = byte_id(t, p[0]);
    return 1;
}

uint32_t aeg_bpe_short(const aeg_token_table *t, const uint8_t *piece, uint32_t n_bytes, uint32_t *ids)
{
    uint32_t rank[AEG_BPE_SHORT], merged[AEG_BPE_SHORT]; /* of the pair (i, i + 1) */
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_bytes; n++)
        i += first_symbol(t, piece + i, n_bytes - i, &ids[n]);
    for (uint32_t i = 0; i + 1 < n; i++)
        rank[i] = aeg_tt_merge(t, ids[i], ids[i + 1], &merged[i]);
    while (n > 1) {
        uint32_t best = 0;
        for (uint32_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == UINT32_MAX)
            break;
        ids[best] = merged[best];
        n--;
        for (uint32_t i = best + 1; i < n; i++)
            ids[i] = ids[i + 1];
        for (uint32_t i = best + 1; i + 1 < n; i++) {
            rank[i] = rank[i + 1];
            merged[i] = merged[i + 1];
        }
        if (best + 1 < n)
            rank[best] = aeg_tt_merge(t, ids[best], ids[best + 1], &merged[best]);
        if (best > 0)
            rank[best - 1] = aeg_tt_merge(t, ids[best - 1], ids[best], &merged[best - 1]);
    }
    return n;
}

/* Heap keys: rank above position, so the smallest is the lowest rank and the leftmost of equals. */
static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    const uint64_t key = heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= key)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = key;
}

static void heap_push(uint64_t *heap, size_t *n, uint64_t key)
{
    size_t i = (*n)++;
    while (i > 0 && heap[(i - 1) / 2] > key) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = key;
}

static uint64_t heap_pop(uint64_t *heap, size_t *n)
{
    const uint64_t top = heap[0];
    heap[0] = heap[--*n];
    if (*n > 0)
        sift_down(heap, *n, 0);
    return top;
}

static aegis_status reserve(aeg_bpe_room *room, size_t n, aegis_error *err)
{
    if (n <= room->n_max)
        return AEGIS_OK;
    aeg_bpe_room_free(room);
    /* Heap: at most n - 1 pairs to begin with, and each of at most n - 1 merges takes one out and puts two in. */
    const size_t heap_bytes = 2 * n * sizeof(uint64_t), id_bytes = n * sizeof(uint32_t);
    room->heap = aeg_malloc(room->memory, heap_bytes + id_bytes + n * sizeof(uint16_t));
    if (room->heap == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory to tokenize a piece of %zu bytes", n);
    room->id = (uint32_t *)(room->heap + 2 * n);
    room->length = (uint16_t *)(room->id + n);
    room->n_max = n;
    return AEGIS_OK;
}

void aeg_bpe_room_free(aeg_bpe_room *room)
{
    aeg_free(room->memory, room->heap);
    room->heap = NULL;
    room->n_max = 0;
}

/* A symbol lives at the position of its first byte: id there, its length there and at its last byte, so that both
 * neighbours are one step away and no links are kept. Positions inside a symbol have the id UINT32_MAX.
 * Lengths fit 16 bits: a merge joins lengths exactly and a token has at most AEG_TOKEN_MAX_BYTES. */
typedef struct {
    const aeg_token_table *t;
    const aeg_bpe_room *r;
    size_t n, n_heap;
} merger;

static void offer(merger *m, size_t at)
{
    const size_t next = at + m->r->length[at];
    uint32_t merged;
    if (next >= m->n)
        return;
    const uint32_t rank = aeg_tt_merge(m->t, m->r->id[at], m->r->id[next], &merged);
    if (rank != UINT32_MAX)
        heap_push(m->r->heap, &m->n_heap, (uint64_t)rank << 32 | at);
}

static void merge_all(merger *m)
{
    uint32_t *id = m->r->id;
    uint16_t *length = m->r->length;
    while (m->n_heap > 0) {
        const uint64_t key = heap_pop(m->r->heap, &m->n_heap);
        const size_t at = (uint32_t)key;
        if (id[at] == UINT32_MAX)
            continue;
        const size_t next = at + length[at];
        uint32_t merged = 0;
        /* The pair that was offered may be gone: only what is there now counts. */
        if (next >= m->n || aeg_tt_merge(m->t, id[at], id[next], &merged) != (uint32_t)(key >> 32))
            continue;
        const uint16_t joined = (uint16_t)(length[at] + length[next]);
        id[at] = merged;
        id[next] = UINT32_MAX;
        length[at] = joined;
        length[at + joined - 1] = joined;
        offer(m, at);
        if (at > 0)
            offer(m, at - length[at - 1]);
    }
}

aegis_status aeg_bpe_long(const aeg_token_table *t, aeg_bpe_room *room, const uint8_t *piece, size_t n,
                          size_t *n_ids, aegis_error *err)
{
    AEG_TRY(reserve(room, n, err));
    merger m = { .t = t, .r = room, .n = n };
    for (size_t i = 0; i < n;) {
        const uint32_t length = first_symbol(t, piece + i, n - i, &room->id[i]);
        for (uint32_t k = 1; k < length; k++)
            room->id[i + k] = UINT32_MAX;
        room->length[i] = room->length[i + length - 1] = (uint16_t)length;
        i += length;
    }
    for (size_t i = 0, next; (next = i + room->length[i]) < n; i = next) {
        uint32_t merged;
        const uint32_t rank = aeg_tt_merge(t, room->id[i], room->id[next], &merged);
        if (rank != UINT32_MAX)
            room->heap[m.n_heap++] = (uint64_t)rank << 32 | i;
    }
    for (size_t i = m.n_heap / 2; i-- > 0;)
        sift_down(room->heap, m.n_heap, i);
    merge_all(&m);

    size_t kept = 0;
    for (size_t i = 0; i < n;) {
        const size_t step = room->length[i];
        room->id[kept++] = room->id[i];
        i += step;
    }
    *n_ids = kept;
    return AEGIS_OK;
}

/* Is [left, right] the result for the text of the two, which stands around `border`? */
static aegis_status check_border(const aeg_token_table *t, aeg_bpe_room *room, const uint8_t *border, uint32_t left,
                                 uint32_t right, bool *exact, aegis_error *err)
{
    uint32_t left_n, right_n;
    size_t n_ids = 0;
    aeg_tt_token(t, left, &left_n);
    aeg_tt_token(t, right, &right_n);
    AEG_TRY(aeg_bpe_long(t, room, border - left_n, (size_t)left_n + right_n, &n_ids, err));
    *exact = n_ids == 2 && room->id[0] == left && room->id[1] == right;
    return AEGIS_OK;
}

/* How many of a window's tokens to keep: what lies near its end might differ with more text after it. */
static size_t settled(const aeg_token_table *t, const uint32_t *ids, size_t n_ids, size_t *bytes)
{
    enum { MARGIN_TOKENS = 64, MARGIN_BYTES = AEG_TOKEN_MAX_BYTES };
    size_t dropped = 0, dropped_bytes = 0;
    while (n_ids > 1 && dropped < MARGIN_TOKENS && dropped_bytes < MARGIN_BYTES) {
        uint32_t n;
        aeg_tt_token(t, ids[--n_ids], &n);
        dropped_bytes += n;
        dropped++;
    }
    *bytes -= dropped_bytes;
    return n_ids;
}

aegis_status aeg_bpe_windows(const aeg_token_table *t, aeg_bpe_room *room, const uint8_t *piece, size_t n, size_t window,
                             aeg_bpe_emit emit, void *ctx, bool *exact, aegis_error *err)
{
    uint32_t last = AEG_TOKEN_NONE; /* of the tokens already emitted */
    for (size_t at = 0; at < n;) {
        size_t bytes = AEG_MIN(window, n - at), n_ids = 0;
        AEG_TRY(aeg_bpe_long(t, room, piece + at, bytes, &n_ids, err));
        const uint32_t first = room->id[0];
        if (last != AEG_TOKEN_NONE) {
            aeg_bpe_room small = { .memory = room->memory }; /* `room` holds the window's ids */
            const aegis_status status = check_border(t, &small, piece + at, last, first, exact, err);
            aeg_bpe_room_free(&small);
            if (status != AEGIS_OK || !*exact)
                return status;
        }
        if (at + bytes < n)
            n_ids = settled(t, room->id, n_ids, &bytes);
        emit(ctx, room->id, n_ids);
        last = room->id[n_ids - 1];
        at += bytes;
    }
    *exact = true;
    return AEGIS_OK;
}
