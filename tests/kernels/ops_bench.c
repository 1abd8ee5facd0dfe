/* SPDX-License-Identifier: Apache-2.0 */
/* ops_bench.c - ns per call and GB/s of every op at the sizes of a 35B-A3B model. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "kernels/kv_codes.h"
#include "ops_check.h"

enum { FLOATS = 1 << 20, MAX_CONTEXT = 32768 };
static _Alignas(64) float f[4][FLOATS];
static _Alignas(64) uint16_t halves[2][AEG_ATTN_BLOCK * 256];
static int8_t codes8[4096];
static int16_t codes16[4096];
static uint16_t ids[16];
static float q_scales[AEG_ATTN_BLOCK];

/* Each runs its op once and returns the bytes it has to touch. */
#define BENCH(name) static size_t bench_##name(const aeg_kernels *k)

BENCH(rmsnorm) { k->rmsnorm(f[3], f[0], f[1], 2048, 1e-6f); return 2048 * 12; }
BENCH(rmsnorm_gated) { k->rmsnorm_gated(f[3], f[0], f[1], f[2], 128, 1e-6f); return 128 * 16; }
BENCH(l2norm) { k->l2norm(f[3], 128, 1e-6f, 0.088f); return 128 * 8; }
BENCH(silu_mul) { k->silu_mul(f[3], f[0], f[1], 4096); return 4096 * 12; }
BENCH(sigmoid_mul) { k->sigmoid_mul(f[3], f[0], 4096); return 4096 * 12; }
BENCH(add) { k->add(f[3], f[0], 2048); return 2048 * 12; }
BENCH(axpy) { k->axpy(f[3], 1e-9f, f[0], 2048); return 2048 * 12; }
BENCH(dot) { f[3][0] = k->dot(f[0], f[1], 2048); return 2048 * 8; }
BENCH(router) { k->router(ids, f[3], f[0], 256, 8, 1, f[2]); return 256 * 4; }
BENCH(rope) { k->rope(f[3], f[1], f[2], 32); return 64 * 8 + 32 * 8; }
BENCH(rope_pairs) { k->rope_pairs(f[3], f[1], f[2], 32); return 64 * 8 + 32 * 8; }
BENCH(hyper_collapse) { k->hyper_collapse(f[3], f[0], 3584, f[1], 3584); return 3584 * 20; }

BENCH(route)
{
    const aeg_route_args a = { .logits = f[0], .bias = f[1], .n = 256, .top_k = 8, .n_groups = 8, .top_groups = 4,
                               .sigmoid = true, .renormalise = true, .group_top2 = true, .scale = 2.5f, .scratch = f[2],
                               .ids = ids, .weights = f[3] };
    k->route(&a);
    return 256 * 8;
}

/* One block of columns, from the caches. */
BENCH(hyper_dots)
{
    enum { HIDDEN = 3584, COLUMNS = 256 };
    const aeg_weights fn = { .type = { .kind = AEG_W_BF16 }, .n_rows = AEG_HYPER_GATES, .n_cols = 4 * HIDDEN,
                             .block_stride = 32 * 4 * HIDDEN, .data = (const uint8_t *)f[0] };
    const aeg_hyper_dots_args a = { .fn = &fn, .x = f[1], .stride = HIDDEN, .n = COLUMNS, .dots = f[3] };
    k->hyper_dots(&a);
    return (size_t)4 * COLUMNS * (2 * 32 + 4);
}

BENCH(hyper_gates)
{
    aeg_hyper_gates gates;
    const aeg_hyper_args a = { .dots = f[0], .base = f[1], .scale = f[2], .sum_squares = 1e4f, .width = 14336,
                               .rms_eps = 1e-6f, .clamp = 30.0f, .eps = 1e-6f, .iters = 20, .out = &gates };
    k->hyper_gates(&a);
    f[3][0] = gates.mix[0];
    return AEG_HYPER_GATES * 8;
}

BENCH(hyper_update)
{
    static const aeg_hyper_gates gates = { .mix = { 1, [5] = 1, [10] = 1, [15] = 1 } };
    k->hyper_update(f[3], 3584, f[0], &gates, 3584);
    return 3584 * 36;
}

BENCH(store_f16) { k->store_f16(halves[0], f[0], 4096); return 4096 * 6; }
BENCH(quantize_i8) { k->quantize_i8(codes8, f[2], f[3], f[0], 2048, 64); return 2048 * 5; }
BENCH(quantize_i16) { k->quantize_i16(codes16, f[2], f[3], f[0], 2048, 64); return 2048 * 6; }
BENCH(code_sums_i8) { k->code_sums_i8((int32_t *)f[2], codes8, 2048); return 2048; }
BENCH(code_sums_i16) { k->code_sums_i16((int32_t *)f[2], codes16, 2048); return 2048 * 2; }

BENCH(attn_merge)
{
    float m = 1, l = 1;
    k->attn_merge(&m, &l, f[3], 1.0f, 1.0f, f[0], 256);
    return 256 * 12;
}

BENCH(conv4_silu)
{
    k->conv4_silu(f[3], f[0], f[0] + 8192, f[0] + 16384, f[0] + 24576, f[1], 8192);
    return 8192 * 4 * 9;
}

BENCH(gdn_gates)
{
    k->gdn_gates(f[3], f[3] + 64, f[0], f[1], f[2], f[2] + 64, 32);
    return 32 * 24;
}

/* One token through 16 heads of 128 x 128: 1 MiB of state, read and written. */
BENCH(gdn)
{
    static const float decay = 0.9f, beta = 0.5f;
    enum { HEADS = 16, D = 128 };
    for (int h = 0; h < HEADS; h++) {
        const aeg_gdn_args a = { .state = f[3] + h * D * D, .q = f[1], .k = f[1] + D, .v = f[1] + 2 * D, .decay = &decay,
                                 .beta = &beta, .o = f[2], .dk = D, .dv = D, .n_tokens = 1 };
        k->gdn(&a, 0, D / AEG_GDN_STRIP);
    }
    return (size_t)HEADS * D * D * 8;
}

/* One token of 8 query heads over one block of positions. */
static aeg_attn_args attention(const void *keys, const void *values, size_t size)
{
    return (aeg_attn_args){ .q = f[1], .q_stride = 256, .k = keys, .v = values, .kv_stride = 256 * size, .n_tokens = 1,
                            .n_rep = 8, .n_pos = AEG_ATTN_BLOCK, .head_dim = 256, .scale = 0.0625f, .out_m = f[2],
                            .out_l = f[2] + 16, .acc = f[2] + 64, .scratch = f[2] + 8192 };
}

BENCH(attn_f32)
{
    const aeg_attn_args a = attention(f[0], f[0] + AEG_ATTN_BLOCK * 256, sizeof(float));
    k->attn_f32(&a);
    return AEG_ATTN_BLOCK * 256 * 8;
}

BENCH(attn_f16)
{
    const aeg_attn_args a = attention(halves[0], halves[1], sizeof(uint16_t));
    k->attn_f16(&a);
    return AEG_ATTN_BLOCK * 256 * 4;
}

static size_t attend_codes(void (*attend)(const aeg_attn_args *), aeg_kv_kind kind)
{
    static const float q_scale[8] = { 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f };
    aeg_attn_args a = attention(halves[0], halves[1], 0);
    a.q_codes = codes8;
    a.q_scale = q_scale;
    a.k_scale = a.v_scale = q_scales;
    attend(&a);
    return 2 * AEG_ATTN_BLOCK * (aeg_kv_row_bytes(kind, 256) + sizeof(float));
}

BENCH(attn_q8) { return attend_codes(k->attn_q8, AEG_KV_Q8); }

/* 32 heads over latent rows of 512 + 64. */
BENCH(attn_q8_latent)
{
    static const float q_scale[32] = { 1e-3f };
    static int8_t q[32 * 576];
    static _Alignas(64) float scratch[1 << 16];
    const aeg_attn_args a = { .n_tokens = 1, .n_rep = 32, .n_pos = AEG_ATTN_BLOCK, .head_dim = 576, .value_dim = 512, .rotary = 64,
                              .q_codes = q, .q_scale = q_scale, .q_rotary_scale = q_scale, .k = f[0], .v = f[0],
                              .k_scale = q_scales, .v_scale = q_scales, .k_rotary_scale = q_scales, .scale = 0.1f,
                              .out_m = f[2], .out_l = f[2] + 64, .acc = f[3], .scratch = scratch };
    k->attn_q8_latent(&a);
    return AEG_ATTN_BLOCK * 584;
}

BENCH(attn_t4) { return attend_codes(k->attn_t4, AEG_KV_T4); }
BENCH(attn_t3) { return attend_codes(k->attn_t3, AEG_KV_T3); }
BENCH(hadamard) { k->hadamard(f[3], 256); return 256 * 8; }

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The best of several short bursts: the machine may be busy with other things. */
static double best_ns(size_t (*run)(const aeg_kernels *), const aeg_kernels *k, size_t *bytes)
{
    double best = 1e300;
    long n_calls = 1;
    for (int burst = 0; burst < 12; burst++) {
        const double start = now_ns();
        for (long i = 0; i < n_calls; i++)
            *bytes = run(k);
        const double took = now_ns() - start;
        best = took / (double)n_calls < best ? took / (double)n_calls : best;
        if (took < 2e6)
            n_calls = n_calls * 4 + 1;
    }
    return best;
}

/* Decode attention of one KV head over whole contexts, block after block: the shortest pass of half a second. The
 * longest does not fit a cache: the figure beside it is a plain read of as many bytes. */
static void bench_context(const aeg_kernels *k, aeg_kv_kind kind, uint32_t n_pos)
{
    static _Alignas(64) uint8_t kv[2][MAX_CONTEXT * 256 * sizeof(float)];
    static float kv_scales[MAX_CONTEXT], q_scale[8] = { 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f };
    void (*const attend[])(const aeg_attn_args *) = { k->attn_f32, k->attn_f16, k->attn_q8, k->attn_t4, k->attn_t3 };
    static const char *const names[] = { "f32", "f16", "q8", "t4", "t3" };
    const size_t row = aeg_kv_row_bytes(kind, 256), read = 2 * (row + (aeg_kv_is_codes(kind) ? sizeof(float) : 0));
    const double end = now_ns() + 5e8;
    double best = 1e300, plain = 1e300;
    aeg_attn_args a = attention(NULL, NULL, sizeof(float));
    a.kv_stride = row;
    a.q_codes = codes8;
    a.q_scale = q_scale;
    memset(kv, 0x11, sizeof kv); /* finite in every type, and pages of our own */
    do {
        double start = now_ns();
        for (uint32_t p = 0; p < n_pos; p += AEG_ATTN_BLOCK) {
            a.k = kv[0] + p * row;
            a.v = kv[1] + p * row;
            a.k_scale = a.v_scale = kv_scales + p;
            attend[kind](&a);
        }
        best = fmin(best, (now_ns() - start) / n_pos);
        start = now_ns();
        for (int i = 0; i < 2; i++)
            f[3][0] = k->dot((const float *)(const void *)kv[i], (const float *)(const void *)kv[i], n_pos * (uint32_t)row / 4);
        plain = fmin(plain, (now_ns() - start) / n_pos);
    } while (now_ns() < end);
    printf("%-7s attention over %5u positions in %-3s %8.1f ns per position %7.2f GB/s, plain read %6.2f GB/s\n",
           aeg_cpu_name(k->cpu), n_pos, names[kind], best, (double)read / best, 2 * (double)row / plain);
}

void ops_bench(const aeg_kernels *k)
{
    static const struct {
        const char *name;
        size_t (*run)(const aeg_kernels *);
    } benches[] = {
#define BENCH_ROW(name, ret, params) { #name, bench_##name },
        AEG_KERNEL_LIST(BENCH_ROW)
#undef BENCH_ROW
    };
    ops_world w = { .random = 3 };
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < FLOATS; j++)
            f[i][j] = ops_value(&w);
    for (int i = 0; i < AEG_ATTN_BLOCK; i++)
        q_scales[i] = 0.01f;
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++) {
        size_t bytes = 0;
        const double ns = best_ns(benches[i].run, k, &bytes);
        printf("%-7s %-14s %10.0f ns %8.2f GB/s\n", aeg_cpu_name(k->cpu), benches[i].name, ns, (double)bytes / ns);
    }
    static const uint32_t contexts[] = { AEG_ATTN_BLOCK, 2816, MAX_CONTEXT };
    for (int kind = AEG_KV_F32; kind <= AEG_KV_T3 && k->cpu != AEG_CPU_SCALAR; kind++)
        for (int i = 0; i < 3; i++)
            bench_context(k, (aeg_kv_kind)kind, contexts[i]);
}
