/* SPDX-License-Identifier: Apache-2.0 */
/* exact_norms SRC_DIR NORMS.safetensors OUT_DIR - a copy of a model folder whose tensors of the same names are replaced.
 *
 * The goldens of the demo were computed with its norm weights in f32; the MLX form carries them rounded to bf16, which
 * alone moves logits by 0.03. Comparing to 2e-3 needs the unrounded ones (tests/data/README.md). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

typedef struct {
    char *bytes;
    size_t n;
    json_t *header;
    const char *data;
} tensors;

static void die(const char *what, const char *path)
{
    fprintf(stderr, "exact_norms: %s: %s\n", what, path);
    exit(1);
}

static tensors load(const char *path)
{
    tensors t = { 0 };
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        die("cannot open", path);
    fseek(f, 0, SEEK_END);
    t.n = (size_t)ftell(f);
    rewind(f);
    t.bytes = malloc(t.n);
    if (t.bytes == NULL || fread(t.bytes, 1, t.n, f) != t.n)
        die("cannot read", path);
    fclose(f);
    uint64_t n_header;
    memcpy(&n_header, t.bytes, 8);
    t.header = json_loadb(t.bytes + 8, (size_t)n_header, 0, NULL);
    if (t.header == NULL)
        die("bad header", path);
    t.data = t.bytes + 8 + n_header;
    return t;
}

static const char *tensor_bytes(const tensors *t, const json_t *entry, size_t *n)
{
    const json_t *range = json_object_get(entry, "data_offsets");
    const size_t begin = (size_t)json_integer_value(json_array_get(range, 0));
    *n = (size_t)json_integer_value(json_array_get(range, 1)) - begin;
    return t->data + begin;
}

static void write_merged(const tensors *base, const tensors *norms, const char *path)
{
    json_t *header = json_object();
    const char *name;
    json_t *entry;
    size_t at = 0, n_replaced = 0, n;
    json_object_foreach(base->header, name, entry) {
        const json_t *other = json_object_get(norms->header, name);
        json_t *copy = json_deep_copy(other != NULL ? other : entry);
        n_replaced += other != NULL;
        if (strcmp(name, "__metadata__") != 0) {
            tensor_bytes(other != NULL ? norms : base, other != NULL ? other : entry, &n);
            json_object_set_new(copy, "data_offsets", json_pack("[II]", (json_int_t)at, (json_int_t)(at + n)));
            at += n;
        }
        json_object_set_new(header, name, copy);
    }
    if (n_replaced != json_object_size(norms->header))
        die("names tensors that the model lacks", path);

    FILE *f = fopen(path, "wb");
    char *text = json_dumps(header, JSON_COMPACT);
    if (f == NULL || text == NULL)
        die("cannot write", path);
    const uint64_t n_text = strlen(text);
    fwrite(&n_text, 1, 8, f);
    fwrite(text, 1, n_text, f);
    json_object_foreach(base->header, name, entry) {
        const json_t *other = json_object_get(norms->header, name);
        if (strcmp(name, "__metadata__") == 0)
            continue;
        const char *bytes = tensor_bytes(other != NULL ? norms : base, other != NULL ? other : entry, &n);
        fwrite(bytes, 1, n, f);
    }
    if (fclose(f) != 0)
        die("cannot write", path);
    free(text);
    json_decref(header);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: exact_norms SRC_DIR NORMS OUT_DIR", "");
    char command[8300], in[4096], out[4096];
    snprintf(command, sizeof command, "mkdir -p '%s' && cp '%s'/*.json '%s'/*.jinja '%s' && rm -f '%s'/*.index.json", argv[3],
             argv[1], argv[1], argv[3], argv[3]);
    if (system(command) != 0)
        die("cannot copy to", argv[3]);
    snprintf(in, sizeof in, "%s/model.safetensors", argv[1]);
    snprintf(out, sizeof out, "%s/model.safetensors", argv[3]);
    tensors base = load(in), norms = load(argv[2]);
    write_merged(&base, &norms, out);
    json_decref(base.header);
    json_decref(norms.header);
    free(base.bytes);
    free(norms.bytes);
    return 0;
}
