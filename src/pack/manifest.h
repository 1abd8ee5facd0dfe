/* SPDX-License-Identifier: Apache-2.0 */
/* pack/manifest.h - writing manifest.json (docs/store-format.md); expert/store.c reads it. Thread: any. */
#ifndef AEG_PACK_MANIFEST_H
#define AEG_PACK_MANIFEST_H

#include "pack/plan.h"
#include "pack/text.h"

enum { AEG_PACK_MAX_FILES = 4 };

typedef struct {
    const char *name;
    uint64_t bytes, xxh3;
} aeg_pack_file;

/* The whole text, its checksum included; an outline says that it is one. text->failed if memory was refused. */
void aeg_manifest_write(aeg_text *text, const aeg_plan *plan, const aeg_pack_file *files, uint32_t n_files, bool outline);

/* The member "hparams": {...}, without a comma after it. */
void aeg_manifest_hparams(aeg_text *text, const aeg_hparams *h);

#endif
