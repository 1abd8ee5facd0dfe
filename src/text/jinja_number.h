/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_number.h - numbers as Python writes and reads them. Thread: any. */
#ifndef AEG_TEXT_JINJA_NUMBER_H
#define AEG_TEXT_JINJA_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AEG_FLOAT_TEXT = 40 };

/* repr(float): the fewest digits that read back the same. `nan`, `inf`, `-inf` as Python. */
const char *aeg_float_repr(double f, char out[AEG_FLOAT_TEXT]);

typedef enum { AEG_PARSE_OK, AEG_PARSE_BAD, AEG_PARSE_RANGE } aeg_parse_result;

/* int(text, base) and float(text): spaces around, a sign, single underscores between digits. */
aeg_parse_result aeg_int_parse(const char *s, size_t n, int base, int64_t *out);
bool aeg_float_parse(const char *s, size_t n, double *out);

#endif
