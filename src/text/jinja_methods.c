/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of strings. */
#include <string.h>

#include "text/jinja_filters.h"
#include "text/jinja_text.h"

#define NO_ARGS(r, c) aeg_jin_bind(r, c, (const char *const[]){ NULL }, 0, NULL)

static bool m_upper(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return NO_ARGS(r, c) && aeg_jin_case(r, v, AEG_JCASE_UPPER, out);
}

static bool m_lower(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return NO_ARGS(r, c) && aeg_jin_case(r, v, AEG_JCASE_LOWER, out);
}

static bool m_title(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return NO_ARGS(r, c) && aeg_jin_case(r, v, AEG_JCASE_TITLE, out);
}

static bool m_capitalize(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return NO_ARGS(r, c) && aeg_jin_case(r, v, AEG_JCASE_CAPITALIZE, out);
}

static bool strip(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, int sides, aeg_jval *out)
{
    static const char *const names[] = { "chars", NULL };
    aeg_jval chars;
    return aeg_jin_bind(r, c, names, 0, &chars) && aeg_jin_strip(r, v, &chars, sides, out);
}

static bool m_strip(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return strip(r, v, c, 3, out);
}

static bool m_lstrip(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return strip(r, v, c, 1, out);
}

static bool m_rstrip(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return strip(r, v, c, 2, out);
}

static bool m_replace(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "old", "new", "count", NULL };
    aeg_jval a[3];
    const char *p;
    size_t n;
    int64_t count = -1;
    AEG_JTRY(aeg_jin_bind(r, c, names, 2, a) && aeg_jin_want_string(r, c, &a[0], &p, &n) &&
             aeg_jin_want_string(r, c, &a[1], &p, &n));
    if (a[2].type != JV_UNSET)
        AEG_JTRY(aeg_jin_want_int(r, c, &a[2], &count));
    return aeg_jin_replace(r, v, &a[0], &a[1], count, out);
}

/* Pieces between runs of whitespace; at most `max` cuts (negative: any), from the left or right. */
static bool split_space(aeg_jrun *r, const char *s, size_t n, int64_t max, bool right, aeg_jlist *l)
{
    size_t start = 0, end = n, k;
    for (;;) {
        while (start < end && (k = aeg_text_space_at(s, end, start)) != 0)
            start += k;
        while (right && (k = aeg_text_space_before(s, start, end)) != 0)
            end -= k;
        if (start >= end)
            return true;
        if (max-- == 0) /* the rest is one piece; its far end keeps its spaces */
            return aeg_jlist_push(r, l, right ? aeg_jv_text(s, end) : aeg_jv_text(s + start, n - start));
        size_t i = right ? end : start;
        if (right) {
            while (i > start && aeg_text_space_before(s, start, i) == 0)
                i -= aeg_text_before(s, start, i);
            AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jlist_push(r, l, aeg_jv_text(s + i, end - i)));
            end = i;
        } else {
            while (i < end && aeg_text_space_at(s, end, i) == 0)
                i += aeg_text_offset(s + i, end - i, 1);
            AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jlist_push(r, l, aeg_jv_text(s + start, i - start)));
            start = i;
        }
    }
}

static const char *last_match(const char *s, size_t n, const char *sub, size_t k)
{
    for (size_t i = n < k ? 0 : n - k + 1; i > 0; i--)
        if (memcmp(s + i - 1, sub, k) == 0)
            return s + i - 1;
    return NULL;
}

static bool split_text(aeg_jrun *r, const char *s, size_t n, const aeg_jval *sep, int64_t max, bool right,
                       aeg_jlist *l)
{
    const size_t k = sep->u.s.n;
    size_t start = 0, end = n;
    while (max-- != 0) {
        const char *hit = right ? last_match(s, end, sep->u.s.p, k) : memmem(s + start, end - start, sep->u.s.p, k);
        if (hit == NULL)
            break;
        const size_t at = (size_t)(hit - s);
        AEG_JTRY(aeg_jrun_step(r, 1));
        if (right) {
            AEG_JTRY(aeg_jlist_push(r, l, aeg_jv_text(s + at + k, end - at - k)));
            end = at;
        } else {
            AEG_JTRY(aeg_jlist_push(r, l, aeg_jv_text(s + start, at - start)));
            start = at + k;
        }
    }
    return aeg_jlist_push(r, l, aeg_jv_text(s + start, end - start));
}

static bool split(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, bool right, aeg_jval *out)
{
    static const char *const names[] = { "sep", "maxsplit", NULL };
    aeg_jval a[2];
    int64_t max = -1;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a));
    if (a[1].type != JV_UNSET)
        AEG_JTRY(aeg_jin_want_int(r, c, &a[1], &max));
    aeg_jlist *l = aeg_jlist_new(r, JL_LIST, 0);
    AEG_JTRY(l != NULL && aeg_jrun_step(r, v->u.s.n / 32));
    if (a[0].type == JV_UNSET || a[0].type == JV_NONE) {
        AEG_JTRY(split_space(r, v->u.s.p, v->u.s.n, max, right, l));
    } else {
        const char *p;
        size_t n;
        AEG_JTRY(aeg_jin_want_string(r, c, &a[0], &p, &n));
        if (n == 0)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s() got an empty separator", c->what);
        AEG_JTRY(split_text(r, v->u.s.p, v->u.s.n, &a[0], max, right, l));
    }
    for (size_t i = 0; right && i < l->n / 2; i++) {
        const aeg_jval t = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = t;
    }
    *out = aeg_jv_list(l);
    return true;
}

static bool m_split(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return split(r, v, c, false, out);
}

static bool m_rsplit(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return split(r, v, c, true, out);
}

static bool m_splitlines(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "keepends", NULL };
    aeg_jval keep;
    return aeg_jin_bind(r, c, names, 0, &keep) &&
           aeg_jin_splitlines(r, v, keep.type != JV_UNSET && aeg_jv_truth(&keep), out);
}

static bool m_join(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "iterable", NULL };
    aeg_jval iterable;
    const aeg_jval *items;
    size_t n;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, &iterable) && aeg_jin_iterate(r, &iterable, &items, &n));
    const size_t mark = aeg_jrun_capture_begin(r);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        if (items[i].type != JV_STRING)
            ok = aeg_jrun_fail(r, AEGIS_E_USAGE, "join(): item %zu is a '%s', expected a string", i,
                               aeg_jv_type_name(&items[i]));
        ok = ok && aeg_jrun_step(r, 1) && (i == 0 || aeg_jrun_write(r, v->u.s.p, v->u.s.n)) &&
             aeg_jrun_write(r, items[i].u.s.p, items[i].u.s.n);
    }
    if (!ok) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}

/* The part of `v` between the optional start and end of find(), count(), startswith(); *first is its
 * offset in code points. False in *in_range: a start behind the end of the text, where not even the
 * empty string is found. */
static bool window(aeg_jrun *r, const aeg_jval *v, const aeg_jval *bounds, aeg_jval *part, int64_t *first,
                   bool *in_range)
{
    *part = *v;
    *first = 0;
    *in_range = true;
    if (bounds[0].type == JV_UNSET && bounds[1].type == JV_UNSET)
        return true;
    aeg_jval slice[3] = { bounds[0], bounds[1], aeg_jv_none() };
    for (int i = 0; i < 2; i++)
        if (slice[i].type == JV_UNSET)
            slice[i] = aeg_jv_none();
    AEG_JTRY(aeg_jin_slice(r, v, slice, part));
    if (slice[0].type == JV_NONE)
        return true;
    const int64_t n = (int64_t)aeg_text_count(v->u.s.p, v->u.s.n);
    int64_t start = aeg_jv_as_int(&slice[0]), end = slice[1].type == JV_NONE ? n : aeg_jv_as_int(&slice[1]);
    start = start < -n ? 0 : start < 0 ? start + n : start;
    end = end > n ? n : end < -n ? 0 : end < 0 ? end + n : end;
    *first = start;
    *in_range = start <= end;
    return true;
}

/* find and its kin: the index in code points, or -1. */
static bool search(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, bool right, int64_t *out)
{
    static const char *const names[] = { "sub", "start", "end", NULL };
    aeg_jval a[3], part;
    const char *sub;
    size_t n;
    int64_t first;
    bool in_range;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, a) && aeg_jin_want_string(r, c, &a[0], &sub, &n) &&
             window(r, v, a + 1, &part, &first, &in_range) && aeg_jrun_step(r, v->u.s.n / 32));
    const char *s = part.u.s.p;
    const char *hit = !in_range ? NULL
                      : right   ? last_match(s, part.u.s.n, sub, n)
                      : n == 0  ? s
                                : memmem(s, part.u.s.n, sub, n);
    *out = hit == NULL ? -1 : first + (int64_t)aeg_text_count(s, (size_t)(hit - s));
    return true;
}

static bool found_at(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, bool right, bool required, aeg_jval *out)
{
    int64_t at;
    AEG_JTRY(search(r, v, c, right, &at));
    if (required && at < 0)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s(): substring not found", c->what);
    *out = aeg_jv_int(at);
    return true;
}

static bool m_find(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return found_at(r, v, c, false, false, out);
}

static bool m_rfind(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return found_at(r, v, c, true, false, out);
}

static bool m_index(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return found_at(r, v, c, false, true, out);
}

static bool m_rindex(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return found_at(r, v, c, true, true, out);
}

static bool m_count(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "sub", "start", "end", NULL };
    aeg_jval a[3], part;
    const char *sub;
    size_t n;
    int64_t first, count = 0;
    bool in_range;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, a) && aeg_jin_want_string(r, c, &a[0], &sub, &n) &&
             window(r, v, a + 1, &part, &first, &in_range) && aeg_jrun_step(r, v->u.s.n / 32));
    const char *s = part.u.s.p, *end = s + part.u.s.n, *hit;
    if (n == 0)
        count = in_range ? (int64_t)aeg_text_count(s, part.u.s.n) + 1 : 0;
    else
        for (; (hit = memmem(s, (size_t)(end - s), sub, n)) != NULL; s = hit + n)
            count++;
    *out = aeg_jv_int(count);
    return true;
}

static bool has_affix(const aeg_jval *text, const aeg_jval *affix, bool at_end)
{
    const size_t n = affix->u.s.n;
    return text->u.s.n >= n &&
           (n == 0 || memcmp(text->u.s.p + (at_end ? text->u.s.n - n : 0), affix->u.s.p, n) == 0);
}

static bool affix(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, bool at_end, aeg_jval *out)
{
    static const char *const names[] = { "prefix", "start", "end", NULL };
    aeg_jval a[3], part;
    int64_t first;
    bool in_range, found = false;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, a) && window(r, v, a + 1, &part, &first, &in_range));
    const bool is_tuple = a[0].type == JV_LIST && a[0].u.list->flavor == JL_TUPLE;
    const aeg_jval *items = is_tuple ? a[0].u.list->items : &a[0];
    const size_t n = is_tuple ? a[0].u.list->n : 1;
    for (size_t i = 0; i < n && !found; i++) {
        if (items[i].type != JV_STRING)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s() got a '%s', expected a string or a tuple of strings",
                                 c->what, aeg_jv_type_name(&items[i]));
        found = in_range && has_affix(&part, &items[i], at_end);
    }
    *out = aeg_jv_bool(found);
    return true;
}

static bool m_startswith(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return affix(r, v, c, false, out);
}

static bool m_endswith(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return affix(r, v, c, true, out);
}

static bool remove_affix(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, bool at_end, aeg_jval *out)
{
    static const char *const names[] = { "prefix", NULL };
    aeg_jval a;
    const char *p;
    size_t n;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, &a) && aeg_jin_want_string(r, c, &a, &p, &n));
    *out = *v;
    if (!has_affix(v, &a, at_end))
        return true;
    out->u.s.p += at_end ? 0 : n;
    out->u.s.n -= n;
    return true;
}

static bool m_removeprefix(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return remove_affix(r, v, c, false, out);
}

static bool m_removesuffix(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return remove_affix(r, v, c, true, out);
}

static bool partition(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, bool right, aeg_jval *out)
{
    static const char *const names[] = { "sep", NULL };
    aeg_jval sep;
    const char *p, *s = v->u.s.p;
    size_t k;
    const size_t n = v->u.s.n;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, &sep) && aeg_jin_want_string(r, c, &sep, &p, &k));
    if (k == 0)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s() got an empty separator", c->what);
    const char *hit = right ? last_match(s, n, p, k) : memmem(s, n, p, k);
    const size_t at = hit != NULL ? (size_t)(hit - s) : right ? 0 : n;
    const size_t gap = hit != NULL ? k : 0;
    aeg_jlist *l = aeg_jlist_new(r, JL_TUPLE, 3);
    AEG_JTRY(l != NULL && aeg_jrun_step(r, n / 32));
    l->items[0] = aeg_jv_text(s, at);
    l->items[1] = aeg_jv_text(p, gap);
    l->items[2] = aeg_jv_text(s + at + gap, n - at - gap);
    l->n = 3;
    *out = aeg_jv_list(l);
    return true;
}

static bool m_partition(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return partition(r, v, c, false, out);
}

static bool m_rpartition(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return partition(r, v, c, true, out);
}

const aeg_jbuiltin aeg_jm_string_table[] = {
    { "split", m_split }, { "strip", m_strip }, { "lstrip", m_lstrip }, { "rstrip", m_rstrip },
    { "startswith", m_startswith }, { "endswith", m_endswith }, { "replace", m_replace }, { "upper", m_upper },
    { "lower", m_lower }, { "title", m_title }, { "capitalize", m_capitalize }, { "find", m_find },
    { "rfind", m_rfind }, { "index", m_index }, { "rindex", m_rindex }, { "count", m_count },
    { "join", m_join }, { "rsplit", m_rsplit }, { "splitlines", m_splitlines }, { "format", aeg_jm_format },
    { "removeprefix", m_removeprefix }, { "removesuffix", m_removesuffix }, { "partition", m_partition },
    { "rpartition", m_rpartition }, { NULL, NULL },
};
