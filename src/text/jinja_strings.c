/* SPDX-License-Identifier: Apache-2.0 */
/* String work that filters and methods share. */
#include <string.h>

#include "text/jinja_filters.h"
#include "text/jinja_text.h"

/* Lower case of the code point at `at`; a capital sigma that ends a word becomes the final sigma. */
static size_t lower_at(const char *s, size_t n, size_t at, uint32_t cp, uint32_t out[AEG_TEXT_CASE_MAX])
{
    if (cp != 0x3A3)
        return aeg_text_map(cp, AEG_CASE_LOWER, out);
    bool before = false, after = false;
    uint32_t c;
    for (size_t i = at; i > 0;) {
        const size_t k = aeg_text_before(s, 0, i);
        aeg_text_decode(s + i - k, k, &c);
        i -= k;
        if (aeg_text_is_case_ignorable(c))
            continue;
        before = aeg_text_is_cased(c);
        break;
    }
    for (size_t i = at + 2; i < n;) {
        i += aeg_text_decode(s + i, n - i, &c);
        if (aeg_text_is_case_ignorable(c))
            continue;
        after = aeg_text_is_cased(c);
        break;
    }
    out[0] = before && !after ? 0x3C2 : 0x3C3;
    return 1;
}

static bool separates_words(uint32_t cp)
{
    return cp == '-' || cp == '(' || cp == '{' || cp == '[' || cp == '<' || aeg_text_is_space(cp);
}

/* Case of one string, written to the capture under way. */
static bool write_case(aeg_jrun *r, const char *s, size_t n, aeg_jcase how)
{
    bool in_word = false;
    size_t word = 0; /* where the text starts that the final sigma rule looks at */
    AEG_JTRY(aeg_jrun_step(r, n / 16));
    for (size_t i = 0; i < n;) {
        uint32_t cp, out[AEG_TEXT_CASE_MAX];
        size_t count;
        const size_t k = aeg_text_decode(s + i, n - i, &cp);
        if (how == AEG_JCASE_UPPER)
            count = aeg_text_map(cp, AEG_CASE_UPPER, out);
        else if (how == AEG_JCASE_LOWER || in_word)
            count = lower_at(s + word, n - word, i - word, cp, out);
        else
            count = aeg_text_map(cp, how == AEG_JCASE_JINJA_TITLE ? AEG_CASE_UPPER : AEG_CASE_TITLE, out);
        if (how == AEG_JCASE_CAPITALIZE) {
            in_word = true;
        } else if (how == AEG_JCASE_TITLE) {
            in_word = aeg_text_is_cased(cp);
        } else if (how == AEG_JCASE_JINJA_TITLE) {
            if (!in_word)
                word = i + k;
            in_word = !separates_words(cp);
        }
        for (size_t j = 0; j < count; j++) {
            char text[4];
            AEG_JTRY(aeg_jrun_write(r, text, aeg_text_encode(out[j], text)));
        }
        i += k;
    }
    return true;
}

bool aeg_jin_case(aeg_jrun *r, const aeg_jval *v, aeg_jcase how, aeg_jval *out)
{
    aeg_jval text;
    AEG_JTRY(aeg_jin_str(r, v, &text));
    const size_t mark = aeg_jrun_capture_begin(r);
    if (!write_case(r, text.u.s.p, text.u.s.n, how)) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}

static const char *entity(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '\'': return "&#39;";
    case '"': return "&#34;";
    default: return NULL;
    }
}

bool aeg_jin_escape(aeg_jrun *r, const aeg_jval *v, aeg_jval *out)
{
    aeg_jval text;
    AEG_JTRY(aeg_jin_str(r, v, &text));
    *out = text;
    if (text.sub == 1)
        return true;
    const size_t mark = aeg_jrun_capture_begin(r);
    size_t done = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < text.u.s.n; i++) {
        const char *e = entity(text.u.s.p[i]);
        if (e == NULL)
            continue;
        ok = aeg_jrun_write(r, text.u.s.p + done, i - done) && aeg_jrun_write(r, e, strlen(e));
        done = i + 1;
    }
    if (!ok || !aeg_jrun_write(r, text.u.s.p + done, text.u.s.n - done)) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    AEG_JTRY(aeg_jrun_capture_end(r, mark, out));
    out->sub = 1;
    return true;
}

/* Between every two characters and at both ends, as Python replaces the empty string. */
static bool replace_empty(aeg_jrun *r, const char *s, size_t n, const aeg_jval *to, int64_t count)
{
    size_t i = 0;
    for (; count != 0; count--) {
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jrun_write(r, to->u.s.p, to->u.s.n));
        if (i == n)
            return true;
        const size_t k = aeg_text_offset(s + i, n - i, 1);
        AEG_JTRY(aeg_jrun_write(r, s + i, k));
        i += k;
    }
    return aeg_jrun_write(r, s + i, n - i);
}

static bool replace_text(aeg_jrun *r, const char *s, size_t n, const aeg_jval *from, const aeg_jval *to,
                         int64_t count)
{
    size_t i = 0;
    while (count != 0 && i < n) {
        const char *hit = memmem(s + i, n - i, from->u.s.p, from->u.s.n);
        if (hit == NULL)
            break;
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jrun_write(r, s + i, (size_t)(hit - (s + i))));
        AEG_JTRY(aeg_jrun_write(r, to->u.s.p, to->u.s.n));
        i = (size_t)(hit - s) + from->u.s.n;
        count--;
    }
    return aeg_jrun_write(r, s + i, n - i);
}

bool aeg_jin_replace(aeg_jrun *r, const aeg_jval *v, const aeg_jval *from, const aeg_jval *to, int64_t count,
                     aeg_jval *out)
{
    const size_t mark = aeg_jrun_capture_begin(r);
    const bool ok = from->u.s.n == 0 ? replace_empty(r, v->u.s.p, v->u.s.n, to, count)
                                     : replace_text(r, v->u.s.p, v->u.s.n, from, to, count);
    if (!ok) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}

/* Whether the code point in the k bytes at p goes: whitespace, or one of `chars`. */
static bool strips(const char *p, size_t k, const aeg_jval *chars)
{
    uint32_t cp, c;
    aeg_text_decode(p, k, &cp);
    if (chars->type != JV_STRING)
        return aeg_text_is_space(cp);
    for (size_t i = 0; i < chars->u.s.n;) {
        i += aeg_text_decode(chars->u.s.p + i, chars->u.s.n - i, &c);
        if (c == cp)
            return true;
    }
    return false;
}

bool aeg_jin_strip(aeg_jrun *r, const aeg_jval *v, const aeg_jval *chars, int sides, aeg_jval *out)
{
    const char *s = v->u.s.p;
    size_t start = 0, end = v->u.s.n;
    uint32_t cp;
    if (chars->type != JV_STRING && chars->type != JV_NONE && chars->type != JV_UNSET)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "strip got a '%s', expected a string or none",
                             aeg_jv_type_name(chars));
    while ((sides & 1) && start < end) {
        const size_t k = aeg_text_decode(s + start, end - start, &cp);
        if (!strips(s + start, k, chars))
            break;
        start += k;
    }
    while ((sides & 2) && start < end) {
        const size_t k = aeg_text_before(s, start, end);
        if (!strips(s + end - k, k, chars))
            break;
        end -= k;
    }
    *out = *v; /* a view; strings never change */
    out->u.s.p = s + start;
    out->u.s.n = end - start;
    return aeg_jrun_step(r, (v->u.s.n - out->u.s.n) / 16 + (chars->type == JV_STRING ? chars->u.s.n / 8 : 0));
}

/* Bytes of the line break at s, 0 if none. */
static size_t line_break(const char *s, size_t n)
{
    uint32_t cp;
    const size_t k = aeg_text_decode(s, n, &cp);
    if (cp == '\r' && n > 1 && s[1] == '\n')
        return 2;
    return cp == '\n' || cp == '\r' || cp == 0xB || cp == 0xC || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 ||
           cp == 0x2028 || cp == 0x2029 ? k : 0;
}

bool aeg_jin_splitlines(aeg_jrun *r, const aeg_jval *v, bool keep_ends, aeg_jval *out)
{
    const char *s = v->u.s.p;
    const size_t n = v->u.s.n;
    aeg_jlist *l = aeg_jlist_new(r, JL_LIST, 0);
    AEG_JTRY(l != NULL && aeg_jrun_step(r, n / 16));
    size_t start = 0;
    for (size_t i = 0; i < n;) {
        const size_t k = line_break(s + i, n - i);
        if (k == 0) {
            i += aeg_text_offset(s + i, n - i, 1);
            continue;
        }
        AEG_JTRY(aeg_jlist_push(r, l, aeg_jv_text(s + start, i - start + (keep_ends ? k : 0))));
        i += k;
        start = i;
    }
    if (start < n)
        AEG_JTRY(aeg_jlist_push(r, l, aeg_jv_text(s + start, n - start)));
    *out = aeg_jv_list(l);
    return true;
}
