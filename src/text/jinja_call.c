/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: binding arguments, macros, and values from JSON. */
#include <string.h>

#include "text/jinja_eval.h"
#include "text/jinja_parse.h"

bool aeg_jin_bind(aeg_jrun *r, const aeg_jcall *call, const char *const *names, uint32_t n_required,
                  aeg_jval *slots)
{
    uint32_t n_slots = 0;
    while (names[n_slots] != NULL)
        n_slots++;
    if (call->n_args > n_slots)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s() takes at most %u arguments, found %u", call->what, n_slots,
                             call->n_args);
    for (uint32_t i = 0; i < n_slots; i++)
        slots[i] = i < call->n_args ? call->args[i] : (aeg_jval){ .type = JV_UNSET };
    for (uint32_t k = 0; k < call->n_kwargs; k++) {
        uint32_t i = 0;
        while (i < n_slots && strcmp(names[i], call->names[k]) != 0)
            i++;
        if (i == n_slots)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s() has no argument '%s'", call->what, call->names[k]);
        if (slots[i].type != JV_UNSET)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s() got its argument '%s' twice", call->what, names[i]);
        slots[i] = call->kwargs[k];
    }
    for (uint32_t i = 0; i < n_required; i++)
        if (slots[i].type == JV_UNSET)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s() lacks its argument '%s'", call->what, names[i]);
    return true;
}

bool aeg_jin_want_string(aeg_jrun *r, const aeg_jcall *c, const aeg_jval *v, const char **p, size_t *n)
{
    if (v->type != JV_STRING)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s() got a '%s', expected a string", c->what, aeg_jv_type_name(v));
    *p = v->u.s.p;
    *n = v->u.s.n;
    return true;
}

bool aeg_jin_want_int(aeg_jrun *r, const aeg_jcall *c, const aeg_jval *v, int64_t *out)
{
    if (!aeg_jv_is_integer(v))
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s() got a '%s', expected an integer", c->what,
                             aeg_jv_type_name(v));
    *out = aeg_jv_as_int(v);
    return true;
}

/* The keyword argument `name`, or -1. */
static int find_keyword(const aeg_jcall *call, const char *name)
{
    for (uint32_t k = 0; k < call->n_kwargs; k++)
        if (strcmp(call->names[k], name) == 0)
            return (int)k;
    return -1;
}

/* varargs and kwargs of a macro that uses them; otherwise there must be nothing left over. */
static bool bind_rest(aeg_jrun *r, const struct aeg_jmacro *m, const aeg_jcall *call, aeg_jscope *s,
                      const bool *used)
{
    const aeg_jmacro_def *def = m->def;
    if (call->n_args > def->n_params && !def->uses_varargs)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "macro '%s' takes at most %u arguments, found %u", m->name,
                             def->n_params, call->n_args);
    if (def->uses_varargs) {
        aeg_jlist *rest = aeg_jlist_new(r, JL_TUPLE, 0);
        AEG_JTRY(rest != NULL);
        for (uint32_t i = def->n_params; i < call->n_args; i++)
            AEG_JTRY(aeg_jlist_push(r, rest, call->args[i]));
        AEG_JTRY(aeg_jscope_set(r, s, AEG_JSYM_VARARGS, aeg_jv_list(rest)));
    }
    aeg_jdict *rest = aeg_jdict_new(r);
    AEG_JTRY(rest != NULL);
    for (uint32_t k = 0; k < call->n_kwargs; k++) {
        if (used[k])
            continue;
        if (!def->uses_kwargs)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "macro '%s' has no argument '%s'", m->name, call->names[k]);
        AEG_JTRY(aeg_jdict_set(r, rest, aeg_jv_cstr(call->names[k]), call->kwargs[k]));
    }
    return !def->uses_kwargs ||
           aeg_jscope_set(r, s, AEG_JSYM_KWARGS, (aeg_jval){ .type = JV_DICT, .u.dict = rest });
}

static bool bind_macro(aeg_jrun *r, const struct aeg_jmacro *m, const aeg_jcall *call, aeg_jscope *s)
{
    static const char no_caller[] = "no caller defined", no_value[] = "a parameter of the macro was not given";
    const aeg_jmacro_def *def = m->def;
    bool *used;
    bool explicit_caller = false;
    AEG_JTRY(aeg_jrun_alloc(r, call->n_kwargs + 1, sizeof *used, &used));
    memset(used, 0, call->n_kwargs + 1);

    for (uint32_t i = 0; i < def->n_params; i++) {
        aeg_jval v = aeg_jv_undefined(JU_HINT, no_value, sizeof no_value - 1);
        const int k = i < call->n_args ? -1 : find_keyword(call, r->t->symbols[def->params[i]].p);
        const uint32_t first_default = def->n_params - def->n_defaults;
        if (i < call->n_args)
            v = call->args[i];
        else if (k >= 0)
            v = call->kwargs[k];
        else if (i >= first_default)
            AEG_JTRY(aeg_jin_eval(r, s, def->defaults[i - first_default], &v));
        if (k >= 0)
            used[k] = true;
        explicit_caller |= def->params[i] == AEG_JSYM_CALLER;
        AEG_JTRY(aeg_jscope_set(r, s, def->params[i], v));
    }
    if (def->uses_caller && !explicit_caller) {
        const int k = find_keyword(call, "caller");
        if (k >= 0)
            used[k] = true;
        AEG_JTRY(aeg_jscope_set(r, s, AEG_JSYM_CALLER,
                                k >= 0 ? call->kwargs[k]
                                       : aeg_jv_undefined(JU_HINT, no_caller, sizeof no_caller - 1)));
    }
    return bind_rest(r, m, call, s, used);
}

bool aeg_jin_call_macro(aeg_jrun *r, const struct aeg_jmacro *m, const aeg_jcall *call, aeg_jval *out)
{
    aeg_jscope *s = aeg_jscope_for(r, m->scope, &m->def->body);
    AEG_JTRY(s != NULL && bind_macro(r, m, call, s));
    const size_t mark = aeg_jrun_capture_begin(r);
    if (aeg_jin_exec(r, s, &m->def->body) == JX_FAIL) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}

bool aeg_jin_call(aeg_jrun *r, const aeg_jval *callee, const aeg_jcall *call, aeg_jval *out)
{
    static const aeg_jval none = { .type = JV_NONE };
    aeg_jcall named = *call;
    switch ((aeg_jtype)callee->type) {
    case JV_FUNCTION:
        named.what = callee->u.builtin->name;
        return callee->u.builtin->fn(r, &none, &named, out);
    case JV_METHOD:
        named.what = callee->u.method->builtin->name;
        return callee->u.method->builtin->fn(r, &callee->u.method->self, &named, out);
    case JV_MACRO: return aeg_jin_call_macro(r, callee->u.macro, call, out);
    case JV_UNDEFINED: return aeg_jrun_undefined(r, callee);
    case JV_JOINER:
        *out = callee->u.cycle->pos++ == 0 ? aeg_jv_text("", 0) : callee->u.cycle->items[0];
        return true;
    default: return aeg_jrun_fail(r, AEGIS_E_USAGE, "a '%s' cannot be called", aeg_jv_type_name(callee));
    }
}

static bool dict_from_json(aeg_jrun *r, const json_t *json, aeg_jval *out)
{
    const char *key;
    size_t n;
    json_t *member;
    aeg_jdict *d = aeg_jdict_new(r);
    AEG_JTRY(d != NULL);
    json_object_keylen_foreach((json_t *)json, key, n, member) {
        aeg_jval v;
        AEG_JTRY(aeg_jin_from_json(r, member, &v) && aeg_jdict_set(r, d, aeg_jv_text(key, n), v));
    }
    *out = (aeg_jval){ .type = JV_DICT, .u.dict = d };
    return true;
}

static bool list_from_json(aeg_jrun *r, const json_t *json, aeg_jval *out)
{
    const size_t n = json_array_size(json);
    aeg_jlist *l = aeg_jlist_new(r, JL_LIST, n);
    AEG_JTRY(l != NULL);
    for (size_t i = 0; i < n; i++)
        AEG_JTRY(aeg_jin_from_json(r, json_array_get(json, i), &l->items[i]));
    l->n = n;
    *out = aeg_jv_list(l);
    return true;
}

/* Strings are borrowed: the caller's JSON outlives the render. */
bool aeg_jin_from_json(aeg_jrun *r, const json_t *json, aeg_jval *out)
{
    bool ok = true;
    AEG_JTRY(aeg_jrun_step(r, 1));
    switch (json_typeof(json)) {
    case JSON_NULL: *out = aeg_jv_none(); break;
    case JSON_TRUE: *out = aeg_jv_bool(true); break;
    case JSON_FALSE: *out = aeg_jv_bool(false); break;
    case JSON_INTEGER: *out = aeg_jv_int(json_integer_value(json)); break;
    case JSON_REAL: *out = aeg_jv_float(json_real_value(json)); break;
    case JSON_STRING: *out = aeg_jv_text(json_string_value(json), json_string_length(json)); break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        AEG_JTRY(aeg_jrun_enter(r));
        ok = json_is_array(json) ? list_from_json(r, json, out) : dict_from_json(r, json, out);
        r->depth--;
        break;
    }
    return ok;
}
