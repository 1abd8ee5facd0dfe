/* SPDX-License-Identifier: Apache-2.0 */
#include "disk_figure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "model_source.h"
#include "ui.h"

enum { FILE_VERSION = 1, MAX_FILE = 1 << 20 };

/* The cache folder is the parent of the folder of packed stores. */
static aegis_status cache_file(char *folder, char *file, aegis_error *err)
{
    AEG_TRY(aeg_source_cache_folder(folder, err));
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
    return aeg_path_join(file, folder, "doctor.json", err);
}

/* NULL: no file, or not one of ours. */
static json_t *load(void)
{
    char folder[AEG_PATH_MAX], path[AEG_PATH_MAX], *text = NULL;
    size_t n = 0;
    json_t *root = NULL;
    if (cache_file(folder, path, NULL) != AEGIS_OK || !aeg_file_exists(path) ||
        aeg_file_read(&text, &n, path, MAX_FILE, aeg_ui_memory(), NULL) != AEGIS_OK)
        return NULL;
    if (aeg_json_parse(&root, text, n, path, AEGIS_E_MODEL, NULL) != AEGIS_OK)
        root = NULL;
    aeg_free(aeg_ui_memory(), text);
    if (json_integer_value(json_object_get(root, "version")) == FILE_VERSION)
        return root;
    json_decref(root);
    return NULL;
}

static bool device_key(char key[32], const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    snprintf(key, 32, "%" PRIu64, (uint64_t)st.st_dev);
    return true;
}

static double positive(const json_t *object, const char *name)
{
    const double v = json_number_value(json_object_get(object, name));
    return v > 0 ? v : 0;
}

static bool read_figure(const json_t *object, aeg_disk_figure *out)
{
    *out = (aeg_disk_figure){
        .record_bytes = (uint64_t)positive(object, "record_bytes"), .bytes_per_s = positive(object, "bytes_per_s"),
        .burst_bytes_per_s = positive(object, "burst_bytes_per_s"), .burst_latency_s = positive(object, "burst_latency_s"),
        .measured_at = (int64_t)positive(object, "measured_at"),
    };
    return out->bytes_per_s > 0 && out->burst_bytes_per_s > 0 && out->record_bytes > 0;
}

/* How many times larger the larger one is. */
static double distance(uint64_t a, uint64_t b)
{
    return a > b ? (double)a / (double)b : (double)b / (double)a;
}

bool aeg_disk_figure_find(const char *path, uint64_t record_bytes, aeg_disk_figure *out)
{
    char key[32];
    const char *size;
    json_t *figure;
    bool found = false;
    *out = (aeg_disk_figure){ 0 };
    json_t *root = device_key(key, path) ? load() : NULL;
    json_object_foreach(json_object_get(json_object_get(root, "disks"), key), size, figure) {
        aeg_disk_figure f;
        if (!read_figure(figure, &f) ||
            (found && distance(f.record_bytes, record_bytes) >= distance(out->record_bytes, record_bytes)))
            continue;
        *out = f;
        out->read_bandwidth = positive(root, "read_bandwidth");
        found = true;
    }
    json_decref(root);
    return found && distance(out->record_bytes, record_bytes) <= AEG_DISK_SIZE_FACTOR;
}

double aeg_disk_figure_bandwidth(void)
{
    json_t *root = load();
    const double rate = positive(root, "read_bandwidth");
    json_decref(root);
    return rate;
}

aegis_status aeg_disk_figure_save(const char *path, const aeg_disk_figure *f, aegis_error *err)
{
    char folder[AEG_PATH_MAX], file[AEG_PATH_MAX], key[32];
    AEG_TRY(cache_file(folder, file, err));
    AEG_TRY(aeg_make_dirs(folder, err));
    if (!device_key(key, path))
        return aeg_fail(err, AEGIS_E_IO, "%s cannot be examined", path);
    aeg_json_init();
    json_t *root = load();
    if (root == NULL)
        root = json_pack("{s:i, s:{}}", "version", FILE_VERSION, "disks");
    json_object_set_new(root, "read_bandwidth", json_real(f->read_bandwidth));
    json_t *disks = json_object_get(root, "disks"), *disk = json_object_get(disks, key);
    if (!json_is_object(disk)) {
        json_object_set_new(disks, key, json_object());
        disk = json_object_get(disks, key);
    }
    char size[32];
    snprintf(size, sizeof size, "%" PRIu64, f->record_bytes);
    json_object_set_new(disk, size,
                        json_pack("{s:s, s:I, s:f, s:f, s:f, s:I}", "path", path, "record_bytes",
                                  (json_int_t)f->record_bytes, "bytes_per_s", f->bytes_per_s, "burst_bytes_per_s",
                                  f->burst_bytes_per_s, "burst_latency_s", f->burst_latency_s, "measured_at",
                                  (json_int_t)f->measured_at));
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(root);
    if (text == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for %s", file);
    const aegis_status status = aeg_file_write(file, text, strlen(text), err);
    aeg_free(aeg_json_memory(), text); /* Jansson's allocator is the counted one */
    return status;
}
