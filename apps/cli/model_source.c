/* SPDX-License-Identifier: Apache-2.0 */
#include "model_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "model_key.h"
#include "pack_child.h"
#include "signals.h"
#include "store_folder.h"
#include "ui.h"

bool aeg_source_is_store(const char *path)
{
    char manifest[AEG_PATH_MAX];
    return aeg_path_join(manifest, path, "manifest.json", NULL) == AEGIS_OK && aeg_file_exists(manifest);
}

aegis_status aeg_source_cache_folder(char *out, aegis_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache != NULL && cache[0] == '/') /* relative ones are to be ignored (XDG base directories) */
        n = snprintf(out, AEG_PATH_MAX, "%s/aegis/stores", cache);
    else if (home != NULL && home[0] == '/')
        n = snprintf(out, AEG_PATH_MAX, "%s/.cache/aegis/stores", home);
    if (n < 0 || n >= AEG_PATH_MAX)
        return aeg_fail(err, AEGIS_E_USAGE, "no place for packed models: set XDG_CACHE_HOME, or run aegis pack SRC DST");
    return AEGIS_OK;
}

/* --- lock ------------------------------------------------------------------------------------------ */

static aegis_status wait_for_lock(int fd, const char *key, bool wait, aegis_error *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return AEGIS_OK;
    if (errno != EWOULDBLOCK)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "locking %s", key);
    if (!wait)
        return aeg_fail(err, AEGIS_E_RUNTIME, "%s is being packed by another process", key);
    aeg_ui_say("waiting for another process that packs %s", key);
    while (flock(fd, LOCK_EX) != 0) {
        if (errno == EINTR && aeg_signals_caught(false) != 0)
            return aeg_fail(err, AEGIS_E_CANCELLED, "interrupted");
        if (errno != EINTR)
            return aeg_fail_os(err, AEGIS_E_IO, errno, "locking %s", key);
    }
    return AEGIS_OK;
}

aegis_status aeg_source_lock(int *out, const char *folder, const char *key, bool wait, aegis_error *err)
{
    char name[AEG_SOURCE_KEY + 8], path[AEG_PATH_MAX];
    snprintf(name, sizeof name, "%.*s.lock", AEG_SOURCE_KEY, key);
    AEG_TRY(aeg_path_join(path, folder, name, err));
    for (;;) {
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0)
            return aeg_fail_os(err, AEGIS_E_IO, errno, "%s", path);
        const aegis_status status = wait_for_lock(fd, key, wait, err);
        struct stat ours, now;
        if (status != AEGIS_OK) {
            close(fd);
            return status;
        }
        /* `cache rm` may have removed the file while we waited: then our lock guards nothing. */
        if (fstat(fd, &ours) == 0 && stat(path, &now) == 0 && ours.st_ino == now.st_ino) {
            *out = fd;
            return AEGIS_OK;
        }
        close(fd);
    }
}

aegis_status aeg_source_hold(const aeg_source_place *p, int *lock, aegis_error *err)
{
    aegis_status status = aeg_make_dirs(p->folder, err);
    if (status == AEGIS_OK)
        status = aeg_source_lock(lock, p->folder, p->key, true, err);
    return status == AEGIS_E_IO ? aeg_wrap(err, status, "no place for packed models (set XDG_CACHE_HOME, or run aegis pack SRC DST)")
                                : status;
}

void aeg_source_release(const aeg_source_place *p, int lock)
{
    char name[AEG_SOURCE_KEY + 8], path[AEG_PATH_MAX];
    snprintf(name, sizeof name, "%s.lock", p->key);
    if (!aeg_source_is_store(p->store) && aeg_path_join(path, p->folder, name, NULL) == AEGIS_OK)
        unlink(path); /* who waits for the lock sees that its file is gone */
    close(lock);
}

/* --- resolve --------------------------------------------------------------------------------------- */

static aegis_status note_source(const aeg_source_place *p, aegis_error *err)
{
    char name[AEG_SOURCE_KEY + 8], path[AEG_PATH_MAX];
    snprintf(name, sizeof name, "%s.json", p->key);
    AEG_TRY(aeg_path_join(path, p->folder, name, err));
    aeg_json_init();
    json_t *note = json_pack("{s:s%}", "source", p->source, strlen(p->source));
    char text[2 * AEG_PATH_MAX];
    const size_t n = note != NULL ? json_dumpb(note, text, sizeof text, 0) : 0;
    json_decref(note);
    if (n == 0 || n > sizeof text)
        return AEGIS_OK; /* a path that is not UTF-8: `cache ls` shows no source */
    return aeg_file_write(path, text, n, err);
}

static aegis_status pack_first_use(const aeg_cli *cli, const aeg_source_place *p, aegis_error *err)
{
    int lock = -1;
    AEG_TRY(aeg_source_hold(p, &lock, err));
    aegis_status status = AEGIS_OK;
    if (!aeg_source_is_store(p->store)) { /* the other process may have packed it meanwhile */
        status = aeg_pack_child(cli, p->source, p->store, false, err);
        if (status == AEGIS_OK)
            status = note_source(p, err);
    }
    aeg_source_release(p, lock);
    return status;
}

static aegis_status check_gguf(const char *path, aegis_error *err)
{
    char magic[4] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "model %s", path);
    const bool is = read(fd, magic, sizeof magic) == sizeof magic && memcmp(magic, "GGUF", sizeof magic) == 0;
    close(fd);
    return is ? AEGIS_OK : aeg_fail(err, AEGIS_E_MODEL, "%s is a file but no GGUF file; expected a store, a model folder or a GGUF file", path);
}

/* Of a file only its folder is resolved: download caches have links there, and the parts of a split set go by the names
 * beside the link. */
static aegis_status full_path(const char *model, bool file, char *out, aegis_error *err)
{
    char folder[AEG_PATH_MAX];
    const char *slash = strrchr(model, '/');
    const char *name = slash == NULL ? model : slash + 1;
    if (!file && realpath(model, out) == NULL)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "model %s", model);
    if (!file)
        return AEGIS_OK;
    const int n = slash == NULL ? snprintf(folder, sizeof folder, ".") : snprintf(folder, sizeof folder, "%.*s/", (int)(slash - model), model);
    char resolved[AEG_PATH_MAX];
    if (n >= (int)sizeof folder || realpath(folder, resolved) == NULL)
        return aeg_fail_os(err, AEGIS_E_MODEL, n >= (int)sizeof folder ? ENAMETOOLONG : errno, "model %s", model);
    return aeg_path_join(out, resolved, name, err);
}

static aegis_status find_place(const aeg_cli *cli, bool file, aeg_source_place *p, aegis_error *err)
{
    AEG_TRY(full_path(cli->model, file, p->source, err));
    AEG_TRY(aeg_model_key(p->key, cli, p->source, err));
    AEG_TRY(aeg_source_cache_folder(p->folder, err));
    AEG_TRY(aeg_path_join(p->store, p->folder, p->key, err));
    p->packed = aeg_source_is_store(p->store);
    return AEGIS_OK;
}

bool aeg_source_is_source(const aeg_cli *cli)
{
    struct stat st;
    aeg_source_place p;
    return stat(cli->model, &st) == 0 && (!S_ISREG(st.st_mode) || check_gguf(cli->model, NULL) == AEGIS_OK) &&
           find_place(cli, S_ISREG(st.st_mode), &p, NULL) == AEGIS_OK;
}

aegis_status aeg_source_locate(const aeg_cli *cli, aeg_source_place *p, aegis_error *err)
{
    const char *model = cli->model;
    struct stat st;
    if (model[0] == '\0')
        return aeg_fail(err, AEGIS_E_USAGE, "the name of the model is empty");
    if (stat(model, &st) != 0)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "model %s", model);
    if (S_ISREG(st.st_mode))
        AEG_TRY(check_gguf(model, err));
    if (!aeg_source_is_store(model))
        return find_place(cli, S_ISREG(st.st_mode), p, err);
    if (snprintf(p->store, sizeof p->store, "%s", model) >= (int)sizeof p->store)
        return aeg_fail(err, AEGIS_E_USAGE, "path of the model is longer than %d bytes", AEG_PATH_MAX - 1);
    p->packed = true;
    return AEGIS_OK;
}

static void say_ignored(const aeg_cli *cli)
{
    if (aeg_source_is_store(cli->model) && (cli->expert_bits != 0 || cli->dense_bits != 0 || cli->tokenizer != NULL))
        aeg_ui_say("%s is a store already; %s is ignored", cli->model,
                   cli->expert_bits != 0 ? "--expert-bits" : cli->dense_bits != 0 ? "--dense-bits" : "--tokenizer");
}

aegis_status aeg_source_resolve(const aeg_cli *cli, char *store, aegis_error *err)
{
    aeg_source_place p;
    AEG_TRY(aeg_source_locate(cli, &p, err));
    say_ignored(cli);
    if (!p.packed)
        AEG_TRY(pack_first_use(cli, &p, err));
    memcpy(store, p.store, AEG_PATH_MAX);
    return AEGIS_OK;
}

/* --- an outline -------------------------------------------------------------------------------------- */

aegis_status aeg_source_outline(const aeg_cli *cli, aeg_outline *out, aegis_error *err)
{
    char name[AEG_SOURCE_KEY + 16];
    *out = (aeg_outline){ .lock = -1 };
    AEG_TRY(aeg_source_locate(cli, &out->place, err));
    out->is_outline = !out->place.packed;
    if (!out->is_outline) {
        memcpy(out->store, out->place.store, sizeof out->store);
        say_ignored(cli);
        return AEGIS_OK;
    }
    snprintf(name, sizeof name, "%s.outline", out->place.key);
    AEG_TRY(aeg_path_join(out->store, out->place.folder, name, err));
    AEG_TRY(aeg_source_hold(&out->place, &out->lock, err));
    aegis_status status = aeg_is_directory(out->store) ? aeg_store_folder_remove(out->store, err) : AEGIS_OK; /* of a process that was killed */
    if (status == AEGIS_OK)
        status = aeg_pack_child(cli, out->place.source, out->store, true, err);
    if (status != AEGIS_OK) {
        if (aeg_is_directory(out->store)) /* an interrupt that came when the child had finished */
            aeg_store_folder_remove(out->store, NULL);
        aeg_source_release(&out->place, out->lock);
        *out = (aeg_outline){ .lock = -1 };
    }
    return status;
}

void aeg_source_drop(aeg_outline *outline)
{
    if (outline->lock < 0)
        return;
    aeg_store_folder_remove(outline->store, NULL);
    aeg_source_release(&outline->place, outline->lock);
    outline->lock = -1;
}
