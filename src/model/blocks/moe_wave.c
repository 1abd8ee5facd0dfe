/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/moe_wave.h"

#include <string.h>

#include "base/checked.h"
#include "kernels/math.h"

void aeg_wave_scratch_init(aeg_wave_scratch *s, aeg_arena *arena, aeg_act_kind act, uint64_t rows, uint64_t width)
{
    s->gate = AEG_ARENA_ARRAY(arena, float, rows * width);
    s->up = AEG_ARENA_ARRAY(arena, float, rows * width);
    aeg_act_room_init(&s->room, arena, act, rows, width);
}

static bool reads_codes(const aeg_compute *c, const aeg_weights *w)
{
    return c->act != AEG_ACT_F32 && w->type.kind == AEG_W_AFFINE;
}

static bool same_input(aeg_weight_type a, aeg_weight_type b)
{
    return (a.kind == AEG_W_AFFINE) == (b.kind == AEG_W_AFFINE) && aeg_act_block(a) == aeg_act_block(b);
}

bool aeg_wave_alike(const aeg_wave_view *a, const aeg_wave_view *b)
{
    return same_input(a->gate.type, b->gate.type) && same_input(a->down.type, b->down.type);
}

aeg_acts aeg_wave_input(const aeg_compute *c, const aeg_act_room *room, const float *u, uint32_t n,
                        const aeg_wave_view *view)
{
    const aeg_compute exact = { .kernels = c->kernels, .team = c->team, .act = AEG_ACT_F32 };
    return aeg_quantize_rows(reads_codes(c, &view->gate) ? c : &exact, room, u, n, view->gate.n_cols,
                             aeg_act_block(view->gate.type));
}

typedef struct {
    const aeg_compute *c;
    aeg_wave_scratch *s;
    const aeg_acts *u;
    const aeg_wave_view *views;
    uint32_t n_views, hidden;
    aeg_act_kind h_kind;
    uint32_t h_block;       /* columns of the hidden rows that one unit computes and quantises */
    const aeg_wave_sums *sums;
} wave_job;

static uint32_t groups_of(const wave_job *j, const aeg_wave_view *v)
{
    return (v->gate.n_rows + j->h_block - 1) / j->h_block;
}

/* Columns [c0, c0 + n_cols) of one hidden row. */
static void finish_hidden(const wave_job *j, const aeg_wave_view *v, uint32_t row, uint32_t c0, uint32_t n_cols)
{
    const aeg_kernels *k = j->c->kernels;
    const size_t at = v->at + (size_t)row * v->gate.n_rows + c0, block = at / j->h_block;
    float *h = j->s->gate + at;
    k->silu_mul(h, h, j->s->up + at, n_cols);
    if (j->h_kind == AEG_ACT_I8)
        k->quantize_i8(j->s->room.q8 + at, j->s->room.d + block, j->s->room.s + block, h, n_cols, j->h_block);
    else if (j->h_kind == AEG_ACT_I16)
        k->quantize_i16(j->s->room.q16 + at, j->s->room.d + block, j->s->room.s + block, h, n_cols, j->h_block);
}

/* Groups [g0, g1) of one view. */
static void run_groups(const wave_job *j, const aeg_wave_view *v, uint32_t g0, uint32_t g1)
{
    const uint32_t width = v->gate.n_rows, per_group = j->h_block / AEG_ROWS;
    const aeg_matmul_fn fn = aeg_kernels_matmul(j->c->kernels, v->gate.type, (aeg_act_kind)j->u->kind);
    aeg_matmul_args a = { .x = j->u, .rows = v->token, .n = v->n, .y_stride = width };
    for (uint32_t g = g0; g < g1; g++) {
        const uint32_t b0 = g * per_group, b1 = AEG_MIN(aeg_row_blocks(width), b0 + per_group);
        a.w = &v->gate;
        a.y = j->s->gate + v->at;
        fn(&a, b0, b1);
        a.w = &v->up;
        a.y = j->s->up + v->at;
        fn(&a, b0, b1);
        for (uint32_t r = 0; r < v->n; r++)
            finish_hidden(j, v, r, b0 * AEG_ROWS, AEG_MIN(width, b1 * AEG_ROWS) - b0 * AEG_ROWS);
    }
}

static void run_gate_up(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const wave_job *j = ctx;
    (void)thread;
    for (uint32_t i = 0; i < j->n_views; i++) {
        const aeg_wave_view *v = &j->views[i];
        const uint32_t g0 = AEG_MAX(begin, v->first_unit), g1 = AEG_MIN(end, v->first_unit + groups_of(j, v));
        if (g0 < g1)
            run_groups(j, v, g0 - v->first_unit, g1 - v->first_unit);
    }
}

/* The hidden rows of one view as its down matrix reads them. */
static aeg_acts hidden_rows(const wave_job *j, const aeg_wave_view *v)
{
    aeg_acts h = { .kind = (uint8_t)j->h_kind, .n_cols = v->gate.n_rows, .block = j->h_block, .f32 = j->s->gate + v->at };
    if (j->h_kind == AEG_ACT_F32)
        return h;
    h.q8 = j->h_kind == AEG_ACT_I8 ? j->s->room.q8 + v->at : NULL;
    h.q16 = j->h_kind == AEG_ACT_I16 ? j->s->room.q16 + v->at : NULL;
    h.d = j->s->room.d + v->at / j->h_block;
    h.s = j->s->room.s + v->at / j->h_block;
    return h;
}

static void add_columns(const wave_job *j, uint32_t c0, uint32_t n_cols)
{
    const aeg_wave_sums *s = j->sums;
    const aeg_kernels *k = j->c->kernels;
    for (uint32_t t = 0; s->clear && t < s->n; t++)
        memset(s->acc + (size_t)t * j->hidden + c0, 0, n_cols * sizeof(float));
    for (uint32_t r = s->route0; r < s->route1; r++)
        k->axpy(s->acc + (size_t)s->routes->token[r] * j->hidden + c0, s->routes->weight[r],
                s->y + (size_t)(r - s->route0) * j->hidden + c0, n_cols);
    for (uint32_t t = 0; s->finish && t < s->n; t++) {
        const size_t at = (size_t)t * j->hidden + c0;
        if (s->shared != NULL)
            k->axpy(s->acc + at, aeg_sigmoid(s->shared_logit[t]), s->shared + at, n_cols);
        k->add(s->x + at, s->acc + at, n_cols);
    }
}

/* Units are row blocks of the output. */
static void run_down(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const wave_job *j = ctx;
    (void)thread;
    for (uint32_t i = 0; i < j->n_views; i++) {
        const aeg_wave_view *v = &j->views[i];
        const aeg_acts h = hidden_rows(j, v);
        const aeg_matmul_args a = { .w = &v->down, .x = &h, .n = v->n, .y = v->y, .y_stride = j->hidden };
        aeg_kernels_matmul(j->c->kernels, v->down.type, j->h_kind)(&a, begin, end);
    }
    const uint32_t c0 = begin * AEG_ROWS;
    add_columns(j, c0, AEG_MIN(j->hidden, end * AEG_ROWS) - c0);
}

void aeg_wave_run(const aeg_compute *c, aeg_wave_scratch *s, const aeg_acts *u, aeg_wave_view *views, uint32_t n_views,
                  uint32_t hidden, const aeg_wave_sums *sums)
{
    wave_job j = { .c = c, .s = s, .u = u, .views = views, .n_views = n_views, .hidden = hidden, .sums = sums,
                   .h_kind = reads_codes(c, &views[0].down) ? c->act : AEG_ACT_F32,
                   .h_block = aeg_act_block(views[0].down.type) };
    uint32_t n_units = 0;
    size_t at = 0;
    for (uint32_t i = 0; i < n_views; i++) {
        views[i].first_unit = n_units;
        views[i].at = at;
        n_units += groups_of(&j, &views[i]);
        at += (size_t)views[i].n * views[i].gate.n_rows;
    }
    aeg_team_run(c->team, n_units, run_gate_up, &j);
    aeg_team_run(c->team, aeg_row_blocks(hidden), run_down, &j);
}
