/* SPDX-License-Identifier: Apache-2.0 */
/* The same model under every naming and number format gives the same store; a model that lacks or contradicts
 * something gives one sentence that names it. */
#include "support/t.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "aegis/pack.h"
#include "base/json.h"
#include "kernels/half.h"
#include "unit/st_write.h"

#define TINY AEGIS_SOURCE_DIR "/tests/data/qwen35moe-tiny"
#define TINY_FILE "tests/data/qwen35moe-tiny/model.safetensors"
#define LM "model.language_model."

static char src[4096];
static char *embed_bytes;     /* embed.bin of the last store */
static uint64_t reference[3]; /* dense, embed, experts of the tiny model as published */

static void remove_folder(const char *path)
{
    char command[5000];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    T_CHECK(system(command) == 0);
}

static void hash_store(const char *store, uint64_t hash[3])
{
    static const char *const files[] = { "dense.bin", "embed.bin", "experts.bin" };
    for (int i = 0; i < 3; i++) {
        size_t n;
        char *text = t_read_file(t_path(store, files[i]), &n);
        hash[i] = XXH3_64bits(text, n);
        t_free(text);
    }
}

static int finish(void **state)
{
    (void)state;
    t_free(embed_bytes);
    return 0;
}

static int prepare(void **state)
{
    (void)state;
    aegis_error err = { 0 };
    size_t n;
    snprintf(src, sizeof src, "%s", t_folder());
    char *config = t_read_file(TINY "/config.json", &n);
    t_write_file(t_path(src, "config.json"), config, n);
    t_free(config);
    char store[4200];
    snprintf(store, sizeof store, "%s/store", src);
    if (aegis_pack(TINY, store, NULL, NULL, &err) != AEGIS_OK)
        return 1;
    hash_store(store, reference);
    remove_folder(store);
    return 0;
}

static void write_all(const st_list *l) { st_write(t_path(src, "model.safetensors"), l, 0, l->n); }

static void pack_and_hash(uint64_t hash[3], int bits)
{
    aegis_error err = { 0 };
    char store[4200];
    const aegis_pack_options options = { .expert_bits = bits, .dense_bits = bits };
    snprintf(store, sizeof store, "%s/store", src);
    T_OK(aegis_pack(src, store, &options, NULL, &err), &err);
    T_OK(aegis_store_verify(store, NULL, NULL, &err), &err);
    hash_store(store, hash);
    t_free(embed_bytes);
    embed_bytes = t_read_file(t_path(store, "embed.bin"), NULL);
    remove_folder(store);
}

static void same_store(void)
{
    uint64_t hash[3];
    pack_and_hash(hash, 0);
    T_CHECK(memcmp(hash, reference, sizeof hash) == 0);
}

static void fails(const char *part)
{
    aegis_error err = { 0 };
    char store[4200];
    snprintf(store, sizeof store, "%s/store", src);
    T_FAILS(aegis_pack(src, store, NULL, NULL, &err), &err, AEGIS_E_MODEL, part);
    T_CHECK(access(store, F_OK) != 0);
}

static void rename_prefix(st_list *l, const char *from, const char *to)
{
    for (size_t i = 0; i < l->n; i++)
        if (strncmp(l->items[i].name, from, strlen(from)) == 0) {
            char rest[200];
            snprintf(rest, sizeof rest, "%s", l->items[i].name + strlen(from));
            snprintf(l->items[i].name, sizeof l->items[i].name, "%.60s%.130s", to, rest);
        }
}

/* However many threads look for them, the first value that is not finite is the one that is told. */
static void values_that_are_not_finite(void **state)
{
    (void)state;
    static const uint16_t nan = 0x7fc0; /* bf16 */
    st_list l = st_load(TINY_FILE);
    st_item *up = st_get(&l, LM "layers.1.mlp.experts.down_proj");
    uint8_t *data = st_room(up->n);
    memcpy(data, up->data, up->n);
    memcpy(data + up->n / 2, &nan, 2);
    memcpy(data + up->n - 2, &nan, 2);
    up->data = data;
    const uint64_t n_rows = up->dim[0] * up->dim[1];
    char part[300];
    snprintf(part, sizeof part, "layers.1.mlp.experts.down_proj': a value near row %llu is not finite", (unsigned long long)(n_rows / 2));
    write_all(&l);
    fails(part);
    st_free(&l);
}

static void prefixes(void **state)
{
    (void)state;
    st_list l = st_load(TINY_FILE);
    rename_prefix(&l, LM, "language_model.model.");
    rename_prefix(&l, "lm_head.", "language_model.lm_head.");
    rename_prefix(&l, "model.visual.", "vision_tower.");
    write_all(&l);
    same_store();
    rename_prefix(&l, "language_model.model.", "model.");
    rename_prefix(&l, "language_model.lm_head.", "lm_head.");
    write_all(&l);
    same_store();
    rename_prefix(&l, "model.", "mod.");
    write_all(&l);
    fails("layers.0.input_layernorm.weight");
    st_free(&l);
}

static void shards(void **state)
{
    (void)state;
    st_list l = st_load(TINY_FILE);
    unlink(t_path(src, "model.safetensors"));
    st_write(t_path(src, "model-00001-of-00003.safetensors"), &l, 0, 20);
    st_write(t_path(src, "model-00002-of-00003.safetensors"), &l, 20, 21);
    st_write(t_path(src, "model-00003-of-00003.safetensors"), &l, 41, l.n - 41);
    same_store(); /* no index: every model*.safetensors */
    char *index = st_room(l.n * 300);
    size_t n = (size_t)sprintf(index, "{\"weight_map\": {");
    for (size_t i = 0; i < l.n; i++)
        n += (size_t)sprintf(index + n, "%s\"%s\": \"model-0000%d-of-00003.safetensors\"", i == 0 ? "" : ", ", l.items[i].name,
                             i < 20 ? 1 : i < 41 ? 2 : 3);
    n += (size_t)sprintf(index + n, "}}");
    t_write_file(t_path(src, "model.safetensors.index.json"), index, n);
    same_store();
    unlink(t_path(src, "model-00002-of-00003.safetensors"));
    fails("model-00002-of-00003.safetensors");
    unlink(t_path(src, "model-00001-of-00003.safetensors"));
    unlink(t_path(src, "model-00003-of-00003.safetensors"));
    unlink(t_path(src, "model.safetensors.index.json"));
    st_free(&l);
}

static void one_tensor_per_expert(void **state)
{
    (void)state;
    st_list l = st_load(TINY_FILE);
    for (int layer = 0; layer < 4; layer++) {
        char name[128];
        snprintf(name, sizeof name, LM "layers.%d.mlp.experts.gate_up_proj", layer);
        const st_item fused = *st_get(&l, name);
        st_remove(&l, name);
        snprintf(name, sizeof name, LM "layers.%d.mlp.experts.down_proj", layer);
        const st_item down = *st_get(&l, name);
        st_remove(&l, name);
        for (int e = 0; e < 16; e++) {
            static const char *const parts[] = { "gate_proj", "up_proj", "down_proj" };
            for (int p = 0; p < 3; p++) {
                const st_item *from = p == 2 ? &down : &fused;
                st_item *x = st_add(&l);
                snprintf(x->name, sizeof x->name, LM "layers.%d.mlp.experts.%d.%s.weight", layer, e, parts[p]);
                snprintf(x->dtype, sizeof x->dtype, "BF16");
                x->rank = 2;
                x->dim[0] = p == 2 ? 128 : 64;
                x->dim[1] = p == 2 ? 64 : 128;
                x->n = 128 * 64 * 2;
                x->data = from->data + (size_t)e * from->n / 16 + (p == 1 ? from->n / 32 : 0);
            }
        }
    }
    write_all(&l);
    same_store();
    st_get(&l, LM "layers.2.mlp.experts.7.up_proj.weight")->dim[0] = 32;
    st_get(&l, LM "layers.2.mlp.experts.7.up_proj.weight")->n /= 2;
    write_all(&l);
    fails("layers.2.mlp.experts.7.up_proj.weight' is BF16 [32, 128], expected 64 rows of 128");
    st_remove(&l, LM "layers.2.mlp.experts.7.up_proj.weight");
    write_all(&l);
    fails("experts.7.up_proj.weight' is missing");
    st_free(&l);
}

/* Codes of the embedding as from bf16; its f32 scales and biases round to the bf16 ones. */
static void check_f32_embed(const uint8_t *from_bf16, const uint8_t *from_f32)
{
    for (int row = 0; row < 512; row++, from_bf16 += 72, from_f32 += 80) {
        T_CHECK(memcmp(from_bf16, from_f32, 64) == 0);
        for (int i = 0; i < 4; i++) {
            float v;
            uint16_t h;
            memcpy(&v, from_f32 + 64 + 4 * i, 4);
            memcpy(&h, from_bf16 + 64 + 2 * i, 2);
            T_CHECK(aeg_bf16_from_f32(v) == h);
        }
    }
}

/* The same values as f32 and f16: scales are kept in the source's type. */
static void number_formats(void **state)
{
    (void)state;
    static const char *const formats[] = { "F32", "F16" };
    char store[4200];
    aegis_error err = { 0 };
    snprintf(store, sizeof store, "%s/bf16", src);
    T_OK(aegis_pack(TINY, store, NULL, NULL, &err), &err);
    char *bf16 = t_read_file(t_path(store, "embed.bin"), NULL);
    remove_folder(store);
    for (int f = 0; f < 2; f++) {
        st_list l = st_load(TINY_FILE);
        uint64_t hash[3], kept[3];
        for (size_t i = 0; i < l.n; i++) {
            st_item *x = &l.items[i];
            const size_t n = x->n / 2;
            uint8_t *data = st_room(n * 4);
            for (size_t k = 0; k < n; k++) {
                uint16_t h;
                memcpy(&h, x->data + 2 * k, 2);
                const float v = aeg_f32_from_bf16(h);
                const uint16_t half = aeg_f16_from_f32(v);
                if (f == 0)
                    memcpy(data + 4 * k, &v, 4);
                else
                    memcpy(data + 2 * k, &half, 2);
            }
            x->data = data;
            x->n = f == 0 ? 4 * n : 2 * n;
            snprintf(x->dtype, sizeof x->dtype, "%s", formats[f]);
        }
        write_all(&l);
        pack_and_hash(hash, 0);
        if (f == 0)
            check_f32_embed((const uint8_t *)bf16, (const uint8_t *)embed_bytes);
        pack_and_hash(kept, AEGIS_BITS_KEEP);
        T_CHECK(hash[2] != reference[2] && kept[2] != hash[2]);
        st_free(&l);
    }
    t_free(bf16);
}

static void tied_embeddings(void **state)
{
    (void)state;
    st_list l = st_load(TINY_FILE);
    st_item *head = st_get(&l, "lm_head.weight");
    head->data = st_get(&l, LM "embed_tokens.weight")->data;
    uint64_t untied[3], tied[3];
    write_all(&l);
    pack_and_hash(untied, 0);
    st_remove(&l, "lm_head.weight");
    write_all(&l);
    fails("'lm_head.weight' is missing");
    size_t n;
    char *config = t_read_file(t_path(src, "config.json"), &n), *at = config;
    char *edited = malloc(n + 1);
    memcpy(edited, config, n + 1);
    while ((at = strstr(at, "\"tie_word_embeddings\": false")) != NULL) {
        memcpy(edited + (at - config), "\"tie_word_embeddings\": true ", 28);
        at++;
    }
    t_write_file(t_path(src, "config.json"), edited, n);
    pack_and_hash(tied, 0);
    T_CHECK(memcmp(tied, untied, sizeof tied) == 0);
    t_write_file(t_path(src, "config.json"), config, n);
    free(edited);
    t_free(config);
    st_free(&l);
}

static const struct {
    const char *name, *to, *dtype;
    uint32_t rank;
    uint64_t dim[3];
    const char *part;
} faults[] = {
    { LM "layers.0.mlp.gate.weight", "x", NULL, 0, { 0 }, "layers.0.mlp.gate.weight' is missing" },
    { LM "norm.weight", "x", NULL, 0, { 0 }, "norm.weight' is missing" },
    { LM "embed_tokens.weight", "x", NULL, 0, { 0 }, "embed_tokens.weight' is missing" },
    { LM "layers.1.linear_attn.A_log", "x", NULL, 0, { 0 }, "A_log' is missing" },
    { LM "layers.2.mlp.experts.down_proj", "x", NULL, 0, { 0 }, "layers.2.mlp.experts.down_proj' is missing" },
    { LM "layers.0.mlp.gate.weight", NULL, NULL, 2, { 128, 16 }, "is BF16 [128, 16], expected 16 rows of 128" },
    { LM "layers.0.mlp.gate.weight", NULL, NULL, 1, { 2048 }, "expected 16 rows of 128" },
    { LM "layers.0.mlp.gate.weight", NULL, "I16", 0, { 0 }, "is I16 without scales" },
    { LM "layers.3.self_attn.q_norm.weight", NULL, NULL, 2, { 64, 1 }, "q_norm" },
    { LM "layers.3.self_attn.q_norm.weight", NULL, "U16", 0, { 0 }, "is U16, expected" },
    { LM "layers.1.linear_attn.conv1d.weight", NULL, NULL, 3, { 512, 4, 1 }, "axes of a converted model" },
    { LM "layers.1.linear_attn.conv1d.weight", NULL, NULL, 2, { 512, 4 }, "conv1d" },
    { LM "layers.0.mlp.experts.gate_up_proj", NULL, NULL, 3, { 16, 64, 256 }, "gate_up_proj" },
    { "model.visual.pos_embed.weight", LM "layers.0.mlp.gate.bias", NULL, 0, { 0 }, "gate.bias' belongs to a form" },
    { "model.visual.pos_embed.weight", LM "layers.0.mlp.gate.scales", NULL, 0, { 0 }, "gate.biases' is missing" },
};

static void missing_and_wrong_tensors_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        st_list l = st_load(TINY_FILE);
        st_item *x = st_get(&l, faults[i].name);
        if (faults[i].to != NULL)
            snprintf(x->name, sizeof x->name, "%s", faults[i].to);
        if (faults[i].dtype != NULL)
            snprintf(x->dtype, sizeof x->dtype, "%s", faults[i].dtype);
        if (faults[i].rank > 0) {
            x->rank = faults[i].rank;
            memcpy(x->dim, faults[i].dim, sizeof faults[i].dim);
        }
        write_all(&l);
        fails(faults[i].part);
        st_free(&l);
    }
    st_list l = st_load(TINY_FILE);
    st_item *x = st_get(&l, LM "layers.2.mlp.experts.down_proj");
    uint8_t *data = st_room(x->n);
    memcpy(data, x->data, x->n);
    data[x->n / 2] = 0xc0;
    data[x->n / 2 + 1] = 0x7f; /* a NaN */
    x->data = data;
    write_all(&l);
    fails("layers.2.mlp.experts.down_proj': a value near row");
    st_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_are_not_finite), cmocka_unit_test(prefixes),
        cmocka_unit_test(shards),
        cmocka_unit_test(one_tensor_per_expert),
        cmocka_unit_test(number_formats),
        cmocka_unit_test(tied_embeddings),
        cmocka_unit_test(missing_and_wrong_tensors_are_named),
    };
    return cmocka_run_group_tests_name("pack names", tests, prepare, finish);
}
