/* SPDX-License-Identifier: Apache-2.0 */
/* think.h - splits the text of an answer into thoughts (<think> ... </think>) and the answer itself.
 *
 * Works on a stream: text that may be a tag is held back until it is known. A thought is only looked for at the
 * beginning: an answer that talks about the tag keeps it. Blank lines around the tags belong to nobody.
 * Thread: owner only.
 */
#ifndef AEG_CLI_THINK_H
#define AEG_CLI_THINK_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { AEG_THINK_START, AEG_THINK_THOUGHT, AEG_THINK_GAP, AEG_THINK_ANSWER } aeg_think_state;

typedef struct {
    aeg_think_state state;
    char held[16];
    size_t n_held;
    bool thought;   /* there was one */
} aeg_think;

/* Non-zero stops, and is returned. */
typedef int (*aeg_think_sink)(void *ctx, bool thought, const char *bytes, size_t n);

/* Does a rendered prompt end inside an open <think>? */
bool aeg_think_is_open(const char *prompt, size_t n);

void aeg_think_init(aeg_think *t, bool open);
int aeg_think_push(aeg_think *t, const char *bytes, size_t n, aeg_think_sink sink, void *ctx);
int aeg_think_finish(aeg_think *t, aeg_think_sink sink, void *ctx);

#endif
