/* SPDX-License-Identifier: Apache-2.0 */
/* format/config.h - config.json and generation_config.json of a published model, in our own terms.
 *
 * Understands the model_types that config.c lists, as Hugging Face and MLX write them; one file per family reads them
 * (config_FAMILY.c). Another model_type, a rope or quantisation we do not run, or a value out of range is AEGIS_E_MODEL
 * with the value and what was expected.
 * Thread: any.
 */
#ifndef AEG_FORMAT_CONFIG_H
#define AEG_FORMAT_CONFIG_H

#include "base/error.h"
#include "base/memory.h"
#include "format/hparams.h"

/* Rows and columns with one scale of FP8; another block size is refused. */
enum { AEG_F8_BLOCK = 128 };

typedef struct {
    char *module;        /* "language_model.model.layers.0.mlp.gate" */
    bool quantised;      /* false: the config says `false`           */
    uint32_t bits, group;
} aeg_config_override;

typedef struct {
    aeg_hparams hparams;
    bool tie_embeddings; /* lm_head is the embedding table           */
    bool norms_lack_one; /* Hugging Face stores w of norms that multiply by 1 + w */
    bool quantised;      /* has a "quantization" object              */
    bool fp8;            /* its "quantization_config" is FP8 in blocks of 128 x 128 */
    uint32_t n_mtp;      /* blocks behind the layers that predict further tokens, in the same files */
    uint32_t bits, group; /* its defaults                            */
    uint32_t n_overrides;
    aeg_config_override *overrides; /* sorted by module              */
    aeg_memory *memory;
} aeg_config;

/* On failure *out is zeroed. */
aegis_status aeg_config_load(aeg_config *out, const char *folder, aeg_memory *memory, aegis_error *err);
void aeg_config_free(aeg_config *config); /* accepts a zeroed one */

/* What the config says of a module: false if it should not be quantised. A hint: shapes are trusted first. */
bool aeg_config_quant(const aeg_config *config, const char *module, uint32_t *bits, uint32_t *group);

#endif
