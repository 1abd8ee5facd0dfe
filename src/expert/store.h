/* SPDX-License-Identifier: Apache-2.0 */
/* expert/store.h - an opened store folder: its manifest, checked, and where each byte is.
 *
 * Layout of the folder: docs/store-format.md. Opening reads and validates manifest.json only; no tensor is
 * read. Every offset and size is checked against the real file sizes and against the shapes that the
 * hyper-parameters imply, so that later code may trust them.
 * Memory: the store object and its tables live on the counter given to aeg_store_open. Thread: any, read only.
 */
#ifndef AEG_EXPERT_STORE_H
#define AEG_EXPERT_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "expert/hit_curve.h"
#include "format/hparams.h"
#include "kernels/weights.h"

enum { AEG_STORE_VERSION = 1, AEG_STORE_ALIGN = 4096, AEG_TENSOR_NAME_MAX = 96 };

typedef enum {
    AEG_FILE_DENSE,   /* dense.bin: resident matrices and vectors; each tensor at a 64-byte boundary */
    AEG_FILE_EMBED,   /* embed.bin: one row per token                                                 */
    AEG_FILE_EXPERTS, /* experts.bin: one record per expert                                           */
    AEG_FILE_VISION,  /* vision.bin: source tensors as they are, row-major                            */
    AEG_FILE_MTP,     /* mtp.bin: those of the blocks that predict further tokens, likewise           */
    AEG_N_FILES,
} aeg_store_file;

/* Canonical names (N = layer):  final_norm, lm_head, layers.N.mixer_norm, layers.N.ffn_norm,
 *   layers.N.gdn.{qkv,z,b,a,out} matrices, layers.N.gdn.{conv,a_log,dt_bias,norm} vectors,
 *   layers.N.attn.{q,k,v,o} matrices, layers.N.attn.{q_norm,k_norm} vectors,
 *   layers.N.router, layers.N.shared.{gate,up,down}, layers.N.shared_gate [1, hidden] matrices; further ones and their
 *   shapes: format/layout.h.
 * Vectors are kind AEG_W_F32, n_rows = 1, plain f32 values in order (NOT x16 tiles); norm weights are the plain
 * multiplier ("+1" folded in). gdn.conv is [4][channels] f32, oldest tap first, stored as a vector of
 * 4*channels. */
typedef struct {
    char name[AEG_TENSOR_NAME_MAX];
    bool vector;
    aeg_weight_type type;
    uint32_t n_rows, n_cols;
    uint64_t offset, bytes;   /* in dense.bin */
    uint64_t xxh3;
} aeg_store_tensor;

/* Every record of experts.bin has the same size. Record of (layer, expert) starts at
 * ((layer - n_dense_layers) * n_experts + expert) * record_bytes. Part 1 at +0: gate and up row blocks interleaved (gate block 0,
 * up block 0, gate block 1, ...); part 2 at +down_offset: down row blocks. Both parts and the record are
 * multiples of 4096. Types may differ by layer; a layer's bytes may be smaller than the parts' room. Arrays are indexed by
 * the model's layer; entries of layers without experts are 0. */
typedef struct {
    uint64_t record_bytes, down_offset;
    aeg_weight_type gate_up[AEG_MAX_LAYERS], down[AEG_MAX_LAYERS];
    uint64_t gate_up_bytes[AEG_MAX_LAYERS], down_bytes[AEG_MAX_LAYERS]; /* used bytes, unpadded */
    uint64_t xxh3[AEG_MAX_LAYERS];                                     /* of the layer's records, padding included */
} aeg_store_experts;

/* Rows of embed.bin, row_stride apart: for AFFINE the packed codes (MLX bit order: code k at bits
 * [k*bits, (k+1)*bits) of a little-endian bit string), then scales, then biases; for plain types the values; for ggml
 * types the source's blocks. */
typedef struct {
    aeg_weight_type type;
    uint32_t n_rows, n_cols;
    uint64_t row_bytes;
    uint64_t xxh3;
} aeg_store_embed;

typedef struct aeg_store aeg_store;

struct aeg_store {
    char *path;               /* the folder */
    aeg_hparams hparams;
    uint32_t n_tensors;
    aeg_store_tensor *tensors; /* sorted by name */
    aeg_store_experts experts;
    aeg_store_embed embed;
    uint64_t file_bytes[AEG_N_FILES]; /* 0: absent (vision, mtp) */
    bool outline;              /* its weights were never written: to plan with */
    bool has_tokenizer;        /* tokenizer.bin */
    bool has_template;         /* chat_template.jinja */
    uint64_t model_key;        /* XXH3 of the manifest as packed: identifies weights, types and layout */
    aeg_hit_curve hit_curve;   /* n = 0: none was saved */
    aeg_memory *memory;
};

/* AEGIS_E_MODEL naming file, thing, found, expected. */
aegis_status aeg_store_open(aeg_store **out, const char *path, aeg_memory *memory, aegis_error *err);
void aeg_store_close(aeg_store *store); /* NULL allowed */

const aeg_store_tensor *aeg_store_find(const aeg_store *store, const char *name); /* NULL if absent */

/* Has it matrices whose products read sums of codes (aeg_weight_reads_sums)? */
bool aeg_store_reads_sums(const aeg_store *store);

/* "dense.bin" etc. */
const char *aeg_store_file_name(aeg_store_file file);

/* Is this folder a store (has manifest.json with our format tag)? Cheap; never fails. */
bool aeg_store_probe(const char *path);

/* One embedding row in stored form -> f32 [n_cols]: fmaf(scale, code, bias) for AFFINE, kernels/blocks.h for ggml types. */
void aeg_store_embed_row(const aeg_store_embed *embed, const uint8_t *row, float *out);

/* Re-read everything and compare the hashes. `progress` may be NULL. */
typedef void (*aeg_progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
aegis_status aeg_store_verify(const aeg_store *store, aeg_progress progress, void *ctx, aegis_error *err);

#endif
