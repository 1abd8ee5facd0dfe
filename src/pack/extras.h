/* SPDX-License-Identifier: Apache-2.0 */
/* pack/extras.h - the small files of a store: tokenizer table, chat template, configs. Thread: owner only. */
#ifndef AEG_PACK_EXTRAS_H
#define AEG_PACK_EXTRAS_H

#include "pack/manifest.h"
#include "pack/sink.h"

typedef struct {
    const char *folder;        /* where they go */
    const char *src;           /* folder of config.json; unused with gguf */
    const char *tokenizer_dir; /* tokenizer.json or .model, tokenizer_config.json, chat_template.*, preprocessor_config.json; NULL: they
                                * are in the metadata of gguf */
    const aeg_gguf *gguf;      /* NULL: the source is a folder */
    aeg_sink *sink;
    aeg_memory *memory;
    aeg_pack_file files[AEG_PACK_MAX_FILES];
    uint32_t n_files;
} aeg_extras;

/* What is absent from the source is absent from the store. */
aegis_status aeg_extras_write(aeg_extras *x, aegis_error *err);
/* An upper bound of their size, for the check of free space. Parameters as above. */
uint64_t aeg_extras_estimate(const char *src, const char *tokenizer_dir, const aeg_gguf *gguf);
/* One file of the folder, hashed into *file (its name set). */
aegis_status aeg_extras_put(aeg_sink *sink, const char *folder, aeg_pack_file *file, const void *data, size_t n,
                            aegis_error *err);

#endif
