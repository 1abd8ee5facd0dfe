/* SPDX-License-Identifier: Apache-2.0 */
/* qwen3moe: Qwen3 MoE (Qwen3-30B-A3B, Qwen3-235B-A22B, Qwen3-Coder). Attention without a gate, a norm per head, no shared
 * expert. */
#include "format/config_read.h"

aegis_status aeg_config_qwen3moe(aeg_config *c, const json_t *text, aegis_error *err)
{
    aeg_hparams *h = &c->hparams;
    AEG_TRY(aeg_config_body(h, text, err));
    AEG_TRY(aeg_config_attention(h, text, err));
    AEG_TRY(aeg_config_experts(h, text, "moe_intermediate_size", err));
    AEG_TRY(aeg_config_bool(text, "norm_topk_prob", &h->norm_top_k, err)); /* false if it is absent */
    return aeg_config_rope(h, text, 1e6, 1, err);
}
