/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying and describing stores and sources. */
#include <inttypes.h>
#include <string.h>

#include "aegis/pack.h"
#include "base/json.h"
#include "pack/manifest.h"
#include "pack/plan.h"
#include "pack/text.h"

static aeg_memory show_memory = { .name = "show" };

aegis_status aegis_store_verify(const char *path, void (*progress)(void *ctx, uint64_t done, uint64_t total), void *ctx,
                                aegis_error *err)
{
    aeg_memory memory = { .name = "verify" };
    aeg_store *store = NULL;
    AEG_TRY(aeg_store_open(&store, path, &memory, err));
    const aegis_status status = aeg_store_verify(store, progress, ctx, err);
    aeg_store_close(store);
    return status;
}

static void add_tensor(aeg_text *t, bool first, const char *name, bool vector, aeg_weight_type type, uint32_t rows,
                       uint32_t cols, uint64_t bytes)
{
    char text[AEG_TYPE_TEXT];
    aeg_text_add(t, "%s\n  {\"name\": \"%s\", \"type\": \"%s\", \"rows\": %u, \"cols\": %u, \"bytes\": %" PRIu64 "}",
                 first ? "" : ",", name, vector ? "vector" : aeg_weight_type_text(text, type), rows, cols, bytes);
}

static void add_expert_layer(aeg_text *t, bool first, aeg_weight_type gate_up, aeg_weight_type down, uint64_t bytes)
{
    char a[AEG_TYPE_TEXT], b[AEG_TYPE_TEXT];
    aeg_text_add(t, "%s\n  {\"gate_up\": \"%s\", \"down\": \"%s\", \"expert_bytes\": %" PRIu64 "}", first ? "" : ",",
                 aeg_weight_type_text(a, gate_up), aeg_weight_type_text(b, down), bytes);
}

static void show_store(aeg_text *t, const aeg_store *s)
{
    char type[AEG_TYPE_TEXT];
    aeg_text_add(t, "{\n \"kind\": \"store\",\n \"version\": %d,\n \"model_key\": \"%016" PRIx64 "\",\n ",
                 AEG_STORE_VERSION, s->model_key);
    aeg_manifest_hparams(t, &s->hparams);
    aeg_text_add(t, ",\n \"tokenizer\": %s,\n \"chat_template\": %s,\n \"files\": {", s->has_tokenizer ? "true" : "false",
                 s->has_template ? "true" : "false");
    for (int f = 0; f < AEG_N_FILES; f++)
        aeg_text_add(t, "%s\"%s\": %" PRIu64, f == 0 ? "" : ", ", aeg_store_file_name((aeg_store_file)f), s->file_bytes[f]);
    aeg_text_add(t, "},\n \"embed\": {\"type\": \"%s\", \"rows\": %u, \"cols\": %u, \"row_bytes\": %" PRIu64 "},\n",
                 aeg_weight_type_text(type, s->embed.type), s->embed.n_rows, s->embed.n_cols, s->embed.row_bytes);
    aeg_text_add(t, " \"record_bytes\": %" PRIu64 ",\n \"experts\": [", s->experts.record_bytes);
    for (uint32_t i = s->hparams.n_dense_layers; i < s->hparams.n_layers; i++)
        add_expert_layer(t, i == s->hparams.n_dense_layers, s->experts.gate_up[i], s->experts.down[i],
                         s->experts.gate_up_bytes[i] + s->experts.down_bytes[i]);
    aeg_text_add(t, "\n ],\n \"tensors\": [");
    for (uint32_t i = 0; i < s->n_tensors; i++)
        add_tensor(t, i == 0, s->tensors[i].name, s->tensors[i].vector, s->tensors[i].type, s->tensors[i].n_rows,
                   s->tensors[i].n_cols, s->tensors[i].bytes);
    aeg_text_add(t, "\n ]\n}\n");
}

/* A source as it is (keep): its own types and bytes. */
static void show_source(aeg_text *t, const aeg_plan *p)
{
    char type[AEG_TYPE_TEXT];
    const aeg_hparams *h = &p->config.hparams;
    aeg_text_add(t, "{\n \"kind\": \"source\",\n \"format\": \"%s\",\n \"quantised\": %s,\n ",
                 p->names.gguf ? "gguf" : p->names.raw ? "hf" : "mlx", p->names.quantised ? "true" : "false");
    aeg_manifest_hparams(t, h);
    aeg_text_add(t, ",\n \"source_bytes\": %" PRIu64 ",\n \"vision_tensors\": %u,\n \"mtp_tensors\": %u,\n", p->source_bytes,
                 p->vision.n, p->mtp.n);
    aeg_text_add(t, " \"embed\": {\"type\": \"%s\", \"rows\": %u, \"cols\": %u},\n \"experts\": [",
                 aeg_weight_type_text(type, p->embed.type), p->embed.n_rows, p->embed.n_cols);
    for (uint32_t i = h->n_dense_layers; i < h->n_layers; i++) {
        const aeg_plan_layer *l = &p->layers[i];
        add_expert_layer(t, i == h->n_dense_layers, l->gate_up_in, l->down_in,
                         2 * (uint64_t)h->expert_width * aeg_plan_row_bytes(l->gate_up_in, h->hidden_size) +
                             h->hidden_size * (uint64_t)aeg_plan_row_bytes(l->down_in, h->expert_width));
    }
    aeg_text_add(t, "\n ],\n \"tensors\": [");
    for (uint32_t i = 0; i < p->n_tensors; i++) {
        const aeg_plan_tensor *x = &p->tensors[i];
        const uint64_t bytes = x->entry.vector
                                   ? x->matrix.weight->bytes
                                   : x->entry.n_rows * (uint64_t)aeg_plan_row_bytes(x->matrix.type, x->entry.n_cols);
        add_tensor(t, i == 0, x->entry.name, x->entry.vector, x->matrix.type, x->entry.n_rows, x->entry.n_cols, bytes);
    }
    aeg_text_add(t, "\n ]\n}\n");
}

aegis_status aegis_show_json(const char *path, char **json, aegis_error *err)
{
    aeg_text text = { .memory = &show_memory };
    *json = NULL;
    if (aeg_store_probe(path)) {
        aeg_store *store = NULL;
        AEG_TRY(aeg_store_open(&store, path, &show_memory, err));
        show_store(&text, store);
        aeg_store_close(store);
    } else {
        aeg_plan plan;
        AEG_TRY(aeg_plan_open(&plan, path, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP, &show_memory, err));
        show_source(&text, &plan);
        aeg_plan_close(&plan);
    }
    if (text.failed) {
        aeg_text_free(&text);
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory to describe %s", path);
    }
    *json = text.data;
    return AEGIS_OK;
}

void aegis_free_text(char *text) { aeg_free(&show_memory, text); }
