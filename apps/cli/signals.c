/* SPDX-License-Identifier: Apache-2.0 */
#include "signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static _Atomic int caught;
static _Atomic bool in_chat;
static _Atomic(aegis_engine *) watched;
static void (*_Atomic cancel_watched)(aegis_engine *);

static void on_signal(int sig)
{
    if (sig == SIGINT && caught == SIGINT && !in_chat)
        _exit(130);
    caught = sig;
    aegis_engine *engine = watched;
    if (engine != NULL)
        cancel_watched(engine);
}

void aeg_signals_install(void)
{
    /* No SA_RESTART: a read from the terminal or a wait for a lock must come back. */
    struct sigaction act = { .sa_handler = on_signal };
    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    /* A terminal that went away: what is half written is removed. nohup stays nohup. */
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &act, NULL);
    /* A closed pipe and a file beyond the limit (ulimit -f) are errors of write(), which say exit code 5. */
    act.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &act, NULL);
    sigaction(SIGXFSZ, &act, NULL);
}

void aeg_signals_default(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        signal(SIGHUP, SIG_DFL);
    if (caught != 0)
        raise(caught);
}

void aeg_signals_watch(void (*cancel)(aegis_engine *), aegis_engine *engine)
{
    watched = NULL; /* never an engine with another one's function */
    cancel_watched = cancel;
    watched = engine;
}

void aeg_signals_chat(bool on) { in_chat = on; }

int aeg_signals_caught(bool clear) { return clear ? atomic_exchange(&caught, 0) : caught; }

bool aeg_signals_ends(int sig) { return sig == SIGTERM || sig == SIGHUP; }

int aeg_signals_cancelled(void *ctx)
{
    (void)ctx;
    return caught != 0;
}
