/* SPDX-License-Identifier: Apache-2.0 */
/* wide/matmul_plain.inc.h - bf16, f16 and f32 weights on every instruction set: which row blocks and tokens go together.
 * The including file defines row_blocks() before this and any_strip() behind it, then writes AEG_PLAIN_KERNELS. */

/* All row blocks for m_n tokens: r_n at a time, then pairs, then one at a time. */
AEG_INLINE void tokens(const uint32_t kind, const uint32_t r_n, const uint32_t m_n, const aeg_matmul_args *a,
                       const aeg_strip *s, uint32_t m0, uint32_t block, uint32_t block1)
{
    for (; block + r_n <= block1; block += r_n)
        row_blocks(kind, r_n, m_n, a, s, m0, block, 1);
    if (r_n > 2)
        for (; block + 2 <= block1; block += 2)
            row_blocks(kind, 2, m_n, a, s, m0, block, 1);
    for (; block < block1; block++)
        row_blocks(kind, 1, m_n, a, s, m0, block, 1);
}

/* Four runs side by side, as in aeg_run_lanes: chains enough for what memory gives, and a run goes on where a row block
 * ends. Eight row blocks next to each other began anew all the time: 0.75 of a read loop with rows of 128 to 768 columns. */
AEG_INLINE void one_token(const uint32_t kind, const aeg_matmul_args *a, const aeg_strip *s, uint32_t m, uint32_t block0,
                          uint32_t block1)
{
    const uint32_t run = (block1 - block0) / AEG_LANES;
    for (uint32_t i = 0; i < run; i++)
        row_blocks(kind, AEG_LANES, 1, a, s, m, block0 + i, run);
    tokens(kind, 2, 1, a, s, m, block0 + AEG_LANES * run, block1);
}

#define AEG_PLAIN_KERNEL(name, kind)                                                                         \
    static void name##_strip(const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0, uint32_t block1) \
    {                                                                                                        \
        any_strip(kind, a, s, block0, block1);                                                               \
    }                                                                                                        \
    static void name(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)                             \
    {                                                                                                        \
        aeg_for_strips(a, AEG_ACT_F32, block0, block1, name##_strip);                                        \
    }

/* The three kernels and the function that registers them. */
#define AEG_PLAIN_KERNELS(register_plain)        \
    AEG_PLAIN_KERNEL(plain_f32, AEG_W_F32)       \
    AEG_PLAIN_KERNEL(plain_f16, AEG_W_F16)       \
    AEG_PLAIN_KERNEL(plain_bf16, AEG_W_BF16)     \
    void register_plain(aeg_kernels *k)          \
    {                                            \
        k->plain[AEG_W_F32] = plain_f32;         \
        k->plain[AEG_W_F16] = plain_f16;         \
        k->plain[AEG_W_BF16] = plain_bf16;       \
    }
