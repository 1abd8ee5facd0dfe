/* SPDX-License-Identifier: Apache-2.0 */
#include "format/config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "format/config_read.h"
#include "format/family.h"
#include "format/hparams_io.h"

/* model_type, the family whose forward pass runs it, and who reads its members. */
static const struct {
    const char *model_type, *family;
    aeg_config_reader read;
} models[] = {
    { "qwen3_5_moe", "qwen35moe", aeg_config_qwen35moe },
    { "qwen3_5_moe_text", "qwen35moe", aeg_config_qwen35moe },
    { "qwen3_moe", "qwen3moe", aeg_config_qwen3moe },
    { "qwen3_next", "qwen3next", aeg_config_qwen3next },
    { "olmoe", "olmoe", aeg_config_olmoe },
    { "deepseek_v2", "deepseek2", aeg_config_deepseek2 },
    { "deepseek_v3", "deepseek2", aeg_config_deepseek2 },
    { "kimi_k2", "deepseek2", aeg_config_deepseek2 },
    { "glm4_moe_lite", "deepseek2", aeg_config_deepseek2 },
    { "xing4_0", "xing4_0", aeg_config_xing4 },
};

/* Under any of the names that published models use; in the model's own members or its text model's. */
static bool has_experts(const json_t *root)
{
    static const char *const counts[] = { "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts" };
    const json_t *text = json_object_get(root, "text_config");
    for (size_t i = 0; i < AEG_ARRAY_LEN(counts); i++) {
        const json_t *n = json_object_get(text, counts[i]);
        if (n == NULL)
            n = json_object_get(root, counts[i]);
        /* some models give one for each layer */
        if (json_integer_value(n) > 0 || json_array_size(n) > 0)
            return true;
    }
    return false;
}

static aegis_status unsupported(const json_t *root, const char *type, aegis_error *err)
{
    char list[256];
    size_t n = 0;
    const char *architecture = json_string_value(json_array_get(json_object_get(root, "architectures"), 0));
    list[0] = '\0';
    for (size_t i = 0; i < AEG_ARRAY_LEN(models) && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i == 0 ? "" : ", ", models[i].model_type);
    if (type != NULL && !has_experts(root))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: model_type '%.60s' (architecture '%.80s') without experts (a dense model); aegis "
                        "runs Mixture-of-Experts models only, in this version %s", AEG_CONFIG_PATH, type,
                        architecture == NULL ? "not given" : architecture, list);
    return aeg_fail(err, AEGIS_E_MODEL, "%s: model_type '%.60s' (architecture '%.80s') is not supported; this version runs %s",
                    AEG_CONFIG_PATH, type == NULL ? "missing" : type, architecture == NULL ? "not given" : architecture, list);
}

static aegis_status fill(aeg_config *c, const char *folder, const json_t *root, aegis_error *err)
{
    const char *type = json_string_value(json_object_get(root, "model_type"));
    size_t i = 0;
    while (i < AEG_ARRAY_LEN(models) && (type == NULL || strcmp(models[i].model_type, type) != 0))
        i++;
    if (i == AEG_ARRAY_LEN(models))
        return unsupported(root, type, err);
    const json_t *text = json_object_get(root, "text_config");
    if (text == NULL)
        text = root; /* text-only conversions are flat */
    if (!json_is_object(text))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'text_config' is not an object", AEG_CONFIG_PATH);
    aeg_hparams_init(&c->hparams);
    memcpy(c->hparams.family, models[i].family, strlen(models[i].family) + 1);
    AEG_TRY(models[i].read(c, text, err));
    AEG_TRY(aeg_config_bool(root, "tie_word_embeddings", &c->tie_embeddings, err));
    AEG_TRY(aeg_config_bool(text, "tie_word_embeddings", &c->tie_embeddings, err));
    AEG_TRY(aeg_config_quantisation(c, root, err));
    AEG_TRY(aeg_config_generation(c, folder, root, text, err));
    return aeg_hparams_check(&c->hparams, AEG_CONFIG_PATH, err);
}

aegis_status aeg_config_load(aeg_config *out, const char *folder, aeg_memory *memory, aegis_error *err)
{
    aeg_config c = { .memory = memory };
    json_t *root = NULL;
    aegis_status status = aeg_config_parse(&root, folder, AEG_CONFIG_PATH, memory, err);
    if (status == AEGIS_OK)
        status = fill(&c, folder, root, err);
    json_decref(root);
    if (status != AEGIS_OK)
        aeg_config_free(&c);
    *out = c;
    return status;
}

void aeg_config_free(aeg_config *config)
{
    for (uint32_t i = 0; i < config->n_overrides; i++)
        aeg_free(config->memory, config->overrides[i].module);
    aeg_free(config->memory, config->overrides);
    *config = (aeg_config){ 0 };
}
