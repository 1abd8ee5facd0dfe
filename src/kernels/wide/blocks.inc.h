/* SPDX-License-Identifier: Apache-2.0 */
/* wide/blocks.inc.h - style: long (bodies): scales, biases and codes of one piece (32 columns) of a tile of a ggml type, for one part of its
 * 16 rows. The including file has <isa>/blocks.h: a part is PART_ROWS rows wide (PARTS of them), `vec` holds their
 * quads or one int32 per row, `fvec` one float per row. kind, k % 2, h and j are constants after inlining.
 * Formulas: kernels/blocks.h; scalar: blocks.c. */

enum { B_HALVES = 2 * AEG_ROWS };

/* The bytes of a field that has one per row. */
AEG_INLINE vec b_bytes(const uint8_t *field, uint32_t part) { return v_u8(field + part * PART_ROWS); }
AEG_INLINE fvec b_half(const uint8_t *field, uint32_t part) { return f_half(field + 2 * part * PART_ROWS); }
AEG_INLINE vec b_words(const uint8_t *codes, uint32_t vector, uint32_t part)
{
    return v_load(codes + vector * AEG_PLANE_BYTES + part * PART_BYTES);
}

AEG_INLINE vec b_field(vec v, uint32_t shift, uint32_t mask) { return v_and(v_shr(v, (int)shift), v_set((int32_t)mask)); }

/* Half of 2^(e-127): subnormal for e < 2. */
AEG_INLINE fvec b_fp4_scale(vec e)
{
    const vec tiny = v_shl(v_add(e, v_set(1)), 21), normal = v_shl(v_sub(e, v_set(1)), 23);
    return f_bits(v_where_less(e, 2, tiny, normal));
}

/* d * ((2n + 1) * step) */
AEG_INLINE fvec b_odd_scale(fvec d, vec n, float step)
{
    return f_mul(d, f_mul(f_from(v_add(v_add(n, n), v_set(1))), f_set(step)));
}

AEG_INLINE vec b_q3_k_scale(const uint8_t *tile, uint32_t k, uint32_t h, uint32_t part)
{
    const vec low = b_field(b_bytes(tile + B_HALVES + 16 * k, part), 4 * h, 15);
    const vec four = b_bytes(tile + B_HALVES + 128 + 16 * (k / 2), part);
    /* k is no constant in the loops: two selections instead of one shift by a variable */
    const vec high = k % 2 ? b_field(four, 4 + 2 * h, 3) : b_field(four, 2 * h, 3);
    return v_sub(v_or(low, v_shl(high, 4)), v_set(32));
}

AEG_INLINE fvec b_scale(const uint32_t kind, const uint8_t *tile, const uint8_t *codes, uint32_t k, const uint32_t h, uint32_t part)
{
    if (kind == AEG_W_MXFP4)
        return b_fp4_scale(b_bytes(tile, part));
    const fvec d = b_half(tile, part);
    switch (kind) {
    case AEG_W_Q2_K: return f_mul(d, f_from(v_and(b_bytes(tile + 2 * B_HALVES + 16 * (2 * k + h), part), v_set(15))));
    case AEG_W_Q3_K: return f_mul(d, f_from(b_q3_k_scale(tile, k, h, part)));
    case AEG_W_Q4_K:
    case AEG_W_Q5_K: return f_mul(d, f_from(b_bytes(tile + 2 * B_HALVES + 32 * k, part)));
    case AEG_W_Q6_K: return f_mul(d, f_from(v_i8(tile + B_HALVES + 16 * (2 * k + h) + part * PART_ROWS)));
    case AEG_W_IQ4_XS: return f_mul(d, f_from(v_sub(b_bytes(tile + B_HALVES + 16 * k, part), v_set(32))));
    case AEG_W_IQ3_XXS: return b_odd_scale(d, v_shr(b_words(codes, 2, part), 28), 0.25f);
    case AEG_W_IQ3_S: {
        const vec two = b_bytes(tile + B_HALVES + 16 * (k / 2), part);
        return b_odd_scale(d, k % 2 ? v_shr(two, 4) : v_and(two, v_set(15)), 1.0f);
    }
    case AEG_W_IQ2_XXS: return b_odd_scale(d, v_shr(b_words(codes, 1, part), 28), 0.125f);
    case AEG_W_IQ2_XS:
    case AEG_W_IQ2_S: return b_odd_scale(d, b_field(b_bytes(tile + B_HALVES + 16 * k, part), 4 * h, 15), 0.125f);
    default: return d;
    }
}

AEG_INLINE fvec b_bias(const uint32_t kind, const uint8_t *tile, uint32_t k, const uint32_t h, uint32_t part)
{
    if (!aeg_block_shape_of(kind).bias)
        return f_set(0.0f);
    const fvec m = b_half(tile + B_HALVES, part);
    if (kind == AEG_W_Q4_1 || kind == AEG_W_Q5_1)
        return m;
    if (kind == AEG_W_Q2_K)
        return f_negate(f_mul(m, f_from(v_shr(b_bytes(tile + 2 * B_HALVES + 16 * (2 * k + h), part), 4))));
    return f_negate(f_mul(m, f_from(b_bytes(tile + 2 * B_HALVES + 32 * k + 16, part))));
}

/* --- grids ------------------------------------------------------------------------------------------------------- */

/* Four groups of 7 signs, each in its byte, with the eighth that makes the number of minus signs even. */
AEG_INLINE vec b_eighth_signs(vec sevens)
{
    static const uint8_t odd[16] = { 0, 0x80, 0x80, 0, 0x80, 0, 0, 0x80, 0x80, 0, 0, 0x80, 0, 0x80, 0x80, 0 };
    const vec nibble = v_set(0x0f0f0f0f);
    const vec parity = v_xor(v_lookup(odd, v_and(sevens, nibble)), v_lookup(odd, v_and(v_shr(sevens, 4), nibble)));
    return v_or(sevens, parity);
}

/* 28 bits in groups of 7 -> one group per byte. */
AEG_INLINE vec b_spread_sevens(vec w)
{
    const vec a = v_and(w, v_set(0x7f)), b = v_and(v_shl(w, 1), v_set(0x7f00));
    const vec c = v_and(v_shl(w, 2), v_set(0x7f0000)), d = v_and(v_shl(w, 3), v_set(0x7f000000));
    return v_or(v_or(a, b), v_or(c, d));
}

/* Byte l: the signs of columns 8l..8l+7. */
AEG_INLINE vec b_signs(const uint32_t kind, const uint8_t *codes, uint32_t part)
{
    if (kind == AEG_W_IQ2_S)
        return b_words(codes, 1, part);
    if (kind == AEG_W_IQ3_S)
        return b_words(codes, 2, part);
    if (kind == AEG_W_IQ2_XS) {
        const vec a = b_words(codes, 0, part), b = b_words(codes, 1, part);
        const vec low = v_or(b_field(a, 9, 0x7f), v_and(v_shr(a, 17), v_set(0x7f00)));
        const vec high = v_or(b_field(b, 9, 0x7f), v_and(v_shr(b, 17), v_set(0x7f00)));
        return b_eighth_signs(v_or(low, v_shl(high, 16)));
    }
    return b_eighth_signs(b_spread_sevens(b_words(codes, kind == AEG_W_IQ2_XXS ? 1 : 2, part)));
}

/* The four magnitudes of quad j of each row. */
AEG_INLINE vec b_grid_quad(const uint32_t kind, const uint8_t *codes, const uint32_t j, uint32_t part)
{
    const uint32_t l = j / 2, odd = j % 2;
    vec i;
    switch (kind) {
    case AEG_W_IQ2_XXS:
        i = b_field(b_words(codes, 0, part), 8 * l, 255);
        return v_gather(aeg_grid_iq2_xxs, v_add(v_add(i, i), v_set((int32_t)odd)));
    case AEG_W_IQ2_XS:
        i = b_field(b_words(codes, l / 2, part), 16 * (l % 2), 511);
        return v_gather(aeg_grid_iq2_xs, v_add(v_add(i, i), v_set((int32_t)odd)));
    case AEG_W_IQ2_S:
        i = v_or(b_field(b_words(codes, 0, part), 8 * l, 255), v_shl(b_field(b_bytes(codes + 128, part), 2 * l, 3), 8));
        return v_gather(aeg_grid_iq2_s, v_add(v_add(i, i), v_set((int32_t)odd)));
    case AEG_W_IQ3_XXS: return v_gather(aeg_grid_iq3_xxs, b_field(b_words(codes, j / 4, part), 8 * (j % 4), 255));
    default:
        i = v_or(b_field(b_words(codes, j / 4, part), 8 * (j % 4), 255), v_shl(b_field(b_bytes(codes + 192, part), j, 1), 8));
        return v_gather(aeg_grid_iq3_s, i);
    }
}

/* --- quads ------------------------------------------------------------------------------------------------------- */

/* u of quad j of each row. Grids: u = 64 + code, a mask of ones where the sign is minus negates by xor and subtraction
 * (b_signs is the same for all quads, which compilers see). */
AEG_INLINE vec b_quad(const uint32_t kind, const uint8_t *codes, uint32_t part, const uint32_t j)
{
    const aeg_block_shape s = aeg_block_shape_of(kind);
    if (s.bits == 0) {
        const vec minus = v_sign_mask(b_signs(kind, codes, part), j / 2, j % 2);
        return v_add8(v_sub8(v_xor(b_grid_quad(kind, codes, j, part), minus), minus), v_set8(64));
    }
    const uint8_t *lookup = aeg_block_lookup(kind);
    const vec quad = aeg_quad(s.bits, codes + part * PART_BYTES, j);
    return lookup ? v_lookup(lookup, quad) : quad;
}

AEG_INLINE void b_quads(const uint32_t kind, const uint8_t *codes, uint32_t part, vec *u)
{
    AEG_UNROLL for (uint32_t j = 0; j < AEG_QUADS; j++) u[j] = b_quad(kind, codes, part, j);
}

/* Where a piece's codes are, for levels that expand them late. */
typedef struct {
    const uint8_t *codes;
    uint32_t part;
} b_source;

/* X(name, kind) for every ggml type. */
#define AEG_BLOCK_KINDS(X)                                                                                      \
    X(q8_0, AEG_W_Q8_0) X(q4_0, AEG_W_Q4_0) X(q4_1, AEG_W_Q4_1) X(q5_0, AEG_W_Q5_0) X(q5_1, AEG_W_Q5_1)           \
    X(q2_k, AEG_W_Q2_K) X(q3_k, AEG_W_Q3_K) X(q4_k, AEG_W_Q4_K) X(q5_k, AEG_W_Q5_K) X(q6_k, AEG_W_Q6_K)           \
    X(iq4_nl, AEG_W_IQ4_NL) X(iq4_xs, AEG_W_IQ4_XS) X(mxfp4, AEG_W_MXFP4) X(iq3_xxs, AEG_W_IQ3_XXS)               \
    X(iq3_s, AEG_W_IQ3_S) X(iq2_xxs, AEG_W_IQ2_XXS) X(iq2_xs, AEG_W_IQ2_XS) X(iq2_s, AEG_W_IQ2_S)
