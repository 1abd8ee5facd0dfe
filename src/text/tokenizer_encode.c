/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"
#include "text/tokenizer_bpe.h"
#include "text/tokenizer_open.h"

typedef struct {
    const aeg_tokenizer *tok;
    aeg_pretok_run *run;
    aeg_bpe_room room;
    uint32_t flags;
    uint32_t *ids;
    size_t cap, count;
} encoder;

static void emit(void *ctx, const uint32_t *ids, size_t n)
{
    encoder *e = ctx;
    if (e->count < e->cap)
        memcpy(e->ids + e->count, ids, AEG_MIN(n, e->cap - e->count) * sizeof(ids[0]));
    e->count += n;
}

static void emit_template(encoder *e, uint32_t from, uint32_t n)
{
    const uint8_t *p = e->tok->table.section[AEG_TT_TEMPLATE] + (size_t)from * 4;
    if ((e->flags & AEG_TOKENIZE_TEMPLATE) == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = aeg_tt_u32(p + (size_t)i * 4);
        emit(e, &id, 1);
    }
}

static aegis_status encode_piece(void *ctx, const uint8_t *piece, size_t n, aegis_error *err)
{
    encoder *e = ctx;
    const aeg_token_table *t = &e->tok->table;
    uint32_t whole;
    /* a piece that is a token is that token */
    if ((t->f.options & AEG_TT_IGNORE_MERGES) != 0 && aeg_tt_find(t, piece, n, &whole)) {
        emit(e, &whole, 1);
        return AEGIS_OK;
    }
    if (n <= AEG_BPE_SHORT) {
        uint32_t ids[AEG_BPE_SHORT];
        emit(e, ids, aeg_bpe_short(t, piece, (uint32_t)n, ids));
        return AEGIS_OK;
    }
    const size_t count = e->count;
    bool exact = false;
    for (size_t window = AEG_BPE_WINDOW; !exact; window *= 8) {
        e->count = count;
        AEG_TRY(aeg_bpe_windows(t, &e->room, piece, n, window, emit, e, &exact, err));
    }
    return AEGIS_OK;
}

/* Text without added tokens, normalised. */
static aegis_status encode_text(encoder *e, const uint8_t *text, size_t n, aegis_error *err)
{
    const aeg_tokenizer *tok = e->tok;
    if (n == 0)
        return AEGIS_OK;
    if ((tok->table.f.options & AEG_TT_PREFIX_SPACE) == 0 || text[0] == ' ')
        return aeg_pretok_split(tok->pretok, e->run, text, n, encode_piece, e, err);

    uint8_t *spaced = aeg_malloc(tok->memory, n + 1);
    if (spaced == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory to tokenize %zu bytes of text", n);
    spaced[0] = ' ';
    memcpy(spaced + 1, text, n);
    const aegis_status status = aeg_pretok_split(tok->pretok, e->run, spaced, n + 1, encode_piece, e, err);
    aeg_free(tok->memory, spaced);
    return status;
}

typedef aegis_status (*span_fn)(encoder *e, const uint8_t *text, size_t n, aegis_error *err);

/* Emit the added tokens of `set` and hand what lies between them to `span`. */
static aegis_status split_added(encoder *e, const aeg_added_set *set, const uint8_t *text, size_t n, span_fn span,
                                aegis_error *err)
{
    size_t at = 0;
    aeg_added_match m;
    /* a SentencePiece's own symbols are part of its vocabulary, whoever typed the text */
    const bool always = set == &e->tok->normalized && (e->tok->table.f.options & AEG_TT_SCORES) != 0;
    while (((e->flags & AEG_TOKENIZE_ADDED) != 0 || always) && aeg_added_next(set, text, n, at, &m)) {
        AEG_TRY(span(e, text + at, m.start - at, err));
        emit(e, &m.id, 1);
        at = m.end;
    }
    return span(e, text + at, n - at, err);
}

/* A chunk of a SentencePiece text: a space in front, U+2581 as the space that it is escaped to. */
static aegis_status encode_chunk(encoder *e, const uint8_t *text, size_t n, aegis_error *err)
{
    const aeg_tokenizer *tok = e->tok;
    uint8_t *chunk = aeg_malloc(tok->memory, n + 1);
    size_t at = 0;
    if (chunk == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory to tokenize %zu bytes of text", n);
    if ((tok->table.f.options & AEG_TT_CHUNK_SPACE) != 0)
        chunk[at++] = ' ';
    for (size_t i = 0; i < n;) {
        const bool escaped = n - i >= 3 && memcmp(text + i, "\xe2\x96\x81", 3) == 0;
        chunk[at++] = escaped ? ' ' : text[i];
        i += escaped ? 3 : 1;
    }
    const aegis_status status = split_added(e, &tok->normalized, chunk, at, encode_text, err);
    aeg_free(tok->memory, chunk);
    return status;
}

static aegis_status encode_raw(encoder *e, const uint8_t *text, size_t n, aegis_error *err)
{
    const aeg_tokenizer *tok = e->tok;
    if (n == 0)
        return AEGIS_OK;
    if ((tok->table.f.options & AEG_TT_SCORES) != 0)
        return encode_chunk(e, text, n, err);
    if (aeg_normal_quick(text, n, tok->form))
        return split_added(e, &tok->normalized, text, n, encode_text, err);

    uint8_t *normal = NULL;
    size_t normal_n = 0;
    AEG_TRY(aeg_normalize(text, n, tok->form, &normal, &normal_n, tok->memory, err));
    const aegis_status status = split_added(e, &tok->normalized, normal, normal_n, encode_text, err);
    aeg_free(tok->memory, normal);
    return status;
}

static aegis_status encode_valid(encoder *e, const uint8_t *text, size_t n, aegis_error *err)
{
    const aeg_tt_fields *f = &e->tok->table.f;
    AEG_TRY(aeg_pretok_begin(&e->run, e->tok->pretok, err));
    emit_template(e, 0, f->n_prefix);
    const aegis_status status = split_added(e, &e->tok->raw, text, n, encode_raw, err);
    emit_template(e, f->n_prefix, f->n_suffix);
    aeg_pretok_end(e->tok->pretok, e->run);
    aeg_bpe_room_free(&e->room);
    return status;
}

aegis_status aeg_tokenizer_encode(const aeg_tokenizer *tok, const char *text, size_t n, uint32_t flags,
                                  uint32_t *ids, size_t cap, size_t *count, aegis_error *err)
{
    const uint8_t *bytes = (const uint8_t *)text;
    encoder e = { .tok = tok, .room.memory = tok->memory, .flags = flags, .ids = ids, .cap = cap };
    if (n > AEG_TOKENIZER_MAX_TEXT)
        return aeg_fail(err, AEGIS_E_USAGE, "text of %zu bytes, expected at most %d", n, AEG_TOKENIZER_MAX_TEXT);
    aegis_status status;
    if (aeg_utf8_valid(bytes, n) == n) {
        status = encode_valid(&e, bytes, n, err);
    } else {
        uint8_t *repaired = aeg_malloc(tok->memory, 3 * n);
        if (repaired == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "no memory to tokenize %zu bytes of broken UTF-8", n);
        const size_t repaired_n = aeg_utf8_repair(repaired, bytes, n);
        status = encode_valid(&e, repaired, repaired_n, err);
        aeg_free(tok->memory, repaired);
    }
    if (status == AEGIS_OK)
        *count = e.count;
    return status;
}
