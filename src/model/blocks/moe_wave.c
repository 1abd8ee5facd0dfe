/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/moe_wave.h"

#include <string.h>

#include "base/checked.h"
#include "kernels/math.h"

enum { AEG_STRIDE = 64 /* floats: the largest block of codes */, START_BYTES = 2048, DOWN_GRAIN = 32 };

void aeg_wave_scratch_init(aeg_wave_scratch *s, aeg_arena *arena, aeg_act_kind act, uint64_t rows, uint32_t width)
{
    s->stride = (uint32_t)aeg_align_up(width, AEG_STRIDE);
    s->gate_up = AEG_ARENA_ARRAY(arena, float, rows * 2 * s->stride);
    s->h = AEG_ARENA_ARRAY(arena, float, rows * s->stride);
    aeg_act_room_init(&s->room, arena, act, rows, s->stride);
}

uint32_t aeg_wave_widen(aeg_wave_scratch *s, uint32_t rows, uint32_t width)
{
    const uint64_t room = (uint64_t)rows * s->stride;
    s->stride = (uint32_t)aeg_align_up(width, AEG_STRIDE);
    return (uint32_t)(room / s->stride);
}

static bool same_input(aeg_weight_type a, aeg_weight_type b)
{
    return aeg_weight_reads_codes(a) == aeg_weight_reads_codes(b) && aeg_act_block(a) == aeg_act_block(b);
}

bool aeg_wave_alike(const aeg_wave_view *a, const aeg_wave_view *b)
{
    return same_input(a->gate.type, b->gate.type) && same_input(a->down.type, b->down.type);
}

aeg_acts aeg_wave_input(const aeg_compute *c, const aeg_act_room *room, const float *u, uint32_t n,
                        const aeg_wave_view *view)
{
    const aeg_compute exact = { .kernels = c->kernels, .team = c->team, .act = AEG_ACT_F32 };
    return aeg_quantize_rows(aeg_reads_codes(c, view->gate.type) ? c : &exact, room, u, n, view->gate.n_cols,
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

/* Memory is read far ahead once a range runs, but not before it begins. A hint: any address is harmless. */
static void prefetch_start(const uint8_t *p)
{
    for (uint32_t i = 0; i < START_BYTES; i += AEG_CACHE_LINE)
        __builtin_prefetch(p + i, 0, 3);
}

static bool interleaved(const aeg_wave_view *v) { return v->gate.block_stride != aeg_block_bytes(v->gate.type, v->gate.n_cols); }

/* Row blocks [b0, b1) of gate and up. Interleaved ones are one matrix of twice as many row blocks, read in one go. */
static void run_products(const wave_job *j, const aeg_wave_view *v, uint32_t b0, uint32_t b1)
{
    const aeg_matmul_fn fn = aeg_kernels_matmul(j->c->kernels, v->gate.type, (aeg_act_kind)j->u->kind);
    float *y = j->s->gate_up + v->row0 * 2 * j->s->stride;
    aeg_matmul_args a = { .w = &v->gate, .x = j->u, .rows = v->token, .n = v->n, .y = y, .y_stride = 2 * (size_t)j->s->stride };
    if (interleaved(v)) {
        aeg_weights both = v->gate;
        both.n_rows = 2 * aeg_row_blocks(v->gate.n_rows) * AEG_ROWS;
        both.block_stride /= 2;
        a.w = &both;
        fn(&a, 2 * b0, 2 * b1);
        return;
    }
    fn(&a, b0, b1);
    a.w = &v->up;
    a.y = y + j->s->stride;
    fn(&a, b0, b1);
}

/* silu(gate) * up for row blocks [b0, b1) of one hidden row. */
static void activate(const wave_job *j, const aeg_wave_view *v, const float *gate_up, float *h, uint32_t b0, uint32_t b1)
{
    const uint32_t width = v->gate.n_rows;
    if (!interleaved(v)) {
        const uint32_t c0 = b0 * AEG_ROWS;
        j->c->kernels->silu_mul(h + c0, gate_up + c0, gate_up + j->s->stride + c0, AEG_MIN(width, b1 * AEG_ROWS) - c0);
        return;
    }
    for (uint32_t b = b0; b < b1; b++) {
        const float *gate = gate_up + (size_t)2 * b * AEG_ROWS;
        j->c->kernels->silu_mul(h + b * AEG_ROWS, gate, gate + AEG_ROWS, AEG_MIN(width - b * AEG_ROWS, (uint32_t)AEG_ROWS));
    }
}

static void quantize_hidden(const wave_job *j, size_t at, uint32_t n_cols)
{
    aeg_quantize_codes(j->c->kernels, j->h_kind, &j->s->room, at, j->s->h + at, n_cols, j->h_block);
}

/* Groups [g0, g1) of one view. */
static void run_groups(const wave_job *j, const aeg_wave_view *v, uint32_t g0, uint32_t g1)
{
    const uint32_t width = v->gate.n_rows, per_group = j->h_block / AEG_ROWS, n_blocks = aeg_row_blocks(width);
    run_products(j, v, g0 * per_group, AEG_MIN(n_blocks, g1 * per_group)); /* in one go: long stretches of memory */
    for (uint32_t g = g0; g < g1; g++) {
        const uint32_t b0 = g * per_group, b1 = AEG_MIN(n_blocks, b0 + per_group);
        for (uint32_t r = 0; r < v->n; r++) {
            const size_t row = v->row0 + r;
            activate(j, v, j->s->gate_up + row * 2 * j->s->stride, j->s->h + row * j->s->stride, b0, b1);
            quantize_hidden(j, row * j->s->stride + b0 * AEG_ROWS, AEG_MIN(width, b1 * AEG_ROWS) - b0 * AEG_ROWS);
        }
    }
}

static void run_gate_up(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const wave_job *j = ctx;
    (void)thread;
    for (uint32_t i = 0; i < j->n_views; i++) {
        const aeg_wave_view *v = &j->views[i];
        const uint32_t g0 = AEG_MAX(begin, v->first_unit), g1 = AEG_MIN(end, v->first_unit + groups_of(j, v));
        if (g0 >= g1)
            continue;
        if (i + 1 < j->n_views && g1 < end)
            prefetch_start(v[1].gate.data);
        run_groups(j, v, g0 - v->first_unit, g1 - v->first_unit);
    }
}

/* The hidden rows of one view as its down matrix reads them. */
static aeg_acts hidden_rows(const wave_job *j, const aeg_wave_view *v)
{
    const aeg_act_room *room = &j->s->room;
    const size_t at = v->row0 * j->s->stride, block = at / j->h_block;
    aeg_acts h = { .kind = (uint8_t)j->h_kind, .n_cols = j->s->stride, .block = j->h_block, .f32 = j->s->h + at };
    if (j->h_kind == AEG_ACT_F32)
        return h;
    h.q8 = j->h_kind == AEG_ACT_I8 ? room->q8 + at : NULL;
    h.q16 = j->h_kind == AEG_ACT_I16 ? room->q16 + at : NULL;
    h.d = room->d + block;
    h.s = room->s + block;
    h.sums = room->sums ? room->sums + at / AEG_SUM_COLS : NULL;
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
        if (s->shared != NULL && s->shared_logit != NULL)
            k->axpy(s->acc + at, aeg_sigmoid(s->shared_logit[t]), s->shared + at, n_cols);
        else if (s->shared != NULL)
            k->add(s->acc + at, s->shared + at, n_cols);
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
        if (i + 1 < j->n_views)
            prefetch_start(v[1].down.data + begin * v[1].down.block_stride);
        aeg_kernels_matmul(j->c->kernels, v->down.type, j->h_kind)(&a, begin, end);
    }
    const uint32_t c0 = begin * AEG_ROWS;
    add_columns(j, c0, AEG_MIN(j->hidden, end * AEG_ROWS) - c0);
}

void aeg_wave_run(const aeg_compute *c, aeg_wave_scratch *s, const aeg_acts *u, aeg_wave_view *views, uint32_t n_views,
                  uint32_t hidden, const aeg_wave_sums *sums)
{
    wave_job j = { .c = c, .s = s, .u = u, .views = views, .n_views = n_views, .hidden = hidden, .sums = sums,
                   .h_kind = aeg_reads_codes(c, views[0].down.type) ? c->act : AEG_ACT_F32,
                   .h_block = aeg_act_block(views[0].down.type) };
    uint32_t n_units = 0;
    size_t row = 0;
    for (uint32_t i = 0; i < n_views; i++) {
        views[i].first_unit = n_units;
        views[i].row0 = row;
        n_units += groups_of(&j, &views[i]);
        row += views[i].n;
    }
    aeg_team_run(c->team, n_units, run_gate_up, &j);
    /* A row block of down is a few KiB: in pieces of 32 an expert is read in stretches of about 150 KiB. */
    aeg_team_run_grain(c->team, aeg_row_blocks(hidden), DOWN_GRAIN, run_down, &j);
}
