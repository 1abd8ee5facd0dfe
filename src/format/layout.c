/* SPDX-License-Identifier: Apache-2.0 */
#include "format/layout.h"

#include <stdio.h>

enum { LAYER_PARTS_MAX = 32 };

static const char *const part_names[AEG_N_PARTS] = {
    [AEG_PART_MIXER_NORM] = "mixer_norm",
    [AEG_PART_GDN_QKV] = "gdn.qkv",
    [AEG_PART_GDN_Z] = "gdn.z",
    [AEG_PART_GDN_B] = "gdn.b",
    [AEG_PART_GDN_A] = "gdn.a",
    [AEG_PART_GDN_OUT] = "gdn.out",
    [AEG_PART_GDN_CONV] = "gdn.conv",
    [AEG_PART_GDN_A_LOG] = "gdn.a_log",
    [AEG_PART_GDN_DT_BIAS] = "gdn.dt_bias",
    [AEG_PART_GDN_NORM] = "gdn.norm",
    [AEG_PART_ATTN_Q] = "attn.q",
    [AEG_PART_ATTN_K] = "attn.k",
    [AEG_PART_ATTN_V] = "attn.v",
    [AEG_PART_ATTN_O] = "attn.o",
    [AEG_PART_ATTN_Q_NORM] = "attn.q_norm",
    [AEG_PART_ATTN_K_NORM] = "attn.k_norm",
    [AEG_PART_MLA_Q_A] = "mla.q_a",
    [AEG_PART_MLA_Q_A_NORM] = "mla.q_a_norm",
    [AEG_PART_MLA_Q_B] = "mla.q_b",
    [AEG_PART_MLA_KV_A] = "mla.kv_a",
    [AEG_PART_MLA_KV_A_NORM] = "mla.kv_a_norm",
    [AEG_PART_MLA_K_B] = "mla.k_b",
    [AEG_PART_MLA_V_B] = "mla.v_b",
    [AEG_PART_MLA_O] = "mla.o",
    [AEG_PART_FFN_NORM] = "ffn_norm",
    [AEG_PART_ROUTER] = "router",
    [AEG_PART_ROUTER_BIAS] = "router_bias",
    [AEG_PART_SHARED_GATE_PROJ] = "shared.gate",
    [AEG_PART_SHARED_UP] = "shared.up",
    [AEG_PART_SHARED_DOWN] = "shared.down",
    [AEG_PART_SHARED_GATE] = "shared_gate",
    [AEG_PART_DENSE_GATE] = "dense.gate",
    [AEG_PART_DENSE_UP] = "dense.up",
    [AEG_PART_DENSE_DOWN] = "dense.down",
    [AEG_PART_HC_ATTN_FN] = "hc_attn.fn",
    [AEG_PART_HC_ATTN_BASE] = "hc_attn.base",
    [AEG_PART_HC_ATTN_SCALE] = "hc_attn.scale",
    [AEG_PART_HC_FFN_FN] = "hc_ffn.fn",
    [AEG_PART_HC_FFN_BASE] = "hc_ffn.base",
    [AEG_PART_HC_FFN_SCALE] = "hc_ffn.scale",
    [AEG_PART_FINAL_NORM] = "final_norm",
    [AEG_PART_LM_HEAD] = "lm_head",
};

/* --- which parts a layer has, in the order of dense.bin ----------------------------------------------------------- */

typedef struct {
    uint32_t n;
    uint8_t part[LAYER_PARTS_MAX];
} part_list;

static void add(part_list *l, aeg_part first, aeg_part last)
{
    for (int part = first; part <= (int)last; part++)
        l->part[l->n++] = (uint8_t)part;
}

static void add_mixer(part_list *l, const aeg_hparams *h, uint32_t layer)
{
    switch (h->mixer[layer]) {
    case AEG_MIXER_GDN: add(l, AEG_PART_GDN_QKV, AEG_PART_GDN_NORM); break;
    case AEG_MIXER_ATTENTION:
        add(l, AEG_PART_ATTN_Q, AEG_PART_ATTN_O);
        if (h->qk_norm != AEG_QK_NORM_NONE)
            add(l, AEG_PART_ATTN_Q_NORM, AEG_PART_ATTN_K_NORM);
        break;
    default:
        add(l, h->q_lora > 0 ? AEG_PART_MLA_Q_A : AEG_PART_MLA_Q_B, AEG_PART_MLA_O);
    }
}

static void add_ffn(part_list *l, const aeg_hparams *h, uint32_t layer)
{
    if (!aeg_has_experts(h, layer)) {
        add(l, AEG_PART_DENSE_GATE, AEG_PART_DENSE_DOWN);
        return;
    }
    add(l, AEG_PART_ROUTER, h->router_bias ? AEG_PART_ROUTER_BIAS : AEG_PART_ROUTER);
    if (h->shared_width > 0)
        add(l, AEG_PART_SHARED_GATE_PROJ, h->shared_gated ? AEG_PART_SHARED_GATE : AEG_PART_SHARED_DOWN);
}

static void list_layer(part_list *l, const aeg_hparams *h, uint32_t layer)
{
    l->n = 0;
    if (h->hc_streams > 0)
        add(l, AEG_PART_HC_ATTN_FN, AEG_PART_HC_ATTN_SCALE);
    add(l, AEG_PART_MIXER_NORM, AEG_PART_MIXER_NORM);
    add_mixer(l, h, layer);
    if (h->hc_streams > 0)
        add(l, AEG_PART_HC_FFN_FN, AEG_PART_HC_FFN_SCALE);
    add(l, AEG_PART_FFN_NORM, AEG_PART_FFN_NORM);
    add_ffn(l, h, layer);
}

static void list_top(part_list *l)
{
    l->n = 0;
    add(l, AEG_PART_FINAL_NORM, AEG_PART_LM_HEAD);
}

uint32_t aeg_layout_count(const aeg_hparams *h)
{
    part_list l;
    list_top(&l);
    uint32_t n = l.n;
    for (uint32_t layer = 0; layer < h->n_layers; layer++) {
        list_layer(&l, h, layer);
        n += l.n;
    }
    return n;
}

/* --- shapes ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t n_rows, n_cols; /* n_rows 0: a vector */
} part_shape;

static part_shape mixer_shape(aeg_part part, const aeg_hparams *h)
{
    const uint32_t hidden = h->hidden_size;
    const uint32_t key = h->gdn_k_heads * h->gdn_k_dim, value = h->gdn_v_heads * h->gdn_v_dim;
    const uint32_t q = h->n_heads * h->head_dim, kv = h->n_kv_heads * h->head_dim;
    const bool full = h->qk_norm == AEG_QK_NORM_FULL;
    switch (part) {
    case AEG_PART_GDN_QKV: return (part_shape){ 2 * key + value, hidden };
    case AEG_PART_GDN_Z: return (part_shape){ value, hidden };
    case AEG_PART_GDN_B: return (part_shape){ h->gdn_v_heads, hidden };
    case AEG_PART_GDN_A: return (part_shape){ h->gdn_v_heads, hidden };
    case AEG_PART_GDN_OUT: return (part_shape){ hidden, value };
    case AEG_PART_GDN_CONV: return (part_shape){ 0, h->conv_kernel * (2 * key + value) };
    case AEG_PART_GDN_A_LOG: return (part_shape){ 0, h->gdn_v_heads };
    case AEG_PART_GDN_DT_BIAS: return (part_shape){ 0, h->gdn_v_heads };
    case AEG_PART_GDN_NORM: return (part_shape){ 0, h->gdn_v_dim };
    case AEG_PART_ATTN_Q: return (part_shape){ h->attn_gate ? 2 * q : q, hidden };
    case AEG_PART_ATTN_K: return (part_shape){ kv, hidden };
    case AEG_PART_ATTN_V: return (part_shape){ kv, hidden };
    case AEG_PART_ATTN_O: return (part_shape){ hidden, q };
    case AEG_PART_ATTN_Q_NORM: return (part_shape){ 0, full ? q : h->head_dim };
    case AEG_PART_ATTN_K_NORM: return (part_shape){ 0, full ? kv : h->head_dim };
    case AEG_PART_MLA_Q_A: return (part_shape){ h->q_lora, hidden };
    case AEG_PART_MLA_Q_A_NORM: return (part_shape){ 0, h->q_lora };
    case AEG_PART_MLA_Q_B: return (part_shape){ h->n_heads * (h->qk_nope + h->qk_rope), h->q_lora > 0 ? h->q_lora : hidden };
    case AEG_PART_MLA_KV_A: return (part_shape){ h->kv_lora + h->qk_rope, hidden };
    case AEG_PART_MLA_KV_A_NORM: return (part_shape){ 0, h->kv_lora };
    case AEG_PART_MLA_K_B: return (part_shape){ h->n_heads * h->kv_lora, h->qk_nope };
    case AEG_PART_MLA_V_B: return (part_shape){ h->n_heads * h->v_dim, h->kv_lora };
    default: return (part_shape){ hidden, h->n_heads * h->v_dim }; /* AEG_PART_MLA_O */
    }
}

static part_shape other_shape(aeg_part part, const aeg_hparams *h)
{
    const uint32_t hidden = h->hidden_size, mix = (2 + h->hc_streams) * h->hc_streams;
    switch (part) {
    case AEG_PART_ROUTER: return (part_shape){ h->n_experts, hidden };
    case AEG_PART_ROUTER_BIAS: return (part_shape){ 0, h->n_experts };
    case AEG_PART_SHARED_GATE_PROJ: return (part_shape){ h->shared_width, hidden };
    case AEG_PART_SHARED_UP: return (part_shape){ h->shared_width, hidden };
    case AEG_PART_SHARED_DOWN: return (part_shape){ hidden, h->shared_width };
    case AEG_PART_SHARED_GATE: return (part_shape){ 1, hidden };
    case AEG_PART_DENSE_GATE: return (part_shape){ h->dense_width, hidden };
    case AEG_PART_DENSE_UP: return (part_shape){ h->dense_width, hidden };
    case AEG_PART_DENSE_DOWN: return (part_shape){ hidden, h->dense_width };
    case AEG_PART_HC_ATTN_FN: return (part_shape){ mix, h->hc_streams * hidden };
    case AEG_PART_HC_FFN_FN: return (part_shape){ mix, h->hc_streams * hidden };
    case AEG_PART_HC_ATTN_BASE: return (part_shape){ 0, mix };
    case AEG_PART_HC_FFN_BASE: return (part_shape){ 0, mix };
    case AEG_PART_HC_ATTN_SCALE: return (part_shape){ 0, 3 };
    case AEG_PART_HC_FFN_SCALE: return (part_shape){ 0, 3 };
    case AEG_PART_LM_HEAD: return (part_shape){ h->vocab_size, hidden };
    default: return (part_shape){ 0, hidden }; /* norms of the residual */
    }
}

bool aeg_part_delicate(aeg_part part) { return part == AEG_PART_HC_ATTN_FN || part == AEG_PART_HC_FFN_FN; }

void aeg_layout_at(aeg_layout_entry *out, const aeg_hparams *h, uint32_t index)
{
    part_list l;
    uint32_t layer = 0;
    for (; layer < h->n_layers; layer++) {
        list_layer(&l, h, layer);
        if (index < l.n)
            break;
        index -= l.n;
    }
    if (layer == h->n_layers) {
        list_top(&l);
        layer = AEG_LAYOUT_NO_LAYER;
    }
    const aeg_part part = (aeg_part)l.part[index];
    const bool mixer = part >= AEG_PART_GDN_QKV && part <= AEG_PART_MLA_O;
    const part_shape shape = mixer ? mixer_shape(part, h) : other_shape(part, h);
    *out = (aeg_layout_entry){ .part = part, .layer = layer, .vector = shape.n_rows == 0, .n_cols = shape.n_cols,
                               .n_rows = shape.n_rows == 0 ? 1 : shape.n_rows };
    if (layer == AEG_LAYOUT_NO_LAYER)
        snprintf(out->name, sizeof out->name, "%s", part_names[part]);
    else
        snprintf(out->name, sizeof out->name, "layers.%u.%s", layer, part_names[part]);
}
