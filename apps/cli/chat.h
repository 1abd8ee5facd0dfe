/* SPDX-License-Identifier: Apache-2.0 */
/* chat.h - the state of an interactive chat, shared by its loop and its commands. Thread: main only. */
#ifndef AEG_CLI_CHAT_H
#define AEG_CLI_CHAT_H

#include "dialog.h"
#include "options.h"

typedef struct {
    aeg_cli *cli;
    aegis_engine *engine;
    aeg_dialog dialog;
    bool terminal;
    uint64_t n_answers;   /* moves the seed, so that /regen gives another answer */
} aeg_chat;

typedef enum { AEG_CHAT_GO_ON, AEG_CHAT_ANSWER, AEG_CHAT_LEAVE } aeg_chat_next;

/* A line that begins with '/'. What goes wrong is said here; the chat goes on. */
aeg_chat_next aeg_chat_command(aeg_chat *chat, char *line);

#endif
