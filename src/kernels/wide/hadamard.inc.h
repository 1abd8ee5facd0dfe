/* SPDX-License-Identifier: Apache-2.0 */
/* wide/hadamard.inc.h - the Walsh-Hadamard transform: distances 1 to 8 inside a register, the rest between them.
 * l_swap1..8(x): lane i gets lane i ^ h. With s = -1 where bit h of i is set, swapped + s*x is a+b or a-b. */

LANES_INLINE lanes sign_lanes(const uint32_t h)
{
    float s[LANES];
    for (uint32_t i = 0; i < LANES; i++)
        s[i] = i & h ? -1.0f : 1.0f;
    return l_load(s);
}

static void hadamard(float *x, uint32_t n)
{
    const lanes s1 = sign_lanes(1), s2 = sign_lanes(2), s4 = sign_lanes(4), s8 = sign_lanes(8);
    for (uint32_t i = 0; i < n; i += LANES) {
        lanes v = l_load(x + i);
        v = l_fma(v, s1, l_swap1(v));
        v = l_fma(v, s2, l_swap2(v));
        v = l_fma(v, s4, l_swap4(v));
        l_store(x + i, l_fma(v, s8, l_swap8(v)));
    }
    for (uint32_t h = LANES; h < n; h *= 2)
        for (uint32_t i = 0; i < n; i += 2 * h)
            for (uint32_t j = i; j < i + h; j += LANES) {
                const lanes a = l_load(x + j), b = l_load(x + j + h);
                l_store(x + j, l_add(a, b));
                l_store(x + j + h, l_sub(a, b));
            }
}
