/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the manifest of a store, with a checksum made right so that the parser behind it is reached: an error
 * with a sentence (the other files are not there), no leak. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "expert/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char folder[64], path[128];

static void remove_all(void)
{
    unlink(path);
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
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    atexit(remove_all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    aeg_memory memory = { .name = "fuzz" };
    aegis_error err = { 0 };
    aeg_store *store = NULL;
    if (folder[0] == '\0')
        make_folder();
    /* the input ends before its "xxh3" member, which is made here */
    FILE *f = fopen(path, "wb");
    if (f == NULL)
        abort();
    fwrite(data, 1, n, f);
    fprintf(f, "\"xxh3\": \"%016" PRIx64 "\"\n}\n", XXH3_64bits(data, n));
    fclose(f);
    const aegis_status status = aeg_store_open(&store, folder, &memory, &err);
    if (status != AEGIS_E_MODEL || err.message[0] == '\0' || store != NULL)
        abort();
    aeg_store_probe(folder);
    if (memory.in_use != 0 || aeg_json_memory()->in_use != 0)
        abort();
    return 0;
}
