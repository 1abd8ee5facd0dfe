/* SPDX-License-Identifier: Apache-2.0 */
/* ui.h - the two streams: answers to standard output, everything else to standard error.
 * Thread: main only, except where a line says otherwise. */
#ifndef AEG_CLI_UI_H
#define AEG_CLI_UI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"
#include "options.h"

/* Terminal facts, colours and the sink for notices of the library. */
void aeg_ui_init(const aeg_cli *cli);

bool aeg_ui_stdout_is_terminal(void);
bool aeg_ui_stderr_is_terminal(void);
bool aeg_ui_color(void);   /* of standard output */

/* "aegis: <text>" and a line end on standard error; what could steer the terminal is shown as \xNN (base/utf8.h). */
void aeg_ui_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Answer bytes to standard output, at once. On a terminal, control characters other than line end and tab are
 * replaced: an answer must not be able to steer the terminal. AEGIS_E_IO when they cannot be written. */
aegis_status aeg_ui_write(const char *bytes, size_t n, aegis_error *err);
/* Flush what printf left; AEGIS_E_IO if anything written so far was lost. */
aegis_status aeg_ui_flush(aegis_error *err);

/* Print a JSON value and a line end to standard output; takes the reference. NULL: AEGIS_E_MEMORY. */
struct json_t;
aegis_status aeg_ui_print_json(struct json_t *value, aegis_error *err);

/* The counter of all heap memory the program itself uses. */
aeg_memory *aeg_ui_memory(void);

#endif
