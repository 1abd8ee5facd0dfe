/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_lex.h - a template's text as tokens, whitespace control already applied. */
#ifndef AEG_TEXT_JINJA_LEX_H
#define AEG_TEXT_JINJA_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "text/jinja_arena.h"

typedef enum {
    JT_EOF, JT_DATA, JT_VARIABLE_BEGIN, JT_VARIABLE_END, JT_BLOCK_BEGIN, JT_BLOCK_END,
    JT_NAME, JT_STRING, JT_INT, JT_FLOAT,
    JT_ADD, JT_SUB, JT_MUL, JT_DIV, JT_FLOORDIV, JT_MOD, JT_POW, JT_TILDE,
    JT_EQ, JT_NE, JT_LT, JT_LE, JT_GT, JT_GE, JT_ASSIGN, JT_DOT, JT_COMMA, JT_COLON, JT_PIPE, JT_SEMICOLON,
    JT_LPAREN, JT_RPAREN, JT_LBRACKET, JT_RBRACKET, JT_LBRACE, JT_RBRACE,
} aeg_jtoken_type;

typedef struct {
    uint8_t type;
    uint32_t line;
    const char *p; /* data, names, strings (unescaped) */
    size_t n;
    int64_t i;
    double f;
} aeg_jtoken;

enum { AEG_JINJA_MAX_TOKENS = 1 << 20 };

typedef struct {
    const char *s; /* newlines are \n, the final one is gone */
    size_t n, pos;
    uint32_t line;
    bool trim_left;    /* the last tag ended with -%} or the like */
    char closers[256]; /* the brackets that are open              */
    uint32_t n_closers;
    aeg_jarena *arena;     /* for the text of tokens   */
    aeg_memory *memory;    /* for the token array      */
    aeg_jtoken *tokens;
    size_t n_tokens, cap;
    aegis_error *err;
} aeg_jlexer;

/* Fill lx->tokens, which the caller frees with aeg_free(memory, ...) also after a failure. */
aegis_status aeg_jin_lex(aeg_jlexer *lx, const char *text, size_t n, aeg_jarena *arena, aeg_memory *memory,
                         aegis_error *err);

/* jinja_lex_token.c: one token inside a tag, which is not its end. */
aegis_status aeg_jin_lex_token(aeg_jlexer *lx);
aegis_status aeg_jin_lex_push(aeg_jlexer *lx, aeg_jtoken token);
const char *aeg_jin_token_text(const aeg_jtoken *t, char *buf, size_t n); /* for messages */

#endif
