/* SPDX-License-Identifier: Apache-2.0 */
/* format/names_gguf.h - where a GGUF file keeps each of our tensors: blk.N.*, token_embd, output, output_norm.
 *
 * names.c asks here when its source is one. The names are the same for all families (the file's own differences: a
 * norm before the experts under two names, fused projections); anything in a layer that is not known is refused, because
 * leaving it out would change the result. Values are as GGUF has them: norms are whole, ssm_a is -exp(A_log).
 * Thread: owner of the source.
 */
#ifndef AEG_FORMAT_NAMES_GGUF_H
#define AEG_FORMAT_NAMES_GGUF_H

#include "format/names.h"

/* As the functions of names.h without _gguf. */
aegis_status aeg_names_gguf_matrix(const aeg_names *names, const aeg_layout_entry *entry, aeg_source_matrix *out,
                                   aegis_error *err);
aegis_status aeg_names_gguf_vector(const aeg_names *names, const aeg_layout_entry *entry, const aeg_tensor **out,
                                   aeg_vector_change *change, aegis_error *err);
aegis_status aeg_names_gguf_embed(const aeg_names *names, aeg_source_matrix *out, aegis_error *err);
aegis_status aeg_names_gguf_expert(const aeg_names *names, uint32_t layer, uint32_t expert, aeg_expert_part part,
                                   aeg_source_matrix *out, bool *stacked, uint32_t *rows_per_expert, aegis_error *err);
aegis_status aeg_names_gguf_check_unused(const aeg_names *names, aegis_error *err);

/* The kind of weights that a type of the file is stored as; false: not one that we run. */
bool aeg_dtype_weight_type(uint32_t dtype, aeg_weight_type *out);

#endif
