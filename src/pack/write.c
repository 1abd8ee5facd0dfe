/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/write.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "format/rawfile.h"
#include "kernels/planes.h"
#include "pack/quant.h"

enum { VECTOR_PIECE = 1024 };

static const float E4M3_MAX = 448.0f;

/* --- steps -------------------------------------------------------------------------------------------------- */

static aegis_status advance(aeg_pack_writer *w, uint64_t bytes, aegis_error *err)
{
    const aegis_pack_options *o = w->options;
    w->done_bytes += bytes;
    if (o->progress != NULL)
        o->progress(o->progress_ctx, w->done_bytes, w->plan->source_bytes);
    if (o->cancelled != NULL && o->cancelled(o->cancelled_ctx) != 0)
        return aeg_fail(err, AEGIS_E_CANCELLED, "packing was cancelled");
    return AEGIS_OK;
}

static aegis_status view(aeg_pack_writer *w, const aeg_tensor *t, uint64_t begin, size_t n, const uint8_t **out,
                         aegis_error *err)
{
    const size_t room = aeg_raw_room(n);
    if (room > w->window_bytes - w->window_used)
        return aeg_fail(err, AEGIS_E_RUNTIME, "tensor '%.200s': the read buffer is too small", t->name);
    AEG_TRY(aeg_source_view(w->plan->st, t, begin, n, w->window + w->window_used, out, err));
    w->window_used += room;
    return AEGIS_OK;
}

/* Rows [first, first + n) of one tensor of a matrix, `bytes` each, in the matrix's order. */
static aegis_status load_part(aeg_pack_writer *w, const aeg_source_matrix *m, const aeg_tensor *t, size_t bytes,
                              uint64_t first, uint64_t n, const uint8_t **out, aegis_error *err)
{
    uint32_t run;
    if (m->order.n_segments == 0)
        return view(w, t, (m->row0 + first) * bytes, (size_t)n * bytes, out, err);
    uint8_t *rows = w->window + w->window_used;
    const size_t room = (size_t)aeg_align_up(n * bytes, AEG_RAW_ALIGN);
    if (room > w->window_bytes - w->window_used)
        return aeg_fail(err, AEGIS_E_RUNTIME, "tensor '%.200s': the read buffer is too small", t->name);
    w->window_used += room;
    for (uint64_t done = 0; done < n; done += run) {
        const size_t mark = w->window_used;
        const uint8_t *p;
        const uint64_t row = aeg_source_row(m, (uint32_t)(first + done), &run);
        run = (uint32_t)AEG_MIN((uint64_t)run, n - done);
        AEG_TRY(view(w, t, row * bytes, run * bytes, &p, err));
        memcpy(rows + done * bytes, p, run * bytes);
        w->window_used = mark;
    }
    *out = rows;
    return AEGIS_OK;
}

static uint32_t dtype_kind(const aeg_tensor *t)
{
    return t->dtype == AEG_DT_BF16 ? AEG_W_BF16 : t->dtype == AEG_DT_F16 ? AEG_W_F16 : AEG_W_F32;
}

/* A scale of FP8: f32, bf16, or an exponent (255: NaN). */
static float stored_scale(const aeg_tensor *t, const uint8_t *p, size_t i)
{
    if (t->dtype != AEG_DT_F8_E8M0)
        return aeg_stored_float(dtype_kind(t), p, i);
    return p[i] == 255 ? NAN : ldexpf(1.0f, (int)p[i] - 127);
}

/* The scales of rows [first, first + n) as f32, a row of them for each row of the matrix. */
static aegis_status load_f8_scales(aeg_pack_writer *w, const aeg_source_matrix *m, uint64_t first, uint64_t n, const uint8_t **out,
                                   aegis_error *err)
{
    const aeg_tensor *t = m->scales;
    const uint32_t groups = (m->n_cols + AEG_F8_COLS - 1) / AEG_F8_COLS;
    const size_t room = (size_t)aeg_align_up(n * groups * sizeof(float), AEG_RAW_ALIGN);
    if (room > w->window_bytes - w->window_used)
        return aeg_fail(err, AEGIS_E_RUNTIME, "tensor '%.200s': the read buffer is too small", t->name);
    float *scales = (float *)(void *)(w->window + w->window_used);
    const size_t end = w->window_used + room;
    const uint8_t *p;
    w->window_used = end;
    AEG_TRY(view(w, t, 0, (size_t)t->bytes, &p, err));
    w->window_used = end; /* what was read is only needed here */
    for (uint64_t i = 0; i < n; i++) {
        uint32_t run;
        const uint64_t row = aeg_source_scale_row(m, aeg_source_row(m, (uint32_t)(first + i), &run));
        for (uint32_t g = 0; g < groups; g++) {
            const float scale = stored_scale(t, p, row * groups + g);
            if (!isfinite(scale * E4M3_MAX))
                return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s': row %llu, column %u is %g, expected a finite number that "
                                "can be multiplied by %g", t->name, (unsigned long long)row, g, (double)scale, (double)E4M3_MAX);
            scales[i * groups + g] = scale;
        }
    }
    *out = (const uint8_t *)scales;
    return AEGIS_OK;
}

static aegis_status check_f8_codes(const aeg_source_matrix *m, uint64_t first, uint64_t n, const uint8_t *codes, aegis_error *err)
{
    for (uint64_t i = 0; i < n; i++, codes += m->n_cols) {
        uint32_t n_nan = 0, run, at = 0;
        for (uint32_t c = 0; c < m->n_cols; c++)
            n_nan += (codes[c] & 0x7f) == 0x7f;
        if (n_nan == 0)
            continue;
        while ((codes[at] & 0x7f) != 0x7f)
            at++;
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s': row %llu, column %u is the code 0x%02x (NaN), expected a number",
                        m->weight->name, (unsigned long long)aeg_source_row(m, (uint32_t)(first + i), &run), at, codes[at]);
    }
    return AEGIS_OK;
}

/* Rows [first, first + n) of a matrix. */
static aegis_status load_rows(aeg_pack_writer *w, const aeg_source_matrix *m, uint64_t first, uint64_t n, aeg_rows *out,
                              aegis_error *err)
{
    const size_t row = aeg_rows_weight_bytes(m->type, m->n_cols), scales = aeg_rows_scale_bytes(m->type, m->n_cols);
    *out = (aeg_rows){ .type = m->type, .n_cols = m->n_cols };
    AEG_TRY(load_part(w, m, m->weight, row, first, n, &out->weight, err));
    if (scales == 0)
        return AEGIS_OK;
    if (m->type.kind == AEG_W_F8) {
        AEG_TRY(check_f8_codes(m, first, n, out->weight, err));
        return load_f8_scales(w, m, first, n, &out->scales, err);
    }
    AEG_TRY(load_part(w, m, m->scales, scales, first, n, &out->scales, err));
    return load_part(w, m, m->biases, scales, first, n, &out->biases, err);
}

static aegis_status open_file(aeg_pack_writer *w, aeg_store_file file, aegis_error *err)
{
    char path[AEG_PATH_MAX];
    AEG_TRY(aeg_path_join(path, w->folder, aeg_store_file_name(file), err));
    return aeg_sink_open(w->sink, path, w->plan->file_bytes[file], err);
}

static aegis_status close_file(aeg_pack_writer *w, aegis_error *err)
{
    AEG_TRY(aeg_sink_pad(w->sink, AEG_STORE_ALIGN, err));
    return aeg_sink_close(w->sink, err);
}

/* Row block `block` of a matrix of which `rows` holds the rows from `first` on. */
static aegis_status put_block(aeg_pack_writer *w, const aeg_source_matrix *m, const aeg_rows *rows, uint64_t first,
                              uint32_t block, aeg_weight_type out, aegis_error *err)
{
    const uint64_t row = (uint64_t)block * AEG_ROWS;
    const aeg_batch_block k = { .rows = aeg_rows_at(rows, row - first), .out = out, .m = m, .row = row,
                                .n_rows = AEG_MIN(m->n_rows - (uint32_t)row, (uint32_t)AEG_ROWS) };
    return aeg_batch_put(w->batch, &k, err);
}

/* Zeros up to `at`, behind the blocks that were put. */
static aegis_status pad_to(aeg_pack_writer *w, uint64_t at, aegis_error *err)
{
    AEG_TRY(aeg_batch_flush(w->batch, err));
    return aeg_sink_pad_to(w->sink, at, err);
}

/* Rows that fit the window at once; those that are gathered are there twice. */
static uint64_t window_rows(const aeg_pack_writer *w, const aeg_source_matrix *m)
{
    const size_t slack = 3 * 3 * AEG_RAW_ALIGN + w->plan->scale_room, row = aeg_plan_row_bytes(m->type, m->n_cols);
    return (w->window_bytes - slack) / row / (m->order.n_segments > 0 ? 2 : 1);
}

/* --- dense --------------------------------------------------------------------------------------------------- */

/* A group at a time: its rows as they are, then its columns as rows. */
static aegis_status write_transposed(aeg_pack_writer *w, const aeg_plan_tensor *t, aegis_error *err)
{
    const aeg_source_matrix *m = &t->matrix;
    const uint32_t rows = m->n_rows / m->order.n_groups;
    aeg_source_matrix source = *m, made = *m;
    source.n_rows = m->order.n_groups * m->n_cols;
    source.n_cols = made.n_rows = rows;
    for (uint32_t g = 0; g < m->order.n_groups; g++) {
        aeg_rows in, out = { .type = aeg_transposed_type(m->type), .n_cols = m->n_cols };
        w->window_used = 0;
        AEG_TRY(load_rows(w, &source, (uint64_t)g * m->n_cols, m->n_cols, &in, err));
        uint8_t *room = w->window + w->window_used;
        if (rows * aeg_plan_row_bytes(out.type, m->n_cols) > w->window_bytes - w->window_used)
            return aeg_fail(err, AEGIS_E_RUNTIME, "tensor '%.200s': the read buffer is too small", m->weight->name);
        aeg_rows_transpose(&in, m->n_cols, room);
        out.weight = room;
        for (uint32_t b = 0; b < rows / AEG_ROWS; b++)
            AEG_TRY(put_block(w, &made, &out, 0, b, t->out, err));
        AEG_TRY(aeg_batch_flush(w->batch, err));
        AEG_TRY(advance(w, m->n_cols * aeg_plan_row_bytes(m->type, rows), err));
    }
    return AEGIS_OK;
}

static aegis_status write_matrix(aeg_pack_writer *w, const aeg_plan_tensor *t, aegis_error *err)
{
    const aeg_source_matrix *m = &t->matrix;
    const uint64_t step = window_rows(w, m) & ~(uint64_t)(AEG_ROWS - 1);
    for (uint64_t first = 0; first < m->n_rows; first += step) {
        const uint64_t n = AEG_MIN(step, m->n_rows - first);
        aeg_rows rows;
        w->window_used = 0;
        AEG_TRY(load_rows(w, m, first, n, &rows, err));
        for (uint64_t row = first; row < first + n; row += AEG_ROWS)
            AEG_TRY(put_block(w, m, &rows, first, (uint32_t)(row / AEG_ROWS), t->out, err));
        AEG_TRY(aeg_batch_flush(w->batch, err));
        AEG_TRY(advance(w, n * aeg_plan_row_bytes(m->type, m->n_cols), err));
    }
    return AEGIS_OK;
}

/* Rounded once. The model computes exp(A_log) again: -value to within |A_log| * 2^-24, and |A_log| is below 10. */
static bool changed(aeg_vector_change change, float value, float *out)
{
    *out = change == AEG_VECTOR_PLUS_ONE       ? value + 1.0f
           : change == AEG_VECTOR_LOG_OF_MINUS ? (float)log(-(double)value)
                                               : value;
    return isfinite(*out);
}

/* The convolution is kept tap by tap ([4][channels]), because a step adds one tap of all channels at a time;
 * the source keeps the taps of a channel together. */
static aegis_status write_vector(aeg_pack_writer *w, const aeg_plan_tensor *t, aegis_error *err)
{
    const aeg_tensor *src = t->matrix.weight;
    const uint32_t n = t->entry.n_cols, kind = dtype_kind(src);
    const uint32_t taps = t->entry.part == AEG_PART_GDN_CONV ? w->plan->config.hparams.conv_kernel : 1;
    const uint32_t channels = n / taps;
    float piece[VECTOR_PIECE];
    const uint8_t *p;
    w->window_used = 0;
    AEG_TRY(view(w, src, 0, (size_t)src->bytes, &p, err));
    for (uint32_t done = 0; done < n;) {
        const uint32_t now = AEG_MIN(n - done, (uint32_t)VECTOR_PIECE);
        for (uint32_t i = 0; i < now; i++) {
            const uint32_t tap = (done + i) / channels, channel = (done + i) % channels;
            if (!changed(t->change, aeg_stored_float(kind, p, (size_t)channel * taps + tap), &piece[i]))
                return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s': value %u is %g, expected a finite one%s", src->name,
                                channel * taps + tap, (double)aeg_stored_float(kind, p, (size_t)channel * taps + tap),
                                t->change == AEG_VECTOR_LOG_OF_MINUS ? " below 0" : "");
        }
        AEG_TRY(aeg_sink_append(w->sink, piece, now * sizeof piece[0], err));
        done += now;
    }
    return advance(w, src->bytes, err);
}

aegis_status aeg_write_dense(aeg_pack_writer *w, aegis_error *err)
{
    AEG_TRY(open_file(w, AEG_FILE_DENSE, err));
    for (uint32_t i = 0; i < w->plan->n_tensors; i++) {
        aeg_plan_tensor *t = &w->plan->tensors[i];
        AEG_TRY(aeg_sink_pad_to(w->sink, t->offset, err));
        aeg_sink_hash_reset(w->sink);
        AEG_TRY(t->entry.vector ? write_vector(w, t, err) : t->matrix.transposed ? write_transposed(w, t, err) : write_matrix(w, t, err));
        t->xxh3 = aeg_sink_hash(w->sink);
    }
    return close_file(w, err);
}

/* --- embedding ------------------------------------------------------------------------------------------------ */

aegis_status aeg_write_embed(aeg_pack_writer *w, aegis_error *err)
{
    aeg_plan *p = w->plan;
    const aeg_source_matrix *m = &p->embed;
    const uint64_t step = window_rows(w, m);
    AEG_TRY(open_file(w, AEG_FILE_EMBED, err));
    aeg_sink_hash_reset(w->sink);
    for (uint64_t first = 0; first < m->n_rows; first += step) {
        const uint64_t n = AEG_MIN(step, m->n_rows - first);
        aeg_rows rows;
        w->window_used = 0;
        AEG_TRY(load_rows(w, m, first, n, &rows, err));
        for (uint64_t row = 0; row < n; row++) {
            const aeg_batch_block k = { .rows = aeg_rows_at(&rows, row), .out = p->embed_out, .m = m, .row = first + row };
            AEG_TRY(aeg_batch_put(w->batch, &k, err));
        }
        AEG_TRY(aeg_batch_flush(w->batch, err));
        AEG_TRY(advance(w, n * aeg_plan_row_bytes(m->type, m->n_cols), err));
    }
    p->embed_xxh3 = aeg_sink_hash(w->sink);
    return close_file(w, err);
}

/* --- experts -------------------------------------------------------------------------------------------------- */

/* The three matrices of expert `first`, and rows of them and the experts that follow. */
typedef struct {
    aeg_source_matrix m[AEG_N_EXPERT_PARTS];
    aeg_rows rows[AEG_N_EXPERT_PARTS];
    uint32_t step[AEG_N_EXPERT_PARTS]; /* rows from one expert to the next */
} expert_chunk;

static aegis_status load_chunk(aeg_pack_writer *w, uint32_t layer, uint32_t first, uint32_t n, expert_chunk *c,
                               aegis_error *err)
{
    w->window_used = 0;
    for (int part = 0; part < AEG_N_EXPERT_PARTS; part++) {
        aeg_source_matrix *m = &c->m[part];
        AEG_TRY(aeg_names_expert(&w->plan->names, layer, first, (aeg_expert_part)part, m, NULL, &c->step[part], err));
        if (part == AEG_EXPERT_UP && m->weight == c->m[AEG_EXPERT_GATE].weight) {
            /* fused: the gate's read covers it */
            c->rows[part] = aeg_rows_at(&c->rows[AEG_EXPERT_GATE], m->row0 - c->m[AEG_EXPERT_GATE].row0);
            continue;
        }
        AEG_TRY(load_rows(w, m, 0, (uint64_t)n * c->step[part], &c->rows[part], err));
    }
    return AEGIS_OK;
}

static aegis_status put_expert(aeg_pack_writer *w, const expert_chunk *c, const aeg_plan_layer *l, uint32_t index,
                               aegis_error *err)
{
    AEG_TRY(aeg_batch_flush(w->batch, err));
    const uint64_t start = aeg_sink_position(w->sink);
    aeg_rows rows[AEG_N_EXPERT_PARTS];
    aeg_source_matrix m[AEG_N_EXPERT_PARTS]; /* this expert's; all blocks are flushed before they go */
    for (int part = 0; part < AEG_N_EXPERT_PARTS; part++) {
        rows[part] = aeg_rows_at(&c->rows[part], (uint64_t)index * c->step[part]);
        m[part] = c->m[part];
        m[part].row0 += (uint64_t)index * c->step[part];
    }
    for (uint32_t b = 0; b < aeg_row_blocks(m[AEG_EXPERT_GATE].n_rows); b++) {
        AEG_TRY(put_block(w, &m[AEG_EXPERT_GATE], &rows[AEG_EXPERT_GATE], 0, b, l->gate_up, err));
        AEG_TRY(put_block(w, &m[AEG_EXPERT_UP], &rows[AEG_EXPERT_UP], 0, b, l->gate_up, err));
    }
    AEG_TRY(pad_to(w, start + w->plan->down_offset, err));
    for (uint32_t b = 0; b < aeg_row_blocks(m[AEG_EXPERT_DOWN].n_rows); b++)
        AEG_TRY(put_block(w, &m[AEG_EXPERT_DOWN], &rows[AEG_EXPERT_DOWN], 0, b, l->down, err));
    return pad_to(w, start + w->plan->record_bytes, err);
}

static aegis_status write_layer(aeg_pack_writer *w, uint32_t layer, aegis_error *err)
{
    const aeg_hparams *h = &w->plan->config.hparams;
    aeg_plan_layer *l = &w->plan->layers[layer];
    const size_t expert_bytes = 2 * h->expert_width * aeg_plan_row_bytes(l->gate_up_in, h->hidden_size) +
                                h->hidden_size * aeg_plan_row_bytes(l->down_in, h->expert_width);
    const size_t slack = 9 * 2 * AEG_RAW_ALIGN + w->plan->scale_room; /* three matrices of three tensors */
    uint32_t step = 1;
    if (l->stacked)
        step = (uint32_t)AEG_MIN((w->window_bytes - slack) / expert_bytes, (size_t)h->n_experts);
    expert_chunk chunk;
    aeg_sink_hash_reset(w->sink);
    for (uint32_t first = 0; first < h->n_experts; first += step) {
        const uint32_t n = AEG_MIN(step, h->n_experts - first);
        AEG_TRY(load_chunk(w, layer, first, n, &chunk, err));
        for (uint32_t i = 0; i < n; i++)
            AEG_TRY(put_expert(w, &chunk, l, i, err));
        AEG_TRY(advance(w, (uint64_t)n * expert_bytes, err));
    }
    l->xxh3 = aeg_sink_hash(w->sink);
    return AEGIS_OK;
}

aegis_status aeg_write_experts(aeg_pack_writer *w, aegis_error *err)
{
    AEG_TRY(open_file(w, AEG_FILE_EXPERTS, err));
    for (uint32_t layer = w->plan->config.hparams.n_dense_layers; layer < w->plan->config.hparams.n_layers; layer++)
        AEG_TRY(write_layer(w, layer, err));
    return close_file(w, err);
}

/* --- tensors as they are --------------------------------------------------------------------------------------------------- */

aegis_status aeg_write_raw(aeg_pack_writer *w, aeg_store_file file, aeg_plan_raw *raw, aegis_error *err)
{
    if (raw->n == 0)
        return AEGIS_OK;
    AEG_TRY(open_file(w, file, err));
    for (uint32_t i = 0; i < raw->n; i++) {
        aeg_plan_raw_tensor *v = &raw->tensors[i];
        AEG_TRY(aeg_sink_pad_to(w->sink, v->offset, err));
        aeg_sink_hash_reset(w->sink);
        for (uint64_t done = 0; done < v->tensor->bytes;) {
            const size_t n = (size_t)AEG_MIN(v->tensor->bytes - done, (uint64_t)(w->window_bytes - 2 * AEG_RAW_ALIGN));
            const uint8_t *p;
            w->window_used = 0;
            AEG_TRY(view(w, v->tensor, done, n, &p, err));
            AEG_TRY(aeg_sink_append(w->sink, p, n, err));
            AEG_TRY(advance(w, n, err));
            done += n;
        }
        v->xxh3 = aeg_sink_hash(w->sink);
    }
    return close_file(w, err);
}
