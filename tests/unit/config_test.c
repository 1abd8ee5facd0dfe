/* SPDX-License-Identifier: Apache-2.0 */
/* config.json and generation_config.json: what they become, and what is refused. */
#include "support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "format/config.h"
#include "format/layout.h"

#define DEMO AEGIS_SOURCE_DIR "/models/demo"
#define TINY AEGIS_SOURCE_DIR "/tests/data/qwen35moe-tiny"

static void the_demo(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_config c;
    uint32_t bits, group;
    T_OK(aeg_config_load(&c, DEMO, &memory, &err), &err);
    const aeg_hparams *h = &c.hparams;
    T_CHECK(strcmp(h->family, "qwen35moe") == 0 && h->vocab_size == 6144 && h->hidden_size == 256 && h->n_layers == 12);
    T_CHECK(h->mixer[2] == AEG_MIXER_GDN && h->mixer[3] == AEG_MIXER_ATTENTION && h->mixer[11] == AEG_MIXER_ATTENTION);
    T_CHECK(h->n_heads == 4 && h->n_kv_heads == 2 && h->head_dim == 64 && h->rope_dim == 16 && h->attn_gate);
    T_CHECK(h->rope_theta == 100000.0 && h->mrope_section[0] == 4 && h->mrope_section[2] == 2);
    T_CHECK(h->gdn_k_heads == 4 && h->gdn_v_heads == 8 && h->gdn_k_dim == 32 && h->conv_kernel == 4 && !h->gdn_v_tiled);
    T_CHECK(h->n_experts == 64 && h->top_k == 8 && h->expert_width == 64 && h->shared_width == 64 && h->norm_top_k);
    T_CHECK(h->n_eos == 2 && h->eos[0] == 6133 && h->eos[1] == 6131 && h->bos_id == -1);
    T_CHECK(h->temperature == 0.7 && h->top_p == 0.8 && h->top_k_sampling == 20 && h->min_p == -1);
    T_CHECK(c.quantised && c.bits == 4 && c.group == 64 && c.n_overrides == 24);
    T_CHECK(aeg_config_quant(&c, "language_model.model.layers.9.mlp.gate", &bits, &group) && bits == 8 && group == 64);
    T_CHECK(aeg_config_quant(&c, "language_model.lm_head", &bits, &group) && bits == 4);
    aeg_config_free(&c);
    T_OK(aeg_config_load(&c, TINY, &memory, &err), &err);
    T_CHECK(!c.quantised && c.hparams.n_eos == 0 && c.hparams.temperature == -1 && c.hparams.rms_eps == 1e-6f);
    aeg_config_free(&c);
    t_no_leak(&memory);
    T_CHECK(aeg_json_memory()->in_use == 0);
}

static void layout_names_every_tensor_once(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_config c;
    T_OK(aeg_config_load(&c, DEMO, &memory, &err), &err);
    const uint32_t n = aeg_layout_count(&c.hparams);
    T_CHECK(n == 9 * 16 + 3 * 13 + 2);
    aeg_layout_entry *e = calloc(n, sizeof *e);
    for (uint32_t i = 0; i < n; i++) {
        aeg_layout_at(&e[i], &c.hparams, i);
        T_CHECK(e[i].n_rows > 0 && e[i].n_cols > 0);
        for (uint32_t k = 0; k < i; k++)
            T_CHECK(strcmp(e[i].name, e[k].name) != 0);
    }
    T_CHECK(strcmp(e[n - 1].name, "lm_head") == 0 && e[n - 1].n_rows == 6144);
    T_CHECK(strcmp(e[1].name, "layers.0.gdn.qkv") == 0 && e[1].n_rows == 512 && e[1].n_cols == 256);
    free(e);
    aeg_config_free(&c);
    t_no_leak(&memory);
}

/* The first `from` of a copy of the tiny config becomes `to`. */
static const struct {
    const char *from, *to, *part;
} edits[] = {
    { "\"model_type\": \"qwen3_5_moe\"", "\"model_type\": \"llama\"", "model_type 'llama' (architecture 'Qwen3_5Moe" },
    { "\"hidden_size\": 128", "\"hidden_size\": 0", "'hidden_size' is 0" },
    { "\"hidden_size\": 128", "\"hidden_size\": 128.0", "expected an integer" },
    { "\"hidden_size\": 128", "\"hidden_size\": 99999999", "'hidden_size' is 99999999" },
    { "\"hidden_size\": 128", "\"hidden_sice\": 128", "'hidden_size' is nothing" },
    { "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 5", "'layer_types' has 4 entries, expected 5" },
    { "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 1000", "'num_hidden_layers' is 1000" },
    { "\"full_attention\"", "\"sliding\"", "'layer_types'[3] is 'sliding'" },
    { "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "4 heads over 3 KV heads" },
    { "\"linear_num_key_heads\": 2", "\"linear_num_key_heads\": 3", "4 value heads over 3 key heads" },
    { "\"linear_conv_kernel_dim\": 4", "\"linear_conv_kernel_dim\": 3", "'linear_conv_kernel_dim' is 3" },
    { "\"num_experts_per_tok\": 4", "\"num_experts_per_tok\": 17", "top_k is 17" },
    { "\"num_experts\": 16", "\"num_experts\": 5000", "'num_experts' is 5000" },
    { "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"", "'hidden_act' is 'gelu'" },
    { "\"attention_bias\": false", "\"attention_bias\": true", "'attention_bias' is true" },
    { "\"rope_type\": \"default\"", "\"rope_type\": \"yarn\"", "'rope_type' is 'yarn'" },
    { "\"mrope_interleaved\": true", "\"mrope_interleaved\": false", "'mrope_interleaved'" },
    { "4,\n        2,\n        2", "4,\n        2,\n        3", "mrope_section adds up to 9, expected 8" },
    { "4,\n        2,\n        2", "4,\n        2", "'mrope_section' has 2" },
    { "\"rope_theta\": 10000000.0", "\"rope_theta\": -1", "rope_theta is -1" },
    { "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 0", "rms_eps is 0" },
    { "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": \"x\"", "a number" },
    { "\"head_dim\": 64", "\"head_dim\": 1000", "'head_dim' is 1000" },
    { "\"eos_token_id\": null", "\"eos_token_id\": 512", "'eos_token_id'" },
    { "\"eos_token_id\": null", "\"eos_token_id\": [1,2,3,4,5,6,7,8,9]", "more than 8" },
    { "\"eos_token_id\": null", "\"eos_token_id\": [\"x\"]", "'eos_token_id'" },
    { "\"bos_token_id\": null", "\"bos_token_id\": -1", "'bos_token_id' is -1" },
    { "\"use_cache\": true", "\"mlp_only_layers\": [1]", "'mlp_only_layers'" },
    { "\"text_config\": {", "\"text_config\": [], \"x\": {", "'text_config' is not an object" },
    { "\"dtype\": \"float32\"", "\"quantization\": {\"mode\": \"mxfp4\"}", "'mode' is 'mxfp4'" },
    { "\"dtype\": \"float32\"", "\"quantization\": {\"bits\": 7}", "7 bits" },
    { "\"dtype\": \"float32\"", "\"quantization\": {\"a.b\": {\"group_size\": 16}}", "a.b" },
    { "\"dtype\": \"float32\"", "\"quantization_config\": {\"quant_method\": \"fp8\"}", "'weight_block_size' is missing" },
    { "\"dtype\": \"float32\"", "\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [128, 64]}",
      "number 1 of 'weight_block_size' is 64" },
    { "\"dtype\": \"float32\"", "\"quantization_config\": {\"quant_method\": \"fp8\", \"fmt\": \"e5m2\"}", "'fmt' is 'e5m2'" },
    { "\"dtype\": \"float32\"", "\"quantization_config\": {\"quant_method\": \"gptq\"}", "quant_method 'gptq'" },
    { "{", "", "JSON" },
};

static void write_edited(const char *folder, const char *from, const char *to)
{
    size_t n;
    char *text = t_read_file(TINY "/config.json", &n), *at = strstr(text, from);
    T_CHECK(at != NULL);
    char *edited = malloc(n + strlen(to) + 1);
    const int len = sprintf(edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    t_write_file(t_path(folder, "config.json"), edited, (size_t)len);
    free(edited);
    t_free(text);
}

static void refused_configs_say_why(void **state)
{
    (void)state;
    T_MEMORY(memory);
    const char *folder = t_folder();
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        aegis_error err = { 0 };
        aeg_config c;
        write_edited(folder, edits[i].from, edits[i].to);
        T_FAILS(aeg_config_load(&c, folder, &memory, &err), &err, AEGIS_E_MODEL, edits[i].part);
        T_CHECK(c.overrides == NULL && aeg_json_memory()->in_use == 0);
    }
    t_no_leak(&memory);
}

static const struct {
    const char *text, *part; /* part NULL: fine */
} generations[] = {
    { "{}", NULL },
    { "{\"eos_token_id\": [5, 7, 5], \"temperature\": null}", NULL },
    { "{\"temperature\": 101}", "'temperature' is 101" },
    { "{\"top_p\": 1.5}", "'top_p' is 1.5" },
    { "{\"top_k\": -1}", "'top_k' is -1" },
    { "{\"top_k\": 1.5}", "'top_k'" },
    { "{\"eos_token_id\": 512}", "generation_config.json: an 'eos_token_id'" },
    { "[]", "expected an object" },
    { "{", "JSON" },
};

static void generation_configs(void **state)
{
    (void)state;
    T_MEMORY(memory);
    const char *folder = t_folder();
    aegis_error err = { 0 };
    aeg_config c;
    write_edited(folder, "\"eos_token_id\": null", "\"eos_token_id\": 9");
    for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++) {
        t_write_file(t_path(folder, "generation_config.json"), generations[i].text, strlen(generations[i].text));
        if (generations[i].part != NULL) {
            T_FAILS(aeg_config_load(&c, folder, &memory, &err), &err, AEGIS_E_MODEL, generations[i].part);
            continue;
        }
        T_OK(aeg_config_load(&c, folder, &memory, &err), &err);
        /* its stops replace config.json's */
        T_CHECK(i == 0 ? c.hparams.n_eos == 1 && c.hparams.eos[0] == 9 : c.hparams.n_eos == 2 && c.hparams.eos[1] == 7);
        aeg_config_free(&c);
    }
    const char *greedy = "{\"do_sample\": false, \"temperature\": 0.5, \"presence_penalty\": 1.5}";
    t_write_file(t_path(folder, "generation_config.json"), greedy, strlen(greedy));
    T_OK(aeg_config_load(&c, folder, &memory, &err), &err);
    T_CHECK(c.hparams.temperature == 0 && c.hparams.presence_penalty == 1.5);
    aeg_config_free(&c);
    t_no_leak(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_demo),
        cmocka_unit_test(layout_names_every_tensor_once),
        cmocka_unit_test(refused_configs_say_why),
        cmocka_unit_test(generation_configs),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
