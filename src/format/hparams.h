/* SPDX-License-Identifier: Apache-2.0 */
/* format/hparams.h - what a model is, in the project's own terms.
 *
 * Filled from a source's config (format/) when packing, and from the manifest of a store when running.
 * All counts are validated to the limits below before anything is computed from them.
 */
#ifndef AEG_FORMAT_HPARAMS_H
#define AEG_FORMAT_HPARAMS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    AEG_MAX_LAYERS = 256,
    AEG_MAX_EXPERTS = 4096,
    AEG_MAX_TOP_K = 64,
    AEG_MAX_DIM = 1 << 20,       /* any width of a matrix          */
    AEG_MAX_HEADS = 1024,
    AEG_MAX_HEAD_DIM = 512,
    AEG_MAX_CONTEXT = 1 << 24,
    AEG_MAX_EOS = 8,
    AEG_FAMILY_MAX = 32,
};

typedef enum {
    AEG_MIXER_GDN,       /* Gated DeltaNet                    */
    AEG_MIXER_ATTENTION, /* gated grouped-query attention     */
} aeg_mixer;

typedef struct {
    char family[AEG_FAMILY_MAX]; /* "qwen35moe" */
    uint32_t vocab_size, hidden_size, n_layers;
    uint32_t max_n_ctx;          /* positions the model was trained for */
    float rms_eps;
    uint8_t mixer[AEG_MAX_LAYERS]; /* aeg_mixer per layer */

    /* attention */
    uint32_t n_heads, n_kv_heads, head_dim;
    bool attn_gate;              /* q_proj rows per head: head_dim of query, then head_dim of gate */
    uint32_t rope_dim;           /* leading dims of a head that rotate, even */
    double rope_theta;
    uint32_t mrope_section[3];   /* T, H, W; all 0 = plain rope */

    /* Gated DeltaNet; widths: key = gdn_k_heads*gdn_k_dim, value = gdn_v_heads*gdn_v_dim */
    uint32_t gdn_k_heads, gdn_v_heads, gdn_k_dim, gdn_v_dim, conv_kernel; /* conv_kernel == 4 */
    bool gdn_v_tiled;            /* V head h reads K head h % gdn_k_heads (GGUF) instead of h / ratio */

    /* experts */
    uint32_t n_experts, top_k, expert_width, shared_width; /* shared_width 0: none */
    bool norm_top_k;             /* weights of the chosen experts are renormalised */

    /* text */
    int32_t bos_id;              /* -1: none */
    uint32_t n_eos;
    uint32_t eos[AEG_MAX_EOS];   /* generation stops at any of these */

    /* sampling defaults of the model; a negative value means "not given" */
    double temperature, top_p, min_p;
    int32_t top_k_sampling;
    double repeat_penalty, presence_penalty;
} aeg_hparams;

#endif
