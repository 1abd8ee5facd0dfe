/* SPDX-License-Identifier: Apache-2.0 */
/* The optional members of a manifest's "hparams" object: one table reads, writes and compares them. */
#include <string.h>

#include "format/hparams_io.h"

const char aeg_mixer_letters[AEG_N_MIXERS] = { [AEG_MIXER_GDN] = 'g', [AEG_MIXER_ATTENTION] = 'a', [AEG_MIXER_MLA] = 'm' };

static const char *const qk_norms[] = { "none", "head", "full", NULL };
static const char *const router_scores[] = { "softmax", "sigmoid", NULL };
static const char *const group_scores[] = { "max", "top2", NULL };

#define FIELD(member, type, choices) { #member, offsetof(aeg_hparams, member), type, choices }
#define U32(member) FIELD(member, AEG_FIELD_U32, NULL)
#define F32(member) FIELD(member, AEG_FIELD_F32, NULL)
#define BOOL(member) FIELD(member, AEG_FIELD_BOOL, NULL)
#define CHOICE(member, choices) FIELD(member, AEG_FIELD_CHOICE, choices)

const aeg_hparams_field aeg_hparams_optional[] = {
    CHOICE(qk_norm, qk_norms), F32(qkv_clamp), BOOL(rope_interleaved), F32(yarn_factor), U32(yarn_orig_ctx),
    F32(yarn_beta_fast), F32(yarn_beta_slow), F32(yarn_mscale), F32(yarn_mscale_all), U32(q_lora), U32(kv_lora),
    U32(qk_nope), U32(qk_rope), U32(v_dim), CHOICE(router_score, router_scores), BOOL(router_bias), U32(n_groups),
    U32(top_groups), CHOICE(group_score, group_scores), F32(routed_scale), BOOL(shared_gated), U32(n_dense_layers),
    U32(dense_width), U32(hc_streams), U32(hc_iters), F32(hc_eps), F32(hc_clamp),
};
const size_t aeg_n_hparams_optional = sizeof aeg_hparams_optional / sizeof aeg_hparams_optional[0];

void aeg_hparams_init(aeg_hparams *h)
{
    *h = (aeg_hparams){
        .qk_norm = AEG_QK_NORM_HEAD, .n_groups = 1, .top_groups = 1, .routed_scale = 1, .shared_gated = true, .bos_id = -1,
        .temperature = -1, .top_p = -1, .min_p = -1, .top_k_sampling = -1, .repeat_penalty = -1, .presence_penalty = -1,
    };
}

bool aeg_hparams_same(const aeg_hparams_field *field, const aeg_hparams *a, const aeg_hparams *b)
{
    const size_t size = field->kind == AEG_FIELD_U32    ? sizeof(uint32_t)
                        : field->kind == AEG_FIELD_F32  ? sizeof(float)
                        : field->kind == AEG_FIELD_BOOL ? sizeof(bool)
                                                        : sizeof(uint8_t);
    return memcmp((const char *)a + field->offset, (const char *)b + field->offset, size) == 0;
}
