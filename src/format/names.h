/* SPDX-License-Identifier: Apache-2.0 */
/* format/names.h - where a published model keeps each of our tensors.
 *
 * Knows the names of Hugging Face (model.language_model., lm_head, mlp.experts fused or one tensor per expert; .weight_scale_inv of
 * FP8), of MLX
 * (language_model.model., mlp.switch_mlp, .scales and .biases), the bare model. prefix, and GGUF (names_gguf.h). Other files'
 * spellings stop here. Types come from the tensors' shapes; config.json only comments on them.
 * Memory: none of its own; pointers live as long as the source. Thread: owner of the source.
 */
#ifndef AEG_FORMAT_NAMES_H
#define AEG_FORMAT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "format/config.h"
#include "format/layout.h"
#include "format/safetensors.h"
#include "kernels/weights.h"

typedef struct {
    const aeg_source *st;
    const aeg_config *config;
    const char *prefix;      /* "model.language_model." etc. */
    const char *head;        /* "lm_head" or "language_model.lm_head" */
    const char *vision;      /* "model.visual." or "vision_tower."; NULL: no vision tensors */
    bool gguf;               /* names_gguf.h knows them; the others are unused */
    bool raw;                /* Hugging Face values: norms lack their +1 */
    bool quantised;          /* some matrix has .scales, or the model is FP8 */
} aeg_names;

/* Where a matrix keeps its rows if not one after the other: its rows are segment after segment, each of n_groups runs of
 * `run` rows that lie `stride` rows apart in the source, from `offset` on. Qwen3-Next keeps q, k, v and z of a key head
 * together, DeepSeek the rows of K and V of a head. n_segments 0: as they are. */
enum { AEG_ROW_SEGMENTS = 3 };
typedef struct {
    uint32_t n_segments, n_groups, stride;
    struct {
        uint32_t offset, run;
    } segment[AEG_ROW_SEGMENTS];
} aeg_row_order;

/* A matrix, or rows [row0, row0 + n_rows) of a taller one. */
typedef struct {
    const aeg_tensor *weight, *scales, *biases; /* the last two NULL for plain numbers; F8 has scales, per 128 x 128 */
    aeg_weight_type type;    /* as stored */
    uint64_t row0;
    uint32_t n_rows, n_cols;
    aeg_row_order order;     /* row0 is 0 with one */
    bool transposed;         /* its n_cols columns are the `run` rows of a group, and a group's columns its rows: K_b from kv_b */
} aeg_source_matrix;

/* Order and transposition of K_b or V_b in a matrix that has both: order and transposed of m, which has the entry's shape. */
void aeg_names_split_kv_b(const aeg_hparams *h, aeg_part part, aeg_source_matrix *m);

/* Order of q|k|v, z, b or a in a matrix that has them woven by key head: q, k, then v and z of the value heads that read this
 * key head; or b and a of these. part: AEG_PART_GDN_QKV, _Z, _B, _A. */
aeg_row_order aeg_names_woven(const aeg_hparams *h, aeg_part part);

/* The source row of row `row`; *n: how many rows from it on follow each other there. row < n_rows. */
uint64_t aeg_source_row(const aeg_source_matrix *m, uint32_t row, uint32_t *n);

/* The row of the scales of an F8 matrix for a row of its weight: one for 128, which begin anew with every matrix of a stack. */
uint64_t aeg_source_scale_row(const aeg_source_matrix *m, uint64_t source_row);

/* What is done to the values of a vector on their way into the store. */
typedef enum {
    AEG_VECTOR_AS_IT_IS,
    AEG_VECTOR_PLUS_ONE,     /* norms of Hugging Face's qwen3_5 lack their 1 */
    AEG_VECTOR_LOG_OF_MINUS, /* GGUF has -exp(A_log), we keep A_log          */
} aeg_vector_change;

/* The experts of a layer. Stacked: expert e of the matrix below has its rows at row0 + e * rows_per_expert. */
typedef enum { AEG_EXPERT_GATE, AEG_EXPERT_UP, AEG_EXPERT_DOWN, AEG_N_EXPERT_PARTS } aeg_expert_part;

/* Recognise the naming; `gguf`: the source is one. AEGIS_E_MODEL if the layers cannot be found. */
aegis_status aeg_names_init(aeg_names *out, const aeg_source *st, bool gguf, const aeg_config *config, aegis_error *err);

/* A matrix of the layout; its shape is checked. lm_head of a tied model is the embedding table. */
aegis_status aeg_names_matrix(const aeg_names *names, const aeg_layout_entry *entry, aeg_source_matrix *out,
                              aegis_error *err);
/* A vector of the layout, or the convolution. */
aegis_status aeg_names_vector(const aeg_names *names, const aeg_layout_entry *entry, const aeg_tensor **out,
                              aeg_vector_change *change, aegis_error *err);
aegis_status aeg_names_embed(const aeg_names *names, aeg_source_matrix *out, aegis_error *err);

/* Part `part` of an expert; *stacked (may be NULL): experts of the layer share a tensor, rows_per_expert apart. */
aegis_status aeg_names_expert(const aeg_names *names, uint32_t layer, uint32_t expert, aeg_expert_part part,
                              aeg_source_matrix *out, bool *stacked, uint32_t *rows_per_expert, aegis_error *err);

/* What is left of the name of a tensor of a block that predicts further tokens (its number first, where it has one: "40.eh_proj.weight");
 * NULL if it is not one. */
const char *aeg_names_mtp(const aeg_names *names, const aeg_tensor *t);

/* What is left of a vision tensor's name without its prefix; NULL if it is not one. */
const char *aeg_names_vision(const aeg_names *names, const aeg_tensor *t);

/* A tensor of the text model's layers that we would silently leave out and that would change the result (an
 * attention bias, another quantisation's scales) is AEGIS_E_MODEL. */
aegis_status aeg_names_check_unused(const aeg_names *names, aegis_error *err);

#endif
