/* SPDX-License-Identifier: Apache-2.0 */
/* olmoe: OLMoE. One norm over all heads of q and one over those of k, optionally clamped, no shared expert; the weights of
 * the chosen experts are not renormalised. */
#include "format/config_read.h"

aegis_status aeg_config_olmoe(aeg_config *c, const json_t *text, aegis_error *err)
{
    aeg_hparams *h = &c->hparams;
    AEG_TRY(aeg_config_body(h, text, err));
    AEG_TRY(aeg_config_attention(h, text, err));
    AEG_TRY(aeg_config_experts(h, text, "intermediate_size", err));
    AEG_TRY(aeg_config_bool(text, "norm_topk_prob", &h->norm_top_k, err));
    h->qk_norm = AEG_QK_NORM_FULL;
    AEG_TRY(aeg_config_f32(text, "clip_qkv", &h->qkv_clamp, err)); /* null: not clamped, which is 0 here */
    if (json_is_number(json_object_get(text, "clip_qkv")) && !(h->qkv_clamp > 0))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'clip_qkv' is %g, expected above 0 or null", AEG_CONFIG_PATH,
                        (double)h->qkv_clamp);
    return aeg_config_rope(h, text, 1e4, 1, err);
}
