/* SPDX-License-Identifier: Apache-2.0 */
/* Statements. */
#include "text/jinja_eval.h"

static bool assign(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *target, aeg_jval value)
{
    if (target->kind == JN_NAME)
        return aeg_jscope_set(r, s, target->sym, value);
    if (target->kind == JN_NSREF) {
        aeg_jval ns;
        AEG_JTRY(aeg_jin_eval(r, s, target->a, &ns));
        if (ns.type != JV_NAMESPACE)
            return aeg_jrun_fail(r, AEGIS_E_USAGE, "cannot assign an attribute of a '%s', only of a namespace",
                                 aeg_jv_type_name(&ns));
        const aeg_jsymbol *name = &r->t->symbols[target->sym];
        return aeg_jdict_set(r, ns.u.dict, aeg_jv_text(name->p, name->n), value);
    }
    const aeg_jval *items;
    size_t n;
    AEG_JTRY(aeg_jin_iterate(r, &value, &items, &n));
    if (n != target->n)
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "%s values to unpack: %zu, expected %u",
                             n < target->n ? "not enough" : "too many", n, target->n);
    AEG_JTRY(aeg_jrun_enter(r));
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = assign(r, s, target->list[i], items[i]);
    r->depth--;
    return ok;
}

/* The items for which the loop's own `if` holds. */
static bool filter_items(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, const aeg_jval **items, size_t *n)
{
    aeg_jscope *inner = aeg_jscope_new(r, s);
    aeg_jlist *kept = aeg_jlist_new(r, JL_LIST, 0);
    AEG_JTRY(inner != NULL && kept != NULL);
    for (size_t i = 0; i < *n; i++) {
        aeg_jval holds;
        AEG_JTRY(assign(r, inner, node->a, (*items)[i]) && aeg_jin_eval(r, inner, node->c, &holds));
        if (aeg_jv_truth(&holds))
            AEG_JTRY(aeg_jlist_push(r, kept, (*items)[i]));
    }
    *items = kept->items;
    *n = kept->n;
    return true;
}

/* *finished: some iteration reached the end of the body. */
static aeg_jexit run_loop(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, struct aeg_jloop *loop, bool *finished)
{
    aeg_jscope *inner = aeg_jscope_new(r, s);
    for (; inner != NULL && loop->index0 < loop->n; loop->index0++) {
        /* Each iteration starts without the names set by the one before. */
        if (inner->captured)
            inner = aeg_jscope_new(r, s);
        if (inner == NULL)
            break;
        if (!aeg_jrun_step(r, 1) || !aeg_jscope_start(r, inner, &node->body) ||
            !aeg_jscope_set(r, inner, 0 /* AEG_JSYM_LOOP */, (aeg_jval){ .type = JV_LOOP, .u.loop = loop }) ||
            !assign(r, inner, node->a, loop->items[loop->index0]))
            return JX_FAIL;
        const aeg_jexit exit = aeg_jin_exec(r, inner, &node->body);
        if (exit == JX_FAIL || exit == JX_BREAK)
            return exit == JX_FAIL ? JX_FAIL : JX_NEXT;
        *finished |= exit == JX_NEXT;
    }
    return inner == NULL ? JX_FAIL : JX_NEXT;
}

static aeg_jexit exec_for(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node)
{
    aeg_jval iterable;
    struct aeg_jloop *loop;
    const aeg_jval *items;
    size_t n;
    if (!aeg_jin_eval(r, s, node->b, &iterable) || !aeg_jin_iterate(r, &iterable, &items, &n) ||
        (node->c != NULL && !filter_items(r, s, node, &items, &n)))
        return JX_FAIL;
    bool finished = false;
    if (n > 0) {
        if (!aeg_jrun_alloc(r, 1, sizeof *loop, &loop))
            return JX_FAIL;
        *loop = (struct aeg_jloop){ .items = items, .n = n };
        if (run_loop(r, s, node, loop, &finished) == JX_FAIL)
            return JX_FAIL;
    }
    /* Jinja2's own quirk: `else` also runs when every iteration left by continue or break. */
    if (finished || node->other.n == 0)
        return JX_NEXT;
    aeg_jscope *inner = aeg_jscope_for(r, s, &node->other);
    return inner == NULL ? JX_FAIL : aeg_jin_exec(r, inner, &node->other);
}

static aeg_jexit exec_if(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node)
{
    for (uint32_t i = 0; i < node->n; i++) {
        aeg_jval condition;
        if (!aeg_jin_eval(r, s, node->list[i], &condition))
            return JX_FAIL;
        if (aeg_jv_truth(&condition))
            return aeg_jin_exec(r, s, &node->bodies[i]);
    }
    return aeg_jin_exec(r, s, &node->other);
}

/* What a body prints, as a string; it has a scope of its own. */
static bool capture_body(aeg_jrun *r, aeg_jscope *s, const aeg_jbody *body, aeg_jval *out)
{
    aeg_jscope *inner = aeg_jscope_for(r, s, body);
    const size_t mark = aeg_jrun_capture_begin(r);
    if (inner == NULL || aeg_jin_exec(r, inner, body) == JX_FAIL) {
        aeg_jrun_capture_drop(r, mark);
        return false;
    }
    return aeg_jrun_capture_end(r, mark, out);
}

static bool exec_set_block(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node)
{
    aeg_jval text;
    AEG_JTRY(capture_body(r, s, &node->body, &text));
    if (node->b != NULL) {
        aeg_jval filtered;
        AEG_JTRY(aeg_jin_eval_filters(r, s, node->b, &text, &filtered));
        text = filtered;
    }
    return assign(r, s, node->a, text);
}

static bool exec_filter_block(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node)
{
    aeg_jval text, filtered;
    return capture_body(r, s, &node->body, &text) && aeg_jin_eval_filters(r, s, node->a, &text, &filtered) &&
           aeg_jin_write_str(r, &filtered);
}

static aeg_jexit exec_with(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node)
{
    aeg_jscope *inner = aeg_jscope_for(r, s, &node->body);
    if (inner == NULL)
        return JX_FAIL;
    for (uint32_t i = 0; i + 1 < node->n; i += 2) {
        aeg_jval value; /* in the outer scope: the names do not see each other */
        if (!aeg_jin_eval(r, s, node->list[i + 1], &value) || !assign(r, inner, node->list[i], value))
            return JX_FAIL;
    }
    return aeg_jin_exec(r, inner, &node->body);
}

static bool make_macro(aeg_jrun *r, aeg_jscope *s, const aeg_jmacro_def *def, aeg_jval *out)
{
    struct aeg_jmacro *m;
    AEG_JTRY(aeg_jrun_alloc(r, 1, sizeof *m, &m));
    *m = (struct aeg_jmacro){ .def = def, .scope = s,
                              .name = def->name == UINT32_MAX ? "caller" : r->t->symbols[def->name].p };
    for (; s != NULL; s = s->parent)
        s->captured = true;
    *out = (aeg_jval){ .type = JV_MACRO, .u.macro = m };
    return true;
}

static bool exec_call_block(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node)
{
    aeg_jval caller, result;
    return make_macro(r, s, node->macro, &caller) && aeg_jin_eval_call(r, s, node->a, &caller, &result) &&
           aeg_jin_write_str(r, &result);
}

static aeg_jexit exec_node(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node)
{
    aeg_jval v;
    bool ok = true;
    aeg_jscope *inner;
    switch ((aeg_jkind)node->kind) {
    case JN_TEXT: ok = aeg_jrun_write(r, node->value.u.s.p, node->value.u.s.n); break;
    case JN_OUTPUT: ok = aeg_jin_eval(r, s, node->a, &v) && aeg_jin_write_str(r, &v); break;
    case JN_FOR: return exec_for(r, s, node);
    case JN_IF: return exec_if(r, s, node);
    case JN_SET: ok = aeg_jin_eval(r, s, node->b, &v) && assign(r, s, node->a, v); break;
    case JN_SETBLOCK: ok = exec_set_block(r, s, node); break;
    case JN_WITH: return exec_with(r, s, node);
    case JN_MACRO:
        ok = make_macro(r, s, node->macro, &v) && aeg_jscope_set(r, s, node->macro->name, v);
        break;
    case JN_CALLBLOCK: ok = exec_call_block(r, s, node); break;
    case JN_FILTERBLOCK: ok = exec_filter_block(r, s, node); break;
    case JN_SCOPE:
        inner = aeg_jscope_for(r, s, &node->body);
        return inner == NULL ? JX_FAIL : aeg_jin_exec(r, inner, &node->body);
    case JN_BREAK: return JX_BREAK;
    case JN_CONTINUE: return JX_CONTINUE;
    default: ok = aeg_jrun_fail(r, AEGIS_E_RUNTIME, "a value where a statement was expected"); break;
    }
    return ok ? JX_NEXT : JX_FAIL;
}

aeg_jexit aeg_jin_exec(aeg_jrun *r, aeg_jscope *s, const aeg_jbody *body)
{
    if (!aeg_jrun_enter(r))
        return JX_FAIL;
    aeg_jexit exit = JX_NEXT;
    for (uint32_t i = 0; exit == JX_NEXT && i < body->n; i++) {
        r->line = body->items[i]->line;
        exit = aeg_jrun_step(r, 1) ? exec_node(r, s, body->items[i]) : JX_FAIL;
    }
    r->depth--;
    return exit;
}
