/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_text.h - UTF-8 as Python's str sees it: code points, whitespace, letter case. Thread: any. */
#ifndef AEG_TEXT_JINJA_TEXT_H
#define AEG_TEXT_JINJA_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One code point of the `n` >= 1 bytes at s; returns its bytes. A wrong byte counts as one code point,
 * U+FFFD, so that no input can stop the callers. */
size_t aeg_text_decode(const char *s, size_t n, uint32_t *cp);
size_t aeg_text_encode(uint32_t cp, char out[4]);
bool aeg_text_valid(const char *s, size_t n, size_t *bad);

size_t aeg_text_count(const char *s, size_t n);                       /* code points */
size_t aeg_text_offset(const char *s, size_t n, size_t code_points);  /* bytes of the first so many */
size_t aeg_text_before(const char *s, size_t start, size_t end);      /* bytes of the last code point */

bool aeg_text_is_space(uint32_t cp); /* str.isspace() */
/* Bytes of the whitespace character at pos / ending at end; 0 if there is another character. */
size_t aeg_text_space_at(const char *s, size_t n, size_t pos);
size_t aeg_text_space_before(const char *s, size_t start, size_t end);

bool aeg_text_is_printable(uint32_t cp); /* what repr() shows as it is */
bool aeg_text_is_cased(uint32_t cp);
bool aeg_text_is_case_ignorable(uint32_t cp);

typedef enum { AEG_CLASS_ALPHA, AEG_CLASS_DECIMAL, AEG_CLASS_DIGIT, AEG_CLASS_NUMERIC, AEG_CLASS_UPPER,
               AEG_CLASS_LOWER, AEG_CLASS_TITLE, AEG_CLASS_WORD } aeg_text_class;
bool aeg_text_is(uint32_t cp, aeg_text_class c);

typedef enum { AEG_CASE_UPPER, AEG_CASE_LOWER, AEG_CASE_TITLE } aeg_text_case;
enum { AEG_TEXT_CASE_MAX = 3 };
/* Full case mapping: up to three code points; returns how many. */
size_t aeg_text_map(uint32_t cp, aeg_text_case c, uint32_t out[AEG_TEXT_CASE_MAX]);

#endif
