/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer_added.h"

#include "base/utf8.h"
#include "text/normalize.h"

typedef struct {
    const uint8_t *text;
    uint32_t n, id, flags;
} entry;

static entry get_entry(const aeg_token_table *t, uint32_t i)
{
    const uint8_t *p = t->section[AEG_TT_ADDED] + (size_t)i * 16;
    return (entry){ .text = t->section[AEG_TT_ADDED_TEXT] + aeg_tt_u32(p + 8), .n = aeg_tt_u32(p + 12),
                    .id = aeg_tt_u32(p), .flags = aeg_tt_u32(p + 4) };
}

void aeg_added_set_init(aeg_added_set *set, const aeg_token_table *t, bool normalized)
{
    const uint32_t from = normalized ? t->f.n_added_raw : 0;
    const uint32_t to = normalized ? t->f.n_added : t->f.n_added_raw;
    *set = (aeg_added_set){ .t = t, .n = to - from };
    uint32_t i = from;
    for (uint32_t b = 0; b <= 256; b++) {
        while (i < to && get_entry(t, i).text[0] < b)
            i++;
        set->first[b] = i;
    }
}

/* First entry of [low, high), all longer than `depth` and equal before it, whose byte there is at least `byte`. */
static uint32_t lower_bound(const aeg_token_table *t, uint32_t low, uint32_t high, size_t depth, uint32_t byte)
{
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (get_entry(t, middle).text[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest entry that text begins with. Entries are sorted, so those that agree with the first k bytes are one
 * range, which each further byte narrows; an entry that ends there is the first of its range. */
static bool longest(const aeg_added_set *set, const uint8_t *text, size_t n, entry *out)
{
    uint32_t low = set->first[text[0]], high = set->first[text[0] + 1];
    bool found = false;
    for (size_t depth = 1; low < high; depth++) {
        const entry e = get_entry(set->t, low);
        if (e.n == depth) {
            *out = e;
            found = true;
            low++;
        }
        if (depth == n)
            break;
        low = lower_bound(set->t, low, high, depth, text[depth]);
        high = lower_bound(set->t, low, high, depth, text[depth] + 1u);
    }
    return found;
}

/* The character that ends at `at` > 0. */
static size_t before(const uint8_t *text, size_t at, uint32_t *code)
{
    size_t start = at - 1;
    while (start > 0 && (text[start] & 0xC0) == 0x80)
        start--;
    uint32_t length;
    *code = aeg_utf8_get(text + start, &length);
    return start;
}

static bool stands_alone(const uint8_t *text, size_t n, size_t start, size_t end)
{
    uint32_t code, length;
    if (start > 0 && (before(text, start, &code), aeg_is_word(code)))
        return false;
    return end == n || !aeg_is_word(aeg_utf8_get(text + end, &length));
}

bool aeg_added_next(const aeg_added_set *set, const uint8_t *text, size_t n, size_t at, aeg_added_match *match)
{
    if (set->n == 0)
        return false;
    size_t i = at;
    while (i < n) {
        entry e;
        if (set->first[text[i]] == set->first[text[i] + 1] || !longest(set, text + i, n - i, &e)) {
            i++;
            continue;
        }
        /* A word that does not stand alone is passed over whole, not searched again from inside. */
        if ((e.flags & AEG_TT_SINGLE_WORD) != 0 && !stands_alone(text, n, i, i + e.n)) {
            i += e.n;
            continue;
        }
        size_t start = i, end = i + e.n;
        uint32_t code, length;
        if ((e.flags & AEG_TT_LSTRIP) != 0)
            for (size_t s = start; s > at && (s = before(text, s, &code), aeg_is_space(code));)
                start = s;
        if ((e.flags & AEG_TT_RSTRIP) != 0)
            while (end < n && aeg_is_space(aeg_utf8_get(text + end, &length)))
                end += length;
        *match = (aeg_added_match){ .start = start, .end = end, .id = e.id };
        return true;
    }
    return false;
}
