/* SPDX-License-Identifier: Apache-2.0 */
/* format/config_gguf.h - hyper-parameters, stops and sampling defaults from the metadata of a GGUF file.
 *
 * Another architecture than those of format/family.h, an export without its trunk, an mmproj file, or a value out of
 * range is AEGIS_E_MODEL with the key, the value and what was expected. Keys that say nothing by being absent
 * (expert_gating_func, groups, norms) get the meaning that their files have; config_gguf.c says which.
 * Thread: any.
 */
#ifndef AEG_FORMAT_CONFIG_GGUF_H
#define AEG_FORMAT_CONFIG_GGUF_H

#include "format/config.h"
#include "format/gguf.h"

/* On failure *out is zeroed. */
aegis_status aeg_config_gguf(aeg_config *out, const aeg_gguf *g, aeg_memory *memory, aegis_error *err);

/* Token ids at which generation stops, beginning and sampling defaults (config_gguf_text.c); vocab_size is set. */
aegis_status aeg_config_gguf_text(aeg_hparams *h, const aeg_gguf *g, aegis_error *err);

/* The nearest double of a short decimal (at most 7 digits) to an f32 of the file: 0.7 for 0.699999988. */
double aeg_gguf_short(double f32);

#endif
