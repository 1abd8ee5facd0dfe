/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_bench.c - one thread: bytes of weights per second for one token, multiplications per second for eight,
 * in cache and from memory, beside a plain read loop over the same bytes in the same run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/matmul_case.h"

enum { N_COLS = 2048, CACHED_ROWS = 512, DRAM_BYTES = 300 << 20 };

/* 16-byte loads are two per cycle everywhere, and 8 sums keep the additions out of the way. */
static uint64_t read_all(const uint8_t *p, size_t n)
{
    typedef uint64_t vec __attribute__((vector_size(16)));
    const vec *v = (const vec *)(const void *)p;
    vec a[8] = { { 0 } };
    for (size_t i = 0; i + 8 <= n / sizeof(vec); i += 8) {
        a[0] += v[i];
        a[1] += v[i + 1];
        a[2] += v[i + 2];
        a[3] += v[i + 3];
        a[4] += v[i + 4];
        a[5] += v[i + 5];
        a[6] += v[i + 6];
        a[7] += v[i + 7];
    }
    a[0] += a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
    return a[0][0] + a[0][1];
}

static volatile uint64_t sink;

/* Processor time, not wall time: other programs may share the machine. */
static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Seconds of one pass over the matrix, by fn or (fn == NULL) by the read loop. */
static double time_pass(aeg_matmul_fn fn, const matmul_data *d, uint32_t n_blocks, int repeat)
{
    const double start = now();
    for (int i = 0; i < repeat; i++) {
        if (fn)
            fn(&d->args, 0, n_blocks);
        else
            sink += read_all(d->w.data, d->matrix_bytes);
    }
    return (now() - start) / repeat;
}

/* Best of several passes of the read loop and of fn, alternating. */
static void measure(aeg_matmul_fn fn, const matmul_data *d, double *t_read, double *t_fn)
{
    const uint32_t n_blocks = aeg_row_blocks(d->w.n_rows);
    const double once = time_pass(fn, d, n_blocks, 1);
    const int repeat = once < 2e-3 ? (int)(2e-3 / (once + 1e-7)) + 1 : 1;
    const int rounds = once < 2e-3 ? 20 : 5;
    *t_read = *t_fn = 1e30;
    for (int i = 0; i < rounds; i++) {
        const double reads = time_pass(NULL, d, n_blocks, repeat), passes = time_pass(fn, d, n_blocks, repeat);
        *t_read = reads < *t_read ? reads : *t_read;
        *t_fn = passes < *t_fn ? passes : *t_fn;
    }
}

static void bench_case(const case_level *levels, int n_levels, const matmul_case *c, const char *where)
{
    matmul_data d;
    char type[AEG_TYPE_TEXT];
    case_make(&d, c);
    for (int i = 0; i < n_levels; i++) {
        double t_read, t_fn;
        const aeg_matmul_fn fn = aeg_kernels_matmul(&levels[i].k, c->type, c->act);
        if (i == 0 && n_levels > 1)
            continue; /* scalar is not meant to be fast */
        measure(fn, &d, &t_read, &t_fn);
        const double bytes = (double)d.matrix_bytes, macs = (double)c->n * c->n_rows * c->n_cols;
        printf("%-8s %-22s %-3s %-6s n=%u  %6.1f GB/s of %6.1f (%3.0f %%)  %6.1f GMAC/s\n", levels[i].name,
               aeg_weight_type_text(type, c->type), (const char *[]){ "f32", "i8", "i16" }[c->act], where, c->n,
               bytes / t_fn * 1e-9, bytes / t_read * 1e-9, 100 * t_read / t_fn, macs / t_fn * 1e-9);
        fflush(stdout);
    }
    case_free(&d);
}

static void bench_type(const case_level *levels, int n_levels, aeg_weight_type type, aeg_act_kind act,
                       const char *only)
{
    char text[AEG_TYPE_TEXT];
    if (only && strstr(aeg_weight_type_text(text, type), only) == NULL)
        return;
    matmul_case c = { .type = type, .act = act, .n_rows = CACHED_ROWS, .n_cols = N_COLS };
    const uint32_t dram_rows = (uint32_t)(DRAM_BYTES / aeg_block_bytes(type, N_COLS)) * AEG_ROWS;
    c.n = 1;
    bench_case(levels, n_levels, &c, "cache");
    c.n = 8;
    bench_case(levels, n_levels, &c, "cache");
    c.n_rows = dram_rows;
    c.n = 1;
    bench_case(levels, n_levels, &c, "memory");
    c.n = 8;
    bench_case(levels, n_levels, &c, "memory");
}

int matmul_bench(const char *only)
{
    static case_level levels[5];
    static const uint8_t widths[] = { 4, 8, 3, 2, 5, 6 };
    const int n_levels = case_levels(levels);
    for (size_t i = 0; i < sizeof widths; i++)
        bench_type(levels, n_levels, (aeg_weight_type){ .kind = AEG_W_AFFINE, .bits = widths[i], .group = 64,
                                                        .scale_kind = AEG_W_BF16 }, AEG_ACT_I8, only);
    for (int act = 0; act < 3; act++)
        bench_type(levels, n_levels, (aeg_weight_type){ .kind = AEG_W_AFFINE, .bits = 4, .group = 32 << (act % 2),
                                                        .scale_kind = AEG_W_F16 }, (aeg_act_kind)act, only);
    for (uint8_t kind = AEG_W_F32; kind <= AEG_W_BF16; kind++)
        bench_type(levels, n_levels, (aeg_weight_type){ .kind = kind }, AEG_ACT_F32, only);
    bench_type(levels, n_levels, (aeg_weight_type){ .kind = AEG_W_F8 }, AEG_ACT_F32, only);
    for (uint8_t kind = AEG_W_Q8_0; kind < AEG_W_BLOCKS_END; kind++)
        bench_type(levels, n_levels, (aeg_weight_type){ .kind = kind }, AEG_ACT_I8, only);
    return 0;
}
