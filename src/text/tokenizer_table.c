/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer_table.h"

#include <xxhash.h>

#include "base/checked.h"
#include "text/tokenizer.h"

static const uint8_t magic[8] = { 'A', 'E', 'G', 'I', 'S', 'T', 'O', 'K' };

uint64_t aeg_tt_hash_bytes(const uint8_t *bytes, size_t n) { return XXH3_64bits(bytes, n); }

bool aeg_tt_find(const aeg_token_table *t, const uint8_t *bytes, size_t n, uint32_t *id)
{
    if (t->f.vocab_slots == 0)
        return false;
    uint32_t slot = aeg_tt_slot(aeg_tt_hash_bytes(bytes, n), t->f.vocab_slots);
    for (;;) {
        const uint32_t candidate = aeg_tt_u32(t->section[AEG_TT_VOCAB] + (size_t)slot * 4);
        if (candidate == AEG_TOKEN_NONE)
            return false;
        uint32_t candidate_n;
        const uint8_t *text = aeg_tt_token(t, candidate, &candidate_n);
        if (candidate_n == n && memcmp(text, bytes, n) == 0) {
            *id = candidate;
            return true;
        }
        if (++slot == t->f.vocab_slots)
            slot = 0;
    }
}

static uint64_t load_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static aegis_status bad(aegis_error *err, const char *what)
{
    return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: %s", what);
}

static aegis_status check_header(aeg_token_table *t, const uint8_t *bytes, size_t n, aegis_error *err)
{
    if (n < AEG_TT_HEADER)
        return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: %zu bytes, expected at least %d", n, AEG_TT_HEADER);
    if (memcmp(bytes, magic, sizeof(magic)) != 0)
        return bad(err, "the first 8 bytes are not AEGISTOK");
    if (aeg_tt_u32(bytes + 8) != AEG_TT_VERSION)
        return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: version %u, expected %d; pack the model again",
                        aeg_tt_u32(bytes + 8), AEG_TT_VERSION);
    if (aeg_tt_u32(bytes + 12) != AEG_TT_N_SECTIONS)
        return bad(err, "wrong number of sections");
    if (load_u64(bytes + 16) != n)
        return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: %zu bytes, its header says %llu", n,
                        (unsigned long long)load_u64(bytes + 16));
    if (load_u64(bytes + 24) != XXH3_64bits(bytes + 32, n - 32))
        return bad(err, "checksum differs: the file is damaged");
    memcpy(&t->f, bytes + 32, sizeof(t->f));
    return AEGIS_OK;
}

static aegis_status check_sections(aeg_token_table *t, const uint8_t *bytes, size_t n, aegis_error *err)
{
    const aeg_tt_fields *f = &t->f;
    const uint8_t *entry = bytes + 32 + sizeof(aeg_tt_fields);
    for (int i = 0; i < AEG_TT_N_SECTIONS; i++, entry += 16) {
        const uint64_t offset = load_u64(entry), size = load_u64(entry + 8);
        if (offset < AEG_TT_HEADER || offset > n || size > n - offset)
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: section %d lies outside the file", i);
        t->section[i] = bytes + offset;
        t->section_bytes[i] = size;
    }
    if (f->n_tokens == 0 || f->n_tokens > AEG_TT_MAX_TOKENS || f->n_added > f->n_tokens ||
        f->n_added_raw > f->n_added || f->n_patterns > AEG_TT_MAX_PATTERNS ||
        f->n_prefix > AEG_TT_MAX_TEMPLATE || f->n_suffix > AEG_TT_MAX_TEMPLATE)
        return bad(err, "a count is out of range");
    if ((f->options & ~(uint32_t)AEG_TT_ALL_OPTIONS) != 0)
        return bad(err, "unknown options");
    if (f->merge_slots == 0 || ((f->options & (AEG_TT_IGNORE_MERGES | AEG_TT_SCORES)) != 0) != (f->vocab_slots != 0))
        return bad(err, "hash tables do not fit the options");

    const uint64_t expected[AEG_TT_N_SECTIONS] = {
        [AEG_TT_TOKEN_START] = ((uint64_t)f->n_tokens + 1) * 4,
        [AEG_TT_TOKEN_FLAGS] = f->n_tokens,
        [AEG_TT_TOKEN_BYTES] = t->section_bytes[AEG_TT_TOKEN_BYTES],
        [AEG_TT_BYTE_IDS] = 256 * 4,
        [AEG_TT_MERGES] = (uint64_t)f->merge_slots * 16,
        [AEG_TT_VOCAB] = (uint64_t)f->vocab_slots * 4,
        [AEG_TT_ADDED] = (uint64_t)f->n_added * 16,
        [AEG_TT_ADDED_TEXT] = t->section_bytes[AEG_TT_ADDED_TEXT],
        [AEG_TT_PATTERNS] = (uint64_t)f->n_patterns * 12,
        [AEG_TT_PATTERN_TEXT] = t->section_bytes[AEG_TT_PATTERN_TEXT],
        [AEG_TT_TEMPLATE] = ((uint64_t)f->n_prefix + f->n_suffix) * 4,
    };
    for (int i = 0; i < AEG_TT_N_SECTIONS; i++)
        if (t->section_bytes[i] != expected[i])
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: section %d has %zu bytes, expected %llu", i,
                            t->section_bytes[i], (unsigned long long)expected[i]);
    return AEGIS_OK;
}

static bool is_token(const aeg_token_table *t, uint32_t id)
{
    return id < t->f.n_tokens && (t->section[AEG_TT_TOKEN_FLAGS][id] & AEG_TT_PRESENT) != 0;
}

static bool is_token_or_none(const aeg_token_table *t, uint32_t id)
{
    return id == AEG_TOKEN_NONE || is_token(t, id);
}

static aegis_status check_tokens(const aeg_token_table *t, aegis_error *err)
{
    const uint8_t *start = t->section[AEG_TT_TOKEN_START];
    uint32_t at = aeg_tt_u32(start);
    if (at != 0)
        return bad(err, "the first token does not start at 0");
    for (uint32_t id = 0; id < t->f.n_tokens; id++) {
        const uint32_t end = aeg_tt_u32(start + ((size_t)id + 1) * 4);
        if (end < at || end - at > AEG_TOKEN_MAX_BYTES)
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: token %u has an impossible length", id);
        at = end;
    }
    if (at != t->section_bytes[AEG_TT_TOKEN_BYTES])
        return bad(err, "token bytes are missing or left over");

    for (uint32_t b = 0; b < 256; b++) {
        const uint32_t id = aeg_tt_u32(t->section[AEG_TT_BYTE_IDS] + b * 4);
        const bool never = b == 0xC0 || b == 0xC1 || b > 0xF4; /* in no valid UTF-8 */
        if (never && id == AEG_TOKEN_NONE)
            continue;
        uint32_t n = 0;
        if (!is_token(t, id) || (aeg_tt_token(t, id, &n), n != 1))
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: byte 0x%02X has no token", b);
    }
    return AEGIS_OK;
}

static aegis_status check_merges(const aeg_token_table *t, aegis_error *err)
{
    const uint8_t *s = t->section[AEG_TT_MERGES];
    uint32_t walk = 0, used = 0;
    for (uint32_t i = 0; i < t->f.merge_slots; i++, s += 16) {
        if (aeg_tt_u32(s) == UINT32_MAX) {
            walk = 0;
            continue;
        }
        uint32_t left, right, merged;
        if (!is_token(t, aeg_tt_u32(s)) || !is_token(t, aeg_tt_u32(s + 4)) || !is_token(t, aeg_tt_u32(s + 12)))
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: merge slot %u names an unknown token", i);
        aeg_tt_token(t, aeg_tt_u32(s), &left);
        aeg_tt_token(t, aeg_tt_u32(s + 4), &right);
        aeg_tt_token(t, aeg_tt_u32(s + 12), &merged);
        if (left == 0 || right == 0 || left + right != merged)
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: merge slot %u does not join its tokens", i);
        if (aeg_tt_u32(s + 8) == UINT32_MAX)
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: merge slot %u has no rank", i);
        used++;
        if (++walk > AEG_TT_MAX_WALK)
            return bad(err, "too many merges share one hash");
    }
    /* A run over the end of the table could be longer than AEG_TT_MAX_WALK only up to twice: fine. */
    if (used != t->f.n_merges || used == t->f.merge_slots)
        return bad(err, "wrong number of merges");
    return AEGIS_OK;
}

static aegis_status check_vocab_hash(const aeg_token_table *t, aegis_error *err)
{
    uint32_t walk = 0, used = 0;
    for (uint32_t i = 0; i < t->f.vocab_slots; i++) {
        const uint32_t id = aeg_tt_u32(t->section[AEG_TT_VOCAB] + (size_t)i * 4);
        if (id == AEG_TOKEN_NONE) {
            walk = 0;
            continue;
        }
        used++;
        if (!is_token(t, id) || ++walk > AEG_TT_MAX_WALK)
            return bad(err, "bad vocabulary hash");
    }
    if (t->f.vocab_slots != 0 && used == t->f.vocab_slots)
        return bad(err, "full vocabulary hash");
    return AEGIS_OK;
}

static aegis_status check_added(const aeg_token_table *t, aegis_error *err)
{
    const uint8_t *texts = t->section[AEG_TT_ADDED_TEXT];
    const size_t texts_n = t->section_bytes[AEG_TT_ADDED_TEXT];
    const uint8_t *before = NULL;
    uint32_t before_n = 0;
    for (uint32_t i = 0; i < t->f.n_added; i++) {
        const uint8_t *a = t->section[AEG_TT_ADDED] + (size_t)i * 16;
        const uint32_t flags = aeg_tt_u32(a + 4), offset = aeg_tt_u32(a + 8), n = aeg_tt_u32(a + 12);
        if (!is_token(t, aeg_tt_u32(a)) || n == 0 || n > AEG_TOKEN_MAX_BYTES || offset > texts_n ||
            n > texts_n - offset || ((flags & AEG_TT_NORMALIZED) != 0) != (i >= t->f.n_added_raw))
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: added token entry %u is broken", i);
        if (i != 0 && i != t->f.n_added_raw) {
            const int order = memcmp(before, texts + offset, AEG_MIN(before_n, n));
            if (order > 0 || (order == 0 && before_n >= n))
                return bad(err, "added tokens are not in order");
        }
        before = texts + offset;
        before_n = n;
    }
    return AEGIS_OK;
}

static aegis_status check_rest(const aeg_token_table *t, aegis_error *err)
{
    for (uint32_t i = 0; i < t->f.n_patterns; i++) {
        const uint8_t *p = t->section[AEG_TT_PATTERNS] + (size_t)i * 12;
        const uint32_t offset = aeg_tt_u32(p), n = aeg_tt_u32(p + 4);
        const size_t all = t->section_bytes[AEG_TT_PATTERN_TEXT];
        if (offset > all || n > all - offset || n == 0 || n > AEG_TT_MAX_PATTERN ||
            (aeg_tt_u32(p + 8) & ~(uint32_t)AEG_TT_DROP_GAPS) != 0)
            return aeg_fail(err, AEGIS_E_MODEL, "tokenizer table: pattern %u is broken", i);
    }
    for (uint32_t i = 0; i < t->f.n_prefix + t->f.n_suffix; i++)
        if (!is_token(t, aeg_tt_u32(t->section[AEG_TT_TEMPLATE] + (size_t)i * 4)))
            return bad(err, "the template names an unknown token");
    if (!is_token_or_none(t, t->f.bos) || !is_token_or_none(t, t->f.eos) || !is_token_or_none(t, t->f.pad))
        return bad(err, "bos, eos or pad is an unknown token");
    return AEGIS_OK;
}

aegis_status aeg_token_table_view(aeg_token_table *out, const uint8_t *bytes, size_t n, aegis_error *err)
{
    aeg_token_table t;
    AEG_TRY(check_header(&t, bytes, n, err));
    AEG_TRY(check_sections(&t, bytes, n, err));
    AEG_TRY(check_tokens(&t, err));
    AEG_TRY(check_merges(&t, err));
    AEG_TRY(check_vocab_hash(&t, err));
    AEG_TRY(check_added(&t, err));
    AEG_TRY(check_rest(&t, err));
    *out = t;
    return AEGIS_OK;
}
