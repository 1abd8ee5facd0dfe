/* SPDX-License-Identifier: Apache-2.0 */
/* style: long: one kernel, a body of code like a .c file.
 * wide/attention_codes.inc.h - one block of positions whose keys and values are codes (formulas: attention.h; layout:
 * kv_codes.h). Over <isa>/codes.h, which gives
 *   code64                     64 bytes of the cache, or 64 expanded codes
 *   c_load c_store c_and c_or, c_shl c_shr (within 16 bits), c_table (16 entries), c_lookup (index < 16)
 *   c_spread_key(p, odd), c_spread_value(p): nibble i of the 1-bit plane into byte i, see expand_t3
 *   key_operand c_key(code64), c_bias(q, d), c_dot(acc, key, 4 query bytes), KEY_ROWS queries in registers
 *   value_operand c_value(code64), value_sums v_zero, v_mac(sums, value, weights), v_total, VALUE_ROWS x VALUE_COLS
 *   value_weights v_weights(row, group), v_store_weights(row, pos, W)
 *   l_from_i, l_zip(low, high, a, b): a0 b0 a1 b1 ...
 * Keys are expanded 16 positions at a time, values 64, into scratch in the first-level cache, and then serve every
 * query of the call: the expansion costs as much as one or two queries. q8 needs none. */

/* One query; a row of the call is (token, head). */
typedef struct {
    const int8_t *q;
    float scale;      /* q_scale * scale */
    int32_t bias;     /* what its dots start from */
} code_query;

/* What latent rows have beside: the same two of the rotary part. */
typedef struct {
    float scale;
    int32_t bias;
} rotary_query;

typedef struct {
    code_query *queries; /* [rows] */
    rotary_query *rotary; /* [rows] */
    float *scores;    /* [rows][AEG_ATTN_BLOCK] */
    int16_t *weights; /* [rows][AEG_ATTN_BLOCK], in the order that v_weights wants */
    int32_t *sums;    /* [rows][value_dim], in the order of expansion */
    float *step;      /* [rows] */
    uint8_t *codes;   /* AEG_ATTN_VALUE_TILE * head_dim */
} code_scratch;

/* n_in bytes (a multiple of 64) to twice as many codes: 64 low nibbles, then 64 high ones */
static void expand_t4(uint8_t *out, const uint8_t *in, uint32_t n_in)
{
    const code64 table = c_table(aeg_kv_table4);
    for (uint32_t i = 0; i < n_in; i += 64) {
        const code64 x = c_load(in + i);
        c_store(out + 2 * i, c_lookup(table, c_and(x, 15)));
        c_store(out + 2 * i + 64, c_lookup(table, c_and(c_shr(x, 4), 15)));
    }
}

/* 64 bytes of the 2-bit plane and the nibbles that belong to them to four vectors: low bits first. */
LANES_INLINE void expand_3(uint8_t *out, code64 table, code64 low, code64 top)
{
    c_store(out, c_lookup(table, c_or(c_and(low, 3), c_and(c_shl(top, 2), 4))));
    c_store(out + 64, c_lookup(table, c_or(c_and(c_shr(low, 2), 3), c_and(c_shl(top, 1), 4))));
    c_store(out + 128, c_lookup(table, c_or(c_and(c_shr(low, 4), 3), c_and(top, 4))));
    c_store(out + 192, c_lookup(table, c_or(c_and(c_shr(low, 6), 3), c_and(c_shr(top, 1), 4))));
}

/* 16 positions: d/16 vectors of the 2-bit plane, then d/32 of the 1-bit plane, whose halves serve two of them */
static void expand_keys_t3(uint8_t *out, const uint8_t *in, uint32_t d)
{
    const code64 table = c_table(aeg_kv_table3);
    const uint8_t *plane = in + (size_t)d * 4;
    for (uint32_t j = 0; j < d / 16; j += 2) {
        const uint8_t *top = plane + (size_t)j / 2 * 64;
        expand_3(out + (size_t)j * 256, table, c_load(in + (size_t)j * 64), c_spread_key(top, 0));
        expand_3(out + (size_t)(j + 1) * 256, table, c_load(in + (size_t)(j + 1) * 64), c_spread_key(top, 1));
    }
}

/* 4 positions: d bytes of the 2-bit plane, then d/2 of the 1-bit plane */
static void expand_values_t3(uint8_t *out, const uint8_t *in, uint32_t d)
{
    const code64 table = c_table(aeg_kv_table3);
    for (uint32_t i = 0; i < d; i += 64)
        expand_3(out + (size_t)i * 4, table, c_load(in + i), c_spread_value(in + d + i / 2));
}

/* 16 positions in the interleaving of values (4 positions by bytes) into that of keys (their 4-byte pieces side by side). 16
 * bytes are 4 codes of 4 positions: a transpose of bytes makes 4 pieces of them. */
static void latent_keys(uint8_t *out, const uint8_t *in, uint32_t d)
{
    static const int8_t transpose[16] = { 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15 };
    const code64 order = c_table(transpose);
    for (uint32_t g = 0; g < AEG_KV_KEY_GROUP / AEG_KV_VALUE_GROUP; g++)
        for (uint32_t e = 0; e < d; e += 16) {
            uint8_t pieces[64];
            c_store(pieces, c_lookup(c_load(in + ((size_t)g * d + e) * 4), order));
            for (uint32_t i = 0; i < 4; i++)
                memcpy(out + (size_t)(e / 4 + i) * 64 + g * 16, pieces + 16 * i, 16);
        }
}

/* Codes of one key group, expanded or where they lie. */
LANES_INLINE const uint8_t *key_group(const code_scratch *s, const uint8_t *in, uint32_t d, const aeg_kv_kind kind)
{
    if (kind == AEG_KV_Q8)
        return in;
    if (kind == AEG_KV_T4)
        expand_t4(s->codes, in, d * 8);
    else
        expand_keys_t3(s->codes, in, d);
    return s->codes;
}

LANES_INLINE const uint8_t *value_groups(const code_scratch *s, const uint8_t *in, uint32_t n_groups, uint32_t d,
                                         const aeg_kv_kind kind)
{
    if (kind == AEG_KV_Q8)
        return in;
    for (uint32_t g = 0; g < n_groups; g++)
        if (kind == AEG_KV_T4)
            expand_t4(s->codes + (size_t)g * 4 * d, in + (size_t)g * 2 * d, d * 2);
        else
            expand_values_t3(s->codes + (size_t)g * 4 * d, in + (size_t)g * d * 3 / 2, d);
    return s->codes;
}

/* What is asked for while the first queries are scored against 16 positions (attention.inc.h says how): `part` bytes of keys
 * and of values for every column; 0: it was asked for already. */
typedef struct {
    const uint8_t *keys, *values;
    size_t part;
} code_fetch;

LANES_INLINE void fetch_columns(const code_fetch *f, uint32_t col, uint32_t n)
{
    prefetch_bytes(f->keys + col * f->part, n * f->part);
    if (f->values != NULL)
        prefetch_bytes(f->values + col * f->part, n * f->part);
}

/* 16 positions from `pos` against n_rows queries from `row` */
LANES_INLINE void score_codes(const aeg_attn_args *a, const code_scratch *s, const uint8_t *keys, uint32_t pos,
                              uint32_t row, const uint32_t n_rows, code_fetch fetch)
{
    const code_query *query = s->queries + row;
    const int8_t *q[KEY_ROWS];
    ilanes acc[KEY_ROWS], acc2[KEY_ROWS];
    for (uint32_t r = 0; r < n_rows; r++) {
        q[r] = query[r].q;
        acc[r] = i_set1(query[r].bias);
        acc2[r] = i_set1(0);
    }
    for (uint32_t i = 0; i < a->head_dim; i += 8) {
        fetch_columns(&fetch, i, 8);
        const key_operand k = c_key(c_load(keys + (size_t)i * 16)), k2 = c_key(c_load(keys + (size_t)i * 16 + 64));
        for (uint32_t r = 0; r < n_rows; r++) {
            acc[r] = c_dot(acc[r], k, q[r] + i);
            acc2[r] = c_dot(acc2[r], k2, q[r] + i + 4);
        }
    }
    const lanes k_scale = l_load(a->k_scale + pos);
    for (uint32_t r = 0; r < n_rows; r++)
        l_store(s->scores + (size_t)(row + r) * AEG_ATTN_BLOCK + pos,
                l_mul(l_from_i(i_add(acc[r], acc2[r])), l_mul(k_scale, l_set1(query[r].scale))));
}

/* The same for latent rows: two scales, so two sums. */
LANES_INLINE void score_latent(const aeg_attn_args *a, const code_scratch *s, const uint8_t *keys, uint32_t pos,
                               uint32_t row, const uint32_t n_rows, code_fetch fetch)
{
    const code_query *query = s->queries + row;
    const rotary_query *rotary = s->rotary + row;
    const uint32_t latent = a->head_dim - a->rotary;
    ilanes acc[KEY_ROWS], acc2[KEY_ROWS];
    for (uint32_t r = 0; r < n_rows; r++) {
        acc[r] = i_set1(query[r].bias);
        acc2[r] = i_set1(rotary[r].bias);
    }
    for (uint32_t i = 0; i < latent; i += 4) {
        fetch_columns(&fetch, i, 4);
        const key_operand k = c_key(c_load(keys + (size_t)i * 16));
        for (uint32_t r = 0; r < n_rows; r++)
            acc[r] = c_dot(acc[r], k, query[r].q + i);
    }
    for (uint32_t i = latent; i < a->head_dim; i += 4) {
        fetch_columns(&fetch, i, 4);
        const key_operand k = c_key(c_load(keys + (size_t)i * 16));
        for (uint32_t r = 0; r < n_rows; r++)
            acc2[r] = c_dot(acc2[r], k, query[r].q + i);
    }
    const lanes k_scale = l_load(a->k_scale + pos), k_rotary = l_load(a->k_rotary_scale + pos);
    for (uint32_t r = 0; r < n_rows; r++) {
        const lanes score = l_mul(l_from_i(acc[r]), l_mul(k_scale, l_set1(query[r].scale)));
        l_store(s->scores + (size_t)(row + r) * AEG_ATTN_BLOCK + pos,
                l_fma(l_from_i(acc2[r]), l_mul(k_rotary, l_set1(rotary[r].scale)), score));
    }
}

LANES_INLINE void score_some(const aeg_attn_args *a, const code_scratch *s, const uint8_t *keys, uint32_t pos, uint32_t row,
                             const uint32_t n_rows, const bool latent, code_fetch fetch)
{
    if (latent)
        score_latent(a, s, keys, pos, row, n_rows, fetch);
    else
        score_codes(a, s, keys, pos, row, n_rows, fetch);
}

LANES_INLINE void score_rows(const aeg_attn_args *a, const code_scratch *s, const uint8_t *keys, uint32_t pos,
                             uint32_t row, uint32_t end, const bool latent, code_fetch fetch)
{
    for (; row + KEY_ROWS <= end; row += KEY_ROWS, fetch.part = 0)
        score_some(a, s, keys, pos, row, KEY_ROWS, latent, fetch);
    for (; row + 2 <= end; row += 2, fetch.part = 0)
        score_some(a, s, keys, pos, row, 2, latent, fetch);
    if (row < end)
        score_some(a, s, keys, pos, row, 1, latent, fetch);
}

static uint32_t positions_of(const aeg_attn_args *a, uint32_t token)
{
    return a->n_pos + token < AEG_ATTN_BLOCK ? a->n_pos + token : AEG_ATTN_BLOCK;
}

/* Weights of one query times the scales of the values, in codes; zero where there is no position. */
static void weight_codes(const aeg_attn_args *a, const code_scratch *s, uint32_t row, uint32_t n_pos)
{
    float *w = s->scores + (size_t)row * AEG_ATTN_BLOCK;
    const uint32_t n = (n_pos + LANES - 1) / LANES * LANES;
    ilanes magnitude = i_set1(0);
    for (uint32_t p = 0; p < n; p += LANES)
        l_store(w + p, l_mul(l_load(w + p), l_load(a->v_scale + p)));
    for (uint32_t p = n_pos; p < AEG_ATTN_BLOCK; p++) /* scales of rows that are not there may be anything */
        w[p] = 0.0f;
    for (uint32_t p = 0; p < n; p += LANES)
        magnitude = i_max(magnitude, i_magnitude(l_load(w + p)));
    const uint32_t largest = (uint32_t)i_max_all(magnitude);
    const float top = aeg_f32_from_bits(largest);
    const bool broken = largest >= 0x7f800000u, empty = top < 1e-30f;
    s->step[row] = broken ? aeg_f32_from_bits(0x7fc00000u) : empty ? 0.0f : top / 32767.0f;
    const lanes inverse = l_set1(broken || empty ? 0.0f : 1.0f / s->step[row]);
    for (uint32_t p = 0; p < AEG_ATTN_BLOCK; p += LANES)
        v_store_weights(s->weights + (size_t)row * AEG_ATTN_BLOCK, p,
                        broken || empty ? i_set1(0) : i_round(l_mul(l_load(w + p), inverse)));
}

/* sums[row..][first vectors of 16 lanes] += weights * codes over n_groups groups of 4 positions */
LANES_INLINE void add_values(const aeg_attn_args *a, const code_scratch *s, const uint8_t *values, uint32_t group,
                             uint32_t n_groups, uint32_t row, uint32_t col, const uint32_t n_rows, const uint32_t n_cols)
{
    const size_t stride = (size_t)a->head_dim * 4;
    const int16_t *weights = s->weights + (size_t)row * AEG_ATTN_BLOCK;
    value_sums acc[VALUE_ROWS * VALUE_COLS];
    for (uint32_t i = 0; i < n_rows * n_cols; i++)
        acc[i] = v_zero();
    values += (size_t)col * 4;
    for (uint32_t g = 0; g < n_groups; g++, values += stride) {
        value_operand v[VALUE_COLS];
        for (uint32_t c = 0; c < n_cols; c++)
            v[c] = c_value(c_load(values + (size_t)c * 64));
        for (uint32_t r = 0; r < n_rows; r++) {
            const value_weights w = v_weights(weights + (size_t)r * AEG_ATTN_BLOCK, group + g);
            for (uint32_t c = 0; c < n_cols; c++)
                acc[r * n_cols + c] = v_mac(acc[r * n_cols + c], v[c], w);
        }
    }
    for (uint32_t r = 0; r < n_rows; r++)
        for (uint32_t c = 0; c < n_cols; c++) {
            int32_t *sum = s->sums + (size_t)(row + r) * aeg_attn_value_dim(a) + col + c * LANES;
            const ilanes before = group == 0 ? i_set1(0) : i_load(sum);
            i_store(sum, i_add(before, v_total(acc[r * n_cols + c])));
        }
}

LANES_INLINE void add_rows(const aeg_attn_args *a, const code_scratch *s, const uint8_t *values, uint32_t group,
                           uint32_t n_groups, uint32_t row, uint32_t end)
{
    for (; row + VALUE_ROWS <= end; row += VALUE_ROWS)
        for (uint32_t col = 0; col < aeg_attn_value_dim(a); col += VALUE_COLS * LANES)
            add_values(a, s, values, group, n_groups, row, col, VALUE_ROWS, VALUE_COLS);
    for (; row < end; row++)
        for (uint32_t col = 0; col < aeg_attn_value_dim(a); col += VALUE_COLS * LANES)
            add_values(a, s, values, group, n_groups, row, col, 1, VALUE_COLS);
}

/* Sums to floats, and from the order of expansion to that of the elements. */
LANES_INLINE void finish_row(const aeg_attn_args *a, const code_scratch *s, uint32_t row, const aeg_kv_kind kind)
{
    const uint32_t n_vectors = kind == AEG_KV_Q8 ? 1 : kind == AEG_KV_T4 ? 2 : 4;
    const lanes step = l_set1(s->step[row]);
    const uint32_t value_dim = aeg_attn_value_dim(a);
    for (uint32_t e = 0; e < value_dim; e += n_vectors * LANES) {
        const int32_t *sum = s->sums + (size_t)row * value_dim + e;
        float *out = a->acc + (size_t)row * value_dim + e;
        lanes x[4], y[4];
        for (uint32_t i = 0; i < n_vectors; i++)
            x[i] = l_mul(l_from_i(i_load(sum + i * LANES)), step);
        if (kind == AEG_KV_T4) {
            l_zip(&y[0], &y[1], x[0], x[1]);
        } else if (kind == AEG_KV_T3) {
            lanes even[2], odd[2];
            l_zip(&even[0], &even[1], x[0], x[2]);
            l_zip(&odd[0], &odd[1], x[1], x[3]);
            l_zip(&y[0], &y[1], even[0], odd[0]);
            l_zip(&y[2], &y[3], even[1], odd[1]);
        } else {
            y[0] = x[0];
        }
        for (uint32_t i = 0; i < n_vectors; i++)
            l_store(out + i * LANES, y[i]);
    }
}

static code_scratch split_scratch(const aeg_attn_args *a, uint32_t n_rows)
{
    code_scratch s = { .codes = a->scratch };
    s.queries = (code_query *)(void *)(s.codes + (size_t)AEG_ATTN_VALUE_TILE * a->head_dim);
    s.rotary = (rotary_query *)(void *)(s.queries + n_rows);
    s.scores = (float *)(void *)(s.rotary + n_rows);
    s.weights = (int16_t *)(void *)(s.scores + (size_t)n_rows * AEG_ATTN_BLOCK);
    s.sums = (int32_t *)(void *)(s.weights + (size_t)n_rows * AEG_ATTN_BLOCK);
    s.step = (float *)(void *)(s.sums + (size_t)n_rows * aeg_attn_value_dim(a));
    return s;
}

static void list_queries(const aeg_attn_args *a, const code_scratch *s)
{
    code_query *query = s->queries;
    rotary_query *rotary = s->rotary;
    const uint32_t d = a->head_dim - a->rotary;
    for (uint32_t t = 0; t < a->n_tokens; t++)
        for (uint32_t h = 0; h < a->n_rep; h++, query++, rotary++) {
            const size_t at = t * a->q_scale_token + h;
            query->q = a->q_codes + t * a->q_token + (size_t)h * a->head_dim;
            query->scale = a->q_scale[at] * a->scale;
            query->bias = c_bias(query->q, d);
            if (a->rotary > 0)
                *rotary = (rotary_query){ .scale = a->q_rotary_scale[at] * a->scale, .bias = c_bias(query->q + d, a->rotary) };
        }
}

/* A group of positions is skipped for tokens that see none of it. */
LANES_INLINE uint32_t first_row(const aeg_attn_args *a, uint32_t pos)
{
    return pos < a->n_pos ? 0 : (pos - a->n_pos + 1) * a->n_rep;
}

LANES_INLINE void attend_codes(const aeg_attn_args *a, const aeg_kv_kind kind, const bool latent)
{
    const uint32_t d = a->head_dim, n_rows = a->n_tokens * a->n_rep, n_pos = positions_of(a, a->n_tokens - 1);
    const size_t row_bytes = aeg_kv_row_bytes(kind, d);
    const code_scratch s = split_scratch(a, n_rows);
    list_queries(a, &s);

    for (uint32_t pos = 0; pos < n_pos; pos += AEG_KV_KEY_GROUP) {
        const uint8_t *in = (const uint8_t *)a->k + pos * row_bytes, *keys = s.codes;
        const uint8_t *values = (const uint8_t *)a->v + pos * row_bytes;
        const code_fetch fetch = { .keys = in + KEYS_AHEAD, .values = latent ? NULL : values,
                                   .part = AEG_KV_KEY_GROUP * row_bytes / d };
        if (latent)
            latent_keys(s.codes, in, d);
        else
            keys = key_group(&s, in, d, kind);
        score_rows(a, &s, keys, pos, first_row(a, pos), n_rows, latent, fetch);
    }
    for (uint32_t row = 0; row < n_rows; row++) {
        const uint32_t n = positions_of(a, row / a->n_rep);
        soft_row(s.scores + (size_t)row * AEG_ATTN_BLOCK, n, &a->out_m[row], &a->out_l[row]);
        weight_codes(a, &s, row, n);
    }
    for (uint32_t pos = 0; pos < n_pos; pos += AEG_ATTN_VALUE_TILE) {
        const uint32_t left = n_pos - pos < AEG_ATTN_VALUE_TILE ? n_pos - pos : AEG_ATTN_VALUE_TILE;
        const uint32_t n_groups = (left + AEG_KV_VALUE_GROUP - 1) / AEG_KV_VALUE_GROUP;
        const uint8_t *values = value_groups(&s, (const uint8_t *)a->v + pos * row_bytes, n_groups, d, kind);
        add_rows(a, &s, values, pos / AEG_KV_VALUE_GROUP, n_groups, pos == 0 ? 0 : first_row(a, pos), n_rows);
    }
    for (uint32_t row = 0; row < n_rows; row++)
        finish_row(a, &s, row, kind);
}

static void attn_q8(const aeg_attn_args *a) { attend_codes(a, AEG_KV_Q8, false); }
static void attn_q8_latent(const aeg_attn_args *a) { attend_codes(a, AEG_KV_Q8, true); }
static void attn_t4(const aeg_attn_args *a) { attend_codes(a, AEG_KV_T4, false); }
static void attn_t3(const aeg_attn_args *a) { attend_codes(a, AEG_KV_T3, false); }
