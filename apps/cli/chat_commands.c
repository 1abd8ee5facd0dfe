/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of a chat. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "chat.h"
#include "setup.h"
#include "ui.h"

typedef struct {
    const char *names;     /* separated by spaces */
    const char *args, *help;
    aeg_chat_next (*run)(aeg_chat *chat, char *args);
} chat_command;

static const chat_command commands[];
static const size_t n_commands;

static void say_error(const aegis_error *err) { aeg_ui_say("%s", err->message); }

static aeg_chat_next run_help(aeg_chat *chat, char *args)
{
    (void)chat;
    (void)args;
    for (size_t i = 0; i < n_commands; i++) {
        char left[96] = "";
        const char *rest = commands[i].names, *name;
        size_t n;
        while ((name = aeg_option_name(&rest, &n)) != NULL) {
            const size_t used = strlen(left);
            snprintf(left + used, sizeof left - used, "%s/%.*s", used > 0 ? ", " : "", (int)n, name);
        }
        const size_t used = strlen(left);
        snprintf(left + used, sizeof left - used, " %s", commands[i].args);
        printf("  %-38s %s\n", left, commands[i].help);
    }
    printf("  Enter sends; \"\"\" begins and ends several lines; \\ at the end of a line continues it;\n"
           "  //text sends /text; Ctrl-C stops an answer and keeps it; Ctrl-D leaves\n");
    return AEG_CHAT_GO_ON;
}

static aeg_chat_next run_clear(aeg_chat *chat, char *args)
{
    (void)args;
    aeg_dialog_clear(&chat->dialog);
    return AEG_CHAT_GO_ON;
}

static aeg_chat_next run_regen(aeg_chat *chat, char *args)
{
    (void)args;
    aeg_dialog_drop_last(&chat->dialog, "assistant");
    const json_t *messages = chat->dialog.messages;
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (role != NULL && strcmp(role, "user") == 0)
        return AEG_CHAT_ANSWER;
    aeg_ui_say("there is no answer to make again");
    return AEG_CHAT_GO_ON;
}

/* "top_k" and "temperature" as in --top-k and --temperature; only what shapes an answer. */
static aegis_status set_parameter(aeg_chat *chat, const char *name, const char *value, aegis_error *err)
{
    char flag[AEG_OPTION_NAME_MAX];
    snprintf(flag, sizeof flag, "--%s", strcmp(name, "num_predict") == 0 ? "n-predict" : name);
    for (char *p = flag; *p != '\0'; p++)
        if (*p == '_')
            *p = '-';
    const aeg_option *o = aeg_option_find(flag, strlen(flag), 1u << AEG_CMD_CHAT);
    const bool shapes = o != NULL && o->commands == (1u << AEG_CMD_RUN | 1u << AEG_CMD_CHAT) &&
                        (o->kind == AEG_OPT_REAL || o->kind == AEG_OPT_INT || o->kind == AEG_OPT_COUNT ||
                         o->kind == AEG_OPT_SEED || o->kind == AEG_OPT_BIAS);
    if (!shapes)
        return aeg_fail(err, AEGIS_E_USAGE, "unknown parameter '%.40s'; /show parameters lists them", name);
    const aeg_cli before = *chat->cli;
    aegis_sampling sampling;
    aegis_status status = aeg_options_set(chat->cli, flag, value, err);
    if (status == AEGIS_OK)
        status = aeg_setup_sampling(chat->cli, chat->engine, &sampling, err);
    if (status != AEGIS_OK) {
        *chat->cli = before;
        return status;
    }
    if (o->kind != AEG_OPT_SEED && !chat->cli->seed_given)
        sampling.seed = chat->dialog.g.sampling.seed;
    chat->dialog.g.sampling = sampling;
    chat->dialog.g.max_tokens = chat->cli->n_predict;
    return AEGIS_OK;
}

static char *next_word(char **rest)
{
    char *p = *rest + strspn(*rest, " \t");
    char *end = p + strcspn(p, " \t");
    *rest = end + (*end != '\0');
    *end = '\0';
    return p;
}

static aeg_chat_next run_set(aeg_chat *chat, char *args)
{
    aegis_error err = { .status = AEGIS_OK };
    const char *what = next_word(&args);
    aegis_status status;
    if (strcmp(what, "system") == 0) {
        args += strspn(args, " \t");
        status = aeg_dialog_set_system(&chat->dialog, args[0] != '\0' ? args : NULL, &err);
    } else if (strcmp(what, "parameter") == 0) {
        const char *name = next_word(&args), *value = next_word(&args);
        status = value[0] != '\0' ? set_parameter(chat, name, value, &err)
                                  : aeg_fail(&err, AEGIS_E_USAGE, "usage: /set parameter NAME VALUE");
    } else {
        status = aeg_fail(&err, AEGIS_E_USAGE, "usage: /set system TEXT, or /set parameter NAME VALUE");
    }
    if (status != AEGIS_OK)
        say_error(&err);
    return AEG_CHAT_GO_ON;
}

static void show_parameters(const aeg_chat *chat)
{
    const aegis_sampling *s = &chat->dialog.g.sampling;
    printf("temperature %g\ntop_k %d\ntop_p %g\nmin_p %g\nrepeat_penalty %g\npresence_penalty %g\n"
           "frequency_penalty %g\nrepeat_last_n %u\nseed %lld\nnum_predict %u\n", s->temperature, s->top_k, s->top_p,
           s->min_p, s->repeat_penalty, s->presence_penalty, s->frequency_penalty,
           s->penalty_last_n == 0 ? 64 : s->penalty_last_n, (long long)s->seed, chat->dialog.g.max_tokens);
}

static void show_info(const aegis_info *info, const aeg_chat *chat)
{
    size_t n_tokens = 0;
    aegis_session_tokens(chat->engine, &n_tokens);
    printf("model %s\nfamily %s, %u layers, hidden size %u, %u experts (%u at a time), vocabulary %u\n"
           "context %zu of %u tokens, kernels %s, reads by %s\n", info->path, info->family, info->n_layers,
           info->hidden_size, info->n_experts, info->top_k, info->vocab_size, n_tokens, info->plan.n_ctx, info->cpu,
           info->io);
}

static void show_template(aeg_chat *chat)
{
    aegis_error err = { .status = AEGIS_OK };
    char *text = NULL;
    size_t n = 0;
    aegis_status status = aeg_dialog_render(&chat->dialog, true, &text, &n, &err);
    if (status == AEGIS_OK)
        status = aeg_ui_write(text, n, &err);
    aegis_text_free(text);
    printf("\n");
    if (status != AEGIS_OK)
        say_error(&err);
}

static aeg_chat_next run_show(aeg_chat *chat, char *args)
{
    aegis_info info;
    aegis_engine_info(chat->engine, &info);
    const char *what = next_word(&args);
    switch (aeg_choice_index("info|parameters|template|plan|stats", what)) {
    case 0: show_info(&info, chat); break;
    case 1: show_parameters(chat); break;
    case 2: show_template(chat); break;
    case 3: aeg_setup_print_plan(&info.plan, stdout); break;
    case 4: aeg_setup_say_figures(&chat->dialog.result, &chat->dialog.stats, &chat->dialog.g.sampling); break;
    default: aeg_ui_say("usage: /show info, parameters, template, plan or stats"); break;
    }
    return AEG_CHAT_GO_ON;
}

static aeg_chat_next run_think(aeg_chat *chat, char *args)
{
    (void)args;
    chat->dialog.think = 1;
    return AEG_CHAT_GO_ON;
}

static aeg_chat_next run_nothink(aeg_chat *chat, char *args)
{
    (void)args;
    chat->dialog.think = 0;
    return AEG_CHAT_GO_ON;
}

static aeg_chat_next run_exit(aeg_chat *chat, char *args)
{
    (void)chat;
    (void)args;
    return AEG_CHAT_LEAVE;
}

static const chat_command commands[] = {
    { "help ?", "", "this list", run_help },
    { "clear new", "", "forget the conversation", run_clear },
    { "regen", "", "make the last answer again", run_regen },
    { "set", "system TEXT", "change the system prompt", run_set },
    { "set", "parameter NAME VALUE", "change temperature, top_k, seed, ...", run_set },
    { "show", "info|parameters|template|plan|stats", "what is in use", run_show },
    { "think", "", "let the model think", run_think },
    { "nothink", "", "answer without thinking", run_nothink },
    { "exit quit bye", "", "leave", run_exit },
};
static const size_t n_commands = AEG_ARRAY_LEN(commands);

aeg_chat_next aeg_chat_command(aeg_chat *chat, char *line)
{
    char *rest = line + 1;
    const char *word = next_word(&rest);
    for (size_t i = 0; i < n_commands; i++) {
        const char *names = commands[i].names, *name;
        size_t n;
        while ((name = aeg_option_name(&names, &n)) != NULL)
            if (strlen(word) == n && memcmp(word, name, n) == 0)
                return commands[i].run(chat, rest);
    }
    aeg_ui_say("unknown command /%.60s; /help lists them, //%.60s sends the text", word, word);
    return AEG_CHAT_GO_ON;
}
