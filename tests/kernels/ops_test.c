/* SPDX-License-Identifier: Apache-2.0 */
/* ops_test.c - every float kernel of every level this processor has: equal to scalar, bit for bit; scalar equal to
 * double arithmetic within bounds. `--bench` prints ns per call and GB/s instead. */
#include <stdlib.h>
#include <string.h>

#include "kernels/half.h"
#include "ops_check.h"

int ops_failures;

static _Alignas(64) uint8_t memory[2][WORLD_BYTES];

static void check_level(const aeg_kernels *scalar, const aeg_kernels *level, uint32_t n_rounds)
{
    ops_world a = { .memory = memory[0] }, b = { .memory = memory[1] };
    for (int i = 0; i < n_ops_cases; i++)
        for (uint32_t round = 0; round < n_rounds; round++) {
            const uint64_t seed = 1000 * (uint64_t)i + round + 1;
            const ops_values values = (ops_values)(round % N_VALUES);
            ops_world_reset(&a, seed, values);
            ops_world_reset(&b, seed, values);
            ops_cases[i].run(&a, scalar);
            ops_cases[i].run(&b, level);
            const char *difference = ops_world_difference(&a, &b);
            OPS_CHECK(difference == NULL, "%s on %s, round %u: %s", ops_cases[i].name, aeg_cpu_name(level->cpu), round,
                      difference);
            if (difference != NULL)
                break; /* one line per op is enough */
        }
}

/* The lane version of exp over floats of every exponent: sigmoid is the thinnest wrapping of it. */
static void check_exp_everywhere(const aeg_kernels *scalar, const aeg_kernels *level)
{
    enum { CHUNK = 4096 };
    const uint32_t step = 65521 * 4; /* a prime stride in the bits, so that mantissas vary too */
    float gate[CHUNK], a[CHUNK], b[CHUNK];
    uint32_t bits = 0;
    for (int chunk = 0; chunk < 4; chunk++) {
        for (int i = 0; i < CHUNK; i++, bits += step) {
            gate[i] = aeg_f32_from_bits(bits);
            a[i] = b[i] = 1.0f;
        }
        scalar->sigmoid_mul(a, gate, CHUNK);
        level->sigmoid_mul(b, gate, CHUNK);
        for (int i = 0; i < CHUNK; i++)
            if (aeg_f32_bits(a[i]) != aeg_f32_bits(b[i]) && !(a[i] != a[i] && b[i] != b[i])) {
                OPS_CHECK(false, "sigmoid(%a) on %s: %a, scalar %a", (double)gate[i], aeg_cpu_name(level->cpu),
                          (double)b[i], (double)a[i]);
                return;
            }
    }
}

/* The same for negative arguments, where sigmoid hides the small results: with v the identity, a block of 16
 * positions gives acc[p] = exp(x[p] - 0). */
static void check_exp_of_scores(const aeg_kernels *scalar, const aeg_kernels *level)
{
    enum { N = 16 };
    float q[N] = { 1.0f }, key[N][N] = { { 0 } }, v[N][N] = { { 0 } }, m, l, acc[2][N], scratch[AEG_ATTN_BLOCK];
    aeg_attn_args a = { .q = q, .k = key, .v = v, .kv_stride = sizeof key[0], .n_tokens = 1, .n_rep = 1, .n_pos = N, .head_dim = N,
                        .scale = 1.0f, .out_m = &m, .out_l = &l, .scratch = scratch };
    const uint32_t limit = aeg_f32_bits(-87.29f);
    for (int p = 0; p < N; p++)
        v[p][p] = 1.0f;
    for (int step = 0; step < 4000; step++) {
        for (int p = 1; p < N; p++) /* the last thousand walk over the lower limit, float by float */
            key[p][0] = step < 3000 ? -0.0021f * (float)(step * N + p)
                                    : aeg_f32_from_bits(limit + (uint32_t)((step - 3000) * 15 + p));
        a.acc = acc[0];
        scalar->attn_f32(&a);
        a.acc = acc[1];
        level->attn_f32(&a);
        if (memcmp(acc[0], acc[1], sizeof acc[0]) != 0) {
            OPS_CHECK(false, "exp of %a and above on %s", (double)key[1][0], aeg_cpu_name(level->cpu));
            return;
        }
    }
}

/* A level that registers nothing would pass every comparison with scalar. */
static void check_registered(const aeg_kernels *scalar, const aeg_kernels *level)
{
#define CHECK_ENTRY(name, ret, params) \
    OPS_CHECK(level->name != scalar->name, "%s has no " #name " of its own", aeg_cpu_name(level->cpu));
    AEG_KERNEL_LIST(CHECK_ENTRY)
#undef CHECK_ENTRY
}

static float wrong_dot(const float *a, const float *b, uint32_t n)
{
    return a[0] * b[n - 1];
}

/* A level with one wrong kernel must be dropped, and the table must be usable then. */
static void check_self_check(uint32_t detected)
{
    aeg_kernels k;
    const char *dropped;
    aeg_kernels_init(&k, detected);
    aeg_kernels_self_check(&k, &dropped);
    OPS_CHECK(dropped == NULL && k.cpu == detected, "dropped %s", dropped);
    if (detected == AEG_CPU_SCALAR)
        return;
    k.dot = wrong_dot;
    aeg_kernels_self_check(&k, &dropped);
    OPS_CHECK(dropped != NULL && strcmp(dropped, aeg_cpu_name(detected)) == 0, "dropped %s",
              dropped != NULL ? dropped : "none");
    OPS_CHECK(k.cpu != detected && k.dot != wrong_dot, "the wrong kernel is still there");
}

static void check_names(uint32_t detected)
{
    static aegis_error err;
    uint32_t mask = 99;
    OPS_CHECK(aeg_cpu_parse(&mask, NULL, NULL) == AEGIS_OK && mask == detected, "auto gives %u", mask);
    OPS_CHECK(aeg_cpu_parse(&mask, "auto", NULL) == AEGIS_OK && mask == detected, "auto gives %u", mask);
    OPS_CHECK(aeg_cpu_parse(&mask, "scalar", NULL) == AEGIS_OK && mask == AEG_CPU_SCALAR, "scalar gives %u", mask);
    OPS_CHECK(aeg_cpu_parse(&mask, "avx3", &err) == AEGIS_E_USAGE && strstr(err.message, "'avx3'"), "%s", err.message);
    OPS_CHECK(aeg_cpu_parse(&mask, "", &err) == AEGIS_E_USAGE, "%s", err.message);
    const char *other = detected & AEG_CPU_NEON ? "avx2" : "neon";
    OPS_CHECK(aeg_cpu_parse(&mask, other, &err) == AEGIS_E_HARDWARE && strstr(err.message, other), "%s", err.message);
    OPS_CHECK(aeg_cpu_parse(&mask, aeg_cpu_name(detected), NULL) == AEGIS_OK && mask == detected, "%u", mask);
}

int main(int argc, char **argv)
{
    const uint32_t detected = aeg_cpu_detect();
    const uint32_t levels[] = { AEG_CPU_AVX2, AEG_CPU_AVX2 | AEG_CPU_AVX512, AEG_CPU_NEON };
    const bool bench = argc > 1 && strcmp(argv[1], "--bench") == 0;
    const uint32_t n_rounds = argc > 1 && !bench ? (uint32_t)atoi(argv[1]) : 160;
    aeg_kernels scalar, level;

    aeg_kernels_init(&scalar, AEG_CPU_SCALAR);
    if (bench)
        ops_bench(&scalar);
    else
        ops_check_truth(&scalar);
    for (int i = 0; i < 3; i++) {
        if ((levels[i] & detected) != levels[i])
            continue;
        aeg_kernels_init(&level, levels[i]);
        if (bench) {
            ops_bench(&level);
            continue;
        }
        check_level(&scalar, &level, n_rounds);
        check_exp_everywhere(&scalar, &level);
        check_exp_of_scores(&scalar, &level);
        check_registered(&scalar, &level);
        check_self_check(levels[i]);
        printf("%s: %d ops, %u rounds each\n", aeg_cpu_name(levels[i]), n_ops_cases, n_rounds);
    }
    if (!bench) {
        check_self_check(AEG_CPU_SCALAR);
        check_names(detected);
    }
    return ops_failures != 0;
}
