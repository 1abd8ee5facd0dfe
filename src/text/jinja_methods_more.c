/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that ask about or pad strings, those of lists, dicts, loops and cyclers, and the lookup. */
#include <string.h>

#include "text/jinja_eval.h"
#include "text/jinja_filters.h"
#include "text/jinja_text.h"

#define NO_ARGS(r, c) aeg_jin_bind(r, c, (const char *const[]){ NULL }, 0, NULL)

static bool all_are(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, bool (*is)(uint32_t), aeg_jval *out)
{
    AEG_JTRY(NO_ARGS(r, c) && aeg_jrun_step(r, v->u.s.n / 16));
    bool all = v->u.s.n > 0;
    for (size_t i = 0; all && i < v->u.s.n;) {
        uint32_t cp;
        i += aeg_text_decode(v->u.s.p + i, v->u.s.n - i, &cp);
        all = is(cp);
    }
    *out = aeg_jv_bool(all);
    return true;
}

static bool is_alpha(uint32_t cp) { return aeg_text_is(cp, AEG_CLASS_ALPHA); }
static bool is_digit(uint32_t cp) { return aeg_text_is(cp, AEG_CLASS_DIGIT); }
static bool is_decimal(uint32_t cp) { return aeg_text_is(cp, AEG_CLASS_DECIMAL); }
static bool is_numeric(uint32_t cp) { return aeg_text_is(cp, AEG_CLASS_NUMERIC); }
static bool is_alnum(uint32_t cp) { return is_alpha(cp) || is_numeric(cp); }

#define ALL(name, is) \
    static bool m_##name(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out) \
    { return all_are(r, v, c, is, out); }
ALL(isalpha, is_alpha) ALL(isdigit, is_digit) ALL(isdecimal, is_decimal) ALL(isnumeric, is_numeric)
ALL(isalnum, is_alnum) ALL(isspace, aeg_text_is_space)
#undef ALL

static bool m_islower(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return aeg_jin_find_test("lower", 5)->fn(r, v, c, out);
}

static bool m_isupper(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return aeg_jin_find_test("upper", 5)->fn(r, v, c, out);
}

/* `left` and `right` copies of the one character in `fill` around v. */
static bool pad(aeg_jrun *r, const aeg_jval *v, const aeg_jval *fill, int64_t left, int64_t right, aeg_jval *out)
{
    const aeg_jval n_left = aeg_jv_int(left), n_right = aeg_jv_int(right);
    aeg_jval a, b, joined;
    return aeg_jin_binary(r, JO_MUL, fill, &n_left, &a) && aeg_jin_binary(r, JO_MUL, fill, &n_right, &b) &&
           aeg_jin_concat(r, &a, v, &joined) && aeg_jin_concat(r, &joined, &b, out);
}

/* -1: text left, 1: text right, 0: centre */
static bool justify(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, int side, aeg_jval *out)
{
    static const char *const names[] = { "width", "fillchar", NULL };
    aeg_jval a[2], fill = aeg_jv_text(" ", 1);
    int64_t width;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, a) && aeg_jin_want_int(r, c, &a[0], &width));
    if (a[1].type != JV_UNSET) {
        const char *p;
        size_t n;
        AEG_JTRY(aeg_jin_want_string(r, c, &a[1], &p, &n));
        if (aeg_text_count(p, n) != 1)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s(): the fill must be one character", c->what);
        fill = a[1];
    }
    const int64_t n = (int64_t)aeg_text_count(v->u.s.p, v->u.s.n);
    *out = *v;
    if (width <= n)
        return true;
    const int64_t gap = width - n, left = side < 0 ? 0 : side > 0 ? gap : gap / 2 + (gap & width & 1);
    return pad(r, v, &fill, left, gap - left, out);
}

static bool m_ljust(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return justify(r, v, c, -1, out);
}

static bool m_rjust(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return justify(r, v, c, 1, out);
}

static bool m_center(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return justify(r, v, c, 0, out);
}

static bool m_zfill(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "width", NULL };
    const aeg_jval zero = aeg_jv_text("0", 1);
    aeg_jval a, rest = *v, sign = aeg_jv_text(v->u.s.p, 0), padded;
    int64_t width;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, &a) && aeg_jin_want_int(r, c, &a, &width));
    const int64_t n = (int64_t)aeg_text_count(v->u.s.p, v->u.s.n);
    *out = *v;
    if (width <= n)
        return true;
    if (n > 0 && (v->u.s.p[0] == '-' || v->u.s.p[0] == '+')) {
        sign.u.s.n = 1;
        rest.u.s.p++;
        rest.u.s.n--;
    }
    return pad(r, &rest, &zero, width - n, 0, &padded) && aeg_jin_concat(r, &sign, &padded, out);
}

const aeg_jbuiltin aeg_jm_strip_table[] = {
    { "isalpha", m_isalpha }, { "isdigit", m_isdigit }, { "isdecimal", m_isdecimal },
    { "isnumeric", m_isnumeric }, { "isalnum", m_isalnum }, { "isspace", m_isspace },
    { "islower", m_islower }, { "isupper", m_isupper }, { "ljust", m_ljust }, { "rjust", m_rjust },
    { "center", m_center }, { "zfill", m_zfill }, { NULL, NULL },
};

static bool m_append(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "object", NULL };
    aeg_jval item;
    *out = aeg_jv_none();
    return aeg_jin_bind(r, c, names, 1, &item) && aeg_jlist_push(r, v->u.list, item);
}

static bool m_extend(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "iterable", NULL };
    aeg_jval iterable;
    const aeg_jval *items;
    size_t n;
    *out = aeg_jv_none();
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, &iterable) && aeg_jin_iterate(r, &iterable, &items, &n));
    for (size_t i = 0; i < n; i++)
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jlist_push(r, v->u.list, items[i]));
    return true;
}

static bool m_insert(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "index", "object", NULL };
    aeg_jlist *l = v->u.list;
    aeg_jval a[2];
    int64_t at;
    *out = aeg_jv_none();
    AEG_JTRY(aeg_jin_bind(r, c, names, 2, a) && aeg_jin_want_int(r, c, &a[0], &at));
    const int64_t n = (int64_t)l->n;
    at = at < -n ? 0 : at < 0 ? at + n : at > n ? n : at;
    AEG_JTRY(aeg_jlist_push(r, l, a[1]) && aeg_jrun_step(r, l->n / 8));
    /* Into a new array: a loop may be going through the old one. */
    aeg_jval *items;
    AEG_JTRY(aeg_jrun_alloc(r, l->cap, sizeof *items, &items));
    memcpy(items, l->items, (size_t)at * sizeof *items);
    memcpy(items + at + 1, l->items + at, (size_t)(n - at) * sizeof *items);
    items[at] = a[1];
    l->items = items;
    return true;
}

static bool m_pop(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "index", NULL };
    aeg_jlist *l = v->u.list;
    aeg_jval a, *items;
    int64_t at = -1;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, &a));
    if (a.type != JV_UNSET)
        AEG_JTRY(aeg_jin_want_int(r, c, &a, &at));
    at += at < 0 ? (int64_t)l->n : 0;
    if (at < 0 || (uint64_t)at >= l->n)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "pop(): there is no such item in a list of %zu", l->n);
    *out = l->items[at];
    AEG_JTRY(aeg_jrun_alloc(r, l->n, sizeof *items, &items));
    memcpy(items, l->items, (size_t)at * sizeof *items);
    memcpy(items + at, l->items + at + 1, (l->n - (size_t)at - 1) * sizeof *items);
    l->items = items;
    l->cap = l->n;
    l->n--;
    return true;
}

static bool m_list_index(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "value", NULL };
    aeg_jval a;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, &a));
    for (size_t i = 0; i < v->u.list->n; i++) {
        bool same;
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jv_equal(r, &v->u.list->items[i], &a, &same));
        *out = aeg_jv_int((int64_t)i);
        if (same)
            return true;
    }
    return aeg_jrun_fail(r, AEGIS_E_USAGE, "index(): the value is not in the list");
}

static bool m_list_count(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "value", NULL };
    aeg_jval a;
    int64_t count = 0;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, &a));
    for (size_t i = 0; i < v->u.list->n; i++) {
        bool same;
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jv_equal(r, &v->u.list->items[i], &a, &same));
        count += same;
    }
    *out = aeg_jv_int(count);
    return true;
}

/* The first two are also methods of tuples and ranges. */
const aeg_jbuiltin aeg_jm_list_table[] = {
    { "index", m_list_index }, { "count", m_list_count }, { NULL, NULL },
};

static const aeg_jbuiltin list_changes[] = {
    { "append", m_append }, { "extend", m_extend }, { "insert", m_insert }, { "pop", m_pop }, { NULL, NULL },
};

static bool view(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jflavor flavor, aeg_jval *out)
{
    const aeg_jdict *d = v->u.dict;
    AEG_JTRY(NO_ARGS(r, c));
    aeg_jlist *l = aeg_jlist_new(r, flavor, d->n_live);
    AEG_JTRY(l != NULL && aeg_jrun_step(r, d->n / 8));
    for (size_t i = 0; i < d->n; i++) {
        if (d->pairs[i].dead)
            continue;
        aeg_jval item = flavor == JL_KEYS ? d->pairs[i].key : d->pairs[i].value;
        if (flavor == JL_ITEMS) {
            aeg_jlist *pair = aeg_jlist_new(r, JL_TUPLE, 2);
            AEG_JTRY(pair != NULL);
            pair->items[0] = d->pairs[i].key;
            pair->items[1] = d->pairs[i].value;
            pair->n = 2;
            item = aeg_jv_list(pair);
        }
        AEG_JTRY(aeg_jlist_push(r, l, item));
    }
    *out = aeg_jv_list(l);
    return true;
}

static bool m_keys(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return view(r, v, c, JL_KEYS, out);
}

static bool m_values(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return view(r, v, c, JL_VALUES, out);
}

static bool m_items(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return view(r, v, c, JL_ITEMS, out);
}

static bool m_get(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "key", "default", NULL };
    aeg_jval a[2];
    aeg_jpair *pair;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, a) && aeg_jdict_find(r, v->u.dict, &a[0], &pair));
    *out = pair != NULL ? pair->value : a[1].type == JV_UNSET ? aeg_jv_none() : a[1];
    return true;
}

static bool m_update(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    *out = aeg_jv_none();
    if (c->n_args > 1 || (c->n_args == 1 && c->args[0].type != JV_DICT))
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "update() takes one mapping and keywords");
    const aeg_jdict *from = c->n_args == 1 ? c->args[0].u.dict : NULL;
    for (size_t i = 0; from != NULL && i < from->n; i++)
        if (!from->pairs[i].dead)
            AEG_JTRY(aeg_jrun_step(r, 1) &&
                     aeg_jdict_set(r, v->u.dict, from->pairs[i].key, from->pairs[i].value));
    for (uint32_t k = 0; k < c->n_kwargs; k++)
        AEG_JTRY(aeg_jdict_set(r, v->u.dict, aeg_jv_cstr(c->names[k]), c->kwargs[k]));
    return true;
}

static bool m_dict_pop(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "key", "default", NULL };
    aeg_jval a[2];
    bool found;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, a) && aeg_jdict_remove(r, v->u.dict, &a[0], out, &found));
    if (!found && a[1].type == JV_UNSET)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "pop(): there is no such key");
    if (!found)
        *out = a[1];
    return true;
}

const aeg_jbuiltin aeg_jm_dict_table[] = {
    { "items", m_items }, { "get", m_get }, { "keys", m_keys }, { "values", m_values }, { "update", m_update },
    { "pop", m_dict_pop }, { NULL, NULL },
};

static bool m_cycle(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    if (c->n_args == 0)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "loop.cycle() needs something to cycle through");
    *out = c->args[v->u.loop->index0 % c->n_args];
    return true;
}

static bool m_changed(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    bool same = false;
    aeg_jlist *l = aeg_jlist_new(r, JL_TUPLE, c->n_args);
    AEG_JTRY(l != NULL);
    for (uint32_t i = 0; i < c->n_args; i++)
        AEG_JTRY(aeg_jlist_push(r, l, c->args[i]));
    if (v->u.loop->last_changed != NULL) {
        const aeg_jval before = aeg_jv_list(v->u.loop->last_changed), now = aeg_jv_list(l);
        AEG_JTRY(aeg_jv_equal(r, &before, &now, &same));
    }
    v->u.loop->last_changed = l;
    *out = aeg_jv_bool(!same);
    return true;
}

static bool m_next(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    struct aeg_jcycle *cycle = v->u.cycle;
    AEG_JTRY(NO_ARGS(r, c));
    *out = cycle->items[cycle->pos];
    cycle->pos = (cycle->pos + 1) % cycle->n;
    return true;
}

static bool m_reset(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    v->u.cycle->pos = 0;
    *out = aeg_jv_none();
    return NO_ARGS(r, c);
}

const aeg_jbuiltin *aeg_jin_find_method(aeg_jtype type, aeg_jflavor flavor, const char *name, size_t n)
{
    static const aeg_jbuiltin loop[] = { { "cycle", m_cycle }, { "changed", m_changed }, { NULL, NULL } };
    static const aeg_jbuiltin cycler[] = { { "next", m_next }, { "reset", m_reset }, { NULL, NULL } };
    const aeg_jbuiltin *found = NULL;
    switch (type) {
    case JV_STRING:
        found = aeg_jin_lookup(aeg_jm_string_table, name, n);
        return found != NULL ? found : aeg_jin_lookup(aeg_jm_strip_table, name, n);
    case JV_DICT: return aeg_jin_lookup(aeg_jm_dict_table, name, n);
    case JV_LOOP: return aeg_jin_lookup(loop, name, n);
    case JV_CYCLER: return aeg_jin_lookup(cycler, name, n);
    case JV_LIST:
        if (flavor == JL_LIST)
            found = aeg_jin_lookup(list_changes, name, n);
        return found != NULL || flavor > JL_RANGE ? found : aeg_jin_lookup(aeg_jm_list_table, name, n);
    default: return NULL;
    }
}
