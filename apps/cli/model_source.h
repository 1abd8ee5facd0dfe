/* SPDX-License-Identifier: Apache-2.0 */
/* model_source.h - what MODEL on the command line means, and the stores packed on first use.
 *
 * A store is used as it is. A GGUF file or a model folder is packed once into $XDG_CACHE_HOME/aegis/stores/KEY (KEY: name of
 * the folder and a hash of its path, the size and time of its files and the pack options), by a child process,
 * so that its memory is gone before the engine plans its own. A lock file makes two processes pack once.
 * Beside each store lies KEY.json with the source it came from.
 * Thread: main only. Resolve before opening anything: parent and child count to one budget.
 */
#ifndef AEG_CLI_MODEL_SOURCE_H
#define AEG_CLI_MODEL_SOURCE_H

#include "base/file.h"
#include "options.h"

/* The store folder of cli->model into store[AEG_PATH_MAX]. AEGIS_E_MODEL: neither store nor source. If packing
 * failed the child has said why, and the message is empty. */
aegis_status aeg_source_resolve(const aeg_cli *cli, char *store, aegis_error *err);

/* Is cli->model a source (a GGUF file, a model folder), and has it been packed with these options? Then its store is in
 * store[AEG_PATH_MAX]. Nothing is packed. */
bool aeg_source_packed(const aeg_cli *cli, char *store, bool *is_source);

/* The folder of packed stores into out[AEG_PATH_MAX]; it may not exist yet. AEGIS_E_USAGE: no home. */
aegis_status aeg_source_cache_folder(char *out, aegis_error *err);

enum { AEG_SOURCE_KEY = 96 };

/* Take the lock of a store; *fd is closed to release it. With wait = false a lock held by others gives
 * AEGIS_E_RUNTIME. */
aegis_status aeg_source_lock(int *fd, const char *folder, const char *key, bool wait, aegis_error *err);

/* Is there a store in this folder? */
bool aeg_source_is_store(const char *path);

#endif
