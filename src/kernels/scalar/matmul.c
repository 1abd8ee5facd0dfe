/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/matmul.c - the products of kernels/weights.h in plain C: the oracle of the wider levels, and what runs
 * where there is no vector unit. Codes are expanded once per strip of 8 tokens, as everywhere. */
#include <math.h>

#include "kernels/kernels.h"
#include "kernels/planes.h"
#include "kernels/register.h"

enum { MAX_GROUP = 128 };

/* One AFFINE tile, expanded. */
typedef struct {
    float scale[AEG_ROWS], bias[AEG_ROWS];
    uint8_t codes[AEG_ROWS][MAX_GROUP];
} tile;

/* The tokens of one strip: their rows of x, and one chain per output. */
typedef struct {
    uint32_t n;
    size_t x_row[AEG_STRIP];
    float y[AEG_STRIP][AEG_ROWS];
} strip;

static void expand_tile(tile *t, aeg_weight_type type, const uint8_t *src)
{
    for (uint32_t r = 0; r < AEG_ROWS; r++) {
        t->scale[r] = aeg_stored_float(type.scale_kind, src, r);
        t->bias[r] = aeg_stored_float(type.scale_kind, src, AEG_ROWS + r);
    }
    src += aeg_header_bytes(type);
    for (uint32_t first = 0; first < type.group; first += AEG_PLANE_COLS) {
        for (uint32_t r = 0; r < AEG_ROWS; r++)
            for (uint32_t c = 0; c < AEG_PLANE_COLS; c++)
                t->codes[r][first + c] = (uint8_t)aeg_plane_code(type.bits, src, r, c);
        src += (size_t)AEG_PLANE_BYTES * type.bits;
    }
}

static void add_tile_f32(strip *s, const aeg_acts *x, const tile *t, uint32_t col, uint32_t group)
{
    for (uint32_t m = 0; m < s->n; m++) {
        const float *xs = x->f32 + s->x_row[m] * x->n_cols + col;
        for (uint32_t r = 0; r < AEG_ROWS; r++)
            for (uint32_t c = 0; c < group; c++)
                s->y[m][r] = fmaf(fmaf(t->scale[r], (float)t->codes[r][c], t->bias[r]), xs[c], s->y[m][r]);
    }
}

static int32_t dot_i8(const uint8_t *codes, const int8_t *q, uint32_t n)
{
    int32_t dot = 0;
    for (uint32_t c = 0; c < n; c++)
        dot += codes[c] * q[c];
    return dot;
}

static int32_t dot_i16(const uint8_t *codes, const int16_t *q, uint32_t n)
{
    int32_t dot = 0;
    for (uint32_t c = 0; c < n; c++)
        dot += codes[c] * q[c]; /* 64 * 255 * 32767 < 2^31 */
    return dot;
}

static void add_tile_int(strip *s, const aeg_acts *x, const tile *t, uint32_t col, uint32_t group, aeg_act_kind act)
{
    for (uint32_t m = 0; m < s->n; m++) {
        const size_t x0 = s->x_row[m] * x->n_cols + col;
        for (uint32_t c = 0; c < group; c += x->block) {
            const float d = x->d[(x0 + c) / x->block], sum = x->s[(x0 + c) / x->block];
            for (uint32_t r = 0; r < AEG_ROWS; r++) {
                const int32_t dot = act == AEG_ACT_I8 ? dot_i8(t->codes[r] + c, x->q8 + x0 + c, x->block)
                                                      : dot_i16(t->codes[r] + c, x->q16 + x0 + c, x->block);
                float y = s->y[m][r];
                y = fmaf(t->scale[r] * d, (float)dot, y);
                y = fmaf(t->bias[r], sum, y);
                s->y[m][r] = y;
            }
        }
    }
}

static void add_columns_plain(strip *s, const aeg_acts *x, const aeg_weights *weights, uint32_t block)
{
    const aeg_weight_type type = weights->type;
    const uint8_t *w = weights->data + block * weights->block_stride;
    for (uint32_t c = 0; c < weights->n_cols; c++, w += aeg_tile_bytes(type))
        for (uint32_t r = 0; r < AEG_ROWS; r++) {
            const float weight = aeg_stored_float(type.kind, w, r);
            for (uint32_t m = 0; m < s->n; m++)
                s->y[m][r] = fmaf(weight, x->f32[s->x_row[m] * x->n_cols + c], s->y[m][r]);
        }
}

static void add_tile_f8(strip *s, const aeg_acts *x, const uint8_t *bytes, uint32_t col)
{
    for (uint32_t r = 0; r < AEG_ROWS; r++)
        for (uint32_t c = 0; c < AEG_F8_COLS; c++) {
            const float w = aeg_f8_value(aeg_stored_float(AEG_W_F32, bytes, r), bytes[AEG_F8_HEADER + c * AEG_ROWS + r]);
            for (uint32_t m = 0; m < s->n; m++)
                s->y[m][r] = fmaf(w, x->f32[s->x_row[m] * x->n_cols + col + c], s->y[m][r]);
        }
}

static void begin_strip(strip *s, const aeg_matmul_args *a, uint32_t m0)
{
    s->n = a->n - m0 < AEG_STRIP ? a->n - m0 : AEG_STRIP;
    for (uint32_t m = 0; m < s->n; m++)
        s->x_row[m] = a->rows ? a->rows[m0 + m] : m0 + m;
    memset(s->y, 0, sizeof s->y);
}

static void end_strip(const strip *s, const aeg_matmul_args *a, uint32_t m0, uint32_t block)
{
    const uint32_t row = block * AEG_ROWS;
    const uint32_t n_rows = a->w->n_rows - row < AEG_ROWS ? a->w->n_rows - row : AEG_ROWS;
    for (uint32_t m = 0; m < s->n; m++)
        memcpy(a->y + (m0 + m) * a->y_stride + row, s->y[m], n_rows * sizeof(float));
}

static void affine(const aeg_matmul_args *a, uint32_t block0, uint32_t block1, aeg_act_kind act)
{
    const aeg_weight_type type = a->w->type;
    strip s;
    tile t;
    for (uint32_t block = block0; block < block1; block++)
        for (uint32_t m0 = 0; m0 < a->n; m0 += AEG_STRIP) {
            const uint8_t *src = a->w->data + block * a->w->block_stride;
            begin_strip(&s, a, m0);
            for (uint32_t col = 0; col < a->w->n_cols; col += type.group, src += aeg_tile_bytes(type)) {
                expand_tile(&t, type, src);
                if (act == AEG_ACT_F32)
                    add_tile_f32(&s, a->x, &t, col, type.group);
                else
                    add_tile_int(&s, a->x, &t, col, type.group, act);
            }
            end_strip(&s, a, m0, block);
        }
}

static void affine_f32(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    affine(a, block0, block1, AEG_ACT_F32);
}

static void affine_i8(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    affine(a, block0, block1, AEG_ACT_I8);
}

static void affine_i16(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    affine(a, block0, block1, AEG_ACT_I16);
}

static void plain(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    strip s;
    for (uint32_t block = block0; block < block1; block++)
        for (uint32_t m0 = 0; m0 < a->n; m0 += AEG_STRIP) {
            begin_strip(&s, a, m0);
            add_columns_plain(&s, a->x, a->w, block);
            end_strip(&s, a, m0, block);
        }
}

static void f8(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)
{
    strip s;
    for (uint32_t block = block0; block < block1; block++)
        for (uint32_t m0 = 0; m0 < a->n; m0 += AEG_STRIP) {
            const uint8_t *bytes = a->w->data + block * a->w->block_stride;
            begin_strip(&s, a, m0);
            for (uint32_t col = 0; col < a->w->n_cols; col += AEG_F8_COLS, bytes += aeg_tile_bytes(a->w->type))
                add_tile_f8(&s, a->x, bytes, col);
            end_strip(&s, a, m0, block);
        }
}

void aeg_matmul_scalar_register(aeg_kernels *k)
{
    static const uint8_t widths[] = { 2, 3, 4, 5, 6, 8 };
    for (size_t i = 0; i < sizeof widths; i++) {
        k->affine[widths[i]][AEG_ACT_F32] = affine_f32;
        k->affine[widths[i]][AEG_ACT_I8] = affine_i8;
        k->affine[widths[i]][AEG_ACT_I16] = affine_i16;
    }
    for (int kind = AEG_W_F32; kind <= AEG_W_BF16; kind++)
        k->plain[kind] = plain;
    k->f8 = f8;
    aeg_matmul_scalar_blocks_register(k);
}
