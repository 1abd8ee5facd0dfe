/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions, loosest binding first. The grammar is Jinja2's, also where it surprises: `~` binds
 * tighter than `+`, filters bind tighter than `-`, and `**` is left-associative. */
#include <string.h>

#include "text/jinja_parse.h"
#include "text/jinja_run.h"

static const aeg_jnode *parse_or(aeg_jparser *p);
static const aeg_jnode *parse_unary(aeg_jparser *p, bool with_filter);

static uint32_t line_of(const aeg_jparser *p) { return aeg_jparse_token(p)->line; }
static uint8_t type_of(const aeg_jparser *p) { return aeg_jparse_token(p)->type; }

static const aeg_jnode *binary(aeg_jparser *p, aeg_jkind kind, uint8_t op, const aeg_jnode *a, const aeg_jnode *b,
                               uint32_t line)
{
    aeg_jnode *node = b == NULL ? NULL : aeg_jparse_node(p, kind, line);
    if (node == NULL)
        return NULL;
    node->op = op;
    node->a = a;
    node->b = b;
    return node;
}

static const aeg_jnode *parse_cond(aeg_jparser *p)
{
    uint32_t line = line_of(p);
    const aeg_jnode *node = parse_or(p);
    while (node != NULL && aeg_jparse_skip_name(p, "if")) {
        aeg_jnode *cond = aeg_jparse_node(p, JN_COND, line);
        if (cond == NULL || (cond->b = parse_or(p)) == NULL)
            return NULL;
        cond->a = node;
        if (aeg_jparse_skip_name(p, "else")) {
            if ((cond->c = aeg_jparse_expression(p)) == NULL)
                return NULL;
        }
        node = cond;
        line = line_of(p);
    }
    return node;
}

const aeg_jnode *aeg_jparse_expression(aeg_jparser *p)
{
    if (!aeg_jparse_enter(p))
        return NULL;
    const aeg_jnode *node = parse_cond(p);
    p->depth--;
    return node;
}

/* A node over all the operands of a chain, so that long chains do not nest. */
static const aeg_jnode *chain(aeg_jparser *p, aeg_jkind kind, const aeg_jnodes *list, uint32_t line)
{
    aeg_jnode *node = aeg_jparse_node(p, kind, line);
    if (node != NULL) {
        node->list = list->items;
        node->n = list->n;
    }
    return node;
}

static const aeg_jnode *parse_not(aeg_jparser *p);

static const aeg_jnode *parse_and(aeg_jparser *p)
{
    const uint32_t line = line_of(p);
    const aeg_jnode *first = parse_not(p);
    if (first == NULL || !aeg_jparse_is_name(p, "and"))
        return first;
    aeg_jnodes list = { 0 };
    if (!aeg_jparse_push(p, &list, first))
        return NULL;
    while (aeg_jparse_skip_name(p, "and")) {
        const aeg_jnode *next = parse_not(p);
        if (next == NULL || !aeg_jparse_push(p, &list, next))
            return NULL;
    }
    return chain(p, JN_AND, &list, line);
}

static const aeg_jnode *parse_or(aeg_jparser *p)
{
    const uint32_t line = line_of(p);
    const aeg_jnode *first = parse_and(p);
    if (first == NULL || !aeg_jparse_is_name(p, "or"))
        return first;
    aeg_jnodes list = { 0 };
    if (!aeg_jparse_push(p, &list, first))
        return NULL;
    while (aeg_jparse_skip_name(p, "or")) {
        const aeg_jnode *next = parse_and(p);
        if (next == NULL || !aeg_jparse_push(p, &list, next))
            return NULL;
    }
    return chain(p, JN_OR, &list, line);
}

static const aeg_jnode *parse_math2(aeg_jparser *p)
{
    static const uint8_t op_of[] = { [JT_MUL] = JO_MUL, [JT_DIV] = JO_DIV, [JT_FLOORDIV] = JO_FLOORDIV,
                                     [JT_MOD] = JO_MOD };
    uint32_t line = line_of(p);
    const aeg_jnode *left = NULL;
    uint8_t op = 0;
    for (bool first = true;; first = false) {
        const aeg_jnode *right = parse_unary(p, true);
        while (right != NULL && aeg_jparse_skip(p, JT_POW))
            right = binary(p, JN_BINARY, JO_POW, right, parse_unary(p, true), line);
        left = first ? right : binary(p, JN_BINARY, op, left, right, line);
        const uint8_t type = type_of(p);
        if (left == NULL || type < JT_MUL || type > JT_MOD)
            return left;
        op = op_of[type];
        p->pos++;
        line = line_of(p);
    }
}

static const aeg_jnode *parse_concat(aeg_jparser *p)
{
    const uint32_t line = line_of(p);
    const aeg_jnode *first = parse_math2(p);
    if (first == NULL || type_of(p) != JT_TILDE)
        return first;
    aeg_jnodes list = { 0 };
    if (!aeg_jparse_push(p, &list, first))
        return NULL;
    while (aeg_jparse_skip(p, JT_TILDE)) {
        const aeg_jnode *next = parse_math2(p);
        if (next == NULL || !aeg_jparse_push(p, &list, next))
            return NULL;
    }
    return chain(p, JN_CONCAT, &list, line);
}

static const aeg_jnode *parse_math1(aeg_jparser *p)
{
    uint32_t line = line_of(p);
    const aeg_jnode *left = parse_concat(p);
    while (left != NULL && (type_of(p) == JT_ADD || type_of(p) == JT_SUB)) {
        const uint8_t op = type_of(p) == JT_ADD ? JO_ADD : JO_SUB;
        p->pos++;
        left = binary(p, JN_BINARY, op, left, parse_concat(p), line);
        line = line_of(p);
    }
    return left;
}

/* The comparison at the current token, or -1. */
static int comparison(aeg_jparser *p)
{
    const uint8_t type = type_of(p);
    if (type >= JT_EQ && type <= JT_GE) {
        p->pos++;
        return JO_EQ + (type - JT_EQ);
    }
    if (aeg_jparse_skip_name(p, "in"))
        return JO_IN;
    if (!aeg_jparse_skip_name(p, "not"))
        return -1;
    if (aeg_jparse_skip_name(p, "in"))
        return JO_NOT_IN;
    p->pos--;
    return -1;
}

static const aeg_jnode *parse_compare(aeg_jparser *p)
{
    enum { MAX_CHAIN = 64 };
    const uint32_t line = line_of(p);
    const aeg_jnode *first = parse_math1(p);
    aeg_jnodes list = { 0 };
    uint8_t ops[MAX_CHAIN];
    int op;
    while (first != NULL && (op = comparison(p)) >= 0) {
        if (list.n == MAX_CHAIN)
            return aeg_jparse_fail(p, line, "more than %d comparisons in one chain", MAX_CHAIN);
        ops[list.n] = (uint8_t)op;
        const aeg_jnode *next = parse_math1(p);
        if (next == NULL || !aeg_jparse_push(p, &list, next))
            return NULL;
    }
    if (first == NULL || list.n == 0)
        return first;
    aeg_jnode *node = (aeg_jnode *)chain(p, JN_COMPARE, &list, line);
    uint8_t *kept = aeg_jparse_alloc(p, list.n, 1);
    if (node == NULL || kept == NULL)
        return NULL;
    memcpy(kept, ops, list.n);
    node->a = first;
    node->ops = kept;
    return node;
}

static const aeg_jnode *parse_not(aeg_jparser *p)
{
    const uint32_t line = line_of(p);
    bool odd = false, any = false;
    while (aeg_jparse_skip_name(p, "not")) {
        odd = !odd;
        any = true;
    }
    const aeg_jnode *node = parse_compare(p);
    if (node == NULL || !any)
        return node;
    aeg_jnode *negated = aeg_jparse_node(p, JN_NOT, line);
    if (negated == NULL)
        return NULL;
    negated->a = node;
    negated->op = odd; /* even: only the truth value */
    return negated;
}

/* The arguments of a call at its "(". */
static bool parse_args(aeg_jparser *p, aeg_jnode *node)
{
    enum { MAX_KEYWORDS = 64 };
    aeg_jnodes list = { 0 };
    const char *names[MAX_KEYWORDS];
    if (!aeg_jparse_expect(p, JT_LPAREN, "'('"))
        return false;
    while (!aeg_jparse_skip(p, JT_RPAREN)) {
        if (list.n > 0 && !aeg_jparse_expect(p, JT_COMMA, "',' or ')'"))
            return false;
        if (list.n > 0 && aeg_jparse_skip(p, JT_RPAREN))
            break;
        if (type_of(p) == JT_MUL || type_of(p) == JT_POW)
            return aeg_jparse_fail(p, line_of(p), "unpacking arguments with '*' is not supported") != NULL;
        const aeg_jtoken *t = aeg_jparse_token(p);
        if (t->type == JT_NAME && t[1].type == JT_ASSIGN) {
            uint32_t symbol;
            if (node->n_kw == MAX_KEYWORDS)
                return aeg_jparse_fail(p, t->line, "more than %d keyword arguments", MAX_KEYWORDS) != NULL;
            if (!aeg_jparse_symbol(p, t->p, t->n, &symbol))
                return false;
            names[node->n_kw++] = p->t->symbols[symbol].p;
            p->pos += 2;
        } else if (node->n_kw > 0) {
            return aeg_jparse_fail(p, t->line, "positional argument after keyword arguments") != NULL;
        }
        const aeg_jnode *value = aeg_jparse_expression(p);
        if (value == NULL || !aeg_jparse_push(p, &list, value))
            return false;
    }
    node->list = list.items;
    node->n = list.n - node->n_kw;
    if (node->n_kw == 0)
        return true;
    const char **kept = aeg_jparse_alloc(p, node->n_kw, sizeof *kept);
    if (kept == NULL)
        return false;
    memcpy(kept, names, node->n_kw * sizeof *kept);
    node->names = kept;
    return true;
}

static const aeg_jnode *parse_call(aeg_jparser *p, const aeg_jnode *callee)
{
    aeg_jnode *node = aeg_jparse_node(p, JN_CALL, line_of(p));
    if (node == NULL || !parse_args(p, node))
        return NULL;
    node->a = callee;
    return node;
}

static const aeg_jnode *constant(aeg_jparser *p, aeg_jval value, uint32_t line)
{
    aeg_jnode *node = aeg_jparse_node(p, JN_CONST, line);
    if (node != NULL)
        node->value = value;
    return node;
}

/* a[x], a[x:y:z], a[x, y] at the "[". */
static const aeg_jnode *parse_brackets(aeg_jparser *p, const aeg_jnode *object)
{
    const uint32_t line = line_of(p);
    const aeg_jnode **bounds = aeg_jparse_alloc(p, 3, sizeof *bounds);
    if (bounds == NULL)
        return NULL;
    p->pos++;
    uint32_t n_colons = 0;
    for (;;) {
        if (type_of(p) != JT_COLON && type_of(p) != JT_RBRACKET &&
            (bounds[n_colons] = aeg_jparse_tuple(p, true, NULL)) == NULL)
            return NULL;
        if (n_colons == 2 || !aeg_jparse_skip(p, JT_COLON))
            break;
        n_colons++;
    }
    if (!aeg_jparse_expect(p, JT_RBRACKET, "']'"))
        return NULL;
    if (n_colons == 0 && bounds[0] == NULL)
        return aeg_jparse_fail(p, line, "subscript without an index");
    if (n_colons == 0)
        return binary(p, JN_GETITEM, 0, object, bounds[0], line);
    aeg_jnode *node = aeg_jparse_node(p, JN_SLICE, line);
    if (node == NULL)
        return NULL;
    node->a = object;
    node->list = bounds;
    node->n = 3;
    return node;
}

static const aeg_jnode *parse_dot(aeg_jparser *p, const aeg_jnode *object)
{
    const uint32_t line = line_of(p);
    p->pos++;
    const aeg_jtoken t = *aeg_jparse_token(p);
    if (t.type == JT_INT) {
        p->pos++;
        return binary(p, JN_GETITEM, 0, object, constant(p, aeg_jv_int(t.i), line), line);
    }
    if (!aeg_jparse_expect(p, JT_NAME, "a name or a number behind '.'"))
        return NULL;
    aeg_jnode *node = aeg_jparse_node(p, JN_GETATTR, line);
    if (node == NULL || !aeg_jparse_symbol(p, t.p, t.n, &node->sym))
        return NULL;
    node->a = object;
    return node;
}

static const aeg_jnode *parse_postfix(aeg_jparser *p, const aeg_jnode *node)
{
    while (node != NULL) {
        if (type_of(p) == JT_DOT)
            node = parse_dot(p, node);
        else if (type_of(p) == JT_LBRACKET)
            node = parse_brackets(p, node);
        else if (type_of(p) == JT_LPAREN)
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

const aeg_jnode *aeg_jparse_filters(aeg_jparser *p, const aeg_jnode *node, bool inline_start)
{
    while (inline_start || aeg_jparse_skip(p, JT_PIPE)) {
        const aeg_jtoken t = *aeg_jparse_token(p);
        inline_start = false;
        if (!aeg_jparse_expect(p, JT_NAME, "the name of a filter"))
            return NULL;
        aeg_jnode *filter = aeg_jparse_node(p, JN_FILTER, t.line);
        if (filter == NULL)
            return NULL;
        filter->builtin = aeg_jin_find_filter(t.p, t.n);
        if (filter->builtin == NULL)
            return aeg_jparse_fail(p, t.line, "the filter '%.*s' is not supported", (int)t.n, t.p);
        if (type_of(p) == JT_LPAREN && !parse_args(p, filter))
            return NULL;
        filter->a = node;
        node = filter;
    }
    return node;
}

static const aeg_jnode *parse_primary(aeg_jparser *p);

/* Behind "is": [not] name, with an argument in brackets or bare. */
static const aeg_jnode *parse_test(aeg_jparser *p, const aeg_jnode *value)
{
    const uint32_t line = line_of(p);
    p->pos++;
    const bool negated = aeg_jparse_skip_name(p, "not");
    const aeg_jtoken t = *aeg_jparse_token(p);
    aeg_jnode *node = aeg_jparse_node(p, JN_TEST, line);
    if (node == NULL || !aeg_jparse_expect(p, JT_NAME, "the name of a test"))
        return NULL;
    node->builtin = aeg_jin_find_test(t.p, t.n);
    if (node->builtin == NULL)
        return aeg_jparse_fail(p, t.line, "the test '%.*s' is not supported", (int)t.n, t.p);
    node->a = value;
    const uint8_t type = type_of(p);
    if (type == JT_LPAREN) {
        if (!parse_args(p, node))
            return NULL;
    } else if ((type == JT_NAME || type == JT_STRING || type == JT_INT || type == JT_FLOAT ||
                type == JT_LBRACKET || type == JT_LBRACE) &&
               !aeg_jparse_is_name(p, "else") && !aeg_jparse_is_name(p, "or") && !aeg_jparse_is_name(p, "and")) {
        if (aeg_jparse_is_name(p, "is"))
            return aeg_jparse_fail(p, line_of(p), "tests cannot be chained with 'is'");
        aeg_jnodes list = { 0 };
        const aeg_jnode *arg = parse_postfix(p, parse_primary(p));
        if (arg == NULL || !aeg_jparse_push(p, &list, arg))
            return NULL;
        node->list = list.items;
        node->n = 1;
    }
    if (!negated)
        return node;
    aeg_jnode *not_node = aeg_jparse_node(p, JN_NOT, line);
    if (not_node == NULL)
        return NULL;
    not_node->a = node;
    not_node->op = 1;
    return not_node;
}

static const aeg_jnode *parse_unary(aeg_jparser *p, bool with_filter)
{
    const uint32_t line = line_of(p);
    const aeg_jnode *node;
    if (type_of(p) == JT_SUB || type_of(p) == JT_ADD) {
        const uint8_t op = type_of(p) == JT_SUB ? JO_NEG : JO_POS;
        if (!aeg_jparse_enter(p))
            return NULL;
        p->pos++;
        const aeg_jnode *operand = parse_unary(p, false);
        p->depth--;
        aeg_jnode *unary = operand == NULL ? NULL : aeg_jparse_node(p, JN_UNARY, line);
        if (unary == NULL)
            return NULL;
        unary->op = op;
        unary->a = operand;
        node = unary;
    } else {
        node = parse_primary(p);
    }
    node = parse_postfix(p, node);
    while (with_filter && node != NULL) {
        if (type_of(p) == JT_PIPE)
            node = aeg_jparse_filters(p, node, false);
        else if (aeg_jparse_is_name(p, "is"))
            node = parse_test(p, node);
        else if (type_of(p) == JT_LPAREN)
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

static const aeg_jnode *parse_name(aeg_jparser *p)
{
    static const struct {
        const char *name;
        aeg_jval value;
    } constants[] = {
        { "true", { .type = JV_BOOL, .u.b = true } },   { "True", { .type = JV_BOOL, .u.b = true } },
        { "false", { .type = JV_BOOL, .u.b = false } }, { "False", { .type = JV_BOOL, .u.b = false } },
        { "none", { .type = JV_NONE } },                { "None", { .type = JV_NONE } },
    };
    const aeg_jtoken t = *aeg_jparse_token(p);
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (aeg_jparse_skip_name(p, constants[i].name))
            return constant(p, constants[i].value, t.line);
    p->pos++;
    aeg_jnode *node = aeg_jparse_node(p, JN_NAME, t.line);
    if (node == NULL || !aeg_jparse_symbol(p, t.p, t.n, &node->sym))
        return NULL;
    if (p->macro != NULL) {
        p->macro->uses_caller |= node->sym == AEG_JSYM_CALLER;
        p->macro->uses_varargs |= node->sym == AEG_JSYM_VARARGS;
        p->macro->uses_kwargs |= node->sym == AEG_JSYM_KWARGS;
    }
    return node;
}

static const aeg_jnode *parse_string(aeg_jparser *p)
{
    const aeg_jtoken first = *aeg_jparse_token(p);
    p->pos++;
    aeg_jval v = aeg_jv_text(first.p, first.n);
    for (const aeg_jtoken *t; (t = aeg_jparse_token(p))->type == JT_STRING; p->pos++) {
        char *joined = aeg_jarena_extend(&p->t->arena, v.u.s.p, v.u.s.n, t->n);
        if (joined == NULL)
            return aeg_jparse_alloc(p, SIZE_MAX, 2);
        memcpy(joined + v.u.s.n, t->p, t->n);
        v = aeg_jv_text(joined, v.u.s.n + t->n);
    }
    return constant(p, v, first.line);
}

/* [a, b] or {a: b, c: d}. */
static const aeg_jnode *parse_literal(aeg_jparser *p, bool is_dict)
{
    const uint8_t close = is_dict ? JT_RBRACE : JT_RBRACKET;
    const uint32_t line = line_of(p);
    aeg_jnodes list = { 0 };
    p->pos++;
    while (!aeg_jparse_skip(p, close)) {
        if (list.n > 0 && !aeg_jparse_expect(p, JT_COMMA, is_dict ? "',' or '}'" : "',' or ']'"))
            return NULL;
        if (list.n > 0 && aeg_jparse_skip(p, close))
            break;
        const aeg_jnode *item = aeg_jparse_expression(p);
        if (item == NULL || !aeg_jparse_push(p, &list, item))
            return NULL;
        if (!is_dict)
            continue;
        if (!aeg_jparse_expect(p, JT_COLON, "':'") || (item = aeg_jparse_expression(p)) == NULL ||
            !aeg_jparse_push(p, &list, item))
            return NULL;
    }
    return chain(p, is_dict ? JN_DICT : JN_LIST, &list, line);
}

static const aeg_jnode *parse_primary(aeg_jparser *p)
{
    const aeg_jtoken t = *aeg_jparse_token(p);
    const aeg_jnode *node;
    switch (t.type) {
    case JT_NAME: return parse_name(p);
    case JT_STRING: return parse_string(p);
    case JT_INT: p->pos++; return constant(p, aeg_jv_int(t.i), t.line);
    case JT_FLOAT: p->pos++; return constant(p, aeg_jv_float(t.f), t.line);
    case JT_LBRACKET: return parse_literal(p, false);
    case JT_LBRACE: return parse_literal(p, true);
    case JT_LPAREN:
        p->pos++;
        node = type_of(p) == JT_RPAREN ? aeg_jparse_node(p, JN_TUPLE, t.line) : aeg_jparse_tuple(p, true, NULL);
        return node != NULL && aeg_jparse_expect(p, JT_RPAREN, "')'") ? node : NULL;
    default: return aeg_jparse_unexpected(p, "an expression");
    }
}

static bool tuple_ends(const aeg_jparser *p, const char *end_name)
{
    const uint8_t type = type_of(p);
    return type == JT_VARIABLE_END || type == JT_BLOCK_END || type == JT_RPAREN ||
           (end_name != NULL && aeg_jparse_is_name(p, end_name));
}

/* `parse` between commas; one value without a comma stays itself. */
static const aeg_jnode *parse_list(aeg_jparser *p, const aeg_jnode *(*parse)(aeg_jparser *), const char *end_name)
{
    const uint32_t line = line_of(p);
    aeg_jnodes list = { 0 };
    bool is_tuple = false;
    while (!tuple_ends(p, end_name)) {
        const aeg_jnode *item = parse(p);
        if (item == NULL || !aeg_jparse_push(p, &list, item))
            return NULL;
        if (!aeg_jparse_skip(p, JT_COMMA))
            break;
        is_tuple = true;
    }
    if (list.n == 0)
        return aeg_jparse_unexpected(p, "an expression");
    return is_tuple ? chain(p, JN_TUPLE, &list, line) : list.items[0];
}

static const aeg_jnode *parse_without_cond(aeg_jparser *p)
{
    if (!aeg_jparse_enter(p))
        return NULL;
    const aeg_jnode *node = parse_or(p);
    p->depth--;
    return node;
}

const aeg_jnode *aeg_jparse_tuple(aeg_jparser *p, bool with_cond, const char *end_name)
{
    return parse_list(p, with_cond ? aeg_jparse_expression : parse_without_cond, end_name);
}

static const aeg_jnode *parse_target_item(aeg_jparser *p)
{
    const aeg_jtoken t = *aeg_jparse_token(p);
    if (t.type == JT_LPAREN) {
        if (!aeg_jparse_enter(p))
            return NULL;
        p->pos++;
        const aeg_jnode *node = aeg_jparse_target(p, NULL);
        p->depth--;
        return node != NULL && aeg_jparse_expect(p, JT_RPAREN, "')'") ? node : NULL;
    }
    if (t.type != JT_NAME)
        return aeg_jparse_unexpected(p, "a name to assign to");
    const aeg_jnode *node = parse_name(p);
    if (node != NULL && node->kind == JN_NAME && node->sym == AEG_JSYM_LOOP && p->n_all_loops > 0)
        return aeg_jparse_fail(p, t.line, "cannot assign to 'loop' in a loop");
    if (node != NULL && node->kind != JN_NAME)
        return aeg_jparse_fail(p, t.line, "cannot assign to '%.*s'", (int)t.n, t.p);
    return node;
}

const aeg_jnode *aeg_jparse_target(aeg_jparser *p, const char *end_name)
{
    return parse_list(p, parse_target_item, end_name);
}
