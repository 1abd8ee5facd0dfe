/* SPDX-License-Identifier: Apache-2.0 */
/* format/safetensors.h - the tensors of a safetensors file, a sharded set or a folder of model*.safetensors.
 *
 * Opening reads and checks the headers only (every rule of the container: offsets without holes, sizes equal to
 * shape times type, no duplicate name in or across shards). Memory: the header texts and one table entry per tensor.
 * Bad bytes are AEGIS_E_MODEL naming file, tensor, found and expected; a failed read is AEGIS_E_IO.
 * Thread: owner only.
 */
#ifndef AEG_FORMAT_SAFETENSORS_H
#define AEG_FORMAT_SAFETENSORS_H

#include "format/source.h"

enum { AEG_ST_MAX_HEADER = 100000000 /* the reference reader's limit */ };

/* `path`: a .safetensors file, or a folder with model.safetensors, or with model.safetensors.index.json and its
 * shards, or (index stale or absent) with model*.safetensors. On failure *out is zeroed. */
aegis_status aeg_st_open(aeg_source *out, const char *path, aeg_memory *memory, aegis_error *err);

#endif
