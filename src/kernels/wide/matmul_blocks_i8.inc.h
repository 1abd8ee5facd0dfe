/* SPDX-License-Identifier: Apache-2.0 */
/* wide/matmul_blocks_i8.inc.h - int8 activations with the ggml types. The including file has wide/blocks.inc.h and
 *     enum { N_OPERANDS }                       vectors that a piece expands to
 *     b_operands(kind, fixed, codes, part, u)       its expansion for `fixed` tokens (0: any)
 *     b_dot(kind, fixed, source, u, q, sums, q0, n_quads)   exact int32 dot of quads q0, .. of the piece with their columns of q;
 *                                               sums: of the piece's codes, 16 columns each */

/* 32 columns of one part and one token. */
AEG_INLINE fvec b_add(const uint32_t kind, const uint32_t fixed, fvec y, const b_source *source, const vec *u, const fvec *scale, const fvec *bias,
                      const aeg_strip *x, uint32_t m, size_t col)
{
    const aeg_block_shape s = aeg_block_shape_of(kind);
    const float d = x->d[m][col / AEG_PLANE_COLS];
    const int32_t *sums = x->sums[m] + col / AEG_SUM_COLS;
    const int8_t *q = x->q8[m] + col;
    AEG_UNROLL for (uint32_t h = 0; h < AEG_MAX_SUBS; h++) {
        if (h * s.sub >= AEG_PLANE_COLS)
            break;
        const vec dot = b_dot(kind, fixed, source, u, q, sums, h * s.sub / 4, s.sub / 4);
        y = f_fma(f_mul(scale[h], f_set(d)), f_from(dot), y);
        if (s.bias)
            y = f_fma(bias[h], f_set(s.sub == 32 ? x->s[m][col / AEG_PLANE_COLS] : d * (float)sums[h]), y);
    }
    return y;
}

/* Tiles of 256 columns are walked as one stream: with the codes fetched ahead that is as fast as four (Q4_K: 61 GB/s against 54,
 * where a plain loop over one stream reads 53), and short matrices lose with four (55 against 37). */
AEG_INLINE bool b_has_lanes(const uint32_t kind) { return aeg_block_shape_of(kind).cols < AEG_BLOCK_MAX_COLS; }

/* Scales are fetched with the codes where that was seen to help: 42 -> 55 GB/s for Q6_K, 52 -> 57 for four streams of affine
 * codes; Q4_K loses 5 %, the others of 256 columns do not change. */
AEG_INLINE bool b_fetches_header(const uint32_t kind) { return b_has_lanes(kind) || kind == AEG_W_Q6_K; }

/* The columns of one tile, from `col` on, for n tokens from m0; kind, ahead (0: nothing is fetched) and fixed are constants. */
AEG_INLINE void b_add_tile(const uint32_t kind, const uint32_t fixed, const uint32_t ahead, uint32_t n, const aeg_strip *x, uint32_t m0,
                           const uint8_t *tile, size_t col, fvec y[AEG_STRIP][PARTS])
{
    const aeg_block_shape s = aeg_block_shape_of(kind);
    const uint8_t *codes = tile + s.header;
    fvec scale[AEG_MAX_SUBS], bias[AEG_MAX_SUBS];
    vec u[N_OPERANDS];

    if (ahead != 0 && b_fetches_header(kind))
        aeg_prefetch(tile, s.header, ahead);
    for (uint32_t k = 0; k < s.cols / AEG_PLANE_COLS; k++, codes += s.piece, col += AEG_PLANE_COLS) {
        if (ahead != 0)
            aeg_prefetch(codes, s.piece, ahead);
        AEG_UNROLL for (uint32_t p = 0; p < PARTS; p++) {
            AEG_UNROLL for (uint32_t h = 0; h < AEG_MAX_SUBS; h++) {
                if (h * s.sub >= AEG_PLANE_COLS)
                    break;
                scale[h] = b_scale(kind, tile, codes, k, h, p);
                bias[h] = b_bias(kind, tile, k, h, p);
            }
            const b_source source = { codes, p };
            b_operands(kind, fixed, codes, p, u);
            AEG_UNROLL_KNOWN for (uint32_t m = 0; m < n; m++) y[m][p] = b_add(kind, fixed, y[m][p], &source, u, scale, bias, x, m0 + m, col);
        }
    }
}

/* `lanes` row blocks, `step` apart, for n tokens from m0; kind and lanes are constants, and so is fixed: n where it is known
 * when compiling, else 0. */
AEG_INLINE void b_row_blocks_i8(const uint32_t kind, const uint32_t lanes, const uint32_t fixed, uint32_t n, const aeg_matmul_args *a,
                                const aeg_strip *x, uint32_t m0, uint32_t block, uint32_t step)
{
    const aeg_weights *w = a->w;
    const aeg_block_shape s = aeg_block_shape_of(kind);
    const uint32_t ahead = lanes > 1 ? LANES_AHEAD : PREFETCH_ONE || fixed != 1 ? AEG_AHEAD : 0;
    const size_t apart = step * w->block_stride;
    const uint8_t *tile = w->data + block * w->block_stride;
    fvec y[AEG_LANES][AEG_STRIP][PARTS];

    AEG_UNROLL for (uint32_t r = 0; r < lanes; r++)
        AEG_UNROLL_KNOWN for (uint32_t m = 0; m < n; m++)
            AEG_UNROLL for (uint32_t p = 0; p < PARTS; p++) y[r][m][p] = f_set(0.0f);
    for (size_t col = 0; col < w->n_cols; col += s.cols, tile += aeg_block_tile_bytes(s))
        AEG_UNROLL for (uint32_t r = 0; r < lanes; r++) b_add_tile(kind, fixed, ahead, n, x, m0, tile + r * apart, col, y[r]);
    AEG_UNROLL for (uint32_t r = 0; r < lanes; r++)
        AEG_UNROLL_KNOWN for (uint32_t m = 0; m < n; m++) b_store(x->y[m0 + m], w, block + r * step, y[r][m]);
}

/* Two bodies per type: one token, and as many as the strip has. For levels with few registers. */
#define B_ONE_AND_SOME(name, kind)                                                                               \
    static void name##_one(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1)       \
    {                                                                                                            \
        for (uint32_t block = block0; block < block1; block++)                                                   \
            b_row_blocks_i8(kind, 1, 1, 1, a, x, 0, block, 0);                                                      \
    }                                                                                                            \
    static void name##_some(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1)      \
    {                                                                                                            \
        for (uint32_t block = block0; block < block1; block++)                                                   \
            b_row_blocks_i8(kind, 1, 0, x->n, a, x, 0, block, 0);                                                   \
    }                                                                                                            \
    static void name##_i8(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)                            \
    {                                                                                                            \
        aeg_for_strips(a, AEG_ACT_I8, block0, block1, a->n == 1 ? name##_one : name##_some);                     \
    }
