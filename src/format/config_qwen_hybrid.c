/* SPDX-License-Identifier: Apache-2.0 */
/* qwen35moe (Qwen3.5, Qwen3.6 MoE) and qwen3next (Qwen3-Next): Gated DeltaNet and gated attention by layer, a gated shared
 * expert. Norms of the residual and of heads are published without their 1. */
#include "format/config_read.h"

#include <string.h>

#include "base/checked.h"

static const char path[] = AEG_CONFIG_PATH;

static aegis_status get_layer_types(aeg_hparams *h, const json_t *text, aegis_error *err)
{
    const json_t *types = json_object_get(text, "layer_types");
    uint32_t interval = 4;
    if (types == NULL || json_is_null(types)) {
        AEG_TRY(aeg_config_u32(text, "full_attention_interval", AEG_MAX_LAYERS, &interval, err));
        if (interval == 0)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: 'full_attention_interval' is 0, expected 1 or more", path);
        for (uint32_t i = 0; i < h->n_layers; i++)
            h->mixer[i] = (i + 1) % interval == 0 ? AEG_MIXER_ATTENTION : AEG_MIXER_GDN;
        return AEGIS_OK;
    }
    if (!json_is_array(types) || json_array_size(types) != h->n_layers)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'layer_types' has %zu entries, expected %u", path,
                        json_array_size(types), h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (type != NULL && strcmp(type, "full_attention") == 0)
            h->mixer[i] = AEG_MIXER_ATTENTION;
        else if (type != NULL && strcmp(type, "linear_attention") == 0)
            h->mixer[i] = AEG_MIXER_GDN;
        else
            return aeg_fail(err, AEGIS_E_MODEL,
                            "%s: 'layer_types'[%u] is '%.60s', expected full_attention or linear_attention", path, i,
                            type == NULL ? "not a string" : type);
    }
    return AEGIS_OK;
}

static aegis_status get_hybrid(aeg_config *c, const json_t *text, aegis_error *err)
{
    aeg_hparams *h = &c->hparams;
    const aeg_config_number numbers[] = {
        { "num_key_value_heads", &h->n_kv_heads, 1, AEG_MAX_HEADS },
        { "linear_num_key_heads", &h->gdn_k_heads, 1, AEG_MAX_HEADS },
        { "linear_num_value_heads", &h->gdn_v_heads, 1, AEG_MAX_HEADS },
        { "linear_key_head_dim", &h->gdn_k_dim, 1, AEG_MAX_HEAD_DIM },
        { "linear_value_head_dim", &h->gdn_v_dim, 1, AEG_MAX_HEAD_DIM },
        { "linear_conv_kernel_dim", &h->conv_kernel, 4, 4 },
    };
    AEG_TRY(aeg_config_body(h, text, err));
    AEG_TRY(aeg_config_numbers(text, numbers, AEG_ARRAY_LEN(numbers), err));
    AEG_TRY(aeg_config_attention(h, text, err));
    AEG_TRY(aeg_config_experts(h, text, "moe_intermediate_size", err));
    AEG_TRY(aeg_config_u32(text, "shared_expert_intermediate_size", AEG_MAX_DIM, &h->shared_width, err));
    AEG_TRY(get_layer_types(h, text, err));
    c->norms_lack_one = true;
    h->attn_gate = true;
    h->norm_top_k = true;
    return AEGIS_OK;
}

aegis_status aeg_config_qwen35moe(aeg_config *c, const json_t *text, aegis_error *err)
{
    AEG_TRY(get_hybrid(c, text, err)); /* its code renormalises whatever norm_topk_prob says */
    AEG_TRY(aeg_config_bool(text, "attn_output_gate", &c->hparams.attn_gate, err));
    return aeg_config_rope(&c->hparams, text, 1e7, 0.25, err);
}

aegis_status aeg_config_qwen3next(aeg_config *c, const json_t *text, aegis_error *err)
{
    AEG_TRY(get_hybrid(c, text, err));
    AEG_TRY(aeg_config_bool(text, "norm_topk_prob", &c->hparams.norm_top_k, err));
    return aeg_config_rope(&c->hparams, text, 1e4, 0.25, err);
}
