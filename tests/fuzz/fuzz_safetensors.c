/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a safetensors file (first byte even) or as a shard index beside a good file (odd): an error with a
 * sentence, or tensors that lie inside the file; memory in proportion to the input. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char folder[64], model[128], index_file[128];

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        abort();
}

static void remove_all(void)
{
    unlink(model);
    unlink(index_file);
    rmdir(folder);
}

static void make_folder(void)
{
    strcpy(folder, "/dev/shm/aegis-fuzz-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        strcpy(folder, "/tmp/aegis-fuzz-XXXXXX");
        if (mkdtemp(folder) == NULL)
            abort();
    }
    snprintf(model, sizeof model, "%s/model.safetensors", folder);
    snprintf(index_file, sizeof index_file, "%s/model.safetensors.index.json", folder);
    atexit(remove_all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char good[] = "\x3a\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}         1234";
    aeg_memory memory = { .name = "fuzz" };
    aegis_error err = { 0 };
    aeg_source st;
    if (folder[0] == '\0')
        make_folder();
    if (n == 0)
        return 0;
    unlink(index_file);
    if (data[0] % 2 == 0) {
        write_file(model, data + 1, n - 1);
    } else {
        write_file(model, good, sizeof good - 1);
        write_file(index_file, data + 1, n - 1);
    }
    const aegis_status status = aeg_st_open(&st, folder, &memory, &err);
    if (status != AEGIS_OK && (status != AEGIS_E_MODEL || err.message[0] == '\0'))
        abort();
    for (uint32_t i = 0; i < st.n_tensors; i++) {
        const aeg_tensor *t = &st.tensors[i];
        uint8_t byte;
        if (t->offset + t->bytes > st.files[t->file].bytes || (t->bytes > 0 && aeg_source_read(&st, t, t->bytes - 1, 1, &byte, &err)))
            abort();
    }
    if (memory.peak > 64 * n + (1 << 20))
        abort();
    aeg_source_close(&st);
    if (memory.in_use != 0)
        abort();
    return 0;
}
