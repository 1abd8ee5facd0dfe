/* SPDX-License-Identifier: Apache-2.0 */
/* map, select and their kind: filters that take a filter, a test or an attribute. */
#include <string.h>

#include "text/jinja_filters.h"

/* The call without its first `n` arguments. */
static aeg_jcall without(const aeg_jcall *c, uint32_t n, const char *what)
{
    aeg_jcall rest = *c;
    rest.args += n;
    rest.n_args -= n;
    rest.what = what;
    return rest;
}

/* What is false has no items here, whatever it is (also none and 0), and its arguments do not matter. */
static bool nothing(aeg_jrun *r, aeg_jval *out)
{
    aeg_jlist *l = aeg_jlist_new(r, JL_GENERATOR, 0);
    AEG_JTRY(l != NULL);
    *out = aeg_jv_list(l);
    return true;
}

static bool map_attribute(aeg_jrun *r, const aeg_jcall *c, const aeg_jval *item, aeg_jval *out)
{
    static const char *const names[] = { "attribute", "default", NULL };
    aeg_jval a[2];
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, a) && aeg_jin_attribute_path(r, item, &a[0], out));
    if (out->type == JV_UNDEFINED && a[1].type != JV_UNSET && a[1].type != JV_NONE)
        *out = a[1];
    return true;
}

static bool f_map(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    const aeg_jbuiltin *filter = NULL;
    const aeg_jval *items;
    const char *name;
    size_t n;
    if (!aeg_jv_truth(v))
        return nothing(r, out);
    if (c->n_args == 0 && c->n_kwargs == 0)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "map() needs the name of a filter, or attribute=");
    if (c->n_args > 0) {
        AEG_JTRY(aeg_jin_want_string(r, c, &c->args[0], &name, &n));
        filter = aeg_jin_find_filter(name, n);
        if (filter == NULL)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "map(): the filter '%.*s' is not supported", (int)n, name);
    }
    const aeg_jcall call = filter == NULL ? *c : without(c, 1, filter->name);
    AEG_JTRY(aeg_jin_iterate(r, v, &items, &n));
    aeg_jlist *l = aeg_jlist_new(r, JL_GENERATOR, n);
    AEG_JTRY(l != NULL && aeg_jrun_enter(r));
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++, l->n++)
        ok = aeg_jrun_step(r, 1) && (filter == NULL ? map_attribute(r, &call, &items[i], &l->items[i])
                                                    : filter->fn(r, &items[i], &call, &l->items[i]));
    r->depth--;
    *out = aeg_jv_list(l);
    return ok;
}

/* Keep the items (or those whose attribute) for which the test says `wanted`; no test: truth. */
static bool filter_by(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, bool by_attribute, bool wanted,
                      aeg_jval *out)
{
    const uint32_t skip = by_attribute ? 1 : 0;
    const aeg_jbuiltin *test = NULL;
    const aeg_jval *items;
    const char *name;
    size_t n;
    if (!aeg_jv_truth(v))
        return nothing(r, out);
    if (c->n_args < skip)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s() needs the name of an attribute", c->what);
    if (c->n_args > skip) {
        AEG_JTRY(aeg_jin_want_string(r, c, &c->args[skip], &name, &n));
        test = aeg_jin_find_test(name, n);
        if (test == NULL)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s(): the test '%.*s' is not supported", c->what, (int)n, name);
    }
    const aeg_jcall call = test == NULL ? *c : without(c, skip + 1, test->name);
    AEG_JTRY(aeg_jin_iterate(r, v, &items, &n));
    aeg_jlist *l = aeg_jlist_new(r, JL_GENERATOR, 0);
    AEG_JTRY(l != NULL);
    for (size_t i = 0; i < n; i++) {
        aeg_jval value = items[i], verdict;
        AEG_JTRY(aeg_jrun_step(r, 1));
        AEG_JTRY(!by_attribute || aeg_jin_attribute_path(r, &items[i], &c->args[0], &value));
        verdict = value;
        AEG_JTRY(test == NULL || test->fn(r, &value, &call, &verdict));
        if (aeg_jv_truth(&verdict) == wanted)
            AEG_JTRY(aeg_jlist_push(r, l, items[i]));
    }
    *out = aeg_jv_list(l);
    return true;
}

static bool f_select(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return filter_by(r, v, c, false, true, out);
}

static bool f_reject(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return filter_by(r, v, c, false, false, out);
}

static bool f_selectattr(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return filter_by(r, v, c, true, true, out);
}

static bool f_rejectattr(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    return filter_by(r, v, c, true, false, out);
}

const aeg_jbuiltin aeg_jf_select_table[] = {
    { "map", f_map }, { "select", f_select }, { "reject", f_reject }, { "selectattr", f_selectattr },
    { "rejectattr", f_rejectattr }, { NULL, NULL },
};
