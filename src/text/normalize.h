/* SPDX-License-Identifier: Apache-2.0 */
/* text/normalize.h - Unicode NFC and NFKC (UAX #15) that cost nothing where nothing changes.
 *
 * Characters come from utf8proc's tables. The ordering of combining marks is ours: utf8proc's is a
 * bubble sort, and a megabyte of marks in a bad order would keep it busy for hours. Thread: any.
 */
#ifndef AEG_TEXT_NORMALIZE_H
#define AEG_TEXT_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

typedef enum { AEG_NORMAL_NONE, AEG_NORMAL_NFC, AEG_NORMAL_NFKC } aeg_normal_form;

/* Is valid UTF-8 `text` certainly in that form already? False may be wrong, true never is. */
bool aeg_normal_quick(const uint8_t *text, size_t n, aeg_normal_form form);

/* Normalise valid UTF-8 into *out (out_n bytes, free with aeg_free; *out stays NULL where out_n is 0).
 * AEGIS_E_MEMORY only. */
aegis_status aeg_normalize(const uint8_t *text, size_t n, aeg_normal_form form, uint8_t **out, size_t *out_n,
                           aeg_memory *memory, aegis_error *err);

/* Unicode White_Space, and what a regular expression's \w means (letters, marks, digits, connectors). */
bool aeg_is_space(uint32_t code);
bool aeg_is_word(uint32_t code);

#endif
