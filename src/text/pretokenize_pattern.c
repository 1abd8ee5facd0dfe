/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "text/pretokenize.h"

/* Unicode White_Space and its complement. PCRE2's \s would add U+180E. */
#define SPACES "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define NO_SPACES                                                                                          \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}" \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"

enum { MAX_PATTERN = 4096, GROWTH = 100 /* of \S in a class, 2 bytes to under 200 */ };

typedef struct {
    const char *in;
    size_t n, at;
    char *out;
    size_t out_n;
    bool in_class;
    aegis_error *err;
} translator;

static aegis_status refuse(const translator *t, size_t from, size_t n, const char *why)
{
    if (n > t->n - from)
        n = t->n - from;
    return aeg_fail(t->err, AEGIS_E_MODEL, "pre-tokenizer pattern: '%.*s' at byte %zu: %s", (int)n, t->in + from, from,
                    why);
}

static void put(translator *t, const char *s, size_t n)
{
    memcpy(t->out + t->out_n, s, n);
    t->out_n += n;
}

static void put_text(translator *t, const char *s) { put(t, s, strlen(s)); }

static bool next_is(const translator *t, const char *s)
{
    const size_t n = strlen(s);
    return t->n - t->at >= n && memcmp(t->in + t->at, s, n) == 0;
}

static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/* \p{X}, \P{X}: general categories (L, Lu) as they are, longer names as scripts. Since 10.40 a bare script
 * name means script *extensions* to PCRE2, which Oniguruma does not know. */
static aegis_status translate_property(translator *t)
{
    const size_t from = t->at;
    size_t i = t->at + 2;
    if (i >= t->n || t->in[i] != '{')
        return refuse(t, from, 3, "expected a property name in braces");
    const size_t name = ++i;
    while (i < t->n && t->in[i] != '}')
        i++;
    const size_t name_n = i - name;
    if (i == t->n || name_n == 0 || name_n > 32)
        return refuse(t, from, 16, "unfinished property name");
    for (size_t k = name; k < i; k++)
        if (!((t->in[k] >= 'a' && t->in[k] <= 'z') || (t->in[k] >= 'A' && t->in[k] <= 'Z') || t->in[k] == '_'))
            return refuse(t, from, i + 1 - from, "property not understood");
    put(t, t->in + from, 3);
    if (name_n > 2)
        put_text(t, "sc:");
    put(t, t->in + name, name_n + 1);
    t->at = i + 1;
    return AEGIS_OK;
}

/* \xHH, \x{H...}, \uHHHH -> \x{H...} */
static aegis_status translate_code(translator *t)
{
    const size_t from = t->at;
    size_t i = t->at + 2;
    const bool braces = t->in[from + 1] == 'x' && i < t->n && t->in[i] == '{';
    const size_t limit = braces ? 6 : t->in[from + 1] == 'x' ? 2 : 4;
    if (braces)
        i++;
    const size_t digits = i;
    while (i < t->n && i - digits < limit && is_hex(t->in[i]))
        i++;
    const size_t n_digits = i - digits;
    if (n_digits == 0 || (!braces && n_digits != limit) || (braces && (i == t->n || t->in[i] != '}')))
        return refuse(t, from, 10, "character code not understood");
    put_text(t, "\\x{");
    put(t, t->in + digits, n_digits);
    put_text(t, "}");
    t->at = i + (braces ? 1 : 0);
    return AEGIS_OK;
}

static aegis_status translate_escape(translator *t)
{
    if (t->at + 1 >= t->n)
        return refuse(t, t->at, 1, "nothing follows the backslash");
    const char c = t->in[t->at + 1];
    switch (c) {
    case 'p':
    case 'P':
        return translate_property(t);
    case 'x':
    case 'u':
        return translate_code(t);
    case 's':
        put_text(t, t->in_class ? SPACES : "[" SPACES "]");
        break;
    case 'S':
        put_text(t, t->in_class ? NO_SPACES : "[^" SPACES "]");
        break;
    case 'd': /* \p{Nd} to both */
    case 'D':
    case 'r':
    case 'n':
    case 't':
    case 'f':
        put(t, t->in + t->at, 2);
        break;
    case 'A':
    case 'z':
        if (t->in_class)
            return refuse(t, t->at, 2, "not understood in a class");
        put(t, t->in + t->at, 2);
        break;
    default:
        /* Letters and digits mean different things to the two (\h, \w, \R, \1); the rest is itself. */
        if (c < 0x21 || c > 0x7E || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
            return refuse(t, t->at, 2, "escape not understood");
        put(t, t->in + t->at, 2);
        break;
    }
    t->at += 2;
    return AEGIS_OK;
}

static aegis_status translate_class(translator *t)
{
    put(t, "[", 1);
    t->at++;
    if (t->at < t->n && t->in[t->at] == '^') {
        put(t, "^", 1);
        t->at++;
    }
    if (t->at < t->n && t->in[t->at] == ']')
        return refuse(t, t->at, 1, "empty class");
    t->in_class = true;
    while (t->at < t->n && t->in[t->at] != ']') {
        if (t->in[t->at] == '\\') {
            AEG_TRY(translate_escape(t));
            continue;
        }
        if (t->in[t->at] == '[')
            return refuse(t, t->at, 8, "class inside a class");
        if (next_is(t, "&&"))
            return refuse(t, t->at, 8, "intersection of classes");
        put(t, t->in + t->at++, 1);
    }
    t->in_class = false;
    if (t->at == t->n)
        return refuse(t, t->n, 0, "unfinished class");
    put(t, "]", 1);
    t->at++;
    return AEGIS_OK;
}

static aegis_status translate_group(translator *t)
{
    static const char *const known[] = { "(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>" };
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
        if (next_is(t, known[k])) {
            put_text(t, known[k]);
            t->at += strlen(known[k]);
            return AEGIS_OK;
        }
    if (next_is(t, "(?") || next_is(t, "(*"))
        return refuse(t, t->at, 6, "group not understood");
    put(t, "(", 1);
    t->at++;
    return AEGIS_OK;
}

static aegis_status translate_one(translator *t)
{
    switch (t->in[t->at]) {
    case '\\': return translate_escape(t);
    case '[': return translate_class(t);
    case '(': return translate_group(t);
    case '{':
        if (next_is(t, "{,"))
            return refuse(t, t->at, 4, "repeat without a minimum");
        break;
    case '}':
        if (next_is(t, "}+"))
            return refuse(t, t->at, 2, "a counted repeat that is repeated");
        break;
    case '\0': return refuse(t, t->at, 0, "NUL character");
    default: break;
    }
    put(t, t->in + t->at++, 1);
    return AEGIS_OK;
}

aegis_status aeg_pattern_translate(const char *text, size_t n, char **out, aeg_memory *memory, aegis_error *err)
{
    if (n > MAX_PATTERN)
        return aeg_fail(err, AEGIS_E_MODEL, "pre-tokenizer pattern: %zu bytes, expected at most %d", n, MAX_PATTERN);
    translator t = { .in = text, .n = n, .err = err };
    t.out = aeg_malloc(memory, n * GROWTH + 1);
    if (t.out == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a pre-tokenizer pattern");
    while (t.at < n) {
        const aegis_status status = translate_one(&t);
        if (status != AEGIS_OK) {
            aeg_free(memory, t.out);
            return status;
        }
    }
    t.out[t.out_n] = '\0';
    *out = t.out;
    return AEGIS_OK;
}
