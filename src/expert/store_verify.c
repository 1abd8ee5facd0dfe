/* SPDX-License-Identifier: Apache-2.0 */
/* Re-reading a store: every byte of every file is covered by a hash or must be zero (padding). */
#define XXH_STATIC_LINKING_ONLY /* the state's size: it lives on the stack */
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "expert/store_manifest.h"
#include "format/rawfile.h"

enum { PIECE = 1 << 20 };

typedef struct {
    const aeg_store *store;
    uint8_t *buffer;      /* aeg_raw_room(PIECE) */
    aeg_raw raw;
    char path[AEG_PATH_MAX];
    uint64_t at;          /* next byte of the file that was not looked at */
    uint64_t done, total; /* of the whole store */
    aeg_progress progress;
    void *ctx;
} verifier;

static aegis_status open_file(verifier *v, const char *name, aegis_error *err)
{
    AEG_TRY(aeg_path_join(v->path, v->store->path, name, err));
    v->at = 0;
    return aeg_raw_open(&v->raw, v->path, err);
}

/* Bytes [v->at, end): hashed if `state`, else they must be zero. */
static aegis_status walk(verifier *v, uint64_t end, XXH3_state_t *state, aegis_error *err)
{
    while (v->at < end) {
        const uint8_t *p;
        const size_t n = (size_t)AEG_MIN(end - v->at, (uint64_t)PIECE);
        AEG_TRY(aeg_raw_view(&v->raw, v->at, n, v->buffer, &p, err));
        if (state != NULL)
            XXH3_64bits_update(state, p, n);
        for (size_t i = 0; state == NULL && i < n; i++)
            if (p[i] != 0)
                return aeg_fail(err, AEGIS_E_MODEL, "%s: byte %" PRIu64 " is padding and not zero", v->path, v->at + i);
        v->at += n;
        v->done += n;
        if (v->progress != NULL)
            v->progress(v->ctx, v->done, v->total);
    }
    return AEGIS_OK;
}

static aegis_status check_range(verifier *v, uint64_t offset, uint64_t bytes, uint64_t expected, const char *what,
                                aegis_error *err)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    AEG_TRY(walk(v, offset, NULL, err));
    AEG_TRY(walk(v, offset + bytes, &state, err));
    const uint64_t found = XXH3_64bits_digest(&state);
    if (found != expected)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %s has hash %016" PRIx64 ", expected %016" PRIx64, v->path, what, found,
                        expected);
    return AEGIS_OK;
}

static aegis_status close_file(verifier *v, uint64_t bytes, aegis_error *err)
{
    const aegis_status status = walk(v, bytes, NULL, err);
    aeg_raw_close(&v->raw);
    return status;
}

/* Tensors with name, offset, bytes and xxh3, as dense, vision and mtp list them; open checked the places. */
static aegis_status verify_list(verifier *v, const json_t *root, const char *section, aeg_store_file file,
                                aegis_error *err)
{
    const json_t *list = json_object_get(json_object_get(root, section), "tensors");
    if (list == NULL)
        return AEGIS_OK;
    AEG_TRY(open_file(v, aeg_store_file_name(file), err));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        const char *name;
        uint64_t offset = 0, bytes = 0, hash = 0;
        AEG_TRY(aeg_json_get_string(o, "name", section, &name, err));
        AEG_TRY(aeg_json_get_u64(o, "offset", section, &offset, err));
        AEG_TRY(aeg_json_get_u64(o, "bytes", section, &bytes, err));
        AEG_TRY(aeg_manifest_hash(o, section, &hash, err));
        AEG_TRY(check_range(v, offset, bytes, hash, name, err));
    }
    return close_file(v, v->store->file_bytes[file], err);
}

static aegis_status verify_experts(verifier *v, aegis_error *err)
{
    const aeg_store *s = v->store;
    const uint64_t layer_bytes = s->experts.record_bytes * s->hparams.n_experts;
    AEG_TRY(open_file(v, aeg_store_file_name(AEG_FILE_EXPERTS), err));
    for (uint32_t layer = s->hparams.n_dense_layers; layer < s->hparams.n_layers; layer++) {
        char what[32];
        snprintf(what, sizeof what, "layer %u", layer);
        AEG_TRY(check_range(v, (layer - s->hparams.n_dense_layers) * layer_bytes, layer_bytes, s->experts.xxh3[layer], what, err));
    }
    return close_file(v, s->file_bytes[AEG_FILE_EXPERTS], err);
}

static aegis_status verify_files(verifier *v, const json_t *root, aegis_error *err)
{
    const json_t *list = json_object_get(root, "files");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        const char *name;
        uint64_t bytes = 0, hash = 0;
        AEG_TRY(aeg_json_get_string(o, "name", "files", &name, err));
        AEG_TRY(aeg_json_get_u64(o, "bytes", "files", &bytes, err));
        AEG_TRY(aeg_manifest_hash(o, "files", &hash, err));
        AEG_TRY(open_file(v, name, err));
        AEG_TRY(check_range(v, 0, bytes, hash, "the file", err));
        AEG_TRY(close_file(v, bytes, err));
    }
    return AEGIS_OK;
}

static aegis_status verify_all(verifier *v, const json_t *root, aegis_error *err)
{
    const aeg_store *s = v->store;
    AEG_TRY(verify_list(v, root, "dense", AEG_FILE_DENSE, err));
    AEG_TRY(open_file(v, aeg_store_file_name(AEG_FILE_EMBED), err));
    AEG_TRY(check_range(v, 0, s->embed.row_bytes * s->embed.n_rows, s->embed.xxh3, "the table", err));
    AEG_TRY(close_file(v, s->file_bytes[AEG_FILE_EMBED], err));
    AEG_TRY(verify_experts(v, err));
    AEG_TRY(verify_list(v, root, "vision", AEG_FILE_VISION, err));
    AEG_TRY(verify_list(v, root, "mtp", AEG_FILE_MTP, err));
    return verify_files(v, root, err);
}

aegis_status aeg_store_verify(const aeg_store *store, aeg_progress progress, void *ctx, aegis_error *err)
{
    if (store->outline)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: an outline to plan with, its weights were never written", store->path);
    verifier v = { .store = store, .progress = progress, .ctx = ctx };
    json_t *root = NULL;
    uint64_t key = 0;
    AEG_TRY(aeg_manifest_load(&root, store->path, store->memory, &key, err));
    for (int f = 0; f < AEG_N_FILES; f++)
        v.total += store->file_bytes[f];
    v.buffer = aeg_raw_buffer(store->memory, aeg_raw_room(PIECE));
    aegis_status status;
    if (v.buffer == NULL)
        status = aeg_fail(err, AEGIS_E_MEMORY, "no memory to verify %s", store->path);
    else if (key != store->model_key)
        status = aeg_fail(err, AEGIS_E_MODEL, "%s: manifest.json changed while the store was open", store->path);
    else
        status = verify_all(&v, root, err);
    aeg_raw_close(&v.raw);
    aeg_raw_buffer_free(store->memory, v.buffer);
    json_decref(root);
    return status;
}
