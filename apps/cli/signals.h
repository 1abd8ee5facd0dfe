/* SPDX-License-Identifier: Apache-2.0 */
/* signals.h - SIGINT, SIGTERM and SIGHUP ask for a clean stop; a second SIGINT ends at once.
 * Thread: main; handlers touch atomics and the cancel function only. */
#ifndef AEG_CLI_SIGNALS_H
#define AEG_CLI_SIGNALS_H

#include <stdbool.h>

#include "aegis/aegis.h"

void aeg_signals_install(void);

/* From now on a signal also calls cancel(engine), which must be async-signal-safe; NULL, NULL: nothing. */
void aeg_signals_watch(void (*cancel)(aegis_engine *engine), aegis_engine *engine);

/* From now on signals end the process, as one already caught does: for work that nothing can cancel and that leaves
 * nothing behind. */
void aeg_signals_default(void);

/* The last signal caught (0: none); forgets it if `clear`. */
int aeg_signals_caught(bool clear);

/* SIGTERM, SIGHUP: they end a chat too. */
bool aeg_signals_ends(int sig);

/* In a chat a SIGINT stops the answer, never the program: no second-press exit. */
void aeg_signals_chat(bool on);

/* aegis_pack's cancelled callback. */
int aeg_signals_cancelled(void *ctx);

#endif
