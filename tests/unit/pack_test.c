/* SPDX-License-Identifier: Apache-2.0 */
/* Packing real models: codes, scales and biases are those of MLX; the bytes of the demo's store are pinned. */
#include "support/t.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "aegis/pack.h"
#include "expert/store.h"
#include "kernels/half.h"
#include "support/t_tensors.h"
#include "unit/mlx_order.h"

#define DEMO AEGIS_SOURCE_DIR "/models/demo"
#define TINY AEGIS_SOURCE_DIR "/tests/data/qwen35moe-tiny"

/* A store packed with these options; the same one when asked again. */
static const char *pack(const char *src, int expert_bits, int dense_bits)
{
    enum { MAX = 16 };
    static struct {
        const char *src;
        int expert_bits, dense_bits;
        char path[4096];
    } stores[MAX];
    static int n;
    aegis_error err = { 0 };
    for (int i = 0; i < n; i++)
        if (strcmp(stores[i].src, src) == 0 && stores[i].expert_bits == expert_bits && stores[i].dense_bits == dense_bits)
            return stores[i].path;
    T_CHECK(n < MAX);
    const aegis_pack_options options = { .expert_bits = expert_bits, .dense_bits = dense_bits };
    snprintf(stores[n].path, sizeof stores[n].path, "%s/store%d", t_folder(), n);
    T_OK(aegis_pack(src, stores[n].path, &options, NULL, &err), &err);
    stores[n].src = src;
    stores[n].expert_bits = expert_bits;
    stores[n].dense_bits = dense_bits;
    return stores[n++].path;
}

static uint64_t hash_file(const char *folder, const char *name)
{
    size_t n;
    char *text = t_read_file(t_path(folder, name), &n);
    const uint64_t hash = XXH3_64bits(text, n);
    t_free(text);
    return hash;
}

/* --- against MLX ---------------------------------------------------------------------------------------------- */

static void check_sum(void *ctx, const char *name, const uint8_t *data, size_t n)
{
    char key[300], *at = strstr(ctx, name);
    snprintf(key, sizeof key, "%s ", name);
    while (at != NULL && (strncmp(at, key, strlen(key)) != 0 || at[-1] != '\n'))
        at = strstr(at + 1, name);
    if (at == NULL)
        fail_msg("%s: not in model.sums", name);
    char hash[17] = { 0 };
    T_CHECK(sscanf(at, "%*s %*s %*s %16s", hash) == 1);
    const uint64_t found = XXH3_64bits(data, n);
    if (found != strtoull(hash, NULL, 16))
        fail_msg("%s: hash %016" PRIx64 ", MLX has %s", name, found, hash);
}

/* Every tensor of the sums but the vision tower's. */
static size_t count_text_sums(const char *sums)
{
    size_t n = 0;
    for (const char *p = sums; (p = strstr(p, "\nlanguage_model.")) != NULL; p++)
        n++;
    return n;
}

static void check_against_sums(const char *store, const char *sums_path)
{
    char *sums = t_read_file(sums_path, NULL);
    T_CHECK(mlx_each_tensor(store, check_sum, sums) == count_text_sums(sums));
    t_free(sums);
}

static void bf16_source_at_4_bits_is_what_mlx_makes(void **state)
{
    (void)state;
    check_against_sums(pack(TINY, 4, 4), TINY "-mlx4/model.sums");
    /* the default for a floating-point source */
    check_against_sums(pack(TINY, AEGIS_BITS_DEFAULT, AEGIS_BITS_DEFAULT), TINY "-mlx4/model.sums");
}

static void bf16_source_with_3_bit_experts_is_what_mlx_makes(void **state)
{
    (void)state;
    check_against_sums(pack(TINY, 3, 4), TINY "-mlx4e3/model.sums");
}

static void check_same(void *ctx, const char *name, const uint8_t *data, size_t n)
{
    const t_tensor *t = t_tensors_get(ctx, "%s", name);
    if (t->n_bytes != n || memcmp(t->data, data, n) != 0)
        fail_msg("%s: differs from the source", name);
}

static void mlx_source_keeps_its_codes(void **state)
{
    (void)state;
    t_tensors *source = t_tensors_open("models/demo/model.safetensors");
    mlx_each_tensor(pack(DEMO, 0, 0), check_same, source);
    mlx_each_tensor(pack(DEMO, 4, AEGIS_BITS_KEEP), check_same, source);
    t_tensors_close(source);
}

/* --- kept floating-point ---------------------------------------------------------------------------------------- */

static void check_plain(const aeg_store *store, const uint8_t *dense, const t_tensors *source, const char *ours,
                        const char *theirs)
{
    const aeg_store_tensor *t = aeg_store_find(store, ours);
    const t_tensor *s = t_tensors_get(source, "%s", theirs);
    T_CHECK(t != NULL && t->type.kind == AEG_W_BF16 && s->n_elements == (uint64_t)t->n_rows * t->n_cols);
    const aeg_weights w = { .type = t->type, .n_rows = t->n_rows, .n_cols = t->n_cols,
                            .block_stride = aeg_block_bytes(t->type, t->n_cols), .data = dense + t->offset };
    float *row = malloc(t->n_cols * sizeof *row);
    T_CHECK(row != NULL);
    for (uint32_t r = 0; r < t->n_rows; r++) {
        aeg_weights_row(&w, r, row);
        for (uint32_t c = 0; c < t->n_cols; c++)
            T_CHECK(row[c] == t_tensor_f32(s, (uint64_t)r * t->n_cols + c));
    }
    free(row);
}

static void kept_bf16_has_the_values_of_the_source(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err;
    aeg_store *store;
    const char *path = pack(TINY, AEGIS_BITS_KEEP, AEGIS_BITS_KEEP);
    t_tensors *source = t_tensors_open("tests/data/qwen35moe-tiny/model.safetensors");
    T_OK(aeg_store_open(&store, path, &memory, &err), &err);
    uint8_t *dense = (uint8_t *)t_read_file(t_path(path, "dense.bin"), NULL);
    check_plain(store, dense, source, "lm_head", "lm_head.weight");
    check_plain(store, dense, source, "layers.0.gdn.a", "model.language_model.layers.0.linear_attn.in_proj_a.weight");
    check_plain(store, dense, source, "layers.3.attn.q", "model.language_model.layers.3.self_attn.q_proj.weight");
    check_plain(store, dense, source, "layers.2.shared_gate", "model.language_model.layers.2.mlp.shared_expert_gate.weight");
    /* norms: 1 + w, added in f32 */
    const aeg_store_tensor *norm = aeg_store_find(store, "layers.1.mixer_norm");
    const t_tensor *w = t_tensors_get(source, "model.language_model.layers.1.input_layernorm.weight");
    for (uint32_t i = 0; i < norm->n_cols; i++)
        T_CHECK(((const float *)(const void *)(dense + norm->offset))[i] == 1.0f + t_tensor_f32(w, i));
    /* one expert: fused rows split into gate and up, interleaved by row block */
    uint8_t *experts = (uint8_t *)t_read_file(t_path(path, "experts.bin"), NULL);
    const aeg_hparams *h = &store->hparams;
    const uint32_t layer = 2, expert = 5;
    const size_t block = aeg_block_bytes(store->experts.gate_up[layer], h->hidden_size);
    const t_tensor *fused = t_tensors_get(source, "model.language_model.layers.2.mlp.experts.gate_up_proj");
    float *row = malloc(h->hidden_size * sizeof *row);
    for (uint32_t r = 0; r < 2 * h->expert_width; r++) {
        const bool up = r >= h->expert_width;
        const aeg_weights m = { .type = store->experts.gate_up[layer], .n_rows = h->expert_width, .n_cols = h->hidden_size,
                                .block_stride = 2 * block, .data = experts + (layer * h->n_experts + expert) *
                                store->experts.record_bytes + (up ? block : 0) };
        aeg_weights_row(&m, up ? r - h->expert_width : r, row);
        for (uint32_t c = 0; c < h->hidden_size; c++)
            T_CHECK(row[c] == t_tensor_f32(fused, ((uint64_t)expert * 2 * h->expert_width + r) * h->hidden_size + c));
    }
    free(row);
    t_free(experts);
    t_free(dense);
    t_tensors_close(source);
    aeg_store_close(store);
    t_no_leak(&memory);
}

/* --- 3 bits from 4 --------------------------------------------------------------------------------------------- */

/* One group of 64 by the rule of the document, in plain double-checked steps; writes 24 bytes of codes. */
static void quantise_3(const float *w, uint8_t *bits, uint16_t *scale, uint16_t *bias)
{
    float lo = w[0], hi = w[0];
    for (int i = 1; i < 64; i++) {
        lo = w[i] < lo ? w[i] : lo;
        hi = w[i] > hi ? w[i] : hi;
    }
    const float a = lo < 0 ? -lo : lo, b = hi < 0 ? -hi : hi;
    float s = (hi - lo) / 7.0f, z = 0;
    if (s < 1e-7f)
        s = 1e-7f;
    const float edge = a > b ? lo : hi;
    if (!(a > b))
        s = -s;
    const float q0 = (float)(double)__builtin_rintf(edge / s);
    if (q0 != 0) {
        s = edge / q0;
        z = edge;
    }
    memset(bits, 0, 24);
    for (int i = 0; i < 64; i++) {
        float q = __builtin_rintf((w[i] - z) / s);
        q = q < 0 ? 0 : q > 7 ? 7 : q;
        for (int k = 0; k < 3; k++)
            if ((int)q >> k & 1)
                bits[(3 * i + k) / 8] = (uint8_t)(bits[(3 * i + k) / 8] | 1 << ((3 * i + k) % 8));
    }
    *scale = aeg_bf16_from_f32(s);
    *bias = aeg_bf16_from_f32(z);
}

static void check_requantised(void *ctx, const char *name, const uint8_t *data, size_t n)
{
    t_tensors *source = ctx;
    char module[200];
    const char *end = strstr(name, ".weight");
    if (strstr(name, "switch_mlp") == NULL) { /* the rest stays */
        check_same(source, name, data, n);
        return;
    }
    if (end == NULL || strstr(name, "layers.7.") == NULL)
        return;
    snprintf(module, sizeof module, "%.*s", (int)(end - name), name);
    const t_tensor *w = t_tensors_get(source, "%s.weight", module), *s = t_tensors_get(source, "%s.scales", module);
    const t_tensor *z = t_tensors_get(source, "%s.biases", module);
    T_CHECK(n == w->n_bytes / 4 * 3);
    for (uint64_t g = 0; g < s->n_elements; g++) {
        float values[64];
        uint8_t bits[24];
        uint16_t scale, bias;
        for (uint32_t i = 0; i < 64; i++) {
            const uint8_t byte = ((const uint8_t *)w->data)[g * 32 + i / 2];
            const float scaled = t_tensor_f32(s, g) * (float)(i % 2 ? byte >> 4 : byte & 15);
            values[i] = scaled + t_tensor_f32(z, g);
        }
        quantise_3(values, bits, &scale, &bias);
        if (memcmp(bits, data + g * 24, 24) != 0)
            fail_msg("%s: group %" PRIu64 " differs", name, g);
    }
}

static void three_bits_from_four_follow_the_rule(void **state)
{
    (void)state;
    t_tensors *source = t_tensors_open("models/demo/model.safetensors");
    mlx_each_tensor(pack(DEMO, 3, 0), check_requantised, source);
    t_tensors_close(source);
}

/* --- the bytes of a store -------------------------------------------------------------------------------------- */

static const char *const store_files[] = { "dense.bin", "embed.bin", "experts.bin", "vision.bin", "tokenizer.bin",
                                           "chat_template.jinja", "config.json", "preprocessor_config.json",
                                           "manifest.json" };
enum { N_STORE_FILES = sizeof store_files / sizeof store_files[0] };

static void store_of_the_demo_is_pinned(void **state)
{
    (void)state;
    const char *store = pack(DEMO, 0, 0);
    char *doc = t_read_file(AEGIS_SOURCE_DIR "/docs/store-format.md", NULL);
    int bad = 0;
    for (size_t i = 0; i < N_STORE_FILES; i++) {
        char line[100];
        snprintf(line, sizeof line, "| `%s` | `%016" PRIx64 "` |", store_files[i], hash_file(store, store_files[i]));
        if (strstr(doc, line) == NULL) {
            print_message("not in docs/store-format.md: %s\n", line);
            bad++;
        }
    }
    t_free(doc);
    T_CHECK(bad == 0);
}

static void same_bytes_at_every_memory_ceiling(void **state)
{
    (void)state;
    static const uint64_t ceilings[] = { 7 << 20, 16 << 20 };
    const char *first = pack(DEMO, 0, 0);
    for (size_t c = 0; c < sizeof ceilings / sizeof ceilings[0]; c++) {
        aegis_error err = { 0 };
        aegis_pack_result result = { 0 };
        const aegis_pack_options options = { .memory_bytes = ceilings[c] };
        char dst[4096];
        snprintf(dst, sizeof dst, "%s/store", t_folder());
        T_OK(aegis_pack(DEMO, dst, &options, &result, &err), &err);
        T_CHECK(result.peak_memory_bytes <= ceilings[c] && result.source_bytes > 27000000 && result.store_bytes > 27000000);
        for (size_t i = 0; i < N_STORE_FILES; i++)
            T_CHECK(hash_file(first, store_files[i]) == hash_file(dst, store_files[i]));
    }
    aegis_error err = { 0 };
    const aegis_pack_options options = { .memory_bytes = 100000 };
    T_FAILS(aegis_pack(DEMO, t_path(t_folder(), "none"), &options, NULL, &err), &err, AEGIS_E_MEMORY, "memory");
}

/* Changing types is done by several threads: whoever makes a block, it lies at its place. */
static void same_bytes_at_every_thread_count(void **state)
{
    (void)state;
    static const struct { uint32_t n_threads; uint64_t memory; } ways[] = { { 2, 0 }, { 7, 9 << 20 }, { 40, 0 } };
    static const char *const sources[] = { DEMO, TINY }, *const made[] = { "dense.bin", "embed.bin", "experts.bin", "manifest.json" };
    for (size_t s = 0; s < sizeof sources / sizeof sources[0]; s++) {
        aegis_error err = { 0 };
        aegis_pack_options options = { .expert_bits = 3, .dense_bits = 8, .n_threads = 1 };
        char first[4096];
        snprintf(first, sizeof first, "%s/store", t_folder());
        T_OK(aegis_pack(sources[s], first, &options, NULL, &err), &err);
        for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
            aegis_pack_result result = { 0 };
            char dst[4096];
            snprintf(dst, sizeof dst, "%s/store", t_folder());
            options.n_threads = ways[w].n_threads;
            options.memory_bytes = ways[w].memory;
            T_OK(aegis_pack(sources[s], dst, &options, &result, &err), &err);
            T_CHECK(result.peak_memory_bytes <= (ways[w].memory == 0 ? 300u << 20 : ways[w].memory));
            for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
                T_CHECK(hash_file(first, made[i]) == hash_file(dst, made[i]));
        }
    }
}

static void flip(const char *path, size_t at, uint8_t mask)
{
    FILE *f = fopen(path, "r+b");
    T_CHECK(f != NULL && fseek(f, (long)at, SEEK_SET) == 0);
    const int c = fgetc(f);
    T_CHECK(fseek(f, (long)at, SEEK_SET) == 0 && fputc(c ^ mask, f) != EOF && fclose(f) == 0);
}

static void verify_sees_any_changed_byte(void **state)
{
    (void)state;
    aegis_error err = { 0 };
    const char *store = pack(TINY, 0, 0);
    T_OK(aegis_store_verify(store, NULL, NULL, &err), &err);
    for (size_t i = 0; i < N_STORE_FILES; i++) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", store, store_files[i]);
        if (stat(path, &st) != 0)
            continue; /* no tokenizer here */
        const size_t n = (size_t)st.st_size;
        for (int k = 0; k < 7; k++) {
            const size_t at = k == 0 ? 0 : k == 1 ? n - 1 : t_below(n);
            const uint8_t mask = (uint8_t)(1u << t_below(8));
            flip(path, at, mask);
            if (aegis_store_verify(store, NULL, NULL, &err) != AEGIS_E_MODEL)
                fail_msg("%s: a changed byte at %zu of %zu went unseen", store_files[i], at, n);
            flip(path, at, mask);
        }
    }
    T_OK(aegis_store_verify(store, NULL, NULL, &err), &err);
    T_CHECK(truncate(t_path(store, "experts.bin"), 4096) == 0);
    T_FAILS(aegis_store_verify(store, NULL, NULL, &err), &err, AEGIS_E_MODEL, "experts.bin");
}

/* --- where it goes ----------------------------------------------------------------------------------------------- */

static int cancel_at_once(void *ctx)
{
    (*(int *)ctx)++;
    return 1;
}

static void destinations_and_cancelling(void **state)
{
    (void)state;
    aegis_error err = { 0 };
    const char *folder = t_folder();
    char dst[4096];
    snprintf(dst, sizeof dst, "%s/dst", folder);
    T_CHECK(mkdir(t_path(folder, "full"), 0755) == 0);
    t_write_file(t_path(folder, "full/x"), "x", 1);
    T_FAILS(aegis_pack(TINY, t_path(folder, "full"), NULL, NULL, &err), &err, AEGIS_E_USAGE, "not an empty folder");
    T_FAILS(aegis_pack(TINY, t_path(folder, "full/x"), NULL, NULL, &err), &err, AEGIS_E_USAGE, "not an empty folder");
    T_FAILS(aegis_pack(TINY, "", NULL, NULL, &err), &err, AEGIS_E_USAGE, "destination");
    T_FAILS(aegis_pack(t_path(folder, "nothing"), dst, NULL, NULL, &err), &err, AEGIS_E_MODEL, "nothing: No such file");
    T_FAILS(aegis_pack(t_path(folder, "full/x"), dst, NULL, NULL, &err), &err, AEGIS_E_MODEL, "neither a folder");
    T_FAILS(aegis_pack(t_path(folder, "full"), dst, NULL, NULL, &err), &err, AEGIS_E_MODEL, "config.json");
    const aegis_pack_options seven = { .expert_bits = 7 };
    T_FAILS(aegis_pack(TINY, dst, &seven, NULL, &err), &err, AEGIS_E_USAGE, "expert bits is 7");
    const aegis_pack_options text = { .needs_tokenizer = true };
    T_FAILS(aegis_pack(TINY, dst, &text, NULL, &err), &err, AEGIS_E_MODEL, "neither tokenizer.json nor tokenizer.model");
    T_CHECK(access(t_path(folder, "dst.aegis-part"), F_OK) != 0);
    int calls = 0;
    const aegis_pack_options cancel = { .cancelled = cancel_at_once, .cancelled_ctx = &calls };
    T_FAILS(aegis_pack(TINY, dst, &cancel, NULL, &err), &err, AEGIS_E_CANCELLED, "cancelled");
    T_CHECK(calls == 1 && access(dst, F_OK) != 0 && access(t_path(folder, "dst.aegis-part"), F_OK) != 0);
    /* an empty folder and a missing parent are fine, and what a killed packer left goes away */
    T_CHECK(mkdir(dst, 0755) == 0 && mkdir(t_path(folder, "dst.aegis-part"), 0755) == 0);
    t_write_file(t_path(folder, "dst.aegis-part/old"), "x", 1);
    T_OK(aegis_pack(TINY, dst, NULL, NULL, &err), &err);
    T_CHECK(access(t_path(dst, "old"), F_OK) != 0 && access(t_path(folder, "dst.aegis-part"), F_OK) != 0);
    T_OK(aegis_pack(TINY, t_path(folder, "a/b/c//"), NULL, NULL, &err), &err);
    T_OK(aegis_store_verify(t_path(folder, "a/b/c"), NULL, NULL, &err), &err);
}

static uint64_t bytes_on_disk(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static void an_outline_has_everything_but_weights(void **state)
{
    (void)state;
    static const char *const large[] = { "dense.bin", "embed.bin", "experts.bin" };
    aegis_error err = { 0 };
    aegis_pack_result result = { 0 };
    const aegis_pack_options options = { .outline = true, .memory_bytes = 16 << 20 };
    const char *real = pack(DEMO, 0, 0);
    char dst[4096];
    snprintf(dst, sizeof dst, "%s/outline", t_folder());
    T_OK(aegis_pack(DEMO, dst, &options, &result, &err), &err);
    T_CHECK(result.store_bytes > 27000000 && result.peak_memory_bytes <= options.memory_bytes);
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        struct stat a, b;
        T_CHECK(stat(t_path(real, large[i]), &a) == 0 && stat(t_path(dst, large[i]), &b) == 0 && a.st_size == b.st_size);
        T_CHECK(bytes_on_disk(t_path(dst, large[i])) == 0);
    }
    T_CHECK(hash_file(real, "tokenizer.bin") == hash_file(dst, "tokenizer.bin"));
    T_FAILS(aegis_store_verify(dst, NULL, NULL, &err), &err, AEGIS_E_MODEL, "outline");
    T_FAILS(aegis_pack(DEMO, dst, &options, NULL, &err), &err, AEGIS_E_USAGE, "not an empty folder");
}

static void show_describes_stores_and_sources(void **state)
{
    (void)state;
    aegis_error err = { 0 };
    char *text = NULL;
    T_OK(aegis_show_json(TINY, &text, &err), &err);
    T_CHECK(strstr(text, "\"kind\": \"source\"") != NULL && strstr(text, "\"format\": \"hf\"") != NULL);
    aegis_free_text(text);
    T_OK(aegis_show_json(pack(TINY, 3, 0), &text, &err), &err);
    T_CHECK(strstr(text, "\"kind\": \"store\"") != NULL && strstr(text, "affine 3-bit g64 bf16") != NULL);
    aegis_free_text(text);
    T_FAILS(aegis_show_json(t_folder(), &text, &err), &err, AEGIS_E_MODEL, "config.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_source_at_4_bits_is_what_mlx_makes),
        cmocka_unit_test(bf16_source_with_3_bit_experts_is_what_mlx_makes),
        cmocka_unit_test(mlx_source_keeps_its_codes),
        cmocka_unit_test(kept_bf16_has_the_values_of_the_source),
        cmocka_unit_test(three_bits_from_four_follow_the_rule),
        cmocka_unit_test(store_of_the_demo_is_pinned),
        cmocka_unit_test(same_bytes_at_every_memory_ceiling),
        cmocka_unit_test(same_bytes_at_every_thread_count),
        cmocka_unit_test(verify_sees_any_changed_byte),
        cmocka_unit_test(destinations_and_cancelling),
        cmocka_unit_test(an_outline_has_everything_but_weights),
        cmocka_unit_test(show_describes_stores_and_sources),
    };
    return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
