/* SPDX-License-Identifier: Apache-2.0 */
#include "format/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "format/names_gguf.h"

enum { NAME_MAX_TEXT = 256, FULL_NAME_MAX = 512 };

/* Names inside a layer, without ".weight"; A_log and dt_bias have none. */
static const char *const part_modules[AEG_N_PARTS] = {
    [AEG_PART_MIXER_NORM] = "input_layernorm",
    [AEG_PART_GDN_QKV] = "linear_attn.in_proj_qkv",
    [AEG_PART_GDN_Z] = "linear_attn.in_proj_z",
    [AEG_PART_GDN_B] = "linear_attn.in_proj_b",
    [AEG_PART_GDN_A] = "linear_attn.in_proj_a",
    [AEG_PART_GDN_OUT] = "linear_attn.out_proj",
    [AEG_PART_GDN_CONV] = "linear_attn.conv1d",
    [AEG_PART_GDN_A_LOG] = "linear_attn.A_log",
    [AEG_PART_GDN_DT_BIAS] = "linear_attn.dt_bias",
    [AEG_PART_GDN_NORM] = "linear_attn.norm",
    [AEG_PART_ATTN_Q] = "self_attn.q_proj",
    [AEG_PART_ATTN_K] = "self_attn.k_proj",
    [AEG_PART_ATTN_V] = "self_attn.v_proj",
    [AEG_PART_ATTN_O] = "self_attn.o_proj",
    [AEG_PART_ATTN_Q_NORM] = "self_attn.q_norm",
    [AEG_PART_ATTN_K_NORM] = "self_attn.k_norm",
    [AEG_PART_FFN_NORM] = "post_attention_layernorm",
    [AEG_PART_ROUTER] = "mlp.gate",
    [AEG_PART_SHARED_GATE_PROJ] = "mlp.shared_expert.gate_proj",
    [AEG_PART_SHARED_UP] = "mlp.shared_expert.up_proj",
    [AEG_PART_SHARED_DOWN] = "mlp.shared_expert.down_proj",
    [AEG_PART_SHARED_GATE] = "mlp.shared_expert_gate",
    [AEG_PART_MLA_Q_A] = "self_attn.q_a_proj",
    [AEG_PART_MLA_Q_A_NORM] = "self_attn.q_a_layernorm",
    [AEG_PART_MLA_Q_B] = "self_attn.q_b_proj",
    [AEG_PART_MLA_KV_A] = "self_attn.kv_a_proj_with_mqa",
    [AEG_PART_MLA_KV_A_NORM] = "self_attn.kv_a_layernorm",
    [AEG_PART_MLA_K_B] = "self_attn.embed_q",
    [AEG_PART_MLA_V_B] = "self_attn.unembed_out",
    [AEG_PART_MLA_O] = "self_attn.o_proj",
    [AEG_PART_ROUTER_BIAS] = "mlp.gate.e_score_correction_bias",
    [AEG_PART_DENSE_GATE] = "mlp.gate_proj",
    [AEG_PART_DENSE_UP] = "mlp.up_proj",
    [AEG_PART_DENSE_DOWN] = "mlp.down_proj",
    [AEG_PART_HC_ATTN_FN] = "attn_hc.hc_fn",
    [AEG_PART_HC_ATTN_BASE] = "attn_hc.hc_base",
    [AEG_PART_HC_ATTN_SCALE] = "attn_hc.hc_scale",
    [AEG_PART_HC_FFN_FN] = "ffn_hc.hc_fn",
    [AEG_PART_HC_FFN_BASE] = "ffn_hc.hc_base",
    [AEG_PART_HC_FFN_SCALE] = "ffn_hc.hc_scale",
    [AEG_PART_FINAL_NORM] = "norm",
    [AEG_PART_LM_HEAD] = "lm_head",
};

/* --- recognising -------------------------------------------------------------------------------------------- */

static const aeg_tensor *find2(const aeg_source *st, const char *a, const char *b)
{
    char name[FULL_NAME_MAX];
    snprintf(name, sizeof name, "%s%s", a, b);
    return aeg_source_find(st, name);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The convolution's axes tell a raw checkpoint (channels, 1, 4) from a converted one (channels, 4, 1). */
static aegis_status find_raw(aeg_names *names, aegis_error *err)
{
    const aeg_hparams *h = &names->config->hparams;
    for (uint32_t layer = 0; layer < h->n_layers; layer++) {
        char name[NAME_MAX_TEXT];
        if (h->mixer[layer] != AEG_MIXER_GDN)
            continue;
        snprintf(name, sizeof name, "%slayers.%u.linear_attn.conv1d.weight", names->prefix, layer);
        const aeg_tensor *t = aeg_source_find(names->st, name);
        if (t == NULL)
            return aeg_fail(err, AEGIS_E_MODEL, "tensor '%s' is missing", name);
        names->raw = t->rank == 3 && t->dims[2] == h->conv_kernel;
        return AEGIS_OK;
    }
    names->raw = !names->quantised;
    return AEGIS_OK;
}

aegis_status aeg_names_init(aeg_names *out, const aeg_source *st, bool gguf, const aeg_config *config, aegis_error *err)
{
    static const char *const prefixes[] = { "language_model.model.", "model.language_model.", "model.", "" };
    static const char *const heads[] = { "language_model.lm_head", "lm_head", "model.lm_head" };
    static const char *const visions[] = { "vision_tower.", "model.visual.", "visual.", "model.vision_tower." };
    aeg_names names = { .st = st, .config = config, .head = heads[1], .gguf = gguf, .quantised = gguf };
    if (gguf) {
        *out = names;
        return AEGIS_OK;
    }
    for (size_t i = 0; i < 4 && names.prefix == NULL; i++)
        if (find2(st, prefixes[i], "layers.0.input_layernorm.weight") != NULL)
            names.prefix = prefixes[i];
    if (names.prefix == NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "no tensor '[prefix]layers.0.input_layernorm.weight' under any known prefix "
                        "among %u tensors", st->n_tensors);
    for (size_t i = 0; i < 3; i++)
        if (find2(st, heads[i], ".weight") != NULL)
            names.head = heads[i];
    for (size_t i = 0; i < 4 && names.vision == NULL; i++)
        if (find2(st, visions[i], "patch_embed.proj.weight") != NULL)
            names.vision = visions[i];
    for (uint32_t i = 0; i < st->n_tensors && !names.quantised; i++)
        names.quantised = ends_with(st->tensors[i].name, ".scales");
    AEG_TRY(find_raw(&names, err));
    names.quantised = names.quantised || config->fp8;
    *out = names;
    return AEGIS_OK;
}

/* --- shapes and types ------------------------------------------------------------------------------------------ */

static bool float_kind(const aeg_tensor *t, uint8_t *kind)
{
    *kind = t->dtype == AEG_DT_BF16 ? AEG_W_BF16 : t->dtype == AEG_DT_F16 ? AEG_W_F16 : AEG_W_F32;
    return t->dtype == AEG_DT_BF16 || t->dtype == AEG_DT_F16 || t->dtype == AEG_DT_F32;
}

/* Rows of a tensor seen as [rows, last dimension]; false if it overflows or has no dimension. */
static bool tensor_rows(const aeg_tensor *t, uint64_t *rows)
{
    *rows = 1;
    for (uint32_t i = 0; i + 1 < t->rank; i++)
        if (!aeg_mul(*rows, t->dims[i], rows))
            return false;
    return t->rank > 0;
}

static aegis_status shape_error(const aeg_tensor *t, uint64_t rows, uint64_t cols, aegis_error *err)
{
    char shape[AEG_SHAPE_TEXT];
    return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' is %s %s, expected %llu rows of %llu", t->name,
                    aeg_dtype_name(t->dtype), aeg_shape_text(shape, t), (unsigned long long)rows,
                    (unsigned long long)cols);
}

/* Shapes are trusted first: a conversion may have been edited without its config. */
static void comment_on_config(const aeg_names *names, const char *module, const aeg_weight_type *type)
{
    uint32_t bits, group;
    const bool expected = aeg_config_quant(names->config, module, &bits, &group);
    if (!expected || bits != type->bits || group != type->group)
        aeg_log(AEG_LOG_NOTICE, "config.json says that '%s' has %u bits in groups of %u; its shape says %u in groups of %u",
                module, expected ? bits : 0, expected ? group : 0, type->bits, type->group);
}

static aegis_status affine_type(const aeg_names *names, const char *module, uint64_t rows, aeg_source_matrix *m,
                                aegis_error *err)
{
    const aeg_tensor *w = m->weight, *s = m->scales, *b = m->biases;
    uint64_t n = 0;
    uint8_t kind = 0, bias_kind = 0;
    if (b == NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s.biases' is missing: '%.200s' exists", module, s->name);
    if (w->dtype != AEG_DT_U32 || !float_kind(s, &kind) || !float_kind(b, &bias_kind) || kind != bias_kind)
        return aeg_fail(err, AEGIS_E_MODEL, "'%.200s': weight %s, scales %s, biases %s; expected U32 and twice the same of "
                        "BF16, F16, F32", module, aeg_dtype_name(w->dtype), aeg_dtype_name(s->dtype),
                        aeg_dtype_name(b->dtype));
    if (!tensor_rows(w, &n) || n != rows)
        return shape_error(w, rows, (uint64_t)m->n_cols / 8, err);
    const uint64_t words = w->dims[w->rank - 1], groups = s->rank == 0 ? 0 : s->dims[s->rank - 1];
    if (!tensor_rows(s, &n) || n != rows || groups == 0 || m->n_cols % groups != 0)
        return shape_error(s, rows, (uint64_t)m->n_cols / 64, err);
    if (!tensor_rows(b, &n) || n != rows || b->dims[b->rank - 1] != groups)
        return shape_error(b, rows, groups, err);
    const uint64_t bits = words < AEG_MAX_DIM ? words * 32 / m->n_cols : 0;
    const uint64_t group = m->n_cols / groups;
    m->type = (aeg_weight_type){ .kind = AEG_W_AFFINE, .bits = (uint8_t)AEG_MIN(bits, 255u), .scale_kind = kind,
                                 .group = (uint8_t)AEG_MIN(group, 255u) };
    if (bits * m->n_cols != words * 32 || !aeg_weight_type_valid(m->type))
        return aeg_fail(err, AEGIS_E_MODEL, "'%.200s': rows of %llu words and %llu groups for %u columns; expected 2, 3, 4, "
                        "5, 6 or 8 bits in groups of 32, 64 or 128", module, (unsigned long long)words,
                        (unsigned long long)groups, m->n_cols);
    comment_on_config(names, module, &m->type);
    return AEGIS_OK;
}

/* e4m3 codes and their scales: [.., rows / 128, columns / 128], rounded up. m->weight is set. */
static aegis_status f8_type(const aeg_names *names, uint64_t rows, aeg_source_matrix *m, aegis_error *err)
{
    const aeg_tensor *w = m->weight, *s = find2(names->st, w->name, "_scale_inv");
    const uint64_t groups = (m->n_cols + AEG_F8_BLOCK - 1u) / AEG_F8_BLOCK;
    uint64_t n = 0;
    if (!names->config->fp8)
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' is F8_E4M3, but config.json has no quantization_config with "
                        "quant_method 'fp8' and weight_block_size [%d, %d]", w->name, AEG_F8_BLOCK, AEG_F8_BLOCK);
    if (s == NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s_scale_inv' is missing: '%.200s' is F8_E4M3", w->name, w->name);
    if (s->dtype != AEG_DT_F32 && s->dtype != AEG_DT_BF16 && s->dtype != AEG_DT_F8_E8M0)
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' is %s, expected F32, BF16 or F8_E8M0", s->name, aeg_dtype_name(s->dtype));
    if (!tensor_rows(w, &n) || n != rows || w->dims[w->rank - 1] != m->n_cols)
        return shape_error(w, rows, m->n_cols, err);
    const uint64_t scale_rows = aeg_source_scale_row(m, rows - 1) + 1;
    if (!tensor_rows(s, &n) || n != scale_rows || s->dims[s->rank - 1] != groups)
        return shape_error(s, scale_rows, groups, err);
    m->scales = s;
    m->type = (aeg_weight_type){ .kind = AEG_W_F8 };
    return AEGIS_OK;
}

/* module + ".weight" (or the bare module name where `bare`) as [rows, n_cols]; m->n_cols is set. */
static aegis_status find_matrix(const aeg_names *names, const char *module, bool bare, uint64_t rows,
                                aeg_source_matrix *m, aegis_error *err)
{
    uint64_t n = 0;
    m->weight = find2(names->st, module, bare ? "" : ".weight");
    m->scales = find2(names->st, module, ".scales");
    m->biases = find2(names->st, module, ".biases");
    if (m->weight == NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s%s' is missing", module, bare ? "" : ".weight");
    if (m->scales != NULL)
        return affine_type(names, module, rows, m, err);
    if (m->weight->dtype == AEG_DT_F8_E4M3)
        return f8_type(names, rows, m, err);
    uint8_t kind = 0;
    if (!float_kind(m->weight, &kind))
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' is %s without scales, expected BF16, F16, F32, F8_E4M3 or MLX affine",
                        m->weight->name, aeg_dtype_name(m->weight->dtype));
    if (!tensor_rows(m->weight, &n) || n != rows || m->weight->dims[m->weight->rank - 1] != m->n_cols)
        return shape_error(m->weight, rows, m->n_cols, err);
    m->type = (aeg_weight_type){ .kind = kind };
    return AEGIS_OK;
}

/* --- the parts --------------------------------------------------------------------------------------------------- */

/* A part's name in a layer, where it depends on the family. */
static const char *part_module(const aeg_hparams *h, aeg_part part)
{
    if (part == AEG_PART_MLA_Q_B && h->q_lora == 0)
        return "self_attn.q_proj";
    if (!h->shared_gated && part == AEG_PART_SHARED_GATE_PROJ)
        return "mlp.shared_experts.gate_proj";
    if (!h->shared_gated && part == AEG_PART_SHARED_UP)
        return "mlp.shared_experts.up_proj";
    if (!h->shared_gated && part == AEG_PART_SHARED_DOWN)
        return "mlp.shared_experts.down_proj";
    return part_modules[part];
}

/* Parts that are parameters themselves rather than a module's ".weight". */
static bool is_bare(aeg_part part)
{
    return part == AEG_PART_GDN_A_LOG || part == AEG_PART_GDN_DT_BIAS || part == AEG_PART_ROUTER_BIAS ||
           (part >= AEG_PART_HC_ATTN_FN && part <= AEG_PART_HC_FFN_SCALE);
}

static void module_name(const aeg_names *names, const aeg_layout_entry *e, char *out)
{
    if (e->part == AEG_PART_LM_HEAD)
        snprintf(out, NAME_MAX_TEXT, "%s", names->head);
    else if (e->layer == AEG_LAYOUT_NO_LAYER)
        snprintf(out, NAME_MAX_TEXT, "%s%s", names->prefix, part_modules[e->part]);
    else
        snprintf(out, NAME_MAX_TEXT, "%slayers.%u.%s", names->prefix, e->layer,
                 part_module(&names->config->hparams, e->part));
}

aegis_status aeg_names_embed(const aeg_names *names, aeg_source_matrix *out, aegis_error *err)
{
    if (names->gguf)
        return aeg_names_gguf_embed(names, out, err);
    const aeg_hparams *h = &names->config->hparams;
    char module[NAME_MAX_TEXT];
    snprintf(module, sizeof module, "%sembed_tokens", names->prefix);
    *out = (aeg_source_matrix){ .n_rows = h->vocab_size, .n_cols = h->hidden_size };
    return find_matrix(names, module, false, h->vocab_size, out, err);
}

/* q|k|v, z, b or a of a model that weaves them by key head. *found stays false where the tensors are separate. */
static aegis_status find_woven(const aeg_names *names, const aeg_layout_entry *e, aeg_source_matrix *m, bool *found,
                               aegis_error *err)
{
    const aeg_hparams *h = &names->config->hparams;
    const bool gates = e->part == AEG_PART_GDN_B || e->part == AEG_PART_GDN_A;
    char module[NAME_MAX_TEXT];
    if (e->part != AEG_PART_GDN_QKV && e->part != AEG_PART_GDN_Z && !gates)
        return AEGIS_OK;
    snprintf(module, sizeof module, "%slayers.%u.linear_attn.%s", names->prefix, e->layer, gates ? "in_proj_ba" : "in_proj_qkvz");
    if (find2(names->st, module, ".weight") == NULL)
        return AEGIS_OK;
    m->order = aeg_names_woven(h, e->part);
    *found = true;
    return find_matrix(names, module, false, (uint64_t)m->order.n_groups * m->order.stride, m, err);
}

/* K_b or V_b of a model that keeps both of a head together, as kv_b_proj: qk_nope rows of keys, then v_dim of values, all of
 * kv_lora columns. K_b is multiplied from the other side, so it is transposed head by head. */
static aegis_status find_kv_b(const aeg_names *names, const aeg_layout_entry *e, aeg_source_matrix *m, bool *found,
                              aegis_error *err)
{
    const aeg_hparams *h = &names->config->hparams;
    char module[NAME_MAX_TEXT];
    if (e->part != AEG_PART_MLA_K_B && e->part != AEG_PART_MLA_V_B)
        return AEGIS_OK;
    snprintf(module, sizeof module, "%slayers.%u.self_attn.kv_b_proj", names->prefix, e->layer);
    if (find2(names->st, module, ".weight") == NULL)
        return AEGIS_OK;
    *found = true;
    aeg_names_split_kv_b(h, e->part, m);
    const uint32_t n_cols = m->n_cols;
    m->n_cols = h->kv_lora; /* of the source, for its check */
    AEG_TRY(find_matrix(names, module, false, (uint64_t)h->n_heads * m->order.stride, m, err));
    m->n_cols = n_cols;
    return AEGIS_OK;
}

aegis_status aeg_names_matrix(const aeg_names *names, const aeg_layout_entry *entry, aeg_source_matrix *out,
                              aegis_error *err)
{
    char module[NAME_MAX_TEXT];
    if (names->gguf)
        return aeg_names_gguf_matrix(names, entry, out, err);
    module_name(names, entry, module);
    if (entry->part == AEG_PART_LM_HEAD && names->config->tie_embeddings && find2(names->st, module, ".weight") == NULL)
        return aeg_names_embed(names, out, err);
    *out = (aeg_source_matrix){ .n_rows = entry->n_rows, .n_cols = entry->n_cols };
    bool woven = false;
    AEG_TRY(find_woven(names, entry, out, &woven, err));
    if (!woven)
        AEG_TRY(find_kv_b(names, entry, out, &woven, err));
    if (woven)
        return AEGIS_OK;
    return find_matrix(names, module, is_bare(entry->part), entry->n_rows, out, err);
}

aegis_status aeg_names_vector(const aeg_names *names, const aeg_layout_entry *entry, const aeg_tensor **out,
                              aeg_vector_change *change, aegis_error *err)
{
    char module[NAME_MAX_TEXT];
    uint64_t n = 1;
    uint8_t kind = 0;
    const aeg_part part = entry->part;
    if (names->gguf)
        return aeg_names_gguf_vector(names, entry, out, change, err);
    module_name(names, entry, module);
    const bool bare = is_bare(part);
    const aeg_tensor *t = find2(names->st, module, bare ? "" : ".weight");
    if (t == NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s%s' is missing", module, bare ? "" : ".weight");
    if (!float_kind(t, &kind))
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' is %s, expected BF16, F16 or F32", t->name,
                        aeg_dtype_name(t->dtype));
    for (uint32_t i = 0; i < t->rank; i++)
        if (!aeg_mul(n, t->dims[i], &n))
            n = 0;
    const uint32_t taps = names->config->hparams.conv_kernel;
    const bool conv_ok = t->rank == 3 && ((t->dims[1] == 1 && t->dims[2] == taps) || (t->dims[1] == taps && t->dims[2] == 1));
    if (n != entry->n_cols || (part == AEG_PART_GDN_CONV ? !conv_ok : t->rank != 1))
        return shape_error(t, part == AEG_PART_GDN_CONV ? entry->n_cols / taps : 1,
                           part == AEG_PART_GDN_CONV ? taps : entry->n_cols, err);
    if (part == AEG_PART_GDN_CONV && (t->dims[2] == taps) != names->raw)
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' has the axes of a %s model, but layer 0 those of a %s one",
                        t->name, names->raw ? "converted" : "raw", names->raw ? "raw" : "converted");
    /* the gated norm is a plain multiplier everywhere */
    const bool plus_one = names->raw && names->config->norms_lack_one &&
                          (part == AEG_PART_MIXER_NORM || part == AEG_PART_FFN_NORM || part == AEG_PART_FINAL_NORM ||
                               part == AEG_PART_ATTN_Q_NORM || part == AEG_PART_ATTN_K_NORM);
    *change = plus_one ? AEG_VECTOR_PLUS_ONE : AEG_VECTOR_AS_IT_IS;
    *out = t;
    return AEGIS_OK;
}

aegis_status aeg_names_expert(const aeg_names *names, uint32_t layer, uint32_t expert, aeg_expert_part part,
                              aeg_source_matrix *out, bool *stacked, uint32_t *rows_per_expert, aegis_error *err)
{
    static const char *const projections[AEG_N_EXPERT_PARTS] = { "gate_proj", "up_proj", "down_proj" };
    const aeg_hparams *h = &names->config->hparams;
    const bool down = part == AEG_EXPERT_DOWN;
    const uint32_t rows = down ? h->hidden_size : h->expert_width;
    char mlp[NAME_MAX_TEXT], module[NAME_MAX_TEXT + 64];
    aeg_source_matrix m = { .n_rows = rows, .n_cols = down ? h->expert_width : h->hidden_size };
    bool shared = true;
    uint32_t step = rows;
    if (names->gguf)
        return aeg_names_gguf_expert(names, layer, expert, part, out, stacked, rows_per_expert, err);
    snprintf(mlp, sizeof mlp, "%slayers.%u.mlp.", names->prefix, layer);
    snprintf(module, sizeof module, "%sswitch_mlp.%s", mlp, projections[part]);
    if (find2(names->st, module, ".weight") != NULL) { /* MLX */
        AEG_TRY(find_matrix(names, module, false, (uint64_t)rows * h->n_experts, &m, err));
    } else if (find2(names->st, mlp, "experts.gate_up_proj") != NULL) { /* Hugging Face, fused */
        step = down ? rows : 2 * rows;
        snprintf(module, sizeof module, "%sexperts.%s", mlp, down ? "down_proj" : "gate_up_proj");
        AEG_TRY(find_matrix(names, module, true, (uint64_t)step * h->n_experts, &m, err));
        m.row0 = part == AEG_EXPERT_UP ? rows : 0;
    } else { /* one tensor per expert */
        snprintf(module, sizeof module, "%sexperts.%u.%s", mlp, expert, projections[part]);
        AEG_TRY(find_matrix(names, module, false, rows, &m, err));
        shared = false;
    }
    if (shared)
        m.row0 += (uint64_t)expert * step;
    if (stacked != NULL)
        *stacked = shared;
    if (rows_per_expert != NULL)
        *rows_per_expert = step;
    *out = m;
    return AEGIS_OK;
}

const char *aeg_names_mtp(const aeg_names *names, const aeg_tensor *t)
{
    static const char *const own[] = { "mtp.", "model.mtp.", "language_model.mtp." };
    char layers[NAME_MAX_TEXT];
    snprintf(layers, sizeof layers, "%s", names->gguf ? "blk." : names->prefix);
    if (!names->gguf)
        snprintf(layers + strlen(layers), sizeof layers - strlen(layers), "layers.");
    const size_t n = strlen(layers);
    if (strncmp(t->name, layers, n) == 0 && t->name[n] >= '0' && t->name[n] <= '9')
        return strtoul(t->name + n, NULL, 10) >= names->config->hparams.n_layers ? t->name + n : NULL;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strncmp(t->name, own[i], strlen(own[i])) == 0)
            return t->name + strlen(own[i]);
    return NULL;
}

const char *aeg_names_vision(const aeg_names *names, const aeg_tensor *t)
{
    if (names->vision == NULL)
        return NULL;
    const size_t n = strlen(names->vision);
    return strncmp(t->name, names->vision, n) == 0 ? t->name + n : NULL;
}

/* Scales of an F8 matrix are read with it. */
static bool is_f8_scale(const aeg_names *names, const char *name)
{
    static const char end[] = "_scale_inv";
    char weight[FULL_NAME_MAX];
    const size_t n = strlen(name);
    if (!ends_with(name, end) || n >= sizeof weight)
        return false;
    snprintf(weight, sizeof weight, "%.*s", (int)(n - strlen(end)), name);
    const aeg_tensor *t = aeg_source_find(names->st, weight);
    return t != NULL && t->dtype == AEG_DT_F8_E4M3;
}

aegis_status aeg_names_check_unused(const aeg_names *names, aegis_error *err)
{
    static const char *const endings[] = { "proj.bias", "gate.bias", "_scale_inv", "weight_scale", "weight_scale_2",
                                           "weight_packed", "qweight", "qzeros", "g_idx", "input_scale" };
    if (names->gguf)
        return aeg_names_gguf_check_unused(names, err);
    const size_t n = strlen(names->prefix);
    for (uint32_t i = 0; i < names->st->n_tensors; i++) {
        const char *name = names->st->tensors[i].name;
        if (strncmp(name, names->prefix, n) != 0 || strncmp(name + n, "layers.", 7) != 0 ||
            aeg_names_vision(names, &names->st->tensors[i]) != NULL)
            continue;
        for (size_t e = 0; e < sizeof endings / sizeof endings[0]; e++)
            if (ends_with(name, endings[e]) && !is_f8_scale(names, name))
                return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s' belongs to a form of the model that is not supported",
                                name);
    }
    return AEGIS_OK;
}
