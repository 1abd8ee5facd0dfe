/* SPDX-License-Identifier: Apache-2.0 */
/* dialog.h - a list of messages and the next answer to it: what `run` and `chat` share.
 *
 * Messages are JSON, as programs send them; each answer renders all of them anew, and the session re-uses the
 * part that it has already evaluated. Thread: main only.
 */
#ifndef AEG_CLI_DIALOG_H
#define AEG_CLI_DIALOG_H

#include "aegis/aegis.h"
#include "base/json.h"
#include "buffer.h"
#include "think.h"

typedef struct {
    aegis_engine *engine;
    json_t *messages;          /* [{"role", "content"}]                                */
    int think;                 /* -1, 0, 1                                             */
    bool show;                 /* stream to standard output (otherwise only collected) */
    bool dim_open;             /* a thought is being shown                             */
    aegis_generation g;        /* settings of the next answer                          */

    aeg_buffer answer, thought;  /* of the last answer                                   */
    aegis_generated result;
    aegis_stats stats;         /* of the last answer alone                             */
    aeg_think splitter;
    aegis_error *write_error;  /* where a failed write is reported                     */
    aegis_status write_status;
} aeg_dialog;

/* `system` may be NULL. */
aegis_status aeg_dialog_init(aeg_dialog *d, aegis_engine *engine, const char *system, aegis_error *err);
void aeg_dialog_close(aeg_dialog *d);

aegis_status aeg_dialog_add(aeg_dialog *d, const char *role, const char *content, size_t n, aegis_error *err);
/* Replace or (NULL) remove the system message. */
aegis_status aeg_dialog_set_system(aeg_dialog *d, const char *content, aegis_error *err);
/* Remove the last message if it has this role. */
bool aeg_dialog_drop_last(aeg_dialog *d, const char *role);
/* Forget all but the system message. */
void aeg_dialog_clear(aeg_dialog *d);

/* The prompt the template makes; free with aegis_text_free. */
aegis_status aeg_dialog_render(aeg_dialog *d, bool generation_prompt, char **text, size_t *n, aegis_error *err);

/* Generate an answer to the messages. With `checkpoint` the state at the end of the last message is remembered,
 * so that the next turn continues from there. A stop by signal is no error (result.stop). */
aegis_status aeg_dialog_answer(aeg_dialog *d, bool checkpoint, aegis_error *err);

/* The same from a text without messages and without a template. */
aegis_status aeg_dialog_continue(aeg_dialog *d, const char *text, size_t n, aegis_error *err);

#endif
