/* SPDX-License-Identifier: Apache-2.0 */
#include "text/normalize.h"

#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"

enum { MAX_DECOMPOSED = 32 }; /* the longest is 18, of U+FDFA under NFKC */

static utf8proc_option_t options_of(aeg_normal_form form)
{
    const int both = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    return (utf8proc_option_t)(form == AEG_NORMAL_NFKC ? both | UTF8PROC_COMPAT : both);
}

static uint8_t class_of(utf8proc_int32_t code)
{
    return (uint8_t)utf8proc_get_property(code)->combining_class;
}

/* One character, decomposed; `out` holds MAX_DECOMPOSED. */
static size_t decompose(uint32_t code, aeg_normal_form form, utf8proc_int32_t *out)
{
    int last_class = 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)code, out, MAX_DECOMPOSED, options_of(form),
                                                       &last_class);
    if (n >= 1 && n <= MAX_DECOMPOSED)
        return (size_t)n;
    out[0] = (utf8proc_int32_t)code;
    return 1;
}

/* A character that stays itself and never touches what stands before it, so that a text may be cut in
 * front of it and the parts normalised apart: class 0, recomposes to itself, and cannot be the second
 * half of a composition. The second halves with class 0 are marks, Hangul vowels and finals, and the
 * Kirat Rai vowels; calling a few others active as well costs time only. */
static bool is_inert(uint32_t code, aeg_normal_form form)
{
    if (code < 0xA0 || (code < 0x300 && form == AEG_NORMAL_NFC))
        return true;
    /* U+11A7, one before the first Hangul final, must not be here: utf8proc 2.8 takes it for a final, joins it
     * to a syllable before it and so loses it. As an inert character it never comes behind a syllable. */
    if ((code >= 0x1161 && code <= 0x1175) || (code >= 0x11A8 && code <= 0x11C2) ||
        (code >= 0x16D60 && code <= 0x16D6F))
        return false;
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)code);
    if (p->combining_class != 0 || p->category == UTF8PROC_CATEGORY_MN || p->category == UTF8PROC_CATEGORY_MC ||
        p->category == UTF8PROC_CATEGORY_ME)
        return false;
    if (p->decomp_seqindex == UINT16_MAX || (p->decomp_type != 0 && form == AEG_NORMAL_NFC))
        return true;
    utf8proc_int32_t parts[MAX_DECOMPOSED];
    const size_t n = decompose(code, form, parts);
    for (size_t i = 1; i < n; i++)
        if (class_of(parts[i]) < class_of(parts[i - 1]) && class_of(parts[i]) != 0)
            return false;
    return utf8proc_normalize_utf32(parts, (utf8proc_ssize_t)n, options_of(form)) == 1 &&
           (uint32_t)parts[0] == code;
}

/* Skip inert characters from `at`. Returns where the first active one starts (n if none); *cut is where
 * the inert character before it starts, which it may still join. */
static size_t skip_inert(const uint8_t *s, size_t at, size_t n, aeg_normal_form form, size_t *cut)
{
    *cut = at;
    while (at < n) {
        uint64_t word;
        if (n - at >= sizeof(word)) {
            memcpy(&word, s + at, sizeof(word));
            if ((word & 0x8080808080808080u) == 0) {
                at += sizeof(word);
                *cut = at - 1;
                continue;
            }
        }
        uint32_t length;
        if (!is_inert(aeg_utf8_get(s + at, &length), form))
            return at;
        *cut = at;
        at += length;
    }
    return n;
}

bool aeg_normal_quick(const uint8_t *text, size_t n, aeg_normal_form form)
{
    size_t cut;
    return form == AEG_NORMAL_NONE || skip_inert(text, 0, n, form, &cut) == n;
}

/* Put the marks code[0..n), all of class > 0, in order of class, keeping equal classes as they stand.
 * `tmp` has room for n. Counting sort for long runs: text can be nothing but marks. */
static void sort_marks(utf8proc_int32_t *code, size_t n, utf8proc_int32_t *tmp)
{
    if (n <= 16) {
        for (size_t i = 1; i < n; i++) {
            const utf8proc_int32_t c = code[i];
            const uint8_t class = class_of(c);
            size_t j = i;
            for (; j > 0 && class_of(code[j - 1]) > class; j--)
                code[j] = code[j - 1];
            code[j] = c;
        }
        return;
    }
    size_t start[257] = { 0 };
    for (size_t i = 0; i < n; i++)
        start[class_of(code[i]) + 1]++;
    for (int c = 0; c < 256; c++)
        start[c + 1] += start[c];
    for (size_t i = 0; i < n; i++)
        tmp[start[class_of(code[i])]++] = code[i];
    memcpy(code, tmp, n * sizeof(code[0]));
}

static void sort_runs(utf8proc_int32_t *code, size_t n, utf8proc_int32_t *tmp)
{
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && class_of(code[end]) != 0)
            end++;
        if (end - i > 1)
            sort_marks(code + i, end - i, tmp);
        i = end + 1;
    }
}

typedef struct {
    uint8_t *bytes;
    size_t n, room;
    utf8proc_int32_t *code; /* two halves of code_room: decomposed, scratch of the sort */
    size_t code_room;
    aeg_memory *memory;
} writer;

static bool reserve(writer *w, size_t more)
{
    if (w->room - w->n >= more)
        return true;
    const size_t room = w->n + more + w->room / 2;
    uint8_t *bytes = aeg_realloc(w->memory, w->bytes, room);
    if (bytes == NULL)
        return false;
    w->bytes = bytes;
    w->room = room;
    return true;
}

static bool copy(writer *w, const uint8_t *s, size_t n)
{
    if (n == 0)
        return true;
    if (!reserve(w, n))
        return false;
    memcpy(w->bytes + w->n, s, n);
    w->n += n;
    return true;
}

/* Where the active characters from `at` end: the next inert one, or n. *decomposed counts their parts. */
static size_t active_end(const uint8_t *s, size_t cut, size_t at, size_t n, aeg_normal_form form, size_t *decomposed)
{
    utf8proc_int32_t parts[MAX_DECOMPOSED];
    uint32_t length;
    *decomposed = 0;
    for (size_t i = cut; i < n; i += length) {
        const uint32_t code = aeg_utf8_get(s + i, &length);
        if (i > at && is_inert(code, form))
            return i;
        *decomposed += decompose(code, form, parts);
    }
    return n;
}

/* Normalise s[0..n), whose parts are `decomposed` code points. */
static bool rewrite(writer *w, const uint8_t *s, size_t n, size_t decomposed, aeg_normal_form form)
{
    if (decomposed > w->code_room) {
        aeg_free(w->memory, w->code);
        w->code_room = 0;
        w->code = aeg_malloc(w->memory, 2 * (decomposed + 64) * sizeof(w->code[0]));
        if (w->code == NULL)
            return false;
        w->code_room = decomposed + 64;
    }
    size_t n_code = 0;
    for (size_t i = 0; i < n;) {
        uint32_t length;
        utf8proc_int32_t parts[MAX_DECOMPOSED];
        const uint32_t code = aeg_utf8_get(s + i, &length);
        const size_t k = decompose(code, form, parts);
        memcpy(w->code + n_code, parts, k * sizeof(parts[0]));
        n_code += k;
        i += length;
    }
    sort_runs(w->code, n_code, w->code + w->code_room);
    const utf8proc_ssize_t composed = utf8proc_normalize_utf32(w->code, (utf8proc_ssize_t)n_code, options_of(form));
    if (composed < 0 || !reserve(w, (size_t)composed * 4))
        return false;
    for (utf8proc_ssize_t i = 0; i < composed; i++)
        w->n += aeg_utf8_put(w->bytes + w->n, (uint32_t)w->code[i]);
    return true;
}

aegis_status aeg_normalize(const uint8_t *text, size_t n, aeg_normal_form form, uint8_t **out, size_t *out_n,
                           aeg_memory *memory, aegis_error *err)
{
    writer w = { .memory = memory };
    bool ok = form == AEG_NORMAL_NONE ? copy(&w, text, n) : true;
    for (size_t at = 0; ok && at < n && form != AEG_NORMAL_NONE;) {
        size_t cut, decomposed;
        const size_t active = skip_inert(text, at, n, form, &cut);
        if (active == n) {
            ok = copy(&w, text + at, n - at);
            break;
        }
        const size_t end = active_end(text, cut, active, n, form, &decomposed);
        ok = copy(&w, text + at, cut - at) && rewrite(&w, text + cut, end - cut, decomposed, form);
        at = end;
    }
    aeg_free(memory, w.code);
    if (!ok) {
        aeg_free(memory, w.bytes);
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory to normalise %zu bytes of text", n);
    }
    *out = w.bytes;
    *out_n = w.n;
    return AEGIS_OK;
}

bool aeg_is_space(uint32_t code)
{
    if (code < 0x80)
        return code == ' ' || (code >= 0x09 && code <= 0x0D);
    if (code == 0x85)
        return true;
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP;
}

bool aeg_is_word(uint32_t code)
{
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return false;
    }
}
