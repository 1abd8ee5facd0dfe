/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - turn a model as published into a store (docs/store-format.md).
 *
 * Sources: a Hugging Face safetensors folder, an MLX folder or a GGUF file. Packing keeps quantised codes and
 * scales exactly; floating-point matrices are quantised by the MLX affine rule unless told to keep.
 * Thread: any; one pack per destination. Memory: at most `memory_bytes`.
 */
#ifndef AEGIS_PACK_H
#define AEGIS_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "aegis/error.h"

enum { AEGIS_BITS_DEFAULT = 0, AEGIS_BITS_KEEP = -1 };

typedef struct {
    int expert_bits;        /* 2, 3, 4, 5, 6, 8; KEEP: as in the source. DEFAULT: quantised sources keep, floating
                             * point sources become 4 bits */
    int dense_bits;         /* the same for everything else; routers and shared gates: 8 bits, of a quantised source's plain
                             * numbers none */
    const char *tokenizer_dir; /* where tokenizer.json etc. are, NULL: the source folder */
    bool needs_tokenizer;   /* AEGIS_E_MODEL, before anything large is written, if there is none */
    /* Write all of the store but its weights: manifest, tokenizer, template, and the large files in their sizes with nothing in
     * them (no room is taken on the disk). Enough for aegis_plan_compute and aegis_engine_open_text; an engine is refused. */
    bool outline;
    uint64_t memory_bytes;  /* ceiling of the packer's own memory; 0: 300 MiB */
    uint32_t n_threads;     /* that change types; 0: one per processor, fewer in little memory. The bytes do not depend on it */
    /* Once, when the source, the settings and the room are found right and writing begins; may be NULL */
    void (*begins)(void *ctx, uint64_t store_bytes);
    void *begins_ctx;
    void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes); /* source bytes; may be NULL */
    void *progress_ctx;
    /* non-zero: stop soon, remove what was written, return AEGIS_E_CANCELLED; may be NULL */
    int (*cancelled)(void *ctx);
    void *cancelled_ctx;
} aegis_pack_options;

typedef struct {
    uint64_t source_bytes, store_bytes, peak_memory_bytes;
    double seconds;
} aegis_pack_result;

/* AEGIS_E_MODEL: bad or unsupported source; AEGIS_E_IO: cannot write, disk full (nothing is left behind);
 * AEGIS_E_USAGE: dst exists and is not an empty folder. On success dst is a complete store: it is written
 * under a temporary name, synced and renamed. */
aegis_status aegis_pack(const char *src, const char *dst, const aegis_pack_options *options,
                        aegis_pack_result *result, aegis_error *err);

/* Re-hash a store. AEGIS_E_MODEL names the first thing that differs. */
aegis_status aegis_store_verify(const char *path, void (*progress)(void *ctx, uint64_t done, uint64_t total),
                                void *ctx, aegis_error *err);

/* A description of a store or of a source folder as JSON text (family, hyper-parameters, tensors by type and
 * bytes, sizes); free with aegis_free_text. */
aegis_status aegis_show_json(const char *path, char **json, aegis_error *err);
void aegis_free_text(char *text);

#endif
