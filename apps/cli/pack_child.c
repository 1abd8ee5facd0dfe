/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "commands.h"
#include "signals.h"
#include "ui.h"

/* The child's command line. We wait in the meantime and count to the same budget. */
static aeg_cli child_options(const aeg_cli *cli, const char *src, const char *dst)
{
    aeg_cli child;
    aeg_process_memory now = { 0 };
    aeg_options_init(&child);
    aeg_process_memory_now(&now);
    child.command = AEG_CMD_PACK;
    child.n_args = 2;
    child.args[0] = src;
    child.args[1] = dst;
    child.expert_bits = cli->expert_bits;
    child.dense_bits = cli->dense_bits;
    child.tokenizer = cli->tokenizer;
    child.threads = cli->threads;
    if (cli->memory != 0)
        child.memory = cli->memory > now.rss_bytes ? cli->memory - now.rss_bytes : 1;
    return child;
}

/* Never returns. */
static void run_child(const aeg_cli *cli, const char *src, const char *dst, bool outline)
{
    aegis_error err = { .status = AEGIS_OK };
    const aeg_cli child = child_options(cli, src, dst);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* standard output is for answers */
    const aegis_status status = aeg_pack_model(&child, cli, outline, &err);
    if (status != AEGIS_OK && status != AEGIS_E_CANCELLED)
        aeg_ui_say("%s", err.message);
    _exit(aegis_exit_code(status));
}

static aegis_status status_of_exit(int code)
{
    for (int status = AEGIS_E_RUNTIME; status >= AEGIS_E_SERVER; status--)
        if (aegis_exit_code((aegis_status)status) == code)
            return (aegis_status)status;
    return code == 130 || code == 143 ? AEGIS_E_CANCELLED : AEGIS_E_RUNTIME;
}

static aegis_status wait_for(pid_t child, aegis_error *err)
{
    int how = 0;
    while (waitpid(child, &how, 0) < 0) {
        if (errno != EINTR)
            return aeg_fail_os(err, AEGIS_E_RUNTIME, errno, "waiting for the packing process");
        /* On a terminal Ctrl-C reaches the child as well; a kill of ours alone does not. */
        if (aeg_signals_caught(false) != 0)
            kill(child, SIGTERM);
    }
    if (aeg_signals_caught(false) != 0)
        return aeg_fail(err, AEGIS_E_CANCELLED, "interrupted");
    if (WIFSIGNALED(how))
        return aeg_fail(err, AEGIS_E_RUNTIME, "the packing process was ended by signal %d (%s)", WTERMSIG(how),
                        WTERMSIG(how) == SIGKILL ? "out of memory?" : strsignal(WTERMSIG(how)));
    if (WEXITSTATUS(how) == 0)
        return AEGIS_OK;
    return aeg_fail(err, status_of_exit(WEXITSTATUS(how)), "%s", "");
}

aegis_status aeg_pack_child(const aeg_cli *cli, const char *src, const char *dst, bool outline, aegis_error *err)
{
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0)
        return aeg_fail_os(err, AEGIS_E_RUNTIME, errno, "starting the packing process");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* if we die, it stops and cleans up after itself */
        if (getppid() == parent)
            run_child(cli, src, dst, outline);
        _exit(1);
    }
    return wait_for(child, err);
}
