/* SPDX-License-Identifier: Apache-2.0 */
/* wide/matmul_f8.inc.h - F8 weights: w = scale * code, y = fma(w, x, y), column by column. The including file has <isa>/blocks.h,
 *     f8_codes(p, out)                          out[PARTS]: 16 codes at p as 256ths of their values, exact
 *     enum { F8_BLOCKS, F8_TOKENS }             row blocks that one token takes together, since its chain per output is slow
 *                                               alone; tokens that share the conversion of one row block. */

enum { F8_GROUP = 32 /* columns between prefetches */ };

/* One tile of r_n row blocks, m_n tokens; both constants. */
AEG_INLINE void f8_tile(const uint32_t r_n, const uint32_t m_n, const uint8_t *const *tile, const float *const *x,
                        fvec y[F8_BLOCKS][PARTS][F8_TOKENS])
{
    fvec scale[F8_BLOCKS][PARTS], code[PARTS];
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++)
        AEG_UNROLL for (uint32_t p = 0; p < PARTS; p++)
            scale[r][p] = f_mul(f_load(tile[r] + 4 * p * PART_ROWS), f_set(256.0f));
    for (uint32_t col = 0; col < AEG_F8_COLS; col += 4) {
        if (m_n > 2 && col % F8_GROUP == 0)
            AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) aeg_prefetch(tile[r] + col * AEG_ROWS, F8_GROUP * AEG_ROWS, AEG_AHEAD);
        AEG_UNROLL for (uint32_t t = 0; t < 4; t++)
            AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) {
                f8_codes(tile[r] + AEG_F8_HEADER + (col + t) * AEG_ROWS, code);
                AEG_UNROLL for (uint32_t p = 0; p < PARTS; p++) {
                    const fvec w = f_mul(scale[r][p], code[p]);
                    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[r][p][m] = f_fma(w, f_set(x[m][col + t]), y[r][p][m]);
                }
            }
    }
}

/* r_n row blocks from `block`, m_n tokens from m0; both constants. */
AEG_INLINE void f8_row_blocks(const uint32_t r_n, const uint32_t m_n, const aeg_matmul_args *a, const aeg_strip *s, uint32_t m0,
                              uint32_t block)
{
    const aeg_weights *w = a->w;
    const size_t tile_bytes = AEG_F8_HEADER + AEG_F8_COLS * AEG_ROWS;
    const uint8_t *tile[F8_BLOCKS];
    const float *x[F8_TOKENS];
    fvec y[F8_BLOCKS][PARTS][F8_TOKENS], rows[PARTS];

    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) {
        tile[r] = w->data + (block + r) * w->block_stride;
        AEG_UNROLL for (uint32_t p = 0; p < PARTS; p++)
            AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[r][p][m] = f_set(0.0f);
    }
    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) x[m] = s->f32[m0 + m];
    for (size_t col = 0; col < w->n_cols; col += AEG_F8_COLS) {
        f8_tile(r_n, m_n, tile, x, y);
        AEG_UNROLL for (uint32_t r = 0; r < r_n; r++) tile[r] += tile_bytes;
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) x[m] += AEG_F8_COLS;
    }
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
            AEG_UNROLL for (uint32_t p = 0; p < PARTS; p++) rows[p] = y[r][p][m];
            b_store(s->y[m0 + m], w, block + r, rows);
        }
}

static void f8_strip(const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0, uint32_t block1)
{
    uint32_t m = 0, block;
    for (; m + F8_TOKENS <= s->n; m += F8_TOKENS)
        for (block = block0; block < block1; block++)
            f8_row_blocks(1, F8_TOKENS, a, s, m, block);
    for (; m + 2 <= s->n; m += 2)
        for (block = block0; block < block1; block++)
            f8_row_blocks(1, 2, a, s, m, block);
    for (; m < s->n; m++) {
        for (block = block0; block + F8_BLOCKS <= block1; block += F8_BLOCKS)
            f8_row_blocks(F8_BLOCKS, 1, a, s, m, block);
        for (; block < block1; block++)
            f8_row_blocks(1, 1, a, s, m, block);
    }
}

static void f8(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    aeg_for_strips(a, AEG_ACT_F32, block0, block1, f8_strip);
}
