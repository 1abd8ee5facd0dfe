/* SPDX-License-Identifier: Apache-2.0 */
/* wide/matmul_blocks.inc.h - style: long (bodies): int16 and f32 activations with the ggml types: the exact and the reference path, compiled
 * once for all types. The including file has wide/blocks.inc.h, b_dot16(u, q, n_quads, offset) (n_quads quads of codes u -
 * offset with 4 columns each at q, exact), and BLOCKS_F32, the row blocks that one token takes together in f32: its chain
 * per output is slow alone. */

typedef struct {
    vec u[AEG_QUADS];
    fvec scale[AEG_MAX_SUBS], bias[AEG_MAX_SUBS]; /* of each half */
} b_piece;

AEG_INLINE void b_expand_kind(const uint32_t kind, b_piece *out, const uint8_t *tile, uint32_t k, uint32_t part)
{
    const aeg_block_shape s = aeg_block_shape_of(kind);
    const uint8_t *codes = tile + s.header + (size_t)k * s.piece;
    AEG_UNROLL for (uint32_t h = 0; h < AEG_MAX_SUBS; h++) {
        out->scale[h] = b_scale(kind, tile, codes, k, s.sub == 16 ? h : 0, part);
        out->bias[h] = b_bias(kind, tile, k, s.sub == 16 ? h : 0, part);
    }
    b_quads(kind, codes, part, out->u);
}

#define B_EXPAND(name, kind)                                                                               \
    static void expand_##name(b_piece *out, const uint8_t *tile, uint32_t k, uint32_t part)                \
    {                                                                                                      \
        b_expand_kind(kind, out, tile, k, part);                                                           \
    }
AEG_BLOCK_KINDS(B_EXPAND)
#undef B_EXPAND

typedef void (*b_expand_fn)(b_piece *out, const uint8_t *tile, uint32_t k, uint32_t part);

static b_expand_fn expand_of(uint32_t kind)
{
    static const b_expand_fn by_kind[AEG_W_BLOCKS_END] = {
#define B_ROW(name, kind) [kind] = expand_##name,
        AEG_BLOCK_KINDS(B_ROW)
#undef B_ROW
    };
    return by_kind[kind];
}

/* --- int16 --------------------------------------------------------------------------------------------------------- */

static fvec add_i16(fvec y, aeg_block_shape s, const b_piece *p, const aeg_strip *x, uint32_t m, size_t col)
{
    const float d = x->d[m][col / AEG_PLANE_COLS];
    const int32_t *sums = x->sums[m] + col / AEG_SUM_COLS;
    for (uint32_t h = 0; h < AEG_PLANE_COLS / s.sub; h++) {
        const vec dot = b_dot16(p->u + h * AEG_QUADS / 2, x->q16[m] + col + h * AEG_SUM_COLS, s.sub / 4u, s.offset);
        y = f_fma(f_mul(p->scale[h], f_set(d)), f_from(dot), y);
        if (s.bias)
            y = f_fma(p->bias[h], f_set(s.sub == 32 ? x->s[m][col / AEG_PLANE_COLS] : d * (float)sums[h]), y);
    }
    return y;
}

static void strip_i16(const aeg_matmul_args *a, const aeg_strip *x, uint32_t block0, uint32_t block1)
{
    const aeg_weights *w = a->w;
    const aeg_block_shape s = aeg_block_shape_of(w->type.kind);
    const b_expand_fn expand = expand_of(w->type.kind);
    fvec y[AEG_STRIP][PARTS];
    b_piece piece;
    for (uint32_t block = block0; block < block1; block++) {
        const uint8_t *tile = w->data + block * w->block_stride;
        for (uint32_t m = 0; m < x->n; m++)
            for (uint32_t p = 0; p < PARTS; p++)
                y[m][p] = f_set(0.0f);
        for (size_t col = 0; col < w->n_cols; tile += aeg_block_tile_bytes(s))
            for (uint32_t k = 0; k < s.cols / AEG_PLANE_COLS; k++, col += AEG_PLANE_COLS)
                for (uint32_t p = 0; p < PARTS; p++) {
                    expand(&piece, tile, k, p);
                    for (uint32_t m = 0; m < x->n; m++)
                        y[m][p] = add_i16(y[m][p], s, &piece, x, m, col);
                }
        for (uint32_t m = 0; m < x->n; m++)
            b_store(x->y[m], w, block, y[m]);
    }
}

static void blocks_i16(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    aeg_for_strips(a, AEG_ACT_I16, block0, block1, strip_i16);
}

/* --- f32 ----------------------------------------------------------------------------------------------------------- */

enum { CHAINS_F32 = BLOCKS_F32 * PARTS, TOKENS_F32 = 4 };

/* One piece of n_chains parts of rows, m_n tokens; both constants. */
AEG_INLINE void add_f32(const uint32_t n_chains, const uint32_t m_n, const b_piece *p, vec offset, const float *const *x, size_t col,
                        fvec y[CHAINS_F32][TOKENS_F32])
{
    const vec byte = v_set(0xff);
    for (uint32_t j = 0; j < AEG_QUADS; j++)
        AEG_UNROLL for (uint32_t t = 0; t < 4; t++)
            AEG_UNROLL for (uint32_t i = 0; i < n_chains; i++) {
                const vec code = v_sub(v_and(v_shr(p[i].u[j], (int)(8 * t)), byte), offset);
                const fvec w = f_fma(p[i].scale[j / 4], f_from(code), p[i].bias[j / 4]);
                AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) y[i][m] = f_fma(w, f_set(x[m][col + 4 * j + t]), y[i][m]);
            }
}

/* r_n row blocks from `block`, m_n tokens from m0; both constants. */
AEG_INLINE void row_blocks_f32(const uint32_t r_n, const uint32_t m_n, const aeg_matmul_args *a, const aeg_strip *s, uint32_t m0,
                               uint32_t block)
{
    const aeg_weights *w = a->w;
    const aeg_block_shape shape = aeg_block_shape_of(w->type.kind);
    const b_expand_fn expand = expand_of(w->type.kind);
    const vec offset = v_set(shape.offset);
    const size_t tile_bytes = aeg_block_tile_bytes(shape);
    const uint8_t *tile = w->data + block * w->block_stride;
    const float *x[TOKENS_F32];
    fvec y[CHAINS_F32][TOKENS_F32];
    b_piece pieces[CHAINS_F32];

    AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
        x[m] = s->f32[m0 + m];
        AEG_UNROLL for (uint32_t i = 0; i < r_n * PARTS; i++) y[i][m] = f_set(0.0f);
    }
    for (size_t col = 0; col < w->n_cols; tile += tile_bytes)
        for (uint32_t k = 0; k < shape.cols / AEG_PLANE_COLS; k++, col += AEG_PLANE_COLS) {
            for (uint32_t i = 0; i < r_n * PARTS; i++)
                expand(&pieces[i], tile + i / PARTS * w->block_stride, k, i % PARTS);
            add_f32(r_n * PARTS, m_n, pieces, offset, x, col, y);
        }
    AEG_UNROLL for (uint32_t r = 0; r < r_n; r++)
        AEG_UNROLL for (uint32_t m = 0; m < m_n; m++) {
            fvec rows[PARTS];
            AEG_UNROLL for (uint32_t p = 0; p < PARTS; p++) rows[p] = y[r * PARTS + p][m];
            b_store(s->y[m0 + m], w, block + r, rows);
        }
}

static void strip_f32(const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0, uint32_t block1)
{
    uint32_t m = 0, block;
    for (; m + TOKENS_F32 <= s->n; m += TOKENS_F32)
        for (block = block0; block < block1; block++)
            row_blocks_f32(1, TOKENS_F32, a, s, m, block);
    for (; m < s->n; m++) {
        for (block = block0; block + BLOCKS_F32 <= block1; block += BLOCKS_F32)
            row_blocks_f32(BLOCKS_F32, 1, a, s, m, block);
        for (; block < block1; block++)
            row_blocks_f32(1, 1, a, s, m, block);
    }
}

static void blocks_f32(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    aeg_for_strips(a, AEG_ACT_F32, block0, block1, strip_f32);
}

AEG_INLINE void b_register(aeg_kernels *k)
{
    for (uint32_t kind = AEG_W_Q8_0; kind < AEG_W_BLOCKS_END; kind++) {
        k->blocks[kind][AEG_ACT_I16] = blocks_i16;
        k->blocks[kind][AEG_ACT_F32] = blocks_f32;
    }
}
