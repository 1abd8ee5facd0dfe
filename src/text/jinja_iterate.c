/* SPDX-License-Identifier: Apache-2.0 */
/* Going through things: iteration, length, membership, stable sorting, loop.* */
#include <string.h>

#include "base/checked.h"
#include "text/jinja_eval.h"
#include "text/jinja_text.h"

static bool characters(aeg_jrun *r, const aeg_jval *v, const aeg_jval **items, size_t *n)
{
    const char *s = v->u.s.p;
    aeg_jval *out;
    *n = aeg_text_count(s, v->u.s.n);
    AEG_JTRY(aeg_jrun_alloc(r, *n, sizeof *out, &out));
    for (size_t i = 0, at = 0; i < *n; i++) {
        uint32_t cp;
        const size_t k = aeg_text_decode(s + at, v->u.s.n - at, &cp);
        out[i] = aeg_jv_text(s + at, k);
        at += k;
    }
    *items = out;
    return aeg_jrun_step(r, *n / 8);
}

static bool keys(aeg_jrun *r, const aeg_jdict *d, const aeg_jval **items, size_t *n)
{
    aeg_jval *out;
    AEG_JTRY(aeg_jrun_alloc(r, d->n_live, sizeof *out, &out));
    *n = 0;
    for (size_t i = 0; i < d->n; i++)
        if (!d->pairs[i].dead)
            out[(*n)++] = d->pairs[i].key;
    *items = out;
    return true;
}

bool aeg_jin_iterate(aeg_jrun *r, const aeg_jval *v, const aeg_jval **items, size_t *n)
{
    *items = NULL;
    *n = 0;
    switch ((aeg_jtype)v->type) {
    case JV_UNDEFINED: return true;
    case JV_STRING: return characters(r, v, items, n);
    case JV_DICT: return keys(r, v->u.dict, items, n);
    case JV_LIST:
        *items = v->u.list->items;
        *n = v->u.list->n;
        if (v->u.list->flavor == JL_GENERATOR)
            v->u.list->n = 0; /* used up, as in Python */
        return aeg_jrun_step(r, *n / 8);
    default: break;
    }
    return aeg_jrun_fail(r, AEGIS_E_USAGE, "'%s' object is not iterable", aeg_jv_type_name(v));
}

bool aeg_jin_length(aeg_jrun *r, const aeg_jval *v, int64_t *out)
{
    *out = 0;
    switch ((aeg_jtype)v->type) {
    case JV_UNDEFINED: return true;
    case JV_STRING: *out = (int64_t)aeg_text_count(v->u.s.p, v->u.s.n); return aeg_jrun_step(r, v->u.s.n / 64);
    case JV_DICT: *out = (int64_t)v->u.dict->n_live; return true;
    case JV_LOOP: *out = (int64_t)v->u.loop->n; return true;
    case JV_LIST:
        if (v->u.list->flavor == JL_GENERATOR)
            break;
        *out = (int64_t)v->u.list->n;
        return true;
    default: break;
    }
    return aeg_jrun_fail(r, AEGIS_E_USAGE, "object of type '%s' has no length", aeg_jv_type_name(v));
}

bool aeg_jin_contains(aeg_jrun *r, const aeg_jval *container, const aeg_jval *item, bool *out)
{
    *out = false;
    if (container->type == JV_STRING) {
        if (item->type != JV_STRING)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "'in <string>' requires a string, found '%s'",
                                 aeg_jv_type_name(item));
        *out = item->u.s.n == 0 ||
               memmem(container->u.s.p, container->u.s.n, item->u.s.p, item->u.s.n) != NULL;
        return aeg_jrun_step(r, container->u.s.n / 64);
    }
    if (container->type == JV_DICT) {
        aeg_jpair *pair;
        AEG_JTRY(aeg_jdict_find(r, container->u.dict, item, &pair));
        *out = pair != NULL;
        return true;
    }
    const aeg_jval *items;
    size_t n;
    AEG_JTRY(aeg_jin_iterate(r, container, &items, &n));
    for (size_t i = 0; !*out && i < n; i++)
        AEG_JTRY(aeg_jv_equal(r, &items[i], item, out));
    return true;
}

/* Merge sort of order[low, high): stable, and the comparison may fail. */
static bool merge_sort(aeg_jrun *r, const aeg_jval *by, uint32_t *order, uint32_t *spare, size_t n, bool reverse)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            const size_t mid = AEG_MIN(low + width, n), high = AEG_MIN(low + 2 * width, n);
            size_t a = low, b = mid;
            for (size_t k = low; k < high; k++) {
                bool take_b = a == mid;
                if (a < mid && b < high) {
                    int c;
                    AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jv_order(r, &by[order[b]], &by[order[a]], "<", &c));
                    take_b = reverse ? c == 1 : c == -1;
                }
                spare[k] = take_b ? order[b++] : order[a++];
            }
        }
        memcpy(order, spare, n * sizeof *order);
    }
    return true;
}

bool aeg_jin_sort(aeg_jrun *r, aeg_jval *items, const aeg_jval *by, size_t n, bool reverse)
{
    uint32_t *order, *spare;
    aeg_jval *sorted;
    if (n > UINT32_MAX)
        return aeg_jrun_no_memory(r);
    AEG_JTRY(aeg_jrun_alloc(r, n, sizeof *order, &order) && aeg_jrun_alloc(r, n, sizeof *spare, &spare));
    AEG_JTRY(aeg_jrun_alloc(r, n, sizeof *sorted, &sorted));
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    AEG_JTRY(merge_sort(r, by, order, spare, n, reverse));
    for (size_t i = 0; i < n; i++)
        sorted[i] = items[order[i]];
    if (n > 0)
        memcpy(items, sorted, n * sizeof *items);
    return true;
}

static aeg_jval neighbour(const struct aeg_jloop *loop, bool previous)
{
    static const char none_before[] = "there is no previous item", none_after[] = "there is no next item";
    if (previous)
        return loop->index0 > 0 ? loop->items[loop->index0 - 1]
                                : aeg_jv_undefined(JU_HINT, none_before, sizeof none_before - 1);
    return loop->index0 + 1 < loop->n ? loop->items[loop->index0 + 1]
                                      : aeg_jv_undefined(JU_HINT, none_after, sizeof none_after - 1);
}

bool aeg_jin_loop_attribute(aeg_jrun *r, const struct aeg_jloop *loop, const char *name, size_t n, aeg_jval *out,
                            bool *found)
{
    const int64_t index0 = (int64_t)loop->index0, length = (int64_t)loop->n;
    (void)r;
    *found = true;
#define IS(text) (n == sizeof(text) - 1 && memcmp(name, text, n) == 0)
    if (IS("index"))
        *out = aeg_jv_int(index0 + 1);
    else if (IS("index0"))
        *out = aeg_jv_int(index0);
    else if (IS("first"))
        *out = aeg_jv_bool(index0 == 0);
    else if (IS("last"))
        *out = aeg_jv_bool(index0 + 1 == length);
    else if (IS("length"))
        *out = aeg_jv_int(length);
    else if (IS("revindex"))
        *out = aeg_jv_int(length - index0);
    else if (IS("revindex0"))
        *out = aeg_jv_int(length - index0 - 1);
    else if (IS("previtem"))
        *out = neighbour(loop, true);
    else if (IS("nextitem"))
        *out = neighbour(loop, false);
    else if (IS("depth"))
        *out = aeg_jv_int(1);
    else if (IS("depth0"))
        *out = aeg_jv_int(0);
    else
        *found = false;
#undef IS
    return true;
}
