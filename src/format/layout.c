/* SPDX-License-Identifier: Apache-2.0 */
#include "format/layout.h"

#include <stdio.h>

enum { GDN_PARTS = 10, ATTN_PARTS = 7, FFN_PARTS = 2, SHARED_PARTS = 4, TOP_PARTS = 2 };

static const uint8_t gdn_parts[GDN_PARTS] = {
    AEG_PART_MIXER_NORM, AEG_PART_GDN_QKV, AEG_PART_GDN_Z,     AEG_PART_GDN_B,       AEG_PART_GDN_A,
    AEG_PART_GDN_OUT,    AEG_PART_GDN_CONV, AEG_PART_GDN_A_LOG, AEG_PART_GDN_DT_BIAS, AEG_PART_GDN_NORM,
};
static const uint8_t attn_parts[ATTN_PARTS] = {
    AEG_PART_MIXER_NORM, AEG_PART_ATTN_Q,      AEG_PART_ATTN_K,      AEG_PART_ATTN_V,
    AEG_PART_ATTN_O,     AEG_PART_ATTN_Q_NORM, AEG_PART_ATTN_K_NORM,
};
static const uint8_t ffn_parts[FFN_PARTS + SHARED_PARTS] = {
    AEG_PART_FFN_NORM,  AEG_PART_ROUTER,      AEG_PART_SHARED_GATE_PROJ,
    AEG_PART_SHARED_UP, AEG_PART_SHARED_DOWN, AEG_PART_SHARED_GATE,
};
static const uint8_t top_parts[TOP_PARTS] = { AEG_PART_FINAL_NORM, AEG_PART_LM_HEAD };

static const char *const part_names[AEG_N_PARTS] = {
    "mixer_norm", "gdn.qkv", "gdn.z", "gdn.b", "gdn.a", "gdn.out", "gdn.conv", "gdn.a_log", "gdn.dt_bias",
    "gdn.norm", "attn.q", "attn.k", "attn.v", "attn.o", "attn.q_norm", "attn.k_norm", "ffn_norm", "router",
    "shared.gate", "shared.up", "shared.down", "shared_gate", "final_norm", "lm_head",
};

static uint32_t mixer_parts(const aeg_hparams *h, uint32_t layer)
{
    return h->mixer[layer] == AEG_MIXER_ATTENTION ? ATTN_PARTS : GDN_PARTS;
}

static uint32_t layer_parts(const aeg_hparams *h, uint32_t layer)
{
    return mixer_parts(h, layer) + FFN_PARTS + (h->shared_width > 0 ? SHARED_PARTS : 0);
}

uint32_t aeg_layout_count(const aeg_hparams *h)
{
    uint32_t n = TOP_PARTS;
    for (uint32_t layer = 0; layer < h->n_layers; layer++)
        n += layer_parts(h, layer);
    return n;
}

static void set_shape(aeg_layout_entry *e, const aeg_hparams *h)
{
    const uint32_t hidden = h->hidden_size;
    const uint32_t key = h->gdn_k_heads * h->gdn_k_dim, value = h->gdn_v_heads * h->gdn_v_dim;
    const uint32_t heads = h->n_heads * h->head_dim, kv = h->n_kv_heads * h->head_dim;
    const struct {
        uint32_t n_rows, n_cols; /* n_rows 0: a vector */
    } shapes[AEG_N_PARTS] = {
        [AEG_PART_MIXER_NORM] = { 0, hidden },
        [AEG_PART_GDN_QKV] = { 2 * key + value, hidden },
        [AEG_PART_GDN_Z] = { value, hidden },
        [AEG_PART_GDN_B] = { h->gdn_v_heads, hidden },
        [AEG_PART_GDN_A] = { h->gdn_v_heads, hidden },
        [AEG_PART_GDN_OUT] = { hidden, value },
        [AEG_PART_GDN_CONV] = { 0, h->conv_kernel * (2 * key + value) },
        [AEG_PART_GDN_A_LOG] = { 0, h->gdn_v_heads },
        [AEG_PART_GDN_DT_BIAS] = { 0, h->gdn_v_heads },
        [AEG_PART_GDN_NORM] = { 0, h->gdn_v_dim },
        [AEG_PART_ATTN_Q] = { h->attn_gate ? 2 * heads : heads, hidden },
        [AEG_PART_ATTN_K] = { kv, hidden },
        [AEG_PART_ATTN_V] = { kv, hidden },
        [AEG_PART_ATTN_O] = { hidden, heads },
        [AEG_PART_ATTN_Q_NORM] = { 0, h->head_dim },
        [AEG_PART_ATTN_K_NORM] = { 0, h->head_dim },
        [AEG_PART_FFN_NORM] = { 0, hidden },
        [AEG_PART_ROUTER] = { h->n_experts, hidden },
        [AEG_PART_SHARED_GATE_PROJ] = { h->shared_width, hidden },
        [AEG_PART_SHARED_UP] = { h->shared_width, hidden },
        [AEG_PART_SHARED_DOWN] = { hidden, h->shared_width },
        [AEG_PART_SHARED_GATE] = { 1, hidden },
        [AEG_PART_FINAL_NORM] = { 0, hidden },
        [AEG_PART_LM_HEAD] = { h->vocab_size, hidden },
    };
    e->vector = shapes[e->part].n_rows == 0;
    e->n_rows = e->vector ? 1 : shapes[e->part].n_rows;
    e->n_cols = shapes[e->part].n_cols;
}

void aeg_layout_at(aeg_layout_entry *out, const aeg_hparams *h, uint32_t index)
{
    uint32_t layer = 0;
    while (layer < h->n_layers && index >= layer_parts(h, layer))
        index -= layer_parts(h, layer++);
    const char *name;
    if (layer == h->n_layers) {
        out->part = top_parts[index];
        out->layer = AEG_LAYOUT_NO_LAYER;
        name = part_names[out->part];
        snprintf(out->name, sizeof out->name, "%s", name);
    } else {
        const uint32_t mixer = mixer_parts(h, layer);
        out->part = index >= mixer                              ? ffn_parts[index - mixer]
                    : h->mixer[layer] == AEG_MIXER_ATTENTION    ? attn_parts[index]
                                                                : gdn_parts[index];
        out->layer = layer;
        name = part_names[out->part];
        snprintf(out->name, sizeof out->name, "layers.%u.%s", layer, name);
    }
    set_shape(out, h);
}
