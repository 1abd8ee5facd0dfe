/* SPDX-License-Identifier: Apache-2.0 */
/* base/size.h - sizes as people write them. Thread: any. */
#ifndef AEG_BASE_SIZE_H
#define AEG_BASE_SIZE_H

#include <stdint.h>

#include "base/error.h"

/* "4GiB", "512 MiB", "1.5GB", "300KiB", "1048576" (bytes), "50%" (of `whole`, must be > 0 then).
 * AEGIS_E_USAGE naming the value for anything else, zero and overflow included. */
aegis_status aeg_size_parse(uint64_t *out, const char *text, uint64_t whole, aegis_error *err);

enum { AEG_SIZE_TEXT = 32 };

/* "1.77 MiB", "24.0 MiB", "512 B" into out[AEG_SIZE_TEXT]; returns out. */
char *aeg_size_format(char *out, uint64_t bytes);

#endif
