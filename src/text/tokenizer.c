/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/checked.h"
#include "text/tokenizer_open.h"

static aegis_status open_patterns(aeg_tokenizer *tok, aegis_error *err)
{
    const aeg_token_table *t = &tok->table;
    aeg_pretok_pattern patterns[AEG_TT_MAX_PATTERNS];
    for (uint32_t i = 0; i < t->f.n_patterns; i++) {
        const uint8_t *p = t->section[AEG_TT_PATTERNS] + (size_t)i * 12;
        patterns[i] = (aeg_pretok_pattern){
            .text = (const char *)t->section[AEG_TT_PATTERN_TEXT] + aeg_tt_u32(p),
            .n = aeg_tt_u32(p + 4),
            .drop_gaps = (aeg_tt_u32(p + 8) & AEG_TT_DROP_GAPS) != 0,
        };
    }
    return aeg_pretok_open(&tok->pretok, patterns, t->f.n_patterns, tok->memory, err);
}

aegis_status aeg_tokenizer_open(aeg_tokenizer **out, const uint8_t *table, size_t n, aeg_memory *memory,
                                aegis_error *err)
{
    aeg_token_table view;
    AEG_TRY(aeg_token_table_view(&view, table, n, err));
    aeg_tokenizer *tok = aeg_calloc(memory, 1, sizeof(*tok));
    if (tok == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "tokenizer: no memory");
    tok->memory = memory;
    tok->table = view;
    tok->form = (view.f.options & AEG_TT_NFKC) != 0 ? AEG_NORMAL_NFKC
                : (view.f.options & AEG_TT_NFC) != 0 ? AEG_NORMAL_NFC
                                                     : AEG_NORMAL_NONE;
    aeg_added_set_init(&tok->raw, &tok->table, false);
    aeg_added_set_init(&tok->normalized, &tok->table, true);
    const aegis_status status = open_patterns(tok, err);
    if (status != AEGIS_OK) {
        aeg_tokenizer_close(tok);
        return status;
    }
    *out = tok;
    return AEGIS_OK;
}

void aeg_tokenizer_close(aeg_tokenizer *tok)
{
    if (tok == NULL)
        return;
    aeg_pretok_close(tok->pretok);
    aeg_free(tok->memory, tok);
}

uint32_t aeg_tokenizer_n_tokens(const aeg_tokenizer *tok) { return tok->table.f.n_tokens; }
uint32_t aeg_tokenizer_bos(const aeg_tokenizer *tok) { return tok->table.f.bos; }
uint32_t aeg_tokenizer_eos(const aeg_tokenizer *tok) { return tok->table.f.eos; }
uint32_t aeg_tokenizer_pad(const aeg_tokenizer *tok) { return tok->table.f.pad; }

static uint32_t flags_of(const aeg_tokenizer *tok, uint32_t id)
{
    return id < tok->table.f.n_tokens ? tok->table.section[AEG_TT_TOKEN_FLAGS][id] : 0;
}

bool aeg_tokenizer_is_special(const aeg_tokenizer *tok, uint32_t id)
{
    return (flags_of(tok, id) & AEG_TT_SPECIAL) != 0;
}

bool aeg_tokenizer_is_added(const aeg_tokenizer *tok, uint32_t id)
{
    return (flags_of(tok, id) & AEG_TT_IS_ADDED) != 0;
}

bool aeg_tokenizer_token(const aeg_tokenizer *tok, uint32_t id, const uint8_t **bytes, size_t *n)
{
    if ((flags_of(tok, id) & AEG_TT_PRESENT) == 0)
        return false;
    uint32_t n_bytes;
    *bytes = aeg_tt_token(&tok->table, id, &n_bytes);
    *n = n_bytes;
    return true;
}

bool aeg_tokenizer_find(const aeg_tokenizer *tok, const char *text, uint32_t *id)
{
    const size_t n = strlen(text);
    uint32_t plain = AEG_TOKEN_NONE;
    for (uint32_t i = 0; i < tok->table.f.n_tokens; i++) {
        const uint32_t flags = flags_of(tok, i);
        uint32_t bytes;
        const uint8_t *token = aeg_tt_token(&tok->table, i, &bytes);
        if ((flags & AEG_TT_PRESENT) == 0 || bytes != n || memcmp(token, text, n) != 0)
            continue;
        if ((flags & AEG_TT_IS_ADDED) != 0) {
            *id = i;
            return true;
        }
        if (plain == AEG_TOKEN_NONE)
            plain = i;
    }
    if (plain == AEG_TOKEN_NONE)
        return false;
    *id = plain;
    return true;
}

bool aeg_tokenizer_text(const aeg_tokenizer *tok, uint32_t id, bool skip_special, bool *run_start, const uint8_t **bytes,
                        size_t *n)
{
    const uint32_t flags = flags_of(tok, id), special = flags & AEG_TT_SPECIAL;
    if ((skip_special && special != 0) || !aeg_tokenizer_token(tok, id, bytes, n))
        return false;
    if ((tok->table.f.options & AEG_TT_CHUNK_SPACE) == 0)
        return true;
    /* what decodes to nothing leaves a run as it is, other special tokens end it */
    const bool strip = *run_start && special == 0 && (flags & AEG_TT_BYTE) == 0 && *n > 0 && (*bytes)[0] == ' ';
    if (special == 0 || *n > 0)
        *run_start = special != 0;
    if (strip) {
        ++*bytes;
        --*n;
    }
    return true;
}

size_t aeg_tokenizer_decode(const aeg_tokenizer *tok, const uint32_t *ids, size_t n_ids, bool skip_special,
                            uint8_t *out, size_t cap)
{
    bool run_start = true;
    size_t total = 0;
    for (size_t i = 0; i < n_ids; i++) {
        const uint8_t *bytes;
        size_t n;
        if (!aeg_tokenizer_text(tok, ids[i], skip_special, &run_start, &bytes, &n))
            continue;
        if (total < cap)
            memcpy(out + total, bytes, AEG_MIN(n, cap - total));
        total += n;
    }
    return total;
}
