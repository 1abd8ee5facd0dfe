/* SPDX-License-Identifier: Apache-2.0 */
/* ids.h - lists of token ids from the command line, a file or a text. Thread: main only. */
#ifndef AEG_CLI_IDS_H
#define AEG_CLI_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct {
    uint32_t *ids;
    size_t n, capacity;
} aeg_ids;

enum { AEG_IDS_MAX = 1 << 20 };  /* where no context is named: 4 MiB, above the contexts of today's models */

/* Numbers separated by commas or spaces, with or without one pair of [ ]: "1,2,3", "[1, 2]", "1 2\n3".
 * AEGIS_E_USAGE naming `name` and the place. */
aegis_status aeg_ids_parse(aeg_ids *list, const char *text, size_t n, const char *name, aegis_error *err);
/* From the text of --ids, or if that is NULL from a file (- is standard input), which is parsed as it is read: memory
 * grows with the ids alone. More than `limit` of them: AEGIS_E_USAGE. */
aegis_status aeg_ids_read(aeg_ids *list, const char *text, const char *file, size_t limit, aegis_error *err);
void aeg_ids_free(aeg_ids *list);

#endif
