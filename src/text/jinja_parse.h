/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_parse.h - what the two halves of the parser share. Functions that return a node return NULL
 * after recording the error. */
#ifndef AEG_TEXT_JINJA_PARSE_H
#define AEG_TEXT_JINJA_PARSE_H

#include "base/error.h"
#include "text/jinja_lex.h"
#include "text/jinja_tree.h"

/* Symbols with a meaning of their own, interned first. */
enum { AEG_JSYM_LOOP, AEG_JSYM_CALLER, AEG_JSYM_VARARGS, AEG_JSYM_KWARGS };

enum { AEG_JINJA_MAX_NESTING = 128 }; /* brackets and blocks inside each other; public templates: about 12 */

typedef struct {
    aeg_jinja *t;
    aeg_jlexer lx;
    size_t pos;              /* of the current token          */
    aegis_error *err;
    aegis_status status;
    uint32_t depth;
    uint32_t n_loops;        /* loops around the current tag, inside the current macro */
    uint32_t n_all_loops;    /* macros or not */
    aeg_jmacro_def *macro;   /* the innermost, or NULL        */
    uint32_t cap_symbols;
    uint32_t *index;         /* of symbols, open addressing   */
    uint32_t n_index;
} aeg_jparser;

/* jinja_parse.c */
aegis_status aeg_jin_parse(aeg_jparser *p, aeg_jinja *t, const char *text, size_t n, aeg_memory *memory,
                           aegis_error *err);
const aeg_jtoken *aeg_jparse_token(const aeg_jparser *p); /* current */
bool aeg_jparse_is_name(const aeg_jparser *p, const char *name);
bool aeg_jparse_skip_name(aeg_jparser *p, const char *name);
bool aeg_jparse_skip(aeg_jparser *p, uint8_t type);
bool aeg_jparse_expect(aeg_jparser *p, uint8_t type, const char *what);
void *aeg_jparse_fail(aeg_jparser *p, uint32_t line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void *aeg_jparse_unexpected(aeg_jparser *p, const char *expected); /* names the current token */
void *aeg_jparse_alloc(aeg_jparser *p, size_t n, size_t size);     /* cleared */
aeg_jnode *aeg_jparse_node(aeg_jparser *p, aeg_jkind kind, uint32_t line);
bool aeg_jparse_symbol(aeg_jparser *p, const char *s, size_t n, uint32_t *out);
bool aeg_jparse_enter(aeg_jparser *p); /* pair with p->depth-- when true */

/* A list that grows while parsing. */
typedef struct {
    const aeg_jnode **items;
    uint32_t n, cap;
} aeg_jnodes;
bool aeg_jparse_push(aeg_jparser *p, aeg_jnodes *list, const aeg_jnode *node);

/* jinja_scope.c: fill `unset` of every body that is a scope. */
bool aeg_jparse_scopes(aeg_jparser *p, aeg_jbody *body);

/* jinja_parse_expr.c */
const aeg_jnode *aeg_jparse_expression(aeg_jparser *p);
/* Comma-separated values make a tuple. `end_name` (or NULL) ends it like a closing tag does. */
const aeg_jnode *aeg_jparse_tuple(aeg_jparser *p, bool with_cond, const char *end_name);
const aeg_jnode *aeg_jparse_filters(aeg_jparser *p, const aeg_jnode *node, bool inline_start);
const aeg_jnode *aeg_jparse_target(aeg_jparser *p, const char *end_name); /* names and tuples of names */

/* jinja_parse_tag.c: one statement; NULL with p->status AEGIS_OK: it produces nothing. */
const aeg_jnode *aeg_jparse_statement(aeg_jparser *p);
/* The body up to one of `ends` (NULL-terminated), whose name becomes the current token. */
bool aeg_jparse_body(aeg_jparser *p, const char *const *ends, aeg_jbody *out);

#endif
