/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "format/hparams_io.h"

static void add_u32s(aeg_text *t, const uint32_t *values, uint32_t n)
{
    aeg_text_add(t, "[");
    for (uint32_t i = 0; i < n; i++)
        aeg_text_add(t, "%s%u", i == 0 ? "" : ", ", values[i]);
    aeg_text_add(t, "]");
}

static void add_float(aeg_text *t, const char *name, double value)
{
    aeg_text_add(t, ",\n  \"%s\": ", name);
    aeg_text_number(t, value);
}

/* 1e-06 rather than the 17 digits of the f32 nearest to it. */
static double shortest(float value)
{
    char number[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, (double)value);
        if (strtof(number, NULL) == value)
            break;
    }
    return strtod(number, NULL);
}

/* What the family uses, that is where it differs from a model that does not. */
static void add_optional(aeg_text *t, const aeg_hparams *h)
{
    aeg_hparams unused;
    aeg_hparams_init(&unused);
    for (size_t i = 0; i < aeg_n_hparams_optional; i++) {
        const aeg_hparams_field *f = &aeg_hparams_optional[i];
        const char *at = (const char *)h + f->offset;
        if (aeg_hparams_same(f, h, &unused))
            continue;
        switch (f->kind) {
        case AEG_FIELD_U32: aeg_text_add(t, ",\n  \"%s\": %u", f->name, *(const uint32_t *)(const void *)at); break;
        case AEG_FIELD_F32: add_float(t, f->name, shortest(*(const float *)(const void *)at)); break;
        case AEG_FIELD_BOOL: aeg_text_add(t, ",\n  \"%s\": %s", f->name, *(const bool *)at ? "true" : "false"); break;
        case AEG_FIELD_CHOICE: aeg_text_add(t, ",\n  \"%s\": \"%s\"", f->name, f->choices[*(const uint8_t *)at]); break;
        }
    }
}

void aeg_manifest_hparams(aeg_text *t, const aeg_hparams *h)
{
    const struct {
        const char *name;
        uint32_t value;
    } numbers[] = {
        { "vocab_size", h->vocab_size },   { "hidden_size", h->hidden_size }, { "n_layers", h->n_layers },
        { "max_n_ctx", h->max_n_ctx },     { "n_heads", h->n_heads },         { "n_kv_heads", h->n_kv_heads },
        { "head_dim", h->head_dim },       { "rope_dim", h->rope_dim },       { "gdn_k_heads", h->gdn_k_heads },
        { "gdn_v_heads", h->gdn_v_heads }, { "gdn_k_dim", h->gdn_k_dim },     { "gdn_v_dim", h->gdn_v_dim },
        { "conv_kernel", h->conv_kernel }, { "n_experts", h->n_experts },     { "top_k", h->top_k },
        { "expert_width", h->expert_width }, { "shared_width", h->shared_width },
    };
    aeg_text_add(t, "\"hparams\": {\n  \"family\": \"%s\"", h->family);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        aeg_text_add(t, ",\n  \"%s\": %u", numbers[i].name, numbers[i].value);
    aeg_text_add(t, ",\n  \"mixers\": \"");
    for (uint32_t i = 0; i < h->n_layers; i++)
        aeg_text_add(t, "%c", aeg_mixer_letters[h->mixer[i]]);
    aeg_text_add(t, "\",\n  \"attn_gate\": %s,\n  \"gdn_v_tiled\": %s,\n  \"norm_top_k\": %s",
                 h->attn_gate ? "true" : "false", h->gdn_v_tiled ? "true" : "false", h->norm_top_k ? "true" : "false");
    aeg_text_add(t, ",\n  \"mrope_section\": ");
    add_u32s(t, h->mrope_section, 3);
    aeg_text_add(t, ",\n  \"bos_id\": %d,\n  \"eos\": ", h->bos_id);
    add_u32s(t, h->eos, h->n_eos);
    add_float(t, "rms_eps", shortest(h->rms_eps));
    add_float(t, "rope_theta", h->rope_theta);
    add_float(t, "temperature", h->temperature);
    add_float(t, "top_p", h->top_p);
    add_float(t, "min_p", h->min_p);
    aeg_text_add(t, ",\n  \"top_k_sampling\": %d", h->top_k_sampling);
    add_float(t, "repeat_penalty", h->repeat_penalty);
    add_float(t, "presence_penalty", h->presence_penalty);
    add_optional(t, h);
    aeg_text_add(t, "\n }");
}

static void add_dense(aeg_text *t, const aeg_plan *p)
{
    char type[AEG_TYPE_TEXT];
    aeg_text_add(t, ",\n \"dense\": {\n  \"bytes\": %" PRIu64 ",\n  \"tensors\": [", p->file_bytes[AEG_FILE_DENSE]);
    for (uint32_t i = 0; i < p->n_tensors; i++) {
        const aeg_plan_tensor *x = &p->tensors[i];
        aeg_text_add(t, "%s\n   {\"name\": \"%s\", \"type\": \"%s\", \"rows\": %u, \"cols\": %u, \"offset\": %" PRIu64
                     ", \"bytes\": %" PRIu64 ", \"xxh3\": \"%016" PRIx64 "\"}", i == 0 ? "" : ",", x->entry.name,
                     x->entry.vector ? "vector" : aeg_weight_type_text(type, x->out), x->entry.n_rows, x->entry.n_cols,
                     x->offset, x->bytes, x->xxh3);
    }
    aeg_text_add(t, "\n  ]\n }");
}

static void add_embed(aeg_text *t, const aeg_plan *p)
{
    char type[AEG_TYPE_TEXT];
    aeg_text_add(t, ",\n \"embed\": {\"bytes\": %" PRIu64 ", \"type\": \"%s\", \"rows\": %u, \"cols\": %u, \"row_bytes\": %"
                 PRIu64 ", \"xxh3\": \"%016" PRIx64 "\"}", p->file_bytes[AEG_FILE_EMBED],
                 aeg_weight_type_text(type, p->embed_out), p->embed.n_rows, p->embed.n_cols, p->embed_row_bytes,
                 p->embed_xxh3);
}

static void add_experts(aeg_text *t, const aeg_plan *p)
{
    char gate_up[AEG_TYPE_TEXT], down[AEG_TYPE_TEXT];
    aeg_text_add(t, ",\n \"experts\": {\n  \"bytes\": %" PRIu64 ",\n  \"record_bytes\": %" PRIu64
                 ",\n  \"down_offset\": %" PRIu64 ",\n  \"layers\": [", p->file_bytes[AEG_FILE_EXPERTS], p->record_bytes,
                 p->down_offset);
    const uint32_t first = p->config.hparams.n_dense_layers;
    for (uint32_t i = first; i < p->config.hparams.n_layers; i++) {
        const aeg_plan_layer *l = &p->layers[i];
        aeg_text_add(t, "%s\n   {\"gate_up\": \"%s\", \"gate_up_bytes\": %" PRIu64 ", \"down\": \"%s\", \"down_bytes\": %"
                     PRIu64 ", \"xxh3\": \"%016" PRIx64 "\"}", i == first ? "" : ",",
                     aeg_weight_type_text(gate_up, l->gate_up), l->gate_up_bytes, aeg_weight_type_text(down, l->down),
                     l->down_bytes, l->xxh3);
    }
    aeg_text_add(t, "\n  ]\n }");
}

static void add_raw(aeg_text *t, const char *section, uint64_t bytes, const aeg_plan_raw *raw)
{
    if (raw->n == 0)
        return;
    aeg_text_add(t, ",\n \"%s\": {\n  \"bytes\": %" PRIu64 ",\n  \"tensors\": [", section, bytes);
    for (uint32_t i = 0; i < raw->n; i++) {
        const aeg_plan_raw_tensor *v = &raw->tensors[i];
        aeg_text_add(t, "%s\n   {\"name\": ", i == 0 ? "" : ",");
        aeg_text_string(t, v->name);
        aeg_text_add(t, ", \"dtype\": \"%s\", \"shape\": [", aeg_dtype_name(v->tensor->dtype));
        for (uint32_t d = 0; d < v->tensor->rank; d++)
            aeg_text_add(t, "%s%" PRIu64, d == 0 ? "" : ", ", v->tensor->dims[d]);
        aeg_text_add(t, "], \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"xxh3\": \"%016" PRIx64 "\"}", v->offset,
                     v->tensor->bytes, v->xxh3);
    }
    aeg_text_add(t, "\n  ]\n }");
}

void aeg_manifest_write(aeg_text *t, const aeg_plan *p, const aeg_pack_file *files, uint32_t n_files, bool outline)
{
    aeg_text_add(t, "{\n \"format\": \"aegis-store\",\n \"version\": %d,\n %s", AEG_STORE_VERSION, outline ? "\"outline\": true,\n " : "");
    aeg_manifest_hparams(t, &p->config.hparams);
    add_dense(t, p);
    add_embed(t, p);
    add_experts(t, p);
    add_raw(t, "vision", p->file_bytes[AEG_FILE_VISION], &p->vision);
    add_raw(t, "mtp", p->file_bytes[AEG_FILE_MTP], &p->mtp);
    aeg_text_add(t, ",\n \"files\": [");
    for (uint32_t i = 0; i < n_files; i++)
        aeg_text_add(t, "%s\n  {\"name\": \"%s\", \"bytes\": %" PRIu64 ", \"xxh3\": \"%016" PRIx64 "\"}", i == 0 ? "" : ",",
                     files[i].name, files[i].bytes, files[i].xxh3);
    aeg_text_add(t, "\n ],\n ");
    /* everything before this member is what it covers */
    const uint64_t hash = t->failed ? 0 : XXH3_64bits(t->data, t->n);
    aeg_text_add(t, "\"xxh3\": \"%016" PRIx64 "\"\n}\n", hash);
}
