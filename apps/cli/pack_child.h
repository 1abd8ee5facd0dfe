/* SPDX-License-Identifier: Apache-2.0 */
/* pack_child.h - `aegis pack` in a child process. Thread: main only, and the only one at that time. */
#ifndef AEG_CLI_PACK_CHILD_H
#define AEG_CLI_PACK_CHILD_H

#include "options.h"

/* Pack with the pack options of `cli` and what is left of its budget, in a child: what packing touched is gone
 * before the engine plans. No exec: nothing is open yet, so a fork is as small as a new program, and it also works
 * under an emulator or after an update replaced the binary. The child writes to our standard error, that this is a first use when packing begins; of an
 * outline (aegis/pack.h) it says nothing. On failure the status is the one its exit code stands for and the message is empty; signals are passed on and give
 * AEGIS_E_CANCELLED. */
aegis_status aeg_pack_child(const aeg_cli *cli, const char *src, const char *dst, bool outline, aegis_error *err);

#endif
