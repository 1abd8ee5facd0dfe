/* SPDX-License-Identifier: Apache-2.0 */
/* Filters on text and numbers, and the lookup of every filter. */
#include "text/jinja_filters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja_number.h"
#include "text/jinja_text.h"

static bool no_args(aeg_jrun *r, const aeg_jcall *c)
{
    static const char *const none[] = { NULL };
    return aeg_jin_bind(r, c, none, 0, NULL);
}

static bool f_upper(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return no_args(r, c) && aeg_jin_case(r, v, AEG_JCASE_UPPER, out);
}

static bool f_lower(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return no_args(r, c) && aeg_jin_case(r, v, AEG_JCASE_LOWER, out);
}

static bool f_capitalize(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return no_args(r, c) && aeg_jin_case(r, v, AEG_JCASE_CAPITALIZE, out);
}

static bool f_title(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return no_args(r, c) && aeg_jin_case(r, v, AEG_JCASE_JINJA_TITLE, out);
}

static bool f_trim(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "chars", NULL };
    aeg_jval chars, text;
    return aeg_jin_bind(r, c, names, 0, &chars) && aeg_jin_str(r, v, &text) &&
           aeg_jin_strip(r, &text, &chars, 3, out);
}

static bool f_string(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return no_args(r, c) && aeg_jin_str(r, v, out);
}

static bool f_safe(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    AEG_JTRY(no_args(r, c) && aeg_jin_str(r, v, out));
    out->sub = 1;
    return true;
}

static bool f_escape(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return no_args(r, c) && aeg_jin_escape(r, v, out);
}

static bool f_forceescape(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    aeg_jval text;
    AEG_JTRY(no_args(r, c) && aeg_jin_str(r, v, &text));
    text.sub = 0;
    return aeg_jin_escape(r, &text, out);
}

static bool f_replace(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "old", "new", "count", NULL };
    aeg_jval a[3], text, from, to;
    int64_t count = -1;
    AEG_JTRY(aeg_jin_bind(r, c, names, 2, a));
    if (a[2].type != JV_UNSET && a[2].type != JV_NONE)
        AEG_JTRY(aeg_jin_want_int(r, c, &a[2], &count));
    AEG_JTRY(aeg_jin_str(r, v, &text) && aeg_jin_str(r, &a[0], &from) && aeg_jin_str(r, &a[1], &to));
    return aeg_jin_replace(r, &text, &from, &to, count, out);
}

/* The indented lines of `text`; the first and the blank ones only if asked for. */
static bool write_indented(aeg_jrun *r, const aeg_jlist *lines, const aeg_jval *pad, bool first, bool blank)
{
    if (lines->n == 0) /* an empty text still is one line */
        return !first || aeg_jrun_write(r, pad->u.s.p, pad->u.s.n);
    for (size_t i = 0; i < lines->n; i++) {
        const aeg_jval *line = &lines->items[i];
        if (i > 0)
            AEG_JTRY(aeg_jrun_write(r, "\n", 1));
        if (i == 0 ? first : blank || line->u.s.n > 0)
            AEG_JTRY(aeg_jrun_write(r, pad->u.s.p, pad->u.s.n));
        AEG_JTRY(aeg_jrun_write(r, line->u.s.p, line->u.s.n));
    }
    return true;
}

static bool f_indent(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "width", "first", "blank", NULL };
    static const aeg_jval newline = { .type = JV_STRING, .u.s = { "\n", 1 } };
    aeg_jval a[3], text, lines, pad = aeg_jv_text("    ", 4);
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a));
    if (v->type == JV_UNDEFINED)
        return aeg_jrun_undefined(r, v);
    if (v->type != JV_STRING)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "indent() needs a string, found '%s'", aeg_jv_type_name(v));
    if (a[0].type == JV_STRING) {
        pad = a[0];
    } else if (a[0].type != JV_UNSET) {
        const aeg_jval space = aeg_jv_text(" ", 1);
        AEG_JTRY(aeg_jv_is_integer(&a[0]) ? aeg_jin_binary(r, JO_MUL, &space, &a[0], &pad)
                                          : aeg_jin_want_int(r, c, &a[0], &(int64_t){ 0 }));
    }
    AEG_JTRY(aeg_jin_concat(r, v, &newline, &text) && aeg_jin_splitlines(r, &text, false, &lines));
    const size_t mark = aeg_jrun_capture_begin(r);
    if (!write_indented(r, lines.u.list, &pad, a[1].type != JV_UNSET && aeg_jv_truth(&a[1]),
                        a[2].type != JV_UNSET && aeg_jv_truth(&a[2]))) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}

static bool f_wordcount(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    aeg_jval text;
    AEG_JTRY(no_args(r, c) && aeg_jin_str(r, v, &text) && aeg_jrun_step(r, text.u.s.n / 16));
    int64_t words = 0;
    bool inside = false;
    for (size_t i = 0; i < text.u.s.n;) {
        uint32_t cp;
        i += aeg_text_decode(text.u.s.p + i, text.u.s.n - i, &cp);
        const bool is_word = aeg_text_is(cp, AEG_CLASS_WORD);
        words += is_word && !inside;
        inside = is_word;
    }
    *out = aeg_jv_int(words);
    return true;
}

static bool f_abs(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    AEG_JTRY(no_args(r, c));
    if (!aeg_jv_is_number(v))
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "abs() needs a number, found '%s'", aeg_jv_type_name(v));
    if (v->type == JV_FLOAT) {
        *out = aeg_jv_float(fabs(v->u.f));
        return true;
    }
    *out = aeg_jv_int(aeg_jv_as_int(v));
    return out->u.i >= 0 || aeg_jin_unary(r, JO_NEG, v, out);
}

static bool float_to_int(aeg_jrun *r, double f, const aeg_jval *fallback, aeg_jval *out)
{
    if (isnan(f)) {
        *out = *fallback;
        return true;
    }
    if (!(f > -9223372036854775808.0 && f < 9223372036854775808.0))
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "a number does not fit a 64-bit integer");
    *out = aeg_jv_int((int64_t)f);
    return true;
}

static bool f_int(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "default", "base", NULL };
    aeg_jval a[2];
    int64_t base = 10, i;
    double f;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a));
    const aeg_jval fallback = a[0].type == JV_UNSET ? aeg_jv_int(0) : a[0];
    if (a[1].type != JV_UNSET)
        AEG_JTRY(aeg_jin_want_int(r, c, &a[1], &base));
    if (v->type == JV_UNDEFINED)
        return aeg_jrun_undefined(r, v);
    *out = fallback;
    if (aeg_jv_is_integer(v)) {
        *out = aeg_jv_int(aeg_jv_as_int(v));
    } else if (v->type == JV_FLOAT) {
        return float_to_int(r, v->u.f, &fallback, out);
    } else if (v->type == JV_STRING) {
        const bool base_ok = base == 0 || (base >= 2 && base <= 36);
        const aeg_parse_result result = base_ok ? aeg_int_parse(v->u.s.p, v->u.s.n, (int)base, &i) : AEG_PARSE_BAD;
        if (result == AEG_PARSE_RANGE)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "a number does not fit a 64-bit integer");
        if (result == AEG_PARSE_OK)
            *out = aeg_jv_int(i);
        else if (aeg_float_parse(v->u.s.p, v->u.s.n, &f))
            return float_to_int(r, f, &fallback, out);
    }
    return true;
}

static bool f_float(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "default", NULL };
    aeg_jval fallback;
    double f;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, &fallback));
    if (v->type == JV_UNDEFINED)
        return aeg_jrun_undefined(r, v);
    if (aeg_jv_is_number(v))
        *out = aeg_jv_float(aeg_jv_as_float(v));
    else if (v->type == JV_STRING && aeg_float_parse(v->u.s.p, v->u.s.n, &f))
        *out = aeg_jv_float(f);
    else
        *out = fallback.type == JV_UNSET ? aeg_jv_float(0.0) : fallback;
    return true;
}

/* round(x, precision): the decimal digits decide, ties to even, as Python. */
static double round_common(double x, int64_t precision)
{
    char text[512];
    if (!isfinite(x) || precision > 320)
        return x;
    if (precision >= 0) {
        snprintf(text, sizeof text, "%.*f", (int)precision, x);
        return strtod(text, NULL);
    }
    if (precision < -308)
        return copysign(0.0, x);
    const double scale = pow(10.0, (double)-precision);
    return nearbyint(x / scale) * scale;
}

static bool f_round(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "precision", "method", NULL };
    aeg_jval a[2];
    int64_t precision = 0;
    const char *method = "common";
    size_t n = 6;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a));
    if (a[0].type != JV_UNSET)
        AEG_JTRY(aeg_jin_want_int(r, c, &a[0], &precision));
    if (a[1].type != JV_UNSET)
        AEG_JTRY(aeg_jin_want_string(r, c, &a[1], &method, &n));
    if (!aeg_jv_is_number(v))
        return v->type == JV_UNDEFINED ? aeg_jrun_undefined(r, v)
                                       : aeg_jrun_fail(r, AEGIS_E_USAGE, "round() needs a number, found '%s'",
                                                       aeg_jv_type_name(v));
    const bool common = n == 6 && memcmp(method, "common", 6) == 0;
    const bool is_ceil = n == 4 && memcmp(method, "ceil", 4) == 0;
    if (!common && !is_ceil && !(n == 5 && memcmp(method, "floor", 5) == 0))
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "the method of round() must be common, ceil or floor");
    if (common && aeg_jv_is_integer(v)) {
        *out = aeg_jv_int(aeg_jv_as_int(v));
        return precision >= 0 || float_to_int(r, round_common((double)out->u.i, precision), out, out);
    }
    const double x = aeg_jv_as_float(v), scale = pow(10.0, (double)precision);
    if (common) {
        *out = aeg_jv_float(round_common(x, precision));
        return true;
    }
    if (!isfinite(x * scale))
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "round(): the number is not finite");
    /* Python's ceil and floor give an integer, which has no negative zero. */
    *out = aeg_jv_float(((is_ceil ? ceil(x * scale) : floor(x * scale)) + 0.0) / scale);
    return true;
}

const aeg_jbuiltin aeg_jf_text_table[] = {
    { "upper", f_upper },       { "lower", f_lower },   { "capitalize", f_capitalize },
    { "title", f_title },       { "trim", f_trim },     { "string", f_string },
    { "safe", f_safe },         { "e", f_escape },      { "escape", f_escape },
    { "forceescape", f_forceescape }, { "replace", f_replace }, { "indent", f_indent },
    { "wordcount", f_wordcount }, { "tojson", aeg_jf_tojson }, { "format", aeg_jf_format },
    { NULL, NULL },
};

const aeg_jbuiltin aeg_jf_number_table[] = {
    { "abs", f_abs }, { "int", f_int }, { "float", f_float }, { "round", f_round }, { NULL, NULL },
};

const aeg_jbuiltin *aeg_jin_lookup(const aeg_jbuiltin *table, const char *name, size_t n)
{
    for (; table->name != NULL; table++)
        if (strlen(table->name) == n && memcmp(table->name, name, n) == 0)
            return table;
    return NULL;
}

const aeg_jbuiltin *aeg_jin_find_filter(const char *name, size_t n)
{
    const aeg_jbuiltin *const tables[] = { aeg_jf_text_table, aeg_jf_number_table, aeg_jf_list_table,
                                           aeg_jf_select_table };
    const aeg_jbuiltin *found = NULL;
    for (size_t i = 0; found == NULL && i < sizeof tables / sizeof tables[0]; i++)
        found = aeg_jin_lookup(tables[i], name, n);
    return found;
}
