/* SPDX-License-Identifier: Apache-2.0 */
#include "format/safetensors_set.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "format/scan.h"

enum { MAX_FILE_NAME = 255 };
static const char index_name[] = "model.safetensors.index.json";
static const char suffix[] = ".safetensors";

char *aeg_st_join(aeg_memory *memory, const char *folder, const char *name)
{
    const size_t a = folder == NULL ? 0 : strlen(folder) + 1, b = strlen(name) + 1;
    char *p = aeg_malloc(memory, a + b);
    if (p == NULL)
        return NULL;
    if (a > 0) {
        memcpy(p, folder, a - 1);
        p[a - 1] = '/';
    }
    memcpy(p + a, name, b);
    return p;
}

static aegis_status add_name(aeg_st_names *names, const char *name, aegis_error *err)
{
    if (names->n == AEG_SOURCE_MAX_FILES)
        return aeg_fail(err, AEGIS_E_MODEL, "more than %d safetensors files", AEG_SOURCE_MAX_FILES);
    if (names->n == names->capacity) {
        const uint32_t n = names->capacity == 0 ? 16 : 2 * names->capacity;
        char **grown = aeg_realloc(names->memory, names->name, n * sizeof *grown);
        if (grown == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a list of %u files", n);
        names->name = grown;
        names->capacity = n;
    }
    char *copy = aeg_strdup(names->memory, name);
    if (copy == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a file name");
    names->name[names->n++] = copy;
    return AEGIS_OK;
}

static void clear_names(aeg_st_names *names)
{
    for (uint32_t i = 0; i < names->n; i++)
        aeg_free(names->memory, names->name[i]);
    names->n = 0;
}

static void drop_index(aeg_st_names *names)
{
    aeg_free(names->memory, names->mapped);
    aeg_free(names->memory, names->index_text);
    names->mapped = NULL;
    names->index_text = NULL;
    names->n_mapped = names->mapped_capacity = 0;
}

void aeg_st_names_free(aeg_st_names *names)
{
    clear_names(names);
    drop_index(names);
    aeg_free(names->memory, names->name);
    *names = (aeg_st_names){ 0 };
}

static bool has_suffix(const char *name)
{
    const size_t n = strlen(name);
    return n > sizeof suffix - 1 && strcmp(name + n - (sizeof suffix - 1), suffix) == 0;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* model*.safetensors of the folder, sorted: what MLX itself loads. */
static aegis_status list_folder(aeg_st_names *names, const char *path, aegis_error *err)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "%s", path);
    aegis_status status = AEGIS_OK;
    for (const struct dirent *e; status == AEGIS_OK && (e = readdir(dir)) != NULL;)
        if (strncmp(e->d_name, "model", 5) == 0 && has_suffix(e->d_name))
            status = add_name(names, e->d_name, err);
    closedir(dir);
    if (status == AEGIS_OK && names->n == 0)
        status = aeg_fail(err, AEGIS_E_MODEL, "%s: no model*.safetensors", path);
    if (status == AEGIS_OK)
        qsort(names->name, names->n, sizeof *names->name, by_text);
    return status;
}

/* The index comes from a stranger: its names must stay inside the folder. */
static aegis_status check_file_name(const char *path, const char *name, aegis_error *err)
{
    if (strlen(name) > MAX_FILE_NAME || strpbrk(name, "/\\") != NULL || name[0] == '.' || !has_suffix(name))
        return aeg_fail(err, AEGIS_E_MODEL, "%s/%s: weight_map names the file '%.100s', expected a plain *%s", path,
                        index_name, name, suffix);
    return AEGIS_OK;
}

static aegis_status file_index(aeg_st_names *names, const char *name, uint32_t *out, aegis_error *err)
{
    /* writers list tensors shard by shard or sorted: the last file is the likely one */
    for (uint32_t i = names->n; i-- > 0;)
        if (strcmp(names->name[i], name) == 0) {
            *out = i;
            return AEGIS_OK;
        }
    *out = names->n;
    return add_name(names, name, err);
}

static aegis_status add_mapped(aeg_st_names *names, aeg_st_mapped m, aegis_error *err)
{
    if (names->n_mapped == AEG_SOURCE_MAX_TENSORS)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: more than %d tensors", index_name, AEG_SOURCE_MAX_TENSORS);
    if (names->n_mapped == names->mapped_capacity) {
        const uint32_t n = names->mapped_capacity == 0 ? 256 : 2 * names->mapped_capacity;
        aeg_st_mapped *grown = aeg_realloc(names->memory, names->mapped, n * sizeof *grown);
        if (grown == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for %u tensors", index_name, n);
        names->mapped = grown;
        names->mapped_capacity = n;
    }
    names->mapped[names->n_mapped++] = m;
    return AEGIS_OK;
}

static aegis_status get_weight_map(aeg_st_names *names, aeg_scan *s, const char *path, aegis_error *err)
{
    AEG_TRY(aeg_scan_expect(s, '{', err));
    for (bool more = !aeg_scan_take(s, '}'); more;) {
        char *tensor, *file;
        aeg_st_mapped m;
        AEG_TRY(aeg_scan_string(s, &tensor, AEG_SOURCE_MAX_NAME, err));
        AEG_TRY(aeg_scan_expect(s, ':', err));
        AEG_TRY(aeg_scan_string(s, &file, AEG_PATH_MAX, err));
        AEG_TRY(check_file_name(path, file, err));
        m.tensor = tensor;
        AEG_TRY(file_index(names, file, &m.file, err));
        AEG_TRY(add_mapped(names, m, err));
        AEG_TRY(aeg_scan_more(s, '}', &more, err));
    }
    return AEGIS_OK;
}

static aegis_status parse_index(aeg_st_names *names, size_t n, const char *path, aegis_error *err)
{
    aeg_scan s = { .start = names->index_text, .p = names->index_text, .end = names->index_text + n,
                   .path = index_name };
    bool map = false;
    AEG_TRY(aeg_scan_expect(&s, '{', err));
    for (bool more = !aeg_scan_take(&s, '}'); more;) {
        char *key;
        AEG_TRY(aeg_scan_string(&s, &key, AEG_SOURCE_MAX_NAME, err));
        AEG_TRY(aeg_scan_expect(&s, ':', err));
        if (strcmp(key, "weight_map") == 0) {
            if (map)
                return aeg_scan_fail(&s, "a second weight_map", err);
            map = true;
            AEG_TRY(get_weight_map(names, &s, path, err));
        } else {
            AEG_TRY(aeg_scan_skip(&s, err));
        }
        AEG_TRY(aeg_scan_more(&s, '}', &more, err));
    }
    if (aeg_scan_take(&s, '\0') || s.p != s.end)
        return aeg_scan_fail(&s, "something after the object", err);
    if (names->n == 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s/%s: no weight_map, or an empty one", path, index_name);
    return AEGIS_OK;
}

/* A shard that is missing while files the index does not know are there: the index is of another conversion.
 * If every file there is known, a download is incomplete, and opening the missing one will say so. */
static aegis_status is_stale(const aeg_st_names *names, const char *path, bool *stale, aegis_error *err)
{
    aeg_st_names found = { .memory = names->memory };
    uint32_t missing = 0, unknown = 0;
    const aegis_status status = list_folder(&found, path, err);
    if (status == AEGIS_E_MODEL && found.n == 0) {
        *stale = false;
        aeg_st_names_free(&found);
        return AEGIS_OK;
    }
    for (uint32_t i = 0; status == AEGIS_OK && i < found.n; i++)
        unknown += bsearch(&found.name[i], names->name, names->n, sizeof *names->name, by_text) == NULL;
    for (uint32_t i = 0; status == AEGIS_OK && i < names->n; i++)
        missing += bsearch(&names->name[i], found.name, found.n, sizeof *found.name, by_text) == NULL;
    aeg_st_names_free(&found);
    *stale = missing > 0 && unknown > 0;
    return status;
}

/* Sorting the names moves them: the map follows. */
static aegis_status sort_index(aeg_st_names *names, aegis_error *err)
{
    char **old = aeg_malloc(names->memory, names->n * sizeof *old);
    if (old == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a list of %u files", names->n);
    memcpy(old, names->name, names->n * sizeof *old);
    qsort(names->name, names->n, sizeof *names->name, by_text);
    for (uint32_t i = 0; i < names->n_mapped; i++) {
        char **at = bsearch(&old[names->mapped[i].file], names->name, names->n, sizeof *old, by_text);
        names->mapped[i].file = (uint32_t)(at - names->name);
    }
    aeg_free(names->memory, old);
    return AEGIS_OK;
}

static aegis_status read_index(aeg_st_names *names, const char *path, bool *stale, aegis_error *err)
{
    char full[AEG_PATH_MAX];
    size_t n = 0;
    *stale = true;
    AEG_TRY(aeg_path_join(full, path, index_name, err));
    if (!aeg_file_exists(full))
        return AEGIS_OK;
    AEG_TRY(aeg_file_read(&names->index_text, &n, full, AEG_ST_MAX_HEADER, names->memory, err));
    AEG_TRY(parse_index(names, n, path, err));
    AEG_TRY(sort_index(names, err));
    return is_stale(names, path, stale, err);
}

aegis_status aeg_st_list(aeg_st_names *names, const char *path, aegis_error *err)
{
    bool stale = true;
    if (!aeg_is_directory(path))
        return add_name(names, path, err);
    names->in_folder = true;
    AEG_TRY(read_index(names, path, &stale, err));
    if (!stale)
        return AEGIS_OK;
    if (names->index_text != NULL)
        aeg_log(AEG_LOG_NOTICE, "%s/%s names files that are not there; reading every model*%s instead", path,
                index_name, suffix);
    clear_names(names);
    drop_index(names);
    return list_folder(names, path, err);
}

aegis_status aeg_st_check_index(const aeg_st_names *names, const aeg_source *st, const char *path, aegis_error *err)
{
    const aeg_st_mapped *missing = NULL;
    uint32_t n_found = 0;
    for (uint32_t i = 0; i < names->n_mapped; i++) {
        const aeg_tensor *t = aeg_source_find(st, names->mapped[i].tensor);
        if (t != NULL && t->file == names->mapped[i].file)
            n_found++;
        else if (missing == NULL)
            missing = &names->mapped[i];
    }
    if (missing == NULL)
        return AEGIS_OK;
    if (n_found > 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %s says tensor '%.200s' is in %s, but it is not", path, index_name,
                        missing->tensor, names->name[missing->file]);
    aeg_log(AEG_LOG_NOTICE, "%s/%s names other tensors than its files hold; ignored", path, index_name);
    return AEGIS_OK;
}
