/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/file.h"
#include "format/config_gguf.h"
#include "format/safetensors.h"
#include "kernels/planes.h"

enum { VIEWS = 3 /* weight, scales, biases */, DEFAULT_BITS = 4, DEFAULT_GROUP = 64, NARROW_GROUP = 32 /* of rows that are no multiple of it */, ROUTER_BITS = 8 };

size_t aeg_plan_row_bytes(aeg_weight_type type, uint32_t n_cols)
{
    return aeg_rows_bytes(type, n_cols);
}

uint64_t aeg_plan_source_bytes(const aeg_source_matrix *m)
{
    if (!m->transposed)
        return m->n_rows * (uint64_t)aeg_plan_row_bytes(m->type, m->n_cols);
    return (uint64_t)m->order.n_groups * m->n_cols * aeg_plan_row_bytes(m->type, m->n_rows / m->order.n_groups);
}

/* --- types ------------------------------------------------------------------------------------------------- */

/* Routers and shared gates decide which experts run and how much: like MLX we give them 8 bits. So we do K_b and V_b of latent
 * attention, which every score and every value goes through, and which are small. */
static bool is_sensitive(aeg_part part)
{
    return part == AEG_PART_ROUTER || part == AEG_PART_SHARED_GATE || part == AEG_PART_MLA_K_B || part == AEG_PART_MLA_V_B;
}

static aeg_weight_type as_f32(aeg_weight_type in)
{
    return in.kind == AEG_W_F8 ? (aeg_weight_type){ .kind = AEG_W_F32 } : in;
}

/* F8 has one scale for 128 columns: rows of another width become f32, which has its values. */
static aeg_weight_type kept_type(aeg_weight_type in, uint32_t n_cols)
{
    return n_cols % AEG_F8_COLS == 0 ? in : as_f32(in);
}

/* Left as it is whatever bits are named: what small errors change most, and what decides in a file whose maker quantised other
 * matrices and not this one. */
static bool stays(const aeg_plan *p, aeg_part part, aeg_weight_type in)
{
    const bool decides = part == AEG_PART_ROUTER || part == AEG_PART_SHARED_GATE;
    return aeg_part_delicate(part) || (p->names.quantised && decides && in.kind <= AEG_W_BF16);
}

/* Block types are changed only where that makes rows smaller: more room for numbers rounded already would cost both. */
static aeg_weight_type target_type(const aeg_plan *p, aeg_weight_type in, uint32_t n_cols, int requested, bool router)
{
    const bool affine = in.kind == AEG_W_AFFINE, codes = aeg_weight_reads_codes(in);
    if (requested == AEGIS_BITS_KEEP || (requested == AEGIS_BITS_DEFAULT && (codes || p->names.quantised)))
        return kept_type(in, n_cols);
    const int bits = router ? ROUTER_BITS : requested == AEGIS_BITS_DEFAULT ? DEFAULT_BITS : requested;
    if (affine && in.bits == bits)
        return in;
    const aeg_weight_type out = { .kind = AEG_W_AFFINE, .bits = (uint8_t)bits,
                                  .scale_kind = affine ? in.scale_kind : in.kind > AEG_W_BF16 ? AEG_W_F16 : in.kind,
                                  .group = affine ? in.group : n_cols % DEFAULT_GROUP == 0 ? DEFAULT_GROUP : NARROW_GROUP };
    const bool blocks = codes && !affine;
    return blocks && aeg_plan_row_bytes(out, n_cols) >= aeg_plan_row_bytes(in, n_cols) ? in : out;
}

static aegis_status check_width(const aeg_source_matrix *m, aeg_weight_type out, aegis_error *err)
{
    const uint32_t step = aeg_weight_col_step(out);
    char text[AEG_TYPE_TEXT];
    if (m->n_cols % step == 0)
        return AEGIS_OK;
    return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s': rows of %u values cannot be stored as %s, expected a multiple of %u",
                    m->weight->name, m->n_cols, aeg_weight_type_text(text, out), step);
}

/* A step reads whole row blocks: room for its views, and for the block that comes out. */
static void need(aeg_plan *p, aeg_weight_type in, aeg_weight_type out, uint32_t n_cols)
{
    /* twice the rows: gathered ones are there as read and as gathered */
    const size_t window = VIEWS * aeg_raw_room(0) + 2 * AEG_ROWS * aeg_plan_row_bytes(in, n_cols) + 2 * VIEWS * AEG_RAW_ALIGN;
    p->min_window = AEG_MAX(p->min_window, window);
    p->max_block = AEG_MAX(p->max_block, aeg_block_bytes(out, n_cols));
}

/* All scales of an F8 matrix may be read at once, beside what else is in the window. */
static void need_scales(aeg_plan *p, const aeg_source_matrix *m)
{
    if (m->type.kind == AEG_W_F8)
        p->scale_room = AEG_MAX(p->scale_room, aeg_raw_room((size_t)m->scales->bytes));
}

/* A transposed matrix is made group by group, in plain numbers, before it is packed. */
static aegis_status need_transposed(aeg_plan *p, aeg_plan_tensor *t, aegis_error *err)
{
    const aeg_source_matrix *m = &t->matrix;
    const uint32_t run = m->order.segment[0].run, rows = m->n_rows / m->order.n_groups;
    const size_t source = run * aeg_plan_row_bytes(m->type, rows), made = rows * aeg_plan_row_bytes(aeg_transposed_type(m->type), run);
    if (rows % AEG_ROWS != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s': %u columns, expected a multiple of %d", m->weight->name, rows, AEG_ROWS);
    p->min_window = AEG_MAX(p->min_window, VIEWS * aeg_raw_room(0) + 2 * source + made + 3 * VIEWS * AEG_RAW_ALIGN);
    return AEGIS_OK;
}

/* --- dense ------------------------------------------------------------------------------------------------- */

static aegis_status plan_tensor(aeg_plan *p, aeg_plan_tensor *t, int dense_bits, aegis_error *err)
{
    const aeg_layout_entry *e = &t->entry;
    if (e->vector) {
        AEG_TRY(aeg_names_vector(&p->names, e, &t->matrix.weight, &t->change, err));
        t->bytes = 4 * (uint64_t)e->n_cols;
        p->source_bytes += t->matrix.weight->bytes;
        p->min_window = AEG_MAX(p->min_window, aeg_raw_room((size_t)t->matrix.weight->bytes));
        return AEGIS_OK;
    }
    AEG_TRY(aeg_names_matrix(&p->names, e, &t->matrix, err));
    if (t->matrix.transposed)
        AEG_TRY(need_transposed(p, t, err));
    const aeg_weight_type in = t->matrix.transposed ? aeg_transposed_type(t->matrix.type) : t->matrix.type;
    t->out = target_type(p, in, e->n_cols, dense_bits, is_sensitive(e->part));
    if (stays(p, e->part, in))
        t->out = kept_type(in, e->n_cols);
    AEG_TRY(check_width(&t->matrix, t->out, err));
    t->bytes = aeg_matrix_bytes(t->out, e->n_rows, e->n_cols);
    need(p, in, t->out, e->n_cols);
    need_scales(p, &t->matrix);
    p->source_bytes += aeg_plan_source_bytes(&t->matrix);
    return AEGIS_OK;
}

static aegis_status plan_dense(aeg_plan *p, int dense_bits, aegis_error *err)
{
    const aeg_hparams *h = &p->config.hparams;
    uint64_t end = 0;
    p->n_tensors = aeg_layout_count(h);
    p->tensors = aeg_calloc(p->memory, p->n_tensors, sizeof *p->tensors);
    if (p->tensors == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a table of %u tensors", p->n_tensors);
    for (uint32_t i = 0; i < p->n_tensors; i++) {
        aeg_plan_tensor *t = &p->tensors[i];
        aeg_layout_at(&t->entry, h, i);
        AEG_TRY(plan_tensor(p, t, dense_bits, err));
        t->offset = aeg_align_up(end, 64);
        end = t->offset + t->bytes;
    }
    p->file_bytes[AEG_FILE_DENSE] = aeg_align_up(end, AEG_STORE_ALIGN);
    return AEGIS_OK;
}

static aegis_status plan_embed(aeg_plan *p, int dense_bits, aegis_error *err)
{
    AEG_TRY(aeg_names_embed(&p->names, &p->embed, err));
    const aeg_source_matrix *m = &p->embed;
    p->embed_out = as_f32(target_type(p, m->type, m->n_cols, dense_bits, false));
    /* plain rows are read as they are: any width will do */
    if (aeg_weight_reads_codes(p->embed_out))
        AEG_TRY(check_width(m, p->embed_out, err));
    p->embed_row_bytes = aeg_plan_row_bytes(p->embed_out, m->n_cols);
    p->file_bytes[AEG_FILE_EMBED] = aeg_align_up(p->embed_row_bytes * m->n_rows, AEG_STORE_ALIGN);
    p->source_bytes += m->n_rows * (uint64_t)aeg_plan_row_bytes(m->type, m->n_cols);
    need(p, m->type, p->embed_out, m->n_cols);
    need_scales(p, m);
    p->max_block = AEG_MAX(p->max_block, (size_t)p->embed_row_bytes);
    return AEGIS_OK;
}

/* --- experts ------------------------------------------------------------------------------------------------- */

/* All experts of a layer must look like the first: the store has one type per layer and part. */
static aegis_status plan_layer(aeg_plan *p, uint32_t layer, int expert_bits, aegis_error *err)
{
    const aeg_hparams *h = &p->config.hparams;
    aeg_plan_layer *l = &p->layers[layer];
    size_t expert_bytes = 0;
    for (uint32_t e = 0; e < h->n_experts && (e == 0 || !l->stacked); e++)
        for (int part = 0; part < AEG_N_EXPERT_PARTS; part++) {
            aeg_source_matrix m;
            bool stacked = false;
            AEG_TRY(aeg_names_expert(&p->names, layer, e, (aeg_expert_part)part, &m, &stacked, NULL, err));
            aeg_weight_type *in = part == AEG_EXPERT_DOWN ? &l->down_in : &l->gate_up_in;
            if (e == 0 && part != AEG_EXPERT_UP)
                *in = m.type;
            l->stacked = part == 0 ? stacked : l->stacked && stacked;
            if (!aeg_weight_type_equal(*in, m.type))
                return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' has another type than the layer's other experts or "
                                "their gate", m.weight->name);
            aeg_weight_type *out = part == AEG_EXPERT_DOWN ? &l->down : &l->gate_up;
            *out = target_type(p, m.type, m.n_cols, expert_bits, false);
            AEG_TRY(check_width(&m, *out, err));
            need(p, m.type, *out, m.n_cols);
            need_scales(p, &m);
            if (e == 0)
                expert_bytes += m.n_rows * aeg_plan_row_bytes(m.type, m.n_cols);
        }
    p->source_bytes += (uint64_t)expert_bytes * h->n_experts;
    /* one expert is read at a time at least: up to nine views */
    p->min_window = AEG_MAX(p->min_window, expert_bytes + AEG_N_EXPERT_PARTS * VIEWS * 2 * AEG_RAW_ALIGN);
    l->gate_up_bytes = 2 * aeg_matrix_bytes(l->gate_up, h->expert_width, h->hidden_size);
    l->down_bytes = aeg_matrix_bytes(l->down, h->hidden_size, h->expert_width);
    return AEGIS_OK;
}

static aegis_status plan_experts(aeg_plan *p, int expert_bits, aegis_error *err)
{
    const aeg_hparams *h = &p->config.hparams;
    uint64_t first = 0, second = 0, bytes = 0;
    p->layers = aeg_calloc(p->memory, h->n_layers, sizeof *p->layers);
    if (p->layers == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a table of %u layers", h->n_layers);
    for (uint32_t layer = h->n_dense_layers; layer < h->n_layers; layer++) {
        AEG_TRY(plan_layer(p, layer, expert_bits, err));
        first = AEG_MAX(first, p->layers[layer].gate_up_bytes);
        second = AEG_MAX(second, p->layers[layer].down_bytes);
    }
    p->down_offset = aeg_align_up(first, AEG_STORE_ALIGN);
    p->record_bytes = p->down_offset + aeg_align_up(second, AEG_STORE_ALIGN);
    if (!aeg_mul(p->record_bytes, (uint64_t)aeg_moe_layers(h) * h->n_experts, &bytes) || bytes > INT64_MAX)
        return aeg_fail(err, AEGIS_E_MODEL, "the experts need more bytes than a file can have");
    p->file_bytes[AEG_FILE_EXPERTS] = bytes;
    return AEGIS_OK;
}

/* --- files of tensors as they are --------------------------------------------------------------------------------- */

typedef const char *(*member_name)(const aeg_names *names, const aeg_tensor *t); /* NULL: not one of them */

static aegis_status plan_raw(aeg_plan *p, member_name name_of, aeg_store_file file, aeg_plan_raw *raw, aegis_error *err)
{
    uint64_t end = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->st->n_tensors; i++)
        n += name_of(&p->names, &p->st->tensors[i]) != NULL;
    if (n == 0)
        return AEGIS_OK;
    raw->tensors = aeg_calloc(p->memory, n, sizeof *raw->tensors);
    if (raw->tensors == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a table of %u tensors for %s", n, aeg_store_file_name(file));
    /* the source is sorted by name, so is this */
    for (uint32_t i = 0; i < p->st->n_tensors; i++) {
        const aeg_tensor *t = &p->st->tensors[i];
        const char *name = name_of(&p->names, t);
        if (name == NULL)
            continue;
        const uint64_t offset = aeg_align_up(end, 64);
        raw->tensors[raw->n++] = (aeg_plan_raw_tensor){ .tensor = t, .name = name, .offset = offset };
        end = offset + t->bytes;
        p->source_bytes += t->bytes;
    }
    p->file_bytes[file] = aeg_align_up(end, AEG_STORE_ALIGN);
    return AEGIS_OK;
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

static aegis_status open_source(aeg_plan *p, const char *src, aegis_error *err)
{
    if (aeg_is_directory(src)) {
        p->st = &p->safetensors;
        AEG_TRY(aeg_config_load(&p->config, src, p->memory, err));
        return aeg_st_open(&p->safetensors, src, p->memory, err);
    }
    p->st = &p->gguf.source;
    AEG_TRY(aeg_gguf_open(&p->gguf, src, p->memory, err));
    return aeg_config_gguf(&p->config, &p->gguf, p->memory, err);
}

static aegis_status fill(aeg_plan *p, const char *src, int expert_bits, int dense_bits, aegis_error *err)
{
    AEG_TRY(open_source(p, src, err));
    AEG_TRY(aeg_names_init(&p->names, p->st, aeg_plan_is_gguf(p), &p->config, err));
    AEG_TRY(aeg_names_check_unused(&p->names, err));
    AEG_TRY(plan_dense(p, dense_bits, err));
    AEG_TRY(plan_embed(p, dense_bits, err));
    AEG_TRY(plan_experts(p, expert_bits, err));
    p->min_window += p->scale_room;
    AEG_TRY(plan_raw(p, aeg_names_vision, AEG_FILE_VISION, &p->vision, err));
    return plan_raw(p, aeg_names_mtp, AEG_FILE_MTP, &p->mtp, err);
}

/* `out` keeps its address: names point into it. */
aegis_status aeg_plan_open(aeg_plan *out, const char *src, int expert_bits, int dense_bits, aeg_memory *memory,
                           aegis_error *err)
{
    struct stat st;
    *out = (aeg_plan){ .memory = memory };
    if (stat(src, &st) != 0)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "model %s", src);
    if (!aeg_is_directory(src) && !aeg_gguf_probe(src))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: neither a folder with config.json and model*.safetensors nor a GGUF file", src);
    const aegis_status status = fill(out, src, expert_bits, dense_bits, err);
    if (status == AEGIS_OK)
        return status;
    aeg_plan_close(out);
    return aeg_wrap_path(err, status, "model ", src);
}

void aeg_plan_close(aeg_plan *plan)
{
    aeg_free(plan->memory, plan->mtp.tensors);
    aeg_free(plan->memory, plan->vision.tensors);
    aeg_free(plan->memory, plan->layers);
    aeg_free(plan->memory, plan->tensors);
    aeg_source_close(&plan->safetensors);
    aeg_gguf_close(&plan->gguf);
    aeg_config_free(&plan->config);
    *plan = (aeg_plan){ 0 };
}

bool aeg_plan_requantises(const aeg_plan *p)
{
    if (!aeg_weight_type_equal(p->embed.type, p->embed_out))
        return true;
    for (uint32_t i = 0; i < p->n_tensors; i++)
        if (!p->tensors[i].entry.vector && !aeg_weight_type_equal(p->tensors[i].matrix.type, p->tensors[i].out))
            return true;
    for (uint32_t i = p->config.hparams.n_dense_layers; i < p->config.hparams.n_layers; i++)
        if (!aeg_weight_type_equal(p->layers[i].gate_up_in, p->layers[i].gate_up) ||
            !aeg_weight_type_equal(p->layers[i].down_in, p->layers[i].down))
            return true;
    return false;
}
