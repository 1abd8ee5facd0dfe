/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/matmul_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/blocks.h"
#include "kernels/half.h"
#include "kernels/planes.h"
#include "kernels/register.h"

static uint64_t seed = 0x9E3779B97F4A7C15u;

uint32_t case_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

static float random_float(float scale)
{
    return scale * ((float)(case_random() & 0xffffff) / 8388608.0f - 1.0f);
}

static void *own(matmul_data *d, size_t n)
{
    void *p = NULL;
    const size_t huge = (size_t)2 << 20; /* large matrices on large pages, as the engine keeps them */
    if (posix_memalign(&p, n >= huge ? huge : 64, n ? (n + 63) / 64 * 64 : 64) != 0) {
        fprintf(stderr, "no memory for %zu bytes\n", n);
        exit(1);
    }
    if (n >= huge)
        madvise(p, n, MADV_HUGEPAGE);
    d->owned[d->n_owned++] = p;
    return p;
}

static uint32_t stored_bits(uint32_t kind, float v)
{
    if (kind == AEG_W_F32)
        return aeg_f32_bits(v);
    return kind == AEG_W_F16 ? aeg_f16_from_f32(v) : aeg_bf16_from_f32(v);
}

static void make_tile(uint8_t *dst, aeg_weight_type type, case_fill fill)
{
    uint8_t codes[AEG_ROWS * 128];
    uint32_t scales[AEG_ROWS], biases[AEG_ROWS];
    const uint32_t highest = (1u << type.bits) - 1;
    for (uint32_t i = 0; i < (uint32_t)AEG_ROWS * type.group; i++)
        codes[i] = (uint8_t)(fill == FILL_HIGHEST || fill == FILL_LOWEST ? highest : case_random() & highest);
    for (uint32_t r = 0; r < AEG_ROWS; r++) {
        scales[r] = stored_bits(type.scale_kind, case_random() % 16 ? random_float(0.01f) : random_float(1e-7f));
        biases[r] = stored_bits(type.scale_kind, random_float(0.1f));
    }
    aeg_tile_pack(type, codes, scales, biases, dst);
}

static void make_plain(uint8_t *dst, aeg_weight_type type, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = stored_bits(type.kind, random_float(1));
        const uint16_t h = (uint16_t)u;
        if (type.kind == AEG_W_F32)
            memcpy(dst + 4 * i, &u, 4);
        else
            memcpy(dst + 2 * i, &h, 2);
    }
}

/* Codes with both zeros and the subnormals among them; scales of all sizes, of both signs, subnormal ones too. */
static void make_f8(uint8_t *dst, const matmul_case *c)
{
    for (uint32_t col = 0; col < c->n_cols; col += AEG_F8_COLS, dst += aeg_tile_bytes(c->type)) {
        for (uint32_t r = 0; r < AEG_ROWS; r++) {
            const float scale = random_float(c->fill != FILL_ZEROS || case_random() % 16 ? 0.01f : 1e-38f); /* else slow: assists */
            memcpy(dst + 4 * r, &scale, 4);
        }
        for (size_t i = AEG_F8_HEADER; i < aeg_tile_bytes(c->type); i++) {
            const uint32_t u = case_random();
            dst[i] = c->fill == FILL_HIGHEST  ? 0x7e
                     : c->fill == FILL_LOWEST ? 0xfe
                                              : (uint8_t)((u >> 8 & 1 ? u % 16 : u % 0x7f) | (u >> 9 & 0x80));
        }
    }
}

static void put_half(uint8_t *p, float v)
{
    const uint16_t h = aeg_f16_from_f32(v);
    memcpy(p, &h, 2);
}

/* The f16 numbers of a block of ggml, small; or its exponent. */
static void put_block_scales(uint8_t *block, uint32_t kind)
{
    const float d = case_random() % 16 ? random_float(0.01f) : random_float(1e-6f), m = random_float(0.1f);
    switch (kind) {
    case AEG_W_MXFP4: block[0] = (uint8_t)(case_random() % 16 ? 110 + case_random() % 20 : case_random() % 3); break;
    case AEG_W_Q3_K: put_half(block + 108, d); break;
    case AEG_W_Q6_K: put_half(block + 208, d); break;
    case AEG_W_Q2_K:
        put_half(block + 80, d);
        put_half(block + 82, m);
        break;
    case AEG_W_Q4_1:
    case AEG_W_Q5_1:
    case AEG_W_Q4_K:
    case AEG_W_Q5_K: put_half(block + 2, m); /* fall through */
    default: put_half(block, d); break;
    }
}

/* Bytes whose codes are all the largest (unsigned) or, for signed ones, the extremes in turn. */
static uint8_t extreme_byte(uint32_t kind, case_fill fill)
{
    if (kind == AEG_W_Q8_0)
        return fill == FILL_HIGHEST ? 0x7f : 0x80;
    return kind == AEG_W_MXFP4 ? 0x77 : 0xff;
}

static void make_block_rows(uint8_t *dst, const matmul_case *c)
{
    const uint32_t kind = c->type.kind;
    const aeg_block_shape s = aeg_block_shape_of(kind);
    uint8_t *row = malloc((size_t)c->n_cols / s.cols * s.source);
    memset(dst, 0, aeg_block_bytes(c->type, c->n_cols));
    for (uint32_t r = 0; r < AEG_ROWS && row; r++) {
        uint8_t *block = row;
        for (uint32_t col = 0; col < c->n_cols; col += s.cols, block += s.source) {
            for (uint32_t i = 0; i < s.source; i++)
                block[i] = c->fill == FILL_HIGHEST || c->fill == FILL_LOWEST ? extreme_byte(kind, c->fill) : (uint8_t)case_random();
            put_block_scales(block, kind);
        }
        if (!aeg_blocks_pack_lane(kind, row, c->n_cols, r, dst))
            abort();
    }
    free(row);
}

/* Large matrices repeat their first row block: the benchmark only wants the bytes. */
static void make_weights(matmul_data *d, const matmul_case *c)
{
    const size_t block = aeg_block_bytes(c->type, c->n_cols), stride = c->interleave ? 2 * block : block;
    const uint32_t n_blocks = aeg_row_blocks(c->n_rows);
    uint8_t *data = own(d, stride * n_blocks);
    memset(data, 0x55, stride * n_blocks);
    for (uint32_t b = 0; b < n_blocks; b++) {
        uint8_t *p = data + b * stride;
        if (b >= 8) {
            memcpy(p, data, block);
        } else if (aeg_weight_is_block(c->type)) {
            make_block_rows(p, c);
        } else if (c->type.kind == AEG_W_F8) {
            make_f8(p, c);
        } else if (c->type.kind != AEG_W_AFFINE) {
            make_plain(p, c->type, (size_t)AEG_ROWS * c->n_cols);
        } else {
            for (uint32_t col = 0; col < c->n_cols; col += c->type.group, p += aeg_tile_bytes(c->type))
                make_tile(p, c->type, c->fill);
        }
    }
    d->matrix_bytes = block * n_blocks;
    d->w = (aeg_weights){ .type = c->type, .n_rows = c->n_rows, .n_cols = c->n_cols, .block_stride = stride,
                          .data = data };
}

static int32_t make_code(const matmul_case *c, bool zero)
{
    const int32_t extreme = c->act == AEG_ACT_I8 ? 127 : 32767;
    if (c->fill == FILL_HIGHEST)
        return extreme;
    if (c->fill == FILL_LOWEST)
        return -extreme;
    return zero ? 0 : (int32_t)(case_random() % (2 * (uint32_t)extreme + 1)) - extreme;
}

static void make_acts(matmul_data *d, const matmul_case *c, uint32_t n_rows)
{
    const uint32_t block = c->type.group == 32 || aeg_weight_is_block(c->type) ? 32 : 64;
    const size_t n = (size_t)n_rows * c->n_cols;
    int8_t *q8 = own(d, n);
    int16_t *q16 = own(d, 2 * n);
    float *f32 = own(d, 4 * n), *scale = own(d, 4 * (n / 32)), *sum = own(d, 4 * (n / 32));
    int32_t *sums = own(d, 4 * (n / 16));
    for (size_t i = 0; i < n; i++)
        f32[i] = random_float(2);
    memset(sums, 0, 4 * (n / 16));
    for (size_t b = 0; aeg_weight_reads_codes(c->type) && b < n / block; b++) {
        const bool zero = c->fill == FILL_ZEROS && case_random() % 3 == 0;
        int32_t total = 0;
        for (size_t i = b * block; i < (b + 1) * block; i++) {
            const int32_t code = make_code(c, zero);
            q8[i] = (int8_t)code;
            q16[i] = (int16_t)code;
            total += code;
            sums[i / 16] += code;
        }
        scale[b] = zero ? 0 : 0.001f + random_float(0.0009f);
        sum[b] = scale[b] * (float)total;
    }
    d->x = (aeg_acts){ .kind = (uint8_t)c->act, .n_cols = c->n_cols, .block = block, .f32 = f32,
                       .q8 = c->act == AEG_ACT_I8 ? q8 : NULL, .q16 = c->act == AEG_ACT_I16 ? q16 : NULL,
                       .d = scale, .s = sum, .sums = aeg_weight_reads_sums(c->type) ? sums : NULL };
}

void case_make(matmul_data *d, const matmul_case *c)
{
    const uint32_t x_rows = c->gather ? c->n + 3 : c->n;
    memset(d, 0, sizeof *d);
    make_weights(d, c);
    make_acts(d, c, x_rows);
    for (uint32_t m = 0; m < c->n; m++)
        d->rows[m] = case_random() % x_rows;
    const size_t y_stride = c->n_rows + CASE_GUARD;
    d->y_floats = y_stride * c->n;
    d->y = own(d, d->y_floats * sizeof(float));
    d->args = (aeg_matmul_args){ .w = &d->w, .x = &d->x, .rows = c->gather ? d->rows : NULL, .n = c->n, .y = d->y,
                                 .y_stride = y_stride };
    case_clear_y(d);
}

void case_clear_y(matmul_data *d)
{
    for (size_t i = 0; i < d->y_floats; i++)
        d->y[i] = -12345678.0f;
}

void case_free(matmul_data *d)
{
    for (int i = 0; i < d->n_owned; i++)
        free(d->owned[i]);
    d->n_owned = 0;
}

void case_describe(char *out, size_t n, const matmul_case *c)
{
    static const char *const acts[] = { "f32", "i8", "i16" };
    char type[AEG_TYPE_TEXT];
    snprintf(out, n, "%s x %s, %u rows, %u columns, %u tokens, fill %d%s%s", aeg_weight_type_text(type, c->type),
             acts[c->act], c->n_rows, c->n_cols, c->n, (int)c->fill, c->gather ? ", gathered" : "",
             c->interleave ? ", interleaved" : "");
}

static void add_level(case_level *levels, int *n, const char *name, void (*reg)(aeg_kernels *))
{
    case_level *l = &levels[(*n)++];
    l->name = name;
    aeg_matmul_scalar_register(&l->k);
    reg(&l->k);
}

int case_levels(case_level *levels)
{
    const uint32_t cpu = aeg_cpu_detect();
    int n = 0;
    memset(levels, 0, 5 * sizeof *levels);
    add_level(levels, &n, "scalar", aeg_matmul_scalar_register);
    if (cpu & AEG_CPU_AVX2)
        add_level(levels, &n, "avx2", aeg_matmul_avx2_register);
    if (cpu & AEG_CPU_AVX512)
        add_level(levels, &n, "avx512", aeg_matmul_avx512_register);
    if (cpu & AEG_CPU_NEON) {
        add_level(levels, &n, "neon", aeg_matmul_neon_register);
        if (aeg_cpu_has_dotprod())
            add_level(levels, &n, "neon without dot products", aeg_matmul_neon_widening_register);
    }
    return n;
}
