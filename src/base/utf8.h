/* SPDX-License-Identifier: Apache-2.0 */
/* base/utf8.h - strict UTF-8: no surrogates, no overlong forms, nothing above U+10FFFF.
 *
 * Broken text is repaired as Unicode recommends (and Python and Rust do): each maximal broken
 * part becomes one U+FFFD. Thread: any.
 */
#ifndef AEG_BASE_UTF8_H
#define AEG_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    AEG_UTF8_OK,     /* one whole character                                            */
    AEG_UTF8_BROKEN, /* bytes that no continuation can repair                          */
    AEG_UTF8_SHORT,  /* the text ends inside a character that is well formed so far    */
} aeg_utf8_kind;

/* What stands at s (n >= 1 bytes left)? *length is its bytes: 1 to 4 of a character, 1 to 3 of a
 * broken part or an unfinished tail. *code is set for AEG_UTF8_OK only. */
aeg_utf8_kind aeg_utf8_step(const uint8_t *s, size_t n, uint32_t *code, uint32_t *length);

/* The bytes of s that are valid from its start; n if all are. */
size_t aeg_utf8_valid(const uint8_t *s, size_t n);

/* Repair n bytes into `out` (room for 3 n); returns the bytes written. */
size_t aeg_utf8_repair(uint8_t *out, const uint8_t *s, size_t n);

/* A text for people's eyes into out[room], room >= 1, cut to fit and ended by a NUL; returns its bytes. Bytes from a file
 * must not steer the terminal or look like lines of ours: control characters (C0, DEL, C1; line ends and tabs too) and bytes
 * that are no UTF-8 become \xNN. Shown again it stays the same. */
size_t aeg_utf8_show(char *out, size_t room, const char *text);

/* Write one scalar value (1 to 4 bytes); returns the bytes written. */
uint32_t aeg_utf8_put(uint8_t *out, uint32_t code);

/* Decode one character of text that is known to be valid. */
static inline uint32_t aeg_utf8_get(const uint8_t *s, uint32_t *length)
{
    if (s[0] < 0x80) {
        *length = 1;
        return s[0];
    }
    if (s[0] < 0xE0) {
        *length = 2;
        return (uint32_t)(s[0] & 0x1F) << 6 | (s[1] & 0x3F);
    }
    if (s[0] < 0xF0) {
        *length = 3;
        return (uint32_t)(s[0] & 0x0F) << 12 | (uint32_t)(s[1] & 0x3F) << 6 | (s[2] & 0x3F);
    }
    *length = 4;
    return (uint32_t)(s[0] & 0x07) << 18 | (uint32_t)(s[1] & 0x3F) << 12 | (uint32_t)(s[2] & 0x3F) << 6 |
           (s[3] & 0x3F);
}

#endif
