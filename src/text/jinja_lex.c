/* SPDX-License-Identifier: Apache-2.0 */
/* Text, tags, comments and raw blocks. trim_blocks and lstrip_blocks are always on, as Hugging Face
 * renders; the rules are those of Jinja2's lexer, which are regular expressions there. */
#include "text/jinja_lex.h"

#include <string.h>

#include "text/jinja_text.h"

static bool at(const aeg_jlexer *lx, size_t pos, const char *s)
{
    const size_t n = strlen(s);
    return pos <= lx->n && lx->n - pos >= n && memcmp(lx->s + pos, s, n) == 0;
}

static void advance(aeg_jlexer *lx, size_t to)
{
    for (size_t i = lx->pos; i < to; i++)
        lx->line += lx->s[i] == '\n';
    lx->pos = to;
}

static size_t skip_space(const aeg_jlexer *lx, size_t pos)
{
    while (pos < lx->n) {
        const size_t k = aeg_text_space_at(lx->s, lx->n, pos);
        if (k == 0)
            break;
        pos += k;
    }
    return pos;
}

static size_t trim_end(const char *s, size_t start, size_t end)
{
    while (end > start) {
        const size_t k = aeg_text_space_before(s, start, end);
        if (k == 0)
            break;
        end -= k;
    }
    return end;
}

/* The end of a block or comment at `pos` ("%}" or "#}" with its sign): where the text goes on, or 0. */
static size_t end_of_tag(const aeg_jlexer *lx, size_t pos, const char *end)
{
    char signed_end[4] = { '-', end[0], end[1], '\0' };
    if (at(lx, pos, signed_end))
        return skip_space(lx, pos + 3);
    signed_end[0] = '+';
    if (at(lx, pos, signed_end))
        return pos + 3;
    if (!at(lx, pos, end))
        return 0;
    pos += 2;
    return pos < lx->n && lx->s[pos] == '\n' ? pos + 1 : pos; /* trim_blocks */
}

/* "{%- raw -%}" at pos: where the raw text starts, or 0. */
static size_t raw_begin(const aeg_jlexer *lx, size_t pos)
{
    pos += 2;
    if (pos < lx->n && (lx->s[pos] == '-' || lx->s[pos] == '+'))
        pos++;
    pos = skip_space(lx, pos);
    if (!at(lx, pos, "raw"))
        return 0;
    pos = skip_space(lx, pos + 3);
    if (at(lx, pos, "-%}"))
        return skip_space(lx, pos + 3);
    return at(lx, pos, "%}") ? pos + 2 : 0; /* trim_blocks does not apply here */
}

/* "{%- endraw -%}" at pos: where the text goes on, or 0. */
static size_t raw_end(const aeg_jlexer *lx, size_t pos)
{
    pos += 2;
    if (pos < lx->n && (lx->s[pos] == '-' || lx->s[pos] == '+'))
        pos++;
    pos = skip_space(lx, pos);
    if (!at(lx, pos, "endraw"))
        return 0;
    return end_of_tag(lx, skip_space(lx, pos + 6), "%}");
}

/* The text [lx->pos, end) before a tag at `end`, stripped as the tag's sign and lstrip_blocks say. */
static aegis_status push_text(aeg_jlexer *lx, size_t end, bool is_variable)
{
    const size_t start = lx->pos;
    const char sign = end + 2 < lx->n ? lx->s[end + 2] : '\0';
    size_t stop = end;

    if (sign == '-') {
        stop = trim_end(lx->s, start, end);
    } else if (sign != '+' && !is_variable) {
        size_t line = end;
        while (line > start && lx->s[line - 1] != '\n')
            line--;
        /* Text that follows a tag on its line is not at a line's start. */
        const bool starts_line = line > start || start == 0 || lx->s[start - 1] == '\n';
        if (starts_line && trim_end(lx->s, line, end) == line)
            stop = line;
    }
    aegis_status status = AEGIS_OK;
    if (stop > start)
        status = aeg_jin_lex_push(lx, (aeg_jtoken){ .type = JT_DATA, .line = lx->line, .p = lx->s + start,
                                                    .n = stop - start });
    advance(lx, end);
    return status;
}

static aegis_status lex_raw(aeg_jlexer *lx, size_t body)
{
    const uint32_t line = lx->line;
    advance(lx, body);
    for (size_t i = lx->pos; i + 1 < lx->n; i++) {
        size_t end;
        if (lx->s[i] != '{' || lx->s[i + 1] != '%' || (end = raw_end(lx, i)) == 0)
            continue;
        AEG_TRY(push_text(lx, i, false));
        advance(lx, end);
        return AEGIS_OK;
    }
    if (lx->pos == lx->n) /* Jinja2 lets an opening tag end the template */
        return AEGIS_OK;
    return aeg_fail(lx->err, AEGIS_E_MODEL, "chat template line %u: raw block without endraw", line);
}

static aegis_status lex_comment(aeg_jlexer *lx)
{
    const uint32_t line = lx->line;
    /* The comment's own sign was read with its opening: "{#-#}" is closed, "{#}" is not. */
    size_t i = lx->pos + 2;
    if (i < lx->n && (lx->s[i] == '-' || lx->s[i] == '+'))
        i++;
    for (; i < lx->n; i++) {
        const size_t end = end_of_tag(lx, i, "#}");
        if (end != 0) {
            advance(lx, end);
            return AEGIS_OK;
        }
    }
    if (lx->n - lx->pos <= 3 && (lx->n - lx->pos == 2 || lx->s[lx->n - 1] == '-' || lx->s[lx->n - 1] == '+')) {
        advance(lx, lx->n); /* as above */
        return AEGIS_OK;
    }
    return aeg_fail(lx->err, AEGIS_E_MODEL, "chat template line %u: comment without #}", line);
}

/* A block or variable tag at lx->pos, up to its end. */
static aegis_status lex_tag(aeg_jlexer *lx, bool is_variable)
{
    const uint32_t line = lx->line;
    AEG_TRY(aeg_jin_lex_push(lx, (aeg_jtoken){ .type = is_variable ? JT_VARIABLE_BEGIN : JT_BLOCK_BEGIN,
                                               .line = line }));
    size_t start = lx->pos + 2;
    if (start < lx->n && (lx->s[start] == '-' || lx->s[start] == '+'))
        start++;
    advance(lx, start);
    lx->n_closers = 0;
    for (;;) {
        advance(lx, skip_space(lx, lx->pos));
        if (lx->pos >= lx->n)
            return aeg_fail(lx->err, AEGIS_E_MODEL, "chat template line %u: tag without %s", line,
                            is_variable ? "}}" : "%}");
        size_t end = 0;
        if (lx->n_closers > 0)
            end = 0; /* "}}" inside brackets closes two dicts */
        else if (!is_variable)
            end = end_of_tag(lx, lx->pos, "%}");
        else if (at(lx, lx->pos, "-}}"))
            end = skip_space(lx, lx->pos + 3);
        else if (at(lx, lx->pos, "}}"))
            end = lx->pos + 2;
        if (end != 0) {
            AEG_TRY(aeg_jin_lex_push(lx, (aeg_jtoken){ .type = is_variable ? JT_VARIABLE_END : JT_BLOCK_END,
                                                       .line = lx->line }));
            advance(lx, end);
            return AEGIS_OK;
        }
        AEG_TRY(aeg_jin_lex_token(lx));
    }
}

static aegis_status lex_all(aeg_jlexer *lx)
{
    size_t i = lx->pos;
    while (i + 1 < lx->n) {
        const char kind = lx->s[i] == '{' ? lx->s[i + 1] : '\0';
        if (kind != '%' && kind != '{' && kind != '#') {
            i++;
            continue;
        }
        AEG_TRY(push_text(lx, i, kind == '{'));
        const size_t raw = kind == '%' ? raw_begin(lx, i) : 0;
        if (raw != 0)
            AEG_TRY(lex_raw(lx, raw));
        else if (kind == '#')
            AEG_TRY(lex_comment(lx));
        else
            AEG_TRY(lex_tag(lx, kind == '{'));
        i = lx->pos;
    }
    if (lx->pos < lx->n)
        AEG_TRY(aeg_jin_lex_push(lx, (aeg_jtoken){ .type = JT_DATA, .line = lx->line, .p = lx->s + lx->pos,
                                                   .n = lx->n - lx->pos }));
    advance(lx, lx->n);
    return aeg_jin_lex_push(lx, (aeg_jtoken){ .type = JT_EOF, .line = lx->line });
}

aegis_status aeg_jin_lex(aeg_jlexer *lx, const char *text, size_t n, aeg_jarena *arena, aeg_memory *memory,
                         aegis_error *err)
{
    *lx = (aeg_jlexer){ .line = 1, .arena = arena, .memory = memory, .err = err };
    char *s = aeg_jarena_text(arena, n + 1);
    if (s == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "chat template: no memory for its %zu bytes", n);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r') {
            s[m++] = '\n';
            if (i + 1 < n && text[i + 1] == '\n')
                i++;
        } else {
            s[m++] = text[i];
        }
    }
    if (m > 0 && s[m - 1] == '\n')
        m--; /* keep_trailing_newline is off */
    s[m] = '\0';
    lx->s = s;
    lx->n = m;
    size_t bad;
    if (!aeg_text_valid(s, m, &bad))
        return aeg_fail(err, AEGIS_E_MODEL, "chat template: not UTF-8 at byte %zu", bad);
    return lex_all(lx);
}
