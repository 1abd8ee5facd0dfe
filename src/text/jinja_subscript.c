/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes, items and slices. As Jinja2: `a.b` looks for a method first and an item second,
 * `a['b']` the other way round, and what is missing is undefined, not an error. */
#include <string.h>

#include "text/jinja_eval.h"
#include "text/jinja_text.h"

static aeg_jval missing(const aeg_jval *obj, const char *name, size_t n)
{
    aeg_jval v = aeg_jv_undefined(JU_ATTRIBUTE, name, n);
    v.owner = obj->type;
    return v;
}

static bool find_attribute(aeg_jrun *r, const aeg_jval *obj, const char *name, size_t n, aeg_jval *out, bool *found)
{
    const aeg_jflavor flavor = obj->type == JV_LIST ? obj->u.list->flavor : JL_LIST;
    *found = false;
    if (obj->type == JV_LOOP) {
        AEG_JTRY(aeg_jin_loop_attribute(r, obj->u.loop, name, n, out, found));
        if (*found)
            return true;
    }
    if (obj->type == JV_NAMESPACE) {
        const aeg_jval key = aeg_jv_text(name, n);
        aeg_jpair *pair;
        AEG_JTRY(aeg_jdict_find(r, obj->u.dict, &key, &pair));
        if (pair != NULL)
            *out = pair->value;
        *found = pair != NULL;
        return true;
    }
    if (obj->type == JV_MACRO && n == 4 && memcmp(name, "name", 4) == 0) {
        *out = aeg_jv_cstr(obj->u.macro->name);
        *found = true;
        return true;
    }
    if (obj->type == JV_CYCLER && n == 7 && memcmp(name, "current", 7) == 0) {
        *out = obj->u.cycle->items[obj->u.cycle->pos];
        *found = true;
        return true;
    }
    const aeg_jbuiltin *builtin = aeg_jin_find_method((aeg_jtype)obj->type, flavor, name, n);
    if (builtin == NULL)
        return true;
    struct aeg_jmethod *method;
    AEG_JTRY(aeg_jrun_alloc(r, 1, sizeof *method, &method));
    *method = (struct aeg_jmethod){ .self = *obj, .builtin = builtin };
    *out = (aeg_jval){ .type = JV_METHOD, .u.method = method };
    *found = true;
    return true;
}

static bool find_item(aeg_jrun *r, const aeg_jval *obj, const aeg_jval *key, aeg_jval *out, bool *found)
{
    *found = false;
    if (obj->type == JV_DICT) {
        aeg_jpair *pair;
        if (key->type == JV_DICT || (key->type == JV_LIST && key->u.list->flavor != JL_TUPLE))
            return true; /* unhashable: a TypeError that Jinja2 takes for "missing" */
        AEG_JTRY(aeg_jdict_find(r, obj->u.dict, key, &pair));
        if (pair != NULL)
            *out = pair->value;
        *found = pair != NULL;
        return true;
    }
    if (!aeg_jv_is_integer(key))
        return true;
    int64_t i = aeg_jv_as_int(key);
    if (obj->type == JV_LIST && obj->u.list->flavor <= JL_RANGE) {
        const aeg_jlist *l = obj->u.list;
        i += i < 0 ? (int64_t)l->n : 0;
        *found = i >= 0 && (uint64_t)i < l->n;
        if (*found)
            *out = l->items[i];
    } else if (obj->type == JV_STRING) {
        const char *s = obj->u.s.p;
        const size_t n = obj->u.s.n;
        if (i < 0)
            i += (int64_t)aeg_text_count(s, n);
        AEG_JTRY(aeg_jrun_step(r, n / 64));
        const size_t at = i < 0 ? n : aeg_text_offset(s, n, (size_t)i);
        *found = at < n;
        if (*found)
            *out = aeg_jv_text(s + at, aeg_text_offset(s + at, n - at, 1));
    }
    return true;
}

bool aeg_jin_getattr(aeg_jrun *r, const aeg_jval *obj, const char *name, size_t n, aeg_jval *out)
{
    bool found;
    const aeg_jval key = aeg_jv_text(name, n);
    if (obj->type == JV_UNDEFINED)
        return aeg_jrun_undefined(r, obj);
    AEG_JTRY(find_attribute(r, obj, name, n, out, &found));
    if (!found)
        AEG_JTRY(find_item(r, obj, &key, out, &found));
    if (!found)
        *out = missing(obj, name, n);
    return true;
}

bool aeg_jin_getitem(aeg_jrun *r, const aeg_jval *obj, const aeg_jval *key, aeg_jval *out)
{
    bool found;
    if (obj->type == JV_UNDEFINED)
        return aeg_jrun_undefined(r, obj);
    AEG_JTRY(find_item(r, obj, key, out, &found));
    if (!found && key->type == JV_STRING)
        AEG_JTRY(find_attribute(r, obj, key->u.s.p, key->u.s.n, out, &found));
    if (found)
        return true;
    static const char element[] = "there is no such element";
    *out = key->type == JV_STRING ? missing(obj, key->u.s.p, key->u.s.n)
                                  : aeg_jv_undefined(JU_HINT, element, sizeof element - 1);
    return true;
}

/* Python's slice arithmetic: the first index and how many follow in steps of `step`. */
static bool slice_range(aeg_jrun *r, const aeg_jval bounds[3], int64_t n, int64_t *first, int64_t *count,
                        int64_t *step, int64_t *stop)
{
    int64_t b[3];
    for (int i = 0; i < 3; i++) {
        if (bounds[i].type != JV_NONE && !aeg_jv_is_integer(&bounds[i]))
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "slice bounds must be integers or none, found '%s'",
                                 aeg_jv_type_name(&bounds[i]));
        b[i] = bounds[i].type == JV_NONE ? 0 : aeg_jv_as_int(&bounds[i]);
    }
    *step = bounds[2].type == JV_NONE ? 1 : b[2];
    if (*step == 0)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "slice step cannot be zero");
    const bool back = *step < 0;
    const int64_t low = back ? -1 : 0, high = back ? n - 1 : n;
    int64_t edge[2] = { back ? high : low, back ? low : high };
    for (int i = 0; i < 2; i++) {
        if (bounds[i].type == JV_NONE)
            continue;
        int64_t v = b[i];
        if (v < 0)
            v = v < -n ? low : v + n < low ? low : v + n;
        else if (v > high)
            v = high;
        edge[i] = v;
    }
    *first = edge[0];
    *stop = edge[1];
    if (back)
        *count = edge[0] > edge[1] ? (int64_t)(((uint64_t)(edge[0] - edge[1]) - 1) / (0 - (uint64_t)*step)) + 1 : 0;
    else
        *count = edge[1] > edge[0] ? (int64_t)(((uint64_t)(edge[1] - edge[0]) - 1) / (uint64_t)*step) + 1 : 0;
    return true;
}

static bool slice_string(aeg_jrun *r, const aeg_jval *obj, const aeg_jval bounds[3], aeg_jval *out)
{
    const char *s = obj->u.s.p;
    int64_t first, count, step, stop;
    AEG_JTRY(aeg_jrun_step(r, obj->u.s.n / 64));
    AEG_JTRY(slice_range(r, bounds, (int64_t)aeg_text_count(s, obj->u.s.n), &first, &count, &step, &stop));
    if (count == 0 || step == 1) {
        const size_t at = count == 0 ? 0 : aeg_text_offset(s, obj->u.s.n, (size_t)first);
        *out = aeg_jv_text(s + at, aeg_text_offset(s + at, obj->u.s.n - at, (size_t)count));
    } else {
        const aeg_jval *chars;
        size_t n, m = 0;
        char *text;
        AEG_JTRY(aeg_jin_iterate(r, obj, &chars, &n) && aeg_jrun_text(r, obj->u.s.n, &text));
        for (int64_t i = 0; i < count; i++) {
            const aeg_jval *c = &chars[first + i * step];
            memcpy(text + m, c->u.s.p, c->u.s.n);
            m += c->u.s.n;
        }
        *out = aeg_jv_text(text, m);
    }
    out->sub = obj->sub;
    return true;
}

bool aeg_jin_slice(aeg_jrun *r, const aeg_jval *obj, const aeg_jval bounds[3], aeg_jval *out)
{
    int64_t first, count, step, stop;
    if (obj->type == JV_UNDEFINED)
        return aeg_jrun_undefined(r, obj);
    if (obj->type == JV_STRING)
        return slice_string(r, obj, bounds, out);
    if (obj->type != JV_LIST || obj->u.list->flavor > JL_RANGE)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "a '%s' cannot be sliced", aeg_jv_type_name(obj));
    const aeg_jlist *from = obj->u.list;
    AEG_JTRY(slice_range(r, bounds, (int64_t)from->n, &first, &count, &step, &stop));
    aeg_jlist *l = aeg_jlist_new(r, from->flavor, (size_t)count);
    AEG_JTRY(l != NULL);
    for (int64_t i = 0; i < count; i++)
        l->items[i] = from->items[first + i * step];
    l->n = (size_t)count;
    if (from->flavor == JL_RANGE) {
        /* Only shown, never used: let them wrap. */
        l->start = (int64_t)((uint64_t)from->start + (uint64_t)first * (uint64_t)from->step);
        l->step = (int64_t)((uint64_t)from->step * (uint64_t)step);
        l->stop = (int64_t)((uint64_t)from->start + (uint64_t)stop * (uint64_t)from->step);
    }
    *out = aeg_jv_list(l);
    return aeg_jrun_step(r, (uint64_t)count / 8);
}

/* "a.b.0" as the filters' attribute= takes it; an integer is an index. */
bool aeg_jin_attribute_path(aeg_jrun *r, const aeg_jval *obj, const aeg_jval *path, aeg_jval *out)
{
    *out = *obj;
    if (path->type != JV_STRING)
        return path->type == JV_NONE || aeg_jin_getitem(r, obj, path, out);
    const char *s = path->u.s.p, *end = s + path->u.s.n;
    for (;;) {
        const char *dot = s < end ? memchr(s, '.', (size_t)(end - s)) : NULL;
        const size_t n = (size_t)((dot != NULL ? dot : end) - s);
        aeg_jval key = aeg_jv_text(s, n), object = *out;
        int64_t index = 0;
        bool digits = n > 0 && n < 18;
        for (size_t i = 0; digits && i < n; i++) {
            digits = s[i] >= '0' && s[i] <= '9';
            index = index * 10 + (s[i] - '0');
        }
        if (digits)
            key = aeg_jv_int(index);
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jin_getitem(r, &object, &key, out));
        if (dot == NULL)
            return true;
        s = dot + 1;
    }
}
