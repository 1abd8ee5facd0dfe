/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny_store.h"

#include <stdio.h>

#include "aegis/pack.h"
#include "support/t.h"

#define TINY AEGIS_SOURCE_DIR "/tests/data/qwen35moe-tiny"

char store_path[4096];
char *manifest;
size_t manifest_n;

int pack_once(void **state)
{
    (void)state;
    aegis_error err = { 0 };
    snprintf(store_path, sizeof store_path, "%s/store", t_folder());
    if (aegis_pack(TINY, store_path, NULL, NULL, &err) != AEGIS_OK) {
        print_error("%s\n", err.message);
        return 1;
    }
    manifest = t_read_file(t_path(store_path, "manifest.json"), &manifest_n);
    return 0;
}
