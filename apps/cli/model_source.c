/* SPDX-License-Identifier: Apache-2.0 */
#include "model_source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "pack_child.h"
#include "signals.h"
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

/* --- key ------------------------------------------------------------------------------------------- */

/* FNV-1a, 64 bits: names stores of one user, guards nothing. */
static uint64_t mix(uint64_t hash, const void *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t mix_text(uint64_t hash, const char *text) { return mix(hash, text, strlen(text) + 1); }

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), n_end = strlen(end);
    return n >= n_end && strcmp(name + n - n_end, end) == 0;
}

typedef struct {
    uint32_t n_weights;       /* *.safetensors */
    bool config;              /* config.json   */
    char gguf[NAME_MAX + 1];  /* the first by name that can be a model; "": none */
} folder_facts;

static void note_file(folder_facts *facts, const char *name)
{
    facts->n_weights += ends_with(name, ".safetensors");
    facts->config |= strcmp(name, "config.json") == 0;
    if (ends_with(name, ".gguf") && strncmp(name, "mmproj", 6) != 0 && (facts->gguf[0] == '\0' || strcmp(name, facts->gguf) < 0))
        snprintf(facts->gguf, sizeof facts->gguf, "%s", name);
}

/* Files of a source; order of readdir does not matter, so each file is hashed alone and the hashes are added. */
static aegis_status hash_folder(const char *folder, uint64_t *hash, folder_facts *facts, aegis_error *err)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "%s", folder);
    uint64_t sum = 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        struct stat st;
        note_file(facts, name);
        if (!ends_with(name, ".safetensors") && !ends_with(name, ".json") && !ends_with(name, ".jinja") &&
            !ends_with(name, ".model"))
            continue;
        if (fstatat(dirfd(dir), name, &st, 0) != 0 || !S_ISREG(st.st_mode))
            continue;
        const int64_t changed[3] = { st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
        sum += mix(mix_text(UINT64_C(0xcbf29ce484222325), name), changed, sizeof changed);
    }
    closedir(dir);
    *hash = mix(*hash, &sum, sizeof sum);
    return AEGIS_OK;
}

/* Name, size and time of a file; false if it cannot be looked at. */
static bool hash_file(const char *path, uint64_t *hash)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    const int64_t facts[3] = { st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
    const char *base = strrchr(path, '/');
    *hash = mix(mix_text(*hash, base == NULL ? path : base + 1), facts, sizeof facts);
    return true;
}

/* A GGUF file, or all parts of "...-00001-of-00003.gguf"; one that is missing is the packer's to complain about. */
static void hash_parts(const char *path, uint64_t *hash)
{
    static const char first[] = "-00001-of-";
    char part[AEG_PATH_MAX];
    const size_t n = strlen(path), suffix = sizeof first - 1 + sizeof "00000.gguf" - 1;
    const unsigned long parts = n > suffix && n < sizeof part && memcmp(path + n - suffix, first, sizeof first - 1) == 0
                                    ? strtoul(path + n - suffix + sizeof first - 1, NULL, 10)
                                    : 1;
    hash_file(path, hash);
    for (unsigned long i = 2; i <= parts; i++) {
        snprintf(part, sizeof part, "%.*s-%05lu%s", (int)(n - suffix), path, i, path + n - suffix + 6);
        hash_file(part, hash);
    }
}

static aegis_status make_key(char key[AEG_SOURCE_KEY], const aeg_cli *cli, const char *source, aegis_error *err)
{
    /* Change the text when stores of the same source get another layout. */
    uint64_t hash = mix_text(UINT64_C(0xcbf29ce484222325), "store 1");
    folder_facts facts = { 0 }, unused = { 0 };
    const int32_t bits[2] = { cli->expert_bits, cli->dense_bits };
    hash = mix(mix_text(hash, source), bits, sizeof bits);
    if (!aeg_is_directory(source))
        hash_parts(source, &hash);
    else
        AEG_TRY(hash_folder(source, &hash, &facts, err));
    if (aeg_is_directory(source) && (facts.n_weights == 0 || !facts.config))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: neither a store (no manifest.json) nor a model folder (no %s); of a GGUF model name "
                        "the file%s%s", cli->model, facts.n_weights == 0 ? "*.safetensors" : "config.json",
                        facts.gguf[0] != '\0' ? ", here " : "", facts.gguf);
    if (cli->tokenizer != NULL)
        AEG_TRY(hash_folder(cli->tokenizer, &hash, &unused, err));

    char name[64];
    const char *base = strrchr(source, '/');
    snprintf(name, sizeof name, "%s", base != NULL && base[1] != '\0' ? base + 1 : "model");
    for (char *p = name; *p != '\0'; p++)
        if (!((*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || strchr("._-", *p)))
            *p = '_';
    if (name[0] == '.' || name[0] == '-')
        name[0] = '_';
    snprintf(key, AEG_SOURCE_KEY, "%s-%016" PRIx64, name, hash);
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

/* Of a model that was not packed: nothing is left in the folder. Who waits for the lock sees that its file is gone. */
static void drop_lock(int lock, const char *folder, const char *key)
{
    char name[AEG_SOURCE_KEY + 8], path[AEG_PATH_MAX];
    snprintf(name, sizeof name, "%.*s.lock", AEG_SOURCE_KEY, key);
    if (aeg_path_join(path, folder, name, NULL) == AEGIS_OK)
        unlink(path);
    close(lock);
}

/* --- resolve --------------------------------------------------------------------------------------- */

static aegis_status note_source(const char *folder, const char *key, const char *source, aegis_error *err)
{
    char name[AEG_SOURCE_KEY + 8], path[AEG_PATH_MAX];
    snprintf(name, sizeof name, "%.*s.json", AEG_SOURCE_KEY, key);
    AEG_TRY(aeg_path_join(path, folder, name, err));
    aeg_json_init();
    json_t *note = json_pack("{s:s%}", "source", source, strlen(source));
    char text[2 * AEG_PATH_MAX];
    const size_t n = note != NULL ? json_dumpb(note, text, sizeof text, 0) : 0;
    json_decref(note);
    if (n == 0 || n > sizeof text)
        return AEGIS_OK; /* a path that is not UTF-8: `cache ls` shows no source */
    return aeg_file_write(path, text, n, err);
}

static aegis_status pack_first_use(const aeg_cli *cli, const char *source, const char *folder, const char *key,
                                   const char *store, aegis_error *err)
{
    int lock = -1;
    aegis_status status = aeg_make_dirs(folder, err);
    if (status == AEGIS_OK)
        status = aeg_source_lock(&lock, folder, key, true, err);
    if (status == AEGIS_E_IO)
        return aeg_wrap(err, status, "no place for packed models (set XDG_CACHE_HOME, or run aegis pack SRC DST)");
    AEG_TRY(status);
    if (!aeg_source_is_store(store)) { /* the other process may have packed it meanwhile */
        status = aeg_pack_child(cli, source, store, err);
        if (status == AEGIS_OK)
            status = note_source(folder, key, source, err);
    }
    if (status != AEGIS_OK && !aeg_source_is_store(store))
        drop_lock(lock, folder, key);
    else
        close(lock);
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

/* Where the store of a source is or will be: source [AEG_PATH_MAX] its full path, store = folder/key. */
typedef struct {
    char source[AEG_PATH_MAX], folder[AEG_PATH_MAX], key[AEG_SOURCE_KEY];
} place;

static aegis_status find_place(const aeg_cli *cli, bool file, place *p, char *store, aegis_error *err)
{
    AEG_TRY(full_path(cli->model, file, p->source, err));
    AEG_TRY(make_key(p->key, cli, p->source, err));
    AEG_TRY(aeg_source_cache_folder(p->folder, err));
    return aeg_path_join(store, p->folder, p->key, err);
}

bool aeg_source_packed(const aeg_cli *cli, char *store, bool *is_source)
{
    struct stat st;
    place p;
    *is_source = stat(cli->model, &st) == 0 && (!S_ISREG(st.st_mode) || check_gguf(cli->model, NULL) == AEGIS_OK) &&
                 find_place(cli, S_ISREG(st.st_mode), &p, store, NULL) == AEGIS_OK;
    return *is_source && aeg_source_is_store(store);
}

aegis_status aeg_source_resolve(const aeg_cli *cli, char *store, aegis_error *err)
{
    const char *model = cli->model;
    struct stat st;
    if (model[0] == '\0')
        return aeg_fail(err, AEGIS_E_USAGE, "the name of the model is empty");
    if (stat(model, &st) != 0)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "model %s", model);
    if (S_ISREG(st.st_mode))
        AEG_TRY(check_gguf(model, err));
    if (aeg_source_is_store(model)) {
        if (snprintf(store, AEG_PATH_MAX, "%s", model) >= AEG_PATH_MAX)
            return aeg_fail(err, AEGIS_E_USAGE, "path of the model is longer than %d bytes", AEG_PATH_MAX - 1);
        if (cli->expert_bits != 0 || cli->dense_bits != 0 || cli->tokenizer != NULL)
            aeg_ui_say("%s is a store already; %s is ignored", model,
                       cli->expert_bits != 0 ? "--expert-bits" : cli->dense_bits != 0 ? "--dense-bits" : "--tokenizer");
        return AEGIS_OK;
    }
    place p;
    AEG_TRY(find_place(cli, S_ISREG(st.st_mode), &p, store, err));
    return aeg_source_is_store(store) ? AEGIS_OK : pack_first_use(cli, p.source, p.folder, p.key, store, err);
}
