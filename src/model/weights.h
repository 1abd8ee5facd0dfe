/* SPDX-License-Identifier: Apache-2.0 */
/* model/weights.h - a model's resident tensors, bound by name and checked against the hyper-parameters. */
#ifndef AEG_MODEL_WEIGHTS_H
#define AEG_MODEL_WEIGHTS_H

#include "base/error.h"
#include "expert/store.h"

typedef struct {
    aeg_weights qkv, z, b, a, out;
    const float *conv;                      /* [4][channels], oldest tap first */
    const float *a_log, *dt_bias, *norm;    /* [v_heads], [v_heads], [v_dim]   */
} aeg_gdn_weights;

typedef struct {
    aeg_weights q, k, v, o;
    const float *q_norm, *k_norm;           /* [head_dim], or [all heads] with AEG_QK_NORM_FULL; NULL without norms */
} aeg_attn_weights;

typedef struct {
    aeg_weights q_a;                        /* n_rows 0 without q_lora: then q_b is all of q */
    aeg_weights q_b, kv_a, k_b, v_b, o;     /* shapes: format/layout.h; rows of a head are whole row blocks */
    const float *q_a_norm, *kv_a_norm;      /* [q_lora] or NULL, [kv_lora] */
} aeg_mla_weights;

/* One hyper-connection. */
typedef struct {
    aeg_weights fn;                         /* [24, 4 * hidden], plain numbers */
    const float *base, *scale;              /* [24], [3] */
} aeg_hyper_weights;

typedef struct {
    const float *mixer_norm, *ffn_norm;     /* [hidden] */
    union {
        aeg_gdn_weights gdn;
        aeg_attn_weights attn;
        aeg_mla_weights mla;
    };
    aeg_hyper_weights hyper_attn, hyper_ffn; /* with hc_streams only */
    aeg_weights router;                     /* [n_experts, hidden] */
    const float *router_bias;               /* [n_experts], or NULL */
    aeg_weights shared_gate;                /* [1, hidden]; n_rows 0 if the shared expert has none */
    aeg_weights shared_gate_proj, shared_up, shared_down; /* n_rows 0 without a shared expert */
    aeg_weights dense_gate, dense_up, dense_down; /* of a layer without experts, in place of all the above */
} aeg_layer_weights;

typedef struct {
    const float *final_norm;
    aeg_weights head;
    aeg_layer_weights *layers;              /* [n_layers] */
} aeg_model_weights;

/* `dense`: the bytes of dense.bin. layers: caller's array [n_layers]. AEGIS_E_MODEL names tensor, found,
 * expected. */
aegis_status aeg_model_bind(aeg_model_weights *out, aeg_layer_weights *layers, const aeg_store *store,
                            const uint8_t *dense, aegis_error *err);

#endif
