/* SPDX-License-Identifier: Apache-2.0 */
/* bench_routes.h - `aegis bench --record-routes FILE` and `aegis bench --replay FILE`. Thread: main only. */
#ifndef AEG_CLI_BENCH_ROUTES_H
#define AEG_CLI_BENCH_ROUTES_H

#include "options.h"

/* Is one of the two asked for? */
bool aeg_bench_routes_wanted(const aeg_cli *cli);

/* Record: the experts chosen for a text, token by token (--text FILE; -pp tokens of each window of -c by prefill, default
 * 1; at most -tg decode steps if given), or for the bench's own prompt and -tg tokens chosen by --tokens and --seed.
 * Replay: the rows of every policy at every pool size; needs no engine. AEGIS_E_USAGE: options that contradict. */
aegis_status aeg_bench_routes(const aeg_cli *cli, aegis_error *err);

#endif
