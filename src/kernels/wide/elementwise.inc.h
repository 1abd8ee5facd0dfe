/* SPDX-License-Identifier: Apache-2.0 */
/* wide/elementwise.inc.h - activations, adds, dot, convolution, rotary positions, f16 store. */

static void silu_mul(float *y, const float *gate, const float *up, uint32_t n)
{
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        l_store(y + i, l_mul(l_silu(l_load(gate + i)), l_load(up + i)));
    for (; i < n; i++)
        y[i] = aeg_silu(gate[i]) * up[i];
}

static void sigmoid_mul(float *x, const float *gate, uint32_t n)
{
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        l_store(x + i, l_mul(l_load(x + i), l_sigmoid(l_load(gate + i))));
    for (; i < n; i++)
        x[i] *= aeg_sigmoid(gate[i]);
}

static void add(float *y, const float *x, uint32_t n)
{
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        l_store(y + i, l_add(l_load(y + i), l_load(x + i)));
    for (; i < n; i++)
        y[i] += x[i];
}

static void axpy(float *y, float a, const float *x, uint32_t n)
{
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        l_store(y + i, l_fma(l_set1(a), l_load(x + i), l_load(y + i)));
    for (; i < n; i++)
        y[i] = fmaf(a, x[i], y[i]);
}

static float dot(const float *a, const float *b, uint32_t n16) { return l_sum(l_dot_partial(a, b, n16)); }

static void conv4_silu(float *out, const float *x0, const float *x1, const float *x2, const float *x3, const float *w,
                       uint32_t n)
{
    const float *w1 = w + n, *w2 = w1 + n, *w3 = w2 + n;
    uint32_t c = 0;
    for (; c + LANES <= n; c += LANES) {
        lanes s = l_mul(l_load(w + c), l_load(x0 + c));
        s = l_fma(l_load(w1 + c), l_load(x1 + c), s);
        s = l_fma(l_load(w2 + c), l_load(x2 + c), s);
        s = l_fma(l_load(w3 + c), l_load(x3 + c), s);
        l_store(out + c, l_silu(s));
    }
    for (; c < n; c++) {
        const float s = fmaf(w2[c], x2[c], fmaf(w1[c], x1[c], w[c] * x0[c]));
        out[c] = aeg_silu(fmaf(w3[c], x3[c], s));
    }
}

static void rope(float *x, const float *cos, const float *sin, uint32_t half)
{
    float *y = x + half;
    uint32_t i = 0;
    for (; i + LANES <= half; i += LANES) {
        const lanes xi = l_load(x + i), xj = l_load(y + i), c = l_load(cos + i), s = l_load(sin + i);
        l_store(x + i, l_fma(xi, c, l_neg(l_mul(xj, s))));
        l_store(y + i, l_fma(xj, c, l_mul(xi, s)));
    }
    for (; i < half; i++) {
        const float xi = x[i], xj = y[i];
        x[i] = fmaf(xi, cos[i], -(xj * sin[i]));
        y[i] = fmaf(xj, cos[i], xi * sin[i]);
    }
}

/* cos and sin are doubled by l_zip: c0 c0 c1 c1 ...; the sign of sin changes in the even lanes, which is exact. */
static void rope_pairs(float *x, const float *cos, const float *sin, uint32_t half)
{
    static const float signs[LANES] = { -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1 };
    const lanes sign = l_load(signs);
    uint32_t i = 0;
    for (; i + LANES <= half; i += LANES) {
        lanes c[2], s[2];
        l_zip(&c[0], &c[1], l_load(cos + i), l_load(cos + i));
        l_zip(&s[0], &s[1], l_load(sin + i), l_load(sin + i));
        for (uint32_t j = 0; j < 2; j++) {
            float *at = x + 2 * i + j * LANES;
            const lanes v = l_load(at);
            l_store(at, l_fma(v, c[j], l_mul(l_swap1(v), l_mul(s[j], sign))));
        }
    }
    for (; i < half; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = fmaf(a, cos[i], -(b * sin[i]));
        x[2 * i + 1] = fmaf(b, cos[i], a * sin[i]);
    }
}

static void store_f16(uint16_t *y, const float *x, uint32_t n)
{
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        l_store_f16(y + i, l_load(x + i));
    for (; i < n; i++)
        y[i] = aeg_f16_from_f32(x[i]);
}
