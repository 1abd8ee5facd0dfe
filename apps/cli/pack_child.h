/* SPDX-License-Identifier: Apache-2.0 */
/* pack_child.h - `aegis pack` as a child process. Thread: main only. */
#ifndef AEG_CLI_PACK_CHILD_H
#define AEG_CLI_PACK_CHILD_H

#include "options.h"

/* Run ourselves as `aegis pack SRC DST` with the pack options of `cli` and what is left of its budget. The child
 * writes to our standard error. On failure the status is the one the child's exit code stands for and the
 * message is empty; signals are passed on and give AEGIS_E_CANCELLED. */
aegis_status aeg_pack_child(const aeg_cli *cli, const char *src, const char *dst, aegis_error *err);

#endif
