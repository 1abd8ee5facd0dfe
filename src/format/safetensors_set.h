/* SPDX-License-Identifier: Apache-2.0 */
/* format/safetensors_set.h - which files make up a set, and whether its index agrees. Internal to format/. */
#ifndef AEG_FORMAT_SAFETENSORS_SET_H
#define AEG_FORMAT_SAFETENSORS_SET_H

#include "format/safetensors.h"

typedef struct {
    const char *tensor; /* in the index text */
    uint32_t file;      /* index into name[] */
} aeg_st_mapped;

typedef struct {
    aeg_memory *memory;
    bool in_folder;      /* names are relative to the path that was opened */
    uint32_t n, capacity;
    char **name;         /* sorted */
    char *index_text;    /* NULL: no index, or a stale one */
    uint32_t n_mapped, mapped_capacity;
    aeg_st_mapped *mapped;
} aeg_st_names;

/* Fill a zeroed `names` (its memory set). */
aegis_status aeg_st_list(aeg_st_names *names, const char *path, aegis_error *err);
void aeg_st_names_free(aeg_st_names *names);

/* Every mapped tensor is in the shard the index names, or the index is stale altogether. */
aegis_status aeg_st_check_index(const aeg_st_names *names, const aeg_source *st, const char *path, aegis_error *err);

/* "folder/name" (folder NULL: name), counted; NULL when refused. */
char *aeg_st_join(aeg_memory *memory, const char *folder, const char *name);

#endif
