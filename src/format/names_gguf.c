/* SPDX-License-Identifier: Apache-2.0 */
#include "format/names_gguf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

enum { NAME_MAX_TEXT = 128, ALTERNATIVES = 2 };

/* Names in a block (or of the file), the usual one first. */
static const char *const part_names[AEG_N_PARTS][ALTERNATIVES] = {
    [AEG_PART_MIXER_NORM] = { "attn_norm.weight" },
    [AEG_PART_GDN_QKV] = { "attn_qkv.weight" },
    [AEG_PART_GDN_Z] = { "attn_gate.weight" },
    [AEG_PART_GDN_B] = { "ssm_beta.weight" },
    [AEG_PART_GDN_A] = { "ssm_alpha.weight" },
    [AEG_PART_GDN_OUT] = { "ssm_out.weight" },
    [AEG_PART_GDN_CONV] = { "ssm_conv1d.weight" },
    [AEG_PART_GDN_A_LOG] = { "ssm_a" },
    [AEG_PART_GDN_DT_BIAS] = { "ssm_dt.bias", "ssm_dt" },
    [AEG_PART_GDN_NORM] = { "ssm_norm.weight" },
    [AEG_PART_ATTN_Q] = { "attn_q.weight" },
    [AEG_PART_ATTN_K] = { "attn_k.weight" },
    [AEG_PART_ATTN_V] = { "attn_v.weight" },
    [AEG_PART_ATTN_O] = { "attn_output.weight" },
    [AEG_PART_ATTN_Q_NORM] = { "attn_q_norm.weight" },
    [AEG_PART_ATTN_K_NORM] = { "attn_k_norm.weight" },
    [AEG_PART_MLA_Q_A] = { "attn_q_a.weight" },
    [AEG_PART_MLA_Q_A_NORM] = { "attn_q_a_norm.weight" },
    [AEG_PART_MLA_Q_B] = { "attn_q_b.weight", "attn_q.weight" },
    [AEG_PART_MLA_KV_A] = { "attn_kv_a_mqa.weight" },
    [AEG_PART_MLA_KV_A_NORM] = { "attn_kv_a_norm.weight" },
    [AEG_PART_MLA_K_B] = { "attn_k_b.weight" },
    [AEG_PART_MLA_V_B] = { "attn_v_b.weight" },
    [AEG_PART_MLA_O] = { "attn_output.weight" },
    [AEG_PART_FFN_NORM] = { "ffn_norm.weight", "post_attention_norm.weight" },
    [AEG_PART_ROUTER] = { "ffn_gate_inp.weight" },
    [AEG_PART_ROUTER_BIAS] = { "exp_probs_b.bias" },
    [AEG_PART_SHARED_GATE_PROJ] = { "ffn_gate_shexp.weight" },
    [AEG_PART_SHARED_UP] = { "ffn_up_shexp.weight" },
    [AEG_PART_SHARED_DOWN] = { "ffn_down_shexp.weight" },
    [AEG_PART_SHARED_GATE] = { "ffn_gate_inp_shexp.weight" },
    [AEG_PART_DENSE_GATE] = { "ffn_gate.weight" },
    [AEG_PART_DENSE_UP] = { "ffn_up.weight" },
    [AEG_PART_DENSE_DOWN] = { "ffn_down.weight" },
    [AEG_PART_HC_ATTN_FN] = { "hc_attn_fn.weight" },
    [AEG_PART_HC_ATTN_BASE] = { "hc_attn_base.weight" },
    [AEG_PART_HC_ATTN_SCALE] = { "hc_attn_scale.weight" },
    [AEG_PART_HC_FFN_FN] = { "hc_ffn_fn.weight" },
    [AEG_PART_HC_FFN_BASE] = { "hc_ffn_base.weight" },
    [AEG_PART_HC_FFN_SCALE] = { "hc_ffn_scale.weight" },
    [AEG_PART_FINAL_NORM] = { "output_norm.weight" },
    [AEG_PART_LM_HEAD] = { "output.weight" },
};

static const char *const expert_names[AEG_N_EXPERT_PARTS] = { "ffn_gate_exps.weight", "ffn_up_exps.weight",
                                                              "ffn_down_exps.weight" };
static const char fused_experts[] = "ffn_gate_up_exps.weight", fused_qkv[] = "attn_qkv.weight", fused_kv_b[] = "attn_kv_b.weight",
                  woven_ba[] = "ssm_ba.weight", woven_qkvz[] = "ssm_in.weight";

/* --- types ------------------------------------------------------------------------------------------------------- */

/* Kinds of weights are spelt as ggml's types, in lower case. */
bool aeg_dtype_weight_type(uint32_t dtype, aeg_weight_type *out)
{
    const char *name = aeg_dtype_name(dtype);
    char lower[AEG_TYPE_TEXT] = "";
    for (size_t i = 0; i + 1 < sizeof lower && name[i] != '\0'; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    const aeg_weight_type type = { .kind = (uint8_t)aeg_weight_kind_named(lower) };
    if (!aeg_weight_type_valid(type))
        return false;
    *out = type;
    return true;
}

static aegis_status unsupported_type(const aeg_tensor *t, aegis_error *err)
{
    char list[400] = "";
    for (uint32_t dtype = 0, n = 0; dtype < AEG_DT_N && n + 16 < sizeof list; dtype++) {
        aeg_weight_type type;
        if (aeg_dtype_weight_type(dtype, &type))
            n += (uint32_t)snprintf(list + n, sizeof list - n, "%s%s", n == 0 ? "" : ", ", aeg_dtype_name(dtype));
    }
    return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' is %s, which is not supported; this version runs %s", t->name,
                    aeg_dtype_name(t->dtype), list);
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

static const aeg_tensor *find(const aeg_names *names, uint32_t layer, const char *name)
{
    char full[NAME_MAX_TEXT];
    if (layer == AEG_LAYOUT_NO_LAYER)
        return aeg_source_find(names->st, name);
    snprintf(full, sizeof full, "blk.%u.%s", layer, name);
    return aeg_source_find(names->st, full);
}

static const aeg_tensor *find_part(const aeg_names *names, const aeg_layout_entry *e)
{
    const aeg_tensor *t = NULL;
    for (int i = 0; i < ALTERNATIVES && t == NULL && part_names[e->part][i] != NULL; i++)
        t = find(names, e->layer, part_names[e->part][i]);
    return t;
}

static aegis_status missing(uint32_t layer, const char *name, aegis_error *err)
{
    return layer == AEG_LAYOUT_NO_LAYER ? aeg_fail(err, AEGIS_E_MODEL, "tensor '%s' is missing", name)
                                        : aeg_fail(err, AEGIS_E_MODEL, "tensor 'blk.%u.%s' is missing", layer, name);
}

/* Rows [row0, row0 + out->n_rows) of a tensor that should be [rows, out->n_cols]; a matrix of one row may be a vector,
 * and leading dimensions fold into the rows. */
static aegis_status use(const aeg_tensor *t, uint64_t rows, uint64_t row0, aeg_source_matrix *out, aegis_error *err)
{
    char shape[AEG_SHAPE_TEXT];
    uint64_t n = 1;
    for (uint32_t i = 0; i + 1 < t->rank; i++)
        if (!aeg_mul(n, t->dims[i], &n))
            n = 0;
    if (t->rank == 0 || n != rows || t->dims[t->rank - 1] != out->n_cols)
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' is %s %s, expected %llu rows of %u", t->name,
                        aeg_dtype_name(t->dtype), aeg_shape_text(shape, t), (unsigned long long)rows, out->n_cols);
    if (!aeg_dtype_weight_type(t->dtype, &out->type))
        return unsupported_type(t, err);
    out->weight = t;
    out->row0 = row0;
    return AEGIS_OK;
}

/* --- the parts ------------------------------------------------------------------------------------------------------ */

/* A layer of attention whose three projections are one tensor: q (with its gates), k, v. */
static aegis_status from_fused_qkv(const aeg_names *names, const aeg_layout_entry *e, const aeg_tensor *t,
                                   aeg_source_matrix *out, aegis_error *err)
{
    const aeg_hparams *h = &names->config->hparams;
    const uint64_t q = (uint64_t)h->n_heads * h->head_dim * (h->attn_gate ? 2 : 1), kv = (uint64_t)h->n_kv_heads * h->head_dim;
    const uint64_t row0 = e->part == AEG_PART_ATTN_Q ? 0 : e->part == AEG_PART_ATTN_K ? q : q + kv;
    return use(t, q + 2 * kv, row0, out, err);
}

/* Files before 2025 have K_b and V_b in one tensor, as Hugging Face does. A quantised K_b becomes f32 when it is transposed. */
static aegis_status from_fused_kv_b(const aeg_names *names, const aeg_layout_entry *e, const aeg_tensor *t,
                                    aeg_source_matrix *out, aegis_error *err)
{
    const aeg_hparams *h = &names->config->hparams;
    aeg_names_split_kv_b(h, e->part, out);
    out->n_cols = h->kv_lora; /* of the source, for its check */
    AEG_TRY(use(t, (uint64_t)h->n_heads * out->order.stride, 0, out, err));
    out->n_cols = e->n_cols;
    return AEGIS_OK;
}

/* qwen3next keeps b and a woven by key head, older files q, k, v and z too. */
static const aeg_tensor *find_woven(const aeg_names *names, const aeg_layout_entry *e)
{
    if (e->part == AEG_PART_GDN_B || e->part == AEG_PART_GDN_A)
        return find(names, e->layer, woven_ba);
    return e->part == AEG_PART_GDN_QKV || e->part == AEG_PART_GDN_Z ? find(names, e->layer, woven_qkvz) : NULL;
}

aegis_status aeg_names_gguf_matrix(const aeg_names *names, const aeg_layout_entry *e, aeg_source_matrix *out, aegis_error *err)
{
    const aeg_tensor *t = find_part(names, e), *fused = NULL;
    *out = (aeg_source_matrix){ .n_rows = e->n_rows, .n_cols = e->n_cols };
    if (t == NULL && e->part == AEG_PART_LM_HEAD)
        return aeg_names_gguf_embed(names, out, err);
    if (t == NULL && (e->part == AEG_PART_ATTN_Q || e->part == AEG_PART_ATTN_K || e->part == AEG_PART_ATTN_V))
        fused = find(names, e->layer, fused_qkv);
    if (fused != NULL)
        return from_fused_qkv(names, e, fused, out, err);
    if (t == NULL && (e->part == AEG_PART_MLA_K_B || e->part == AEG_PART_MLA_V_B))
        fused = find(names, e->layer, fused_kv_b);
    if (fused != NULL)
        return from_fused_kv_b(names, e, fused, out, err);
    if (t == NULL)
        fused = find_woven(names, e);
    if (fused != NULL) {
        out->order = aeg_names_woven(&names->config->hparams, e->part);
        return use(fused, (uint64_t)out->order.n_groups * out->order.stride, 0, out, err);
    }
    return t == NULL ? missing(e->layer, part_names[e->part][0], err) : use(t, e->n_rows, 0, out, err);
}

aegis_status aeg_names_gguf_embed(const aeg_names *names, aeg_source_matrix *out, aegis_error *err)
{
    static const char name[] = "token_embd.weight";
    const aeg_hparams *h = &names->config->hparams;
    const aeg_tensor *t = aeg_source_find(names->st, name);
    *out = (aeg_source_matrix){ .n_rows = h->vocab_size, .n_cols = h->hidden_size };
    return t == NULL ? missing(AEG_LAYOUT_NO_LAYER, name, err) : use(t, h->vocab_size, 0, out, err);
}

aegis_status aeg_names_gguf_vector(const aeg_names *names, const aeg_layout_entry *e, const aeg_tensor **out,
                                   aeg_vector_change *change, aegis_error *err)
{
    char shape[AEG_SHAPE_TEXT];
    const aeg_tensor *t = find_part(names, e);
    uint64_t n = 1;
    if (t == NULL)
        return missing(e->layer, part_names[e->part][0], err);
    if (t->dtype != AEG_DT_F32 && t->dtype != AEG_DT_F16 && t->dtype != AEG_DT_BF16)
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' is %s, expected F32, F16 or BF16", t->name, aeg_dtype_name(t->dtype));
    for (uint32_t i = 0; i < t->rank; i++)
        if (!aeg_mul(n, t->dims[i], &n))
            n = 0;
    /* the convolution has its taps together: [channels, taps] */
    const uint32_t last = e->part == AEG_PART_GDN_CONV ? names->config->hparams.conv_kernel : e->n_cols;
    if (t->rank == 0 || n != e->n_cols || t->dims[t->rank - 1] != last)
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' is %s %s, expected %u rows of %u", t->name, aeg_dtype_name(t->dtype),
                        aeg_shape_text(shape, t), e->n_cols / last, last);
    *change = e->part == AEG_PART_GDN_A_LOG ? AEG_VECTOR_LOG_OF_MINUS : AEG_VECTOR_AS_IT_IS;
    *out = t;
    return AEGIS_OK;
}

aegis_status aeg_names_gguf_expert(const aeg_names *names, uint32_t layer, uint32_t expert, aeg_expert_part part,
                                   aeg_source_matrix *out, bool *stacked, uint32_t *rows_per_expert, aegis_error *err)
{
    const aeg_hparams *h = &names->config->hparams;
    const bool down = part == AEG_EXPERT_DOWN;
    const uint32_t rows = down ? h->hidden_size : h->expert_width;
    const aeg_tensor *t = find(names, layer, expert_names[part]), *fused = down ? NULL : find(names, layer, fused_experts);
    const uint32_t step = t == NULL && fused != NULL ? 2 * rows : rows;
    aeg_source_matrix m = { .n_rows = rows, .n_cols = down ? h->expert_width : h->hidden_size };
    uint64_t row0 = (uint64_t)expert * step;
    if (t == NULL && fused == NULL)
        return missing(layer, expert_names[part], err);
    if (t == NULL) {
        t = fused;
        row0 += part == AEG_EXPERT_UP ? rows : 0;
    }
    AEG_TRY(use(t, (uint64_t)step * h->n_experts, row0, &m, err));
    if (stacked != NULL)
        *stacked = true;
    if (rows_per_expert != NULL)
        *rows_per_expert = step;
    *out = m;
    return AEGIS_OK;
}

/* --- what is left over ------------------------------------------------------------------------------------------------ */

static bool known_in_block(const char *name)
{
    for (int part = 0; part < AEG_N_PARTS; part++)
        for (int i = 0; i < ALTERNATIVES; i++)
            if (part_names[part][i] != NULL && strcmp(part_names[part][i], name) == 0)
                return true;
    for (int i = 0; i < AEG_N_EXPERT_PARTS; i++)
        if (strcmp(expert_names[i], name) == 0)
            return true;
    return strcmp(name, fused_experts) == 0 || strcmp(name, fused_qkv) == 0 || strcmp(name, fused_kv_b) == 0 ||
           strcmp(name, woven_ba) == 0 || strcmp(name, woven_qkvz) == 0;
}

aegis_status aeg_names_gguf_check_unused(const aeg_names *names, aegis_error *err)
{
    for (uint32_t i = 0; i < names->st->n_tensors; i++) {
        const char *name = names->st->tensors[i].name;
        char *rest = NULL;
        if (strcmp(name, "token_embd.weight") == 0 || strcmp(name, "output_norm.weight") == 0 || strcmp(name, "output.weight") == 0)
            continue;
        const unsigned long block = strncmp(name, "blk.", 4) == 0 && isdigit((unsigned char)name[4]) ? strtoul(name + 4, &rest, 10) : 0;
        const bool mtp = rest != NULL && block >= names->config->hparams.n_layers;
        if (!mtp && (rest == NULL || *rest != '.' || !known_in_block(rest + 1)))
            return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' belongs to a form of the model that is not supported", name);
    }
    return AEGIS_OK;
}
