/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja_text.h"

#include <string.h>
#include <utf8proc.h>

#include "text/jinja_casing.h"

/* The bytes of a well-formed sequence at s, or 0. */
static size_t sequence(const unsigned char *s, size_t n, uint32_t *cp)
{
    if (s[0] < 0x80) {
        *cp = s[0];
        return 1;
    }
    const size_t k = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || n < k)
        return 0;
    uint32_t c = s[0] & (0xFFu >> (k + 1));
    for (size_t i = 1; i < k; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3F);
    }
    if ((k == 3 && c < 0x800) || (k == 4 && c < 0x10000) || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return 0;
    *cp = c;
    return k;
}

size_t aeg_text_decode(const char *s, size_t n, uint32_t *cp)
{
    const size_t k = sequence((const unsigned char *)s, n, cp);
    if (k != 0)
        return k;
    *cp = 0xFFFD;
    return 1;
}

size_t aeg_text_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

bool aeg_text_valid(const char *s, size_t n, size_t *bad)
{
    uint32_t cp;
    for (size_t i = 0; i < n;) {
        const size_t k = sequence((const unsigned char *)s + i, n - i, &cp);
        if (k == 0) {
            *bad = i;
            return false;
        }
        i += k;
    }
    return true;
}

size_t aeg_text_count(const char *s, size_t n)
{
    size_t count = 0;
    uint32_t cp;
    for (size_t i = 0; i < n; count++)
        i += (unsigned char)s[i] < 0x80 ? 1 : aeg_text_decode(s + i, n - i, &cp);
    return count;
}

size_t aeg_text_offset(const char *s, size_t n, size_t code_points)
{
    size_t i = 0;
    uint32_t cp;
    for (; code_points > 0 && i < n; code_points--)
        i += (unsigned char)s[i] < 0x80 ? 1 : aeg_text_decode(s + i, n - i, &cp);
    return i;
}

size_t aeg_text_before(const char *s, size_t start, size_t end)
{
    for (size_t k = 1; k <= 4 && start + k <= end; k++) {
        uint32_t cp;
        if (((unsigned char)s[end - k] & 0xC0) == 0x80)
            continue;
        return sequence((const unsigned char *)s + end - k, k, &cp) == k ? k : 1;
    }
    return end > start ? 1 : 0;
}

bool aeg_text_is_space(uint32_t cp)
{
    if (cp < 0x80)
        return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1C && cp <= 0x1F);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 ||
           cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

size_t aeg_text_space_at(const char *s, size_t n, size_t pos)
{
    uint32_t cp;
    if (pos >= n)
        return 0;
    const size_t k = aeg_text_decode(s + pos, n - pos, &cp);
    return aeg_text_is_space(cp) ? k : 0;
}

size_t aeg_text_space_before(const char *s, size_t start, size_t end)
{
    uint32_t cp;
    const size_t k = aeg_text_before(s, start, end);
    if (k == 0)
        return 0;
    aeg_text_decode(s + end - k, k, &cp);
    return aeg_text_is_space(cp) ? k : 0;
}

bool aeg_text_is_printable(uint32_t cp)
{
    if (cp < 0x7F)
        return cp >= 0x20;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    default: return true;
    }
}

bool aeg_text_is_cased(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT: return true;
    default: break;
    }
    /* Other_Lowercase and Other_Uppercase, the ranges that text has: ordinals, modifier letters,
     * Roman numerals, circled letters. */
    return cp == 0xAA || cp == 0xBA || (cp >= 0x2B0 && cp <= 0x2B8) || (cp >= 0x2C0 && cp <= 0x2C1) ||
           (cp >= 0x2E0 && cp <= 0x2E4) || cp == 0x345 || cp == 0x37A || (cp >= 0x1D2C && cp <= 0x1D6A) ||
           cp == 0x1D78 || (cp >= 0x1D9B && cp <= 0x1DBF) || cp == 0x2071 || cp == 0x207F ||
           (cp >= 0x2090 && cp <= 0x209C) || (cp >= 0x2160 && cp <= 0x217F) || (cp >= 0x24B6 && cp <= 0x24E9);
}

bool aeg_text_is_case_ignorable(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: break;
    }
    return cp == '\'' || cp == '.' || cp == ':' || cp == 0xB7 || cp == 0x387 || cp == 0x2018 || cp == 0x2019 ||
           cp == 0x2024 || cp == 0x2027 || cp == 0xFE13 || cp == 0xFE52 || cp == 0xFE55 || cp == 0xFF07 ||
           cp == 0xFF0E || cp == 0xFF1A;
}

bool aeg_text_is(uint32_t cp, aeg_text_class c)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)cp);
    const bool letter = k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
    /* Superscripts and circled digits have a digit value without being decimal. */
    const bool digit = k == UTF8PROC_CATEGORY_ND || cp == 0xB2 || cp == 0xB3 || cp == 0xB9 || cp == 0x2070 ||
                       (cp >= 0x2074 && cp <= 0x2079) || (cp >= 0x2080 && cp <= 0x2089) ||
                       (cp >= 0x2460 && cp <= 0x2468) || (cp >= 0x2474 && cp <= 0x247C);
    const bool numeric = digit || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
    switch (c) {
    case AEG_CLASS_ALPHA: return letter;
    case AEG_CLASS_DECIMAL: return k == UTF8PROC_CATEGORY_ND;
    case AEG_CLASS_DIGIT: return digit;
    case AEG_CLASS_NUMERIC: return numeric;
    case AEG_CLASS_UPPER: return k == UTF8PROC_CATEGORY_LU || (cp >= 0x2160 && cp <= 0x216F);
    case AEG_CLASS_LOWER: return k != UTF8PROC_CATEGORY_LU && k != UTF8PROC_CATEGORY_LT && aeg_text_is_cased(cp) &&
                                 !(cp >= 0x2160 && cp <= 0x216F) && !(cp >= 0x24B6 && cp <= 0x24CF);
    case AEG_CLASS_TITLE: return k == UTF8PROC_CATEGORY_LT;
    case AEG_CLASS_WORD: return letter || numeric || cp == '_';
    }
    return false;
}

static const aeg_jcasing *special(uint32_t cp)
{
    size_t low = 0, high = AEG_JIN_N_CASING;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (aeg_jin_casing[mid].cp == cp)
            return &aeg_jin_casing[mid];
        if (aeg_jin_casing[mid].cp < cp)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

size_t aeg_text_map(uint32_t cp, aeg_text_case c, uint32_t out[AEG_TEXT_CASE_MAX])
{
    const utf8proc_int32_t u = (utf8proc_int32_t)cp;
    if (cp < 0x80) {
        const bool to_upper = c != AEG_CASE_LOWER && cp >= 'a' && cp <= 'z';
        const bool to_lower = c == AEG_CASE_LOWER && cp >= 'A' && cp <= 'Z';
        out[0] = to_upper ? cp - 32 : to_lower ? cp + 32 : cp;
        return 1;
    }
    if (c == AEG_CASE_LOWER) {
        out[0] = cp == 0x130 ? 'i' : (uint32_t)utf8proc_tolower(u);
        out[1] = 0x307;
        return cp == 0x130 ? 2 : 1;
    }
    const aeg_jcasing *s = special(cp);
    if (s == NULL) {
        out[0] = (uint32_t)(c == AEG_CASE_UPPER ? utf8proc_toupper(u) : utf8proc_totitle(u));
        return 1;
    }
    size_t n = 0;
    for (; n < AEG_TEXT_CASE_MAX; n++) {
        out[n] = c == AEG_CASE_UPPER ? s->upper[n] : s->title[n];
        if (out[n] == 0)
            break;
    }
    return n;
}
