/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a store: what it tells, and that a manifest which contradicts itself, the hyper-parameters or the
 * files is refused, even with a correct checksum. */
#include "support/t.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "aegis/pack.h"
#include "base/json.h"
#include "expert/store.h"
#include "kernels/half.h"
#include "support/t_tensors.h"
#include "tiny_store.h"

#define TINY AEGIS_SOURCE_DIR "/tests/data/qwen35moe-tiny"

static int restore(void **state)
{
    (void)state;
    t_write_file(t_path(store_path, "manifest.json"), manifest, manifest_n);
    return 0;
}

static int free_all(void **state)
{
    (void)state;
    t_free(manifest);
    return 0;
}

/* The manifest with the first `from` after `after` replaced, and the checksum made right again. */
static void write_edited(const char *after, const char *from, const char *to)
{
    const char *at = strstr(manifest, after);
    at = at == NULL ? NULL : strstr(at, from);
    T_CHECK(at != NULL);
    char *text = malloc(manifest_n + strlen(to) + 100);
    int n = sprintf(text, "%.*s%s%s", (int)(at - manifest), manifest, to, at + strlen(from));
    char *last = text;
    for (char *p = text; (p = strstr(p, "\"xxh3\"")) != NULL; p++)
        last = p;
    n = (int)(last - text) + sprintf(last, "\"xxh3\": \"%016" PRIx64 "\"\n}\n", XXH3_64bits(text, (size_t)(last - text)));
    t_write_file(t_path(store_path, "manifest.json"), text, (size_t)n);
    free(text);
}

static void fails(const char *part)
{
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_store *store = NULL;
    T_FAILS(aeg_store_open(&store, store_path, &memory, &err), &err, AEGIS_E_MODEL, part);
    T_CHECK(store == NULL && aeg_json_memory()->in_use == 0);
    t_no_leak(&memory);
}

static void opens_and_finds(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_store *s;
    T_OK(aeg_store_open(&s, store_path, &memory, &err), &err);
    T_CHECK(s->hparams.n_layers == 4 && s->hparams.rms_eps == 1e-6f && !s->has_tokenizer && !s->has_template);
    for (uint32_t i = 0; i + 1 < s->n_tensors; i++)
        T_CHECK(strcmp(s->tensors[i].name, s->tensors[i + 1].name) < 0 && s->tensors[i].offset % 64 == 0);
    const aeg_store_tensor *router = aeg_store_find(s, "layers.2.router");
    T_CHECK(router != NULL && router->type.bits == 8 && router->n_rows == 16 && router->n_cols == 128);
    T_CHECK(aeg_store_find(s, "layers.2.routes") == NULL && aeg_store_find(s, "") == NULL);
    T_CHECK(s->experts.record_bytes % 4096 == 0 && s->experts.down_offset % 4096 == 0);
    T_CHECK(s->file_bytes[AEG_FILE_EXPERTS] == s->experts.record_bytes * 4 * 16 && s->file_bytes[AEG_FILE_VISION] > 0);
    T_CHECK(s->model_key != 0);
    aeg_store_close(s);
    aeg_store_close(NULL);
    T_CHECK(aeg_store_probe(store_path) && !aeg_store_probe(TINY) && !aeg_store_probe("/nowhere"));
    t_no_leak(&memory);
}

static const struct {
    const char *after, *from, *to, *part;
} edits[] = {
    { "", "\"aegis-store\"", "\"aegis-stare\"", "format" },
    { "", "\"version\": 1", "\"version\": 2", "version 2" },
    { "", "qwen35moe", "qwen99moe", "family 'qwen99moe'" },
    { "", "\"vocab_size\": 512", "\"vocab_size\": 0", "vocab_size is 0" },
    { "", "\"vocab_size\": 512", "\"vocab_size\": 4294967296", "vocab_size" },
    { "", "\"vocab_size\": 512", "\"vocab_size\": 513", "'rows' is 512" },
    { "", "\"hidden_size\": 128", "\"hidden_size\": 64", "layers.0." },
    { "", "\"n_layers\": 4", "\"n_layers\": 3", "'mixers' has 4 letters" },
    { "", "\"n_layers\": 4", "\"n_layers\": 300", "n_layers is 300" },
    { "", "\"mixers\": \"ggga\"", "\"mixers\": \"gggg\"", "n_heads is 4, expected 0" },
    { "", "\"mixers\": \"ggga\"", "\"mixers\": \"gagg\"", "layers.1." },
    { "", "\"mixers\": \"ggga\"", "\"mixers\": \"gggx\"", "'mixers' holds 'x'" },
    { "", "\"mixers\": \"ggga\"", "\"mixers\": \"gggm\"", "n_kv_heads is 2, expected 0" },
    { "", "\"attn_gate\"", "\"qk_norm\": \"none\", \"attn_gate\"", "dense tensors" },
    { "", "\"attn_gate\"", "\"qk_norm\": \"full\", \"attn_gate\"", "qk_norm over all heads with attn_gate" },
    { "", "\"attn_gate\"", "\"qk_norm\": \"half\", \"attn_gate\"", "'qk_norm' is 'half'" },
    { "", "\"attn_gate\"", "\"qkv_clamp\": -1, \"attn_gate\"", "qkv_clamp is -1" },
    { "", "\"attn_gate\"", "\"kv_lora\": 4, \"attn_gate\"", "kv_lora is 4, expected 0" },
    { "", "\"attn_gate\"", "\"yarn_mscale\": 1, \"attn_gate\"", "yarn_mscale is 1, expected 0" },
    { "", "\"attn_gate\"", "\"yarn_factor\": 0.5, \"yarn_orig_ctx\": 9, \"attn_gate\"", "yarn_factor is 0.5" },
    { "", "\"attn_gate\"", "\"router_score\": \"tanh\", \"attn_gate\"", "'router_score' is 'tanh'" },
    { "", "\"attn_gate\"", "\"router_bias\": true, \"attn_gate\"", "dense tensors" },
    { "", "\"attn_gate\"", "\"router_bias\": 1, \"attn_gate\"", "'router_bias'" },
    { "", "\"attn_gate\"", "\"n_groups\": 3, \"attn_gate\"", "16 experts in 3 groups" },
    { "", "\"attn_gate\"", "\"n_groups\": 8, \"attn_gate\"", "top_k is 4, expected at most the 2" },
    { "", "\"attn_gate\"", "\"top_groups\": 2, \"attn_gate\"", "top_groups is 2, expected 1 to 1" },
    { "", "\"attn_gate\"", "\"n_groups\": 16, \"top_groups\": 16, \"group_score\": \"top2\", \"attn_gate\"", "groups of 1" },
    { "", "\"attn_gate\"", "\"routed_scale\": 0, \"attn_gate\"", "routed_scale is 0" },
    { "", "\"attn_gate\"", "\"shared_gated\": false, \"attn_gate\"", "dense tensors" },
    { "", "\"attn_gate\"", "\"n_dense_layers\": 4, \"dense_width\": 8, \"attn_gate\"", "n_dense_layers is 4" },
    { "", "\"attn_gate\"", "\"n_dense_layers\": 1, \"attn_gate\"", "dense_width is 0" },
    { "", "\"attn_gate\"", "\"dense_width\": 8, \"attn_gate\"", "dense_width is 8, expected 0" },
    { "", "\"attn_gate\"", "\"hc_streams\": 4, \"attn_gate\"", "hc_iters is 0" },
    { "", "\"attn_gate\"", "\"hc_eps\": 1, \"attn_gate\"", "hc_eps is 1" },
    { "", "\"n_experts\": 16", "\"n_experts\": 15", "'rows'" },
    { "", "\"top_k\": 4", "\"top_k\": 0", "top_k is 0" },
    { "", "\"expert_width\": 64", "\"expert_width\": 32", "expected" },
    { "", "\"conv_kernel\": 4", "\"conv_kernel\": 3", "conv_kernel is 3" },
    { "", "\"rope_theta\": 10000000", "\"rope_theta\": \"x\"", "rope_theta" },
    { "", "\"eos\": []", "\"eos\": [512]", "eos id 512" },
    { "", "\"eos\": []", "\"eos\": [1,2,3,4,5,6,7,8,9]", "'eos' has 9" },
    { "\"dense\"", "layers.0.mixer_norm", "layers.0.mixer_morm", "expected 'layers.0.mixer_norm'" },
    { "\"dense\"", "\"vector\"", "\"bf16\"", "expected a vector" },
    { "layers.0.gdn.qkv", "affine 4-bit g64 bf16", "vector", "expected a matrix" },
    { "layers.0.gdn.qkv", "affine 4-bit g64 bf16", "affine 3-bit g64 bf16", "'bytes'" },
    { "layers.0.gdn.qkv", "affine 4-bit g64 bf16", "affine 4-bit g064 bf16", "unknown type" },
    { "layers.0.gdn.qkv", "affine 4-bit g64 bf16", "affine 7-bit g64 bf16", "unknown type" },
    { "layers.0.gdn.qkv", "affine 4-bit g64 bf16", "affine 4-bit g64 bf16x", "unknown type" },
    { "layers.0.gdn.qkv", "affine 4-bit g64 bf16", "affine 4-bit g96 bf16", "unknown type" },
    { "layers.0.gdn.qkv", "affine 4-bit g64 bf16", "q4", "unknown type" },
    { "layers.0.gdn.qkv", "affine 4-bit g64 bf16", "Q4_K", "unknown type" },
    { "layers.0.gdn.qkv", "affine 4-bit g64 bf16", "affine", "unknown type" },
    { "layers.0.gdn.qkv", "affine 4-bit g64 bf16", "affine 4-bit g64 q8_0", "unknown type" },
    { "layers.0.gdn.qkv", "affine 4-bit g64 bf16", "q5_0", "'bytes'" },
    { "layers.0.gdn.qkv", "\"offset\": 512", "\"offset\": 576", "'offset' is 576" },
    { "layers.0.gdn.qkv", "\"offset\": 512", "\"offset\": -512", "'offset'" },
    { "layers.0.gdn.qkv", "\"xxh3\": \"", "\"xxh3\": \"Z", "xxh3" },
    { "\"dense\"", "\"bytes\": ", "\"bytes\": 1", "dense" },
    { "\"embed\"", "\"row_bytes\": 72", "\"row_bytes\": 71", "'row_bytes' is 71" },
    { "\"embed\"", "\"bytes\": 36864", "\"bytes\": 40960", "embed" },
    { "\"experts\"", "\"record_bytes\": ", "\"record_bytes\": 1", "record_bytes" },
    { "\"experts\"", "\"down_offset\": ", "\"down_offset\": 1", "down_offset" },
    { "\"experts\"", "\"gate_up_bytes\": ", "\"gate_up_bytes\": 1", "layer 0" },
    { "\"experts\"", "\"down\": \"affine 4-bit", "\"down\": \"affine 5-bit", "layer 0" },
    { "\"experts\"", "g64", "g128", "layer 0" },
    { "\"vision\"", "\"offset\": 0", "\"offset\": 64", "vision" },
    { "\"vision\"", "\"bytes\": ", "\"bytes\": 9", "vision" },
    { "\"files\"", "config.json", "../config.json", "unknown file" },
    { "\"files\"", "config.json", "tokenizer.bin", "tokenizer.bin" },
    { "\"files\"", "\"bytes\": ", "\"bytes\": 1", "config.json" },
    { "", "\"files\"", "\"flies\"", "files" },
    { "", "\"hparams\"", "\"hparam\"", "hparams" },
    { "", "\"dense\"", "\"hparams\": {}, \"dense\"", "JSON" },
};

static void contradictions_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        write_edited(edits[i].after, edits[i].from, edits[i].to);
        fails(edits[i].part);
    }
}

static void damage_is_refused(void **state)
{
    (void)state;
    char *text = malloc(manifest_n);
    memcpy(text, manifest, manifest_n);
    for (int i = 0; i < 200; i++) {
        const size_t at = t_below(manifest_n);
        text[at] = (char)(text[at] ^ (1 << t_below(8)));
        t_write_file(t_path(store_path, "manifest.json"), text, manifest_n);
        fails("manifest.json");
        text[at] = manifest[at];
    }
    for (int percent = 0; percent < 100; percent++) {
        t_write_file(t_path(store_path, "manifest.json"), text, manifest_n * (size_t)percent / 100);
        fails("manifest.json");
    }
    free(text);
    T_CHECK(unlink(t_path(store_path, "manifest.json")) == 0);
    fails("manifest.json");
}

static void missing_files_are_named(void **state)
{
    (void)state;
    char away[4300], file[4200];
    static const char *const files[] = { "dense.bin", "embed.bin", "experts.bin", "vision.bin", "config.json" };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(file, sizeof file, "%s/%s", store_path, files[i]);
        snprintf(away, sizeof away, "%s.away", file);
        T_CHECK(rename(file, away) == 0);
        fails(files[i]);
        T_CHECK(rename(away, file) == 0);
    }
}

/* Rows as the table has them: fmaf(scale, code, bias), close to the source's values. */
static void embedding_rows(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_store *s;
    T_OK(aeg_store_open(&s, store_path, &memory, &err), &err);
    uint8_t *table = (uint8_t *)t_read_file(t_path(store_path, "embed.bin"), NULL);
    t_tensors *source = t_tensors_open("tests/data/qwen35moe-tiny/model.safetensors");
    const t_tensor *want = t_tensors_get(source, "model.language_model.embed_tokens.weight");
    float *row = malloc(s->embed.n_cols * sizeof *row);
    for (uint32_t r = 0; r < s->embed.n_rows; r += 37) {
        const uint8_t *p = table + r * s->embed.row_bytes;
        aeg_store_embed_row(&s->embed, p, row);
        for (uint32_t c = 0; c < s->embed.n_cols; c++) {
            uint16_t scale, bias;
            memcpy(&scale, p + s->embed.n_cols / 2 + 2 * (c / 64), 2);
            memcpy(&bias, p + s->embed.n_cols / 2 + 2 * (s->embed.n_cols / 64 + c / 64), 2);
            const float code = (float)(p[c / 2] >> (4 * (c % 2)) & 15);
            T_CHECK(row[c] == fmaf(aeg_f32_from_bf16(scale), code, aeg_f32_from_bf16(bias)));
            T_CHECK(fabsf(row[c] - t_tensor_f32(want, (uint64_t)r * s->embed.n_cols + c)) <=
                    1.6f * fabsf(aeg_f32_from_bf16(scale)) + 0.01f * fabsf(aeg_f32_from_bf16(bias)));
        }
    }
    free(row);
    t_tensors_close(source);
    t_free(table);
    aeg_store_close(s);
    t_no_leak(&memory);
}

/* The n-th allocation fails: an error, nothing left, and the next open works. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_store *s = NULL;
    T_OK(aeg_store_open(&s, store_path, &memory, &err), &err); /* JSON keeps small caches */
    aeg_store_close(s);
    for (uint64_t n = 1;; n++) {
        t_fault_at(n);
        const aegis_status status = aeg_store_open(&s, store_path, &memory, &err);
        const bool hit = t_fault_hit();
        t_fault_at(0);
        if (!hit) {
            T_CHECK(status == AEGIS_OK && n > 100);
            aeg_store_close(s);
            break;
        }
        T_CHECK(status == AEGIS_E_MEMORY && s == NULL);
        t_no_leak(&memory);
        T_CHECK(aeg_json_memory()->in_use == 0);
    }
    t_no_leak(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_and_finds),
        cmocka_unit_test_teardown(contradictions_are_refused, restore),
        cmocka_unit_test_teardown(damage_is_refused, restore),
        cmocka_unit_test(missing_files_are_named),
        cmocka_unit_test(embedding_rows),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("store", tests, pack_once, free_all);
}
