/* SPDX-License-Identifier: Apache-2.0 */
/* fp8_test MAKE_FP8 MODELS_DIR WORK_DIR - models with FP8 projections (tests/support/make_fp8.c) give the very logits of the same
 * values as f32, with default activations, and what is wrong with one is said. Families: one tensor per expert and partial
 * blocks; kv_b_proj, which is split and transposed; rows woven by key head. MAKE_FP8 is a command of one or more words: an
 * emulator may have to run the maker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aegis/pack.h"
#include "support/t_engine.h"

enum { N_TOKENS = 40, N_STEPS = 6, TEXT = 4096 };

static const char *make_fp8, *models, *work;

static void run(const char *command)
{
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

static void make(const char *model, const char *broken)
{
    char command[4 * TEXT];
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s' && %s '%s/%s' '%s/fp8' '%s/values' %s", work, work, make_fp8, models,
             model, work, work, broken);
    run(command);
}

static aegis_status pack(const char *from, const char *to, int bits, aegis_error *err)
{
    char src[TEXT], dst[TEXT];
    snprintf(src, sizeof src, "%s/%s", work, from);
    snprintf(dst, sizeof dst, "%s/%s", work, to);
    const aegis_pack_options options = { .expert_bits = bits, .dense_bits = bits };
    aegis_pack_result result;
    return aegis_pack(src, dst, &options, &result, err);
}

static uint64_t hash_of(const char *store)
{
    char path[TEXT];
    uint32_t ids[N_TOKENS];
    snprintf(path, sizeof path, "%s/%s", work, store);
    for (uint32_t i = 0; i < N_TOKENS; i++)
        ids[i] = (i * 37 + 11) % 250;
    const aegis_options options = t_engine_options(path);
    aegis_engine *e = t_engine_open(&options);
    const uint64_t hash = t_logits_hash(e, ids, N_TOKENS, N_STEPS);
    aegis_engine_close(e);
    return hash;
}

static void check_model(const char *model, const char *type)
{
    aegis_error err;
    char command[2 * TEXT];
    make(model, "");
    T_OK(pack("fp8", "store-fp8", AEGIS_BITS_DEFAULT, &err), &err);
    T_OK(pack("values", "store-values", AEGIS_BITS_KEEP, &err), &err);
    snprintf(command, sizeof command, "grep -q '%s' '%s/store-fp8/manifest.json'", type, work);
    run(command);
    T_CHECK(hash_of("store-fp8") == hash_of("store-values"));
    /* and through floats: the same codes */
    T_OK(pack("fp8", "store-fp8-8", 8, &err), &err);
    hash_of("store-fp8-8");
}

static void a_model_with_one_tensor_per_expert_is_its_values(void **state)
{
    (void)state;
    check_model("qwen3moe-tiny", "\"gate_up\": *\"f8_e4m3\"");
}

static void a_model_with_kv_b_is_its_values(void **state)
{
    (void)state;
    check_model("deepseek2-tiny-hf", "f8_e4m3");
}

static void a_model_with_woven_rows_is_its_values(void **state)
{
    (void)state;
    check_model("qwen3next-tiny", "f8_e4m3");
}

static void what_is_wrong_is_said(void **state)
{
    static const struct { const char *broken, *says; } cases[] = {
        { "no-scales", "'model.layers.1.self_attn.o_proj.weight_scale_inv' is missing" },
        { "no-config", "is F8_E4M3, but config.json has no quantization_config with quant_method 'fp8'" },
        { "shape", "o_proj.weight_scale_inv' is F32 [3, 1], expected 1 rows of 2" },
        { "nan", "'model.layers.1.self_attn.o_proj.weight': row 3, column 5 is the code 0xff (NaN)" },
        { "infinity", "o_proj.weight_scale_inv': row 0, column 0 is inf" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        aegis_error err = { 0 };
        make("qwen3moe-tiny", cases[i].broken);
        T_CHECK(pack("fp8", "store-fp8", AEGIS_BITS_DEFAULT, &err) == AEGIS_E_MODEL);
        if (strstr(err.message, cases[i].says) == NULL)
            fail_msg("%s: '%s', expected '%s' in it", cases[i].broken, err.message, cases[i].says);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    make_fp8 = argv[1], models = argv[2], work = argv[3];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_with_one_tensor_per_expert_is_its_values),
        cmocka_unit_test(a_model_with_kv_b_is_its_values),
        cmocka_unit_test(a_model_with_woven_rows_is_its_values),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
