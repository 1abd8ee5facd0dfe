/* SPDX-License-Identifier: Apache-2.0 */
/* setup.h - from the command line to an open engine, its sampling settings and its figures. Thread: main only. */
#ifndef AEG_CLI_SETUP_H
#define AEG_CLI_SETUP_H

#include "aegis/aegis.h"
#include "base/file.h"
#include "options.h"

/* store is a loan of *out. */
void aeg_setup_options(const aeg_cli *cli, const char *store, aegis_options *out);

/* Resolve the model (packing it on first use, if the plan fits), open it and let signals cancel it. default_checkpoints is used
 * unless --checkpoints was given. --verbose prints the plan. */
aegis_status aeg_setup_open(const aeg_cli *cli, uint32_t default_checkpoints, aegis_engine **out, aegis_error *err);

/* Notices about settings that are allowed and probably not meant. */
void aeg_setup_warn(const aeg_cli *cli);

/* `status` of work on a text of n bytes; when it met the ceiling of the plan, AEGIS_E_USAGE that says so. */
aegis_status aeg_setup_too_long(const aegis_engine *engine, size_t n, aegis_status status, aegis_error *err);

/* Tokenizer and template alone. --memory bounds the texts; signals end the process from here on. */
aegis_status aeg_setup_open_text(const aeg_cli *cli, aegis_engine **out, aegis_error *err);
void aeg_setup_close(aegis_engine *engine); /* NULL allowed */

/* The model's defaults, then what was given; a seed is drawn if one is needed and none was given. */
aegis_status aeg_setup_sampling(const aeg_cli *cli, const aegis_engine *engine, aegis_sampling *out, aegis_error *err);

/* The table of accounts, as `plan` prints it; to a FILE. */
void aeg_setup_print_plan(const aegis_plan *plan, void *file);

/* "12 tok/s, ..." of one answer on standard error. */
void aeg_setup_say_figures(const aegis_generated *g, const aegis_stats *s, const aegis_sampling *sampling);

double aeg_setup_rate(uint64_t n, uint64_t ns);      /* per second; 0 if ns is 0 */
double aeg_setup_hit_rate(const aegis_stats *s);     /* 1 if nothing was used */

#endif
