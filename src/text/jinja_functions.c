/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that every template can call. */
#include <stdio.h>
#include <string.h>

#include "text/jinja_filters.h"

enum { MAX_RANGE = 100000 }; /* as Jinja2's sandbox */

static bool fn_range(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    int64_t a[3] = { 0, 0, 1 };
    (void)v;
    if (c->n_args < 1 || c->n_args > 3 || c->n_kwargs > 0)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "range() takes 1 to 3 integers");
    for (uint32_t i = 0; i < c->n_args; i++)
        AEG_JTRY(aeg_jin_want_int(r, c, &c->args[i], &a[i]));
    if (c->n_args == 1) {
        a[1] = a[0];
        a[0] = 0;
    }
    if (a[2] == 0)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "range(): the step must not be zero");
    uint64_t n = 0;
    if (a[2] > 0 && a[1] > a[0])
        n = ((uint64_t)a[1] - (uint64_t)a[0] - 1) / (uint64_t)a[2] + 1;
    else if (a[2] < 0 && a[1] < a[0])
        n = ((uint64_t)a[0] - (uint64_t)a[1] - 1) / (0 - (uint64_t)a[2]) + 1;
    if (n > MAX_RANGE)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "range(): %llu items, at most %d are allowed", (unsigned long long)n,
                             MAX_RANGE);
    aeg_jlist *l = aeg_jlist_new(r, JL_RANGE, n);
    AEG_JTRY(l != NULL && aeg_jrun_step(r, n / 8));
    l->start = a[0];
    l->stop = a[1];
    l->step = a[2];
    for (; l->n < n; l->n++)
        l->items[l->n] = aeg_jv_int((int64_t)((uint64_t)a[0] + l->n * (uint64_t)a[2]));
    *out = aeg_jv_list(l);
    return true;
}

static bool fn_raise(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "message", NULL };
    aeg_jval message;
    (void)v;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, &message) && aeg_jin_str(r, &message, out));
    if (out->u.s.n == 0 || out->u.s.p[0] == '\0') /* an error always has a sentence */
        *out = aeg_jv_cstr("the chat template refused the conversation");
    if (r->status == AEGIS_OK) /* the template's own words, with nothing added */
        r->status = aeg_fail(r->err, AEGIS_E_USAGE, "%.*s", (int)(out->u.s.n > 900 ? 900 : out->u.s.n), out->u.s.p);
    return false;
}

static bool fn_strftime_now(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "format", NULL };
    aeg_jval a;
    const char *p;
    size_t n;
    char format[256], text[1024];
    struct tm tm;
    (void)v;
    AEG_JTRY(aeg_jin_bind(r, c, names, 1, &a) && aeg_jin_want_string(r, c, &a, &p, &n));
    if (n >= sizeof format - 1 || memchr(p, '\0', n) != NULL)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "strftime_now(): a format of %zu bytes, at most 254 are allowed", n);
    /* A final mark tells an empty result from one that did not fit. */
    snprintf(format, sizeof format, "%.*s.", (int)n, p);
    if (localtime_r(&r->limits.now, &tm) == NULL)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "strftime_now(): the time is out of range");
    const size_t m = strftime(text, sizeof text, format, &tm);
    if (m == 0)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "strftime_now(): the result is longer than %zu bytes", sizeof text - 2);
    char *copy;
    AEG_JTRY(aeg_jrun_text(r, m - 1, &copy));
    memcpy(copy, text, m - 1);
    *out = aeg_jv_text(copy, m - 1);
    return true;
}

/* dict(mapping or pairs, name=value, ...) */
static bool make_dict(aeg_jrun *r, const aeg_jcall *c, aeg_jtype type, aeg_jval *out)
{
    aeg_jdict *d = aeg_jdict_new(r);
    AEG_JTRY(d != NULL);
    if (c->n_args > 1)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s() takes one mapping and keywords", c->what);
    if (c->n_args == 1 && c->args[0].type == JV_UNDEFINED)
        return aeg_jrun_undefined(r, &c->args[0]);
    if (c->n_args == 1 && c->args[0].type == JV_DICT) {
        const aeg_jdict *from = c->args[0].u.dict;
        for (size_t i = 0; i < from->n; i++)
            if (!from->pairs[i].dead)
                AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jdict_set(r, d, from->pairs[i].key, from->pairs[i].value));
    } else if (c->n_args == 1) {
        const aeg_jval *items, *pair;
        size_t n, two;
        AEG_JTRY(aeg_jin_iterate(r, &c->args[0], &items, &n));
        for (size_t i = 0; i < n; i++) {
            AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jin_iterate(r, &items[i], &pair, &two));
            if (two != 2)
                return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s(): item %zu has %zu values, expected 2", c->what, i, two);
            AEG_JTRY(aeg_jdict_set(r, d, pair[0], pair[1]));
        }
    }
    for (uint32_t k = 0; k < c->n_kwargs; k++)
        AEG_JTRY(aeg_jdict_set(r, d, aeg_jv_cstr(c->names[k]), c->kwargs[k]));
    *out = (aeg_jval){ .type = (uint8_t)type, .u.dict = d };
    return true;
}

static bool fn_dict(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    (void)v;
    return make_dict(r, c, JV_DICT, out);
}

static bool fn_namespace(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    (void)v;
    return make_dict(r, c, JV_NAMESPACE, out);
}

static bool make_cycle(aeg_jrun *r, const aeg_jval *items, size_t n, aeg_jtype type, aeg_jval *out)
{
    struct aeg_jcycle *cycle;
    aeg_jval *copy;
    AEG_JTRY(aeg_jrun_alloc(r, 1, sizeof *cycle, &cycle) && aeg_jrun_alloc(r, n, sizeof *copy, &copy));
    memcpy(copy, items, n * sizeof *copy);
    *cycle = (struct aeg_jcycle){ .items = copy, .n = n };
    *out = (aeg_jval){ .type = (uint8_t)type, .u.cycle = cycle };
    return true;
}

static bool fn_cycler(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    (void)v;
    if (c->n_args == 0 || c->n_kwargs > 0)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "cycler() needs at least one item");
    return make_cycle(r, c->args, c->n_args, JV_CYCLER, out);
}

static bool fn_joiner(aeg_jrun *r, const aeg_jval *v, const aeg_jcall *c, aeg_jval *out)
{
    static const char *const names[] = { "sep", NULL };
    aeg_jval sep;
    (void)v;
    AEG_JTRY(aeg_jin_bind(r, c, names, 0, &sep));
    if (sep.type == JV_UNSET)
        sep = aeg_jv_text(", ", 2);
    return make_cycle(r, &sep, 1, JV_JOINER, out);
}

const aeg_jbuiltin *aeg_jin_find_function(const char *name, size_t n)
{
    static const aeg_jbuiltin table[] = {
        { "range", fn_range }, { "raise_exception", fn_raise }, { "strftime_now", fn_strftime_now },
        { "namespace", fn_namespace }, { "dict", fn_dict }, { "cycler", fn_cycler }, { "joiner", fn_joiner },
        { NULL, NULL },
    };
    return aeg_jin_lookup(table, name, n);
}
