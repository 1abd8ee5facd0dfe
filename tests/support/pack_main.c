/* SPDX-License-Identifier: Apache-2.0 */
/* pack_tool SRC DST [expert_bits|keep] [dense_bits|keep] [memory_bytes]: pack a model without the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aegis/pack.h"
#include "base/log.h"

static void print_line(void *ctx, aeg_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    fprintf(stderr, "%s\n", line);
}

static int bits(const char *text) { return strcmp(text, "keep") == 0 ? AEGIS_BITS_KEEP : atoi(text); }

int main(int argc, char **argv)
{
    aegis_error err = { 0 };
    aegis_pack_result result;
    aegis_pack_options options = { 0 };
    if (argc < 3) {
        fprintf(stderr, "usage: pack_tool SRC DST [expert_bits|keep] [dense_bits|keep] [memory_bytes]\n");
        return 2;
    }
    aeg_log_set_sink(print_line, NULL);
    options.expert_bits = argc > 3 ? bits(argv[3]) : AEGIS_BITS_DEFAULT;
    options.dense_bits = argc > 4 ? bits(argv[4]) : AEGIS_BITS_DEFAULT;
    options.memory_bytes = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
    const aegis_status status = aegis_pack(argv[1], argv[2], &options, &result, &err);
    if (status != AEGIS_OK) {
        fprintf(stderr, "pack_tool: %s\n", err.message);
        return aegis_exit_code(status);
    }
    printf("%llu source bytes, %llu store bytes, %.3f s, %llu bytes of memory\n", (unsigned long long)result.source_bytes,
           (unsigned long long)result.store_bytes, result.seconds, (unsigned long long)result.peak_memory_bytes);
    return 0;
}
