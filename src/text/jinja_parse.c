/* SPDX-License-Identifier: Apache-2.0 */
/* Parser: tokens, nodes, symbols, and the text between tags. */
#include "text/jinja_parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const aeg_jtoken *aeg_jparse_token(const aeg_jparser *p) { return &p->lx.tokens[p->pos]; }

static bool token_is_name(const aeg_jtoken *t, const char *name)
{
    return t->type == JT_NAME && t->n == strlen(name) && memcmp(t->p, name, t->n) == 0;
}

bool aeg_jparse_is_name(const aeg_jparser *p, const char *name)
{
    return token_is_name(aeg_jparse_token(p), name);
}

bool aeg_jparse_skip_name(aeg_jparser *p, const char *name)
{
    const bool is = aeg_jparse_is_name(p, name);
    p->pos += is;
    return is;
}

bool aeg_jparse_skip(aeg_jparser *p, uint8_t type)
{
    const bool is = aeg_jparse_token(p)->type == type && type != JT_EOF;
    p->pos += is;
    return is;
}

bool aeg_jparse_expect(aeg_jparser *p, uint8_t type, const char *what)
{
    return aeg_jparse_skip(p, type) || aeg_jparse_unexpected(p, what) != NULL;
}

void *aeg_jparse_fail(aeg_jparser *p, uint32_t line, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (p->status == AEGIS_OK)
        p->status = aeg_fail(p->err, AEGIS_E_MODEL, "chat template line %u: %s", line, text);
    return NULL;
}

void *aeg_jparse_unexpected(aeg_jparser *p, const char *expected)
{
    char text[80];
    const aeg_jtoken *t = aeg_jparse_token(p);
    return aeg_jparse_fail(p, t->line, "found %s, expected %s", aeg_jin_token_text(t, text, sizeof text), expected);
}

void *aeg_jparse_alloc(aeg_jparser *p, size_t n, size_t size)
{
    void *q = n > SIZE_MAX / size ? NULL : aeg_jarena_alloc(&p->t->arena, n * size);
    if (q == NULL) {
        if (p->status == AEGIS_OK)
            p->status = aeg_fail(p->err, AEGIS_E_MEMORY, "chat template: no memory for its syntax tree");
        return NULL;
    }
    return memset(q, 0, n * size);
}

aeg_jnode *aeg_jparse_node(aeg_jparser *p, aeg_jkind kind, uint32_t line)
{
    aeg_jnode *node = aeg_jparse_alloc(p, 1, sizeof *node);
    if (node != NULL) {
        node->kind = (uint8_t)kind;
        node->line = line;
    }
    return node;
}

bool aeg_jparse_enter(aeg_jparser *p)
{
    if (p->depth == AEG_JINJA_MAX_NESTING) {
        aeg_jparse_fail(p, aeg_jparse_token(p)->line, "nested deeper than %d levels", AEG_JINJA_MAX_NESTING);
        return false;
    }
    p->depth++;
    return true;
}

bool aeg_jparse_push(aeg_jparser *p, aeg_jnodes *list, const aeg_jnode *node)
{
    if (list->n == list->cap) {
        const uint32_t cap = list->cap == 0 ? 4 : list->cap * 2;
        const aeg_jnode **items = aeg_jparse_alloc(p, cap, sizeof *items);
        if (items == NULL)
            return false;
        if (list->n > 0)
            memcpy(items, list->items, list->n * sizeof *items);
        list->items = items;
        list->cap = cap;
    }
    list->items[list->n++] = node;
    return true;
}

static uint64_t hash_name(const char *s, size_t n)
{
    uint64_t h = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3ULL;
    return h ^ h >> 29;
}

static bool grow_symbols(aeg_jparser *p)
{
    aeg_jinja *t = p->t;
    const uint32_t cap = p->cap_symbols == 0 ? 64 : p->cap_symbols * 2;
    aeg_jsymbol *symbols = aeg_jparse_alloc(p, cap, sizeof *symbols);
    uint32_t *index = aeg_jparse_alloc(p, (size_t)cap * 2, sizeof *index);
    if (symbols == NULL || index == NULL)
        return false;
    if (t->n_symbols > 0)
        memcpy(symbols, t->symbols, t->n_symbols * sizeof *symbols);
    t->symbols = symbols;
    p->cap_symbols = cap;
    p->index = index;
    p->n_index = cap * 2;
    for (uint32_t i = 0; i < t->n_symbols; i++) {
        uint64_t at = hash_name(symbols[i].p, symbols[i].n) & (p->n_index - 1);
        while (index[at] != 0)
            at = (at + 1) & (p->n_index - 1);
        index[at] = i + 1;
    }
    return true;
}

bool aeg_jparse_symbol(aeg_jparser *p, const char *s, size_t n, uint32_t *out)
{
    aeg_jinja *t = p->t;
    if (t->n_symbols == p->cap_symbols && !grow_symbols(p))
        return false;
    uint64_t at = hash_name(s, n) & (p->n_index - 1);
    for (; p->index[at] != 0; at = (at + 1) & (p->n_index - 1)) {
        const aeg_jsymbol *known = &t->symbols[p->index[at] - 1];
        if (known->n == n && memcmp(known->p, s, n) == 0) {
            *out = p->index[at] - 1;
            return true;
        }
    }
    char *copy = aeg_jparse_alloc(p, n + 1, 1);
    if (copy == NULL)
        return false;
    memcpy(copy, s, n);
    t->symbols[t->n_symbols] = (aeg_jsymbol){ copy, n };
    *out = t->n_symbols++;
    p->index[at] = *out + 1;
    return true;
}

/* Text, a value to print, or a tag. *node stays NULL for a tag that leaves nothing. */
static bool parse_piece(aeg_jparser *p, const aeg_jnode **node)
{
    const aeg_jtoken t = *aeg_jparse_token(p);
    aeg_jnode *made;
    switch (t.type) {
    case JT_DATA:
        p->pos++;
        if ((made = aeg_jparse_node(p, JN_TEXT, t.line)) == NULL)
            return false;
        made->value = aeg_jv_text(t.p, t.n);
        *node = made;
        return true;
    case JT_VARIABLE_BEGIN:
        p->pos++;
        if ((made = aeg_jparse_node(p, JN_OUTPUT, t.line)) == NULL ||
            (made->a = aeg_jparse_tuple(p, true, NULL)) == NULL)
            return false;
        *node = made;
        return aeg_jparse_expect(p, JT_VARIABLE_END, "'}}'");
    default:
        *node = aeg_jparse_statement(p);
        return p->status == AEGIS_OK && aeg_jparse_expect(p, JT_BLOCK_END, "'%}'");
    }
}

/* True at "{% end": the block's name is then the current token. */
static bool at_end(aeg_jparser *p, const char *const *ends)
{
    if (aeg_jparse_token(p)->type != JT_BLOCK_BEGIN)
        return false;
    for (; *ends != NULL; ends++) {
        if (token_is_name(&p->lx.tokens[p->pos + 1], *ends)) {
            p->pos++;
            return true;
        }
    }
    return false;
}

static bool parse_pieces(aeg_jparser *p, const char *const *ends, aeg_jbody *out)
{
    static const char *const none[] = { NULL };
    aeg_jnodes list = { 0 };
    const uint32_t line = aeg_jparse_token(p)->line;
    while (aeg_jparse_token(p)->type != JT_EOF) {
        const aeg_jnode *node = NULL;
        if (at_end(p, ends == NULL ? none : ends)) {
            *out = (aeg_jbody){ .items = list.items, .n = list.n };
            return true;
        }
        if (aeg_jparse_token(p)->type == JT_BLOCK_BEGIN)
            p->pos++;
        if (!parse_piece(p, &node) || (node != NULL && !aeg_jparse_push(p, &list, node)))
            return false;
    }
    if (ends != NULL)
        return aeg_jparse_fail(p, line, "block without its '%s'", ends[0]) != NULL;
    *out = (aeg_jbody){ .items = list.items, .n = list.n };
    return true;
}

bool aeg_jparse_body(aeg_jparser *p, const char *const *ends, aeg_jbody *out)
{
    aeg_jparse_skip(p, JT_COLON); /* as Jinja2 allows */
    if (!aeg_jparse_expect(p, JT_BLOCK_END, "'%}'") || !aeg_jparse_enter(p))
        return false;
    const bool ok = parse_pieces(p, ends, out);
    p->depth--;
    return ok;
}

aegis_status aeg_jin_parse(aeg_jparser *p, aeg_jinja *t, const char *text, size_t n, aeg_memory *memory,
                           aegis_error *err)
{
    static const char *const special[] = { "loop", "caller", "varargs", "kwargs" };
    *p = (aeg_jparser){ .t = t, .err = err };
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t symbol;
        if (!aeg_jparse_symbol(p, special[i], strlen(special[i]), &symbol))
            return p->status;
    }
    p->status = aeg_jin_lex(&p->lx, text, n, &t->arena, memory, err);
    if (p->status == AEGIS_OK)
        (void)(parse_pieces(p, NULL, &t->body) && aeg_jparse_scopes(p, &t->body));
    aeg_free(memory, p->lx.tokens);
    p->lx.tokens = NULL;
    return p->status;
}
