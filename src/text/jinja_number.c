/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja_number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text/jinja_text.h"

const char *aeg_float_repr(double f, char out[AEG_FLOAT_TEXT])
{
    if (isnan(f))
        return strcpy(out, "nan");
    if (isinf(f))
        return strcpy(out, f < 0 ? "-inf" : "inf");
    char text[AEG_FLOAT_TEXT];
    int precision = 0;
    do
        snprintf(text, sizeof text, "%.*e", precision, f);
    while (strtod(text, NULL) != f && ++precision < 17);

    /* text is [-]d[.ddd]e[+-]xx: lay its digits out as Python does. */
    char digits[24];
    size_t n = 0;
    const char *p = text + (text[0] == '-');
    for (; *p != 'e'; p++)
        if (*p != '.')
            digits[n++] = *p;
    digits[n] = '\0';
    const int exponent = atoi(p + 1);
    const char *sign = text[0] == '-' ? "-" : "";
    if (exponent < -4 || exponent >= 16)
        snprintf(out, AEG_FLOAT_TEXT, "%s%c%s%se%c%02d", sign, digits[0], n > 1 ? "." : "", digits + 1,
                 exponent < 0 ? '-' : '+', abs(exponent));
    else if (exponent < 0)
        snprintf(out, AEG_FLOAT_TEXT, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
    else if ((size_t)exponent + 1 >= n)
        snprintf(out, AEG_FLOAT_TEXT, "%s%.17s%.*s.0", sign, digits, exponent + 1 - (int)n, "000000000000000");
    else
        snprintf(out, AEG_FLOAT_TEXT, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
    return out;
}

static void strip(const char **s, size_t *n)
{
    size_t k;
    bool ascii = true;
    for (size_t i = 0; ascii && i < *n; i++)
        ascii = (unsigned char)(*s)[i] < 0x80;
    if (ascii) { /* Python then looks for C's spaces alone, without U+001C to U+001F */
        while (*n > 0 && isspace((unsigned char)**s)) {
            ++*s;
            --*n;
        }
        while (*n > 0 && isspace((unsigned char)(*s)[*n - 1]))
            --*n;
        return;
    }
    while ((k = aeg_text_space_at(*s, *n, 0)) != 0) {
        *s += k;
        *n -= k;
    }
    while ((k = aeg_text_space_before(*s, 0, *n)) != 0)
        *n -= k;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (isalpha((unsigned char)c))
        return tolower((unsigned char)c) - 'a' + 10;
    return 99;
}

aeg_parse_result aeg_int_parse(const char *s, size_t n, int base, int64_t *out)
{
    strip(&s, &n);
    const bool negative = n > 0 && s[0] == '-';
    if (n > 0 && (s[0] == '-' || s[0] == '+')) {
        s++;
        n--;
    }
    if (n > 2 && s[0] == '0') {
        const int c = tolower((unsigned char)s[1]);
        const int prefix = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        if (prefix != 0 && (base == prefix || base == 0)) {
            base = prefix;
            s += 2;
            n -= 2;
            if (s[0] == '_') {
                s++;
                n--;
            }
        }
    }
    if (n == 0)
        return AEG_PARSE_BAD;
    const bool decimal_only = base == 0;
    if (base == 0)
        base = 10;
    int64_t value = 0;
    bool range = false;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '_' && i > 0 && s[i - 1] != '_' && i + 1 < n)
            continue;
        const int d = digit_value(s[i]);
        if (d >= base)
            return AEG_PARSE_BAD;
        range = range || __builtin_mul_overflow(value, base, &value) ||
                __builtin_add_overflow(value, negative ? -d : d, &value);
    }
    if (decimal_only && s[0] == '0' && value != 0)
        return AEG_PARSE_BAD;
    *out = value;
    return range ? AEG_PARSE_RANGE : AEG_PARSE_OK;
}

bool aeg_float_parse(const char *s, size_t n, double *out)
{
    char text[512];
    strip(&s, &n);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '_' && i > 0 && isdigit((unsigned char)s[i - 1]) && i + 1 < n &&
            isdigit((unsigned char)s[i + 1]))
            continue;
        if (m == sizeof text - 1 || strchr("0123456789+-.eEinfatyINFATY", s[i]) == NULL || s[i] == '\0')
            return false;
        text[m++] = s[i];
    }
    text[m] = '\0';
    const char *word = text + (text[0] == '-' || text[0] == '+');
    const bool is_word = strcasecmp(word, "nan") == 0 || strcasecmp(word, "inf") == 0 ||
                         strcasecmp(word, "infinity") == 0;
    if (m == 0 || (!is_word && strpbrk(word, "infatyINFATY") != NULL))
        return false;
    char *end;
    *out = strtod(text, &end);
    return *end == '\0' && end != text;
}
