/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/norm.h"

typedef struct {
    const aeg_kernels *k;
    float *y;
    const float *x, *w;
    size_t x_stride;
    uint32_t width;
    float eps;
} rows_job;

static void norm_rows(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const rows_job *j = ctx;
    (void)thread;
    for (uint32_t r = begin; r < end; r++)
        j->k->rmsnorm(j->y + (size_t)r * j->width, j->x + r * j->x_stride, j->w, j->width, j->eps);
}

void aeg_norm_rows(const aeg_compute *c, float *y, const float *x, size_t x_stride, const float *w, uint32_t n,
                   uint32_t width, float eps)
{
    rows_job job = { .k = c->kernels, .y = y, .x = x, .x_stride = x_stride, .w = w, .width = width, .eps = eps };
    aeg_team_run(c->team, n, norm_rows, &job);
}
