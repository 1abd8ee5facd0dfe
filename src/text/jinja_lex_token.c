/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens inside a tag: names, numbers, strings, operators. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja_lex.h"
#include "text/jinja_text.h"

static aegis_status bad(aeg_jlexer *lx, uint32_t line, const char *what)
{
    return aeg_fail(lx->err, AEGIS_E_MODEL, "chat template line %u: %s", line, what);
}

aegis_status aeg_jin_lex_push(aeg_jlexer *lx, aeg_jtoken token)
{
    if (lx->n_tokens == AEG_JINJA_MAX_TOKENS)
        return aeg_fail(lx->err, AEGIS_E_MODEL, "chat template line %u: more than %d tokens", token.line,
                        AEG_JINJA_MAX_TOKENS);
    if (lx->n_tokens == lx->cap) {
        const size_t cap = lx->cap == 0 ? 256 : lx->cap * 2;
        aeg_jtoken *t = aeg_realloc(lx->memory, lx->tokens, cap * sizeof *t);
        if (t == NULL)
            return aeg_fail(lx->err, AEGIS_E_MEMORY, "chat template: no memory for %zu tokens", cap);
        lx->tokens = t;
        lx->cap = cap;
    }
    lx->tokens[lx->n_tokens++] = token;
    return AEGIS_OK;
}

static bool digit_of(int c, int base)
{
    if (c >= '0' && c <= '9')
        return c - '0' < base;
    return base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
}

/* Digits with single underscores between them; returns the position behind them. */
static size_t digits(const aeg_jlexer *lx, size_t pos, int base)
{
    while (pos < lx->n) {
        if (digit_of((unsigned char)lx->s[pos], base))
            pos++;
        else if (lx->s[pos] == '_' && pos + 1 < lx->n && digit_of((unsigned char)lx->s[pos + 1], base))
            pos += 2;
        else
            break;
    }
    return pos;
}

static aegis_status push_number(aeg_jlexer *lx, size_t start, size_t end, int base, bool is_float)
{
    char text[128];
    size_t n = 0;
    for (size_t i = start; i < end; i++) {
        if (lx->s[i] == '_')
            continue;
        if (n == sizeof text - 1)
            return bad(lx, lx->line, "number of more than 127 digits");
        text[n++] = lx->s[i];
    }
    text[n] = '\0';
    aeg_jtoken t = { .type = is_float ? JT_FLOAT : JT_INT, .line = lx->line };
    if (is_float) {
        t.f = strtod(text, NULL);
    } else {
        errno = 0;
        t.i = strtoll(text, NULL, base);
        if (errno != 0)
            return bad(lx, lx->line, "integer that does not fit 64 bits");
    }
    lx->pos = end;
    return aeg_jin_lex_push(lx, t);
}

static aegis_status lex_number(aeg_jlexer *lx)
{
    const char *s = lx->s;
    const size_t start = lx->pos, n = lx->n;
    size_t end = digits(lx, start, 10);
    /* A float has a point with digits on both sides, an exponent or both, and no point before it
     * ("a.0.1" is two subscripts). */
    if (start == 0 || s[start - 1] != '.') {
        size_t f = end;
        bool is_float = false;
        if (f + 1 < n && s[f] == '.' && isdigit((unsigned char)s[f + 1])) {
            f = digits(lx, f + 1, 10);
            is_float = true;
        }
        size_t e = f;
        if (e < n && (s[e] == 'e' || s[e] == 'E')) {
            e++;
            if (e < n && (s[e] == '+' || s[e] == '-'))
                e++;
            if (e < n && isdigit((unsigned char)s[e])) {
                f = digits(lx, e, 10);
                is_float = true;
            }
        }
        if (is_float)
            return push_number(lx, start, f, 10, true);
    }
    if (s[start] == '0' && start + 1 < n) {
        const int c = tolower((unsigned char)s[start + 1]);
        const int base = c == 'b' ? 2 : c == 'o' ? 8 : c == 'x' ? 16 : 0;
        size_t first = start + 2;
        if (base != 0 && first < n && s[first] == '_')
            first++;
        if (base != 0 && first < n && digit_of((unsigned char)s[first], base))
            return push_number(lx, start + 2, digits(lx, first, base), base, false);
    }
    if (s[start] == '0') { /* zeros only: "007" is three tokens in Jinja2, never valid */
        end = start + 1;
        while (end < n && (s[end] == '0' || (s[end] == '_' && end + 1 < n && s[end + 1] == '0')))
            end++;
    }
    return push_number(lx, start, end, 10, false);
}

/* The code point of an escape with `n` hex digits at s; false if they are not there. */
static bool hex(const char *s, size_t left, size_t n, uint32_t *out)
{
    *out = 0;
    if (left < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!digit_of((unsigned char)s[i], 16))
            return false;
        const int c = tolower((unsigned char)s[i]);
        *out = *out << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

/* A backslash before a character beyond ASCII: Jinja2 escapes the text to ASCII first, so Python sees
 * an escaped backslash and then the letters of the character's own escape. Kept for equality. */
static size_t quirk(const char *s, size_t n, char *out, size_t *used)
{
    uint32_t cp;
    const size_t k = aeg_text_decode(s, n, &cp);
    char text[16];
    const int m = snprintf(text, sizeof text, cp < 0x100 ? "x%02x" : cp < 0x10000 ? "u%04x" : "U%08x", cp);
    out[0] = '\\';
    memcpy(out + 1, text, (size_t)m);
    *used = k;
    return (size_t)m + 1;
}

/* One escape sequence at s (behind the backslash): bytes written to out, 0 if wrong. */
static size_t unescape(const char *s, size_t n, char *out, size_t *used)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    const char *simple = strchr(from, s[0]);
    *used = 1;
    uint32_t cp = 0;
    if (s[0] != '\0' && simple != NULL) {
        out[0] = to[simple - from];
        return 1;
    }
    if (s[0] >= '0' && s[0] <= '7') {
        size_t k = 0;
        for (; k < 3 && k < n && s[k] >= '0' && s[k] <= '7'; k++)
            cp = cp * 8 + (uint32_t)(s[k] - '0');
        *used = k;
        return aeg_text_encode(cp, out);
    }
    if (s[0] == 'x' || s[0] == 'u' || s[0] == 'U') {
        const size_t k = s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : 8;
        *used = 1 + k;
        if (!hex(s + 1, n - 1, k, &cp) || cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000))
            return 0;
        return aeg_text_encode(cp, out);
    }
    if (s[0] == 'N')
        return 0; /* names of characters: not in our tables */
    if ((unsigned char)s[0] >= 0x80)
        return quirk(s, n, out, used);
    out[0] = '\\';
    out[1] = s[0];
    return 2;
}

static aegis_status lex_string(aeg_jlexer *lx)
{
    const char quote = lx->s[lx->pos];
    const uint32_t line = lx->line;
    size_t end = lx->pos + 1;
    while (end < lx->n && lx->s[end] != quote)
        end += lx->s[end] == '\\' ? 2 : 1;
    if (end >= lx->n)
        return bad(lx, line, "string without its closing quote");
    const char *s = lx->s + lx->pos + 1;
    const size_t n = end - lx->pos - 1;
    char *out = aeg_jarena_text(lx->arena, n * 4 + 16); /* the quirk above is the only growth: 3 bytes to 6 */
    if (out == NULL)
        return aeg_fail(lx->err, AEGIS_E_MEMORY, "chat template line %u: no memory for a string", line);
    size_t m = 0;
    for (size_t i = 0; i < n;) {
        lx->line += s[i] == '\n';
        if (s[i] != '\\') {
            out[m++] = s[i++];
            continue;
        }
        i++;
        if (s[i] == '\n') { /* a joined line */
            lx->line++;
            i++;
            continue;
        }
        size_t used;
        const size_t k = unescape(s + i, n - i, out + m, &used);
        if (k == 0)
            return bad(lx, lx->line, "escape in a string that is truncated, a surrogate or \\N");
        m += k;
        i += used;
    }
    lx->pos = end + 1;
    return aeg_jin_lex_push(lx, (aeg_jtoken){ .type = JT_STRING, .line = line, .p = out, .n = m });
}

/* Longest first. */
static const struct {
    const char text[3];
    uint8_t type;
} operators[] = {
    { "//", JT_FLOORDIV }, { "**", JT_POW }, { "==", JT_EQ }, { "!=", JT_NE }, { "<=", JT_LE },
    { ">=", JT_GE }, { "+", JT_ADD }, { "-", JT_SUB }, { "*", JT_MUL }, { "/", JT_DIV }, { "%", JT_MOD },
    { "~", JT_TILDE }, { "<", JT_LT }, { ">", JT_GT }, { "=", JT_ASSIGN }, { ".", JT_DOT },
    { ",", JT_COMMA }, { ":", JT_COLON }, { "|", JT_PIPE }, { ";", JT_SEMICOLON }, { "(", JT_LPAREN },
    { ")", JT_RPAREN }, { "[", JT_LBRACKET }, { "]", JT_RBRACKET }, { "{", JT_LBRACE }, { "}", JT_RBRACE },
};

static aegis_status track_bracket(aeg_jlexer *lx, uint8_t type)
{
    static const char closer_of[] = ")]}";
    if (type == JT_LPAREN || type == JT_LBRACKET || type == JT_LBRACE) {
        if (lx->n_closers == sizeof lx->closers)
            return bad(lx, lx->line, "more than 256 open brackets");
        lx->closers[lx->n_closers++] = closer_of[(type - JT_LPAREN) / 2];
    } else if (type == JT_RPAREN || type == JT_RBRACKET || type == JT_RBRACE) {
        const char found = closer_of[(type - JT_LPAREN) / 2];
        if (lx->n_closers == 0)
            return aeg_fail(lx->err, AEGIS_E_MODEL, "chat template line %u: '%c' without its opening bracket",
                            lx->line, found);
        if (lx->closers[--lx->n_closers] != found)
            return aeg_fail(lx->err, AEGIS_E_MODEL, "chat template line %u: found '%c', expected '%c'",
                            lx->line, found, lx->closers[lx->n_closers]);
    }
    return AEGIS_OK;
}

aegis_status aeg_jin_lex_token(aeg_jlexer *lx)
{
    const unsigned char c = (unsigned char)lx->s[lx->pos];
    if (isdigit(c))
        return lex_number(lx);
    if (isalpha(c) || c == '_') {
        size_t end = lx->pos;
        while (end < lx->n && (isalnum((unsigned char)lx->s[end]) || lx->s[end] == '_'))
            end++;
        const aeg_jtoken t = { .type = JT_NAME, .line = lx->line, .p = lx->s + lx->pos, .n = end - lx->pos };
        lx->pos = end;
        return aeg_jin_lex_push(lx, t);
    }
    if (c == '\'' || c == '"')
        return lex_string(lx);
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        const size_t n = strlen(operators[i].text);
        if (lx->n - lx->pos < n || memcmp(lx->s + lx->pos, operators[i].text, n) != 0)
            continue;
        AEG_TRY(track_bracket(lx, operators[i].type));
        lx->pos += n;
        return aeg_jin_lex_push(lx, (aeg_jtoken){ .type = operators[i].type, .line = lx->line,
                                                  .p = operators[i].text, .n = n });
    }
    uint32_t cp;
    aeg_text_decode(lx->s + lx->pos, lx->n - lx->pos, &cp);
    return aeg_fail(lx->err, AEGIS_E_MODEL, "chat template line %u: unexpected character U+%04X", lx->line, cp);
}

const char *aeg_jin_token_text(const aeg_jtoken *t, char *buf, size_t n)
{
    switch (t->type) {
    case JT_EOF: return "the end of the template";
    case JT_DATA: return "text";
    case JT_VARIABLE_BEGIN: return "'{{'";
    case JT_VARIABLE_END: return "'}}'";
    case JT_BLOCK_BEGIN: return "'{%'";
    case JT_BLOCK_END: return "'%}'";
    case JT_STRING: return "a string";
    case JT_INT: return "an integer";
    case JT_FLOAT: return "a number";
    default: break;
    }
    snprintf(buf, n, "'%.*s'", (int)(t->n > 60 ? 60 : t->n), t->p);
    return buf;
}
