/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer_gguf.h"

#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"
#include "text/tokenizer_pre.h"
#include "text/tokenizer_score.h"

#define KEY "tokenizer.ggml."

typedef struct {
    const aeg_gguf *g;
    const char *path;
    aeg_memory *memory;
    aegis_error *err;
    const aeg_gguf_kv *tokens, *types, *scores, *merges;
    aeg_tokenizer_source s;
    aeg_gguf_text *spelling; /* [n_tokens] as the file has them */
    uint32_t *slots;         /* ids by hash of their spelling, AEG_TOKEN_NONE: empty */
    uint32_t n_slots;
    uint8_t *pool;           /* bytes of tokens that the header does not have as such */
} reader;

static uint8_t type_of(const reader *r, uint32_t id)
{
    int64_t type = AEG_PIECE_NORMAL;
    if (r->types != NULL)
        aeg_gguf_int_at(r->types, id, &type);
    return type >= AEG_PIECE_NORMAL && type <= AEG_PIECE_BYTE ? (uint8_t)type : (uint8_t)AEG_PIECE_NORMAL;
}

static int shown(aeg_gguf_text t) { return (int)AEG_MIN(t.n, (size_t)80); }

/* --- what both models have -------------------------------------------------------------------------------------------- */

static aegis_status get_arrays(reader *r)
{
    AEG_TRY(aeg_gguf_array(r->g, KEY "tokens", AEG_GGUF_STRINGS, &r->tokens, r->err));
    AEG_TRY(aeg_gguf_array(r->g, KEY "token_type", AEG_GGUF_INTS, &r->types, r->err));
    AEG_TRY(aeg_gguf_array(r->g, KEY "scores", AEG_GGUF_NUMBERS, &r->scores, r->err));
    AEG_TRY(aeg_gguf_array(r->g, KEY "merges", AEG_GGUF_STRINGS, &r->merges, r->err));
    if (r->tokens == NULL || r->tokens->count == 0 || r->tokens->count > AEG_TT_MAX_TOKENS)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '" KEY "tokens' is missing or not of 1 to %d tokens", r->path, AEG_TT_MAX_TOKENS);
    const aeg_gguf_kv *same[] = { r->types, r->scores };
    for (int i = 0; i < 2; i++)
        if (same[i] != NULL && same[i]->count != r->tokens->count)
            return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '" KEY "%s' has %llu entries for %llu tokens", r->path,
                            i == 0 ? "token_type" : "scores", (unsigned long long)same[i]->count,
                            (unsigned long long)r->tokens->count);
    const uint32_t n = (uint32_t)r->tokens->count;
    uint64_t bytes = 1;
    r->s.n_tokens = n;
    r->s.tokens = aeg_calloc(r->memory, n, sizeof r->s.tokens[0]);
    r->s.added = aeg_calloc(r->memory, n, sizeof r->s.added[0]);
    r->spelling = aeg_calloc(r->memory, n, sizeof r->spelling[0]);
    if (r->s.tokens == NULL || r->s.added == NULL || r->spelling == NULL)
        return aeg_fail(r->err, AEGIS_E_MEMORY, "%s: no memory for %u tokens", r->path, n);
    aeg_gguf_strings each = aeg_gguf_each(r->tokens);
    for (uint32_t i = 0; aeg_gguf_next(&each, &r->spelling[i]); i++) {
        const aeg_gguf_text t = r->spelling[i];
        if (t.n > AEG_TOKEN_MAX_BYTES * 2 || aeg_utf8_valid((const uint8_t *)t.p, t.n) != t.n)
            return aeg_fail(r->err, AEGIS_E_MODEL, "%s: token %u has %zu bytes or is not UTF-8, expected at most %d bytes of UTF-8",
                            r->path, i, t.n, 2 * AEG_TOKEN_MAX_BYTES);
        bytes += t.n;
    }
    r->pool = aeg_malloc(r->memory, (size_t)bytes);
    return r->pool != NULL ? AEGIS_OK : aeg_fail(r->err, AEGIS_E_MEMORY, "%s: no memory for token bytes", r->path);
}

static aegis_status special_id(reader *r, const char *key, uint32_t *out)
{
    int64_t id = AEG_TOKEN_NONE;
    AEG_TRY(aeg_gguf_int(r->g, key, 0, (int64_t)r->s.n_tokens - 1, &id, NULL, r->err));
    *out = (uint32_t)id;
    return AEGIS_OK;
}

/* Which tokens stand around a text. `bos`: what a file that does not say means. */
static aegis_status get_ends(reader *r, bool bos)
{
    aeg_tokenizer_source *s = &r->s;
    bool eos = false;
    AEG_TRY(special_id(r, KEY "bos_token_id", &s->bos));
    AEG_TRY(special_id(r, KEY "eos_token_id", &s->eos));
    AEG_TRY(special_id(r, KEY "padding_token_id", &s->pad));
    bos = bos && s->bos != AEG_TOKEN_NONE;
    AEG_TRY(aeg_gguf_bool(r->g, KEY "add_bos_token", &bos, NULL, r->err));
    AEG_TRY(aeg_gguf_bool(r->g, KEY "add_eos_token", &eos, NULL, r->err));
    if ((bos && s->bos == AEG_TOKEN_NONE) || (eos && s->eos == AEG_TOKEN_NONE))
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '" KEY "add_%s_token' without '" KEY "%s_token_id'", r->path,
                        bos && s->bos == AEG_TOKEN_NONE ? "bos" : "eos", bos && s->bos == AEG_TOKEN_NONE ? "bos" : "eos");
    if (bos)
        s->prefix[s->n_prefix++] = s->bos;
    if (eos)
        s->suffix[s->n_suffix++] = s->eos;
    return AEGIS_OK;
}

/* --- byte-level BPE ---------------------------------------------------------------------------------------------------- */

/* Bytes of a spelling in the byte alphabet, or the spelling itself if it has another character. */
static aeg_source_token unfold(reader *r, aeg_gguf_text t, size_t *at)
{
    uint8_t *bytes = r->pool + *at;
    uint32_t length, n = 0;
    for (size_t i = 0; i < t.n; i += length) {
        const int byte = aeg_byte_alphabet(aeg_utf8_get((const uint8_t *)t.p + i, &length));
        if (byte < 0)
            return (aeg_source_token){ .bytes = (const uint8_t *)t.p, .n = (uint32_t)t.n, .flags = AEG_TT_PRESENT };
        bytes[n++] = (uint8_t)byte;
    }
    *at += n;
    return (aeg_source_token){ .bytes = bytes, .n = n, .flags = AEG_TT_PRESENT };
}

static void byte_level_tokens(reader *r)
{
    size_t at = 0;
    for (uint32_t id = 0; id < r->s.n_tokens; id++) {
        const uint8_t type = type_of(r, id);
        const aeg_gguf_text t = r->spelling[id];
        if (type == AEG_PIECE_UNUSED || t.n == 0)
            continue;
        if (type == AEG_PIECE_NORMAL || type == AEG_PIECE_BYTE) {
            r->s.tokens[id] = unfold(r, t, &at);
            continue;
        }
        const uint32_t special = type == AEG_PIECE_USER ? 0 : AEG_TT_SPECIAL;
        r->s.tokens[id] = (aeg_source_token){ .bytes = (const uint8_t *)t.p, .n = (uint32_t)t.n,
                                              .flags = AEG_TT_PRESENT | AEG_TT_IS_ADDED | special };
        r->s.added[r->s.n_added++] = (aeg_source_added){ .text = (const uint8_t *)t.p, .n = (uint32_t)t.n, .id = id };
    }
}

static uint32_t *slot_of(const reader *r, const char *p, size_t n)
{
    uint32_t slot = aeg_tt_slot(aeg_tt_hash_bytes((const uint8_t *)p, n), r->n_slots);
    while (r->slots[slot] != AEG_TOKEN_NONE &&
           (r->spelling[r->slots[slot]].n != n || memcmp(r->spelling[r->slots[slot]].p, p, n) != 0))
        slot = slot + 1 == r->n_slots ? 0 : slot + 1;
    return &r->slots[slot];
}

static aegis_status index_spellings(reader *r)
{
    r->n_slots = r->s.n_tokens * 2 + 8;
    r->slots = aeg_malloc(r->memory, (size_t)r->n_slots * sizeof r->slots[0]);
    if (r->slots == NULL)
        return aeg_fail(r->err, AEGIS_E_MEMORY, "%s: no memory for %u tokens", r->path, r->s.n_tokens);
    memset(r->slots, 0xff, (size_t)r->n_slots * sizeof r->slots[0]);
    for (uint32_t id = 0; id < r->s.n_tokens; id++) {
        uint32_t *slot = slot_of(r, r->spelling[id].p, r->spelling[id].n);
        if (*slot == AEG_TOKEN_NONE && (r->s.tokens[id].flags & AEG_TT_PRESENT) != 0)
            *slot = id;
    }
    return AEGIS_OK;
}

/* "left right"; neither part has a space in the byte alphabet. */
static aegis_status read_merge(reader *r, uint32_t rank, aeg_gguf_text t, aeg_source_merge *out)
{
    char both[4 * AEG_TOKEN_MAX_BYTES];
    const char *space = t.n > 1 ? memchr(t.p + 1, ' ', t.n - 1) : NULL;
    const size_t left = space == NULL ? 0 : (size_t)(space - t.p), right = space == NULL ? 0 : t.n - left - 1;
    if (right == 0 || t.n > sizeof both)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '" KEY "merges'[%u] is '%.*s', expected two tokens", r->path, rank, shown(t), t.p);
    memcpy(both, t.p, left);
    memcpy(both + left, space + 1, right);
    *out = (aeg_source_merge){ .left = *slot_of(r, t.p, left), .right = *slot_of(r, space + 1, right),
                               .merged = *slot_of(r, both, left + right) };
    if (out->left == AEG_TOKEN_NONE || out->right == AEG_TOKEN_NONE || out->merged == AEG_TOKEN_NONE)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '" KEY "merges'[%u], '%.*s': not all three tokens are in the vocabulary", r->path,
                        rank, shown(t), t.p);
    return AEGIS_OK;
}

static aegis_status read_merges(reader *r)
{
    if (r->merges == NULL || r->merges->count > AEG_TT_MAX_TOKENS)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '" KEY "merges' is missing or of more than %d pairs", r->path, AEG_TT_MAX_TOKENS);
    r->s.merges = aeg_calloc(r->memory, (size_t)r->merges->count + 1, sizeof r->s.merges[0]);
    if (r->s.merges == NULL)
        return aeg_fail(r->err, AEGIS_E_MEMORY, "%s: no memory for %llu merges", r->path, (unsigned long long)r->merges->count);
    aeg_gguf_text text;
    for (aeg_gguf_strings each = aeg_gguf_each(r->merges); aeg_gguf_next(&each, &text); r->s.n_merges++)
        AEG_TRY(read_merge(r, r->s.n_merges, text, &r->s.merges[r->s.n_merges]));
    return AEGIS_OK;
}

static aegis_status byte_level(reader *r)
{
    aeg_gguf_text name = { 0 };
    bool found = false;
    AEG_TRY(aeg_gguf_string(r->g, KEY "pre", &name, &found, r->err));
    const aeg_pre *pre = found ? aeg_pre_find(name.p, name.n) : NULL;
    if (pre == NULL) {
        char list[300];
        aeg_pre_list(list, sizeof list);
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '" KEY "pre' is '%.*s', expected one of %s", r->path, shown(name),
                        found ? name.p : "", list);
    }
    for (; r->s.n_patterns < AEG_TT_MAX_PATTERNS && pre->patterns[r->s.n_patterns] != NULL; r->s.n_patterns++) {
        const char *p = pre->patterns[r->s.n_patterns];
        r->s.patterns[r->s.n_patterns] = (aeg_source_pattern){ .text = p, .n = (uint32_t)strlen(p) };
    }
    r->s.options = pre->options;
    byte_level_tokens(r);
    AEG_TRY(index_spellings(r));
    AEG_TRY(read_merges(r));
    return get_ends(r, pre->bos);
}

/* --- BPE by scores ----------------------------------------------------------------------------------------------------- */

static aegis_status by_score(reader *r)
{
    aeg_score_piece *pieces = aeg_calloc(r->memory, r->s.n_tokens, sizeof *pieces);
    aegis_status status = AEGIS_OK;
    bool space = true;
    if (r->scores == NULL)
        status = aeg_fail(r->err, AEGIS_E_MODEL, "%s: '" KEY "scores' is missing", r->path);
    else if (pieces == NULL)
        status = aeg_fail(r->err, AEGIS_E_MEMORY, "%s: no memory for %u pieces", r->path, r->s.n_tokens);
    for (uint32_t i = 0; status == AEGIS_OK && i < r->s.n_tokens; i++) {
        double score = 0;
        aeg_gguf_number_at(r->scores, i, &score);
        pieces[i] = (aeg_score_piece){ .text = (const uint8_t *)r->spelling[i].p, .n = (uint32_t)r->spelling[i].n,
                                       .score = (float)score, .type = type_of(r, i),
                                       .registered = aeg_score_registered((const uint8_t *)r->spelling[i].p, r->spelling[i].n) };
    }
    if (status == AEGIS_OK)
        status = aeg_gguf_bool(r->g, KEY "add_space_prefix", &space, NULL, r->err);
    if (status == AEGIS_OK)
        status = aeg_score_source(&r->s, pieces, r->pool, space, r->path, r->memory, r->err);
    aeg_free(r->memory, pieces);
    return status == AEGIS_OK ? get_ends(r, true) : status;
}

/* --- the whole --------------------------------------------------------------------------------------------------------- */

aegis_status aeg_tokenizer_compile_gguf(const aeg_gguf *g, uint8_t **out, size_t *out_n, aeg_memory *memory, aegis_error *err)
{
    reader r = { .g = g, .path = g->source.paths[0], .memory = memory, .err = err };
    aeg_gguf_text model = { 0 };
    bool found = false;
    *out = NULL;
    *out_n = 0;
    AEG_TRY(aeg_gguf_string(g, KEY "model", &model, &found, err));
    if (!found || aeg_gguf_text_is(model, "none"))
        return AEGIS_OK;
    const bool bytes = aeg_gguf_text_is(model, "gpt2"), scores = aeg_gguf_text_is(model, "llama");
    if (!bytes && !scores)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '" KEY "model' is '%.*s', expected gpt2 or llama", r.path, shown(model), model.p);
    aegis_status status = get_arrays(&r);
    if (status == AEGIS_OK)
        status = bytes ? byte_level(&r) : by_score(&r);
    if (status == AEGIS_OK)
        status = aeg_tokenizer_build(&r.s, out, out_n, memory, err);
    aeg_free(memory, r.pool);
    aeg_free(memory, r.slots);
    aeg_free(memory, r.spelling);
    aeg_free(memory, r.s.merges);
    aeg_free(memory, r.s.added);
    aeg_free(memory, r.s.tokens);
    return status;
}
