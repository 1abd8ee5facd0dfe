/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "signals.h"

typedef struct {
    const char *argv[16];
    char memory[32], expert_bits[16], dense_bits[16];
} child_args;

static const char *bits_text(char *out, size_t size, int32_t bits)
{
    if (bits < 0)
        return "keep";
    snprintf(out, size, "%d", (int)bits);
    return out;
}

static void make_args(child_args *a, const aeg_cli *cli, const char *src, const char *dst)
{
    size_t n = 0;
    a->argv[n++] = "aegis";
    a->argv[n++] = "pack";
    if (cli->memory != 0) {
        /* We wait in the meantime, and count to the same budget. */
        aeg_process_memory now = { 0 };
        aeg_process_memory_now(&now);
        snprintf(a->memory, sizeof a->memory, "%llu",
                 (unsigned long long)(cli->memory > now.rss_bytes ? cli->memory - now.rss_bytes : 1));
        a->argv[n++] = "--memory";
        a->argv[n++] = a->memory;
    }
    if (cli->expert_bits != 0) {
        a->argv[n++] = "--expert-bits";
        a->argv[n++] = bits_text(a->expert_bits, sizeof a->expert_bits, cli->expert_bits);
    }
    if (cli->dense_bits != 0) {
        a->argv[n++] = "--dense-bits";
        a->argv[n++] = bits_text(a->dense_bits, sizeof a->dense_bits, cli->dense_bits);
    }
    if (cli->tokenizer != NULL) {
        a->argv[n++] = "--tokenizer";
        a->argv[n++] = cli->tokenizer;
    }
    a->argv[n++] = "--";
    a->argv[n++] = src;
    a->argv[n++] = dst;
    a->argv[n] = NULL;
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

aegis_status aeg_pack_child(const aeg_cli *cli, const char *src, const char *dst, aegis_error *err)
{
    child_args args;
    make_args(&args, cli, src, dst);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0)
        return aeg_fail_os(err, AEGIS_E_RUNTIME, errno, "starting the packing process");
    if (child == 0) {
        /* Standard output is for answers. If we die, the child stops, and cleans up after itself. */
        dup2(STDERR_FILENO, STDOUT_FILENO);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() == parent)
            execv("/proc/self/exe", (char *const *)args.argv);
        _exit(1);
    }
    return wait_for(child, err);
}
