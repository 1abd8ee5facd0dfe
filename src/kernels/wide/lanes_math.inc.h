/* SPDX-License-Identifier: Apache-2.0 */
/* wide/lanes_math.inc.h - exp and its kin on 16 lanes: kernels/math.h, operation by operation.
 *
 * The files of wide/ are the vector kernels, written once over 16 float lanes and included by <isa>/ops.c after
 * <isa>/lanes.h and ilanes.h, which give the types and primitives in intrinsics:
 *   lanes, ilanes            16 f32, 16 int32
 *   l_load l_store l_set1 l_add l_sub l_mul l_div l_neg, l_fma(a, b, c) = a*b + c, l_max(a, b) = aeg_maxf
 *   l_select_le(x, y, yes, no), l_add_exponent(p, t): bits(p) + (bits(t) << 23)
 *   l_sum, l_max_all: the fixed tree; l_sum4(out, a): four trees at once
 *   l_load_f16, l_store_f16, l_load_bf16
 *   i_load i_store i_set1 i_add i_max i_sum i_max_all, i_round (half even), i_magnitude (bits of |x|),
 *   i_find (first lane equal to a value, or 16), i_router_key, i_store_i8, i_store_i16 (saturating)
 *   TILE_HEADS x TILE_POS, TILE_HEADS x TILE_COLS, GDN_STRIPS, HYPER_STREAMS: how many accumulators fit the registers
 * What is left over after the last 16 runs through the scalar functions of math.h: the same bits. No include
 * guard: each is included once, by one file per level.
 */
enum { LANES = 16 };

LANES_INLINE lanes l_exp(lanes x)
{
    const lanes t = l_fma(x, l_set1(AEG_EXP_LOG2E), l_set1(AEG_ROUND_MAGIC));
    const lanes n = l_sub(t, l_set1(AEG_ROUND_MAGIC));
    lanes r = l_fma(n, l_set1(-AEG_EXP_LN2_HI), x);
    r = l_fma(n, l_set1(-AEG_EXP_LN2_LO), r);
    lanes p = l_fma(l_set1(AEG_EXP_C6), r, l_set1(AEG_EXP_C5));
    p = l_fma(p, r, l_set1(AEG_EXP_C4));
    p = l_fma(p, r, l_set1(AEG_EXP_C3));
    p = l_fma(p, r, l_set1(AEG_EXP_C2));
    p = l_add(l_fma(p, l_mul(r, r), r), l_set1(1.0f));
    const lanes y = l_add_exponent(p, t);
    const lanes top = l_select_le(x, l_set1(AEG_EXP_MAX), y, l_add(x, l_set1(INFINITY)));
    return l_select_le(x, l_set1(AEG_EXP_MIN), l_set1(0.0f), top);
}

LANES_INLINE lanes l_sigmoid(lanes x)
{
    return l_div(l_set1(1.0f), l_add(l_set1(1.0f), l_exp(l_neg(x))));
}

LANES_INLINE lanes l_silu(lanes x) { return l_mul(x, l_sigmoid(x)); }

/* sum of a * b, one chain of 16 partial sums; n a multiple of 16 */
LANES_INLINE lanes l_dot_partial(const float *a, const float *b, uint32_t n)
{
    lanes p = l_set1(0.0f);
    for (uint32_t i = 0; i < n; i += LANES)
        p = l_fma(l_load(a + i), l_load(b + i), p);
    return p;
}
