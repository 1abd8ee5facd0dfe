/* SPDX-License-Identifier: Apache-2.0 */
/* make_stores OUT_DIR SOURCE_DIR E3_DIR - pack the stores that engine tests use, afresh each time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aegis/pack.h"

static int pack(const char *out_dir, const char *name, const char *src, int expert_bits, int dense_bits)
{
    char dst[4096], command[4200];
    aegis_error err;
    snprintf(dst, sizeof dst, "%s/%s", out_dir, name);
    snprintf(command, sizeof command, "rm -rf '%s'", dst);
    if (system(command) != 0)
        return 1;
    const aegis_pack_options options = { .expert_bits = expert_bits, .dense_bits = dense_bits };
    aegis_pack_result result;
    if (aegis_pack(src, dst, &options, &result, &err) != AEGIS_OK) {
        fprintf(stderr, "%s: %s\n", name, err.message);
        return 1;
    }
    printf("%s: %.1f MiB in %.2f s, peak %.1f MiB\n", name, (double)result.store_bytes / 1048576, result.seconds,
           (double)result.peak_memory_bytes / 1048576);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    char demo[4096], tiny[4096];
    mkdir(argv[1], 0755);
    snprintf(demo, sizeof demo, "%s/models/demo", argv[2]);
    snprintf(tiny, sizeof tiny, "%s/tests/data/qwen35moe-tiny", argv[2]);
    return pack(argv[1], "demo", demo, AEGIS_BITS_DEFAULT, AEGIS_BITS_DEFAULT) ||
           pack(argv[1], "demo-e3", argv[3], AEGIS_BITS_DEFAULT, AEGIS_BITS_DEFAULT) ||
           pack(argv[1], "tiny-keep", tiny, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP) ||
           pack(argv[1], "tiny-4", tiny, 4, 4);
}
