/* SPDX-License-Identifier: Apache-2.0 */
/* make_stores OUT_DIR SOURCE_DIR TEST_DATA_DIR - pack the stores that engine tests use, afresh each time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aegis/pack.h"

static int pack(const char *out_dir, const char *name, const char *src, int expert_bits, int dense_bits, bool outline)
{
    char dst[4096], command[4200];
    aegis_error err;
    snprintf(dst, sizeof dst, "%s/%s", out_dir, name);
    snprintf(command, sizeof command, "rm -rf '%s'", dst);
    if (system(command) != 0)
        return 1;
    const aegis_pack_options options = { .expert_bits = expert_bits, .dense_bits = dense_bits, .outline = outline };
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
    static const struct { const char *name, *from; int in_source, expert_bits, dense_bits; bool outline; } stores[] = {
        { "demo", "models/demo", 1, AEGIS_BITS_DEFAULT, AEGIS_BITS_DEFAULT, false },
        { "demo-outline", "models/demo", 1, AEGIS_BITS_DEFAULT, AEGIS_BITS_DEFAULT, true },
        { "demo-e3", "demo-mlx4e3", 0, AEGIS_BITS_DEFAULT, AEGIS_BITS_DEFAULT, false },
        { "demo-exact", "demo-exact", 0, AEGIS_BITS_DEFAULT, AEGIS_BITS_DEFAULT, false },
        { "demo-e3-exact", "demo-e3-exact", 0, AEGIS_BITS_DEFAULT, AEGIS_BITS_DEFAULT, false },
        { "tiny-keep", "tests/data/qwen35moe-tiny", 1, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP, false },
        { "tiny-gguf", "tiny-gguf/tiny.gguf", 0, AEGIS_BITS_DEFAULT, AEGIS_BITS_DEFAULT, false },
        { "tiny-split", "tiny-gguf/split-00001-of-00003.gguf", 0, AEGIS_BITS_DEFAULT, AEGIS_BITS_DEFAULT, false },
        { "qwen3moe-keep", "models/qwen3moe-tiny", 0, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP, false },
        { "qwen3next-keep", "models/qwen3next-tiny", 0, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP, false },
        { "olmoe-keep", "models/olmoe-tiny-hf", 0, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP, false },
        { "olmoe-gguf", "models/olmoe-tiny-gguf/model.gguf", 0, AEGIS_BITS_DEFAULT, AEGIS_BITS_DEFAULT, false },
        { "qwen3moe-8", "models/qwen3moe-tiny", 0, 8, 8, false },
        { "qwen3next-8", "models/qwen3next-tiny", 0, 8, 8, false },
        { "olmoe-8", "models/olmoe-tiny-hf", 0, 8, 8, false },
        { "tiny-4", "tests/data/qwen35moe-tiny", 1, 4, 4, false },
        { "deepseek2", "models/deepseek2-tiny-hf", 0, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP, false },
        { "deepseek2-lite", "models/deepseek2-lite-hf", 0, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP, false },
        { "xing4", "models/xing4-tiny-hf", 0, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP, false },
        { "xing4-loud", "models/xing4-loud-hf", 0, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP, false },
        { "xing4-gguf", "models/xing4-gguf/model.gguf", 0, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP, false },
        { "deepseek2-gguf", "models/deepseek2-gguf/model.gguf", 0, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP, false },
    };
    mkdir(argv[1], 0755);
    for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
        char src[4096];
        snprintf(src, sizeof src, "%s/%s", argv[stores[i].in_source ? 2 : 3], stores[i].from);
        if (pack(argv[1], stores[i].name, src, stores[i].expert_bits, stores[i].dense_bits, stores[i].outline) != 0)
            return 1;
    }
    return 0;
}
