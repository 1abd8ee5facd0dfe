/* SPDX-License-Identifier: Apache-2.0 */
/* str() and repr() of every value. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/jinja_eval.h"
#include "text/jinja_number.h"
#include "text/jinja_text.h"

static bool put(aeg_jrun *r, const char *s) { return aeg_jrun_write(r, s, strlen(s)); }

static bool put_escape(aeg_jrun *r, uint32_t cp)
{
    char text[16];
    const char *format = cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x";
    snprintf(text, sizeof text, format, cp);
    return put(r, text);
}

static bool put_string_repr(aeg_jrun *r, const char *s, size_t n)
{
    /* Double quotes only when that saves escaping. */
    const bool has_single = n > 0 && memchr(s, '\'', n) != NULL;
    const char quote = has_single && memchr(s, '"', n) == NULL ? '"' : '\'';
    AEG_JTRY(aeg_jrun_step(r, n / 64));
    AEG_JTRY(aeg_jrun_write(r, &quote, 1));
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        const size_t k = aeg_text_decode(s + i, n - i, &cp);
        if (cp == (uint32_t)quote || cp == '\\') {
            const char escaped[2] = { '\\', (char)cp };
            AEG_JTRY(aeg_jrun_write(r, escaped, 2));
        } else if (cp == '\n' || cp == '\r' || cp == '\t') {
            AEG_JTRY(put(r, cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : "\\t"));
        } else if (!aeg_text_is_printable(cp)) {
            AEG_JTRY(put_escape(r, cp));
        } else {
            AEG_JTRY(aeg_jrun_write(r, s + i, k));
        }
        i += k;
    }
    return aeg_jrun_write(r, &quote, 1);
}

static bool put_items(aeg_jrun *r, const aeg_jlist *l)
{
    for (size_t i = 0; i < l->n; i++) {
        AEG_JTRY(i == 0 || put(r, ", "));
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jin_write_repr(r, &l->items[i]));
    }
    return true;
}

static bool put_list(aeg_jrun *r, const aeg_jlist *l)
{
    char text[96];
    switch (l->flavor) {
    case JL_LIST: return put(r, "[") && put_items(r, l) && put(r, "]");
    case JL_TUPLE: return put(r, "(") && put_items(r, l) && put(r, l->n == 1 ? ",)" : ")");
    case JL_KEYS: return put(r, "dict_keys([") && put_items(r, l) && put(r, "])");
    case JL_VALUES: return put(r, "dict_values([") && put_items(r, l) && put(r, "])");
    case JL_ITEMS: return put(r, "dict_items([") && put_items(r, l) && put(r, "])");
    case JL_GENERATOR: return put(r, "<generator object>");
    case JL_RANGE: break;
    }
    if (l->step == 1)
        snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64 ")", l->start, l->stop);
    else
        snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64 ", %" PRId64 ")", l->start, l->stop, l->step);
    return put(r, text);
}

static bool put_dict(aeg_jrun *r, const aeg_jdict *d)
{
    bool first = true;
    AEG_JTRY(put(r, "{"));
    for (size_t i = 0; i < d->n; i++) {
        if (d->pairs[i].dead)
            continue;
        AEG_JTRY(first || put(r, ", "));
        first = false;
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jin_write_repr(r, &d->pairs[i].key));
        AEG_JTRY(put(r, ": ") && aeg_jin_write_repr(r, &d->pairs[i].value));
    }
    return put(r, "}");
}

static bool put_nested(aeg_jrun *r, const aeg_jval *v)
{
    AEG_JTRY(aeg_jrun_enter(r));
    bool ok = true;
    if (v->type == JV_LIST)
        ok = put_list(r, v->u.list);
    else if (v->type == JV_NAMESPACE)
        ok = put(r, "<Namespace ") && put_dict(r, v->u.dict) && put(r, ">");
    else
        ok = put_dict(r, v->u.dict);
    r->depth--;
    return ok;
}

bool aeg_jin_write_repr(aeg_jrun *r, const aeg_jval *v)
{
    char text[80];
    switch ((aeg_jtype)v->type) {
    case JV_UNDEFINED: return put(r, "Undefined");
    case JV_NONE: return put(r, "None");
    case JV_BOOL: return put(r, v->u.b ? "True" : "False");
    case JV_INT:
        snprintf(text, sizeof text, "%" PRId64, v->u.i);
        return put(r, text);
    case JV_FLOAT: return put(r, aeg_float_repr(v->u.f, text));
    case JV_STRING:
        if (v->sub == 1)
            return put(r, "Markup(") && put_string_repr(r, v->u.s.p, v->u.s.n) && put(r, ")");
        return put_string_repr(r, v->u.s.p, v->u.s.n);
    case JV_LIST:
    case JV_DICT:
    case JV_NAMESPACE: return put_nested(r, v);
    case JV_FUNCTION: return put(r, "<function ") && put(r, v->u.builtin->name) && put(r, ">");
    case JV_LOOP:
        snprintf(text, sizeof text, "<LoopContext %zu/%zu>", v->u.loop->index0 + 1, v->u.loop->n);
        return put(r, text);
    case JV_MACRO:
        if (v->u.macro->def->name == UINT32_MAX)
            return put(r, "<Macro anonymous>");
        return put(r, "<Macro ") && put_string_repr(r, v->u.macro->name, strlen(v->u.macro->name)) && put(r, ">");
    case JV_METHOD: return put(r, "<built-in method ") && put(r, v->u.method->builtin->name) && put(r, ">");
    default: return put(r, "<") && put(r, aeg_jv_type_name(v)) && put(r, ">");
    }
}

bool aeg_jin_write_str(aeg_jrun *r, const aeg_jval *v)
{
    if (v->type == JV_STRING)
        return aeg_jrun_write(r, v->u.s.p, v->u.s.n);
    if (v->type == JV_UNDEFINED)
        return true;
    return aeg_jin_write_repr(r, v);
}

bool aeg_jin_str(aeg_jrun *r, const aeg_jval *v, aeg_jval *out)
{
    if (v->type == JV_STRING) {
        *out = *v;
        return true;
    }
    const size_t mark = aeg_jrun_capture_begin(r);
    if (!aeg_jin_write_str(r, v)) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}

bool aeg_jin_repr(aeg_jrun *r, const aeg_jval *v, aeg_jval *out)
{
    const size_t mark = aeg_jrun_capture_begin(r);
    if (!aeg_jin_write_repr(r, v)) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}
