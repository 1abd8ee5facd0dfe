/* SPDX-License-Identifier: Apache-2.0 */
/* scalar/hyper.c - hyper-connections (formulas: kernels/hyper.h). Number i of the 4 x 4 mix stands in row i / 4: i ^ 1 and
 * i ^ 2 are in the same row, i ^ 4 and i ^ 8 in the same column, so that a vector register can do the same. */
#include <string.h>

#include "kernels/math.h"
#include "kernels/planes.h"
#include "kernels/register.h"

enum { S = AEG_HYPER_STREAMS, MIX = S * S };

/* Column c of the 16 rows of a row block lies c tiles from its beginning. */
void aeg_scalar_hyper_dots(const aeg_hyper_dots_args *a)
{
    const size_t tile = aeg_tile_bytes(a->fn->type);
    for (uint32_t g = 0; g < AEG_HYPER_GATES; g++) {
        const uint8_t *w = a->fn->data + g / AEG_ROWS * a->fn->block_stride;
        a->dots[g] = 0.0f;
        for (uint32_t s = 0; s < S; s++) {
            float d = 0.0f;
            for (size_t c = s * a->stride + a->column, end = c + a->n; c < end; c++)
                d = fmaf(aeg_stored_float(a->fn->type.kind, w + c * tile, g % AEG_ROWS), a->x[c], d);
            a->dots[g] += d;
        }
    }
}

static float clamp(float x, float limit) { return -aeg_maxf(-aeg_maxf(x, -limit), -limit); }

/* y_i = (x_i op x_(i^a)) op (the same at i^b) */
static void fold_max(float *y, const float *x, uint32_t a, uint32_t b)
{
    float t[MIX];
    for (uint32_t i = 0; i < MIX; i++)
        t[i] = aeg_maxf(x[i], x[i ^ a]);
    for (uint32_t i = 0; i < MIX; i++)
        y[i] = aeg_maxf(t[i], t[i ^ b]);
}

static void normalise(float *m, uint32_t a, uint32_t b, float eps)
{
    float t[MIX], sum[MIX];
    for (uint32_t i = 0; i < MIX; i++)
        t[i] = m[i] + m[i ^ a];
    for (uint32_t i = 0; i < MIX; i++)
        sum[i] = t[i] + t[i ^ b];
    for (uint32_t i = 0; i < MIX; i++)
        m[i] /= sum[i] + eps;
}

void aeg_scalar_hyper_gates(const aeg_hyper_args *a)
{
    const float r = 1.0f / sqrtf(a->sum_squares / (float)a->width + a->rms_eps);
    float g[AEG_HYPER_GATES], top[MIX];
    for (uint32_t i = 0; i < AEG_HYPER_GATES; i++)
        g[i] = fmaf(a->dots[i] * r, a->scale[i < S ? 0 : i < 2 * S ? 1 : 2], a->base[i]);
    for (uint32_t s = 0; s < S; s++) {
        a->out->pre[s] = aeg_sigmoid(g[s]);
        a->out->post[s] = 2.0f * aeg_sigmoid(g[S + s]);
    }
    float *m = g + 2 * S;
    for (uint32_t i = 0; i < MIX; i++)
        m[i] = clamp(m[i], a->clamp);
    fold_max(top, m, 1, 2);
    for (uint32_t i = 0; i < MIX; i++)
        m[i] = aeg_expf(m[i] - top[i]);
    for (uint32_t sweep = 0; sweep < a->iters; sweep++) {
        normalise(m, 1, 2, a->eps);
        normalise(m, 4, 8, a->eps);
    }
    memcpy(a->out->mix, m, sizeof a->out->mix);
}

void aeg_scalar_hyper_collapse(float *y, const float *x, size_t stride, const float *pre, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        float v = pre[0] * x[i];
        for (uint32_t s = 1; s < S; s++)
            v = fmaf(pre[s], x[s * stride + i], v);
        y[i] = v;
    }
}

void aeg_scalar_hyper_update(float *x, size_t stride, const float *y, const aeg_hyper_gates *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const float old[S] = { x[i], x[stride + i], x[2 * stride + i], x[3 * stride + i] };
        for (uint32_t d = 0; d < S; d++) {
            float v = g->post[d] * y[i];
            for (uint32_t s = 0; s < S; s++)
                v = fmaf(g->mix[d * S + s], old[s], v);
            x[d * stride + i] = v;
        }
    }
}
