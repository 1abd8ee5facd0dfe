/* SPDX-License-Identifier: Apache-2.0 */
/* template.h - a conversation rendered by a model's chat template.
 *
 * Gives the template the variables that Hugging Face's apply_chat_template gives it: messages, tools,
 * documents (null), add_generation_prompt, the special tokens, and whatever the caller adds.
 * Thread: any; it only reads.
 */
#ifndef AEG_TEXT_TEMPLATE_H
#define AEG_TEXT_TEMPLATE_H

#include <stdbool.h>
#include <time.h>

#include "text/jinja.h"

typedef enum {
    AEG_THINKING_UNSET, /* the variable enable_thinking stays undefined: the template's default */
    AEG_THINKING_ON,
    AEG_THINKING_OFF,
} aeg_thinking;

typedef struct {
    bool add_generation_prompt;
    aeg_thinking enable_thinking;
    const char *bos_token, *eos_token; /* NULL: undefined */
    time_t now;                        /* for strftime_now */
    const json_t *extra;               /* more variables (an object) or NULL; they win over all others */
    const aeg_jinja_limits *limits;    /* NULL: the defaults; its `now` is not used */
} aeg_chat_options;

/* Render `messages` (an array of objects) and `tools` (an array or NULL). *out: aeg_free(memory, *out).
 * Errors as aeg_jinja_render; AEGIS_E_USAGE for messages or tools of the wrong shape. Arguments of tool
 * calls given as JSON text, as OpenAI clients send them, are parsed first, because templates go through
 * them as a mapping; the caller's JSON is not changed. */
aegis_status aeg_chat_render(const aeg_jinja *t, const json_t *messages, const json_t *tools,
                             const aeg_chat_options *options, char **out, size_t *n, aeg_memory *memory,
                             aegis_error *err);

#endif
