/* SPDX-License-Identifier: Apache-2.0 */
#include "model/weights.h"

#include <stdio.h>

#include "kernels/attention.h"
#include "kernels/hyper.h"

typedef struct {
    const aeg_store *store;
    const uint8_t *dense;
    uint32_t layer;
    aegis_error *err;
} binder;

static aegis_status find(const binder *b, const char *name, bool vector, uint32_t rows, uint32_t cols,
                         const aeg_store_tensor **out)
{
    const aeg_store_tensor *t = aeg_store_find(b->store, name);
    if (t == NULL)
        return aeg_fail(b->err, AEGIS_E_MODEL, "%s: tensor '%s' is missing", b->store->path, name);
    if (t->vector != vector || t->n_rows != rows || t->n_cols != cols)
        return aeg_fail(b->err, AEGIS_E_MODEL, "%s: tensor '%s' is a %s of %u x %u, expected a %s of %u x %u",
                        b->store->path, name, t->vector ? "vector" : "matrix", t->n_rows, t->n_cols,
                        vector ? "vector" : "matrix", rows, cols);
    *out = t;
    return AEGIS_OK;
}

static void full_name(const binder *b, const char *name, char *out)
{
    snprintf(out, AEG_TENSOR_NAME_MAX, "layers.%u.%s", b->layer, name);
}

static aegis_status matrix_named(const binder *b, const char *name, uint32_t rows, uint32_t cols, aeg_weights *out)
{
    const aeg_store_tensor *t = NULL;
    AEG_TRY(find(b, name, false, rows, cols, &t));
    *out = (aeg_weights){ .type = t->type, .n_rows = rows, .n_cols = cols,
                          .block_stride = aeg_block_bytes(t->type, cols), .data = b->dense + t->offset };
    return AEGIS_OK;
}

static aegis_status matrix(const binder *b, const char *name, uint32_t rows, uint32_t cols, aeg_weights *out)
{
    char full[AEG_TENSOR_NAME_MAX];
    full_name(b, name, full);
    return matrix_named(b, full, rows, cols, out);
}

static aegis_status vector(const binder *b, const char *name, uint32_t n, const float **out)
{
    char full[AEG_TENSOR_NAME_MAX];
    const aeg_store_tensor *t = NULL;
    full_name(b, name, full);
    AEG_TRY(find(b, full, true, 1, n, &t));
    *out = (const float *)(const void *)(b->dense + t->offset);
    return AEGIS_OK;
}

static aegis_status bind_gdn(const binder *b, aeg_gdn_weights *g)
{
    const aeg_hparams *hp = &b->store->hparams;
    const uint32_t key = hp->gdn_k_heads * hp->gdn_k_dim, value = hp->gdn_v_heads * hp->gdn_v_dim;
    const uint32_t channels = 2 * key + value;
    AEG_TRY(matrix(b, "gdn.qkv", channels, hp->hidden_size, &g->qkv));
    AEG_TRY(matrix(b, "gdn.z", value, hp->hidden_size, &g->z));
    AEG_TRY(matrix(b, "gdn.b", hp->gdn_v_heads, hp->hidden_size, &g->b));
    AEG_TRY(matrix(b, "gdn.a", hp->gdn_v_heads, hp->hidden_size, &g->a));
    AEG_TRY(matrix(b, "gdn.out", hp->hidden_size, value, &g->out));
    AEG_TRY(vector(b, "gdn.conv", 4 * channels, &g->conv));
    AEG_TRY(vector(b, "gdn.a_log", hp->gdn_v_heads, &g->a_log));
    AEG_TRY(vector(b, "gdn.dt_bias", hp->gdn_v_heads, &g->dt_bias));
    return vector(b, "gdn.norm", hp->gdn_v_dim, &g->norm);
}

static aegis_status bind_attention(const binder *b, aeg_attn_weights *a)
{
    const aeg_hparams *hp = &b->store->hparams;
    const uint32_t q = hp->n_heads * hp->head_dim, kv = hp->n_kv_heads * hp->head_dim;
    AEG_TRY(matrix(b, "attn.q", hp->attn_gate ? 2 * q : q, hp->hidden_size, &a->q));
    AEG_TRY(matrix(b, "attn.k", kv, hp->hidden_size, &a->k));
    AEG_TRY(matrix(b, "attn.v", kv, hp->hidden_size, &a->v));
    AEG_TRY(matrix(b, "attn.o", hp->hidden_size, q, &a->o));
    if (hp->qk_norm == AEG_QK_NORM_NONE)
        return AEGIS_OK;
    const bool full = hp->qk_norm == AEG_QK_NORM_FULL;
    AEG_TRY(vector(b, "attn.q_norm", full ? q : hp->head_dim, &a->q_norm));
    return vector(b, "attn.k_norm", full ? kv : hp->head_dim, &a->k_norm);
}

/* Products go head by head and norms by sixteens, so everything of a head is whole row blocks. */
static aegis_status check_head_dims(const binder *b, const aeg_hparams *hp)
{
    const struct { const char *name; uint32_t value; } dims[] = {
        { "q_lora", hp->q_lora }, { "kv_lora", hp->kv_lora }, { "qk_nope + qk_rope", hp->qk_nope + hp->qk_rope },
        { "qk_rope", hp->qk_rope }, { "v_dim", hp->v_dim },
    };
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        if (dims[i].value % AEG_ROWS != 0)
            return aeg_fail(b->err, AEGIS_E_MODEL, "%s: %s is %u, expected a multiple of %d", b->store->path, dims[i].name,
                            dims[i].value, AEG_ROWS);
    if (hp->kv_lora + hp->qk_rope > AEG_ATTN_MAX_DIM)
        return aeg_fail(b->err, AEGIS_E_MODEL, "%s: kv_lora + qk_rope is %u, expected at most %d", b->store->path,
                        hp->kv_lora + hp->qk_rope, AEG_ATTN_MAX_DIM);
    return AEGIS_OK;
}

static aegis_status bind_mla(const binder *b, aeg_mla_weights *m)
{
    const aeg_hparams *hp = &b->store->hparams;
    const uint32_t q = hp->n_heads * (hp->qk_nope + hp->qk_rope), o = hp->n_heads * hp->v_dim;
    AEG_TRY(check_head_dims(b, hp));
    if (hp->q_lora > 0) {
        AEG_TRY(matrix(b, "mla.q_a", hp->q_lora, hp->hidden_size, &m->q_a));
        AEG_TRY(vector(b, "mla.q_a_norm", hp->q_lora, &m->q_a_norm));
    }
    AEG_TRY(matrix(b, "mla.q_b", q, hp->q_lora > 0 ? hp->q_lora : hp->hidden_size, &m->q_b));
    AEG_TRY(matrix(b, "mla.kv_a", hp->kv_lora + hp->qk_rope, hp->hidden_size, &m->kv_a));
    AEG_TRY(vector(b, "mla.kv_a_norm", hp->kv_lora, &m->kv_a_norm));
    AEG_TRY(matrix(b, "mla.k_b", hp->n_heads * hp->kv_lora, hp->qk_nope, &m->k_b));
    AEG_TRY(matrix(b, "mla.v_b", o, hp->kv_lora, &m->v_b));
    return matrix(b, "mla.o", hp->hidden_size, o, &m->o);
}

static aegis_status bind_hyper(const binder *b, const char *name, aeg_hyper_weights *h)
{
    const aeg_hparams *hp = &b->store->hparams;
    char part[AEG_TENSOR_NAME_MAX];
    snprintf(part, sizeof part, "%s.fn", name);
    AEG_TRY(matrix(b, part, AEG_HYPER_GATES, AEG_HYPER_STREAMS * hp->hidden_size, &h->fn));
    if (h->fn.type.kind > AEG_W_BF16 || hp->hidden_size % AEG_PLANE_COLS != 0)
        return aeg_fail(b->err, AEGIS_E_MODEL, "%s: layers.%u.%s is not a matrix of f32, f16 or bf16 with streams of a multiple of "
                        "%d numbers", b->store->path, b->layer, part, AEG_PLANE_COLS);
    snprintf(part, sizeof part, "%s.base", name);
    AEG_TRY(vector(b, part, AEG_HYPER_GATES, &h->base));
    snprintf(part, sizeof part, "%s.scale", name);
    return vector(b, part, 3, &h->scale);
}

static aegis_status bind_dense(const binder *b, aeg_layer_weights *w)
{
    const aeg_hparams *hp = &b->store->hparams;
    AEG_TRY(matrix(b, "dense.gate", hp->dense_width, hp->hidden_size, &w->dense_gate));
    AEG_TRY(matrix(b, "dense.up", hp->dense_width, hp->hidden_size, &w->dense_up));
    return matrix(b, "dense.down", hp->hidden_size, hp->dense_width, &w->dense_down);
}

static aegis_status bind_experts(const binder *b, aeg_layer_weights *w)
{
    const aeg_hparams *hp = &b->store->hparams;
    AEG_TRY(matrix(b, "router", hp->n_experts, hp->hidden_size, &w->router));
    if (hp->router_bias)
        AEG_TRY(vector(b, "router_bias", hp->n_experts, &w->router_bias));
    if (hp->shared_width == 0)
        return AEGIS_OK;
    if (hp->shared_gated)
        AEG_TRY(matrix(b, "shared_gate", 1, hp->hidden_size, &w->shared_gate));
    AEG_TRY(matrix(b, "shared.gate", hp->shared_width, hp->hidden_size, &w->shared_gate_proj));
    AEG_TRY(matrix(b, "shared.up", hp->shared_width, hp->hidden_size, &w->shared_up));
    return matrix(b, "shared.down", hp->hidden_size, hp->shared_width, &w->shared_down);
}

static aegis_status bind_layer(binder *b, uint32_t layer, aeg_layer_weights *w)
{
    const aeg_hparams *hp = &b->store->hparams;
    b->layer = layer;
    AEG_TRY(vector(b, "mixer_norm", hp->hidden_size, &w->mixer_norm));
    AEG_TRY(vector(b, "ffn_norm", hp->hidden_size, &w->ffn_norm));
    if (hp->mixer[layer] == AEG_MIXER_GDN)
        AEG_TRY(bind_gdn(b, &w->gdn));
    else if (hp->mixer[layer] == AEG_MIXER_MLA)
        AEG_TRY(bind_mla(b, &w->mla));
    else
        AEG_TRY(bind_attention(b, &w->attn));
    if (hp->hc_streams > 0) {
        AEG_TRY(bind_hyper(b, "hc_attn", &w->hyper_attn));
        AEG_TRY(bind_hyper(b, "hc_ffn", &w->hyper_ffn));
    }
    return aeg_has_experts(hp, layer) ? bind_experts(b, w) : bind_dense(b, w);
}

aegis_status aeg_model_bind(aeg_model_weights *out, aeg_layer_weights *layers, const aeg_store *store,
                            const uint8_t *dense, aegis_error *err)
{
    const aeg_hparams *hp = &store->hparams;
    binder b = { .store = store, .dense = dense, .err = err };
    const aeg_store_tensor *norm = NULL;

    if (hp->hc_streams != 0 && hp->hc_streams != AEG_HYPER_STREAMS)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u residual streams, expected %d", store->path, hp->hc_streams, AEG_HYPER_STREAMS);
    AEG_TRY(find(&b, "final_norm", true, 1, hp->hidden_size, &norm));
    AEG_TRY(matrix_named(&b, "lm_head", hp->vocab_size, hp->hidden_size, &out->head));
    for (uint32_t layer = 0; layer < hp->n_layers; layer++) {
        layers[layer] = (aeg_layer_weights){ 0 };
        AEG_TRY(bind_layer(&b, layer, &layers[layer]));
    }
    out->final_norm = (const float *)(const void *)(dense + norm->offset);
    out->layers = layers;
    return AEGIS_OK;
}
