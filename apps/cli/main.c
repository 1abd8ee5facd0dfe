/* SPDX-License-Identifier: Apache-2.0 */
/* aegis: the command line. Parses, runs one command, turns its status into an exit code. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "aegis/aegis.h"
#include "base/json.h"
#include "commands.h"
#include "signals.h"
#include "ui.h"

aegis_status aeg_cmd_version(aeg_cli *cli, aegis_error *err)
{
    if (cli->json) {
        aeg_json_init();
        return aeg_ui_print_json(json_pack("{s:s, s:s}", "program", "aegis", "version", aegis_version()), err);
    }
    printf("aegis %s\n", aegis_version());
    return aeg_ui_flush(err);
}

static aegis_status cmd_help(aeg_cli *cli, aegis_error *err)
{
    bool known = cli->n_args == 0;
    for (uint32_t i = 0; i < AEG_N_COMMANDS && !known; i++)
        known = strcmp(cli->args[0], aeg_command_table[i].name) == 0;
    if (!known)
        return aeg_fail(err, AEGIS_E_USAGE, "unknown command '%.60s'; see aegis help", cli->args[0]);
    aeg_help_print(cli);
    return aeg_ui_flush(err);
}

static aegis_status run_command(aeg_cli *cli, aegis_error *err)
{
    static aegis_status (*const commands[AEG_N_COMMANDS])(aeg_cli *, aegis_error *) = {
        [AEG_CMD_RUN] = aeg_cmd_run,           [AEG_CMD_CHAT] = aeg_cmd_chat,
        [AEG_CMD_PACK] = aeg_cmd_pack,         [AEG_CMD_PLAN] = aeg_cmd_plan,
        [AEG_CMD_SHOW] = aeg_cmd_show,         [AEG_CMD_VERIFY] = aeg_cmd_verify,
        [AEG_CMD_CACHE] = aeg_cmd_cache,       [AEG_CMD_TOKENIZE] = aeg_cmd_tokenize,
        [AEG_CMD_TEMPLATE] = aeg_cmd_template, [AEG_CMD_LOGITS] = aeg_cmd_logits,
        [AEG_CMD_EVAL] = aeg_cmd_eval,         [AEG_CMD_BENCH] = aeg_cmd_bench,
        [AEG_CMD_DOCTOR] = aeg_cmd_doctor,
        [AEG_CMD_VERSION] = aeg_cmd_version,   [AEG_CMD_COMPLETION] = aeg_cmd_completion,
        [AEG_CMD_HELP] = cmd_help,
    };
    if (cli->help != AEG_HELP_NONE) {
        aeg_help_print(cli);
        return aeg_ui_flush(err);
    }
    for (uint32_t i = 0; i < cli->n_ignored; i++)
        aeg_ui_say("%s has no meaning here and is ignored", cli->ignored[i]);
    return commands[cli->command](cli, err);
}

/* A store opened as file 1 would get the answers: what the caller closed becomes /dev/null, opened so that an answer
 * with nowhere to go is an error. */
static void reserve_standard_files(void)
{
    for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY))
        if (fd > STDERR_FILENO) {
            close(fd);
            return;
        }
}

int main(int argc, char **argv)
{
    static aeg_cli cli;
    reserve_standard_files();
    aegis_error err = { .status = AEGIS_OK };
    aeg_signals_install();
    aegis_status status = aeg_options_parse(&cli, argc, argv, &err);
    aeg_ui_init(&cli);
    if (status == AEGIS_OK)
        status = run_command(&cli, &err);
    /* An empty message: somebody (the packing child) has already said it. */
    const int sig = aeg_signals_caught(false);
    if (status != AEGIS_OK && err.message[0] != '\0' && !(status == AEGIS_E_CANCELLED && sig != 0))
        aeg_ui_say("%s", err.message);
    if (status == AEGIS_E_CANCELLED && sig != 0)
        return 128 + sig;
    return aegis_exit_code(status);
}
