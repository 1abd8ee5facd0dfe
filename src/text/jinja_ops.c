/* SPDX-License-Identifier: Apache-2.0 */
/* Python's operators. */
#include <math.h>
#include <string.h>

#include "text/jinja_filters.h"
#include "text/jinja_run.h"

static const char *const symbols[] = {
    [JO_ADD] = "+", [JO_SUB] = "-", [JO_MUL] = "*", [JO_DIV] = "/", [JO_FLOORDIV] = "//", [JO_MOD] = "%",
    [JO_POW] = "**", [JO_NEG] = "-", [JO_POS] = "+", [JO_EQ] = "==", [JO_NE] = "!=", [JO_LT] = "<",
    [JO_LE] = "<=", [JO_GT] = ">", [JO_GE] = ">=", [JO_IN] = "in", [JO_NOT_IN] = "not in",
};

static bool overflow(aeg_jrun *r)
{
    return aeg_jrun_fail(r, AEGIS_E_USAGE, "an integer result does not fit 64 bits");
}

static bool by_zero(aeg_jrun *r) { return aeg_jrun_fail(r, AEGIS_E_USAGE, "division by zero"); }

static bool int_power(aeg_jrun *r, int64_t base, int64_t exponent, aeg_jval *out)
{
    int64_t result = 1;
    if (exponent < 0) {
        if (base == 0)
            return by_zero(r);
        *out = aeg_jv_float(pow((double)base, (double)exponent));
        return true;
    }
    for (; exponent > 0; exponent >>= 1) {
        if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
            return overflow(r);
        if (exponent > 1 && __builtin_mul_overflow(base, base, &base))
            return overflow(r);
    }
    *out = aeg_jv_int(result);
    return true;
}

static bool int_op(aeg_jrun *r, int op, int64_t a, int64_t b, aeg_jval *out)
{
    int64_t x = 0;
    bool wraps = false;
    if ((op == JO_DIV || op == JO_FLOORDIV || op == JO_MOD) && b == 0)
        return by_zero(r);
    switch (op) {
    case JO_ADD: wraps = __builtin_add_overflow(a, b, &x); break;
    case JO_SUB: wraps = __builtin_sub_overflow(a, b, &x); break;
    case JO_MUL: wraps = __builtin_mul_overflow(a, b, &x); break;
    case JO_DIV: *out = aeg_jv_float((double)a / (double)b); return true;
    case JO_POW: return int_power(r, a, b, out);
    case JO_FLOORDIV:
        wraps = b == -1 && a == INT64_MIN;
        x = wraps ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
        break;
    default: /* JO_MOD: the sign of the divisor */
        x = b == -1 ? 0 : a % b;
        if (x != 0 && (x < 0) != (b < 0))
            x += b;
        break;
    }
    *out = aeg_jv_int(x);
    return wraps ? overflow(r) : true;
}

/* Python's float floor division and modulo. */
static void float_divmod(double a, double b, double *quotient, double *rest)
{
    double mod = fmod(a, b);
    double div = (a - mod) / b;
    if (mod != 0.0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1.0;
        }
    } else {
        mod = copysign(0.0, b);
    }
    double floored;
    if (div != 0.0) {
        floored = floor(div);
        if (div - floored > 0.5)
            floored += 1.0;
    } else {
        floored = copysign(0.0, a / b);
    }
    *quotient = floored;
    *rest = mod;
}

static bool float_op(aeg_jrun *r, int op, double a, double b, aeg_jval *out)
{
    double quotient, rest;
    if ((op == JO_DIV || op == JO_FLOORDIV || op == JO_MOD) && b == 0.0)
        return by_zero(r);
    switch (op) {
    case JO_ADD: *out = aeg_jv_float(a + b); return true;
    case JO_SUB: *out = aeg_jv_float(a - b); return true;
    case JO_MUL: *out = aeg_jv_float(a * b); return true;
    case JO_DIV: *out = aeg_jv_float(a / b); return true;
    case JO_POW:
        if (a == 0.0 && b < 0.0)
            return by_zero(r);
        if (a < 0.0 && isfinite(a) && isfinite(b) && b != floor(b))
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "a negative number to a fractional power is not real");
        *out = aeg_jv_float(pow(a, b));
        if (isinf(out->u.f) && isfinite(a) && isfinite(b))
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "numerical result out of range");
        return true;
    default:
        float_divmod(a, b, &quotient, &rest);
        *out = aeg_jv_float(op == JO_MOD ? rest : quotient);
        return true;
    }
}

bool aeg_jin_concat(aeg_jrun *r, const aeg_jval *a, const aeg_jval *b, aeg_jval *out)
{
    char *text = aeg_jarena_extend(&r->arena, a->u.s.p, a->u.s.n, b->u.s.n);
    if (text == NULL)
        return aeg_jrun_no_memory(r);
    if (b->u.s.n > 0)
        memcpy(text + a->u.s.n, b->u.s.p, b->u.s.n);
    const uint64_t n = a->u.s.n + b->u.s.n;
    *out = aeg_jv_text(text, n);
    return aeg_jrun_step(r, n / 256);
}

/* A string marked safe escapes what it is joined with (markupsafe's Markup). */
static bool add_strings(aeg_jrun *r, const aeg_jval *a, const aeg_jval *b, aeg_jval *out)
{
    aeg_jval left = *a, right = *b;
    const bool safe = a->sub == 1 || b->sub == 1;
    if (safe && a->sub != 1)
        AEG_JTRY(aeg_jin_escape(r, a, &left));
    if (safe && b->sub != 1)
        AEG_JTRY(aeg_jin_escape(r, b, &right));
    AEG_JTRY(aeg_jin_concat(r, &left, &right, out));
    out->sub = safe;
    return true;
}

static bool add_lists(aeg_jrun *r, const aeg_jlist *a, const aeg_jlist *b, aeg_jval *out)
{
    aeg_jlist *l = aeg_jlist_new(r, a->flavor, a->n + b->n);
    AEG_JTRY(l != NULL);
    if (a->n > 0)
        memcpy(l->items, a->items, a->n * sizeof(aeg_jval));
    if (b->n > 0)
        memcpy(l->items + a->n, b->items, b->n * sizeof(aeg_jval));
    l->n = a->n + b->n;
    *out = aeg_jv_list(l);
    return true;
}

/* `v` (a string, list or tuple) `times` over. */
static bool repeat(aeg_jrun *r, const aeg_jval *v, int64_t times, aeg_jval *out)
{
    const size_t n = v->type == JV_STRING ? v->u.s.n : v->u.list->n;
    const size_t count = times < 0 || n == 0 ? 0 : (size_t)times;
    size_t total;
    if (__builtin_mul_overflow(n, count, &total))
        return aeg_jrun_no_memory(r);
    if (v->type == JV_STRING) {
        char *text;
        AEG_JTRY(aeg_jrun_text(r, total, &text));
        for (size_t i = 0; i < count; i++)
            memcpy(text + i * n, v->u.s.p, n);
        *out = aeg_jv_text(text, total);
        out->sub = v->sub;
        return aeg_jrun_step(r, count / 8);
    }
    aeg_jlist *l = aeg_jlist_new(r, v->u.list->flavor, total);
    AEG_JTRY(l != NULL);
    for (size_t i = 0; i < count; i++)
        memcpy(l->items + i * n, v->u.list->items, n * sizeof(aeg_jval));
    l->n = total;
    *out = aeg_jv_list(l);
    return aeg_jrun_step(r, count / 8);
}

static bool is_sequence(const aeg_jval *v)
{
    return v->type == JV_STRING || (v->type == JV_LIST && v->u.list->flavor <= JL_TUPLE);
}

bool aeg_jin_binary(aeg_jrun *r, int op, const aeg_jval *a, const aeg_jval *b, aeg_jval *out)
{
    if (aeg_jv_is_number(a) && aeg_jv_is_number(b)) {
        if (aeg_jv_is_integer(a) && aeg_jv_is_integer(b))
            return int_op(r, op, aeg_jv_as_int(a), aeg_jv_as_int(b), out);
        return float_op(r, op, aeg_jv_as_float(a), aeg_jv_as_float(b), out);
    }
    if (op == JO_MOD && a->type == JV_STRING)
        return aeg_jin_percent(r, a, b, out);
    if (a->type == JV_UNDEFINED || b->type == JV_UNDEFINED)
        return aeg_jrun_undefined(r, a->type == JV_UNDEFINED ? a : b);
    if (op == JO_ADD && a->type == JV_STRING && b->type == JV_STRING)
        return a->sub == 0 && b->sub == 0 ? aeg_jin_concat(r, a, b, out) : add_strings(r, a, b, out);
    if (op == JO_ADD && a->type == JV_LIST && is_sequence(a) && b->type == JV_LIST &&
        a->u.list->flavor == b->u.list->flavor)
        return add_lists(r, a->u.list, b->u.list, out);
    if (op == JO_MUL && is_sequence(a) && aeg_jv_is_integer(b))
        return repeat(r, a, aeg_jv_as_int(b), out);
    if (op == JO_MUL && is_sequence(b) && aeg_jv_is_integer(a))
        return repeat(r, b, aeg_jv_as_int(a), out);
    return aeg_jrun_fail(r, AEGIS_E_USAGE, "unsupported operand types for %s: '%s' and '%s'", symbols[op],
                         aeg_jv_type_name(a), aeg_jv_type_name(b));
}

bool aeg_jin_unary(aeg_jrun *r, int op, const aeg_jval *a, aeg_jval *out)
{
    if (a->type == JV_UNDEFINED)
        return aeg_jrun_undefined(r, a);
    if (!aeg_jv_is_number(a))
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "bad operand type for unary %s: '%s'", symbols[op],
                             aeg_jv_type_name(a));
    if (a->type == JV_FLOAT) {
        *out = aeg_jv_float(op == JO_NEG ? -a->u.f : a->u.f);
        return true;
    }
    const int64_t i = aeg_jv_as_int(a);
    if (op == JO_NEG && i == INT64_MIN)
        return overflow(r);
    *out = aeg_jv_int(op == JO_NEG ? -i : i);
    return true;
}

bool aeg_jin_compare(aeg_jrun *r, int op, const aeg_jval *a, const aeg_jval *b, bool *out)
{
    int c;
    switch (op) {
    case JO_EQ: return aeg_jv_equal(r, a, b, out);
    case JO_IN: return aeg_jin_contains(r, b, a, out);
    case JO_NE:
        AEG_JTRY(aeg_jv_equal(r, a, b, out));
        *out = !*out;
        return true;
    case JO_NOT_IN:
        AEG_JTRY(aeg_jin_contains(r, b, a, out));
        *out = !*out;
        return true;
    default: break;
    }
    AEG_JTRY(aeg_jv_order(r, a, b, symbols[op], &c));
    *out = c != 2 && (op == JO_LT ? c < 0 : op == JO_LE ? c <= 0 : op == JO_GT ? c > 0 : c >= 0);
    return true;
}
