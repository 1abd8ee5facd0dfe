/* SPDX-License-Identifier: Apache-2.0 */
/* line_editor.h - one line of input at a time.
 *
 * On a terminal: libedit, with history; a paste stays one line (its line ends become U+23CE until the line is
 * handed over), and so does Alt-Enter. libedit is loaded when the first prompt is shown: linked in, it would cost every
 * run 0.4 MiB of a budget that starts at 24. Without it, or without a terminal: plain reads, no prompt.
 * Thread: main only; one editor at a time.
 */
#ifndef AEG_CLI_LINE_EDITOR_H
#define AEG_CLI_LINE_EDITOR_H

#include <stdbool.h>

#include "buffer.h"

typedef struct aeg_line_editor aeg_line_editor;

typedef enum {
    AEG_LINE_READ,
    AEG_LINE_END,             /* end of input, Ctrl-D                  */
    AEG_LINE_INTERRUPTED,     /* a signal; what was typed is dropped   */
    AEG_LINE_INTERRUPTED_EMPTY, /* the same, and nothing had been typed */
    AEG_LINE_FAILED,
} aeg_line_result;

/* history: file to load and save, NULL: none. */
aegis_status aeg_line_open(aeg_line_editor **out, bool terminal, const char *history, aegis_error *err);
void aeg_line_close(aeg_line_editor *editor); /* NULL allowed; saves the history */

/* Append the next line to `out`, without its end. */
aeg_line_result aeg_line_read(aeg_line_editor *editor, const char *prompt, aeg_buffer *out, aegis_error *err);

#endif
