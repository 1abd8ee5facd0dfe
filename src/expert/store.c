/* SPDX-License-Identifier: Apache-2.0 */
#include "expert/store.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "expert/store_manifest.h"
#include "format/hparams_io.h"
#include "format/layout.h"
#include "format/safetensors.h"
#include "kernels/blocks.h"
#include "kernels/planes.h"

enum { TENSOR_ALIGN = 64, MAX_RAW_TENSORS = 65536, MAX_FILES = 16, WHERE_MAX = 160 };

bool aeg_store_reads_sums(const aeg_store *store)
{
    bool reads = false;
    for (uint32_t i = 0; i < store->n_tensors; i++)
        reads = reads || (!store->tensors[i].vector && aeg_weight_reads_sums(store->tensors[i].type));
    for (uint32_t layer = 0; layer < store->hparams.n_layers; layer++)
        reads = reads || aeg_weight_reads_sums(store->experts.gate_up[layer]) || aeg_weight_reads_sums(store->experts.down[layer]);
    return reads;
}

const char *aeg_store_file_name(aeg_store_file file)
{
    static const char *const names[AEG_N_FILES] = { "dense.bin", "embed.bin", "experts.bin", "vision.bin", "mtp.bin" };
    return names[file];
}

/* --- dense ------------------------------------------------------------------------------------------------- */

static aegis_status open_tensor(aeg_store *store, uint32_t i, const json_t *o, uint64_t *end, aegis_error *err)
{
    aeg_store_tensor *t = &store->tensors[i];
    aeg_layout_entry e;
    char where[WHERE_MAX];
    const char *name, *type;
    aeg_layout_at(&e, &store->hparams, i);
    snprintf(where, sizeof where, "manifest.json: tensor '%s'", e.name);
    AEG_TRY(aeg_json_get_string(o, "name", where, &name, err));
    if (strcmp(name, e.name) != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "manifest.json: tensor %u is '%.100s', expected '%s'", i, name, e.name);
    AEG_TRY(aeg_json_get_string(o, "type", where, &type, err));
    t->vector = strcmp(type, "vector") == 0;
    if (t->vector != e.vector)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: type '%.40s', expected a %s", where, type,
                        e.vector ? "vector" : "matrix");
    t->type = (aeg_weight_type){ .kind = AEG_W_F32 };
    if (!t->vector)
        AEG_TRY(aeg_manifest_type(o, "type", where, &t->type, err));
    const uint32_t step = aeg_weight_col_step(t->type);
    if (!t->vector && e.n_cols % step != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u columns, expected a multiple of %u", where, e.n_cols, step);
    memcpy(t->name, e.name, sizeof t->name);
    t->n_rows = e.n_rows;
    t->n_cols = e.n_cols;
    AEG_TRY(aeg_manifest_expect(o, "rows", where, e.n_rows, NULL, err));
    AEG_TRY(aeg_manifest_expect(o, "cols", where, e.n_cols, NULL, err));
    /* the place follows from the types: anything else would be a hole or an overlap */
    const uint64_t bytes = t->vector ? 4 * (uint64_t)e.n_cols : aeg_matrix_bytes(t->type, e.n_rows, e.n_cols);
    AEG_TRY(aeg_manifest_expect(o, "offset", where, aeg_align_up(*end, TENSOR_ALIGN), &t->offset, err));
    AEG_TRY(aeg_manifest_expect(o, "bytes", where, bytes, &t->bytes, err));
    *end = t->offset + t->bytes;
    return aeg_manifest_hash(o, where, &t->xxh3, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const aeg_store_tensor *)a)->name, ((const aeg_store_tensor *)b)->name);
}

static aegis_status open_dense(aeg_store *store, const json_t *root, aegis_error *err)
{
    _Static_assert((int)AEG_TENSOR_NAME_MAX == (int)AEG_LAYOUT_NAME_MAX, "one name length");
    const json_t *o, *list;
    uint64_t end = 0;
    AEG_TRY(aeg_json_get_object(root, "dense", "manifest.json", &o, err));
    AEG_TRY(aeg_json_get_array(o, "tensors", "manifest.json: dense", &list, err));
    const uint32_t n = aeg_layout_count(&store->hparams);
    if (json_array_size(list) != n)
        return aeg_fail(err, AEGIS_E_MODEL, "manifest.json: %zu dense tensors, expected %u", json_array_size(list), n);
    store->tensors = aeg_calloc(store->memory, n, sizeof *store->tensors);
    if (store->tensors == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a table of %u tensors", n);
    store->n_tensors = n;
    for (uint32_t i = 0; i < n; i++)
        AEG_TRY(open_tensor(store, i, json_array_get(list, i), &end, err));
    AEG_TRY(aeg_manifest_expect(o, "bytes", "manifest.json: dense", aeg_align_up(end, AEG_STORE_ALIGN),
                                &store->file_bytes[AEG_FILE_DENSE], err));
    qsort(store->tensors, n, sizeof *store->tensors, by_name);
    return AEGIS_OK;
}

/* --- embedding ------------------------------------------------------------------------------------------------ */

static uint64_t embed_row_bytes(aeg_weight_type type, uint32_t n_cols)
{
    if (aeg_weight_is_block(type))
        return aeg_block_source_bytes(type.kind, n_cols);
    if (type.kind != AEG_W_AFFINE)
        return (uint64_t)n_cols * aeg_scale_bytes(type.kind);
    return (uint64_t)n_cols * type.bits / 8 + 2 * (uint64_t)(n_cols / type.group) * aeg_scale_bytes(type.scale_kind);
}

static aegis_status open_embed(aeg_store *store, const json_t *root, aegis_error *err)
{
    static const char where[] = "manifest.json: embed";
    aeg_store_embed *e = &store->embed;
    const json_t *o;
    AEG_TRY(aeg_json_get_object(root, "embed", "manifest.json", &o, err));
    AEG_TRY(aeg_manifest_type(o, "type", where, &e->type, err));
    if (e->type.kind == AEG_W_F8)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: the type is f8_e4m3, which no row of an embedding has", where);
    e->n_rows = store->hparams.vocab_size;
    e->n_cols = store->hparams.hidden_size;
    const uint32_t step = aeg_weight_reads_codes(e->type) ? aeg_weight_col_step(e->type) : 1; /* plain rows: any */
    if (e->n_cols % step != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u columns, expected a multiple of %u", where, e->n_cols, step);
    AEG_TRY(aeg_manifest_expect(o, "rows", where, e->n_rows, NULL, err));
    AEG_TRY(aeg_manifest_expect(o, "cols", where, e->n_cols, NULL, err));
    AEG_TRY(aeg_manifest_expect(o, "row_bytes", where, embed_row_bytes(e->type, e->n_cols), &e->row_bytes, err));
    AEG_TRY(aeg_manifest_expect(o, "bytes", where, aeg_align_up(e->row_bytes * e->n_rows, AEG_STORE_ALIGN),
                                &store->file_bytes[AEG_FILE_EMBED], err));
    return aeg_manifest_hash(o, where, &e->xxh3, err);
}

static float stored(uint32_t kind, const uint8_t *p, size_t i) { return aeg_stored_float(kind, p, i); }

void aeg_store_embed_row(const aeg_store_embed *embed, const uint8_t *row, float *out)
{
    const aeg_weight_type type = embed->type;
    if (aeg_weight_is_block(type)) {
        aeg_blocks_source_row(type.kind, row, embed->n_cols, out);
        return;
    }
    if (type.kind != AEG_W_AFFINE) {
        for (uint32_t c = 0; c < embed->n_cols; c++)
            out[c] = stored(type.kind, row, c);
        return;
    }
    const uint32_t bits = type.bits, mask = (1u << bits) - 1;
    const size_t code_bytes = (size_t)embed->n_cols * bits / 8;
    const uint8_t *scales = row + code_bytes;
    const uint8_t *biases = scales + (size_t)(embed->n_cols / type.group) * aeg_scale_bytes(type.scale_kind);
    for (uint32_t c = 0; c < embed->n_cols; c++) {
        const size_t bit = (size_t)c * bits, byte = bit / 8;
        /* a code may straddle two bytes; the one after the codes exists (scales) */
        const uint32_t two = row[byte] | (uint32_t)row[byte + 1] << 8;
        const uint32_t group = c / type.group;
        out[c] = fmaf(stored(type.scale_kind, scales, group), (float)(two >> (bit % 8) & mask),
                      stored(type.scale_kind, biases, group));
    }
}

/* --- experts -------------------------------------------------------------------------------------------------- */

static aegis_status open_expert_layer(aeg_store *store, uint32_t layer, const json_t *o, aegis_error *err)
{
    const aeg_hparams *h = &store->hparams;
    aeg_store_experts *x = &store->experts;
    char where[WHERE_MAX];
    snprintf(where, sizeof where, "manifest.json: experts of layer %u", layer);
    AEG_TRY(aeg_manifest_type(o, "gate_up", where, &x->gate_up[layer], err));
    AEG_TRY(aeg_manifest_type(o, "down", where, &x->down[layer], err));
    const uint32_t a = aeg_weight_col_step(x->gate_up[layer]), b = aeg_weight_col_step(x->down[layer]);
    if (h->hidden_size % a != 0 || h->expert_width % b != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u and %u columns, expected multiples of %u and %u", where, h->hidden_size,
                        h->expert_width, a, b);
    AEG_TRY(aeg_manifest_expect(o, "gate_up_bytes", where,
                                2 * aeg_matrix_bytes(x->gate_up[layer], h->expert_width, h->hidden_size),
                                &x->gate_up_bytes[layer], err));
    AEG_TRY(aeg_manifest_expect(o, "down_bytes", where,
                                aeg_matrix_bytes(x->down[layer], h->hidden_size, h->expert_width),
                                &x->down_bytes[layer], err));
    return aeg_manifest_hash(o, where, &x->xxh3[layer], err);
}

static aegis_status open_experts(aeg_store *store, const json_t *root, aegis_error *err)
{
    static const char where[] = "manifest.json: experts";
    const aeg_hparams *h = &store->hparams;
    aeg_store_experts *x = &store->experts;
    const json_t *o, *list;
    uint64_t first = 0, second = 0, bytes = 0;
    AEG_TRY(aeg_json_get_object(root, "experts", "manifest.json", &o, err));
    AEG_TRY(aeg_json_get_array(o, "layers", where, &list, err));
    if (json_array_size(list) != aeg_moe_layers(h))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %zu layers, expected %u", where, json_array_size(list), aeg_moe_layers(h));
    for (uint32_t layer = h->n_dense_layers; layer < h->n_layers; layer++) {
        AEG_TRY(open_expert_layer(store, layer, json_array_get(list, layer - h->n_dense_layers), err));
        first = AEG_MAX(first, x->gate_up_bytes[layer]);
        second = AEG_MAX(second, x->down_bytes[layer]);
    }
    first = aeg_align_up(first, AEG_STORE_ALIGN);
    second = aeg_align_up(second, AEG_STORE_ALIGN);
    AEG_TRY(aeg_manifest_expect(o, "down_offset", where, first, &x->down_offset, err));
    AEG_TRY(aeg_manifest_expect(o, "record_bytes", where, first + second, &x->record_bytes, err));
    if (!aeg_mul(x->record_bytes, (uint64_t)aeg_moe_layers(h) * h->n_experts, &bytes) || bytes > INT64_MAX)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: more bytes than a file can have", where);
    return aeg_manifest_expect(o, "bytes", where, bytes, &store->file_bytes[AEG_FILE_EXPERTS], err);
}

/* --- vision, mtp and small files ------------------------------------------------------------------------------------- */

/* Sections of tensors as they were in the source. */
static aegis_status open_raw_tensor(const json_t *o, const char *section, size_t i, uint64_t *end, aegis_error *err)
{
    char where[WHERE_MAX];
    const char *name;
    uint64_t bytes = 0, hash;
    snprintf(where, sizeof where, "manifest.json: %s tensor %zu", section, i);
    AEG_TRY(aeg_json_get_string(o, "name", where, &name, err));
    snprintf(where, sizeof where, "manifest.json: %s tensor '%.100s'", section, name);
    AEG_TRY(aeg_manifest_expect(o, "offset", where, aeg_align_up(*end, TENSOR_ALIGN), NULL, err));
    AEG_TRY(aeg_json_get_u64(o, "bytes", where, &bytes, err));
    if (bytes > INT64_MAX / 2 || *end > INT64_MAX / 4)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: more bytes than a file can have", where);
    *end = aeg_align_up(*end, TENSOR_ALIGN) + bytes;
    return aeg_manifest_hash(o, where, &hash, err);
}

static aegis_status open_raw(aeg_store *store, const json_t *root, const char *section, aeg_store_file file, aegis_error *err)
{
    char where[WHERE_MAX];
    const json_t *o, *list;
    uint64_t end = 0;
    if (json_object_get(root, section) == NULL)
        return AEGIS_OK;
    snprintf(where, sizeof where, "manifest.json: %s", section);
    AEG_TRY(aeg_json_get_object(root, section, "manifest.json", &o, err));
    AEG_TRY(aeg_json_get_array(o, "tensors", where, &list, err));
    if (json_array_size(list) == 0 || json_array_size(list) > MAX_RAW_TENSORS)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %zu tensors, expected 1 to %d", where, json_array_size(list), MAX_RAW_TENSORS);
    for (size_t i = 0; i < json_array_size(list); i++)
        AEG_TRY(open_raw_tensor(json_array_get(list, i), section, i, &end, err));
    return aeg_manifest_expect(o, "bytes", where, aeg_align_up(end, AEG_STORE_ALIGN), &store->file_bytes[file], err);
}

static aegis_status check_size(const char *folder, const char *name, uint64_t expected, aegis_error *err)
{
    char path[AEG_PATH_MAX];
    struct stat st;
    AEG_TRY(aeg_path_join(path, folder, name, err));
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: missing or not a regular file", path);
    if ((uint64_t)st.st_size != expected)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %llu bytes, expected %llu", path, (unsigned long long)st.st_size,
                        (unsigned long long)expected);
    return AEGIS_OK;
}

static aegis_status open_small_file(aeg_store *store, const json_t *o, aegis_error *err)
{
    static const char *const known[] = { "tokenizer.bin", "chat_template.jinja", "config.json",
                                         "preprocessor_config.json" };
    const char *name;
    uint64_t bytes = 0, hash;
    AEG_TRY(aeg_json_get_string(o, "name", "manifest.json: files", &name, err));
    size_t i = 0;
    while (i < AEG_ARRAY_LEN(known) && strcmp(known[i], name) != 0)
        i++;
    if (i == AEG_ARRAY_LEN(known))
        return aeg_fail(err, AEGIS_E_MODEL, "manifest.json: unknown file '%.100s'", name);
    AEG_TRY(aeg_json_get_u64(o, "bytes", "manifest.json: files", &bytes, err));
    AEG_TRY(aeg_manifest_hash(o, "manifest.json: files", &hash, err));
    AEG_TRY(check_size(store->path, name, bytes, err));
    store->has_tokenizer |= i == 0;
    store->has_template |= i == 1;
    return AEGIS_OK;
}

static aegis_status open_files(aeg_store *store, const json_t *root, aegis_error *err)
{
    const json_t *list;
    AEG_TRY(aeg_json_get_array(root, "files", "manifest.json", &list, err));
    if (json_array_size(list) > MAX_FILES)
        return aeg_fail(err, AEGIS_E_MODEL, "manifest.json: %zu files, expected at most %d", json_array_size(list),
                        MAX_FILES);
    for (size_t i = 0; i < json_array_size(list); i++)
        AEG_TRY(open_small_file(store, json_array_get(list, i), err));
    for (int f = 0; f < AEG_N_FILES; f++)
        if (store->file_bytes[f] > 0)
            AEG_TRY(check_size(store->path, aeg_store_file_name((aeg_store_file)f), store->file_bytes[f], err));
    return AEGIS_OK;
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

static aegis_status read_manifest(aeg_store *store, const json_t *root, aegis_error *err)
{
    const json_t *h;
    store->outline = json_is_true(json_object_get(root, "outline"));
    AEG_TRY(aeg_json_get_object(root, "hparams", "manifest.json", &h, err));
    AEG_TRY(aeg_hparams_parse(&store->hparams, h, "manifest.json: hparams", err));
    AEG_TRY(open_dense(store, root, err));
    AEG_TRY(open_embed(store, root, err));
    AEG_TRY(open_experts(store, root, err));
    AEG_TRY(open_raw(store, root, "vision", AEG_FILE_VISION, err));
    AEG_TRY(open_raw(store, root, "mtp", AEG_FILE_MTP, err));
    AEG_TRY(aeg_hit_curve_read(&store->hit_curve, root, err));
    return open_files(store, root, err);
}

aegis_status aeg_store_open(aeg_store **out, const char *path, aeg_memory *memory, aegis_error *err)
{
    json_t *root = NULL;
    *out = NULL;
    if (!aeg_is_directory(path))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: not a folder", path);
    aeg_store *store = aeg_calloc(memory, 1, sizeof *store);
    if (store == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory to open the store", path);
    store->memory = memory;
    store->path = aeg_strdup(memory, path);
    aegis_status status = store->path == NULL ? aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for the path", path)
                                              : aeg_manifest_load(&root, path, memory, &store->model_key, err);
    if (status == AEGIS_OK)
        status = read_manifest(store, root, err);
    json_decref(root);
    if (status != AEGIS_OK) {
        aeg_store_close(store);
        return aeg_wrap(err, status, "store %s", path);
    }
    *out = store;
    return AEGIS_OK;
}

void aeg_store_close(aeg_store *store)
{
    if (store == NULL)
        return;
    aeg_free(store->memory, store->tensors);
    aeg_free(store->memory, store->path);
    aeg_free(store->memory, store);
}

const aeg_store_tensor *aeg_store_find(const aeg_store *store, const char *name)
{
    size_t low = 0, high = store->n_tensors;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        const int order = strcmp(store->tensors[mid].name, name);
        if (order == 0)
            return &store->tensors[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

bool aeg_store_probe(const char *path)
{
    static const char tag[] = "\"format\": \"aegis-store\"";
    char full[AEG_PATH_MAX], head[64] = { 0 };
    if (aeg_path_join(full, path, "manifest.json", NULL) != AEGIS_OK)
        return false;
    const int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, head, sizeof head - 1);
    close(fd);
    return n > 0 && strstr(head, tag) != NULL;
}
