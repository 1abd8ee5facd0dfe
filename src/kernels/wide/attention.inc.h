/* SPDX-License-Identifier: Apache-2.0 */
/* style: long: one kernel, a body of code like a .c file.
 * wide/attention.inc.h - one block of positions for the query heads of one KV head, in register tiles: a k or v
 * vector is loaded (and widened from f16) once for TILE_HEADS heads. Tile sizes are constants at every call of
 * the inlined functions, so the accumulators are registers. */

/* Memory is asked for while keys are scored, in the order of addresses and a few rows at a time: the keys some KiB ahead of
 * the scores, the values (read later in strips of columns, whose stride no hardware prefetcher follows) beside them. Fetched
 * in bursts of 8 KiB, or the next keys while values are summed, f16 came at 0.6, f32 at 0.75 of the speed (streaming.csv). Behind
 * the last block nothing useful comes, and nothing faults. */
enum { KEYS_AHEAD = 3072 };

LANES_INLINE void prefetch_bytes(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i += 64)
        __builtin_prefetch(p + i);
}

LANES_INLINE lanes kv_load(const uint8_t *row, uint32_t d, aeg_kv_kind kind)
{
    return kind == AEG_KV_F16 ? l_load_f16((const uint16_t *)(const void *)row + d)
                              : l_load((const float *)(const void *)row + d);
}

/* scratch[head][pos] = scale * q . k for n_heads x n_pos of them. Four trees at a time where the tile has four. */
LANES_INLINE void score_tile(const aeg_attn_args *a, uint32_t head, uint32_t pos, const uint32_t n_heads,
                             const uint32_t n_pos, const aeg_kv_kind kind)
{
    const uint8_t *k = (const uint8_t *)a->k + pos * a->kv_stride;
    const float *q = a->q + head * a->q_stride;
    lanes acc[TILE_HEADS * TILE_POS];
    float dots[TILE_HEADS * TILE_POS];
    const uint32_t n = n_heads * n_pos;

    for (uint32_t i = 0; i < n; i++)
        acc[i] = l_set1(0.0f);
    for (uint32_t d = 0; d < a->head_dim; d += LANES) {
        lanes kd[TILE_POS];
        for (uint32_t p = 0; p < n_pos; p++)
            kd[p] = kv_load(k + p * a->kv_stride, d, kind);
        for (uint32_t h = 0; h < n_heads; h++) {
            const lanes qd = l_load(q + h * a->q_stride + d);
            for (uint32_t p = 0; p < n_pos; p++)
                acc[h * n_pos + p] = l_fma(qd, kd[p], acc[h * n_pos + p]);
        }
    }
    for (uint32_t i = 0; n % 4 == 0 && i < n; i += 4)
        l_sum4(dots + i, acc + i);
    for (uint32_t i = 0; n % 4 != 0 && i < n; i++)
        dots[i] = l_sum(acc[i]);
    float *scores = a->scratch;
    for (uint32_t i = 0; i < n; i++)
        scores[(size_t)(head + i / n_pos) * AEG_ATTN_BLOCK + pos + i % n_pos] = a->scale * dots[i];
}

LANES_INLINE void fetch_tile(const aeg_attn_args *a, uint32_t pos)
{
    const size_t at = pos * a->kv_stride, n = TILE_POS * a->kv_stride;
    prefetch_bytes((const uint8_t *)a->k + at + KEYS_AHEAD, n);
    if (a->v != a->k) /* latent rows are both */
        prefetch_bytes((const uint8_t *)a->v + at, n);
}

/* Positions [pos, end) for n_heads: those few rows stay in the first-level cache for all heads, and the queries of a
 * tile of heads for all of them. With one position at a time 32 queries of 576 (MLA) came from the second level. */
LANES_INLINE void score_span(const aeg_attn_args *a, uint32_t head, uint32_t pos, uint32_t end, const uint32_t n_heads,
                             const aeg_kv_kind kind, bool fetch)
{
    for (; pos + TILE_POS <= end; pos += TILE_POS) {
        if (fetch)
            fetch_tile(a, pos);
        score_tile(a, head, pos, n_heads, TILE_POS, kind);
    }
    for (; pos < end; pos++)
        score_tile(a, head, pos, n_heads, 1, kind);
}

LANES_INLINE void score_heads(const aeg_attn_args *a, uint32_t pos, uint32_t end, const aeg_kv_kind kind, bool fetch)
{
    uint32_t h = 0;
    for (; h + TILE_HEADS <= a->n_rep; h += TILE_HEADS)
        score_span(a, h, pos, end, TILE_HEADS, kind, fetch && h == 0);
    for (; h < a->n_rep; h++)
        score_span(a, h, pos, end, 1, kind, fetch && h == 0);
}

/* Scores of one query to weights, with their maximum and sum. The row is padded with -inf to whole vectors (there is
 * room for AEG_ATTN_BLOCK): those weights are 0 and change neither. */
static void soft_row(float *w, uint32_t n_pos, float *out_m, float *out_l)
{
    const uint32_t n = (n_pos + LANES - 1) / LANES * LANES;
    for (uint32_t p = n_pos; p < n; p++)
        w[p] = -INFINITY;

    lanes top = l_set1(-INFINITY), sum = l_set1(0.0f);
    for (uint32_t p = 0; p < n; p += LANES)
        top = l_max(l_load(w + p), top);
    const float m = l_max_all(top);
    for (uint32_t p = 0; p < n; p += LANES) {
        const lanes e = l_exp(l_sub(l_load(w + p), l_set1(m)));
        l_store(w + p, e);
        sum = l_add(sum, e);
    }
    *out_m = m;
    *out_l = l_sum(sum);
}

/* acc[head][d..] = sum of w * v over all positions, for n_heads x n_cols vectors */
LANES_INLINE void value_tile(const aeg_attn_args *a, uint32_t head, uint32_t d, const uint32_t n_heads,
                             const uint32_t n_cols, const aeg_kv_kind kind)
{
    const uint8_t *v = (const uint8_t *)a->v;
    const float *w = (const float *)a->scratch + (size_t)head * AEG_ATTN_BLOCK;
    lanes acc[TILE_HEADS][TILE_COLS];

    for (uint32_t h = 0; h < n_heads; h++)
        for (uint32_t c = 0; c < n_cols; c++)
            acc[h][c] = l_set1(0.0f);
    for (uint32_t p = 0; p < a->n_pos; p++, v += a->kv_stride) {
        lanes vd[TILE_COLS];
        for (uint32_t c = 0; c < n_cols; c++)
            vd[c] = kv_load(v, d + c * LANES, kind);
        for (uint32_t h = 0; h < n_heads; h++) {
            const lanes wp = l_set1(w[h * AEG_ATTN_BLOCK + p]);
            for (uint32_t c = 0; c < n_cols; c++)
                acc[h][c] = l_fma(wp, vd[c], acc[h][c]);
        }
    }
    for (uint32_t h = 0; h < n_heads; h++)
        for (uint32_t c = 0; c < n_cols; c++)
            l_store(a->acc + (size_t)(head + h) * aeg_attn_value_dim(a) + d + c * LANES, acc[h][c]);
}

LANES_INLINE void value_heads(const aeg_attn_args *a, uint32_t d, const uint32_t n_cols, const aeg_kv_kind kind)
{
    uint32_t h = 0;
    for (; h + TILE_HEADS <= a->n_rep; h += TILE_HEADS)
        value_tile(a, h, d, TILE_HEADS, n_cols, kind);
    for (; h < a->n_rep; h++)
        value_tile(a, h, d, 1, n_cols, kind);
}

/* The heads of one token; fetch: the block is not in a cache yet. */
LANES_INLINE void attend_token(const aeg_attn_args *a, const aeg_kv_kind kind, bool fetch)
{
    enum { SPAN = 16 };
    const uint32_t value_dim = aeg_attn_value_dim(a);
    uint32_t d = 0;
    for (uint32_t pos = 0; pos < a->n_pos; pos += SPAN) {
        const uint32_t end = a->n_pos - pos < SPAN ? a->n_pos : pos + SPAN;
        score_heads(a, pos, end, kind, fetch);
    }
    for (uint32_t h = 0; h < a->n_rep; h++)
        soft_row((float *)a->scratch + (size_t)h * AEG_ATTN_BLOCK, a->n_pos, &a->out_m[h], &a->out_l[h]);
    for (; d + TILE_COLS * LANES <= value_dim; d += TILE_COLS * LANES)
        value_heads(a, d, TILE_COLS, kind);
    for (; d < value_dim; d += LANES)
        value_heads(a, d, 1, kind);
}

/* Token after token: the block stays in the second-level cache meanwhile. */
LANES_INLINE void attend(const aeg_attn_args *a, const aeg_kv_kind kind)
{
    aeg_attn_args one = *a;
    for (uint32_t t = 0; t < a->n_tokens; t++) {
        one.n_pos = a->n_pos + t < AEG_ATTN_BLOCK ? a->n_pos + t : AEG_ATTN_BLOCK;
        attend_token(&one, kind, t == 0);
        one.q += a->q_token;
        one.out_m += a->n_rep;
        one.out_l += a->n_rep;
        one.acc += (size_t)a->n_rep * aeg_attn_value_dim(a);
    }
}

static void attn_f32(const aeg_attn_args *a) { attend(a, AEG_KV_F32); }
static void attn_f16(const aeg_attn_args *a) { attend(a, AEG_KV_F16); }

static void attn_merge(float *m, float *l, float *acc, float m2, float l2, const float *acc2, uint32_t head_dim)
{
    const float top = aeg_maxf(*m, m2);
    const float f = *m == -INFINITY ? 0.0f : aeg_expf(*m - top), f2 = aeg_expf(m2 - top);
    const lanes fv = l_set1(f), f2v = l_set1(f2);
    uint32_t d = 0;
    for (; d + LANES <= head_dim; d += LANES)
        l_store(acc + d, l_fma(l_load(acc + d), fv, l_mul(l_load(acc2 + d), f2v)));
    for (; d < head_dim; d++)
        acc[d] = fmaf(acc[d], f, acc2[d] * f2);
    *l = fmaf(*l, f, l2 * f2);
    *m = top;
}
