/* SPDX-License-Identifier: Apache-2.0 */
/* avx512/matmul_blocks_i8.c - int8 activations with the ggml types: vpdpbusd of unsigned codes, the accumulators begin at
 * minus offset times the sum of the activations, which makes the dot that of the signed codes. */
#include "kernels/avx512/blocks.h"
#include "kernels/register.h"

enum { N_OPERANDS = AEG_QUADS };

AEG_INLINE void b_operands(const uint32_t kind, const uint32_t fixed, const uint8_t *codes, uint32_t part, vec *u)
{
    (void)fixed;
    b_quads(kind, codes, part, u);
}

AEG_INLINE vec b_dot(const uint32_t kind, const uint32_t fixed, const b_source *source, const vec *u, const int8_t *q,
                     const int32_t *sums, const uint32_t q0, const uint32_t n_quads)
{
    const int32_t offset = aeg_block_shape_of(kind).offset;
    const uint32_t chains = fixed > 2 ? 1 : fixed == 2 ? 2 : 4; /* vpdpbusd has a latency of 4 to 5 cycles */
    vec acc[4];
    (void)source;
    acc[0] = offset == 0 ? _mm512_setzero_si512() : _mm512_set1_epi32(-offset * (n_quads == 8 ? sums[0] + sums[1] : sums[q0 / 4]));
    AEG_UNROLL for (uint32_t c = 1; c < chains; c++) acc[c] = _mm512_setzero_si512();
    AEG_UNROLL for (uint32_t j = q0; j < q0 + n_quads; j++)
        acc[j % chains] = _mm512_dpbusd_epi32(acc[j % chains], u[j], _mm512_set1_epi32(aeg_load32(q + 4 * j)));
    if (chains == 1)
        return acc[0];
    const vec sum = v_add(acc[0], acc[1]);
    return chains == 2 ? sum : v_add(sum, v_add(acc[2], acc[3]));
}

#include "kernels/wide/matmul_blocks_i8.inc.h"

/* Compiled for 1, 2, 4 and 8 tokens; other numbers pass a row block in parts, which then lies in the first-level cache. */
#define TOKENS(name, kind, n)                                                                              \
    static void name##_##n(const aeg_matmul_args *a, const aeg_strip *x, uint32_t m0, uint32_t block)      \
    {                                                                                                      \
        b_row_blocks_i8(kind, 1, n, n, a, x, m0, block, 0);                                                \
    }

static void run(const aeg_row_block_fn *by_log2, const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1)
{
    for (uint32_t block = block0; block < block1; block++)
        for (uint32_t m = 0, left = x->n; left > 0;) {
            const uint32_t log2 = left >= 8 ? 3 : left >= 4 ? 2 : left >= 2;
            by_log2[log2](a, x, m, block);
            m += 1u << log2;
            left -= 1u << log2;
        }
}

#define KIND(name, kind)                                                                                          \
    TOKENS(name, kind, 1)                                                                                         \
    TOKENS(name, kind, 2)                                                                                         \
    TOKENS(name, kind, 4)                                                                                         \
    TOKENS(name, kind, 8)                                                                                         \
    static void name##_lanes(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block, uint32_t step)         \
    {                                                                                                             \
        b_row_blocks_i8(kind, AEG_LANES, 1, 1, a, x, 0, block, step);                                             \
    }                                                                                                             \
    static void name##_strip(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1)      \
    {                                                                                                             \
        static const aeg_row_block_fn by_log2[] = { name##_1, name##_2, name##_4, name##_8 };                     \
        if (x->n == 1 && b_has_lanes(kind))                                                                       \
            block0 = aeg_run_lanes(name##_lanes, a, x, block0, block1);                                           \
        run(by_log2, a, x, block0, block1);                                                                       \
    }                                                                                                             \
    static void name##_i8(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)                             \
    {                                                                                                             \
        aeg_for_strips(a, AEG_ACT_I8, block0, block1, name##_strip);                                              \
    }
AEG_BLOCK_KINDS(KIND)

void aeg_matmul_avx512_blocks_i8_register(aeg_kernels *k)
{
#define SET_KIND(name, kind) k->blocks[kind][AEG_ACT_I8] = name##_i8;
    AEG_BLOCK_KINDS(SET_KIND)
#undef SET_KIND
}
