/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokens begin and end a text, and how the model wants to be sampled. */
#include "format/config_read.h"

#include "base/checked.h"
#include "base/file.h"

static const char path[] = AEG_CONFIG_PATH, generation_path[] = "generation_config.json";

static aegis_status add_eos(aeg_hparams *h, const json_t *v, const char *file, aegis_error *err)
{
    const json_int_t id = json_integer_value(v);
    if (!json_is_integer(v) || id < 0 || id >= (json_int_t)h->vocab_size)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: an 'eos_token_id' is not an integer of 0 to %u", file, h->vocab_size - 1);
    for (uint32_t i = 0; i < h->n_eos; i++)
        if (h->eos[i] == (uint32_t)id)
            return AEGIS_OK;
    if (h->n_eos == AEG_MAX_EOS)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: more than %d 'eos_token_id' values", file, AEG_MAX_EOS);
    h->eos[h->n_eos++] = (uint32_t)id;
    return AEGIS_OK;
}

static aegis_status get_eos(aeg_hparams *h, const json_t *o, const char *file, aegis_error *err)
{
    const json_t *v = json_object_get(o, "eos_token_id");
    if (v == NULL || json_is_null(v))
        return AEGIS_OK;
    if (!json_is_array(v))
        return add_eos(h, v, file, err);
    for (size_t i = 0; i < json_array_size(v); i++)
        AEG_TRY(add_eos(h, json_array_get(v, i), file, err));
    return AEGIS_OK;
}

static aegis_status get_bos(aeg_hparams *h, const json_t *o, const char *file, aegis_error *err)
{
    const json_t *v = json_object_get(o, "bos_token_id");
    if (v == NULL || json_is_null(v) || h->bos_id >= 0)
        return AEGIS_OK;
    uint32_t id = 0;
    AEG_TRY(aeg_json_get_u32(o, "bos_token_id", file, 0, h->vocab_size - 1, &id, err));
    h->bos_id = (int32_t)id;
    return AEGIS_OK;
}

static aegis_status get_sampling(aeg_hparams *h, const json_t *g, aegis_error *err)
{
    const struct {
        const char *key;
        double *out, max;
    } numbers[] = {
        { "temperature", &h->temperature, 100 },         { "top_p", &h->top_p, 1 },
        { "min_p", &h->min_p, 1 },                       { "repetition_penalty", &h->repeat_penalty, 100 },
        { "presence_penalty", &h->presence_penalty, 100 },
    };
    for (size_t i = 0; i < AEG_ARRAY_LEN(numbers); i++) {
        AEG_TRY(aeg_config_f64(g, numbers[i].key, generation_path, numbers[i].out, err));
        if (*numbers[i].out > numbers[i].max)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is %g, expected at most %g", generation_path, numbers[i].key,
                            *numbers[i].out, numbers[i].max);
        if (*numbers[i].out < 0)
            *numbers[i].out = -1;
    }
    const json_t *top_k = json_object_get(g, "top_k");
    uint32_t k = 0;
    if (top_k != NULL && !json_is_null(top_k)) {
        AEG_TRY(aeg_json_get_u32(g, "top_k", generation_path, 0, INT32_MAX, &k, err));
        h->top_k_sampling = (int32_t)k;
    }
    if (json_is_false(json_object_get(g, "do_sample")))
        h->temperature = 0; /* greedy, whatever temperature it lists */
    return AEGIS_OK;
}

aegis_status aeg_config_generation(aeg_config *c, const char *folder, const json_t *root, const json_t *text,
                                   aegis_error *err)
{
    aeg_hparams *h = &c->hparams;
    char full[AEG_PATH_MAX];
    json_t *g = NULL;
    AEG_TRY(aeg_path_join(full, folder, generation_path, err));
    if (aeg_file_exists(full)) {
        AEG_TRY(aeg_config_parse(&g, folder, generation_path, c->memory, err));
        aegis_status status = get_eos(h, g, generation_path, err);
        if (status == AEGIS_OK)
            status = get_bos(h, g, generation_path, err);
        if (status == AEGIS_OK)
            status = get_sampling(h, g, err);
        json_decref(g);
        AEG_TRY(status);
    }
    /* generation_config knows the stops of the chat form; the others only the end of a document */
    if (h->n_eos == 0)
        AEG_TRY(get_eos(h, text, path, err));
    if (h->n_eos == 0)
        AEG_TRY(get_eos(h, root, path, err));
    AEG_TRY(get_bos(h, text, path, err));
    return get_bos(h, root, path, err);
}
