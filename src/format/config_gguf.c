/* SPDX-License-Identifier: Apache-2.0 */
#include "format/config_gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "format/family.h"
#include "format/hparams_io.h"

enum { KEY_MAX = 128, ANY = INT32_MAX };

/* One file being read; keys are behind "<architecture>.". */
typedef struct {
    const aeg_gguf *g;
    aeg_hparams *h;
    const char *path;
    char arch[AEG_FAMILY_MAX];
    aegis_error *err;
} reader;

double aeg_gguf_short(double f32)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", f32);
    return strtod(text, NULL);
}

static bool is(const reader *r, const char *family) { return strcmp(r->arch, family) == 0; }

static void full_key(const reader *r, const char *key, char *out) { snprintf(out, KEY_MAX, "%s.%s", r->arch, key); }

/* A count; absent: *out keeps its value. */
static aegis_status count(const reader *r, const char *key, uint32_t max, uint32_t *out, bool *found)
{
    char full[KEY_MAX];
    int64_t v = *out;
    full_key(r, key, full);
    AEG_TRY(aeg_gguf_int(r->g, full, 0, max, &v, found, r->err));
    *out = (uint32_t)v;
    return AEGIS_OK;
}

static aegis_status need(const reader *r, const char *key, uint32_t max, uint32_t *out)
{
    bool found = false;
    AEG_TRY(count(r, key, max, out, &found));
    return found ? AEGIS_OK : aeg_fail(r->err, AEGIS_E_MODEL, "%s: key '%s.%s' is missing", r->path, r->arch, key);
}

static aegis_status real(const reader *r, const char *key, double *out, bool *found)
{
    char full[KEY_MAX];
    full_key(r, key, full);
    return aeg_gguf_number(r->g, full, out, found, r->err);
}

static aegis_status flag(const reader *r, const char *key, bool *out, bool *found)
{
    char full[KEY_MAX];
    full_key(r, key, full);
    return aeg_gguf_bool(r->g, full, out, found, r->err);
}

/* A count that some writers give for each layer: all that are not 0 must agree. */
static aegis_status same_count(const reader *r, const char *key, uint32_t max, uint32_t *out, bool *found)
{
    char full[KEY_MAX];
    full_key(r, key, full);
    const aeg_gguf_kv *kv = aeg_gguf_find(r->g, full);
    if (kv == NULL || !kv->array)
        return count(r, key, max, out, found);
    AEG_TRY(aeg_gguf_array(r->g, full, AEG_GGUF_INTS, &kv, r->err));
    uint32_t value = 0;
    for (uint64_t i = 0; i < kv->count; i++) {
        int64_t v = -1;
        if (!aeg_gguf_int_at(kv, i, &v) || v < 0 || v > max || (v != 0 && value != 0 && v != value))
            return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '%s'[%llu] is %lld, expected the same as before, at most %u", r->path, full,
                            (unsigned long long)i, (long long)v, max);
        value = v != 0 ? (uint32_t)v : value;
    }
    *out = value;
    *found = true;
    return AEGIS_OK;
}

static const aeg_tensor *tensor_of(const reader *r, uint32_t layer, const char *name)
{
    char full[KEY_MAX];
    snprintf(full, sizeof full, "blk.%u.%s", layer, name);
    return aeg_source_find(&r->g->source, full);
}

/* --- what kind of file ------------------------------------------------------------------------------------------- */

/* Another family, or no Mixture-of-Experts model at all. */
static aegis_status unknown_architecture(const reader *r, aeg_gguf_text arch)
{
    const int n = (int)AEG_MIN(arch.n, (size_t)60);
    uint32_t n_experts = 0;
    AEG_TRY(count(r, "expert_count", INT32_MAX, &n_experts, NULL));
    if (n_experts == 0)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: architecture '%.*s' without experts (a dense model); aegis runs "
                        "Mixture-of-Experts models only, in this version of the families %s", r->path, n, arch.p, aeg_family_list);
    return aeg_fail(r->err, AEGIS_E_MODEL, "%s: architecture '%.*s' is not supported; this version runs %s", r->path, n, arch.p,
                    aeg_family_list);
}

static aegis_status get_architecture(reader *r)
{
    aeg_gguf_text arch = { 0 };
    bool found = false;
    AEG_TRY(aeg_gguf_string(r->g, "general.architecture", &arch, &found, r->err));
    if (!found)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: key 'general.architecture' is missing", r->path);
    if (aeg_gguf_text_is(arch, "clip"))
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: an image encoder (mmproj file), not a model: name the file of the text "
                        "model (pictures are not in this version)", r->path);
    snprintf(r->arch, sizeof r->arch, "%.*s", (int)AEG_MIN(arch.n, sizeof r->arch), arch.p);
    if (arch.n >= sizeof r->arch || !aeg_family_known(r->arch))
        return unknown_architecture(r, arch);
    memcpy(r->h->family, r->arch, sizeof r->arch);
    return AEGIS_OK;
}

/* block_count includes the blocks that predict further tokens, which are not layers of the model. */
static aegis_status get_blocks(reader *r, uint32_t *n_mtp)
{
    uint32_t blocks = 0;
    *n_mtp = 0;
    AEG_TRY(need(r, "block_count", 2 * AEG_MAX_LAYERS, &blocks));
    AEG_TRY(count(r, "nextn_predict_layers", AEG_MAX_LAYERS, n_mtp, NULL));
    if (*n_mtp >= blocks)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: %u blocks of which %u predict further tokens: no layer is left", r->path, blocks,
                        *n_mtp);
    r->h->n_layers = blocks - *n_mtp;
    if (r->h->n_layers > AEG_MAX_LAYERS)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: %u layers, expected at most %d", r->path, r->h->n_layers, AEG_MAX_LAYERS);
    const bool draft = *n_mtp > 0 && tensor_of(r, r->h->n_layers, "nextn.eh_proj.weight") != NULL;
    if (tensor_of(r, 0, "attn_norm.weight") == NULL)
        return draft ? aeg_fail(r->err, AEGIS_E_MODEL, "%s: holds only the block that predicts further tokens (a draft export); "
                                "name the file of the whole model", r->path)
                     : aeg_fail(r->err, AEGIS_E_MODEL, "%s: tensor 'blk.0.attn_norm.weight' is missing", r->path);
    if (*n_mtp > 0 && !draft) {
        aeg_log(AEG_LOG_NOTICE, "%s: 'nextn_predict_layers' is %u, but the block is not in the file (a trunk export)", r->path,
                *n_mtp);
        *n_mtp = 0;
    }
    return AEGIS_OK;
}

static aegis_status get_sizes(reader *r)
{
    aeg_hparams *h = r->h;
    double eps = 0;
    bool found = false;
    const aeg_tensor *embed = aeg_source_find(&r->g->source, "token_embd.weight");
    if (embed == NULL || embed->rank != 2 || embed->dims[0] > AEG_MAX_DIM)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: tensor 'token_embd.weight' is missing or no matrix of at most %d rows", r->path,
                        AEG_MAX_DIM);
    h->vocab_size = (uint32_t)embed->dims[0];
    AEG_TRY(need(r, "embedding_length", AEG_MAX_DIM, &h->hidden_size));
    AEG_TRY(need(r, "context_length", AEG_MAX_CONTEXT, &h->max_n_ctx));
    AEG_TRY(real(r, "attention.layer_norm_rms_epsilon", &eps, &found));
    if (!found)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: key '%s.attention.layer_norm_rms_epsilon' is missing", r->path, r->arch);
    h->rms_eps = (float)eps;
    return AEGIS_OK;
}

/* --- mixers -------------------------------------------------------------------------------------------------------- */

static aegis_status get_attention(reader *r)
{
    aeg_hparams *h = r->h;
    bool found = false;
    double clamp = 0;
    uint32_t value_dim = 0;
    AEG_TRY(same_count(r, "attention.head_count", AEG_MAX_HEADS, &h->n_heads, &found));
    if (!found || h->n_heads == 0)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: key '%s.attention.head_count' is missing or 0", r->path, r->arch);
    h->n_kv_heads = h->n_heads;
    AEG_TRY(same_count(r, "attention.head_count_kv", AEG_MAX_HEADS, &h->n_kv_heads, &found));
    h->head_dim = h->hidden_size / h->n_heads;
    AEG_TRY(count(r, "attention.key_length", AEG_MAX_HEAD_DIM, &h->head_dim, NULL));
    value_dim = h->head_dim;
    AEG_TRY(count(r, "attention.value_length", AEG_MAX_HEAD_DIM, &value_dim, NULL));
    if (value_dim != h->head_dim)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: value heads of %u dimensions and key heads of %u, expected the same", r->path,
                        value_dim, h->head_dim);
    AEG_TRY(real(r, "attention.clamp_kqv", &clamp, NULL));
    h->qkv_clamp = (float)clamp;
    h->qk_norm = is(r, "olmoe") ? AEG_QK_NORM_FULL : AEG_QK_NORM_HEAD;
    h->attn_gate = is(r, "qwen35moe") || is(r, "qwen3next");
    h->rope_dim = h->head_dim;
    return count(r, "rope.dimension_count", AEG_MAX_HEAD_DIM, &h->rope_dim, NULL);
}

/* "attention.recurrent_layers" says it layer by layer; else each interval ends in a layer of attention. */
static aegis_status get_pattern(reader *r)
{
    char full[KEY_MAX];
    uint32_t interval = 4;
    full_key(r, "attention.recurrent_layers", full);
    const aeg_gguf_kv *kv;
    AEG_TRY(aeg_gguf_array(r->g, full, AEG_GGUF_INTS, &kv, r->err));
    AEG_TRY(count(r, "full_attention_interval", AEG_MAX_LAYERS, &interval, NULL));
    if (interval == 0 || (kv != NULL && kv->count < r->h->n_layers))
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: neither '%s' for each of %u layers nor a 'full_attention_interval' above 0",
                        r->path, full, r->h->n_layers);
    for (uint32_t i = 0; i < r->h->n_layers; i++) {
        int64_t recurrent = (i + 1) % interval != 0;
        if (kv != NULL)
            aeg_gguf_int_at(kv, i, &recurrent);
        r->h->mixer[i] = recurrent != 0 ? AEG_MIXER_GDN : AEG_MIXER_ATTENTION;
    }
    return AEGIS_OK;
}

/* qwen35moe files have the value heads of one key head apart ("tiled"), all others together. */
static aegis_status get_gdn(reader *r)
{
    aeg_hparams *h = r->h;
    uint32_t inner = 0;
    AEG_TRY(get_pattern(r));
    AEG_TRY(need(r, "ssm.conv_kernel", 4, &h->conv_kernel));
    AEG_TRY(need(r, "ssm.group_count", AEG_MAX_HEADS, &h->gdn_k_heads));
    AEG_TRY(need(r, "ssm.time_step_rank", AEG_MAX_HEADS, &h->gdn_v_heads));
    AEG_TRY(need(r, "ssm.state_size", AEG_MAX_HEAD_DIM, &h->gdn_k_dim));
    AEG_TRY(need(r, "ssm.inner_size", AEG_MAX_DIM, &inner));
    if (h->gdn_v_heads == 0 || inner % h->gdn_v_heads != 0)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '%s.ssm.inner_size' is %u, expected a multiple of the %u value heads", r->path,
                        r->arch, inner, h->gdn_v_heads);
    h->gdn_v_dim = inner / h->gdn_v_heads;
    h->gdn_v_tiled = is(r, "qwen35moe");
    return AEGIS_OK;
}

/* Files since 2025 give head widths under *_mla and the absorbed ones under the plain keys; older ones have the
 * head widths there. */
static aegis_status get_mla(reader *r)
{
    aeg_hparams *h = r->h;
    uint32_t key = 0;
    bool found = false;
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->mixer[i] = AEG_MIXER_MLA;
    AEG_TRY(need(r, "attention.head_count", AEG_MAX_HEADS, &h->n_heads));
    AEG_TRY(need(r, "attention.kv_lora_rank", AEG_MAX_DIM, &h->kv_lora));
    AEG_TRY(count(r, "attention.q_lora_rank", AEG_MAX_DIM, &h->q_lora, NULL));
    AEG_TRY(need(r, "rope.dimension_count", AEG_MAX_HEAD_DIM, &h->qk_rope));
    AEG_TRY(count(r, "attention.key_length_mla", ANY, &key, &found));
    AEG_TRY(found ? need(r, "attention.value_length_mla", ANY, &h->v_dim) : need(r, "attention.value_length", ANY, &h->v_dim));
    if (!found)
        AEG_TRY(need(r, "attention.key_length", ANY, &key));
    if (key <= h->qk_rope)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: key heads of %u dimensions of which %u rotate, expected more", r->path, key,
                        h->qk_rope);
    h->qk_nope = key - h->qk_rope;
    h->rope_dim = h->qk_rope;
    h->rope_interleaved = true;
    h->qk_norm = AEG_QK_NORM_HEAD; /* its value in models that have no such norms (hparams.h) */
    return AEGIS_OK;
}

static aegis_status get_sections(reader *r)
{
    char full[KEY_MAX];
    const aeg_gguf_kv *kv;
    full_key(r, "rope.dimension_sections", full);
    AEG_TRY(aeg_gguf_array(r->g, full, AEG_GGUF_INTS, &kv, r->err));
    for (uint64_t i = 0; kv != NULL && i < kv->count; i++) {
        int64_t v = -1;
        if (!aeg_gguf_int_at(kv, i, &v) || v < 0 || v > AEG_MAX_HEAD_DIM || (i >= 3 && v != 0))
            return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '%s'[%llu] is %lld, expected three numbers up to %d and zeros", r->path, full,
                            (unsigned long long)i, (long long)v, AEG_MAX_HEAD_DIM);
        if (i < 3)
            r->h->mrope_section[i] = (uint32_t)v;
    }
    return AEGIS_OK;
}

/* The multiplier is 0.1 times mscale_all_dim, and every released model has mscale the same. Without it the usual
 * YaRN: cos and sin are scaled, scores are not. */
static aegis_status get_yarn(reader *r)
{
    aeg_hparams *h = r->h;
    double factor = 0, fast = 32, slow = 1, log_mul = 0;
    bool found = false, has_mul = false;
    AEG_TRY(real(r, "rope.scaling.factor", &factor, &found));
    h->yarn_orig_ctx = is(r, "xing4_0") ? 4096 : 0;
    AEG_TRY(count(r, "rope.scaling.original_context_length", AEG_MAX_CONTEXT, &h->yarn_orig_ctx, NULL));
    AEG_TRY(real(r, "rope.scaling.yarn_beta_fast", &fast, NULL));
    AEG_TRY(real(r, "rope.scaling.yarn_beta_slow", &slow, NULL));
    AEG_TRY(real(r, "rope.scaling.yarn_log_multiplier", &log_mul, &has_mul));
    if (!found || h->yarn_orig_ctx == 0)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: YaRN without '%s.rope.scaling.factor' or '.original_context_length'", r->path,
                        r->arch);
    h->yarn_factor = (float)factor;
    h->yarn_beta_fast = (float)fast;
    h->yarn_beta_slow = (float)slow;
    h->yarn_mscale_all = (float)(aeg_gguf_short(log_mul) * 10);
    h->yarn_mscale = has_mul ? h->yarn_mscale_all : 1;
    return AEGIS_OK;
}

static aegis_status get_rope(reader *r)
{
    char full[KEY_MAX];
    aeg_gguf_text type = { 0 };
    bool found = false;
    r->h->rope_theta = 10000;
    AEG_TRY(real(r, "rope.freq_base", &r->h->rope_theta, NULL));
    AEG_TRY(get_sections(r));
    full_key(r, "rope.scaling.type", full);
    AEG_TRY(aeg_gguf_string(r->g, full, &type, &found, r->err));
    if (!found || aeg_gguf_text_is(type, "none"))
        return AEGIS_OK;
    /* "rope" is what older snapshots of Xing4.0 say */
    if (aeg_gguf_text_is(type, "yarn") || (is(r, "xing4_0") && aeg_gguf_text_is(type, "rope")))
        return get_yarn(r);
    return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '%s' is '%.*s', expected none or yarn", r->path, full, (int)AEG_MIN(type.n, (size_t)40),
                    type.p);
}

/* --- experts ------------------------------------------------------------------------------------------------------- */

static aegis_status get_router(reader *r)
{
    enum { UNSAID, SOFTMAX, SIGMOID };
    aeg_hparams *h = r->h;
    uint32_t gating = UNSAID;
    double scale = 0;
    AEG_TRY(count(r, "expert_gating_func", 3, &gating, NULL));
    AEG_TRY(real(r, "expert_weights_scale", &scale, NULL));
    h->router_bias = tensor_of(r, h->n_dense_layers, "exp_probs_b.bias") != NULL;
    if (gating > SIGMOID)
        return aeg_fail(r->err, AEGIS_E_MODEL, "%s: '%s.expert_gating_func' is %u, expected 1 (softmax) or 2 (sigmoid)", r->path,
                        r->arch, gating);
    /* absent in older files: a bias for the choice comes with sigmoid scores */
    const bool sigmoid = gating == UNSAID ? h->router_bias || is(r, "xing4_0") : gating == SIGMOID;
    h->router_score = sigmoid ? AEG_ROUTER_SIGMOID : AEG_ROUTER_SOFTMAX;
    h->routed_scale = scale == 0 ? 1 : (float)scale; /* 0 is "not said", never "times 0" */
    h->norm_top_k = !is(r, "olmoe") && !is(r, "deepseek2");
    return flag(r, "expert_weights_norm", &h->norm_top_k, NULL);
}

static aegis_status get_groups(reader *r)
{
    aeg_hparams *h = r->h;
    const bool sigmoid = h->router_score == AEG_ROUTER_SIGMOID;
    bool found = false;
    /* files of before the keys: the two models that have groups are known by their number of experts */
    const bool v3 = is(r, "deepseek2") && sigmoid && h->n_experts == 256, v2 = is(r, "deepseek2") && h->n_experts == 160;
    h->n_groups = 1;
    h->top_groups = 1;
    AEG_TRY(count(r, "expert_group_count", AEG_MAX_EXPERTS, &h->n_groups, &found));
    AEG_TRY(count(r, "expert_group_used_count", AEG_MAX_EXPERTS, &h->top_groups, NULL));
    if (!found && (v3 || v2)) {
        h->n_groups = 8;
        h->top_groups = v3 ? 4 : 3;
    }
    h->n_groups = AEG_MAX(h->n_groups, 1u);
    h->top_groups = h->n_groups == 1 ? 1 : AEG_MAX(h->top_groups, 1u);
    h->group_score = h->n_groups > 1 && sigmoid ? AEG_GROUP_TOP2 : AEG_GROUP_MAX;
    return AEGIS_OK;
}

static aegis_status get_widths(reader *r)
{
    aeg_hparams *h = r->h;
    uint32_t n_shared = 0;
    bool found = false;
    AEG_TRY(same_count(r, "expert_feed_forward_length", AEG_MAX_DIM, &h->expert_width, &found));
    if (!found) /* OLMoE has one kind of FFN and one key for it */
        AEG_TRY(need(r, "feed_forward_length", AEG_MAX_DIM, &h->expert_width));
    AEG_TRY(count(r, "expert_shared_feed_forward_length", AEG_MAX_DIM, &h->shared_width, &found));
    AEG_TRY(count(r, "expert_shared_count", 64, &n_shared, NULL));
    if (!found)
        h->shared_width = n_shared * h->expert_width;
    const aeg_tensor *shared = tensor_of(r, h->n_dense_layers, "ffn_gate_shexp.weight");
    if (shared != NULL && shared->rank == 2 && h->shared_width == 0)
        h->shared_width = (uint32_t)AEG_MIN(shared->dims[0], (uint64_t)AEG_MAX_DIM + 1);
    h->shared_gated = h->shared_width == 0 || is(r, "qwen35moe") || is(r, "qwen3next");
    return AEGIS_OK;
}

static aegis_status get_experts(reader *r)
{
    aeg_hparams *h = r->h;
    AEG_TRY(need(r, "expert_count", AEG_MAX_EXPERTS, &h->n_experts));
    AEG_TRY(need(r, "expert_used_count", AEG_MAX_TOP_K, &h->top_k));
    AEG_TRY(count(r, "leading_dense_block_count", h->n_layers, &h->n_dense_layers, NULL));
    if (h->n_dense_layers > 0)
        AEG_TRY(same_count(r, "feed_forward_length", AEG_MAX_DIM, &h->dense_width, &(bool){ false }));
    AEG_TRY(get_widths(r));
    AEG_TRY(get_router(r));
    return get_groups(r);
}

/* The clamp has no key: it is the family's. */
static aegis_status get_streams(reader *r)
{
    aeg_hparams *h = r->h;
    double eps = 1e-6;
    AEG_TRY(need(r, "hyper_connection.count", AEG_MAX_STREAMS, &h->hc_streams));
    AEG_TRY(need(r, "hyper_connection.sinkhorn_iterations", 1000, &h->hc_iters));
    AEG_TRY(real(r, "hyper_connection.epsilon", &eps, NULL));
    h->hc_eps = (float)eps;
    h->hc_clamp = 30;
    return AEGIS_OK;
}

/* --- the whole ------------------------------------------------------------------------------------------------------ */

static aegis_status fill(reader *r, uint32_t *n_mtp)
{
    AEG_TRY(get_architecture(r));
    AEG_TRY(get_blocks(r, n_mtp));
    AEG_TRY(get_sizes(r));
    if (is(r, "deepseek2") || is(r, "xing4_0")) {
        AEG_TRY(get_mla(r));
    } else {
        for (uint32_t i = 0; i < r->h->n_layers; i++)
            r->h->mixer[i] = AEG_MIXER_ATTENTION;
        AEG_TRY(get_attention(r));
    }
    if (is(r, "qwen35moe") || is(r, "qwen3next"))
        AEG_TRY(get_gdn(r));
    AEG_TRY(get_rope(r));
    AEG_TRY(get_experts(r));
    if (is(r, "xing4_0"))
        AEG_TRY(get_streams(r));
    AEG_TRY(aeg_config_gguf_text(r->h, r->g, r->err));
    return aeg_hparams_check(r->h, r->path, r->err);
}

aegis_status aeg_config_gguf(aeg_config *out, const aeg_gguf *g, aeg_memory *memory, aegis_error *err)
{
    *out = (aeg_config){ .memory = memory };
    aeg_hparams_init(&out->hparams);
    reader r = { .g = g, .h = &out->hparams, .path = g->source.paths[0], .err = err };
    const aegis_status status = fill(&r, &out->n_mtp);
    out->tie_embeddings = true; /* where the head is not in the file, it is the embedding */
    if (status != AEGIS_OK)
        aeg_config_free(out);
    return status;
}
