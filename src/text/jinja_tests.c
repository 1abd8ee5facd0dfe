/* SPDX-License-Identifier: Apache-2.0 */
/* What may follow "is". */
#include <string.h>

#include "text/jinja_filters.h"
#include "text/jinja_text.h"

typedef bool predicate(const aeg_jval *v);

static bool p_defined(const aeg_jval *v) { return v->type != JV_UNDEFINED; }
static bool p_undefined(const aeg_jval *v) { return v->type == JV_UNDEFINED; }
static bool p_none(const aeg_jval *v) { return v->type == JV_NONE; }
static bool p_boolean(const aeg_jval *v) { return v->type == JV_BOOL; }
static bool p_true(const aeg_jval *v) { return v->type == JV_BOOL && v->u.b; }
static bool p_false(const aeg_jval *v) { return v->type == JV_BOOL && !v->u.b; }
static bool p_integer(const aeg_jval *v) { return v->type == JV_INT; }
static bool p_float(const aeg_jval *v) { return v->type == JV_FLOAT; }
static bool p_number(const aeg_jval *v) { return aeg_jv_is_number(v); }
static bool p_string(const aeg_jval *v) { return v->type == JV_STRING; }
static bool p_mapping(const aeg_jval *v) { return v->type == JV_DICT; }
static bool p_escaped(const aeg_jval *v) { return v->type == JV_STRING && v->sub == 1; }
static bool p_iterable(const aeg_jval *v)
{
    return v->type == JV_LIST || v->type == JV_DICT || v->type == JV_STRING || v->type == JV_UNDEFINED ||
           v->type == JV_LOOP;
}
static bool p_sequence(const aeg_jval *v)
{
    /* Jinja2 asks for a length and an item getter, so a mapping is one, too. */
    return v->type == JV_DICT || v->type == JV_STRING || v->type == JV_UNDEFINED ||
           (v->type == JV_LIST && v->u.list->flavor <= JL_RANGE);
}
static bool p_callable(const aeg_jval *v)
{
    return v->type == JV_FUNCTION || v->type == JV_METHOD || v->type == JV_MACRO || v->type == JV_JOINER ||
           v->type == JV_LOOP || v->type == JV_UNDEFINED;
}

static bool is(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, predicate *p, aeg_jval *out)
{
    static const char *const none[] = { NULL };
    AEG_JTRY(aeg_jin_bind(r, c, none, 0, NULL));
    *out = aeg_jv_bool(p(v));
    return true;
}

#define SIMPLE(name) \
    static bool t_##name(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out) \
    { return is(r, v, c, p_##name, out); }
SIMPLE(defined) SIMPLE(undefined) SIMPLE(none) SIMPLE(boolean) SIMPLE(true) SIMPLE(false) SIMPLE(integer)
SIMPLE(float) SIMPLE(number) SIMPLE(string) SIMPLE(mapping) SIMPLE(escaped) SIMPLE(iterable) SIMPLE(sequence)
SIMPLE(callable)
#undef SIMPLE

static bool compare(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, int op, aeg_jval *out)
{
    static const char *const names[] = { "other", NULL };
    aeg_jval other;
    bool holds;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, &other) && aeg_jin_compare(r, op, v, &other, &holds));
    *out = aeg_jv_bool(holds);
    return true;
}

#define COMPARISON(name, op) \
    static bool t_##name(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out) \
    { return compare(r, v, c, op, out); }
COMPARISON(eq, JO_EQ) COMPARISON(ne, JO_NE) COMPARISON(lt, JO_LT) COMPARISON(le, JO_LE) COMPARISON(gt, JO_GT)
COMPARISON(ge, JO_GE) COMPARISON(in, JO_IN)
#undef COMPARISON

static bool remainder_is(aeg_jrun *r, const aeg_jval *v, const aeg_jval *divisor, int64_t wanted, aeg_jval *out)
{
    const aeg_jval target = aeg_jv_int(wanted);
    aeg_jval rest;
    bool holds;
    AEG_JTRY(aeg_jin_binary(r, JO_MOD, v, divisor, &rest) && aeg_jv_equal(r, &rest, &target, &holds));
    *out = aeg_jv_bool(holds);
    return true;
}

static bool t_odd(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const none[] = { NULL };
    const aeg_jval two = aeg_jv_int(2);
    return aeg_jin_bind(r, c, none, 0, NULL) && remainder_is(r, v, &two, 1, out);
}

static bool t_even(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const none[] = { NULL };
    const aeg_jval two = aeg_jv_int(2);
    return aeg_jin_bind(r, c, none, 0, NULL) && remainder_is(r, v, &two, 0, out);
}

static bool t_divisibleby(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "num", NULL };
    aeg_jval divisor;
    return aeg_jin_bind(r, c, names, 1, &divisor) && remainder_is(r, v, &divisor, 0, out);
}

static bool t_sameas(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "other", NULL };
    aeg_jval other;
    bool same;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, &other));
    if (v->type <= JV_STRING || v->type != other.type) /* small values have no identity of their own here */
        AEG_JTRY(aeg_jv_equal(r, v, &other, &same));
    else
        same = v->u.list == other.u.list;
    *out = aeg_jv_bool(same && v->type == other.type && v->type != JV_UNDEFINED);
    return true;
}

/* str(v).islower() and isupper(): some cased letter, and none of the other case. */
static bool has_case(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, bool upper, aeg_jval *out)
{
    static const char *const none[] = { NULL };
    aeg_jval text;
    bool any = false, all = true;
    AEG_JTRY(aeg_jin_bind(r, c, none, 0, NULL) && aeg_jin_str(r, v, &text) && aeg_jrun_step(r, text.u.s.n / 16));
    for (size_t i = 0; all && i < text.u.s.n;) {
        uint32_t cp;
        i += aeg_text_decode(text.u.s.p + i, text.u.s.n - i, &cp);
        any = any || aeg_text_is(cp, upper ? AEG_CLASS_UPPER : AEG_CLASS_LOWER);
        all = !aeg_text_is(cp, upper ? AEG_CLASS_LOWER : AEG_CLASS_UPPER) && !aeg_text_is(cp, AEG_CLASS_TITLE);
    }
    *out = aeg_jv_bool(any && all);
    return true;
}

static bool t_lower(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return has_case(r, v, c, false, out);
}

static bool t_upper(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return has_case(r, v, c, true, out);
}

static bool names_builtin(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, bool filter, aeg_jval *out)
{
    static const char *const none[] = { NULL };
    AEG_JTRY(aeg_jin_bind(r, c, none, 0, NULL));
    *out = aeg_jv_bool(v->type == JV_STRING && (filter ? aeg_jin_find_filter(v->u.s.p, v->u.s.n)
                                                       : aeg_jin_find_test(v->u.s.p, v->u.s.n)) != NULL);
    return true;
}

static bool t_filter(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return names_builtin(r, v, c, true, out);
}

static bool t_test(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return names_builtin(r, v, c, false, out);
}

const aeg_jbuiltin *aeg_jin_find_test(const char *name, size_t n)
{
    static const aeg_jbuiltin table[] = {
        { "defined", t_defined }, { "undefined", t_undefined }, { "none", t_none }, { "boolean", t_boolean },
        { "true", t_true }, { "false", t_false }, { "integer", t_integer }, { "float", t_float },
        { "number", t_number }, { "string", t_string }, { "mapping", t_mapping }, { "escaped", t_escaped },
        { "iterable", t_iterable }, { "sequence", t_sequence }, { "callable", t_callable },
        { "eq", t_eq }, { "equalto", t_eq }, { "==", t_eq }, { "ne", t_ne }, { "!=", t_ne },
        { "lt", t_lt }, { "lessthan", t_lt }, { "<", t_lt }, { "le", t_le }, { "<=", t_le },
        { "gt", t_gt }, { "greaterthan", t_gt }, { ">", t_gt }, { "ge", t_ge }, { ">=", t_ge },
        { "in", t_in }, { "odd", t_odd }, { "even", t_even }, { "divisibleby", t_divisibleby },
        { "sameas", t_sameas }, { "lower", t_lower }, { "upper", t_upper }, { "filter", t_filter },
        { "test", t_test }, { NULL, NULL },
    };
    return aeg_jin_lookup(table, name, n);
}
