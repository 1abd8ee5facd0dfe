/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_casing.h - case mappings that need more than one code point. */
#ifndef AEG_TEXT_JINJA_CASING_H
#define AEG_TEXT_JINJA_CASING_H

#include <stdint.h>

typedef struct {
    uint32_t cp;
    uint32_t upper[3], title[3]; /* zero filled */
} aeg_jcasing;

enum { AEG_JIN_N_CASING = 102 };
extern const aeg_jcasing aeg_jin_casing[AEG_JIN_N_CASING];

#endif
