/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks/linear.h"

#include <assert.h>

#include "base/checked.h"

enum {
    MIN_ACT_BLOCK = 32,
    GRAIN = 16, /* row blocks: kernels walk a piece as several streams, and short ones start slowly (4 to 16: 50 -> 55 GB/s) */
};

void aeg_act_room_init(aeg_act_room *room, aeg_arena *arena, aeg_act_kind act, uint64_t rows, uint64_t n_cols)
{
    const uint64_t n = rows * n_cols;
    const bool sums = act & AEG_ACT_SUMS;
    act = (aeg_act_kind)(act & ~AEG_ACT_SUMS);
    *room = (aeg_act_room){ 0 };
    if (act == AEG_ACT_F32)
        return;
    if (act == AEG_ACT_I8)
        room->q8 = AEG_ARENA_ARRAY(arena, int8_t, n);
    else
        room->q16 = AEG_ARENA_ARRAY(arena, int16_t, n);
    room->d = AEG_ARENA_ARRAY(arena, float, n / MIN_ACT_BLOCK + 1);
    room->s = AEG_ARENA_ARRAY(arena, float, n / MIN_ACT_BLOCK + 1);
    if (sums)
        room->sums = AEG_ARENA_ARRAY(arena, int32_t, n / AEG_SUM_COLS + 1);
}

uint32_t aeg_act_block(aeg_weight_type type)
{
    return (type.kind == AEG_W_AFFINE && type.group == 32) || aeg_weight_is_block(type) ? 32 : 64;
}

void aeg_quantize_codes(const aeg_kernels *k, aeg_act_kind act, const aeg_act_room *room, size_t at, const float *x,
                        uint32_t n_cols, uint32_t block)
{
    const size_t b = at / block, i = at / AEG_SUM_COLS;
    if (act == AEG_ACT_I8)
        k->quantize_i8(room->q8 + at, room->d + b, room->s + b, x, n_cols, block);
    else if (act == AEG_ACT_I16)
        k->quantize_i16(room->q16 + at, room->d + b, room->s + b, x, n_cols, block);
    if (act == AEG_ACT_F32 || room->sums == NULL || block != MIN_ACT_BLOCK)
        return; /* only products in blocks of 32 read sums */
    if (act == AEG_ACT_I8)
        k->code_sums_i8(room->sums + i, room->q8 + at, n_cols);
    else
        k->code_sums_i16(room->sums + i, room->q16 + at, n_cols);
}

typedef struct {
    const aeg_compute *c;
    const aeg_act_room *room;
    const float *x;
    uint32_t n_cols, block;
} quantize_job;

void aeg_quantize_row(const aeg_compute *c, const aeg_act_room *room, uint32_t row, const float *x, uint32_t n_cols,
                      uint32_t block)
{
    aeg_quantize_codes(c->kernels, c->act, room, (size_t)row * n_cols, x, n_cols, block);
}

static void quantize_rows(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const quantize_job *j = ctx;
    (void)thread;
    for (uint32_t r = begin; r < end; r++)
        aeg_quantize_row(j->c, j->room, r, j->x + (size_t)r * j->n_cols, j->n_cols, j->block);
}

aeg_acts aeg_act_view(const aeg_compute *c, const aeg_act_room *room, const float *x, uint32_t n_cols, uint32_t block)
{
    return (aeg_acts){ .kind = (uint8_t)c->act, .n_cols = n_cols, .block = block, .f32 = x, .q8 = room->q8, .q16 = room->q16,
                       .d = room->d, .s = room->s, .sums = room->sums };
}

aeg_act_room aeg_act_room_at(const aeg_act_room *room, uint64_t element)
{
    return (aeg_act_room){ .q8 = room->q8 != NULL ? room->q8 + element : NULL,
                           .q16 = room->q16 != NULL ? room->q16 + element : NULL,
                           .d = room->d + element / MIN_ACT_BLOCK, .s = room->s + element / MIN_ACT_BLOCK,
                           .sums = room->sums != NULL ? room->sums + element / AEG_SUM_COLS : NULL };
}

aeg_acts aeg_acts_from(const aeg_acts *acts, uint32_t row)
{
    aeg_acts a = *acts;
    const size_t at = (size_t)row * a.n_cols, block = at / a.block;
    a.f32 += at;
    a.q8 = a.q8 != NULL ? a.q8 + at : NULL;
    a.q16 = a.q16 != NULL ? a.q16 + at : NULL;
    a.d = a.d != NULL ? a.d + block : NULL;
    a.s = a.s != NULL ? a.s + block : NULL;
    a.sums = a.sums != NULL ? a.sums + at / AEG_SUM_COLS : NULL;
    return a;
}

aeg_acts aeg_quantize_rows(const aeg_compute *c, const aeg_act_room *room, const float *x, uint32_t n,
                           uint32_t n_cols, uint32_t block)
{
    if (c->act == AEG_ACT_F32)
        return (aeg_acts){ .kind = AEG_ACT_F32, .n_cols = n_cols, .block = block, .f32 = x };
    quantize_job job = { .c = c, .room = room, .x = x, .n_cols = n_cols, .block = block };
    aeg_team_run(c->team, n, quantize_rows, &job);
    return aeg_act_view(c, room, x, n_cols, block);
}

typedef struct {
    aeg_matmul_fn fn;
    aeg_matmul_args args;
    uint32_t first;        /* first unit of the range space */
    float *add;
} linear_part;

typedef struct {
    const aeg_kernels *kernels;
    uint32_t n_parts, n_units;
    linear_part parts[AEG_LINEAR_MAX];
} linear_job;

/* Row blocks [b0, b1) of a part: its product, and the sum that it joins. */
static void run_part(const linear_job *j, const linear_part *p, uint32_t b0, uint32_t b1)
{
    p->fn(&p->args, b0, b1);
    if (p->add == NULL)
        return;
    const uint32_t c0 = b0 * AEG_ROWS, n_cols = AEG_MIN(p->args.w->n_rows, b1 * AEG_ROWS) - c0;
    for (uint32_t t = 0; t < p->args.n; t++)
        j->kernels->add(p->add + t * p->args.y_stride + c0, p->args.y + t * p->args.y_stride + c0, n_cols);
}

static void run_parts(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    const linear_job *j = ctx;
    (void)thread;
    for (uint32_t i = 0; i < j->n_parts; i++) {
        const linear_part *p = &j->parts[i];
        const uint32_t n = aeg_row_blocks(p->args.w->n_rows);
        const uint32_t b = AEG_MAX(begin, p->first), e = AEG_MIN(end, p->first + n);
        if (b < e)
            run_part(j, p, b - p->first, e - p->first);
    }
}

bool aeg_reads_codes(const aeg_compute *c, aeg_weight_type type) { return c->act != AEG_ACT_F32 && aeg_weight_reads_codes(type); }

static bool reads_codes(const aeg_compute *c, const aeg_linear_out *o) { return !o->exact && aeg_reads_codes(c, o->w->type); }

static void add_part(linear_job *job, const aeg_compute *c, const aeg_linear_out *o, const aeg_acts *acts,
                     uint32_t n)
{
    linear_part *p = &job->parts[job->n_parts++];
    *p = (linear_part){
        .fn = aeg_kernels_matmul(c->kernels, o->w->type, acts->kind),
        .args = { .w = o->w, .x = acts, .n = n, .y = o->y, .y_stride = o->y_stride },
        .first = job->n_units, .add = o->add,
    };
    job->n_units += aeg_row_blocks(o->w->n_rows);
}

void aeg_linear(const aeg_compute *c, const aeg_act_room *room, const float *x, uint32_t n, uint32_t n_cols,
                const aeg_linear_out *outs, uint32_t n_outs)
{
    static const uint32_t blocks[] = { 64, 32 };
    const aeg_acts plain = { .kind = AEG_ACT_F32, .n_cols = n_cols, .block = 64, .f32 = x };
    bool plain_done = false;

    assert(n_outs <= AEG_LINEAR_MAX);
    /* A model has one group size nearly always: then the second round finds nothing. */
    for (uint32_t b = 0; b < AEG_ARRAY_LEN(blocks); b++) {
        linear_job job = { .kernels = c->kernels };
        aeg_acts coded;
        bool have_codes = false;
        for (uint32_t i = 0; i < n_outs; i++) {
            if (!reads_codes(c, &outs[i]) || aeg_act_block(outs[i].w->type) != blocks[b])
                continue;
            if (!have_codes)
                coded = aeg_quantize_rows(c, room, x, n, n_cols, blocks[b]);
            have_codes = true;
            add_part(&job, c, &outs[i], &coded, n);
        }
        for (uint32_t i = 0; i < n_outs && !plain_done; i++)
            if (!reads_codes(c, &outs[i]))
                add_part(&job, c, &outs[i], &plain, n);
        plain_done = true;
        aeg_team_run_grain(c->team, job.n_units, GRAIN, run_parts, &job);
    }
}
