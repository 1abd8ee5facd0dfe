/* SPDX-License-Identifier: Apache-2.0 */
/* model_source.h - what MODEL on the command line means, and the stores packed on first use.
 *
 * A store is used as it is. A GGUF file or a model folder is packed once into $XDG_CACHE_HOME/aegis/stores/KEY (KEY: name of
 * the folder and a hash of its path, the size and time of its files and the pack options), by a child process,
 * so that its memory is gone before the engine plans its own; what needs no weights (a plan, tokens, templates) takes an
 * outline instead. A lock file makes two processes pack once.
 * Beside each store lies KEY.json with the source it came from.
 * Thread: main only. Resolve before opening anything: parent and child count to one budget.
 */
#ifndef AEG_CLI_MODEL_SOURCE_H
#define AEG_CLI_MODEL_SOURCE_H

#include "base/file.h"
#include "options.h"

enum { AEG_SOURCE_KEY = 96 };

typedef struct {
    char store[AEG_PATH_MAX];   /* where the store is, or would be */
    bool packed;                /* it is there */
    char source[AEG_PATH_MAX], folder[AEG_PATH_MAX], key[AEG_SOURCE_KEY]; /* of a source: its full path, folder/key the store */
} aeg_source_place;

/* What cli->model is. AEGIS_E_MODEL: neither store nor source. Nothing is packed. */
aegis_status aeg_source_locate(const aeg_cli *cli, aeg_source_place *out, aegis_error *err);

/* The store folder of cli->model into store[AEG_PATH_MAX], packed if it is not yet. AEGIS_E_MODEL: neither store nor source. If
 * packing failed the child has said why, and the message is empty. */
aegis_status aeg_source_resolve(const aeg_cli *cli, char *store, aegis_error *err);

/* Is cli->model a GGUF file or a model folder? Never fails. */
bool aeg_source_is_source(const aeg_cli *cli);

/* What is known of a model without packing it: its store or, of a source that has none yet, an outline (aegis/pack.h: no weights,
 * no disk space) beside where the store would be. Packing waits until it is dropped. */
typedef struct {
    char store[AEG_PATH_MAX];
    bool is_outline;
    aeg_source_place place;
    int lock;
} aeg_outline;

/* As for resolve. Out: to be dropped, whatever it is; after a failure that does nothing. */
aegis_status aeg_source_outline(const aeg_cli *cli, aeg_outline *out, aegis_error *err);
void aeg_source_drop(aeg_outline *outline);

/* The folder of packed stores into out[AEG_PATH_MAX]; it may not exist yet. AEGIS_E_USAGE: no home. */
aegis_status aeg_source_cache_folder(char *out, aegis_error *err);

/* Take the lock of a store; *fd is closed to release it. With wait = false a lock held by others gives
 * AEGIS_E_RUNTIME. */
aegis_status aeg_source_lock(int *fd, const char *folder, const char *key, bool wait, aegis_error *err);

/* The same of a place whose folder may not exist yet; release leaves no lock file behind where no store came of it. */
aegis_status aeg_source_hold(const aeg_source_place *place, int *lock, aegis_error *err);
void aeg_source_release(const aeg_source_place *place, int lock);

/* Is there a store in this folder? */
bool aeg_source_is_store(const char *path);

#endif
