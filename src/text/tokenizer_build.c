/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer_build.h"

#include <stdlib.h>
#include <xxhash.h>

#include "base/checked.h"

int aeg_byte_alphabet(uint32_t code)
{
    if ((code >= 0x21 && code <= 0x7E) || (code >= 0xA1 && code <= 0xAC) || (code >= 0xAE && code <= 0xFF))
        return (int)code;
    if (code < 0x100 || code >= 0x100 + 68)
        return -1;
    const uint32_t k = code - 0x100; /* 33 below '!', then 0x7F-0xA0 (34), then 0xAD */
    return (int)(k < 33 ? k : k < 67 ? 0x7F + (k - 33) : 0xAD);
}

static void put_u32(uint8_t *p, uint32_t v) { memcpy(p, &v, sizeof(v)); }
static void put_u64(uint8_t *p, uint64_t v) { memcpy(p, &v, sizeof(v)); }

/* Slots for n entries at 60 % (short walks at 10 bytes per entry of waste), never full. */
static uint32_t slots_for(uint32_t n) { return (uint32_t)((uint64_t)n * 5 / 3 + 8); }

static int compare_added(const void *a, const void *b)
{
    const aeg_source_added *x = a, *y = b;
    const uint32_t xn = x->flags & AEG_TT_NORMALIZED, yn = y->flags & AEG_TT_NORMALIZED;
    if (xn != yn)
        return xn < yn ? -1 : 1;
    const int order = memcmp(x->text, y->text, AEG_MIN(x->n, y->n));
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

typedef struct {
    const aeg_tokenizer_source *s;
    aeg_tt_fields f;
    uint64_t size[AEG_TT_N_SECTIONS];
    uint64_t offset[AEG_TT_N_SECTIONS];
    uint64_t total;
    uint8_t *table;
} builder;

static aegis_status check_source(builder *b, aegis_error *err)
{
    const aeg_tokenizer_source *s = b->s;
    if (s->n_tokens == 0 || s->n_tokens > AEG_TT_MAX_TOKENS)
        return aeg_fail(err, AEGIS_E_MODEL, "tokenizer: %u tokens, expected 1 to %d", s->n_tokens, AEG_TT_MAX_TOKENS);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->n_tokens; i++) {
        if (s->tokens[i].n > AEG_TOKEN_MAX_BYTES)
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer: token %u has %u bytes, expected at most %d", i,
                            s->tokens[i].n, AEG_TOKEN_MAX_BYTES);
        bytes += s->tokens[i].n;
    }
    if (bytes > UINT32_MAX)
        return aeg_fail(err, AEGIS_E_MODEL, "tokenizer: more than 4 GiB of token bytes");
    for (uint32_t i = 0; i < s->n_merges; i++) {
        const aeg_source_merge *m = &s->merges[i];
        const aeg_source_token *l = &s->tokens[m->left], *r = &s->tokens[m->right], *j = &s->tokens[m->merged];
        if (l->n == 0 || r->n == 0 || j->n != l->n + r->n || memcmp(j->bytes, l->bytes, l->n) != 0 ||
            memcmp(j->bytes + l->n, r->bytes, r->n) != 0)
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer: merge %u joins tokens %u and %u into %u, whose bytes differ",
                            i, m->left, m->right, m->merged);
    }
    b->size[AEG_TT_TOKEN_BYTES] = bytes;
    return AEGIS_OK;
}

static aegis_status lay_out(builder *b, aegis_error *err)
{
    const aeg_tokenizer_source *s = b->s;
    b->f = (aeg_tt_fields){
        .n_tokens = s->n_tokens, .merge_slots = slots_for(s->n_merges), .n_added = s->n_added,
        .vocab_slots = (s->options & (AEG_TT_IGNORE_MERGES | AEG_TT_SCORES)) != 0 ? slots_for(s->n_tokens) : 0,
        .n_patterns = s->n_patterns, .options = s->options, .bos = s->bos, .eos = s->eos, .pad = s->pad,
        .n_prefix = s->n_prefix, .n_suffix = s->n_suffix,
    };
    qsort(s->added, s->n_added, sizeof(s->added[0]), compare_added);
    for (uint32_t i = 0; i < s->n_added; i++) {
        b->size[AEG_TT_ADDED_TEXT] += s->added[i].n;
        b->f.n_added_raw += (s->added[i].flags & AEG_TT_NORMALIZED) == 0;
        if (i > 0 && compare_added(&s->added[i - 1], &s->added[i]) == 0)
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer: added tokens %u and %u have the same text '%.*s'",
                            s->added[i - 1].id, s->added[i].id, (int)s->added[i].n, (const char *)s->added[i].text);
    }
    for (uint32_t i = 0; i < s->n_patterns; i++)
        b->size[AEG_TT_PATTERN_TEXT] += s->patterns[i].n;
    b->size[AEG_TT_TOKEN_START] = ((uint64_t)s->n_tokens + 1) * 4;
    b->size[AEG_TT_TOKEN_FLAGS] = s->n_tokens;
    b->size[AEG_TT_BYTE_IDS] = 256 * 4;
    b->size[AEG_TT_MERGES] = (uint64_t)b->f.merge_slots * 16;
    b->size[AEG_TT_VOCAB] = (uint64_t)b->f.vocab_slots * 4;
    b->size[AEG_TT_ADDED] = (uint64_t)s->n_added * 16;
    b->size[AEG_TT_PATTERNS] = (uint64_t)s->n_patterns * 12;
    b->size[AEG_TT_TEMPLATE] = ((uint64_t)s->n_prefix + s->n_suffix) * 4;
    uint64_t at = AEG_TT_HEADER;
    for (int i = 0; i < AEG_TT_N_SECTIONS; i++) {
        b->offset[i] = aeg_align_up(at, 64);
        at = b->offset[i] + b->size[i];
    }
    b->total = at;
    return AEGIS_OK;
}

static void fill_tokens(builder *b)
{
    const aeg_tokenizer_source *s = b->s;
    uint8_t *start = b->table + b->offset[AEG_TT_TOKEN_START], *bytes = b->table + b->offset[AEG_TT_TOKEN_BYTES];
    uint8_t *byte_ids = b->table + b->offset[AEG_TT_BYTE_IDS], *vocab = b->table + b->offset[AEG_TT_VOCAB];
    const bool scores = (s->options & AEG_TT_SCORES) != 0;
    uint32_t at = 0;
    memset(byte_ids, 0xFF, b->size[AEG_TT_BYTE_IDS]);
    memset(vocab, 0xFF, b->size[AEG_TT_VOCAB]);
    for (uint32_t id = 0; id < s->n_tokens; id++) {
        const aeg_source_token *t = &s->tokens[id];
        put_u32(start + (size_t)id * 4, at);
        b->table[b->offset[AEG_TT_TOKEN_FLAGS] + id] = (uint8_t)t->flags;
        if (t->n > 0)
            memcpy(bytes + at, t->bytes, t->n);
        at += t->n;
        if ((t->flags & AEG_TT_PRESENT) == 0 || (t->flags & AEG_TT_IS_ADDED) != 0 || t->n == 0)
            continue;
        const bool byte = (t->flags & AEG_TT_BYTE) != 0, stands_for_byte = !scores || byte;
        if (t->n == 1 && stands_for_byte && aeg_tt_u32(byte_ids + t->bytes[0] * 4) == UINT32_MAX)
            put_u32(byte_ids + t->bytes[0] * 4, id);
        if (b->f.vocab_slots == 0 || byte)
            continue;
        uint32_t slot = aeg_tt_slot(aeg_tt_hash_bytes(t->bytes, t->n), b->f.vocab_slots);
        while (aeg_tt_u32(vocab + (size_t)slot * 4) != UINT32_MAX)
            slot = slot + 1 == b->f.vocab_slots ? 0 : slot + 1;
        put_u32(vocab + (size_t)slot * 4, id);
    }
    put_u32(start + (size_t)s->n_tokens * 4, at);
}

static aegis_status fill_merges(builder *b, aegis_error *err)
{
    uint8_t *slots = b->table + b->offset[AEG_TT_MERGES];
    memset(slots, 0xFF, b->size[AEG_TT_MERGES]);
    for (uint32_t i = 0; i < b->s->n_merges; i++) {
        const aeg_source_merge *m = &b->s->merges[i];
        uint32_t slot = aeg_tt_slot(aeg_tt_hash_pair(m->left, m->right), b->f.merge_slots);
        uint32_t walk = 0;
        uint8_t *p;
        while (p = slots + (size_t)slot * 16,
               aeg_tt_u32(p) != UINT32_MAX && (aeg_tt_u32(p) != m->left || aeg_tt_u32(p + 4) != m->right)) {
            slot = slot + 1 == b->f.merge_slots ? 0 : slot + 1;
            if (++walk > AEG_TT_MAX_WALK)
                return aeg_fail(err, AEGIS_E_MODEL, "tokenizer: more than %d merges share one hash", AEG_TT_MAX_WALK);
        }
        b->f.n_merges += aeg_tt_u32(p) == UINT32_MAX;
        put_u32(p, m->left);
        put_u32(p + 4, m->right);
        put_u32(p + 8, (b->s->options & AEG_TT_SCORES) != 0 ? m->rank : i);
        put_u32(p + 12, m->merged);
    }
    return AEGIS_OK;
}

static void fill_rest(builder *b)
{
    const aeg_tokenizer_source *s = b->s;
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->n_added; i++) {
        uint8_t *p = b->table + b->offset[AEG_TT_ADDED] + (size_t)i * 16;
        put_u32(p, s->added[i].id);
        put_u32(p + 4, s->added[i].flags);
        put_u32(p + 8, at);
        put_u32(p + 12, s->added[i].n);
        memcpy(b->table + b->offset[AEG_TT_ADDED_TEXT] + at, s->added[i].text, s->added[i].n);
        at += s->added[i].n;
    }
    at = 0;
    for (uint32_t i = 0; i < s->n_patterns; i++) {
        uint8_t *p = b->table + b->offset[AEG_TT_PATTERNS] + (size_t)i * 12;
        put_u32(p, at);
        put_u32(p + 4, s->patterns[i].n);
        put_u32(p + 8, s->patterns[i].flags);
        memcpy(b->table + b->offset[AEG_TT_PATTERN_TEXT] + at, s->patterns[i].text, s->patterns[i].n);
        at += s->patterns[i].n;
    }
    uint8_t *ids = b->table + b->offset[AEG_TT_TEMPLATE];
    for (uint32_t i = 0; i < s->n_prefix; i++, ids += 4)
        put_u32(ids, s->prefix[i]);
    for (uint32_t i = 0; i < s->n_suffix; i++, ids += 4)
        put_u32(ids, s->suffix[i]);
}

static void fill_header(builder *b)
{
    uint8_t *p = b->table;
    memcpy(p, "AEGISTOK", 8);
    put_u32(p + 8, AEG_TT_VERSION);
    put_u32(p + 12, AEG_TT_N_SECTIONS);
    put_u64(p + 16, b->total);
    memcpy(p + 32, &b->f, sizeof(b->f));
    for (int i = 0; i < AEG_TT_N_SECTIONS; i++) {
        put_u64(p + 32 + sizeof(b->f) + (size_t)i * 16, b->offset[i]);
        put_u64(p + 40 + sizeof(b->f) + (size_t)i * 16, b->size[i]);
    }
    put_u64(p + 24, XXH3_64bits(p + 32, b->total - 32));
}

aegis_status aeg_tokenizer_build(const aeg_tokenizer_source *source, uint8_t **out, size_t *out_n,
                                 aeg_memory *memory, aegis_error *err)
{
    builder b = { .s = source };
    AEG_TRY(check_source(&b, err));
    AEG_TRY(lay_out(&b, err));
    b.table = aeg_calloc(memory, 1, b.total);
    if (b.table == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "tokenizer: no memory for a table of %llu bytes",
                        (unsigned long long)b.total);
    fill_tokens(&b);
    aegis_status status = fill_merges(&b, err);
    if (status == AEGIS_OK) {
        fill_rest(&b);
        fill_header(&b);
        /* Opening is the full check, pattern included: what cannot be opened is never written. */
        aeg_tokenizer *tok = NULL;
        status = aeg_tokenizer_open(&tok, b.table, b.total, memory, err);
        aeg_tokenizer_close(tok);
    }
    if (status != AEGIS_OK) {
        aeg_free(memory, b.table);
        return status;
    }
    *out = b.table;
    *out_n = b.total;
    return AEGIS_OK;
}
