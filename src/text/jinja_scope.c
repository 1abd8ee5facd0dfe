/* SPDX-License-Identifier: Apache-2.0 */
/* Which names a scope starts without.
 *
 * Jinja2 decides at compile time where a name lives. A name that a scope sets before it reads it, and
 * that no outer scope knows, belongs to that scope from its start, so an inner loop or macro that reads
 * it earlier sees it undefined, even if the caller passed a variable of that name. A render looks names
 * up while it goes, so each body carries the list of names to start as undefined. The rules, `if` with
 * its three branches included, are those of Jinja2's symbol tracking. */
#include <string.h>

#include "text/jinja_parse.h"

typedef enum { SEEN, RESOLVE, UNSET } origin; /* SEEN: stored here, known from further out */

typedef struct {
    uint32_t sym; /* + 1; 0 = empty */
    uint8_t origin;
    bool stored;
} entry;

/* The names of a scope, or of one branch of an `if` in it (same_scope: the layer below is its scope). */
typedef struct layer {
    const struct layer *up;
    bool same_scope;
    entry *entries;
    uint32_t n, cap; /* cap: a power of two */
} layer;

static entry *slot(const layer *l, uint32_t sym)
{
    uint32_t at = (sym * 2654435761u) & (l->cap - 1);
    while (l->entries[at].sym != 0 && l->entries[at].sym != sym + 1)
        at = (at + 1) & (l->cap - 1);
    return &l->entries[at];
}

static const entry *find(const layer *l, uint32_t sym)
{
    const entry *e = l->cap == 0 ? NULL : slot(l, sym);
    return e != NULL && e->sym != 0 ? e : NULL;
}

static bool known_in_scope(const layer *l, uint32_t sym)
{
    for (; l != NULL; l = l->same_scope ? l->up : NULL)
        if (find(l, sym) != NULL)
            return true;
    return false;
}

static bool known(const layer *l, uint32_t sym)
{
    for (; l != NULL; l = l->up)
        if (find(l, sym) != NULL)
            return true;
    return false;
}

static const layer *outside(const layer *l)
{
    while (l->same_scope)
        l = l->up;
    return l->up;
}

static bool put(aeg_jparser *p, layer *l, uint32_t sym, origin o, bool stored)
{
    if (l->n * 2 >= l->cap) {
        layer grown = { .cap = l->cap == 0 ? 8 : l->cap * 2 };
        grown.entries = aeg_jparse_alloc(p, grown.cap, sizeof *grown.entries);
        if (grown.entries == NULL)
            return false;
        for (uint32_t i = 0; i < l->cap; i++)
            if (l->entries[i].sym != 0)
                *slot(&grown, l->entries[i].sym - 1) = l->entries[i];
        l->entries = grown.entries;
        l->cap = grown.cap;
    }
    entry *e = slot(l, sym);
    l->n += e->sym == 0;
    *e = (entry){ .sym = sym + 1, .origin = (uint8_t)o, .stored = stored || (e->sym != 0 && e->stored) };
    return true;
}

static bool store(aeg_jparser *p, layer *l, uint32_t sym)
{
    const entry *e = find(l, sym);
    if (e != NULL)
        return put(p, l, sym, (origin)e->origin, true);
    const bool fresh = !known_in_scope(l, sym) && !known(outside(l), sym);
    return put(p, l, sym, fresh ? UNSET : SEEN, true);
}

static bool load(aeg_jparser *p, layer *l, uint32_t sym)
{
    return known(l, sym) || put(p, l, sym, RESOLVE, false);
}

static bool note_expression(aeg_jparser *p, layer *l, const aeg_jnode *node)
{
    /* Chains lean on `a` without bound; everything else nests as deep as the parser allowed. */
    for (; node != NULL; node = node->a) {
        if (node->kind == JN_NAME && !load(p, l, node->sym))
            return false;
        for (uint32_t i = 0; i < node->n + node->n_kw; i++)
            if (node->list[i] != NULL && !note_expression(p, l, node->list[i]))
                return false;
        if ((node->b != NULL && !note_expression(p, l, node->b)) ||
            (node->c != NULL && !note_expression(p, l, node->c)))
            return false;
    }
    return true;
}

static bool note_target(aeg_jparser *p, layer *l, const aeg_jnode *target, bool is_parameter)
{
    if (target->kind == JN_NAME)
        return is_parameter ? put(p, l, target->sym, SEEN, true) : store(p, l, target->sym);
    if (target->kind == JN_NSREF)
        return load(p, l, target->a->sym);
    for (uint32_t i = 0; i < target->n; i++)
        if (!note_target(p, l, target->list[i], is_parameter))
            return false;
    return true;
}

static bool note_body(aeg_jparser *p, layer *l, const aeg_jbody *body);

/* What a branch stored and its scope did not know counts; stored in all of the three branches that
 * Jinja2 counts (if, all elif together, else) it is the scope's own, otherwise it is looked up. */
static bool merge(aeg_jparser *p, layer *l, const layer branches[3])
{
    layer counts = { 0 };
    for (int b = 0; b < 3; b++) {
        for (uint32_t i = 0; i < branches[b].cap; i++) {
            const entry *e = &branches[b].entries[i];
            const entry *own = e->sym == 0 ? NULL : find(l, e->sym - 1);
            if (e->sym == 0 || !e->stored || (own != NULL && own->stored))
                continue;
            const entry *counted = find(&counts, e->sym - 1);
            if (!put(p, &counts, e->sym - 1, (origin)(counted == NULL ? 1 : counted->origin + 1), false))
                return false;
        }
    }
    for (int b = 0; b < 3; b++) {
        for (uint32_t i = 0; i < branches[b].cap; i++) {
            const entry *e = &branches[b].entries[i];
            if (e->sym != 0 && !put(p, l, e->sym - 1, (origin)e->origin, e->stored))
                return false;
        }
    }
    for (uint32_t i = 0; i < counts.cap; i++)
        if (counts.entries[i].sym != 0 && counts.entries[i].origin != 3 &&
            !put(p, l, counts.entries[i].sym - 1, RESOLVE, true))
            return false;
    return true;
}

static bool note_if(aeg_jparser *p, layer *l, const aeg_jnode *node)
{
    layer branches[3] = { { .up = l, .same_scope = true }, { .up = l, .same_scope = true },
                          { .up = l, .same_scope = true } };
    if (!note_expression(p, l, node->list[0]) || !note_body(p, &branches[0], &node->bodies[0]) ||
        !note_body(p, &branches[2], &node->other))
        return false;
    for (uint32_t i = 1; i < node->n; i++) {
        layer parts[3] = { { .up = &branches[1], .same_scope = true } };
        if (!note_expression(p, &branches[1], node->list[i]) || !note_body(p, &parts[0], &node->bodies[i]) ||
            !merge(p, &branches[1], parts))
            return false;
    }
    return merge(p, l, branches);
}

static bool note_statement(aeg_jparser *p, layer *l, const aeg_jnode *node)
{
    switch ((aeg_jkind)node->kind) {
    case JN_OUTPUT:
    case JN_FILTERBLOCK:
    case JN_CALLBLOCK: return note_expression(p, l, node->a);
    case JN_FOR: return note_expression(p, l, node->b);
    case JN_IF: return note_if(p, l, node);
    case JN_SET: return note_expression(p, l, node->b) && note_target(p, l, node->a, false);
    case JN_SETBLOCK:
        return (node->b == NULL || note_expression(p, l, node->b)) && note_target(p, l, node->a, false);
    case JN_MACRO: return store(p, l, node->macro->name);
    case JN_WITH:
        for (uint32_t i = 1; i < node->n; i += 2)
            if (!note_expression(p, l, node->list[i]))
                return false;
        return true;
    default: return true;
    }
}

static bool note_body(aeg_jparser *p, layer *l, const aeg_jbody *body)
{
    for (uint32_t i = 0; i < body->n; i++)
        if (!note_statement(p, l, body->items[i]))
            return false;
    return true;
}

static bool finish_inner(aeg_jparser *p, const layer *l, const aeg_jbody *body);

/* The scope of `body`, whose parameters are in `l` already: its names, then the scopes inside. */
static bool finish_scope(aeg_jparser *p, layer *l, aeg_jbody *body)
{
    if (!note_body(p, l, body))
        return false;
    uint32_t *unset = aeg_jparse_alloc(p, (size_t)l->n + 1, sizeof *unset);
    if (unset == NULL)
        return false;
    for (uint32_t i = 0; i < l->cap; i++)
        if (l->entries[i].sym != 0 && l->entries[i].origin == UNSET)
            unset[body->n_unset++] = l->entries[i].sym - 1;
    body->unset = unset;
    return finish_inner(p, l, body);
}

static bool finish_macro(aeg_jparser *p, const layer *up, aeg_jmacro_def *m)
{
    static const uint32_t special[] = { AEG_JSYM_CALLER, AEG_JSYM_VARARGS, AEG_JSYM_KWARGS };
    const bool uses[] = { m->uses_caller, m->uses_varargs, m->uses_kwargs };
    layer l = { .up = up };
    for (uint32_t i = 0; i < m->n_params; i++)
        if (!put(p, &l, m->params[i], SEEN, true))
            return false;
    for (uint32_t i = 0; i < 3; i++)
        if (uses[i] && !put(p, &l, special[i], SEEN, true))
            return false;
    for (uint32_t i = 0; i < m->n_defaults; i++)
        if (!note_expression(p, &l, m->defaults[i]))
            return false;
    return finish_scope(p, &l, &m->body);
}

static bool finish_for(aeg_jparser *p, const layer *up, aeg_jnode *node)
{
    layer l = { .up = up }, other = { .up = up };
    return note_target(p, &l, node->a, true) && put(p, &l, AEG_JSYM_LOOP, SEEN, true) &&
           finish_scope(p, &l, &node->body) && finish_scope(p, &other, &node->other);
}

static bool finish_with(aeg_jparser *p, const layer *up, aeg_jnode *node)
{
    layer l = { .up = up };
    for (uint32_t i = 0; i < node->n; i += 2)
        if (!note_target(p, &l, node->list[i], true))
            return false;
    return finish_scope(p, &l, &node->body);
}

static bool finish_statement(aeg_jparser *p, const layer *l, aeg_jnode *node)
{
    layer inner = { .up = l };
    switch ((aeg_jkind)node->kind) {
    case JN_FOR: return finish_for(p, l, node);
    case JN_WITH: return finish_with(p, l, node);
    case JN_MACRO:
    case JN_CALLBLOCK: return finish_macro(p, l, node->macro);
    case JN_SETBLOCK:
    case JN_FILTERBLOCK:
    case JN_SCOPE: return finish_scope(p, &inner, &node->body);
    case JN_IF:
        for (uint32_t i = 0; i < node->n; i++)
            if (!finish_inner(p, l, &node->bodies[i]))
                return false;
        return finish_inner(p, l, &node->other);
    default: return true;
    }
}

static bool finish_inner(aeg_jparser *p, const layer *l, const aeg_jbody *body)
{
    for (uint32_t i = 0; i < body->n; i++)
        if (!finish_statement(p, l, (aeg_jnode *)body->items[i]))
            return false;
    return true;
}

bool aeg_jparse_scopes(aeg_jparser *p, aeg_jbody *body)
{
    layer top = { 0 };
    return finish_scope(p, &top, body);
}
