/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/matmul_blocks.c - the products of the ggml types in plain C: the oracle of the wider levels. */
#include <math.h>

#include "kernels/blocks.h"
#include "kernels/register.h"
#include "kernels/strip.h"

static void add_f32(float *y, const aeg_piece *p, const float *x)
{
    float w[AEG_PLANE_COLS];
    aeg_piece_values(p, w);
    for (uint32_t c = 0; c < AEG_PLANE_COLS; c++)
        *y = fmaf(w[c], x[c], *y);
}

/* 32 columns of one row: one step of the chain, and one for the bias, per `sub` of them. */
static void add_int(float *y, aeg_block_shape s, const aeg_piece *p, const int32_t *q, float d)
{
    for (uint32_t c0 = 0; c0 < AEG_PLANE_COLS; c0 += s.sub) {
        const uint32_t h = c0 / AEG_SUM_COLS;
        int32_t dot = 0, sum = 0; /* 32 * 128 * 32767 < 2^31 */
        for (uint32_t c = c0; c < c0 + s.sub; c++) {
            dot += p->code[c] * q[c];
            sum += q[c];
        }
        *y = fmaf(p->scale[h] * d, (float)dot, *y);
        if (s.bias)
            *y = fmaf(p->bias[h], d * (float)sum, *y);
    }
}

static void add_piece(const aeg_strip *strip, float y[AEG_STRIP][AEG_ROWS], uint32_t r, aeg_block_shape s, const aeg_piece *p,
                      uint32_t col, aeg_act_kind act)
{
    int32_t q[AEG_PLANE_COLS];
    for (uint32_t m = 0; m < strip->n; m++) {
        if (act == AEG_ACT_F32) {
            add_f32(&y[m][r], p, strip->f32[m] + col);
            continue;
        }
        for (uint32_t c = 0; c < AEG_PLANE_COLS; c++)
            q[c] = act == AEG_ACT_I8 ? strip->q8[m][col + c] : strip->q16[m][col + c];
        add_int(&y[m][r], s, p, q, strip->d[m][col / AEG_PLANE_COLS]);
    }
}

static void run(const aeg_matmul_args *a, const aeg_strip *strip, uint32_t block0, uint32_t block1, aeg_act_kind act)
{
    const aeg_weights *w = a->w;
    const uint32_t kind = w->type.kind;
    const aeg_block_shape s = aeg_block_shape_of(kind);
    float y[AEG_STRIP][AEG_ROWS];
    aeg_piece p;
    for (uint32_t block = block0; block < block1; block++) {
        const uint8_t *tile = w->data + block * w->block_stride;
        memset(y, 0, sizeof y);
        for (uint32_t col = 0; col < w->n_cols; tile += aeg_block_tile_bytes(s))
            for (uint32_t k = 0; k < s.cols / AEG_PLANE_COLS; k++, col += AEG_PLANE_COLS)
                for (uint32_t r = 0; r < AEG_ROWS; r++) {
                    aeg_block_piece(&p, kind, tile, k, r);
                    add_piece(strip, y, r, s, &p, col, act);
                }
        for (uint32_t m = 0; m < strip->n; m++)
            memcpy(strip->y[m] + (size_t)block * AEG_ROWS, y[m], aeg_rows_of_block(w, block) * sizeof(float));
    }
}

#define ACT(name, act)                                                                                          \
    static void name##_strip(const aeg_matmul_args *a, const aeg_strip *s, uint32_t block0, uint32_t block1)     \
    {                                                                                                           \
        run(a, s, block0, block1, act);                                                                         \
    }                                                                                                           \
    static void name(const aeg_matmul_args *a, uint32_t block0, uint32_t block1)                                \
    {                                                                                                           \
        aeg_for_strips(a, act, block0, block1, name##_strip);                                                   \
    }

ACT(blocks_f32, AEG_ACT_F32)
ACT(blocks_i8, AEG_ACT_I8)
ACT(blocks_i16, AEG_ACT_I16)

void aeg_matmul_scalar_blocks_register(aeg_kernels *k)
{
    for (uint32_t kind = AEG_W_Q8_0; kind < AEG_W_BLOCKS_END; kind++) {
        k->blocks[kind][AEG_ACT_F32] = blocks_f32;
        k->blocks[kind][AEG_ACT_I8] = blocks_i8;
        k->blocks[kind][AEG_ACT_I16] = blocks_i16;
    }
}
