/* SPDX-License-Identifier: Apache-2.0 */
/* pack/text.h - a growing text, for JSON that we write ourselves: the same bytes with every library version and
 * locale. Thread: owner only. */
#ifndef AEG_PACK_TEXT_H
#define AEG_PACK_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"

typedef struct {
    aeg_memory *memory;
    char *data;    /* NUL terminated once anything was added */
    size_t n, capacity;
    bool failed;   /* an allocation was refused: what follows is dropped; check once at the end */
} aeg_text;

void aeg_text_add(aeg_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void aeg_text_number(aeg_text *t, double value);       /* shortest of %.17g, with a point in every locale */
void aeg_text_string(aeg_text *t, const char *s);      /* quoted and escaped */
void aeg_text_free(aeg_text *t);

#endif
