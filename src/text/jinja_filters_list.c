/* SPDX-License-Identifier: Apache-2.0 */
/* Filters on sequences and mappings. */
#include <string.h>

#include "text/jinja_filters.h"
#include "text/jinja_text.h"

static bool no_args(aeg_jrun *r, const aeg_jcall *c)
{
    static const char *const none[] = { NULL };
    return aeg_jin_bind(r, c, none, 0, NULL);
}

static aeg_jval empty_sequence(void)
{
    static const char hint[] = "there is no item: the sequence is empty";
    return aeg_jv_undefined(JU_HINT, hint, sizeof hint - 1);
}

/* The items as a new list, which the caller may change. */
static aeg_jlist *copy_items(aeg_jrun *r, const aeg_jval *v, aeg_jflavor flavor)
{
    const aeg_jval *items;
    size_t n;
    if (!aeg_jin_iterate(r, v, &items, &n))
        return NULL;
    aeg_jlist *l = aeg_jlist_new(r, flavor, n);
    if (l == NULL)
        return NULL;
    if (n > 0)
        memcpy(l->items, items, n * sizeof *items);
    l->n = n;
    return l;
}

static bool f_length(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    int64_t n;
    AEG_JTRY(no_args(r, c) && aeg_jin_length(r, v, &n));
    *out = aeg_jv_int(n);
    return true;
}

static bool f_default(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "default_value", "boolean", NULL };
    aeg_jval a[2];
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a));
    const bool falsy_too = a[1].type != JV_UNSET && aeg_jv_truth(&a[1]);
    *out = *v;
    if (v->type == JV_UNDEFINED || (falsy_too && !aeg_jv_truth(v)))
        *out = a[0].type == JV_UNSET ? aeg_jv_text("", 0) : a[0];
    return true;
}

static bool f_first(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    const aeg_jval *items;
    size_t n;
    AEG_JTRY(no_args(r, c));
    if (v->type == JV_STRING) {
        *out = v->u.s.n == 0 ? empty_sequence() : aeg_jv_text(v->u.s.p, aeg_text_offset(v->u.s.p, v->u.s.n, 1));
        return true;
    }
    if (v->type == JV_LIST && v->u.list->flavor == JL_GENERATOR) {
        aeg_jlist *l = v->u.list;
        *out = empty_sequence();
        if (l->n > 0) { /* takes one item from it */
            *out = *l->items++;
            l->cap--;
            l->n--;
        }
        return true;
    }
    AEG_JTRY(aeg_jin_iterate(r, v, &items, &n));
    *out = n == 0 ? empty_sequence() : items[0];
    return true;
}

static bool f_last(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    const aeg_jval *items;
    size_t n;
    AEG_JTRY(no_args(r, c));
    if (v->type == JV_LIST && v->u.list->flavor == JL_GENERATOR)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "'generator' object is not reversible");
    if (v->type == JV_STRING) {
        const size_t k = aeg_text_before(v->u.s.p, 0, v->u.s.n);
        *out = k == 0 ? empty_sequence() : aeg_jv_text(v->u.s.p + v->u.s.n - k, k);
        return true;
    }
    AEG_JTRY(aeg_jin_iterate(r, v, &items, &n));
    *out = n == 0 ? empty_sequence() : items[n - 1];
    return true;
}

static bool f_list(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    AEG_JTRY(no_args(r, c));
    aeg_jlist *l = copy_items(r, v, JL_LIST);
    AEG_JTRY(l != NULL);
    *out = aeg_jv_list(l);
    return true;
}

static bool f_reverse(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const aeg_jval backwards[3] = { { .type = JV_NONE }, { .type = JV_NONE }, { .type = JV_INT, .u.i = -1 } };
    AEG_JTRY(no_args(r, c));
    if (v->type == JV_STRING)
        return aeg_jin_slice(r, v, backwards, out);
    const bool was_generator = v->type == JV_LIST && v->u.list->flavor == JL_GENERATOR;
    aeg_jlist *l = copy_items(r, v, was_generator || v->type == JV_UNDEFINED ? JL_LIST : JL_GENERATOR);
    AEG_JTRY(l != NULL);
    for (size_t i = 0; i < l->n / 2; i++) {
        const aeg_jval t = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = t;
    }
    *out = aeg_jv_list(l);
    return true;
}

static bool f_join(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "d", "attribute", NULL };
    aeg_jval a[2], between = aeg_jv_text("", 0);
    const aeg_jval *items;
    size_t n;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a));
    if (a[0].type != JV_UNSET)
        AEG_JTRY(aeg_jin_str(r, &a[0], &between));
    AEG_JTRY(aeg_jin_iterate(r, v, &items, &n));
    const size_t mark = aeg_jrun_capture_begin(r);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        aeg_jval item = items[i];
        ok = aeg_jrun_step(r, 1) && (i == 0 || aeg_jrun_write(r, between.u.s.p, between.u.s.n)) &&
             (a[1].type == JV_UNSET || a[1].type == JV_NONE ||
              aeg_jin_attribute_path(r, &items[i], &a[1], &item)) &&
             aeg_jin_write_str(r, &item);
    }
    if (!ok) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}

/* What an item is compared by: its attribute (or itself), strings in lower case unless told. */
static bool sort_key(aeg_jrun *r, const aeg_jval *item, const aeg_jval *attribute, bool case_sensitive,
                     aeg_jval *out)
{
    *out = *item;
    if (attribute->type != JV_UNSET && attribute->type != JV_NONE)
        AEG_JTRY(aeg_jin_attribute_path(r, item, attribute, out));
    if (out->type == JV_STRING && !case_sensitive) {
        const aeg_jval text = *out;
        return aeg_jin_case(r, &text, AEG_JCASE_LOWER, out);
    }
    return true;
}

/* Jinja2 sorts by a list of keys, one for each attribute in "a,b". */
static bool sort_keys(aeg_jrun *r, const aeg_jval *item, const aeg_jval *attribute, bool case_sensitive,
                      aeg_jval *out)
{
    aeg_jlist *l = aeg_jlist_new(r, JL_LIST, 1);
    AEG_JTRY(l != NULL);
    const bool is_text = attribute->type == JV_STRING;
    const char *s = is_text ? attribute->u.s.p : NULL;
    size_t left = is_text ? attribute->u.s.n : 0;
    for (bool more = true; more;) {
        aeg_jval part = *attribute, key;
        const char *comma = left > 0 ? memchr(s, ',', left) : NULL;
        if (is_text)
            part = aeg_jv_text(s, comma == NULL ? left : (size_t)(comma - s));
        more = comma != NULL;
        if (more) {
            left -= (size_t)(comma + 1 - s);
            s = comma + 1;
        }
        AEG_JTRY(sort_key(r, item, &part, case_sensitive, &key) && aeg_jlist_push(r, l, key));
    }
    *out = aeg_jv_list(l);
    return true;
}

static bool is_true(const aeg_jval *v) { return v->type != JV_UNSET && aeg_jv_truth(v); }

/* reverse= of the sorts: Python takes an integer there, not any truth value. */
static bool want_reverse(aeg_jrun *r, const aeg_jcall *c, const aeg_jval *v, bool *out)
{
    int64_t i = 0;
    AEG_JTRY(v->type == JV_UNSET || aeg_jin_want_int(r, c, v, &i));
    *out = i != 0;
    return true;
}

static bool f_sort(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "reverse", "case_sensitive", "attribute", NULL };
    aeg_jval a[3], *keys;
    bool reverse;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a) && want_reverse(r, c, &a[0], &reverse));
    aeg_jlist *l = copy_items(r, v, JL_LIST);
    AEG_JTRY(l != NULL && aeg_jrun_alloc(r, l->n, sizeof *keys, &keys));
    for (size_t i = 0; i < l->n; i++)
        AEG_JTRY(sort_keys(r, &l->items[i], &a[2], is_true(&a[1]), &keys[i]));
    *out = aeg_jv_list(l);
    return aeg_jin_sort(r, l->items, keys, l->n, reverse);
}

static bool f_unique(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "case_sensitive", "attribute", NULL };
    aeg_jval a[2];
    const aeg_jval *items;
    size_t n;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a) && aeg_jin_iterate(r, v, &items, &n));
    aeg_jlist *l = aeg_jlist_new(r, JL_GENERATOR, 0);
    aeg_jdict *seen = aeg_jdict_new(r);
    AEG_JTRY(l != NULL && seen != NULL);
    for (size_t i = 0; i < n; i++) {
        aeg_jval key;
        aeg_jpair *pair;
        AEG_JTRY(sort_key(r, &items[i], &a[1], is_true(&a[0]), &key) && aeg_jdict_find(r, seen, &key, &pair));
        if (pair == NULL)
            AEG_JTRY(aeg_jdict_set(r, seen, key, aeg_jv_none()) && aeg_jlist_push(r, l, items[i]));
    }
    *out = aeg_jv_list(l);
    return true;
}

static bool extreme(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, bool smallest, aeg_jval *out)
{
    static const char *const names[] = { "case_sensitive", "attribute", NULL };
    aeg_jval a[2], best;
    const aeg_jval *items;
    size_t n;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a) && aeg_jin_iterate(r, v, &items, &n));
    *out = n == 0 ? empty_sequence() : items[0];
    for (size_t i = 0; i < n; i++) {
        aeg_jval key;
        int order = 0;
        AEG_JTRY(sort_key(r, &items[i], &a[1], is_true(&a[0]), &key));
        if (i > 0)
            AEG_JTRY(aeg_jv_order(r, &key, &best, smallest ? "<" : ">", &order));
        if (i == 0 || order == (smallest ? -1 : 1)) {
            best = key;
            *out = items[i];
        }
    }
    return true;
}

static bool f_min(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return extreme(r, v, c, true, out);
}

static bool f_max(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return extreme(r, v, c, false, out);
}

static bool f_sum(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "attribute", "start", NULL };
    aeg_jval a[2];
    const aeg_jval *items;
    size_t n;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a) && aeg_jin_iterate(r, v, &items, &n));
    *out = a[1].type == JV_UNSET ? aeg_jv_int(0) : a[1];
    if (out->type == JV_STRING)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "sum() cannot add strings, use join");
    for (size_t i = 0; i < n; i++) {
        aeg_jval item = items[i];
        const aeg_jval so_far = *out;
        if (a[0].type != JV_UNSET && a[0].type != JV_NONE)
            AEG_JTRY(aeg_jin_attribute_path(r, &items[i], &a[0], &item));
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jin_binary(r, JO_ADD, &so_far, &item, out));
    }
    return true;
}

static bool pairs_of(aeg_jrun *r, const aeg_jdict *d, aeg_jflavor flavor, aeg_jval *out)
{
    aeg_jlist *l = aeg_jlist_new(r, flavor, d->n_live);
    AEG_JTRY(l != NULL);
    for (size_t i = 0; i < d->n; i++) {
        if (d->pairs[i].dead)
            continue;
        aeg_jlist *pair = aeg_jlist_new(r, JL_TUPLE, 2);
        AEG_JTRY(pair != NULL);
        pair->items[0] = d->pairs[i].key;
        pair->items[1] = d->pairs[i].value;
        pair->n = 2;
        AEG_JTRY(aeg_jlist_push(r, l, aeg_jv_list(pair)));
    }
    *out = aeg_jv_list(l);
    return true;
}

static bool f_items(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const aeg_jdict none;
    AEG_JTRY(no_args(r, c));
    if (v->type != JV_DICT && v->type != JV_UNDEFINED)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "items() needs a mapping, found '%s'", aeg_jv_type_name(v));
    return pairs_of(r, v->type == JV_DICT ? v->u.dict : &none, JL_GENERATOR, out);
}

static bool f_dictsort(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "case_sensitive", "by", "reverse", NULL };
    static const aeg_jval whole = { .type = JV_UNSET };
    aeg_jval a[3], *keys;
    size_t position = 0;
    bool reverse;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, a) && want_reverse(r, c, &a[2], &reverse));
    if (a[1].type != JV_UNSET) {
        const char *by;
        size_t n;
        AEG_JTRY(aeg_jin_want_string(r, c, &a[1], &by, &n));
        position = n == 5 && memcmp(by, "value", 5) == 0;
        if (position == 0 && !(n == 3 && memcmp(by, "key", 3) == 0))
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "dictsort() sorts by 'key' or 'value'");
    }
    if (v->type == JV_UNDEFINED)
        return aeg_jrun_undefined(r, v);
    if (v->type != JV_DICT)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "dictsort() needs a mapping, found '%s'", aeg_jv_type_name(v));
    AEG_JTRY(pairs_of(r, v->u.dict, JL_LIST, out));
    aeg_jlist *l = out->u.list;
    AEG_JTRY(aeg_jrun_alloc(r, l->n, sizeof *keys, &keys));
    for (size_t i = 0; i < l->n; i++)
        AEG_JTRY(sort_key(r, &l->items[i].u.list->items[position], &whole, is_true(&a[0]), &keys[i]));
    return aeg_jin_sort(r, l->items, keys, l->n, reverse);
}

static bool f_batch(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "linecount", "fill_with", NULL };
    aeg_jval a[2];
    const aeg_jval *items;
    size_t n;
    int64_t size;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, a) && aeg_jin_want_int(r, c, &a[0], &size));
    AEG_JTRY(aeg_jin_iterate(r, v, &items, &n));
    if (size < 1)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "batch() needs a size of at least 1");
    aeg_jlist *l = aeg_jlist_new(r, JL_GENERATOR, 0), *part = NULL;
    AEG_JTRY(l != NULL);
    for (size_t i = 0; i < n; i++) {
        if (i % (uint64_t)size == 0) {
            part = aeg_jlist_new(r, JL_LIST, 0);
            AEG_JTRY(part != NULL && aeg_jlist_push(r, l, aeg_jv_list(part)));
        }
        AEG_JTRY(aeg_jlist_push(r, part, items[i]));
    }
    while (part != NULL && part->n < (uint64_t)size && a[1].type != JV_UNSET && a[1].type != JV_NONE)
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jlist_push(r, part, a[1]));
    *out = aeg_jv_list(l);
    return true;
}

const aeg_jbuiltin aeg_jf_list_table[] = {
    { "length", f_length }, { "count", f_length },     { "default", f_default }, { "d", f_default },
    { "first", f_first },   { "last", f_last },        { "list", f_list },       { "reverse", f_reverse },
    { "join", f_join },     { "sort", f_sort },        { "unique", f_unique },   { "min", f_min },
    { "max", f_max },       { "sum", f_sum },          { "items", f_items },     { "dictsort", f_dictsort },
    { "batch", f_batch },   { NULL, NULL },
};
