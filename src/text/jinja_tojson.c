/* SPDX-License-Identifier: Apache-2.0 */
/* tojson as Hugging Face's templates have it: json.dumps, keys in their order, non-ASCII text as it is. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/jinja_filters.h"
#include "text/jinja_number.h"
#include "text/jinja_text.h"

typedef struct {
    bool ascii, sorted;
    bool indented;
    aeg_jval indent;       /* one level's text, if indented */
    aeg_jval comma, colon;
} layout;

static bool put(aeg_jrun *r, const char *s) { return aeg_jrun_write(r, s, strlen(s)); }
static bool put_text(aeg_jrun *r, const aeg_jval *v) { return aeg_jrun_write(r, v->u.s.p, v->u.s.n); }

static bool put_unit(aeg_jrun *r, uint32_t unit)
{
    char text[16];
    snprintf(text, sizeof text, "\\u%04x", unit);
    return put(r, text);
}

static bool put_char(aeg_jrun *r, uint32_t cp, const char *p, size_t k, bool ascii)
{
    switch (cp) {
    case '"': return put(r, "\\\"");
    case '\\': return put(r, "\\\\");
    case '\n': return put(r, "\\n");
    case '\r': return put(r, "\\r");
    case '\t': return put(r, "\\t");
    case '\f': return put(r, "\\f");
    case '\b': return put(r, "\\b");
    default: break;
    }
    if (cp < 0x20 || (ascii && cp > 0x7E && cp < 0x10000))
        return put_unit(r, cp);
    if (ascii && cp >= 0x10000)
        return put_unit(r, 0xD800 + ((cp - 0x10000) >> 10)) && put_unit(r, 0xDC00 + ((cp - 0x10000) & 0x3FF));
    return aeg_jrun_write(r, p, k);
}

static bool put_string(aeg_jrun *r, const char *s, size_t n, bool ascii)
{
    size_t done = 0;
    AEG_JTRY(aeg_jrun_step(r, n / 32) && put(r, "\""));
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        const size_t k = aeg_text_decode(s + i, n - i, &cp);
        if (cp < 0x20 || cp == '"' || cp == '\\' || (ascii && cp > 0x7E)) {
            AEG_JTRY(aeg_jrun_write(r, s + done, i - done) && put_char(r, cp, s + i, k, ascii));
            done = i + k;
        }
        i += k;
    }
    return aeg_jrun_write(r, s + done, n - done) && put(r, "\"");
}

static bool put_number(aeg_jrun *r, const aeg_jval *v)
{
    char text[AEG_FLOAT_TEXT];
    if (v->type == JV_FLOAT && !isfinite(v->u.f))
        return put(r, isnan(v->u.f) ? "NaN" : v->u.f > 0 ? "Infinity" : "-Infinity");
    if (v->type == JV_FLOAT)
        return put(r, aeg_float_repr(v->u.f, text));
    if (v->type == JV_BOOL)
        return put(r, v->u.b ? "true" : "false");
    snprintf(text, sizeof text, "%lld", (long long)v->u.i);
    return put(r, text);
}

static bool put_value(aeg_jrun *r, const layout *l, const aeg_jval *v, uint32_t level);

static bool new_line(aeg_jrun *r, const layout *l, uint32_t level)
{
    if (!l->indented)
        return true;
    AEG_JTRY(put(r, "\n"));
    for (uint32_t i = 0; i < level; i++)
        AEG_JTRY(aeg_jrun_step(r, 1) && put_text(r, &l->indent));
    return true;
}

static bool put_array(aeg_jrun *r, const layout *l, const aeg_jlist *list, uint32_t level)
{
    AEG_JTRY(put(r, "["));
    for (size_t i = 0; i < list->n; i++) {
        AEG_JTRY(i == 0 || put_text(r, &l->comma));
        AEG_JTRY(new_line(r, l, level + 1) && put_value(r, l, &list->items[i], level + 1));
    }
    return (list->n == 0 || new_line(r, l, level)) && put(r, "]");
}

/* Keys are strings in JSON: numbers, booleans and null become what they would print. */
static bool put_key(aeg_jrun *r, const layout *l, const aeg_jval *key)
{
    if (key->type == JV_STRING)
        return put_string(r, key->u.s.p, key->u.s.n, l->ascii);
    if (key->type == JV_NONE)
        return put(r, "\"null\"");
    if (aeg_jv_is_number(key))
        return put(r, "\"") && put_number(r, key) && put(r, "\"");
    return aeg_jrun_fail(r, AEGIS_E_USAGE, "tojson(): a '%s' cannot be a key", aeg_jv_type_name(key));
}

static bool put_pair(aeg_jrun *r, const layout *l, const aeg_jpair *pair, bool first, uint32_t level)
{
    return (first || put_text(r, &l->comma)) && new_line(r, l, level + 1) && put_key(r, l, &pair->key) &&
           put_text(r, &l->colon) && put_value(r, l, &pair->value, level + 1);
}

static bool put_object(aeg_jrun *r, const layout *l, const aeg_jdict *d, uint32_t level)
{
    aeg_jval *order, *keys;
    size_t n = 0;
    AEG_JTRY(put(r, "{"));
    if (l->sorted) {
        AEG_JTRY(aeg_jrun_alloc(r, d->n, sizeof *order, &order) && aeg_jrun_alloc(r, d->n, sizeof *keys, &keys));
        for (size_t i = 0; i < d->n; i++) {
            if (d->pairs[i].dead)
                continue;
            order[n] = aeg_jv_int((int64_t)i);
            keys[n++] = d->pairs[i].key;
        }
        AEG_JTRY(aeg_jin_sort(r, order, keys, n, false));
        for (size_t i = 0; i < n; i++)
            AEG_JTRY(put_pair(r, l, &d->pairs[order[i].u.i], i == 0, level));
    } else {
        for (size_t i = 0; i < d->n; i++)
            if (!d->pairs[i].dead)
                AEG_JTRY(put_pair(r, l, &d->pairs[i], n++ == 0, level));
    }
    return (n == 0 || new_line(r, l, level)) && put(r, "}");
}

static bool put_value(aeg_jrun *r, const layout *l, const aeg_jval *v, uint32_t level)
{
    bool ok = false;
    AEG_JTRY(aeg_jrun_step(r, 1));
    if (v->type == JV_NONE)
        return put(r, "null");
    if (aeg_jv_is_number(v))
        return put_number(r, v);
    if (v->type == JV_STRING)
        return put_string(r, v->u.s.p, v->u.s.n, l->ascii);
    if (v->type != JV_DICT && !(v->type == JV_LIST && v->u.list->flavor <= JL_TUPLE))
        return v->type == JV_UNDEFINED && v->u.s.n > 0
                   ? aeg_jrun_undefined(r, v)
                   : aeg_jrun_fail(r, AEGIS_E_USAGE, "tojson(): a '%s' cannot be written as JSON", aeg_jv_type_name(v));
    AEG_JTRY(aeg_jrun_enter(r));
    if (v->type == JV_DICT)
        ok = put_object(r, l, v->u.dict, level);
    else
        ok = put_array(r, l, v->u.list, level);
    r->depth--;
    return ok;
}

static bool read_layout(aeg_jrun *r, const aeg_jcall *c, layout *l)
{
    static const char *const names[] = { "ensure_ascii", "indent", "separators", "sort_keys", NULL };
    static const aeg_jval space = { .type = JV_STRING, .u.s = { " ", 1 } };
    aeg_jval a[4];
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a));
    l->ascii = a[0].type != JV_UNSET && aeg_jv_truth(&a[0]);
    l->sorted = a[3].type != JV_UNSET && aeg_jv_truth(&a[3]);
    l->indented = a[1].type != JV_UNSET && a[1].type != JV_NONE;
    if (l->indented && a[1].type == JV_STRING)
        l->indent = a[1];
    else if (l->indented)
        AEG_JTRY(aeg_jv_is_integer(&a[1]) ? aeg_jin_binary(r, JO_MUL, &space, &a[1], &l->indent)
                                          : aeg_jin_want_int(r, c, &a[1], &(int64_t){ 0 }));
    l->comma = l->indented ? aeg_jv_text(",", 1) : aeg_jv_text(", ", 2);
    l->colon = aeg_jv_text(": ", 2);
    if (a[2].type == JV_UNSET || a[2].type == JV_NONE)
        return true;
    const aeg_jval *items;
    size_t n;
    AEG_JTRY(aeg_jin_iterate(r, &a[2], &items, &n));
    if (n != 2 || items[0].type != JV_STRING || items[1].type != JV_STRING)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "tojson(): separators must be two strings");
    l->comma = items[0];
    l->colon = items[1];
    return true;
}

bool aeg_jf_tojson(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    layout l;
    AEG_JTRY(read_layout(r, c, &l));
    const size_t mark = aeg_jrun_capture_begin(r);
    if (!put_value(r, &l, v, 0)) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}
