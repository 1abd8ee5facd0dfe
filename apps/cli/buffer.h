/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.h - a growing text with a limit, and reading whole inputs. Thread: owner only. */
#ifndef AEG_CLI_BUFFER_H
#define AEG_CLI_BUFFER_H

#include <stddef.h>

#include "base/error.h"

typedef struct {
    char *p;     /* n bytes and a NUL; NULL while empty */
    size_t n, capacity;
} aeg_buffer;

enum { AEG_BUFFER_MAX = 64 << 20 };  /* of any prompt, answer or list of ids: far above every context */

aegis_status aeg_buffer_append(aeg_buffer *t, const char *bytes, size_t n, aegis_error *err);
void aeg_buffer_clear(aeg_buffer *t);  /* keeps the memory */
void aeg_buffer_free(aeg_buffer *t);

/* AEGIS_E_USAGE if it cannot be read: to know before a model is opened. "-" is fine. */
aegis_status aeg_buffer_check(const char *path, aegis_error *err);

/* All of a file, or of standard input for "-". */
aegis_status aeg_buffer_read(aeg_buffer *t, const char *path, aegis_error *err);

#endif
