/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions. */
#include "text/jinja_eval.h"

#include <string.h>

#include "base/checked.h"

aeg_jscope *aeg_jscope_new(aeg_jrun *r, aeg_jscope *parent)
{
    aeg_jscope *s;
    if (!aeg_jrun_alloc(r, 1, sizeof *s, &s))
        return NULL;
    *s = (aeg_jscope){ .parent = parent };
    return s;
}

bool aeg_jscope_start(aeg_jrun *r, aeg_jscope *s, const aeg_jbody *body)
{
    s->n = 0;
    for (uint32_t i = 0; i < body->n_unset; i++) {
        const aeg_jsymbol *name = &r->t->symbols[body->unset[i]];
        AEG_JTRY(aeg_jscope_set(r, s, body->unset[i], aeg_jv_undefined(JU_NAME, name->p, name->n)));
    }
    return true;
}

aeg_jscope *aeg_jscope_for(aeg_jrun *r, aeg_jscope *parent, const aeg_jbody *body)
{
    aeg_jscope *s = aeg_jscope_new(r, parent);
    return s != NULL && aeg_jscope_start(r, s, body) ? s : NULL;
}

bool aeg_jscope_set(aeg_jrun *r, aeg_jscope *s, uint32_t sym, aeg_jval v)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->bindings[i].sym == sym) {
            s->bindings[i].value = v;
            return aeg_jrun_step(r, i / 8);
        }
    }
    if (s->n == s->cap) {
        const uint32_t cap = s->cap == 0 ? 4 : s->cap * 2;
        aeg_jbinding *b;
        AEG_JTRY(aeg_jrun_alloc(r, cap, sizeof *b, &b));
        if (s->n > 0)
            memcpy(b, s->bindings, s->n * sizeof *b);
        s->bindings = b;
        s->cap = cap;
    }
    s->bindings[s->n++] = (aeg_jbinding){ sym, v };
    return aeg_jrun_step(r, s->n / 8);
}

/* The caller's variables hide the built-in functions, as Jinja2's context hides its globals. */
static bool lookup_global(aeg_jrun *r, uint32_t sym, aeg_jval *out)
{
    const aeg_jsymbol *name = &r->t->symbols[sym];
    const json_t *json = json_object_getn(r->variables, name->p, name->n);
    const aeg_jbuiltin *fn = json == NULL ? aeg_jin_find_function(name->p, name->n) : NULL;
    if (json != NULL)
        AEG_JTRY(aeg_jin_from_json(r, json, out));
    else if (fn != NULL)
        *out = (aeg_jval){ .type = JV_FUNCTION, .u.builtin = fn };
    else
        *out = aeg_jv_undefined(JU_NAME, name->p, name->n);
    r->globals[sym] = *out;
    return true;
}

bool aeg_jscope_lookup(aeg_jrun *r, const aeg_jscope *s, uint32_t sym, aeg_jval *out)
{
    for (; s != NULL; s = s->parent) {
        for (uint32_t i = 0; i < s->n; i++) {
            if (s->bindings[i].sym == sym) {
                *out = s->bindings[i].value;
                return true;
            }
        }
        AEG_JTRY(aeg_jrun_step(r, s->n / 8));
    }
    *out = r->globals[sym];
    return out->type != JV_UNSET || lookup_global(r, sym, out);
}

static bool eval_list(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    aeg_jlist *l = aeg_jlist_new(r, node->kind == JN_TUPLE ? JL_TUPLE : JL_LIST, node->n);
    AEG_JTRY(l != NULL);
    for (uint32_t i = 0; i < node->n; i++)
        AEG_JTRY(aeg_jin_eval(r, s, node->list[i], &l->items[i]));
    l->n = node->n;
    *out = aeg_jv_list(l);
    return true;
}

static bool eval_dict(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    aeg_jdict *d = aeg_jdict_new(r);
    AEG_JTRY(d != NULL);
    for (uint32_t i = 0; i + 1 < node->n; i += 2) {
        aeg_jval key, value;
        AEG_JTRY(aeg_jin_eval(r, s, node->list[i], &key) && aeg_jin_eval(r, s, node->list[i + 1], &value));
        AEG_JTRY(aeg_jdict_set(r, d, key, value));
    }
    *out = (aeg_jval){ .type = JV_DICT, .u.dict = d };
    return true;
}

enum { FEW_ARGS = 6 };

/* The arguments of a call, filter or test, with `caller` (or NULL) as one more keyword. */
static bool eval_args(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, const aeg_jval *caller,
                      aeg_jval few[FEW_ARGS], aeg_jcall *call)
{
    const uint32_t n = node->n + node->n_kw;
    aeg_jval *values = few;
    const char *const *names = node->names;
    if (n + 1 > FEW_ARGS)
        AEG_JTRY(aeg_jrun_alloc(r, n + 1, sizeof *values, &values));
    for (uint32_t i = 0; i < n; i++)
        AEG_JTRY(aeg_jin_eval(r, s, node->list[i], &values[i]));
    *call = (aeg_jcall){ .args = values, .n_args = node->n, .kwargs = values + node->n, .names = names,
                         .n_kwargs = node->n_kw };
    if (caller == NULL)
        return true;
    const char **with_caller;
    AEG_JTRY(aeg_jrun_alloc(r, node->n_kw + 1, sizeof *with_caller, &with_caller));
    if (node->n_kw > 0)
        memcpy(with_caller, names, node->n_kw * sizeof *names);
    with_caller[node->n_kw] = "caller";
    values[n] = *caller;
    call->names = with_caller;
    call->n_kwargs++;
    return true;
}

bool aeg_jin_eval_call(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, const aeg_jval *caller, aeg_jval *out)
{
    aeg_jval few[FEW_ARGS], callee;
    aeg_jcall call;
    AEG_JTRY(aeg_jin_eval(r, s, node->a, &callee) && eval_args(r, s, node, caller, few, &call));
    r->line = node->line;
    return aeg_jin_call(r, &callee, &call, out);
}

bool aeg_jin_eval_filters(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, const aeg_jval *base, aeg_jval *out)
{
    aeg_jval few[FEW_ARGS], value;
    aeg_jcall call;
    AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jrun_enter(r));
    bool ok;
    if (node->a == NULL) {
        value = *base;
        ok = true;
    } else if (base != NULL) {
        ok = aeg_jin_eval_filters(r, s, node->a, base, &value);
    } else {
        ok = aeg_jin_eval(r, s, node->a, &value);
    }
    ok = ok && eval_args(r, s, node, NULL, few, &call);
    r->line = node->line;
    call.what = node->builtin->name;
    ok = ok && node->builtin->fn(r, &value, &call, out);
    r->depth--;
    return ok;
}

static bool eval_test(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    aeg_jval few[FEW_ARGS], value;
    aeg_jcall call;
    AEG_JTRY(aeg_jin_eval(r, s, node->a, &value) && eval_args(r, s, node, NULL, few, &call));
    r->line = node->line;
    call.what = node->builtin->name;
    return node->builtin->fn(r, &value, &call, out);
}

/* a + b + c ... leans left: walk down its spine instead of recursing, so that its length costs no
 * depth, then fold upwards. */
static bool eval_binary(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    const aeg_jnode *few[16];
    const aeg_jnode **spine = few;
    uint32_t n = 0;
    for (const aeg_jnode *at = node; at->kind == JN_BINARY; at = at->a)
        n++;
    if (n > AEG_ARRAY_LEN(few))
        AEG_JTRY(aeg_jrun_alloc(r, n, sizeof *spine, &spine));
    uint32_t i = n;
    for (const aeg_jnode *at = node; at->kind == JN_BINARY; at = at->a)
        spine[--i] = at;

    aeg_jval left, right;
    AEG_JTRY(aeg_jin_eval(r, s, spine[0]->a, &left));
    for (i = 0; i < n; i++) {
        AEG_JTRY(aeg_jrun_step(r, 1) && aeg_jin_eval(r, s, spine[i]->b, &right));
        r->line = spine[i]->line;
        AEG_JTRY(aeg_jin_binary(r, spine[i]->op, &left, &right, out));
        left = *out;
    }
    return true;
}

static bool eval_compare(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    aeg_jval left, right;
    bool holds = true;
    AEG_JTRY(aeg_jin_eval(r, s, node->a, &left));
    for (uint32_t i = 0; holds && i < node->n; i++) {
        AEG_JTRY(aeg_jin_eval(r, s, node->list[i], &right));
        r->line = node->line;
        AEG_JTRY(aeg_jin_compare(r, node->ops[i], &left, &right, &holds));
        left = right;
    }
    *out = aeg_jv_bool(holds);
    return true;
}

static bool eval_logic(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    for (uint32_t i = 0; i < node->n; i++) {
        AEG_JTRY(aeg_jin_eval(r, s, node->list[i], out));
        if (aeg_jv_truth(out) == (node->kind == JN_OR))
            break;
    }
    return true;
}

static bool eval_concat(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    const size_t mark = aeg_jrun_capture_begin(r);
    for (uint32_t i = 0; i < node->n; i++) {
        aeg_jval part;
        if (!aeg_jin_eval(r, s, node->list[i], &part) || !aeg_jin_write_str(r, &part)) {
            aeg_jrun_capture_drop(r, mark);
            return false;
        }
    }
    return aeg_jrun_capture_end(r, mark, out);
}

static bool eval_cond(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    static const char hint[] = "the inline if was false and had no else";
    aeg_jval condition;
    AEG_JTRY(aeg_jin_eval(r, s, node->b, &condition));
    if (aeg_jv_truth(&condition))
        return aeg_jin_eval(r, s, node->a, out);
    if (node->c != NULL)
        return aeg_jin_eval(r, s, node->c, out);
    *out = aeg_jv_undefined(JU_HINT, hint, sizeof hint - 1);
    return true;
}

static bool eval_slice(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    aeg_jval object, bounds[3];
    AEG_JTRY(aeg_jin_eval(r, s, node->a, &object));
    for (int i = 0; i < 3; i++) {
        bounds[i] = aeg_jv_none();
        AEG_JTRY(node->list[i] == NULL || aeg_jin_eval(r, s, node->list[i], &bounds[i]));
    }
    r->line = node->line;
    return aeg_jin_slice(r, &object, bounds, out);
}

static bool eval_access(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    aeg_jval object, key;
    AEG_JTRY(aeg_jin_eval(r, s, node->a, &object));
    if (node->kind == JN_GETATTR) {
        const aeg_jsymbol *name = &r->t->symbols[node->sym];
        r->line = node->line;
        return aeg_jin_getattr(r, &object, name->p, name->n, out);
    }
    AEG_JTRY(aeg_jin_eval(r, s, node->b, &key));
    r->line = node->line;
    return aeg_jin_getitem(r, &object, &key, out);
}

static bool eval_unary(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    aeg_jval value;
    AEG_JTRY(aeg_jin_eval(r, s, node->a, &value));
    if (node->kind == JN_UNARY)
        return aeg_jin_unary(r, node->op, &value, out);
    *out = aeg_jv_bool(aeg_jv_truth(&value) != (node->op != 0));
    return true;
}

static bool eval_kind(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    switch ((aeg_jkind)node->kind) {
    case JN_LIST:
    case JN_TUPLE: return eval_list(r, s, node, out);
    case JN_DICT: return eval_dict(r, s, node, out);
    case JN_GETATTR:
    case JN_GETITEM: return eval_access(r, s, node, out);
    case JN_SLICE: return eval_slice(r, s, node, out);
    case JN_CALL: return aeg_jin_eval_call(r, s, node, NULL, out);
    case JN_FILTER: return aeg_jin_eval_filters(r, s, node, NULL, out);
    case JN_TEST: return eval_test(r, s, node, out);
    case JN_UNARY:
    case JN_NOT: return eval_unary(r, s, node, out);
    case JN_BINARY: return eval_binary(r, s, node, out);
    case JN_CONCAT: return eval_concat(r, s, node, out);
    case JN_AND:
    case JN_OR: return eval_logic(r, s, node, out);
    case JN_COMPARE: return eval_compare(r, s, node, out);
    case JN_COND: return eval_cond(r, s, node, out);
    default: return aeg_jrun_fail(r, AEGIS_E_RUNTIME, "a statement where a value was expected");
    }
}

bool aeg_jin_eval(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out)
{
    r->line = node->line;
    AEG_JTRY(aeg_jrun_step(r, 1));
    if (node->kind == JN_CONST) {
        *out = node->value;
        return true;
    }
    if (node->kind == JN_NAME)
        return aeg_jscope_lookup(r, s, node->sym, out);
    AEG_JTRY(aeg_jrun_enter(r));
    const bool ok = eval_kind(r, s, node, out);
    r->depth--;
    return ok;
}
