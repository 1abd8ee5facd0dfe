/* SPDX-License-Identifier: Apache-2.0 */
/* Hyper-parameters from GGUF metadata: each family's file, what absent keys mean, exports without a trunk or a draft. */
#include "support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/config_gguf.h"
#include "support/gguf_write.h"

static const char *folder;

/* A file of these keys (behind `arch`.) and of tensors of one value each, but an embedding of 512 rows of 4. */
typedef struct {
    gw keys;
    uint32_t n_keys;
    const char *arch, *tensors[8];
} model;

static const char *key(const model *m, const char *name)
{
    static char text[100];
    snprintf(text, sizeof text, "%s.%s", m->arch, name);
    return text;
}

static void u32(model *m, const char *name, uint32_t v) { gw_key_u32(&m->keys, key(m, name), v), m->n_keys++; }
static void f32(model *m, const char *name, float v) { gw_key_f32(&m->keys, key(m, name), v), m->n_keys++; }

static void start(model *m, const char *arch)
{
    *m = (model){ .arch = arch, .tensors = { "blk.0.attn_norm.weight" } };
    gw_key_text(&m->keys, "general.architecture", arch), m->n_keys++;
}

static void basics(model *m, uint32_t blocks)
{
    u32(m, "block_count", blocks), u32(m, "context_length", 4096), u32(m, "embedding_length", 256);
    u32(m, "attention.head_count", 4), f32(m, "attention.layer_norm_rms_epsilon", 1e-6f);
    u32(m, "expert_count", 16), u32(m, "expert_used_count", 4), u32(m, "expert_feed_forward_length", 32);
}

static void tensors(gw *w, const model *m)
{
    static const uint64_t embed[] = { 4, 512 }, one[] = { 1 };
    gw_tensor(w, "token_embd.weight", 2, embed, 30, 0);
    for (uint32_t i = 0; i < 8 && m->tensors[i] != NULL; i++)
        gw_tensor(w, m->tensors[i], 1, one, 0, 4096 + 32 * i);
    gw_pad(w, 32), gw_raw(w, NULL, 4096 + 32 * 8);
}

static uint32_t n_tensors(const model *m)
{
    uint32_t n = 1;
    while (n < 9 && m->tensors[n - 1] != NULL)
        n++;
    return n;
}

static aegis_status load(gw *w, aeg_config *c, aegis_error *err)
{
    T_MEMORY(memory);
    aeg_gguf g;
    const char *path = t_path(folder, "model.gguf");
    gw_write(w, path);
    gw_free(w);
    aegis_status status = aeg_gguf_open(&g, path, &memory, err);
    if (status == AEGIS_OK)
        status = aeg_config_gguf(c, &g, &memory, err);
    aeg_config_free(&(aeg_config){ .memory = &memory });
    aeg_gguf_close(&g);
    t_no_leak(&memory);
    return status;
}

static aegis_status finish(model *m, aeg_config *c, aegis_error *err)
{
    gw w = { 0 };
    gw_head(&w, 3, n_tensors(m), m->n_keys);
    gw_raw(&w, m->keys.p, m->keys.n);
    tensors(&w, m);
    gw_free(&m->keys);
    return load(&w, c, err);
}

static aeg_hparams good(model *m)
{
    aegis_error err = { 0 };
    aeg_config c;
    T_OK(finish(m, &c, &err), &err);
    return c.hparams;
}

static void bad(model *m, const char *part)
{
    aegis_error err = { 0 };
    aeg_config c;
    T_FAILS(finish(m, &c, &err), &err, AEGIS_E_MODEL, part);
}

/* The metadata of a published form (tests/data/gguf) with the tensors that are looked at. */
static aeg_config published(const char *name, const char *const *extra)
{
    aegis_error err = { 0 };
    aeg_config c;
    char file[80];
    size_t n;
    snprintf(file, sizeof file, AEGIS_SOURCE_DIR "/tests/data/gguf/%s-metadata.gguf", name);
    char *bytes = t_read_file(file, &n);
    model m = { .tensors = { "blk.0.attn_norm.weight" } };
    for (uint32_t i = 0; extra[i] != NULL; i++)
        m.tensors[i + 1] = extra[i];
    gw w = { 0 };
    gw_raw(&w, bytes, n);
    w.p[8] = (uint8_t)n_tensors(&m);
    t_free(bytes);
    tensors(&w, &m);
    T_OK(load(&w, &c, &err), &err);
    return c;
}

static void xing4_is_read(void **state)
{
    (void)state;
    static const char *const extra[] = { "blk.1.exp_probs_b.bias", "blk.4.nextn.eh_proj.weight", NULL }, *const trunk[] = { NULL };
    const aeg_config c = published("xing4", extra);
    const aeg_hparams *h = &c.hparams;
    T_CHECK(strcmp(h->family, "xing4_0") == 0 && h->n_layers == 4 && c.n_mtp == 1 && h->vocab_size == 512 && h->hidden_size == 256);
    T_CHECK(h->mixer[0] == AEG_MIXER_MLA && h->mixer[3] == AEG_MIXER_MLA && h->n_heads == 4 && h->n_kv_heads == 0 && h->head_dim == 0);
    T_CHECK(h->q_lora == 64 && h->kv_lora == 64 && h->qk_nope == 32 && h->qk_rope == 32 && h->v_dim == 32 && h->rope_dim == 32);
    T_CHECK(h->rope_interleaved && h->yarn_factor == 64 && h->yarn_orig_ctx == 4096 && h->yarn_beta_fast == 32 &&
            h->yarn_beta_slow == 1 && h->yarn_mscale == 1 && h->yarn_mscale_all == 1);
    T_CHECK(h->n_experts == 10 && h->top_k == 4 && h->expert_width == 32 && h->shared_width == 32 && !h->shared_gated);
    T_CHECK(h->router_score == AEG_ROUTER_SIGMOID && h->router_bias && h->norm_top_k && h->routed_scale == 2 && h->n_groups == 1);
    T_CHECK(h->n_dense_layers == 1 && h->dense_width == 128);
    T_CHECK(h->hc_streams == 4 && h->hc_iters == 20 && h->hc_eps == 1e-6f && h->hc_clamp == 30);
    T_CHECK(h->bos_id == 1 && h->n_eos == 8 && h->eos[0] == 2); /* whatever begins another turn ends this one */
    T_CHECK(published("xing4", trunk).n_mtp == 0);
}

static void deepseek_is_read(void **state)
{
    (void)state;
    static const char *const extra[] = { "blk.1.exp_probs_b.bias", NULL };
    const aeg_config c = published("deepseek", extra);
    const aeg_hparams *h = &c.hparams;
    T_CHECK(strcmp(h->family, "deepseek2") == 0 && h->n_layers == 3 && h->n_groups == 4 && h->top_groups == 2);
    T_CHECK(h->group_score == AEG_GROUP_TOP2 && h->routed_scale == 2.5f && h->yarn_factor == 40 && h->hc_streams == 0);
    T_CHECK(h->n_eos == 1 && h->eos[0] == 1 && h->bos_id == 0 && h->rope_theta == 10000);
}

static void olmoe_is_read(void **state)
{
    (void)state;
    static const char *const extra[] = { NULL };
    const aeg_config c = published("olmoe", extra);
    const aeg_hparams *h = &c.hparams;
    T_CHECK(strcmp(h->family, "olmoe") == 0 && h->mixer[2] == AEG_MIXER_ATTENTION && h->qk_norm == AEG_QK_NORM_FULL);
    T_CHECK(h->n_heads == 4 && h->n_kv_heads == 4 && h->head_dim == 64 && h->rope_dim == 64 && !h->attn_gate && !h->rope_interleaved);
    T_CHECK(h->expert_width == 32 && h->shared_width == 0 && !h->norm_top_k && h->routed_scale == 1 && h->qkv_clamp == 0);
    T_CHECK(h->rms_eps == 1e-5f);
}

static void qwen_files_are_read(void **state)
{
    (void)state;
    model m;
    start(&m, "qwen35moe"), basics(&m, 9), u32(&m, "nextn_predict_layers", 1);
    gw_key_array(&m.keys, key(&m, "attention.head_count_kv"), AEG_GGUF_I32, 9), m.n_keys++;
    for (int i = 0; i < 9; i++)
        gw_int(&m.keys, i % 4 == 3 ? 2 : 0, 4);
    u32(&m, "attention.key_length", 64), u32(&m, "attention.value_length", 64), u32(&m, "rope.dimension_count", 16);
    u32(&m, "ssm.conv_kernel", 4), u32(&m, "ssm.group_count", 2), u32(&m, "ssm.time_step_rank", 4), u32(&m, "ssm.state_size", 32);
    u32(&m, "ssm.inner_size", 256), u32(&m, "expert_shared_feed_forward_length", 48), f32(&m, "rope.freq_base", 1e7f);
    gw_key_array(&m.keys, key(&m, "rope.dimension_sections"), AEG_GGUF_I32, 4), m.n_keys++;
    gw_int(&m.keys, 4, 4), gw_int(&m.keys, 2, 4), gw_int(&m.keys, 2, 4), gw_int(&m.keys, 0, 4);
    gw_key_f32(&m.keys, "general.sampling.temp", 0.7f), gw_key_f32(&m.keys, "general.sampling.top_p", 0.95f), m.n_keys += 2;
    gw_key_int(&m.keys, "general.sampling.top_k", AEG_GGUF_I32, 20, 4), m.n_keys++;
    m.tensors[1] = "blk.8.nextn.eh_proj.weight";
    const aeg_hparams h = good(&m);
    T_CHECK(h.n_layers == 8 && h.mixer[2] == AEG_MIXER_GDN && h.mixer[3] == AEG_MIXER_ATTENTION && h.mixer[7] == AEG_MIXER_ATTENTION);
    T_CHECK(h.n_kv_heads == 2 && h.head_dim == 64 && h.rope_dim == 16 && h.attn_gate && h.gdn_v_tiled && h.shared_gated);
    T_CHECK(h.gdn_k_heads == 2 && h.gdn_v_heads == 4 && h.gdn_k_dim == 32 && h.gdn_v_dim == 64 && h.shared_width == 48);
    T_CHECK(h.mrope_section[0] == 4 && h.mrope_section[2] == 2 && h.norm_top_k && h.rope_theta == 1e7);
    T_CHECK(h.temperature == 0.7 && h.top_p == 0.95 && h.top_k_sampling == 20 && h.min_p == -1);

    start(&m, "qwen3moe"), basics(&m, 2);
    const aeg_hparams q3 = good(&m);
    T_CHECK(!q3.attn_gate && q3.head_dim == 64 && q3.n_kv_heads == 4 && q3.shared_width == 0 && q3.norm_top_k && !q3.gdn_v_tiled);

    start(&m, "qwen3next"), basics(&m, 4);
    u32(&m, "ssm.conv_kernel", 4), u32(&m, "ssm.group_count", 2), u32(&m, "ssm.time_step_rank", 4), u32(&m, "ssm.state_size", 32);
    u32(&m, "ssm.inner_size", 128);
    gw_key_array(&m.keys, key(&m, "attention.recurrent_layers"), AEG_GGUF_BOOL, 4), m.n_keys++;
    gw_raw(&m.keys, "\1\0\1\0", 4);
    const aeg_hparams next = good(&m);
    T_CHECK(next.mixer[0] == AEG_MIXER_GDN && next.mixer[1] == AEG_MIXER_ATTENTION && next.mixer[2] == AEG_MIXER_GDN && !next.gdn_v_tiled);
}

/* Older deepseek2 files: head widths under the plain keys, no gating function, no groups. */
static void absent_keys_mean_what_their_files_mean(void **state)
{
    (void)state;
    model m;
    start(&m, "deepseek2"), basics(&m, 2);
    u32(&m, "attention.kv_lora_rank", 64), u32(&m, "rope.dimension_count", 32), u32(&m, "attention.key_length", 64);
    u32(&m, "attention.value_length", 40), f32(&m, "expert_weights_scale", 0);
    const aeg_hparams h = good(&m);
    T_CHECK(h.qk_nope == 32 && h.v_dim == 40 && h.q_lora == 0 && h.router_score == AEG_ROUTER_SOFTMAX && !h.norm_top_k);
    T_CHECK(h.routed_scale == 1 && h.n_groups == 1 && h.group_score == AEG_GROUP_MAX && h.yarn_factor == 0 && h.n_dense_layers == 0);

    start(&m, "deepseek2"), u32(&m, "attention.kv_lora_rank", 64), u32(&m, "rope.dimension_count", 32);
    u32(&m, "attention.key_length_mla", 64), u32(&m, "attention.value_length_mla", 40), u32(&m, "block_count", 2);
    u32(&m, "context_length", 4096), u32(&m, "embedding_length", 256), u32(&m, "attention.head_count", 4);
    f32(&m, "attention.layer_norm_rms_epsilon", 1e-6f), u32(&m, "expert_count", 256), u32(&m, "expert_used_count", 8);
    u32(&m, "expert_feed_forward_length", 32);
    m.tensors[1] = "blk.0.exp_probs_b.bias";
    const aeg_hparams v3 = good(&m);
    T_CHECK(v3.router_score == AEG_ROUTER_SIGMOID && v3.router_bias && v3.n_groups == 8 && v3.top_groups == 4 && v3.group_score == AEG_GROUP_TOP2);
}

static void other_files_are_told_apart(void **state)
{
    (void)state;
    model m;
    start(&m, "clip");
    bad(&m, "an image encoder (mmproj file), not a model");
    start(&m, "llama");
    bad(&m, "architecture 'llama' without experts (a dense model); aegis runs Mixture-of-Experts models only, in this version of the "
            "families qwen35moe");
    start(&m, "llama"), u32(&m, "expert_count", 0);
    bad(&m, "architecture 'llama' without experts");
    start(&m, "llama"), u32(&m, "expert_count", 8);
    bad(&m, "architecture 'llama' is not supported; this version runs qwen35moe");
    start(&m, "\x1b[31mred\xff\xc2\x9b\n");
    bad(&m, "architecture '\\x1b[31mred\\xff\\xc2\\x9b\\x0a' without experts");
    m = (model){ .arch = "x" };
    bad(&m, "'general.architecture' is missing");
    start(&m, "xing4_0"), basics(&m, 5), u32(&m, "nextn_predict_layers", 1), m.tensors[0] = "blk.4.nextn.eh_proj.weight";
    bad(&m, "holds only the block that predicts further tokens");
    start(&m, "olmoe"), basics(&m, 2), m.tensors[0] = NULL;
    bad(&m, "'blk.0.attn_norm.weight' is missing");
}

static void values_out_of_range_are_named(void **state)
{
    (void)state;
    model m;
    start(&m, "olmoe"), u32(&m, "block_count", 2);
    bad(&m, "'olmoe.embedding_length' is missing");
    start(&m, "olmoe"), u32(&m, "block_count", 100000);
    bad(&m, "'olmoe.block_count' is 100000");
    start(&m, "olmoe"), u32(&m, "block_count", 0);
    bad(&m, "no layer is left");
    start(&m, "olmoe"), basics(&m, 2), gw_key_text(&m.keys, "olmoe.rope.scaling.type", "linear"), m.n_keys++;
    bad(&m, "'olmoe.rope.scaling.type' is 'linear', expected none or yarn");
    start(&m, "olmoe"), basics(&m, 2), u32(&m, "attention.value_length", 32);
    bad(&m, "value heads of 32 dimensions and key heads of 64");
    start(&m, "olmoe"), basics(&m, 2), u32(&m, "expert_gating_func", 3);
    bad(&m, "'olmoe.expert_gating_func' is 3");
    start(&m, "olmoe"), basics(&m, 2), gw_key_u32(&m.keys, "tokenizer.ggml.eos_token_id", 512), m.n_keys++;
    bad(&m, "'tokenizer.ggml.eos_token_id' is 512, expected 0 to 511");
    start(&m, "olmoe"), basics(&m, 2), u32(&m, "leading_dense_block_count", 2);
    bad(&m, "dense");
    start(&m, "deepseek2"), basics(&m, 2), u32(&m, "attention.kv_lora_rank", 64), u32(&m, "rope.dimension_count", 64);
    u32(&m, "attention.key_length", 64), u32(&m, "attention.value_length", 64);
    bad(&m, "key heads of 64 dimensions of which 64 rotate");
}

int main(void)
{
    folder = t_folder();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xing4_is_read), cmocka_unit_test(deepseek_is_read), cmocka_unit_test(olmoe_is_read),
        cmocka_unit_test(qwen_files_are_read), cmocka_unit_test(absent_keys_mean_what_their_files_mean),
        cmocka_unit_test(other_files_are_told_apart), cmocka_unit_test(values_out_of_range_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
