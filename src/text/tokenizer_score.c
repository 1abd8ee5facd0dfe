/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/utf8.h"
#include "text/tokenizer_gguf.h"

bool aeg_score_registered(const uint8_t *text, size_t n)
{
    static const char *const silent[] = { "<_observation>", "<_sep>" };
    static const char control[] = "<_control";
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++)
        if (strlen(silent[i]) == n && memcmp(silent[i], text, n) == 0)
            return false;
    return n < sizeof control || memcmp(text, control, sizeof control - 1) != 0;
}

typedef struct {
    aeg_tokenizer_source *s;
    const aeg_score_piece *pieces;
    const char *path;
    aeg_memory *memory;
    aegis_error *err;
    uint32_t *slots;   /* ids of normal and user pieces by their bytes, AEG_TOKEN_NONE: empty */
    uint32_t n_slots;
    uint32_t *rank;    /* by id */
    uint32_t room;     /* merges */
    uint32_t n_unformed, unformed; /* pieces that encoding never gives, and one of them */
} builder;

/* --- tokens ------------------------------------------------------------------------------------------------------------- */

static uint32_t unescape(uint8_t *out, const uint8_t *text, uint32_t n)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < n;) {
        const bool space = n - i >= 3 && memcmp(text + i, "\xe2\x96\x81", 3) == 0;
        out[at++] = space ? ' ' : text[i];
        i += space ? 3 : 1;
    }
    return at;
}

static int hex(uint8_t c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

/* "<0x0A>", or -1. */
static int byte_of(const aeg_score_piece *p)
{
    if (p->n != 6 || memcmp(p->text, "<0x", 3) != 0 || p->text[5] != '>' || hex(p->text[3]) < 0 || hex(p->text[4]) < 0)
        return -1;
    return hex(p->text[3]) * 16 + hex(p->text[4]);
}

static void add(aeg_tokenizer_source *s, uint32_t id, const uint8_t *text, uint32_t n, uint32_t flags)
{
    s->added[s->n_added++] = (aeg_source_added){ .text = text, .n = n, .id = id, .flags = flags };
}

static aegis_status fill_token(builder *b, uint32_t id, uint8_t *pool, size_t *at)
{
    static const uint8_t unknown[] = " \xe2\x81\x87 ";
    const aeg_score_piece *p = &b->pieces[id];
    aeg_source_token *t = &b->s->tokens[id];
    uint8_t *bytes = pool + *at;
    *t = (aeg_source_token){ .bytes = p->text, .n = p->n, .flags = AEG_TT_PRESENT };
    switch (p->type) {
    case AEG_PIECE_BYTE: {
        const int byte = byte_of(p);
        if (byte < 0)
            return aeg_fail(b->err, AEGIS_E_MODEL, "%s: byte piece %u is '%.*s', expected '<0x00>' to '<0xFF>'", b->path, id,
                            (int)AEG_MIN(p->n, 40u), (const char *)p->text);
        bytes[0] = (uint8_t)byte;
        *at += 1;
        *t = (aeg_source_token){ .bytes = bytes, .n = 1, .flags = AEG_TT_PRESENT | AEG_TT_BYTE };
        return AEGIS_OK;
    }
    case AEG_PIECE_CONTROL:
        t->flags |= AEG_TT_SPECIAL | (p->registered ? AEG_TT_IS_ADDED : 0);
        if (!p->registered || p->n == 0)
            t->n = 0;
        else
            add(b->s, id, p->text, p->n, 0);
        return AEGIS_OK;
    case AEG_PIECE_UNKNOWN:
        *t = (aeg_source_token){ .bytes = unknown, .n = sizeof unknown - 1, .flags = AEG_TT_PRESENT | AEG_TT_IS_ADDED | AEG_TT_SPECIAL };
        return AEGIS_OK;
    case AEG_PIECE_UNUSED: *t = (aeg_source_token){ 0 }; return AEGIS_OK;
    default:
        if (p->n == 0) {
            *t = (aeg_source_token){ 0 };
            return AEGIS_OK;
        }
        t->bytes = bytes;
        t->n = unescape(bytes, p->text, p->n);
        *at += t->n;
        if (p->type == AEG_PIECE_USER) {
            t->flags |= AEG_TT_IS_ADDED;
            add(b->s, id, t->bytes, t->n, AEG_TT_NORMALIZED);
        }
        return AEGIS_OK;
    }
}

static uint32_t *slot_of(const builder *b, const uint8_t *text, uint32_t n)
{
    uint32_t slot = aeg_tt_slot(aeg_tt_hash_bytes(text, n), b->n_slots);
    while (b->slots[slot] != AEG_TOKEN_NONE) {
        const aeg_source_token *t = &b->s->tokens[b->slots[slot]];
        if (t->n == n && memcmp(t->bytes, text, n) == 0)
            break;
        slot = slot + 1 == b->n_slots ? 0 : slot + 1;
    }
    return &b->slots[slot];
}

static bool is_normal(const builder *b, uint32_t id) { return id != AEG_TOKEN_NONE && b->pieces[id].type == AEG_PIECE_NORMAL; }

static aegis_status fill_tokens(builder *b, uint8_t *pool)
{
    size_t at = 0;
    for (uint32_t id = 0; id < b->s->n_tokens; id++) {
        AEG_TRY(fill_token(b, id, pool, &at));
        const aeg_source_token *t = &b->s->tokens[id];
        if (t->n == 0 || (b->pieces[id].type != AEG_PIECE_NORMAL && b->pieces[id].type != AEG_PIECE_USER))
            continue;
        uint32_t *slot = slot_of(b, t->bytes, t->n);
        if (*slot != AEG_TOKEN_NONE)
            return aeg_fail(b->err, AEGIS_E_MODEL, "%s: pieces %u and %u have the same text '%.*s'", b->path, *slot, id,
                            (int)AEG_MIN(t->n, 80u), (const char *)t->bytes);
        *slot = id;
    }
    return AEGIS_OK;
}

/* --- merges ------------------------------------------------------------------------------------------------------------- */

typedef struct {
    float score;
    uint32_t id;
} scored;

static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Ranks in falling order of scores; equal scores share one. */
static aegis_status fill_ranks(builder *b)
{
    const uint32_t n = b->s->n_tokens;
    scored *order = aeg_calloc(b->memory, n, sizeof *order);
    if (order == NULL)
        return aeg_fail(b->err, AEGIS_E_MEMORY, "%s: no memory to sort %u pieces", b->path, n);
    for (uint32_t id = 0; id < n; id++)
        order[id] = (scored){ .score = b->pieces[id].score, .id = id };
    qsort(order, n, sizeof *order, by_score);
    for (uint32_t i = 0, rank = 0; i < n; i++) {
        rank += i > 0 && order[i].score != order[i - 1].score;
        b->rank[order[i].id] = rank;
    }
    aeg_free(b->memory, order);
    return AEGIS_OK;
}

static aegis_status add_merge(builder *b, uint32_t left, uint32_t right, uint32_t merged)
{
    aeg_tokenizer_source *s = b->s;
    if (s->n_merges == b->room) {
        const uint32_t room = b->room == 0 ? 4096 : b->room + b->room / 2;
        aeg_source_merge *grown = room > 16u * AEG_TT_MAX_TOKENS
                                      ? NULL
                                      : aeg_realloc(b->memory, s->merges, (size_t)room * sizeof *grown);
        if (grown == NULL)
            return aeg_fail(b->err, AEGIS_E_MEMORY, "%s: no memory for %u merges", b->path, room);
        s->merges = grown;
        b->room = room;
    }
    s->merges[s->n_merges++] = (aeg_source_merge){ .left = left, .right = right, .merged = merged, .rank = b->rank[merged] };
    return AEGIS_OK;
}

static uint32_t length_at(const aeg_source_token *t, uint32_t at)
{
    uint32_t length;
    aeg_utf8_get(t->bytes + at, &length);
    return length;
}

/* Every way to cut a piece between two characters into two pieces. SentencePiece would also build a piece from a character
 * that is no piece; here such a character becomes bytes at once, so the piece is left unformed, which is said. */
static aegis_status cut_piece(builder *b, uint32_t id)
{
    const aeg_source_token *t = &b->s->tokens[id];
    if (t->n == length_at(t, 0))
        return AEGIS_OK;
    for (uint32_t at = 0, length; at < t->n; at += length) {
        length = length_at(t, at);
        if (*slot_of(b, t->bytes + at, length) == AEG_TOKEN_NONE) {
            b->unformed = id;
            b->n_unformed++;
            return AEGIS_OK;
        }
    }
    for (uint32_t at = length_at(t, 0); at < t->n; at += length_at(t, at)) {
        const uint32_t left = *slot_of(b, t->bytes, at), right = *slot_of(b, t->bytes + at, t->n - at);
        if (is_normal(b, left) && is_normal(b, right))
            AEG_TRY(add_merge(b, left, right, id));
    }
    return AEGIS_OK;
}

static aegis_status check_pieces(const builder *b)
{
    bool seen[256] = { false };
    for (uint32_t id = 0; id < b->s->n_tokens; id++) {
        if (b->pieces[id].type == AEG_PIECE_BYTE)
            seen[b->s->tokens[id].bytes[0]] = true;
        if (!isfinite(b->pieces[id].score))
            return aeg_fail(b->err, AEGIS_E_MODEL, "%s: the score of piece %u is %g", b->path, id, (double)b->pieces[id].score);
    }
    for (int byte = 0; byte < 256; byte++)
        if (!seen[byte])
            return aeg_fail(b->err, AEGIS_E_MODEL, "%s: no byte piece '<0x%02X>'; a vocabulary without bytes is not supported", b->path,
                            byte);
    return AEGIS_OK;
}

static aegis_status fill(builder *b, uint8_t *pool)
{
    memset(b->slots, 0xff, (size_t)b->n_slots * sizeof b->slots[0]);
    AEG_TRY(fill_tokens(b, pool));
    AEG_TRY(check_pieces(b));
    AEG_TRY(fill_ranks(b));
    for (uint32_t id = 0; id < b->s->n_tokens; id++)
        if (is_normal(b, id) && b->s->tokens[id].n > 0)
            AEG_TRY(cut_piece(b, id));
    if (b->n_unformed > 0) {
        const aeg_source_token *t = &b->s->tokens[b->unformed];
        aeg_log(AEG_LOG_NOTICE, "%s: %u pieces such as '%.*s' have a character that is no piece: text is never encoded to them", b->path,
                   b->n_unformed, (int)AEG_MIN(t->n, 80u), (const char *)t->bytes);
    }
    return AEGIS_OK;
}

aegis_status aeg_score_source(aeg_tokenizer_source *s, const aeg_score_piece *pieces, uint8_t *pool, bool space,
                              const char *path, aeg_memory *memory, aegis_error *err)
{
    builder b = { .s = s, .pieces = pieces, .path = path, .memory = memory, .err = err, .n_slots = 2 * s->n_tokens + 8 };
    s->options = AEG_TT_SCORES | (space ? AEG_TT_CHUNK_SPACE : 0);
    b.slots = aeg_calloc(memory, b.n_slots, sizeof b.slots[0]);
    b.rank = aeg_calloc(memory, s->n_tokens, sizeof b.rank[0]);
    const aegis_status status = b.slots == NULL || b.rank == NULL
                                    ? aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for %u pieces", path, s->n_tokens)
                                    : fill(&b, pool);
    aeg_free(memory, b.rank);
    aeg_free(memory, b.slots);
    return status;
}
