/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer_hf.h - reading tokenizer.json; for the files that do it. Thread: owner only. */
#ifndef AEG_TEXT_TOKENIZER_HF_H
#define AEG_TEXT_TOKENIZER_HF_H

#include "base/json.h"
#include "text/tokenizer_build.h"

typedef struct {
    aeg_tokenizer_source s;
    const json_t *vocab;
    aeg_memory *memory;
    uint8_t *pool;      /* texts that are not loans from the JSON tree */
    size_t pool_n, pool_room;
    uint32_t tokens_room, merges_room, added_room;
    aegis_error *err;
} aeg_hf_reader;

#define AEG_HF_PATH "tokenizer.json"

/* Room in the pool, or NULL (error filled). */
uint8_t *aeg_hf_pool(aeg_hf_reader *r, size_t n);

/* The id of a spelling, in the vocabulary or among the added tokens read so far; AEG_TOKEN_NONE. */
uint32_t aeg_hf_find(const aeg_hf_reader *r, const char *text, size_t n);

/* AEGIS_E_MODEL if `object` has a key that is not in the NULL-terminated list. */
aegis_status aeg_hf_only_keys(aeg_hf_reader *r, const json_t *object, const char *what, const char *const *keys);

/* The pipeline: each takes the value of its key (NULL or JSON null if there is none). */
aegis_status aeg_hf_normalizer(aeg_hf_reader *r, const json_t *value, int depth);
aegis_status aeg_hf_pre_tokenizer(aeg_hf_reader *r, const json_t *value);
aegis_status aeg_hf_post_processor(aeg_hf_reader *r, const json_t *value, int depth);
aegis_status aeg_hf_decoder(aeg_hf_reader *r, const json_t *value, int depth);

/* Vocabulary and merges; added tokens, from both files. */
aegis_status aeg_hf_model(aeg_hf_reader *r, const json_t *model, size_t n_added);
aegis_status aeg_hf_added(aeg_hf_reader *r, const json_t *list, const json_t *config);

#endif
