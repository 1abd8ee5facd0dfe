/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis cache`: the stores packed on first use. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/size.h"
#include "base/utf8.h"
#include "commands.h"
#include "model_source.h"
#include "store_folder.h"
#include "ui.h"

static bool is_dots(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

/* The note beside the store; a new reference, or NULL. */
static json_t *source_of(const char *folder, const char *key)
{
    enum { MAX_NOTE = 64 << 10 };
    char name[NAME_MAX + 8], path[AEG_PATH_MAX];
    char *text = NULL;
    size_t n = 0;
    json_t *note = NULL;
    snprintf(name, sizeof name, "%s.json", key);
    if (aeg_path_join(path, folder, name, NULL) != AEGIS_OK ||
        aeg_file_read(&text, &n, path, MAX_NOTE, aeg_ui_memory(), NULL) != AEGIS_OK)
        return NULL;
    if (aeg_json_parse(&note, text, n, path, AEGIS_E_MODEL, NULL) != AEGIS_OK)
        note = NULL;
    aeg_free(aeg_ui_memory(), text);
    json_t *source = json_incref(json_object_get(note, "source"));
    json_decref(note);
    return source;
}

/* [{"key", "bytes", "packed", "source"}] of every complete store. */
static aegis_status list_stores(json_t **out, const char *folder, aegis_error *err)
{
    aeg_json_init();
    json_t *stores = json_array();
    DIR *dir = opendir(folder);
    if (stores == NULL || (dir == NULL && errno != ENOENT)) {
        json_decref(stores);
        return aeg_fail_os(err, AEGIS_E_IO, errno, "%s", folder);
    }
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[AEG_PATH_MAX], when[32] = "";
        struct stat st;
        struct tm tm;
        if (is_dots(entry->d_name) || aeg_path_join(path, folder, entry->d_name, NULL) != AEGIS_OK ||
            !aeg_source_is_store(path) || stat(path, &st) != 0)
            continue;
        if (localtime_r(&st.st_mtime, &tm) != NULL)
            strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
        json_array_append_new(stores, json_pack("{s:s, s:I, s:s, s:o?}", "key", entry->d_name, "bytes",
                                                (json_int_t)aeg_store_folder_bytes(path), "packed", when, "source",
                                                source_of(folder, entry->d_name)));
    }
    if (dir != NULL)
        closedir(dir);
    *out = stores;
    return AEGIS_OK;
}

static aegis_status cache_ls(const aeg_cli *cli, const char *folder, aegis_error *err)
{
    json_t *stores = NULL, *store;
    size_t i;
    AEG_TRY(list_stores(&stores, folder, err));
    if (cli->json)
        return aeg_ui_print_json(json_pack("{s:s, s:o}", "folder", folder, "stores", stores), err);
    json_array_foreach(stores, i, store) {
        char size[AEG_SIZE_TEXT], shown[AEG_PATH_MAX];
        const char *source = json_string_value(json_object_get(store, "source"));
        aeg_utf8_show(shown, sizeof shown, source != NULL ? source : "?");
        printf("%-40s %10s  %s  %s\n", json_string_value(json_object_get(store, "key")),
               aeg_size_format(size, (uint64_t)json_integer_value(json_object_get(store, "bytes"))),
               json_string_value(json_object_get(store, "packed")), shown);
    }
    if (json_array_size(stores) == 0)
        aeg_ui_say("no packed models in %s", folder);
    json_decref(stores);
    return aeg_ui_flush(err);
}

static const char *const beside[] = { ".json", ".lock" };

static void remove_beside(const char *folder, const char *key)
{
    char path[AEG_PATH_MAX], name[NAME_MAX + 8];
    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s%s", key, beside[i]);
        if (aeg_path_join(path, folder, name, NULL) == AEGIS_OK)
            unlink(path);
    }
}

static aegis_status remove_store(const char *folder, const char *key, aegis_error *err)
{
    char path[AEG_PATH_MAX];
    if (strchr(key, '/') != NULL || key[0] == '.' || key[0] == '\0' || strlen(key) >= AEG_SOURCE_KEY)
        return aeg_fail(err, AEGIS_E_USAGE, "'%.80s' is not a key; see aegis cache ls", key);
    AEG_TRY(aeg_path_join(path, folder, key, err));
    if (!aeg_is_directory(path) && !aeg_is_link(path))
        return aeg_fail(err, AEGIS_E_USAGE, "no packed model '%.80s'; see aegis cache ls", key);
    int lock = -1;
    AEG_TRY(aeg_source_lock(&lock, folder, key, false, err));
    const aegis_status status = aeg_store_folder_remove(path, err);
    if (status == AEGIS_OK)
        remove_beside(folder, key);
    close(lock);
    return status;
}

/* A note or lock of a store that is not there, unless somebody packs it now. */
static void remove_stray(const char *folder, const char *name)
{
    char path[AEG_PATH_MAX], key[AEG_SOURCE_KEY];
    const size_t n = strlen(name), n_key = n > 5 ? n - 5 : 0;
    int lock = -1;
    if (n_key == 0 || n_key >= sizeof key || (strcmp(name + n_key, beside[0]) != 0 && strcmp(name + n_key, beside[1]) != 0))
        return;
    snprintf(key, sizeof key, "%.*s", (int)n_key, name);
    if (aeg_path_join(path, folder, key, NULL) != AEGIS_OK || aeg_file_exists(path) || aeg_is_link(path) ||
        aeg_source_lock(&lock, folder, key, false, NULL) != AEGIS_OK)
        return;
    remove_beside(folder, key);
    close(lock);
}

/* Folders that are no store, and files beside none, are what a killed packer left. */
static aegis_status remove_all(const char *folder, aegis_error *err)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return errno == ENOENT ? AEGIS_OK : aeg_fail_os(err, AEGIS_E_IO, errno, "%s", folder);
    aegis_status status = AEGIS_OK;
    const struct dirent *entry;
    while (status == AEGIS_OK && (entry = readdir(dir)) != NULL) {
        char path[AEG_PATH_MAX];
        if (is_dots(entry->d_name) || aeg_path_join(path, folder, entry->d_name, NULL) != AEGIS_OK)
            continue;
        if (!aeg_is_directory(path) && !aeg_is_link(path)) {
            remove_stray(folder, entry->d_name);
            continue;
        }
        status = aeg_source_is_store(path) ? remove_store(folder, entry->d_name, err) : aeg_store_folder_remove(path, err);
    }
    closedir(dir);
    return status;
}

aegis_status aeg_cmd_cache(aeg_cli *cli, aegis_error *err)
{
    char folder[AEG_PATH_MAX];
    AEG_TRY(aeg_source_cache_folder(folder, err));
    if (strcmp(cli->args[0], "ls") == 0 && cli->n_args == 1)
        return cache_ls(cli, folder, err);
    if (strcmp(cli->args[0], "rm") != 0 || (cli->n_args == 1) != cli->all)
        return aeg_fail(err, AEGIS_E_USAGE, "usage: aegis cache ls | rm KEY... | rm --all");
    if (cli->all)
        return remove_all(folder, err);
    for (uint32_t i = 1; i < cli->n_args; i++)
        AEG_TRY(remove_store(folder, cli->args[i], err));
    return AEGIS_OK;
}
