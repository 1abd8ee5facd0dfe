/* SPDX-License-Identifier: Apache-2.0 */
/* Every count within its limits, every relation between them; what a model does not use is 0, so that equal models have
 * equal manifests. */
#include <math.h>

#include "base/checked.h"
#include "format/hparams_io.h"

typedef struct {
    const char *name;
    uint32_t value, min, max;
} limit;

static aegis_status check_list(const limit *limits, size_t n, const char *path, aegis_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (limits[i].value < limits[i].min || limits[i].value > limits[i].max)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: %s is %u, expected %u to %u", path, limits[i].name,
                            limits[i].value, limits[i].min, limits[i].max);
    return AEGIS_OK;
}

/* Members that only a kind of layer has: their limits if there is one, else 0. */
static aegis_status check_used(const limit *limits, size_t n, bool used, const char *unused, const char *path,
                               aegis_error *err)
{
    if (used)
        return check_list(limits, n, path, err);
    for (size_t i = 0; i < n; i++)
        if (limits[i].value != 0)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: %s is %u, expected 0 %s", path, limits[i].name, limits[i].value, unused);
    return AEGIS_OK;
}

typedef struct {
    const char *name;
    float value, min, max; /* both included */
} real_limit;

static aegis_status check_reals(const real_limit *limits, size_t n, const char *path, aegis_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!(limits[i].value >= limits[i].min && limits[i].value <= limits[i].max))
            return aeg_fail(err, AEGIS_E_MODEL, "%s: %s is %g, expected %g to %g", path, limits[i].name,
                            (double)limits[i].value, (double)limits[i].min, (double)limits[i].max);
    return AEGIS_OK;
}

static aegis_status check_sizes(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const limit limits[] = {
        { "vocab_size", h->vocab_size, 1, AEG_MAX_DIM },
        { "hidden_size", h->hidden_size, 1, AEG_MAX_DIM },
        { "n_layers", h->n_layers, 1, AEG_MAX_LAYERS },
        { "max_n_ctx", h->max_n_ctx, 1, AEG_MAX_CONTEXT },
        { "n_eos", h->n_eos, 0, AEG_MAX_EOS },
    };
    AEG_TRY(check_list(limits, AEG_ARRAY_LEN(limits), path, err));
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (h->mixer[i] >= AEG_N_MIXERS)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: layer %u has mixer %u", path, i, h->mixer[i]);
    if (!(h->rms_eps > 0) || h->rms_eps > 1)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: rms_eps is %g, expected above 0, at most 1", path, (double)h->rms_eps);
    return AEGIS_OK;
}

static bool has_mixer(const aeg_hparams *h, aeg_mixer mixer)
{
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (h->mixer[i] == mixer)
            return true;
    return false;
}

static aegis_status too_wide(const char *path, aegis_error *err)
{
    return aeg_fail(err, AEGIS_E_MODEL, "%s: the heads together are wider than %d", path, AEG_MAX_DIM);
}

/* --- mixers -------------------------------------------------------------------------------------------------- */

static aegis_status check_gdn(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const bool used = has_mixer(h, AEG_MIXER_GDN);
    const limit limits[] = {
        { "gdn_k_heads", h->gdn_k_heads, 1, AEG_MAX_HEADS },  { "gdn_v_heads", h->gdn_v_heads, 1, AEG_MAX_HEADS },
        { "gdn_k_dim", h->gdn_k_dim, 1, AEG_MAX_HEAD_DIM },   { "gdn_v_dim", h->gdn_v_dim, 1, AEG_MAX_HEAD_DIM },
        { "conv_kernel", h->conv_kernel, 4, 4 },
    };
    AEG_TRY(check_used(limits, AEG_ARRAY_LEN(limits), used, "without a Gated DeltaNet layer", path, err));
    if (!used)
        return AEGIS_OK;
    if (h->gdn_v_heads % h->gdn_k_heads != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u value heads over %u key heads, expected a multiple", path,
                        h->gdn_v_heads, h->gdn_k_heads);
    if (2 * (uint64_t)h->gdn_k_heads * h->gdn_k_dim + (uint64_t)h->gdn_v_heads * h->gdn_v_dim > AEG_MAX_DIM)
        return too_wide(path, err);
    return AEGIS_OK;
}

static aegis_status check_attention(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const bool used = has_mixer(h, AEG_MIXER_ATTENTION);
    const limit heads = { "n_heads", h->n_heads, 1, AEG_MAX_HEADS };
    const limit limits[] = {
        { "n_kv_heads", h->n_kv_heads, 1, AEG_MAX_HEADS },
        { "head_dim", h->head_dim, 2, AEG_MAX_HEAD_DIM },
    };
    const real_limit clamp = { "qkv_clamp", h->qkv_clamp, 0, 1e30f };
    AEG_TRY(check_used(&heads, 1, used || has_mixer(h, AEG_MIXER_MLA), "without an attention layer", path, err));
    AEG_TRY(check_used(limits, AEG_ARRAY_LEN(limits), used, "without a layer of grouped-query attention", path, err));
    AEG_TRY(check_reals(&clamp, 1, path, err));
    if (h->qk_norm > AEG_QK_NORM_FULL)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: qk_norm is %u, expected 0 to %d", path, h->qk_norm, AEG_QK_NORM_FULL);
    if (!used)
        return AEGIS_OK;
    if (h->qk_norm == AEG_QK_NORM_FULL && h->attn_gate)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: qk_norm over all heads with attn_gate, expected one of them", path);
    if (h->n_heads % h->n_kv_heads != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u heads over %u KV heads, expected a multiple", path, h->n_heads,
                        h->n_kv_heads);
    if ((uint64_t)h->n_heads * h->head_dim * 2 > AEG_MAX_DIM)
        return too_wide(path, err);
    return AEGIS_OK;
}

static aegis_status check_mla(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const bool used = has_mixer(h, AEG_MIXER_MLA);
    const limit limits[] = {
        { "q_lora", h->q_lora, 0, AEG_MAX_DIM },             { "kv_lora", h->kv_lora, 1, AEG_MAX_DIM },
        { "qk_nope", h->qk_nope, 1, AEG_MAX_HEAD_DIM },      { "qk_rope", h->qk_rope, 2, AEG_MAX_HEAD_DIM },
        { "v_dim", h->v_dim, 1, AEG_MAX_HEAD_DIM },
    };
    AEG_TRY(check_used(limits, AEG_ARRAY_LEN(limits), used, "without a layer of multi-head latent attention", path, err));
    if (!used)
        return AEGIS_OK;
    if (h->rope_dim != h->qk_rope)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: rope_dim is %u, expected qk_rope, which is %u", path, h->rope_dim, h->qk_rope);
    const uint64_t widest = AEG_MAX(AEG_MAX((uint64_t)h->qk_nope + h->qk_rope, (uint64_t)h->v_dim), (uint64_t)h->kv_lora);
    if (h->n_heads * widest > AEG_MAX_DIM || (uint64_t)h->kv_lora + h->qk_rope > AEG_MAX_DIM)
        return too_wide(path, err);
    return AEGIS_OK;
}

/* --- positions ------------------------------------------------------------------------------------------------- */

static aegis_status check_yarn(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const bool used = h->yarn_factor != 0;
    const limit context = { "yarn_orig_ctx", h->yarn_orig_ctx, 1, AEG_MAX_CONTEXT };
    const real_limit limits[] = {
        { "yarn_factor", h->yarn_factor, 1, 1e6f },       { "yarn_beta_slow", h->yarn_beta_slow, 1e-3f, 1e6f },
        { "yarn_beta_fast", h->yarn_beta_fast, h->yarn_beta_slow, 1e6f }, { "yarn_mscale", h->yarn_mscale, 0, 100 },
        { "yarn_mscale_all", h->yarn_mscale_all, 0, 100 },
    };
    AEG_TRY(check_used(&context, 1, used, "without YaRN", path, err));
    if (used)
        return check_reals(limits, AEG_ARRAY_LEN(limits), path, err);
    for (size_t i = 1; i < AEG_ARRAY_LEN(limits); i++)
        if (limits[i].value != 0)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: %s is %g, expected 0 without YaRN", path, limits[i].name,
                            (double)limits[i].value);
    return AEGIS_OK;
}

static aegis_status check_rope(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const uint32_t *m = h->mrope_section;
    const uint32_t most = has_mixer(h, AEG_MIXER_ATTENTION) ? h->head_dim : (uint32_t)AEG_MAX_HEAD_DIM;
    const limit rope = { "rope_dim", h->rope_dim, 0, most };
    AEG_TRY(check_list(&rope, 1, path, err));
    if (h->rope_dim % 2 != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u dimensions rotate, expected an even number", path, h->rope_dim);
    const uint64_t sections = (uint64_t)m[0] + m[1] + m[2];
    if (sections != 0 && sections != h->rope_dim / 2)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: mrope_section adds up to %llu, expected %u", path,
                        (unsigned long long)sections, h->rope_dim / 2);
    if (!(h->rope_theta >= 1) || h->rope_theta > 1e15)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: rope_theta is %g, expected 1 to 1e15", path, h->rope_theta);
    return check_yarn(h, path, err);
}

/* --- feed forward ---------------------------------------------------------------------------------------------- */

static aegis_status check_experts(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const limit limits[] = {
        { "n_experts", h->n_experts, 1, AEG_MAX_EXPERTS },
        { "top_k", h->top_k, 1, AEG_MIN(h->n_experts, (uint32_t)AEG_MAX_TOP_K) },
        { "expert_width", h->expert_width, 1, AEG_MAX_DIM },
        { "shared_width", h->shared_width, 0, AEG_MAX_DIM },
        { "router_score", h->router_score, 0, AEG_ROUTER_SIGMOID },
        { "group_score", h->group_score, 0, AEG_GROUP_TOP2 },
        { "n_groups", h->n_groups, 1, h->n_experts },
        { "top_groups", h->top_groups, 1, h->n_groups },
        { "n_dense_layers", h->n_dense_layers, 0, h->n_layers - 1 },
    };
    const real_limit scale = { "routed_scale", h->routed_scale, 1e-6f, 1e6f };
    const limit dense = { "dense_width", h->dense_width, 1, AEG_MAX_DIM };
    AEG_TRY(check_list(limits, AEG_ARRAY_LEN(limits), path, err));
    AEG_TRY(check_reals(&scale, 1, path, err));
    AEG_TRY(check_used(&dense, 1, h->n_dense_layers > 0, "without a layer without experts", path, err));
    if (h->n_experts % h->n_groups != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u experts in %u groups, expected a multiple", path, h->n_experts, h->n_groups);
    const uint32_t in_group = h->n_experts / h->n_groups;
    if (h->top_k > h->top_groups * in_group)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: top_k is %u, expected at most the %u experts of %u groups", path, h->top_k,
                        h->top_groups * in_group, h->top_groups);
    if (h->n_groups > 1 && h->group_score == AEG_GROUP_TOP2 && in_group < 2)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: groups of 1 expert scored by their two best", path);
    return AEGIS_OK;
}

static aegis_status check_streams(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const bool used = h->hc_streams != 0;
    const limit limits[] = {
        { "hc_streams", h->hc_streams, 2, AEG_MAX_STREAMS },
        { "hc_iters", h->hc_iters, 1, 1000 },
    };
    const real_limit reals[] = { { "hc_eps", h->hc_eps, 1e-30f, 1 }, { "hc_clamp", h->hc_clamp, 1e-3f, 1e4f } };
    AEG_TRY(check_used(limits, AEG_ARRAY_LEN(limits), used, "without hyper-connections", path, err));
    if (!used)
        return h->hc_eps == 0 && h->hc_clamp == 0
                   ? AEGIS_OK
                   : aeg_fail(err, AEGIS_E_MODEL, "%s: hc_eps is %g and hc_clamp %g, expected 0 without hyper-connections", path,
                              (double)h->hc_eps, (double)h->hc_clamp);
    if ((uint64_t)h->hc_streams * h->hidden_size > AEG_MAX_DIM)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u streams of %u values are wider than %d", path, h->hc_streams,
                        h->hidden_size, AEG_MAX_DIM);
    return check_reals(reals, AEG_ARRAY_LEN(reals), path, err);
}

/* --- text ---------------------------------------------------------------------------------------------------------- */

/* A negative number means "not given". */
static aegis_status check_sampling(const aeg_hparams *h, const char *path, aegis_error *err)
{
    const struct {
        const char *name;
        double value, max;
    } limits[] = {
        { "temperature", h->temperature, 100 },       { "top_p", h->top_p, 1 },
        { "min_p", h->min_p, 1 },                     { "repeat_penalty", h->repeat_penalty, 100 },
        { "presence_penalty", h->presence_penalty, 100 },
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (!(limits[i].value <= limits[i].max))
            return aeg_fail(err, AEGIS_E_MODEL, "%s: %s is %g, expected at most %g", path, limits[i].name,
                            limits[i].value, limits[i].max);
    if (h->bos_id < -1 || h->bos_id >= (int64_t)h->vocab_size)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: bos id %d, expected below %u", path, h->bos_id, h->vocab_size);
    for (uint32_t i = 0; i < h->n_eos; i++)
        if (h->eos[i] >= h->vocab_size)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: eos id %u, expected below %u", path, h->eos[i], h->vocab_size);
    return AEGIS_OK;
}

aegis_status aeg_hparams_check(const aeg_hparams *h, const char *path, aegis_error *err)
{
    AEG_TRY(check_sizes(h, path, err));
    AEG_TRY(check_gdn(h, path, err));
    AEG_TRY(check_attention(h, path, err));
    AEG_TRY(check_mla(h, path, err));
    AEG_TRY(check_rope(h, path, err));
    AEG_TRY(check_experts(h, path, err));
    AEG_TRY(check_streams(h, path, err));
    return check_sampling(h, path, err);
}
