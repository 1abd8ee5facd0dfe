/* SPDX-License-Identifier: Apache-2.0 */
/* What the config.json of each family becomes, and which variants of a family are refused. */
#include "support/t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "format/config.h"
#include "format/family.h"
#include "format/hparams_io.h"
#include "format/layout.h"

#define BODY "\"vocab_size\": 512, \"hidden_size\": 256, \"num_hidden_layers\": 4, \"max_position_embeddings\": 4096, " \
             "\"num_attention_heads\": 8, \"rms_norm_eps\": 1e-5, \"hidden_act\": \"silu\", \"attention_bias\": false, "
#define LATENT "\"q_lora_rank\": 64, \"kv_lora_rank\": 48, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 16, " \
               "\"v_head_dim\": 24, \"intermediate_size\": 512, \"first_k_dense_replace\": 1, \"moe_layer_freq\": 1, " \
               "\"n_routed_experts\": 16, \"num_experts_per_tok\": 4, \"moe_intermediate_size\": 64, \"n_shared_experts\": 2, "
#define YARN "\"rope_theta\": 10000.0, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40, " \
             "\"original_max_position_embeddings\": 4096, \"beta_fast\": 32, \"beta_slow\": 1, \"mscale\": 1.0, \"mscale_all_dim\": 0.707}, "
#define V3 "\"scoring_func\": \"sigmoid\", \"topk_method\": \"noaux_tc\", \"n_group\": 4, \"topk_group\": 2, " \
           "\"norm_topk_prob\": true, \"routed_scaling_factor\": 2.5"

static const char qwen3moe[] = "{\"model_type\": \"qwen3_moe\", " BODY
    "\"num_key_value_heads\": 2, \"head_dim\": 64, \"num_experts\": 16, \"num_experts_per_tok\": 4, \"moe_intermediate_size\": 64, "
    "\"intermediate_size\": 6144, \"decoder_sparse_step\": 1, \"mlp_only_layers\": [], \"norm_topk_prob\": true, "
    "\"rope_theta\": 1000000.0, \"rope_scaling\": null, \"sliding_window\": null, \"use_sliding_window\": false}";
static const char olmoe[] = "{\"model_type\": \"olmoe\", " BODY
    "\"num_key_value_heads\": 8, \"num_experts\": 16, \"num_experts_per_tok\": 4, \"intermediate_size\": 32, "
    "\"norm_topk_prob\": false, \"clip_qkv\": null, \"rope_theta\": 10000.0, \"rope_scaling\": null}";
static const char deepseek_v3[] = "{\"model_type\": \"deepseek_v3\", " BODY LATENT YARN V3 "}";
static const char deepseek_v2[] = "{\"model_type\": \"deepseek_v2\", " BODY LATENT
    "\"scoring_func\": \"softmax\", \"topk_method\": \"greedy\", \"n_group\": 1, \"topk_group\": 1, \"norm_topk_prob\": false}";
static const char xing4[] = "{\"model_type\": \"xing4_0\", " BODY LATENT YARN V3
    ", \"hc_mult\": 4, \"hc_sinkhorn_iters\": 20, \"hc_eps\": 1e-6, \"mhc_h_res_clamp_min\": -30, \"mhc_h_res_clamp_max\": 30}";
static const char dense[] = "{\"model_type\": \"qwen3\", \"architectures\": [\"Qwen3ForCausalLM\"], \"hidden_size\": 256}";

/* `from` (NULL: nothing) in `text` becomes `to`. */
static aegis_status load(aeg_hparams *out, const char *text, const char *from, const char *to, aegis_error *err)
{
    T_MEMORY(memory);
    aeg_config c;
    char edited[2048];
    const char *folder = t_folder(), *at = from == NULL ? text + strlen(text) : strstr(text, from);
    T_CHECK(at != NULL);
    const int n = snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - text), text, from == NULL ? "" : to,
                           at + (from == NULL ? 0 : strlen(from)));
    t_write_file(t_path(folder, "config.json"), edited, (size_t)n);
    const aegis_status status = aeg_config_load(&c, folder, &memory, err);
    if (out != NULL && status == AEGIS_OK)
        *out = c.hparams;
    aeg_config_free(&c);
    t_no_leak(&memory);
    T_CHECK(aeg_json_memory()->in_use == 0);
    return status;
}

static aeg_hparams loads(const char *text, const char *from, const char *to)
{
    aeg_hparams h;
    aegis_error err = { 0 };
    T_OK(load(&h, text, from, to, &err), &err);
    return h;
}

/* The parts of layers, by name and shape. */
static bool has_part(const aeg_hparams *h, const char *name, uint32_t n_rows, uint32_t n_cols)
{
    aeg_layout_entry e;
    for (uint32_t i = 0; i < aeg_layout_count(h); i++) {
        aeg_layout_at(&e, h, i);
        if (strcmp(e.name, name) == 0)
            return e.vector == (n_rows == 0) && e.n_rows == (n_rows == 0 ? 1 : n_rows) && e.n_cols == n_cols;
    }
    return false;
}

static bool has_name(const aeg_hparams *h, const char *name)
{
    aeg_layout_entry e;
    for (uint32_t i = 0; i < aeg_layout_count(h); i++) {
        aeg_layout_at(&e, h, i);
        if (strcmp(e.name, name) == 0)
            return true;
    }
    return false;
}

static void qwen3_moe(void **state)
{
    (void)state;
    aeg_hparams h = loads(qwen3moe, NULL, NULL);
    T_CHECK(strcmp(h.family, "qwen3moe") == 0 && h.mixer[0] == AEG_MIXER_ATTENTION && h.mixer[3] == AEG_MIXER_ATTENTION);
    T_CHECK(h.qk_norm == AEG_QK_NORM_HEAD && !h.attn_gate && h.norm_top_k && h.shared_width == 0 && h.expert_width == 64);
    T_CHECK(h.rope_dim == 64 && h.rope_theta == 1e6 && h.rms_eps == 1e-5f && h.gdn_k_heads == 0);
    T_CHECK(has_part(&h, "layers.3.attn.q", 512, 256) && has_part(&h, "layers.3.attn.k_norm", 0, 64));
    T_CHECK(!has_name(&h, "layers.0.shared.up") && aeg_layout_count(&h) == 4 * 9 + 2);
    h = loads(qwen3moe, "\"norm_topk_prob\": true, ", ""); /* Hugging Face's default */
    T_CHECK(!h.norm_top_k);
    h = loads(qwen3moe, "\"num_experts\"", "\"num_local_experts\"");
    T_CHECK(h.n_experts == 16);
    h = loads(qwen3moe, "\"rope_theta\": 1000000.0, \"rope_scaling\": null", "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 5e6}");
    T_CHECK(h.rope_theta == 5e6);
}

static void olmoe_config(void **state)
{
    (void)state;
    aeg_hparams h = loads(olmoe, NULL, NULL);
    T_CHECK(strcmp(h.family, "olmoe") == 0 && h.qk_norm == AEG_QK_NORM_FULL && h.qkv_clamp == 0 && !h.norm_top_k);
    T_CHECK(h.head_dim == 32 && h.rope_dim == 32 && !h.rope_interleaved && h.expert_width == 32 && h.shared_width == 0);
    T_CHECK(has_part(&h, "layers.0.attn.q_norm", 0, 256));
    h = loads(olmoe, "\"clip_qkv\": null", "\"clip_qkv\": 8.5");
    T_CHECK(h.qkv_clamp == 8.5f);
    h = loads(olmoe, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 2");
    T_CHECK(has_part(&h, "layers.0.attn.q_norm", 0, 256) && has_part(&h, "layers.0.attn.k_norm", 0, 64));
}

static void deepseek(void **state)
{
    (void)state;
    aeg_hparams h = loads(deepseek_v3, NULL, NULL);
    T_CHECK(strcmp(h.family, "deepseek2") == 0 && h.mixer[3] == AEG_MIXER_MLA && h.n_kv_heads == 0 && h.head_dim == 0);
    T_CHECK(h.q_lora == 64 && h.kv_lora == 48 && h.qk_nope == 32 && h.qk_rope == 16 && h.v_dim == 24 && h.rope_dim == 16);
    T_CHECK(h.rope_interleaved && h.yarn_factor == 40 && h.yarn_orig_ctx == 4096 && h.yarn_mscale_all == 0.707f);
    T_CHECK(h.n_dense_layers == 1 && h.dense_width == 512 && h.shared_width == 128 && !h.shared_gated);
    T_CHECK(h.router_score == AEG_ROUTER_SIGMOID && h.router_bias && h.n_groups == 4 && h.top_groups == 2);
    T_CHECK(h.group_score == AEG_GROUP_TOP2 && h.norm_top_k && h.routed_scale == 2.5f && h.qk_norm == AEG_QK_NORM_NONE);
    T_CHECK(has_part(&h, "layers.0.dense.down", 256, 512) && !has_name(&h, "layers.0.router") && !has_name(&h, "layers.1.dense.up"));
    T_CHECK(has_part(&h, "layers.1.router_bias", 0, 16) && has_part(&h, "layers.1.shared.down", 256, 128));
    T_CHECK(!has_name(&h, "layers.1.shared_gate") && has_part(&h, "layers.0.mla.q_a", 64, 256));
    T_CHECK(has_part(&h, "layers.0.mla.q_b", 8 * 48, 64) && has_part(&h, "layers.0.mla.kv_a", 64, 256));
    T_CHECK(has_part(&h, "layers.0.mla.k_b", 8 * 48, 32) && has_part(&h, "layers.0.mla.v_b", 8 * 24, 48));
    T_CHECK(has_part(&h, "layers.0.mla.o", 256, 8 * 24) && !has_name(&h, "layers.0.hc_ffn.fn"));
    T_CHECK(aeg_moe_layers(&h) == 3);

    h = loads(deepseek_v2, "\"q_lora_rank\": 64", "\"q_lora_rank\": null");
    T_CHECK(h.q_lora == 0 && h.router_score == AEG_ROUTER_SOFTMAX && !h.router_bias && h.n_groups == 1 && !h.norm_top_k);
    T_CHECK(has_part(&h, "layers.0.mla.q_b", 8 * 48, 256) && !has_name(&h, "layers.0.mla.q_a") && h.yarn_factor == 0);
    h = loads(deepseek_v2, "\"scoring_func\": \"softmax\", \"topk_method\": \"greedy\", ", ""); /* as that model is known */
    T_CHECK(h.router_score == AEG_ROUTER_SOFTMAX && !h.router_bias);
    h = loads(deepseek_v2, "\"greedy\", \"n_group\": 1, \"topk_group\": 1", "\"group_limited_greedy\", \"n_group\": 8, \"topk_group\": 3");
    T_CHECK(h.n_groups == 8 && h.top_groups == 3 && h.group_score == AEG_GROUP_MAX);
    h = loads(deepseek_v3, "\"first_k_dense_replace\": 1", "\"first_k_dense_replace\": 0");
    T_CHECK(h.n_dense_layers == 0 && h.dense_width == 0);
    h = loads(deepseek_v3, "\"deepseek_v3\"", "\"glm4_moe_lite\"");
    T_CHECK(strcmp(h.family, "deepseek2") == 0);
}

static void xing(void **state)
{
    (void)state;
    aeg_hparams h = loads(xing4, NULL, NULL);
    T_CHECK(strcmp(h.family, "xing4_0") == 0 && h.hc_streams == 4 && h.hc_iters == 20 && h.hc_eps == 1e-6f && h.hc_clamp == 30);
    T_CHECK(has_part(&h, "layers.0.hc_attn.fn", 24, 1024) && has_part(&h, "layers.3.hc_ffn.base", 0, 24));
    T_CHECK(has_part(&h, "layers.3.hc_ffn.scale", 0, 3));
    h = loads(xing4, "\"hc_mult\": 4, \"hc_sinkhorn_iters\": 20", "\"num_residual_streams\": 2, \"mhc_sinkhorn_iterations\": 7");
    T_CHECK(h.hc_streams == 2 && h.hc_iters == 7 && has_part(&h, "layers.0.hc_attn.fn", 8, 512));
    h = loads(xing4, ", \"mhc_h_res_clamp_min\": -30, \"mhc_h_res_clamp_max\": 30", "");
    T_CHECK(h.hc_clamp == 30);
    h = loads(xing4, "\"type\": \"yarn\", \"factor\": 40, \"original_max_position_embeddings\": 4096", "\"type\": \"rope\", \"factor\": 40");
    T_CHECK(h.yarn_factor == 40 && h.yarn_orig_ctx == 4096);
}

static const struct {
    const char *text, *from, *to, *part;
} refusals[] = {
    { qwen3moe, "\"qwen3_moe\"", "\"mixtral\"", "model_type 'mixtral' (architecture 'not given') is not supported; this version runs qwen3_5_moe" },
    { dense, NULL, "", "model_type 'qwen3' (architecture 'Qwen3ForCausalLM') without experts (a dense model); aegis runs Mixture-of-Experts "
      "models only, in this version qwen3_5_moe" },
    { dense, "256", "256, \"text_config\": {\"num_local_experts\": 8}", "architecture 'Qwen3ForCausalLM') is not supported" },
    { qwen3moe, "\"qwen3_moe\"", "7", "model_type 'missing'" },
    { qwen3moe, "\"attention_bias\": false", "\"attention_bias\": true", "'attention_bias' is true" },
    { qwen3moe, "\"use_sliding_window\": false", "\"use_sliding_window\": true", "'use_sliding_window' is true" },
    { qwen3moe, "\"mlp_only_layers\": []", "\"mlp_only_layers\": [0]", "'mlp_only_layers'" },
    { qwen3moe, "\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 2", "'decoder_sparse_step' is 2" },
    { qwen3moe, "\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"linear\"}", "'type' is 'linear'" },
    { qwen3moe, "\"rope_scaling\": null", "\"rope_scaling\": {\"rope_type\": \"yarn\"}", "'rope_type' is 'yarn'" },
    { qwen3moe, "\"num_experts\": 16, ", "", "'num_experts' is nothing" },
    { olmoe, "\"clip_qkv\": null", "\"clip_qkv\": 0", "'clip_qkv' is 0" },
    { olmoe, "\"clip_qkv\": null", "\"clip_qkv\": -8", "'clip_qkv' is -8" },
    { olmoe, "\"clip_qkv\": null", "\"clip_qkv\": \"8\"", "clip_qkv" },
    { olmoe, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 0", "'num_key_value_heads' is 0" },
    { olmoe, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 3", "8 heads over 3 KV heads" },
    { deepseek_v3, "\"kv_lora_rank\": 48, ", "", "'kv_lora_rank' is nothing" },
    { deepseek_v3, "\"qk_rope_head_dim\": 16", "\"qk_rope_head_dim\": 15", "15 dimensions rotate" },
    { deepseek_v3, "\"moe_layer_freq\": 1", "\"moe_layer_freq\": 2", "'moe_layer_freq' is 2" },
    { deepseek_v3, "\"first_k_dense_replace\": 1", "\"first_k_dense_replace\": 4", "n_dense_layers is 4" },
    { deepseek_v3, "\"n_group\": 4", "\"n_group\": 5", "16 experts in 5 groups" },
    { deepseek_v3, "\"n_group\": 4, \"topk_group\": 2", "\"n_group\": 16, \"topk_group\": 8", "groups of 1 expert" },
    { deepseek_v3, "\"topk_group\": 2", "\"topk_group\": 5", "top_groups is 5" },
    { deepseek_v3, "\"topk_group\": 2", "\"topk_group\": 0", "top_groups is 0" },
    { deepseek_v3, "\"noaux_tc\"", "\"hash\"", "'topk_method' is 'hash'" },
    { deepseek_v3, "\"sigmoid\"", "\"sqrtsoftplus\"", "'scoring_func' is 'sqrtsoftplus'" },
    { deepseek_v3, "\"routed_scaling_factor\": 2.5", "\"routed_scaling_factor\": 0", "routed_scale is 0" },
    { deepseek_v3, "\"type\": \"yarn\"", "\"type\": \"linear\"", "type 'linear'" },
    { deepseek_v3, "\"type\": \"yarn\"", "\"type\": \"rope\"", "type 'rope'" },
    { deepseek_v3, "\"factor\": 40", "\"factor\": 0.5", "'factor' 0.5" },
    { deepseek_v3, "\"factor\": 40", "\"truncate\": false, \"factor\": 40", "'truncate' is false" },
    { deepseek_v3, "\"original_max_position_embeddings\": 4096, ", "", "'original_max_position_embeddings' 0" },
    { deepseek_v3, "\"beta_slow\": 1", "\"beta_slow\": 64", "yarn_beta_fast is 32" },
    { deepseek_v3, "\"n_shared_experts\": 2", "\"n_shared_experts\": 5000", "5000" },
    { xing4, "\"hc_mult\": 4", "\"hc_mult\": 1", "'hc_mult' is 1" },
    { xing4, "\"hc_mult\": 4", "\"hc_mult\": 17", "'hc_mult' is 17" },
    { xing4, "\"hc_sinkhorn_iters\": 20", "\"hc_sinkhorn_iters\": 0", "hc_iters is 0" },
    { xing4, "\"hc_eps\": 1e-6", "\"hc_eps\": 0", "hc_eps is 0" },
    { xing4, "\"mhc_h_res_clamp_min\": -30", "\"mhc_h_res_clamp_min\": -20", "'mhc_h_res_clamp_min' is -20" },
};

static void variants_that_we_do_not_run(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        aegis_error err = { 0 };
        T_FAILS(load(NULL, refusals[i].text, refusals[i].from, refusals[i].to, &err), &err, AEGIS_E_MODEL, refusals[i].part);
    }
}

static void families_by_name(void **state)
{
    (void)state;
    T_CHECK(aeg_family_known("qwen35moe") && aeg_family_known("olmoe") && aeg_family_known("xing4_0"));
    T_CHECK(!aeg_family_known("") && !aeg_family_known("qwen3") && !aeg_family_known("moe") && !aeg_family_known("olmoe, deepseek2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qwen3_moe), cmocka_unit_test(olmoe_config), cmocka_unit_test(deepseek), cmocka_unit_test(xing),
        cmocka_unit_test(variants_that_we_do_not_run), cmocka_unit_test(families_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
