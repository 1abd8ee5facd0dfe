/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow(aeg_text *t, size_t more)
{
    if (t->failed)
        return false;
    if (t->n + more < t->capacity)
        return true;
    size_t n = t->capacity == 0 ? 1024 : 2 * t->capacity;
    while (n <= t->n + more)
        n *= 2;
    char *grown = aeg_realloc(t->memory, t->data, n);
    if (grown == NULL) {
        t->failed = true;
        return false;
    }
    t->data = grown;
    t->capacity = n;
    return true;
}

void aeg_text_add(aeg_text *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    if (n > 0 && grow(t, (size_t)n + 1)) {
        vsnprintf(t->data + t->n, (size_t)n + 1, fmt, again);
        t->n += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

void aeg_text_number(aeg_text *t, double value)
{
    char number[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            break;
    }
    for (char *p = number; *p != '\0'; p++)
        if (*p == ',')
            *p = '.';
    aeg_text_add(t, "%s", number);
}

void aeg_text_string(aeg_text *t, const char *s)
{
    aeg_text_add(t, "\"");
    for (; *s != '\0'; s++) {
        const uint8_t c = (uint8_t)*s;
        if (c == '"' || c == '\\')
            aeg_text_add(t, "\\%c", c);
        else if (c < 0x20)
            aeg_text_add(t, "\\u%04x", c);
        else
            aeg_text_add(t, "%c", c);
    }
    aeg_text_add(t, "\"");
}

void aeg_text_free(aeg_text *t)
{
    aeg_free(t->memory, t->data);
    *t = (aeg_text){ .memory = t->memory };
}
