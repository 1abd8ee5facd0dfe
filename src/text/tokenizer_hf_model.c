/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"
#include "text/normalize.h"
#include "text/tokenizer_hf.h"

enum {
    MAX_HOLES = 1 << 16,                     /* unused ids; public files have at most a few hundred        */
    MAX_SPELLING = 2 * AEG_TOKEN_MAX_BYTES,  /* a letter of the byte alphabet has at most 2 bytes          */
};

/* Turn a spelling in the byte alphabet into the bytes it stands for; a spelling with any other character (only
 * added tokens have some) stands for itself. */
static aegis_status unfold(aeg_hf_reader *r, const char *text, size_t n, aeg_source_token *out)
{
    uint8_t *bytes = aeg_hf_pool(r, n);
    if (bytes == NULL)
        return AEGIS_E_MODEL;
    uint32_t length, n_bytes = 0;
    for (size_t i = 0; i < n; i += length) {
        const int byte = aeg_byte_alphabet(aeg_utf8_get((const uint8_t *)text + i, &length));
        if (byte < 0) {
            memcpy(bytes, text, n);
            n_bytes = (uint32_t)n;
            break;
        }
        bytes[n_bytes++] = (uint8_t)byte;
    }
    *out = (aeg_source_token){ .bytes = bytes, .n = n_bytes, .flags = AEG_TT_PRESENT };
    return AEGIS_OK;
}

static aegis_status check_id(aeg_hf_reader *r, const json_t *id, const char *text)
{
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= r->tokens_room)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": the id of token '%.80s' is not an integer from 0 to %u",
                        text, r->tokens_room - 1);
    return AEGIS_OK;
}

static aegis_status read_vocab(aeg_hf_reader *r, size_t n_added)
{
    const uint64_t room = json_object_size(r->vocab) + (uint64_t)n_added + MAX_HOLES;
    if (room > AEG_TT_MAX_TOKENS)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": %zu tokens, expected at most %d",
                        json_object_size(r->vocab), AEG_TT_MAX_TOKENS - MAX_HOLES);
    r->tokens_room = (uint32_t)room;
    r->added_room = (uint32_t)n_added;
    r->s.tokens = aeg_calloc(r->memory, r->tokens_room, sizeof(r->s.tokens[0]));
    r->s.added = aeg_calloc(r->memory, n_added + 1, sizeof(r->s.added[0]));
    if (r->s.tokens == NULL || r->s.added == NULL)
        return aeg_fail(r->err, AEGIS_E_MEMORY, AEG_HF_PATH ": no memory for %u tokens", r->tokens_room);

    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)r->vocab, key, value) {
        AEG_TRY(check_id(r, value, key));
        const uint32_t id = (uint32_t)json_integer_value(value);
        if ((r->s.tokens[id].flags & AEG_TT_PRESENT) != 0)
            return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": id %u is given to two tokens, one of them '%.80s'", id, key);
        AEG_TRY(unfold(r, key, strlen(key), &r->s.tokens[id]));
        if (id >= r->s.n_tokens)
            r->s.n_tokens = id + 1;
    }
    return AEGIS_OK;
}

/* One merge: "left right" or ["left", "right"]. */
static aegis_status read_merge(aeg_hf_reader *r, const json_t *v, uint32_t rank, aeg_source_merge *out)
{
    const char *part[2] = { NULL, NULL };
    size_t n[2] = { 0, 0 };
    if (json_is_string(v)) {
        part[0] = json_string_value(v);
        const size_t all = json_string_length(v);
        const char *space = memchr(part[0], ' ', all);
        if (space != NULL) {
            n[0] = (size_t)(space - part[0]);
            part[1] = space + 1;
            n[1] = all - n[0] - 1;
        }
    } else if (json_array_size(v) == 2) {
        for (size_t i = 0; i < 2; i++) {
            part[i] = json_string_value(json_array_get(v, i));
            n[i] = json_string_length(json_array_get(v, i));
        }
    }
    if (part[0] == NULL || part[1] == NULL || n[0] == 0 || n[1] == 0)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": merge %u is not a pair of tokens", rank);

    char both[MAX_SPELLING];
    if (n[0] > sizeof(both) || n[1] > sizeof(both) - n[0])
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": merge %u makes a token of more than %d bytes", rank,
                        AEG_TOKEN_MAX_BYTES);
    memcpy(both, part[0], n[0]);
    memcpy(both + n[0], part[1], n[1]);
    const json_t *left = json_object_getn(r->vocab, part[0], n[0]);
    const json_t *right = json_object_getn(r->vocab, part[1], n[1]);
    const json_t *merged = json_object_getn(r->vocab, both, n[0] + n[1]);
    if (left == NULL || right == NULL || merged == NULL)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": merge %u, '%.*s' + '%.*s': not all three are in the vocabulary",
                        rank, (int)AEG_MIN(n[0], 80u), part[0], (int)AEG_MIN(n[1], 80u), part[1]);
    *out = (aeg_source_merge){ .left = (uint32_t)json_integer_value(left),
                               .right = (uint32_t)json_integer_value(right),
                               .merged = (uint32_t)json_integer_value(merged) };
    return AEGIS_OK;
}

static aegis_status read_merges(aeg_hf_reader *r, const json_t *merges)
{
    const size_t n = json_array_size(merges);
    if (!json_is_array(merges) || n > AEG_TT_MAX_TOKENS)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": 'merges' is not an array of at most %d pairs", AEG_TT_MAX_TOKENS);
    r->s.merges = aeg_calloc(r->memory, n + 1, sizeof(r->s.merges[0]));
    if (r->s.merges == NULL)
        return aeg_fail(r->err, AEGIS_E_MEMORY, AEG_HF_PATH ": no memory for %zu merges", n);
    for (size_t i = 0; i < n; i++)
        AEG_TRY(read_merge(r, json_array_get(merges, i), (uint32_t)i, &r->s.merges[i]));
    r->s.n_merges = (uint32_t)n;
    return AEGIS_OK;
}

/* Options that change the result and that we do not follow must be off. */
static aegis_status must_be_off(aeg_hf_reader *r, const json_t *model, const char *key)
{
    const json_t *v = json_object_get(model, key);
    const bool off = v == NULL || json_is_null(v) || json_is_false(v) ||
                     (json_is_string(v) && json_string_length(v) == 0) || (json_is_number(v) && json_number_value(v) == 0);
    return off ? AEGIS_OK : aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": model option '%s' is on, which is not understood", key);
}

aegis_status aeg_hf_model(aeg_hf_reader *r, const json_t *model, size_t n_added)
{
    /* unk_token and fuse_unk never matter: every byte has a token. */
    static const char *const keys[] = { "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                                        "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges", NULL };
    if (!json_is_object(model))
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": no 'model' object");
    const json_t *type = json_object_get(model, "type"); /* old files leave it out */
    if (type != NULL && (!json_is_string(type) || strcmp(json_string_value(type), "BPE") != 0))
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": model type '%.40s', expected 'BPE'",
                        json_is_string(type) ? json_string_value(type) : "?");
    AEG_TRY(aeg_hf_only_keys(r, model, "'model'", keys));
    AEG_TRY(must_be_off(r, model, "dropout"));
    AEG_TRY(must_be_off(r, model, "continuing_subword_prefix"));
    AEG_TRY(must_be_off(r, model, "end_of_word_suffix"));
    AEG_TRY(must_be_off(r, model, "byte_fallback"));
    if (json_is_true(json_object_get(model, "ignore_merges")))
        r->s.options |= AEG_TT_IGNORE_MERGES;
    AEG_TRY(aeg_json_get_object(model, "vocab", AEG_HF_PATH, &r->vocab, r->err));
    AEG_TRY(read_vocab(r, n_added));
    return read_merges(r, json_object_get(model, "merges"));
}

/* The text by which a token of the normalised group is found. */
static aegis_status normal_text(aeg_hf_reader *r, aeg_source_added *a)
{
    const aeg_normal_form form = (r->s.options & AEG_TT_NFKC) != 0 ? AEG_NORMAL_NFKC
                                 : (r->s.options & AEG_TT_NFC) != 0 ? AEG_NORMAL_NFC
                                                                    : AEG_NORMAL_NONE;
    if (aeg_normal_quick(a->text, a->n, form))
        return AEGIS_OK;
    uint8_t *text = NULL;
    size_t n = 0;
    AEG_TRY(aeg_normalize(a->text, a->n, form, &text, &n, r->memory, r->err));
    uint8_t *kept = aeg_hf_pool(r, n);
    if (kept != NULL)
        memcpy(kept, text, n);
    aeg_free(r->memory, text);
    if (kept == NULL)
        return AEGIS_E_MODEL;
    a->text = kept;
    a->n = (uint32_t)n;
    return AEGIS_OK;
}

static aegis_status read_added(aeg_hf_reader *r, uint32_t id, const json_t *entry)
{
    static const char *const keys[] = { "id", "content", "single_word", "lstrip", "rstrip", "normalized", "special", "__type", NULL };
    AEG_TRY(aeg_hf_only_keys(r, entry, "an added token", keys));
    const char *text = NULL;
    AEG_TRY(aeg_json_get_string(entry, "content", AEG_HF_PATH ": an added token", &text, r->err));
    const size_t n = json_string_length(json_object_get(entry, "content"));
    if (n == 0 || n > AEG_TOKEN_MAX_BYTES)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": added token %u has %zu bytes, expected 1 to %d", id, n,
                        AEG_TOKEN_MAX_BYTES);
    aeg_source_token *t = &r->s.tokens[id];
    const json_t *known = json_object_getn(r->vocab, text, n);
    if (known != NULL ? (uint32_t)json_integer_value(known) != id : (t->flags & AEG_TT_PRESENT) != 0) {
        const bool same = (t->flags & AEG_TT_IS_ADDED) != 0 && t->n == n && memcmp(t->bytes, text, n) == 0;
        return same ? AEGIS_OK
                    : aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": added token '%.80s' has id %u, which another token has",
                               text, id);
    }
    if ((t->flags & AEG_TT_IS_ADDED) != 0)
        return AEGIS_OK; /* given by both files */

    const bool special = json_is_true(json_object_get(entry, "special"));
    *t = (aeg_source_token){ .bytes = (const uint8_t *)text, .n = (uint32_t)n,
                             .flags = AEG_TT_PRESENT | AEG_TT_IS_ADDED | (special ? AEG_TT_SPECIAL : 0) };
    aeg_source_added *a = &r->s.added[r->s.n_added++];
    *a = (aeg_source_added){ .text = t->bytes, .n = t->n, .id = id };
    a->flags |= json_is_true(json_object_get(entry, "single_word")) ? AEG_TT_SINGLE_WORD : 0;
    a->flags |= json_is_true(json_object_get(entry, "lstrip")) ? AEG_TT_LSTRIP : 0;
    a->flags |= json_is_true(json_object_get(entry, "rstrip")) ? AEG_TT_RSTRIP : 0;
    const json_t *normalized = json_object_get(entry, "normalized");
    a->flags |= (normalized != NULL ? json_is_true(normalized) : !special) ? AEG_TT_NORMALIZED : 0;
    if (id >= r->s.n_tokens)
        r->s.n_tokens = id + 1;
    return (a->flags & AEG_TT_NORMALIZED) != 0 ? normal_text(r, a) : AEGIS_OK;
}

aegis_status aeg_hf_added(aeg_hf_reader *r, const json_t *list, const json_t *config)
{
    if (list != NULL && !json_is_array(list) && !json_is_null(list))
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": 'added_tokens' is not an array");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        AEG_TRY(check_id(r, json_object_get(entry, "id"), "of an added token"));
        AEG_TRY(read_added(r, (uint32_t)json_integer_value(json_object_get(entry, "id")), entry));
    }
    const char *key;
    json_t *entry;
    json_object_foreach((json_t *)(uintptr_t)config, key, entry) {
        char *end = NULL;
        const unsigned long id = strtoul(key, &end, 10);
        if (key[0] < '0' || key[0] > '9' || *end != '\0' || id >= r->tokens_room)
            return aeg_fail(r->err, AEGIS_E_MODEL, "tokenizer_config.json: 'added_tokens_decoder' has '%.40s', expected an id below %u",
                            key, r->tokens_room);
        AEG_TRY(read_added(r, (uint32_t)id, entry));
    }
    return AEGIS_OK;
}
