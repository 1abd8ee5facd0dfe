/* SPDX-License-Identifier: Apache-2.0 */
/* format/scan.h - a pull scanner for the two JSON texts whose size a stranger chooses: safetensors headers and
 * shard indexes.
 *
 * A tree of values costs up to fifty times its text ("0," becomes a heap object), and a header may be 100 MB.
 * Here strings are decoded in place, so the text is the only memory. Strict: UTF-8, no lone surrogates, no
 * U+0000, plain non-negative integers, depth at most 16.
 * Thread: owner only.
 */
#ifndef AEG_FORMAT_SCAN_H
#define AEG_FORMAT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct {
    char *start, *p, *end; /* the text; decoded strings overwrite it */
    const char *path;      /* for messages */
} aeg_scan;

/* The next character that is not white space is `c`: take it and return true. */
bool aeg_scan_take(aeg_scan *s, char c);
/* The same, but anything else is an error. */
aegis_status aeg_scan_expect(aeg_scan *s, char c, aegis_error *err);

/* A string of at most `max` bytes; *out is NUL terminated and lives in the text. */
aegis_status aeg_scan_string(aeg_scan *s, char **out, size_t max, aegis_error *err);
/* Digits only: no sign, fraction, exponent or leading zero; below 2^63. */
aegis_status aeg_scan_uint(aeg_scan *s, uint64_t *out, aegis_error *err);
/* Any value, thrown away. */
aegis_status aeg_scan_skip(aeg_scan *s, aegis_error *err);

/* After a member of an object or array: true if another follows, false if `close` was taken. */
aegis_status aeg_scan_more(aeg_scan *s, char close, bool *more, aegis_error *err);

/* AEGIS_E_MODEL: "<path>: byte N of the JSON: <what>". */
aegis_status aeg_scan_fail(const aeg_scan *s, const char *what, aegis_error *err);

#endif
