/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_tree.h - the syntax tree of a template. Built once by the parser, then read only. */
#ifndef AEG_TEXT_JINJA_TREE_H
#define AEG_TEXT_JINJA_TREE_H

#include "text/jinja.h"
#include "text/jinja_arena.h"
#include "text/jinja_value.h"

typedef enum {
    /* expressions */
    JN_CONST, JN_NAME, JN_LIST, JN_TUPLE, JN_DICT, JN_GETATTR, JN_GETITEM, JN_SLICE, JN_CALL, JN_FILTER,
    JN_TEST, JN_UNARY, JN_BINARY, JN_CONCAT, JN_AND, JN_OR, JN_NOT, JN_COMPARE, JN_COND,
    /* assignment target: an attribute of a namespace (the others are NAME and TUPLE) */
    JN_NSREF,
    /* statements */
    JN_TEXT, JN_OUTPUT, JN_FOR, JN_IF, JN_SET, JN_SETBLOCK, JN_WITH, JN_MACRO, JN_CALLBLOCK,
    JN_FILTERBLOCK, JN_SCOPE, JN_BREAK, JN_CONTINUE,
} aeg_jkind;

typedef enum {
    JO_ADD, JO_SUB, JO_MUL, JO_DIV, JO_FLOORDIV, JO_MOD, JO_POW, JO_NEG, JO_POS,
    JO_EQ, JO_NE, JO_LT, JO_LE, JO_GT, JO_GE, JO_IN, JO_NOT_IN,
} aeg_jop;

typedef struct aeg_jnode aeg_jnode;

/* Which field means what, by kind:
 *   NAME: sym. GETATTR, NSREF: sym = attribute, a = object. GETITEM: a, b. SLICE: a = object,
 *   list[0..2] = bounds or NULL. CALL: a = callee. FILTER, TEST: a = value (NULL: block), builtin.
 *   LIST, TUPLE, CONCAT, AND, OR, WITH values: list. DICT: list = key, value, key, value...
 *   COMPARE: a, list = operands, ops. COND: a if b else c (c NULL). UNARY, NOT: a. BINARY: a, b.
 *   OUTPUT: a. TEXT: value. FOR: a = target, b = iterable, c = filter or NULL, body, other.
 *   IF: list = conditions, bodies = one more than conditions when there is an else.
 *   SET: a = target, b = value. SETBLOCK: a = target, b = filter chain or NULL, body.
 *   MACRO, CALLBLOCK: macro; CALLBLOCK: a = the call. FILTERBLOCK: a = filter chain, body. */
typedef struct {
    const aeg_jnode **items;
    uint32_t n, n_unset;
    const uint32_t *unset; /* names that its scope starts without, see jinja_scope.c */
} aeg_jbody;

typedef struct {
    uint32_t name; /* symbol; UINT32_MAX for a call block */
    uint32_t n_params, n_defaults;
    const uint32_t *params;
    const aeg_jnode **defaults; /* of the last n_defaults parameters */
    aeg_jbody body;
    bool uses_caller, uses_varargs, uses_kwargs;
} aeg_jmacro_def;

struct aeg_jnode {
    uint8_t kind, op;
    uint32_t line, sym;
    uint32_t n, n_kw;      /* list: n positional, then n_kw keyword values */
    const aeg_jnode *a, *b, *c;
    const aeg_jnode **list;
    const char **names;    /* of the keyword values                         */
    const uint8_t *ops;    /* COMPARE                                       */
    const aeg_jbuiltin *builtin;
    aeg_jmacro_def *macro;
    aeg_jbody body, other, *bodies;
    aeg_jval value;
};

typedef struct {
    const char *p; /* NUL terminated */
    size_t n;
} aeg_jsymbol;

struct aeg_jinja {
    aeg_jarena arena;
    aeg_jbody body;
    aeg_jsymbol *symbols; /* in `arena` */
    uint32_t n_symbols;
};

#endif
