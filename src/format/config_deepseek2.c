/* SPDX-License-Identifier: Apache-2.0 */
/* deepseek2: DeepSeek-V2, -V3, -R1, Kimi-K2, Moonlight, GLM-4.7-Flash: latent attention, leading dense layers, an ungated
 * shared expert, softmax or sigmoid routing with groups; and xing4_0 (Xing4.0), the same with hyper-connections. */
#include "format/config_read.h"

#include <string.h>

#include "base/checked.h"

static const char path[] = AEG_CONFIG_PATH;

static aegis_status get_attention(aeg_hparams *h, const json_t *text, aegis_error *err)
{
    const aeg_config_number numbers[] = {
        { "kv_lora_rank", &h->kv_lora, 1, AEG_MAX_DIM },
        { "qk_nope_head_dim", &h->qk_nope, 1, AEG_MAX_HEAD_DIM },
        { "qk_rope_head_dim", &h->qk_rope, 2, AEG_MAX_HEAD_DIM },
        { "v_head_dim", &h->v_dim, 1, AEG_MAX_HEAD_DIM },
    };
    AEG_TRY(aeg_config_numbers(text, numbers, AEG_ARRAY_LEN(numbers), err));
    AEG_TRY(aeg_config_u32(text, "q_lora_rank", AEG_MAX_DIM, &h->q_lora, err)); /* null: the query has no bottleneck */
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->mixer[i] = AEG_MIXER_MLA;
    h->qk_norm = AEG_QK_NORM_NONE;
    return AEGIS_OK;
}

/* --- positions ---------------------------------------------------------------------------------------------- */

static aegis_status get_yarn(aeg_hparams *h, const json_t *rope, aegis_error *err)
{
    h->yarn_beta_fast = 32;
    h->yarn_beta_slow = 1;
    h->yarn_mscale = 1;
    AEG_TRY(aeg_config_f32(rope, "factor", &h->yarn_factor, err));
    AEG_TRY(aeg_config_u32(rope, "original_max_position_embeddings", AEG_MAX_CONTEXT, &h->yarn_orig_ctx, err));
    AEG_TRY(aeg_config_f32(rope, "beta_fast", &h->yarn_beta_fast, err));
    AEG_TRY(aeg_config_f32(rope, "beta_slow", &h->yarn_beta_slow, err));
    AEG_TRY(aeg_config_f32(rope, "mscale", &h->yarn_mscale, err));
    AEG_TRY(aeg_config_f32(rope, "mscale_all_dim", &h->yarn_mscale_all, err));
    AEG_TRY(aeg_config_only_bool(rope, "truncate", true, err)); /* the ramp begins and ends at whole pairs */
    if (!(h->yarn_factor >= 1) || h->yarn_orig_ctx == 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: YaRN with 'factor' %g from 'original_max_position_embeddings' %u, expected at "
                        "least 1 and 1", path, (double)h->yarn_factor, h->yarn_orig_ctx);
    return AEGIS_OK;
}

/* `old_yarn`: snapshots of Xing4.0 call it "rope" and leave the context out. */
static aegis_status get_rope(aeg_hparams *h, const json_t *text, bool old_yarn, aegis_error *err)
{
    const json_t *rope = aeg_config_rope_object(text);
    h->rope_dim = h->qk_rope;
    h->rope_theta = 1e4;
    h->rope_interleaved = true;
    AEG_TRY(aeg_config_bool(text, "rope_interleave", &h->rope_interleaved, err));
    AEG_TRY(aeg_config_f64(text, "rope_theta", path, &h->rope_theta, err));
    if (rope == NULL)
        return AEGIS_OK;
    AEG_TRY(aeg_config_f64(rope, "rope_theta", path, &h->rope_theta, err));
    const json_t *v = json_object_get(rope, "rope_type");
    const char *type = json_string_value(v != NULL ? v : json_object_get(rope, "type"));
    if (type == NULL || strcmp(type, "default") == 0)
        return AEGIS_OK;
    if (old_yarn && strcmp(type, "rope") == 0)
        h->yarn_orig_ctx = 4096;
    else if (strcmp(type, "yarn") != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: rope of type '%.60s', expected yarn or default", path, type);
    return get_yarn(h, rope, err);
}

/* --- feed forward -------------------------------------------------------------------------------------------- */

static aegis_status get_dense(aeg_hparams *h, const json_t *text, aegis_error *err)
{
    uint32_t frequency = 1;
    AEG_TRY(aeg_config_u32(text, "first_k_dense_replace", AEG_MAX_LAYERS, &h->n_dense_layers, err));
    if (h->n_dense_layers > 0)
        AEG_TRY(aeg_json_get_u32(text, "intermediate_size", path, 1, AEG_MAX_DIM, &h->dense_width, err));
    AEG_TRY(aeg_config_u32(text, "moe_layer_freq", UINT32_MAX, &frequency, err));
    if (frequency != 1)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'moe_layer_freq' is %u, expected 1", path, frequency);
    return AEGIS_OK;
}

/* How experts are scored and grouped. GLM's config leaves the score out: it is a sigmoid where there is a bias. */
static aegis_status get_router(aeg_hparams *h, const json_t *text, aegis_error *err)
{
    const char *method = json_string_value(json_object_get(text, "topk_method"));
    const char *model = json_string_value(json_object_get(text, "model_type"));
    if (method == NULL)
        method = model != NULL && strcmp(model, "deepseek_v2") == 0 ? "greedy" : "noaux_tc";
    if (strcmp(method, "noaux_tc") == 0) {
        h->router_bias = true;
        h->group_score = AEG_GROUP_TOP2;
    } else if (strcmp(method, "greedy") != 0 && strcmp(method, "group_limited_greedy") != 0) {
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'topk_method' is '%.60s', expected noaux_tc, greedy or group_limited_greedy",
                        path, method);
    }
    const char *score = json_string_value(json_object_get(text, "scoring_func"));
    if (score == NULL)
        score = h->router_bias ? "sigmoid" : "softmax";
    if (strcmp(score, "sigmoid") != 0 && strcmp(score, "softmax") != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'scoring_func' is '%.60s', expected sigmoid or softmax", path, score);
    h->router_score = strcmp(score, "sigmoid") == 0 ? AEG_ROUTER_SIGMOID : AEG_ROUTER_SOFTMAX;
    if (strcmp(method, "greedy") != 0) {
        AEG_TRY(aeg_config_u32(text, "n_group", AEG_MAX_EXPERTS, &h->n_groups, err));
        AEG_TRY(aeg_config_u32(text, "topk_group", AEG_MAX_EXPERTS, &h->top_groups, err));
    }
    if (h->n_groups == 1)
        h->group_score = AEG_GROUP_MAX; /* nothing to score: one form of equal models */
    return AEGIS_OK;
}

static aegis_status get_experts(aeg_hparams *h, const json_t *text, aegis_error *err)
{
    uint32_t n_shared = 0;
    const aeg_config_number numbers[] = {
        { "n_routed_experts", &h->n_experts, 1, AEG_MAX_EXPERTS },
        { "num_experts_per_tok", &h->top_k, 1, AEG_MAX_TOP_K },
        { "moe_intermediate_size", &h->expert_width, 1, AEG_MAX_DIM },
    };
    AEG_TRY(aeg_config_numbers(text, numbers, AEG_ARRAY_LEN(numbers), err));
    AEG_TRY(aeg_config_u32(text, "n_shared_experts", AEG_MAX_EXPERTS, &n_shared, err));
    if ((uint64_t)n_shared * h->expert_width > AEG_MAX_DIM)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u shared experts of width %u, expected %d together at most", path, n_shared,
                        h->expert_width, AEG_MAX_DIM);
    h->shared_width = n_shared * h->expert_width; /* they are stored and computed as one */
    h->shared_gated = false;
    AEG_TRY(aeg_config_bool(text, "norm_topk_prob", &h->norm_top_k, err));
    AEG_TRY(aeg_config_f32(text, "routed_scaling_factor", &h->routed_scale, err));
    AEG_TRY(get_dense(h, text, err));
    return get_router(h, text, err);
}

aegis_status aeg_config_deepseek2(aeg_config *c, const json_t *text, aegis_error *err)
{
    AEG_TRY(aeg_config_body(&c->hparams, text, err));
    AEG_TRY(get_attention(&c->hparams, text, err));
    AEG_TRY(get_rope(&c->hparams, text, false, err));
    return get_experts(&c->hparams, text, err);
}

/* --- xing4_0 --------------------------------------------------------------------------------------------------- */

static aegis_status get_streams(aeg_hparams *h, const json_t *text, aegis_error *err)
{
    float low = -30, high = 30;
    h->hc_streams = 4;
    h->hc_iters = 20;
    h->hc_eps = 1e-6f;
    AEG_TRY(aeg_config_u32(text, "num_residual_streams", AEG_MAX_STREAMS, &h->hc_streams, err)); /* other forks' names */
    AEG_TRY(aeg_config_u32(text, "mhc_sinkhorn_iterations", 1000, &h->hc_iters, err));
    AEG_TRY(aeg_config_u32(text, "hc_mult", AEG_MAX_STREAMS, &h->hc_streams, err));
    AEG_TRY(aeg_config_u32(text, "hc_sinkhorn_iters", 1000, &h->hc_iters, err));
    AEG_TRY(aeg_config_f32(text, "hc_eps", &h->hc_eps, err));
    AEG_TRY(aeg_config_f32(text, "mhc_h_res_clamp_min", &low, err));
    AEG_TRY(aeg_config_f32(text, "mhc_h_res_clamp_max", &high, err));
    if (!(low == -high))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'mhc_h_res_clamp_min' is %g and 'mhc_h_res_clamp_max' %g, expected opposite numbers",
                        path, (double)low, (double)high);
    h->hc_clamp = high;
    if (h->hc_streams < 2)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'hc_mult' is %u, expected 2 or more", path, h->hc_streams);
    return AEGIS_OK;
}

aegis_status aeg_config_xing4(aeg_config *c, const json_t *text, aegis_error *err)
{
    AEG_TRY(aeg_config_body(&c->hparams, text, err));
    AEG_TRY(get_attention(&c->hparams, text, err));
    AEG_TRY(get_rope(&c->hparams, text, true, err));
    AEG_TRY(get_experts(&c->hparams, text, err));
    return get_streams(&c->hparams, text, err);
}
