/* SPDX-License-Identifier: Apache-2.0 */
#include "format/scan.h"

#include <string.h>

enum { MAX_DEPTH = 16 };

aegis_status aeg_scan_fail(const aeg_scan *s, const char *what, aegis_error *err)
{
    return aeg_fail(err, AEGIS_E_MODEL, "%s: byte %zu of the JSON: %s", s->path, (size_t)(s->p - s->start), what);
}

static void skip_space(aeg_scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
}

bool aeg_scan_take(aeg_scan *s, char c)
{
    skip_space(s);
    if (s->p >= s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

aegis_status aeg_scan_expect(aeg_scan *s, char c, aegis_error *err)
{
    if (aeg_scan_take(s, c))
        return AEGIS_OK;
    char what[64];
    if (s->p >= s->end) {
        memcpy(what, "the text ends, expected ' '", 28);
    } else {
        memcpy(what, "found '?', expected ' '", 24);
        what[7] = *s->p >= ' ' && *s->p <= '~' ? *s->p : '?';
    }
    what[strlen(what) - 2] = c;
    return aeg_scan_fail(s, what, err);
}

aegis_status aeg_scan_more(aeg_scan *s, char close, bool *more, aegis_error *err)
{
    *more = aeg_scan_take(s, ',');
    return *more ? AEGIS_OK : aeg_scan_expect(s, close, err);
}

static bool hex4(const char *p, uint32_t *out)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return false;
        v = v << 4 | (uint32_t)digit;
    }
    *out = v;
    return true;
}

static char *put_utf8(char *w, uint32_t c)
{
    if (c < 0x80) {
        *w++ = (char)c;
    } else if (c < 0x800) {
        *w++ = (char)(0xc0 | c >> 6);
        *w++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *w++ = (char)(0xe0 | c >> 12);
        *w++ = (char)(0x80 | (c >> 6 & 63));
        *w++ = (char)(0x80 | (c & 63));
    } else {
        *w++ = (char)(0xf0 | c >> 18);
        *w++ = (char)(0x80 | (c >> 12 & 63));
        *w++ = (char)(0x80 | (c >> 6 & 63));
        *w++ = (char)(0x80 | (c & 63));
    }
    return w;
}

/* s->p is behind the 'u' of an escape. A decoded character is never longer than its escape. */
static aegis_status unicode_escape(aeg_scan *s, char **w, aegis_error *err)
{
    uint32_t c = 0, low = 0;
    if (s->end - s->p < 4 || !hex4(s->p, &c))
        return aeg_scan_fail(s, "\\u needs four hexadecimal digits", err);
    s->p += 4;
    if (c >= 0xd800 && c < 0xdc00) {
        if (s->end - s->p < 6 || s->p[0] != '\\' || s->p[1] != 'u' || !hex4(s->p + 2, &low) || low < 0xdc00 ||
            low > 0xdfff)
            return aeg_scan_fail(s, "a surrogate without its partner", err);
        s->p += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    } else if (c >= 0xdc00 && c <= 0xdfff) {
        return aeg_scan_fail(s, "a surrogate without its partner", err);
    }
    if (c == 0)
        return aeg_scan_fail(s, "U+0000 in a string", err);
    *w = put_utf8(*w, c);
    return AEGIS_OK;
}

static aegis_status escape(aeg_scan *s, char **w, aegis_error *err)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (s->p >= s->end)
        return aeg_scan_fail(s, "the text ends inside a string", err);
    const char c = *s->p++;
    if (c == 'u')
        return unicode_escape(s, w, err);
    const char *at = c == '\0' ? NULL : strchr(from, c);
    if (at == NULL)
        return aeg_scan_fail(s, "an unknown escape", err);
    *(*w)++ = to[at - from];
    return AEGIS_OK;
}

/* Bytes of the UTF-8 character at p (a lead byte >= 0x80), 0 if it is not one. */
static size_t utf8_length(const uint8_t *p, size_t left)
{
    const uint8_t a = p[0];
    const size_t n = a >= 0xc2 && a <= 0xdf ? 2 : a >= 0xe0 && a <= 0xef ? 3 : a >= 0xf0 && a <= 0xf4 ? 4 : 0;
    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    /* over-long forms, surrogates and code points above U+10FFFF differ in the second byte */
    if ((a == 0xe0 && p[1] < 0xa0) || (a == 0xed && p[1] > 0x9f) || (a == 0xf0 && p[1] < 0x90) ||
        (a == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

aegis_status aeg_scan_string(aeg_scan *s, char **out, size_t max, aegis_error *err)
{
    AEG_TRY(aeg_scan_expect(s, '"', err));
    char *const begin = s->p;
    char *w = begin;
    for (;;) {
        if (s->p >= s->end)
            return aeg_scan_fail(s, "the text ends inside a string", err);
        const uint8_t c = (uint8_t)*s->p;
        if (c == '"')
            break;
        if (c < 0x20)
            return aeg_scan_fail(s, "a control character in a string", err);
        if (c == '\\') {
            s->p++;
            AEG_TRY(escape(s, &w, err));
            continue;
        }
        const size_t n = c < 0x80 ? 1 : utf8_length((const uint8_t *)s->p, (size_t)(s->end - s->p));
        if (n == 0)
            return aeg_scan_fail(s, "not valid UTF-8", err);
        memmove(w, s->p, n);
        w += n;
        s->p += n;
    }
    if ((size_t)(w - begin) > max)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: byte %zu of the JSON: a string of %zu bytes, expected at most %zu",
                        s->path, (size_t)(begin - s->start), (size_t)(w - begin), max);
    s->p++;
    *w = '\0'; /* at latest where the closing quote was */
    *out = begin;
    return AEGIS_OK;
}

aegis_status aeg_scan_uint(aeg_scan *s, uint64_t *out, aegis_error *err)
{
    skip_space(s);
    const char *begin = s->p;
    uint64_t v = 0;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9') {
        if (v > (INT64_MAX - 9) / 10)
            return aeg_scan_fail(s, "an integer of more than 63 bits", err);
        v = v * 10 + (uint64_t)(*s->p++ - '0');
    }
    if (s->p == begin)
        return aeg_scan_fail(s, "expected a non-negative integer", err);
    if (*begin == '0' && s->p - begin > 1)
        return aeg_scan_fail(s, "an integer with a leading zero", err);
    if (s->p < s->end && (*s->p == '.' || *s->p == 'e' || *s->p == 'E'))
        return aeg_scan_fail(s, "expected an integer without fraction or exponent", err);
    *out = v;
    return AEGIS_OK;
}

static aegis_status skip_word(aeg_scan *s, aegis_error *err)
{
    static const char *const words[] = { "true", "false", "null" };
    for (size_t i = 0; i < 3; i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(s->end - s->p) >= n && memcmp(s->p, words[i], n) == 0) {
            s->p += n;
            return AEGIS_OK;
        }
    }
    const char *begin = s->p;
    while (s->p < s->end && *s->p != '\0' && strchr("+-.0123456789eE", *s->p) != NULL)
        s->p++;
    return s->p == begin ? aeg_scan_fail(s, "expected a value", err) : AEGIS_OK;
}

static aegis_status skip_value(aeg_scan *s, int depth, aegis_error *err)
{
    if (depth > MAX_DEPTH)
        return aeg_scan_fail(s, "nested deeper than 16 levels", err);
    skip_space(s);
    char *text;
    if (s->p < s->end && *s->p == '"')
        return aeg_scan_string(s, &text, SIZE_MAX, err);
    const bool object = aeg_scan_take(s, '{');
    if (!object && !aeg_scan_take(s, '['))
        return skip_word(s, err);
    const char close = object ? '}' : ']';
    if (aeg_scan_take(s, close))
        return AEGIS_OK;
    for (bool more = true; more;) {
        if (object) {
            AEG_TRY(aeg_scan_string(s, &text, SIZE_MAX, err));
            AEG_TRY(aeg_scan_expect(s, ':', err));
        }
        AEG_TRY(skip_value(s, depth + 1, err));
        AEG_TRY(aeg_scan_more(s, close, &more, err));
    }
    return AEGIS_OK;
}

aegis_status aeg_scan_skip(aeg_scan *s, aegis_error *err) { return skip_value(s, 1, err); }
