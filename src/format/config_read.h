/* SPDX-License-Identifier: Apache-2.0 */
/* format/config_read.h - what the readers of config.json share. Not for other folders.
 *
 * Optional members keep *out when they are absent or null. Whatever is present is checked: a type, a range, or a variant of
 * the model that we do not run is AEGIS_E_MODEL with file, member, found, expected. Thread: any.
 */
#ifndef AEG_FORMAT_CONFIG_READ_H
#define AEG_FORMAT_CONFIG_READ_H

#include "base/json.h"
#include "format/config.h"

#define AEG_CONFIG_PATH "config.json"

/* folder/name, which must be an object. Decref the result. */
aegis_status aeg_config_parse(json_t **out, const char *folder, const char *name, aeg_memory *memory, aegis_error *err);

/* A required member of config.json. */
typedef struct {
    const char *key;
    uint32_t *out, min, max;
} aeg_config_number;
aegis_status aeg_config_numbers(const json_t *o, const aeg_config_number *numbers, size_t n, aegis_error *err);

aegis_status aeg_config_u32(const json_t *o, const char *key, uint32_t max, uint32_t *out, aegis_error *err);
aegis_status aeg_config_f64(const json_t *o, const char *key, const char *file, double *out, aegis_error *err);
aegis_status aeg_config_f32(const json_t *o, const char *key, float *out, aegis_error *err);
aegis_status aeg_config_bool(const json_t *o, const char *key, bool *out, aegis_error *err);
/* A member that must be absent, null or this text (this value). */
aegis_status aeg_config_only(const json_t *o, const char *key, const char *expected, aegis_error *err);
aegis_status aeg_config_only_bool(const json_t *o, const char *key, bool expected, aegis_error *err);

/* --- groups of members that families share --- */

/* Sizes, context, norm epsilon, heads; what none of our families has is refused (biases, another activation). */
aegis_status aeg_config_body(aeg_hparams *h, const json_t *text, aegis_error *err);
/* All layers attend: KV heads and the dimension of a head. */
aegis_status aeg_config_attention(aeg_hparams *h, const json_t *text, aegis_error *err);
/* rope_theta and the share of a head that rotates, in today's place (rope_parameters) or the older ones. */
aegis_status aeg_config_rope(aeg_hparams *h, const json_t *text, double theta, double factor, aegis_error *err);
/* Routed experts in the members of Qwen and OLMoE; `width`: the member with an expert's width. */
aegis_status aeg_config_experts(aeg_hparams *h, const json_t *text, const char *width, aegis_error *err);
/* rope_parameters, or rope_scaling if that is absent; NULL if neither is an object. */
const json_t *aeg_config_rope_object(const json_t *text);

/* --- families: one file each --- */

/* Fills hparams (set to aeg_hparams_init, family included) from the text model's object. */
typedef aegis_status (*aeg_config_reader)(aeg_config *c, const json_t *text, aegis_error *err);

aegis_status aeg_config_qwen35moe(aeg_config *c, const json_t *text, aegis_error *err);
aegis_status aeg_config_qwen3next(aeg_config *c, const json_t *text, aegis_error *err);
aegis_status aeg_config_qwen3moe(aeg_config *c, const json_t *text, aegis_error *err);
aegis_status aeg_config_olmoe(aeg_config *c, const json_t *text, aegis_error *err);
aegis_status aeg_config_deepseek2(aeg_config *c, const json_t *text, aegis_error *err);
aegis_status aeg_config_xing4(aeg_config *c, const json_t *text, aegis_error *err);

/* --- members outside the text model --- */

/* eos, bos and sampling defaults, of generation_config.json too. */
aegis_status aeg_config_generation(aeg_config *c, const char *folder, const json_t *root, const json_t *text,
                                   aegis_error *err);
aegis_status aeg_config_quantisation(aeg_config *c, const json_t *root, aegis_error *err);

#endif
