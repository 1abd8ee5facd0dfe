/* SPDX-License-Identifier: Apache-2.0 */
/* Python's truth, equality, order and hashes. */
#include "text/jinja_value.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "text/jinja_run.h"

aeg_jval aeg_jv_cstr(const char *s) { return aeg_jv_text(s, strlen(s)); }

aeg_jval aeg_jv_undefined(aeg_jorigin origin, const char *p, size_t n)
{
    return (aeg_jval){ .type = JV_UNDEFINED, .sub = (uint8_t)origin, .u.s = { p, n } };
}

double aeg_jv_as_float(const aeg_jval *v)
{
    return v->type == JV_FLOAT ? v->u.f : (double)aeg_jv_as_int(v);
}

const char *aeg_jv_type_name(const aeg_jval *v)
{
    static const char *const lists[] = { "list", "tuple", "range", "generator", "dict_keys", "dict_values",
                                         "dict_items" };
    switch ((aeg_jtype)v->type) {
    case JV_UNDEFINED: return "Undefined";
    case JV_NONE: return "NoneType";
    case JV_BOOL: return "bool";
    case JV_INT: return "int";
    case JV_FLOAT: return "float";
    case JV_STRING: return "str";
    case JV_LIST: return lists[v->u.list->flavor];
    case JV_DICT: return "dict";
    case JV_NAMESPACE: return "Namespace";
    case JV_FUNCTION: return "function";
    case JV_METHOD: return "method";
    case JV_MACRO: return "Macro";
    case JV_LOOP: return "LoopContext";
    case JV_CYCLER: return "Cycler";
    case JV_JOINER: return "Joiner";
    case JV_UNSET: break;
    }
    return "nothing";
}

bool aeg_jv_truth(const aeg_jval *v)
{
    switch ((aeg_jtype)v->type) {
    case JV_UNDEFINED:
    case JV_NONE:
    case JV_UNSET: return false;
    case JV_BOOL: return v->u.b;
    case JV_INT: return v->u.i != 0;
    case JV_FLOAT: return v->u.f != 0.0;
    case JV_STRING: return v->u.s.n > 0;
    case JV_LIST: return v->u.list->n > 0 || v->u.list->flavor == JL_GENERATOR;
    case JV_DICT: return v->u.dict->n_live > 0;
    default: return true;
    }
}

/* Integers and floats compare exactly in Python, also beyond 2^53. */
static int order_numbers(const aeg_jval *a, const aeg_jval *b)
{
    if (aeg_jv_is_integer(a) && aeg_jv_is_integer(b)) {
        const int64_t x = aeg_jv_as_int(a), y = aeg_jv_as_int(b);
        return (x > y) - (x < y);
    }
    const double x = aeg_jv_as_float(a), y = aeg_jv_as_float(b);
    if (isnan(x) || isnan(y))
        return 2;
    if (x != y || (a->type == JV_FLOAT && b->type == JV_FLOAT))
        return (x > y) - (x < y);
    if (fabs(x) >= 9223372036854775808.0)
        return a->type == JV_FLOAT ? (x > 0 ? 1 : -1) : (y > 0 ? -1 : 1);
    const int64_t i = a->type == JV_FLOAT ? (int64_t)a->u.f : aeg_jv_as_int(a);
    const int64_t j = b->type == JV_FLOAT ? (int64_t)b->u.f : aeg_jv_as_int(b);
    return (i > j) - (i < j);
}

static int order_strings(const aeg_jval *a, const aeg_jval *b)
{
    /* The byte order of UTF-8 is the order of code points. */
    const size_t n = AEG_MIN(a->u.s.n, b->u.s.n);
    const int c = n > 0 ? memcmp(a->u.s.p, b->u.s.p, n) : 0;
    if (c != 0)
        return c < 0 ? -1 : 1;
    return (a->u.s.n > b->u.s.n) - (a->u.s.n < b->u.s.n);
}

static bool equal_lists(aeg_jrun *r, const aeg_jlist *a, const aeg_jlist *b, bool *out)
{
    *out = a == b;
    if (*out || a->flavor != b->flavor || a->n != b->n || a->flavor == JL_GENERATOR || a->flavor == JL_VALUES)
        return true;
    AEG_JTRY(aeg_jrun_enter(r));
    bool same = true, ok = true;
    for (size_t i = 0; ok && same && i < a->n; i++)
        ok = aeg_jrun_step(r, 1) && aeg_jv_equal(r, &a->items[i], &b->items[i], &same);
    r->depth--;
    *out = same;
    return ok;
}

static bool equal_dicts(aeg_jrun *r, const aeg_jdict *a, const aeg_jdict *b, bool *out)
{
    *out = a == b;
    if (*out || a->n_live != b->n_live)
        return true;
    AEG_JTRY(aeg_jrun_enter(r));
    bool same = true, ok = true;
    for (size_t i = 0; ok && same && i < a->n; i++) {
        aeg_jpair *other;
        if (a->pairs[i].dead)
            continue;
        ok = aeg_jrun_step(r, 1) && aeg_jdict_find(r, b, &a->pairs[i].key, &other);
        if (ok && other == NULL)
            same = false;
        else if (ok)
            ok = aeg_jv_equal(r, &a->pairs[i].value, &other->value, &same);
    }
    r->depth--;
    *out = same;
    return ok;
}

bool aeg_jv_equal(aeg_jrun *r, const aeg_jval *a, const aeg_jval *b, bool *out)
{
    *out = false;
    if (aeg_jv_is_number(a) && aeg_jv_is_number(b)) {
        *out = order_numbers(a, b) == 0;
        return true;
    }
    if (a->type != b->type)
        return true;
    switch ((aeg_jtype)a->type) {
    case JV_UNDEFINED:
    case JV_NONE: *out = true; return true;
    case JV_STRING: *out = a->u.s.n == b->u.s.n && order_strings(a, b) == 0; return true;
    case JV_LIST: return equal_lists(r, a->u.list, b->u.list, out);
    case JV_DICT: return equal_dicts(r, a->u.dict, b->u.dict, out);
    case JV_METHOD: *out = a->u.method == b->u.method; return true;
    default: *out = a->u.macro == b->u.macro; return true; /* identity, whichever pointer it is */
    }
}

static bool order_lists(aeg_jrun *r, const aeg_jlist *a, const aeg_jlist *b, const char *op, int *out)
{
    const size_t n = AEG_MIN(a->n, b->n);
    AEG_JTRY(aeg_jrun_enter(r));
    *out = (a->n > b->n) - (a->n < b->n);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        bool same = false;
        ok = aeg_jrun_step(r, 1) && aeg_jv_equal(r, &a->items[i], &b->items[i], &same);
        if (ok && !same) {
            ok = aeg_jv_order(r, &a->items[i], &b->items[i], op, out);
            break;
        }
    }
    r->depth--;
    return ok;
}

bool aeg_jv_order(aeg_jrun *r, const aeg_jval *a, const aeg_jval *b, const char *op, int *out)
{
    if (aeg_jv_is_number(a) && aeg_jv_is_number(b)) {
        *out = order_numbers(a, b);
        return true;
    }
    if (a->type == JV_UNDEFINED || b->type == JV_UNDEFINED)
        return aeg_jrun_undefined(r, a->type == JV_UNDEFINED ? a : b);
    if (a->type == JV_STRING && b->type == JV_STRING) {
        *out = order_strings(a, b);
        return true;
    }
    if (a->type == JV_LIST && b->type == JV_LIST && a->u.list->flavor == b->u.list->flavor &&
        a->u.list->flavor <= JL_TUPLE)
        return order_lists(r, a->u.list, b->u.list, op, out);
    return aeg_jrun_fail(r, AEGIS_E_USAGE, "'%s' not supported between '%s' and '%s'", op, aeg_jv_type_name(a),
                         aeg_jv_type_name(b));
}

static uint64_t mix(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    return h ^ h >> 33;
}

static uint64_t hash_float(double f)
{
    /* 1, 1.0 and true are one key. */
    if (f >= -9223372036854775808.0 && f < 9223372036854775808.0 && f == (double)(int64_t)f)
        return mix((uint64_t)(int64_t)f);
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    return mix(bits);
}

bool aeg_jv_hash(aeg_jrun *r, const aeg_jval *v, uint64_t *out)
{
    uint64_t h = 0xcbf29ce484222325ULL ^ v->type;
    switch ((aeg_jtype)v->type) {
    case JV_BOOL:
    case JV_INT: *out = hash_float((double)aeg_jv_as_int(v)); return true;
    case JV_FLOAT: *out = hash_float(v->u.f); return true;
    case JV_STRING:
        for (size_t i = 0; i < v->u.s.n; i++)
            h = (h ^ (unsigned char)v->u.s.p[i]) * 0x100000001b3ULL;
        *out = mix(h);
        return aeg_jrun_step(r, v->u.s.n / 64);
    case JV_LIST:
        if (v->u.list->flavor == JL_GENERATOR || v->u.list->flavor == JL_VALUES) {
            *out = mix((uint64_t)(uintptr_t)v->u.list);
            return true;
        }
        if (v->u.list->flavor != JL_TUPLE && v->u.list->flavor != JL_RANGE)
            break;
        AEG_JTRY(aeg_jrun_enter(r));
        for (size_t i = 0; i < v->u.list->n; i++) {
            uint64_t part;
            if (!aeg_jv_hash(r, &v->u.list->items[i], &part)) {
                r->depth--;
                return false;
            }
            h = mix(h ^ part) + 0x9e3779b97f4a7c15ULL;
        }
        r->depth--;
        *out = h;
        return true;
    case JV_DICT: break;
    case JV_UNDEFINED:
    case JV_NONE: *out = mix(h); return true;
    default: *out = mix((uint64_t)(uintptr_t)v->u.macro); return true;
    }
    return aeg_jrun_fail(r, AEGIS_E_USAGE, "unhashable type: '%s'", aeg_jv_type_name(v));
}
