/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis chat`: the loop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "chat.h"
#include "commands.h"
#include "line_editor.h"
#include "setup.h"
#include "signals.h"
#include "ui.h"

/* Saved states: the end of the latest user turn and one before it, for /regen after a long answer. */
enum { CHAT_CHECKPOINTS = 2 };

/* $XDG_STATE_HOME/aegis/history, its folder made; NULL if there is no place for one. */
static const char *history_path(char path[AEG_PATH_MAX])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char folder[AEG_PATH_MAX];
    int n = -1;
    if (state != NULL && state[0] == '/')
        n = snprintf(folder, sizeof folder, "%s/aegis", state);
    else if (home != NULL && home[0] == '/')
        n = snprintf(folder, sizeof folder, "%s/.local/state/aegis", home);
    aegis_error err;
    if (n < 0 || n >= (int)sizeof folder || aeg_make_dirs(folder, &err) != AEGIS_OK ||
        aeg_path_join(path, folder, "history", &err) != AEGIS_OK)
        return NULL;
    return path;
}

static bool ends_with(const aeg_buffer *t, const char *end, size_t from)
{
    const size_t n = strlen(end);
    return t->n >= from + n && memcmp(t->p + t->n - n, end, n) == 0;
}

static void cut(aeg_buffer *t, size_t n)
{
    t->n -= n;
    t->p[t->n] = '\0';
}

/* One message: a line, lines joined by a trailing \, or everything between """ and """. */
static aeg_line_result read_message(aeg_line_editor *editor, aeg_buffer *message, bool *is_command, aegis_error *err)
{
    aeg_buffer_clear(message);
    *is_command = false;
    aeg_line_result result = aeg_line_read(editor, ">>> ", message, err);
    if (result != AEG_LINE_READ || message->n == 0)
        return result;
    const bool block = strncmp(message->p, "\"\"\"", 3) == 0;
    if (block) {
        memmove(message->p, message->p + 3, message->n - 3 + 1);
        message->n -= 3;
        while (result == AEG_LINE_READ && !ends_with(message, "\"\"\"", 0)) {
            if (message->n > 0 && aeg_buffer_append(message, "\n", 1, err) != AEGIS_OK)
                return AEG_LINE_FAILED;
            result = aeg_line_read(editor, "... ", message, err);
        }
        if (result != AEG_LINE_READ)
            return result;
        cut(message, 3);
        while (message->n > 0 && message->p[message->n - 1] == '\n')
            cut(message, 1);
        return result;
    }
    while (result == AEG_LINE_READ && ends_with(message, "\\", 0)) {
        message->p[message->n - 1] = '\n';
        result = aeg_line_read(editor, "... ", message, err);
    }
    if (message->p[0] == '/') {
        *is_command = message->p[1] != '/';
        if (!*is_command) {
            memmove(message->p, message->p + 1, message->n);
            message->n--;
        }
    }
    return result == AEG_LINE_END ? AEG_LINE_READ : result;
}

/* Answer what the dialog ends with. On an error the question is taken back: the chat can go on. */
static aegis_status answer(aeg_chat *chat, aegis_error *err)
{
    aeg_dialog *d = &chat->dialog;
    const int64_t seed = d->g.sampling.seed;
    d->g.sampling.seed = (int64_t)((uint64_t)seed + chat->n_answers++);
    aegis_status status = aeg_dialog_answer(d, true, err);
    /* A signal that came just after the answer before may have cancelled this one: once more. */
    if (status == AEGIS_OK && d->result.stop == AEGIS_STOP_CANCELLED && aeg_signals_caught(false) == 0)
        status = aeg_dialog_answer(d, true, err);
    if (status == AEGIS_OK)
        status = aeg_ui_write("\n", 1, err);
    if (status == AEGIS_OK && chat->cli->verbose)
        aeg_setup_say_figures(&d->result, &d->stats, &d->g.sampling);
    d->g.sampling.seed = seed;
    if (status != AEGIS_OK) {
        aeg_dialog_drop_last(d, "user");
        return status;
    }
    if (d->result.stop == AEGIS_STOP_CANCELLED)
        aeg_ui_say("stopped; what is there is kept");
    else if (d->result.stop == AEGIS_STOP_CONTEXT)
        aeg_ui_say("the context is full; /clear starts anew, -c makes it larger");
    return aeg_dialog_add(d, "assistant", d->answer.n > 0 ? d->answer.p : "", d->answer.n, err);
}

/* What to do about a message; sets *leave at the end of the chat. */
static aegis_status take_message(aeg_chat *chat, aeg_buffer *message, bool is_command, bool *leave, aegis_error *err)
{
    if (is_command) {
        const aeg_chat_next next = aeg_chat_command(chat, message->p);
        AEG_TRY(aeg_ui_flush(err));
        *leave = next == AEG_CHAT_LEAVE;
        if (next != AEG_CHAT_ANSWER)
            return AEGIS_OK;
    } else {
        if (message->n == 0)
            return AEGIS_OK;
        AEG_TRY(aeg_dialog_add(&chat->dialog, "user", message->p, message->n, err));
    }
    const aegis_status status = answer(chat, err);
    const int sig = aeg_signals_caught(false);
    if (aeg_signals_ends(sig) || (sig != 0 && !chat->terminal))
        return aeg_fail(err, AEGIS_E_CANCELLED, "interrupted");
    aeg_signals_caught(true);
    /* A lost output or a closed pipe ends the chat; anything else is said, and it goes on. */
    if (status != AEGIS_OK && chat->terminal && chat->dialog.write_status == AEGIS_OK) {
        aeg_ui_say("%s", err->message);
        return AEGIS_OK;
    }
    return status;
}

static aegis_status loop(aeg_chat *chat, aeg_line_editor *editor, aeg_buffer *message, aegis_error *err)
{
    bool leave = false, hinted = false;
    while (!leave) {
        bool is_command = false;
        const aeg_line_result result = read_message(editor, message, &is_command, err);
        switch (result) {
        case AEG_LINE_READ:
            hinted = false;
            AEG_TRY(take_message(chat, message, is_command, &leave, err));
            break;
        case AEG_LINE_END:
            if (chat->terminal)
                AEG_TRY(aeg_ui_write("\n", 1, err));
            return AEGIS_OK;
        case AEG_LINE_INTERRUPTED:
        case AEG_LINE_INTERRUPTED_EMPTY:
            if (!chat->terminal || aeg_signals_ends(aeg_signals_caught(false)))
                return aeg_fail(err, AEGIS_E_CANCELLED, "interrupted");
            aeg_signals_caught(true);
            if (hinted && result == AEG_LINE_INTERRUPTED_EMPTY)
                return AEGIS_OK;
            hinted = result == AEG_LINE_INTERRUPTED_EMPTY;
            if (hinted)
                aeg_ui_say("Ctrl-C again, Ctrl-D or /exit leaves");
            break;
        case AEG_LINE_FAILED: return err->status;
        }
    }
    return AEGIS_OK;
}

static aegis_status open_chat(aeg_chat *chat, aeg_line_editor **editor, aegis_error *err)
{
    const aeg_cli *cli = chat->cli;
    char path[AEG_PATH_MAX];
    aegis_info info;
    aegis_engine_info(chat->engine, &info);
    if (!info.has_tokenizer || !info.has_template)
        return aeg_fail(err, AEGIS_E_MODEL, "%s has no %s, so there can be no chat; see aegis %s", info.path,
                        info.has_tokenizer ? "chat template" : "tokenizer", info.has_tokenizer ? "run --raw" : "logits --ids");
    AEG_TRY(aeg_dialog_init(&chat->dialog, chat->engine, cli->system, err));
    chat->dialog.think = cli->think;
    chat->dialog.g.max_tokens = cli->n_predict;
    chat->dialog.g.ignore_eos = cli->ignore_eos;
    chat->dialog.g.n_stops = cli->n_stops;
    memcpy(chat->dialog.g.stops, cli->stops, sizeof chat->dialog.g.stops);
    AEG_TRY(aeg_setup_sampling(cli, chat->engine, &chat->dialog.g.sampling, err));
    AEG_TRY(aeg_line_open(editor, chat->terminal, cli->no_history ? NULL : history_path(path), err));
    if (chat->terminal) {
        char size[AEG_SIZE_TEXT];
        aeg_ui_say("%s within %s; /help lists the commands", cli->model, aeg_size_format(size, info.plan.budget_bytes));
    }
    return AEGIS_OK;
}

aegis_status aeg_cmd_chat(aeg_cli *cli, aegis_error *err)
{
    if (cli->json || cli->raw)
        return aeg_fail(err, AEGIS_E_USAGE, "%s needs a prompt: aegis run MODEL -p TEXT", cli->json ? "--json" : "--raw");
    aeg_chat chat = { .cli = cli, .terminal = isatty(STDIN_FILENO) == 1 && aeg_ui_stdout_is_terminal() };
    aeg_line_editor *editor = NULL;
    aeg_buffer message = { 0 };
    AEG_TRY(aeg_setup_open(cli, CHAT_CHECKPOINTS, &chat.engine, err));
    aegis_status status = open_chat(&chat, &editor, err);
    if (status == AEGIS_OK) {
        aeg_signals_chat(chat.terminal);
        status = loop(&chat, editor, &message, err);
        aeg_signals_chat(false);
    }
    aeg_line_close(editor);
    aeg_buffer_free(&message);
    aeg_dialog_close(&chat.dialog);
    aeg_setup_close(chat.engine);
    return status;
}
