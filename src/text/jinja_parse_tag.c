/* SPDX-License-Identifier: Apache-2.0 */
/* The statements between {% and %}. The current token is the tag's name; each parser stops before
 * the closing "%}" of its last tag. */
#include <string.h>

#include "text/jinja_parse.h"

static const aeg_jnode *parse_for(aeg_jparser *p, uint32_t line)
{
    static const char *const ends[] = { "endfor", "else", NULL };
    static const char *const end[] = { "endfor", NULL };
    aeg_jnode *node = aeg_jparse_node(p, JN_FOR, line);
    p->n_all_loops++;
    if (node == NULL || (node->a = aeg_jparse_target(p, "in")) == NULL)
        return NULL;
    if (!aeg_jparse_skip_name(p, "in"))
        return aeg_jparse_unexpected(p, "'in'");
    if ((node->b = aeg_jparse_tuple(p, false, "recursive")) == NULL)
        return NULL;
    if (aeg_jparse_skip_name(p, "if") && (node->c = aeg_jparse_expression(p)) == NULL)
        return NULL;
    if (aeg_jparse_is_name(p, "recursive"))
        return aeg_jparse_fail(p, line, "recursive loops are not supported");
    p->n_loops++;
    const bool ok = aeg_jparse_body(p, ends, &node->body);
    p->n_loops--;
    if (!ok)
        return NULL;
    if (aeg_jparse_skip_name(p, "else") && !aeg_jparse_body(p, end, &node->other))
        return NULL;
    p->pos++; /* endfor */
    p->n_all_loops--;
    return node;
}

static const aeg_jnode *parse_if(aeg_jparser *p, uint32_t line)
{
    static const char *const ends[] = { "endif", "elif", "else", NULL };
    static const char *const end[] = { "endif", NULL };
    aeg_jnode *node = aeg_jparse_node(p, JN_IF, line);
    aeg_jnodes conditions = { 0 };
    aeg_jbody *bodies = NULL;
    uint32_t cap = 0, n = 0;
    bool more = true;
    if (node == NULL)
        return NULL;
    while (more) {
        const aeg_jnode *condition = NULL;
        const aeg_jtoken *word = &p->lx.tokens[p->pos - 1]; /* if, elif or else */
        const bool is_else = n > 0 && word->n == 4 && memcmp(word->p, "else", 4) == 0;
        if (!is_else && ((condition = aeg_jparse_tuple(p, false, NULL)) == NULL ||
                         !aeg_jparse_push(p, &conditions, condition)))
            return NULL;
        if (n == cap) {
            cap = cap == 0 ? 4 : cap * 2;
            aeg_jbody *grown = aeg_jparse_alloc(p, cap, sizeof *grown);
            if (grown == NULL)
                return NULL;
            if (n > 0)
                memcpy(grown, bodies, n * sizeof *grown);
            bodies = grown;
        }
        if (!aeg_jparse_body(p, is_else ? end : ends, &bodies[n++]))
            return NULL;
        more = !aeg_jparse_is_name(p, "endif");
        p->pos++;
    }
    node->list = conditions.items;
    node->n = conditions.n;
    node->bodies = bodies;
    node->other = n > conditions.n ? bodies[n - 1] : (aeg_jbody){ 0 };
    return node;
}

static const aeg_jnode *parse_set(aeg_jparser *p, uint32_t line)
{
    static const char *const end[] = { "endset", NULL };
    const aeg_jtoken *t = aeg_jparse_token(p);
    const aeg_jnode *target;
    if (t->type == JT_NAME && t[1].type == JT_DOT) {
        aeg_jnode *ref = aeg_jparse_node(p, JN_NSREF, line);
        aeg_jnode *name = aeg_jparse_node(p, JN_NAME, line);
        if (ref == NULL || name == NULL || !aeg_jparse_symbol(p, t->p, t->n, &name->sym))
            return NULL;
        p->pos += 2;
        t = aeg_jparse_token(p);
        if (!aeg_jparse_expect(p, JT_NAME, "an attribute") || !aeg_jparse_symbol(p, t->p, t->n, &ref->sym))
            return NULL;
        ref->a = name;
        target = ref;
    } else if ((target = aeg_jparse_target(p, NULL)) == NULL) {
        return NULL;
    }
    aeg_jnode *node = aeg_jparse_node(p, JN_SET, line);
    if (node == NULL)
        return NULL;
    node->a = target;
    if (aeg_jparse_skip(p, JT_ASSIGN)) {
        node->b = aeg_jparse_tuple(p, true, NULL);
        return node->b == NULL ? NULL : node;
    }
    node->kind = JN_SETBLOCK;
    if (aeg_jparse_token(p)->type == JT_PIPE && (node->b = aeg_jparse_filters(p, NULL, false)) == NULL)
        return NULL;
    if (!aeg_jparse_body(p, end, &node->body))
        return NULL;
    p->pos++;
    return node;
}

static bool parse_signature(aeg_jparser *p, aeg_jmacro_def *m)
{
    enum { MAX_PARAMS = 64 };
    uint32_t params[MAX_PARAMS];
    aeg_jnodes defaults = { 0 };
    if (!aeg_jparse_expect(p, JT_LPAREN, "'('"))
        return false;
    while (!aeg_jparse_skip(p, JT_RPAREN)) {
        if (m->n_params > 0 && !aeg_jparse_expect(p, JT_COMMA, "',' or ')'"))
            return false;
        const aeg_jtoken *t = aeg_jparse_token(p);
        if (m->n_params == MAX_PARAMS)
            return aeg_jparse_fail(p, t->line, "more than %d parameters", MAX_PARAMS) != NULL;
        if (!aeg_jparse_expect(p, JT_NAME, "the name of a parameter") ||
            !aeg_jparse_symbol(p, t->p, t->n, &params[m->n_params++]))
            return false;
        if (aeg_jparse_skip(p, JT_ASSIGN)) {
            const aeg_jnode *value = aeg_jparse_expression(p);
            if (value == NULL || !aeg_jparse_push(p, &defaults, value))
                return false;
        } else if (defaults.n > 0) {
            return aeg_jparse_fail(p, t->line, "parameter without a default after one with a default") != NULL;
        }
    }
    uint32_t *kept = aeg_jparse_alloc(p, m->n_params + 1, sizeof *kept);
    if (kept == NULL)
        return false;
    memcpy(kept, params, m->n_params * sizeof *kept);
    m->params = kept;
    m->defaults = defaults.items;
    m->n_defaults = defaults.n;
    return true;
}

/* The parameters and body of a macro or call block; loops outside cannot be left from inside. */
static bool parse_callable(aeg_jparser *p, aeg_jmacro_def *m, bool with_signature, const char *const *end)
{
    aeg_jmacro_def *outer = p->macro;
    const uint32_t n_loops = p->n_loops;
    p->macro = m;
    p->n_loops = 0;
    const bool ok = (!with_signature || parse_signature(p, m)) && (end == NULL || aeg_jparse_body(p, end, &m->body));
    p->macro = outer;
    p->n_loops = n_loops;
    return ok;
}

static const aeg_jnode *parse_macro(aeg_jparser *p, uint32_t line)
{
    static const char *const end[] = { "endmacro", NULL };
    aeg_jnode *node = aeg_jparse_node(p, JN_MACRO, line);
    aeg_jmacro_def *m = aeg_jparse_alloc(p, 1, sizeof *m);
    const aeg_jtoken *t = aeg_jparse_token(p);
    if (node == NULL || m == NULL || !aeg_jparse_expect(p, JT_NAME, "the name of a macro") ||
        !aeg_jparse_symbol(p, t->p, t->n, &m->name) || !parse_callable(p, m, true, end))
        return NULL;
    p->pos++;
    node->macro = m;
    return node;
}

static const aeg_jnode *parse_call_block(aeg_jparser *p, uint32_t line)
{
    static const char *const end[] = { "endcall", NULL };
    aeg_jnode *node = aeg_jparse_node(p, JN_CALLBLOCK, line);
    aeg_jmacro_def *m = aeg_jparse_alloc(p, 1, sizeof *m);
    if (node == NULL || m == NULL)
        return NULL;
    m->name = UINT32_MAX;
    if (aeg_jparse_token(p)->type == JT_LPAREN && !parse_callable(p, m, true, NULL))
        return NULL;
    if ((node->a = aeg_jparse_expression(p)) == NULL)
        return NULL;
    if (node->a->kind != JN_CALL)
        return aeg_jparse_fail(p, line, "expected a call behind 'call'");
    if (!parse_callable(p, m, false, end))
        return NULL;
    p->pos++;
    node->macro = m;
    return node;
}

static const aeg_jnode *parse_filter_block(aeg_jparser *p, uint32_t line)
{
    static const char *const end[] = { "endfilter", NULL };
    aeg_jnode *node = aeg_jparse_node(p, JN_FILTERBLOCK, line);
    if (node == NULL || (node->a = aeg_jparse_filters(p, NULL, true)) == NULL ||
        !aeg_jparse_body(p, end, &node->body))
        return NULL;
    p->pos++;
    return node;
}

static const aeg_jnode *parse_with(aeg_jparser *p, uint32_t line)
{
    static const char *const end[] = { "endwith", NULL };
    aeg_jnode *node = aeg_jparse_node(p, JN_WITH, line);
    aeg_jnodes list = { 0 };
    if (node == NULL)
        return NULL;
    while (aeg_jparse_token(p)->type != JT_BLOCK_END) {
        const aeg_jnode *target, *value;
        if (list.n > 0 && !aeg_jparse_expect(p, JT_COMMA, "','"))
            return NULL;
        if (aeg_jparse_token(p)->type != JT_NAME)
            return aeg_jparse_unexpected(p, "a name to assign to");
        if ((target = aeg_jparse_target(p, NULL)) == NULL || !aeg_jparse_expect(p, JT_ASSIGN, "'='") ||
            (value = aeg_jparse_expression(p)) == NULL || !aeg_jparse_push(p, &list, target) ||
            !aeg_jparse_push(p, &list, value))
            return NULL;
    }
    if (!aeg_jparse_body(p, end, &node->body))
        return NULL;
    p->pos++;
    node->list = list.items;
    node->n = list.n;
    return node;
}

/* Marks what the model wrote, for training; here only a scope. */
static const aeg_jnode *parse_generation(aeg_jparser *p, uint32_t line)
{
    static const char *const end[] = { "endgeneration", NULL };
    const uint32_t n_loops = p->n_loops;
    aeg_jnode *node = aeg_jparse_node(p, JN_SCOPE, line);
    if (node == NULL)
        return NULL;
    p->n_loops = 0; /* Jinja2 makes it a function, which a break cannot leave */
    const bool ok = aeg_jparse_body(p, end, &node->body);
    p->n_loops = n_loops;
    if (!ok)
        return NULL;
    p->pos++;
    return node;
}

static const aeg_jnode *parse_loop_control(aeg_jparser *p, uint32_t line, aeg_jkind kind)
{
    if (p->n_loops == 0)
        return aeg_jparse_fail(p, line, "'%s' outside of a loop", kind == JN_BREAK ? "break" : "continue");
    return aeg_jparse_node(p, kind, line);
}

static const aeg_jnode *parse_print(aeg_jparser *p, uint32_t line)
{
    aeg_jnode *node = aeg_jparse_node(p, JN_OUTPUT, line), *values = aeg_jparse_node(p, JN_CONCAT, line);
    aeg_jnodes list = { 0 };
    if (node == NULL || values == NULL)
        return NULL;
    do {
        const aeg_jnode *value = aeg_jparse_expression(p);
        if (value == NULL || !aeg_jparse_push(p, &list, value))
            return NULL;
    } while (aeg_jparse_skip(p, JT_COMMA));
    values->list = list.items;
    values->n = list.n;
    node->a = values;
    return node;
}

const aeg_jnode *aeg_jparse_statement(aeg_jparser *p)
{
    static const char *const refused[] = { "block", "extends", "include", "import", "from", "do", "autoescape",
                                           "trans", "pluralize", "debug" };
    const aeg_jtoken t = *aeg_jparse_token(p);
    if (!aeg_jparse_expect(p, JT_NAME, "the name of a tag"))
        return NULL;
#define IS(name) (t.n == sizeof(name) - 1 && memcmp(t.p, name, t.n) == 0)
    if (IS("for"))
        return parse_for(p, t.line);
    if (IS("if"))
        return parse_if(p, t.line);
    if (IS("set"))
        return parse_set(p, t.line);
    if (IS("macro"))
        return parse_macro(p, t.line);
    if (IS("call"))
        return parse_call_block(p, t.line);
    if (IS("filter"))
        return parse_filter_block(p, t.line);
    if (IS("with"))
        return parse_with(p, t.line);
    if (IS("generation"))
        return parse_generation(p, t.line);
    if (IS("break"))
        return parse_loop_control(p, t.line, JN_BREAK);
    if (IS("continue"))
        return parse_loop_control(p, t.line, JN_CONTINUE);
    if (IS("print"))
        return parse_print(p, t.line);
#undef IS
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (t.n == strlen(refused[i]) && memcmp(t.p, refused[i], t.n) == 0)
            return aeg_jparse_fail(p, t.line, "the tag '%s' is not supported", refused[i]);
    return aeg_jparse_fail(p, t.line, "unexpected tag '%.*s'", (int)(t.n > 60 ? 60 : t.n), t.p);
}
