/* SPDX-License-Identifier: Apache-2.0 */
/* "..." % values and "...".format(...): the conversions that text needs. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/jinja_filters.h"
#include "text/jinja_text.h"

enum { MAX_WIDTH = 1000 };

typedef struct {
    bool left, zero, plus, space, alternate;
    int width, precision; /* precision -1: not given */
} spec;

/* The text [p, n) padded with spaces to the width. */
static bool put_padded(aeg_jrun *r, const spec *f, const char *p, size_t n)
{
    const int gap = f->width - (int)(n > MAX_WIDTH * 4 ? MAX_WIDTH : aeg_text_count(p, n));
    for (int i = 0; !f->left && i < gap; i++)
        AEG_JTRY(aeg_jrun_write(r, " ", 1));
    AEG_JTRY(aeg_jrun_write(r, p, n));
    for (int i = 0; f->left && i < gap; i++)
        AEG_JTRY(aeg_jrun_write(r, " ", 1));
    return true;
}

static bool put_text(aeg_jrun *r, const spec *f, const aeg_jval *v, bool repr)
{
    aeg_jval text;
    AEG_JTRY(repr ? aeg_jin_repr(r, v, &text) : aeg_jin_str(r, v, &text));
    size_t n = text.u.s.n;
    if (f->precision >= 0)
        n = aeg_text_offset(text.u.s.p, n, (size_t)f->precision);
    return put_padded(r, f, text.u.s.p, n);
}

static bool put_number(aeg_jrun *r, const spec *f, const aeg_jval *v, char conversion)
{
    char format[32], text[MAX_WIDTH + 400];
    const bool is_int = strchr("dixXo", conversion) != NULL;
    if (!aeg_jv_is_number(v) || (strchr("xXo", conversion) != NULL && v->type == JV_FLOAT))
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "%%%c needs a number, found '%s'", conversion, aeg_jv_type_name(v));
    if (is_int && v->type == JV_FLOAT && !(v->u.f > -9.2e18 && v->u.f < 9.2e18))
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "%%%c: the number does not fit 64 bits", conversion);
    int n = snprintf(format, sizeof format, "%%%s%s%s%s%s*.*%s%c", f->left ? "-" : "", f->zero ? "0" : "",
                     f->plus ? "+" : "", f->space ? " " : "", f->alternate ? "#" : "", is_int ? PRId64 : "",
                     conversion == 'i' ? 'd' : conversion);
    if (is_int) /* PRId64 ends with its own conversion letter */
        format[n - 2] = format[n - 1], format[n - 1] = '\0';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (is_int) {
        const int64_t i = v->type == JV_FLOAT ? (int64_t)v->u.f : aeg_jv_as_int(v);
        /* Python writes -0x1f where C writes the two's complement. */
        if (i < 0 && strchr("xXo", conversion) != NULL)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "%%%c of a negative number is not supported", conversion);
        n = snprintf(text, sizeof text, format, f->width, f->precision, i);
    } else {
        n = snprintf(text, sizeof text, format, f->width, f->precision, aeg_jv_as_float(v));
    }
#pragma GCC diagnostic pop
    return aeg_jrun_write(r, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

static bool put_char(aeg_jrun *r, const spec *f, const aeg_jval *v)
{
    char text[4];
    if (v->type == JV_STRING && aeg_text_count(v->u.s.p, v->u.s.n) == 1)
        return put_padded(r, f, v->u.s.p, v->u.s.n);
    if (!aeg_jv_is_integer(v) || aeg_jv_as_int(v) < 0 || aeg_jv_as_int(v) > 0x10FFFF ||
        (aeg_jv_as_int(v) >= 0xD800 && aeg_jv_as_int(v) < 0xE000))
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "%%c needs a character or its number");
    return put_padded(r, f, text, aeg_text_encode((uint32_t)aeg_jv_as_int(v), text));
}

static bool put_conversion(aeg_jrun *r, const spec *f, const aeg_jval *v, char conversion)
{
    if (v->type == JV_UNDEFINED && conversion != 's' && conversion != 'r')
        return aeg_jrun_undefined(r, v);
    switch (conversion) {
    case 's': return put_text(r, f, v, false);
    case 'r': return put_text(r, f, v, true);
    case 'c': return put_char(r, f, v);
    case 'd': case 'i': case 'u': return put_number(r, f, v, 'd');
    case 'x': case 'X': case 'o': case 'e': case 'E': case 'f': case 'F': case 'g': case 'G':
        return put_number(r, f, v, conversion);
    default: return aeg_jrun_fail(r, AEGIS_E_USAGE, "the format '%%%c' is not supported", conversion);
    }
}

typedef struct {
    const char *p, *end;
    const aeg_jval *values; /* one by one ...            */
    size_t n, next;
    const aeg_jval *map;    /* ... or by name, else NULL */
    bool lenient;           /* values need not all be used: Python lets anything with an item getter pass */
} percent;

static bool next_value(aeg_jrun *r, percent *s, const aeg_jval **out)
{
    if (s->next == s->n)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "not enough arguments for the format string");
    *out = &s->values[s->next++];
    return true;
}

/* A width or precision: digits or "*". */
static bool read_size(aeg_jrun *r, percent *s, int *out)
{
    int64_t v = 0;
    const bool given_apart = s->p < s->end && *s->p == '*';
    if (given_apart) {
        const aeg_jval *given = NULL;
        s->p++;
        AEG_JTRY(next_value(r, s, &given));
        if (!aeg_jv_is_integer(given))
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "* in a format string needs an integer");
        v = aeg_jv_as_int(given);
    }
    for (; !given_apart && s->p < s->end && isdigit((unsigned char)*s->p) && v <= MAX_WIDTH; s->p++)
        v = v * 10 + (*s->p - '0');
    if (v < 0 || v > MAX_WIDTH)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "a width in a format string is not 0 to %d", MAX_WIDTH);
    *out = (int)v;
    return true;
}

static bool read_spec(aeg_jrun *r, percent *s, spec *f)
{
    *f = (spec){ .precision = -1 };
    for (; s->p < s->end && *s->p != '\0' && strchr("-0+ #", *s->p) != NULL; s->p++) {
        f->left |= *s->p == '-';
        f->zero |= *s->p == '0';
        f->plus |= *s->p == '+';
        f->space |= *s->p == ' ';
        f->alternate |= *s->p == '#';
    }
    f->zero = f->zero && !f->left;
    f->space = f->space && !f->plus;
    AEG_JTRY(read_size(r, s, &f->width));
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        AEG_JTRY(read_size(r, s, &f->precision));
    }
    while (s->p < s->end && *s->p != '\0' && strchr("hlL", *s->p) != NULL)
        s->p++;
    return true;
}

/* The part behind a '%'. */
static bool put_directive(aeg_jrun *r, percent *s)
{
    const aeg_jval *value = NULL;
    spec f;
    if (s->p < s->end && *s->p == '(') {
        const char *close = memchr(s->p, ')', (size_t)(s->end - s->p));
        aeg_jpair *pair;
        if (close == NULL || s->map == NULL)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "a format string with names needs a mapping");
        const aeg_jval key = aeg_jv_text(s->p + 1, (size_t)(close - s->p - 1));
        AEG_JTRY(aeg_jdict_find(r, s->map->u.dict, &key, &pair));
        if (pair == NULL)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "the format string's '%.*s' is not given", (int)key.u.s.n,
                                 key.u.s.p);
        value = &pair->value;
        s->p = close + 1;
    }
    AEG_JTRY(read_spec(r, s, &f));
    if (s->p >= s->end)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "incomplete format string");
    const char conversion = *s->p++;
    if (conversion == '%')
        return aeg_jrun_write(r, "%", 1);
    AEG_JTRY(value != NULL || next_value(r, s, &value));
    return put_conversion(r, &f, value, conversion);
}

static bool put_percent(aeg_jrun *r, percent *s)
{
    while (s->p < s->end) {
        const char *mark = memchr(s->p, '%', (size_t)(s->end - s->p));
        const char *stop = mark == NULL ? s->end : mark;
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jrun_write(r, s->p, (size_t)(stop - s->p)));
        s->p = stop;
        if (mark == NULL)
            break;
        s->p++;
        AEG_JTRY(put_directive(r, s));
    }
    if (s->next < s->n && !s->lenient)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "not all arguments were used by the format string");
    return true;
}

bool aeg_jin_percent(aeg_jrun *r, const aeg_jval *format, const aeg_jval *value, aeg_jval *out)
{
    const bool is_tuple = value->type == JV_LIST && value->u.list->flavor == JL_TUPLE;
    percent s = { .p = format->u.s.p, .end = format->u.s.p + format->u.s.n,
                  .values = is_tuple ? value->u.list->items : value, .n = is_tuple ? value->u.list->n : 1,
                  .map = value->type == JV_DICT ? value : NULL,
                  .lenient = value->type == JV_DICT || value->type == JV_UNDEFINED ||
                             (value->type == JV_LIST && !is_tuple && value->u.list->flavor <= JL_RANGE) };
    const size_t mark = aeg_jrun_capture_begin(r);
    if (!put_percent(r, &s)) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}

bool aeg_jf_format(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    aeg_jval text;
    AEG_JTRY(aeg_jin_str(r, v, &text));
    if (c->n_args > 0 && c->n_kwargs > 0)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "format() takes positional or keyword arguments, not both");
    if (c->n_kwargs > 0) {
        aeg_jdict *d = aeg_jdict_new(r);
        AEG_JTRY(d != NULL);
        for (uint32_t k = 0; k < c->n_kwargs; k++)
            AEG_JTRY(aeg_jdict_set(r, d, aeg_jv_cstr(c->names[k]), c->kwargs[k]));
        const aeg_jval map = { .type = JV_DICT, .u.dict = d };
        return aeg_jin_percent(r, &text, &map, out);
    }
    aeg_jlist args = { .items = (aeg_jval *)c->args, .n = c->n_args, .flavor = JL_TUPLE };
    const aeg_jval tuple = aeg_jv_list(&args);
    return aeg_jin_percent(r, &text, &tuple, out);
}

/* {}, {0}, {name}, {name.attr[key]}: the value, without conversion or format. */
static bool put_field(aeg_jrun *r, const aeg_jcall *c, const char *p, size_t n, int64_t *automatic)
{
    size_t k = 0;
    uint64_t index = 0;
    const aeg_jval *value = NULL;
    while (k < n && (isalnum((unsigned char)p[k]) || p[k] == '_'))
        k++;
    if (k != n)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "format(): the field '{%.*s}' is not supported", (int)n, p);
    bool digits = true;
    for (size_t i = 0; i < n; i++) {
        digits = digits && isdigit((unsigned char)p[i]);
        index = digits && index < UINT32_MAX ? index * 10 + (uint64_t)(p[i] - '0') : index;
    }
    /* -1 before the first field, then the next number, or INT64_MIN once fields have numbers. */
    if (digits && *automatic != -1 && (n == 0) == (*automatic == INT64_MIN))
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "format(): numbered and automatic fields cannot be mixed");
    if (n == 0) {
        *automatic += *automatic == -1;
        index = (uint64_t)(*automatic)++;
    } else if (digits) {
        *automatic = INT64_MIN;
    }
    if (digits && index < c->n_args)
        value = &c->args[index];
    for (uint32_t i = 0; !digits && i < c->n_kwargs; i++)
        if (strlen(c->names[i]) == n && memcmp(c->names[i], p, n) == 0)
            value = &c->kwargs[i];
    if (value == NULL)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "format(): the field '{%.*s}' is not given", (int)n, p);
    return aeg_jin_write_str(r, value);
}

static bool put_format(aeg_jrun *r, const char *p, const char *end, const aeg_jcall *c)
{
    int64_t automatic = -1;
    for (; p < end; p++) {
        AEG_JTRY(aeg_jrun_step(r, 1));
        if (*p != '{' && *p != '}') {
            AEG_JTRY(aeg_jrun_write(r, p, 1));
        } else if (p + 1 < end && p[1] == *p) {
            AEG_JTRY(aeg_jrun_write(r, p++, 1));
        } else {
            const char *close = *p == '{' ? memchr(p, '}', (size_t)(end - p)) : NULL;
            if (close == NULL)
                return aeg_jrun_fail(r, AEGIS_E_USAGE, "format(): single '%c' in the format string", *p);
            AEG_JTRY(put_field(r, c, p + 1, (size_t)(close - p - 1), &automatic));
            p = close;
        }
    }
    return true;
}

bool aeg_jm_format(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    const size_t mark = aeg_jrun_capture_begin(r);
    if (!put_format(r, v->u.s.p, v->u.s.p + v->u.s.n, c)) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}
