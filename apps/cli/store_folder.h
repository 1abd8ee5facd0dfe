/* SPDX-License-Identifier: Apache-2.0 */
/* store_folder.h - the folder of a store as files: its size, taking it away. Thread: main only. */
#ifndef AEG_CLI_STORE_FOLDER_H
#define AEG_CLI_STORE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

bool aeg_is_link(const char *path);

/* A store is one level of files; deeper folders are not ours and make it fail with AEGIS_E_IO. AEGIS_E_RUNTIME: a packer holds
 * its lock on the folder. Of a link the link is removed: what it leads to is not ours. */
aegis_status aeg_store_folder_remove(const char *path, aegis_error *err);

/* Sum of the sizes of its files, holes included; 0 if it cannot be read. */
uint64_t aeg_store_folder_bytes(const char *path);

#endif
