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
    AEG_MAX_STREAMS = 16,        /* of a residual */
};

typedef enum {
    AEG_MIXER_GDN,       /* Gated DeltaNet                                            */
    AEG_MIXER_ATTENTION, /* grouped-query attention, with a gate where attn_gate says */
    AEG_MIXER_MLA,       /* multi-head latent attention                               */
    AEG_N_MIXERS,
} aeg_mixer;

typedef enum {
    AEG_QK_NORM_NONE,
    AEG_QK_NORM_HEAD,    /* an RMS norm of each head, weights [head_dim] shared by the heads */
    AEG_QK_NORM_FULL,    /* one RMS norm over all heads, before they are split               */
} aeg_qk_norm;

typedef enum { AEG_ROUTER_SOFTMAX, AEG_ROUTER_SIGMOID } aeg_router_score;

/* Score of a group of experts: its best, or the sum of its two best. */
typedef enum { AEG_GROUP_MAX, AEG_GROUP_TOP2 } aeg_group_score;

typedef struct {
    char family[AEG_FAMILY_MAX]; /* as GGUF's general.architecture: "qwen35moe" */
    uint32_t vocab_size, hidden_size, n_layers;
    uint32_t max_n_ctx;          /* positions the model was trained for */
    float rms_eps;
    uint8_t mixer[AEG_MAX_LAYERS]; /* aeg_mixer per layer */

    /* attention; n_kv_heads and head_dim are 0 without AEG_MIXER_ATTENTION, n_heads is MLA's too */
    uint32_t n_heads, n_kv_heads, head_dim;
    bool attn_gate;              /* q_proj rows per head: head_dim of query, then head_dim of gate */
    uint8_t qk_norm;             /* aeg_qk_norm */
    float qkv_clamp;             /* q (normalised), k (normalised) and v are clamped to +- this; 0: they are not */

    /* rotary positions */
    uint32_t rope_dim;           /* dims of a head that rotate, even: the leading ones; MLA: qk_rope, the last ones */
    double rope_theta;
    uint32_t mrope_section[3];   /* T, H, W; all 0 = plain rope */
    bool rope_interleaved;       /* pairs (2i, 2i+1) instead of (i, i + rope_dim/2) */
    float yarn_factor;           /* 0: no YaRN, and the following are 0 */
    uint32_t yarn_orig_ctx;
    float yarn_beta_fast, yarn_beta_slow, yarn_mscale, yarn_mscale_all;

    /* MLA; all 0 without AEG_MIXER_MLA */
    uint32_t q_lora;             /* rank of the query's bottleneck; 0: none, mla.q_b is the whole projection */
    uint32_t kv_lora;            /* width of the latent that the cache keeps, without the rotary part */
    uint32_t qk_nope, qk_rope;   /* dims of a query or key head: first those that do not rotate */
    uint32_t v_dim;              /* dims of a value head */

    /* Gated DeltaNet, all 0 without it; widths: key = gdn_k_heads*gdn_k_dim, value = gdn_v_heads*gdn_v_dim */
    uint32_t gdn_k_heads, gdn_v_heads, gdn_k_dim, gdn_v_dim, conv_kernel; /* conv_kernel == 4 */
    bool gdn_v_tiled;            /* V head h reads K head h % gdn_k_heads (GGUF) instead of h / ratio */

    /* experts */
    uint32_t n_experts, top_k, expert_width, shared_width; /* shared_width 0: none */
    bool norm_top_k;             /* weights of the chosen experts are renormalised to 1 */
    uint8_t router_score;        /* aeg_router_score */
    bool router_bias;            /* added to the scores for the choice, not for the weights */
    uint32_t n_groups, top_groups; /* equal groups of consecutive experts, of which the best top_groups count; 1, 1: none */
    uint8_t group_score;         /* aeg_group_score */
    float routed_scale;          /* weights of the chosen experts times this; 1: none */
    bool shared_gated;           /* the shared expert counts sigmoid(W_s u) times instead of once */
    uint32_t n_dense_layers;     /* leading layers with an ordinary FFN instead of experts */
    uint32_t dense_width;        /* its width; 0 without such layers */

    /* hyper-connections: hc_streams copies of the residual, mixed around each block; all 0: plain residual */
    uint32_t hc_streams, hc_iters; /* iterations of Sinkhorn's normalisation */
    float hc_eps, hc_clamp;        /* of its denominators; logits of the mix are clamped to +- hc_clamp */

    /* text */
    int32_t bos_id;              /* -1: none */
    uint32_t n_eos;
    uint32_t eos[AEG_MAX_EOS];   /* generation stops at any of these */

    /* sampling defaults of the model; a negative value means "not given" */
    double temperature, top_p, min_p;
    int32_t top_k_sampling;
    double repeat_penalty, presence_penalty;
} aeg_hparams;

/* Layers with experts: those from n_dense_layers on. Expert records exist for these only. */
static inline uint32_t aeg_moe_layers(const aeg_hparams *h) { return h->n_layers - h->n_dense_layers; }

static inline bool aeg_has_experts(const aeg_hparams *h, uint32_t layer) { return layer >= h->n_dense_layers; }

/* All zero, but: per-head q/k norms, one group, routed_scale 1, a gated shared expert, no bos, no sampling default. What a
 * manifest does not mention has these values (docs/store-format.md); readers of a source start from them too. */
void aeg_hparams_init(aeg_hparams *h);

#endif
