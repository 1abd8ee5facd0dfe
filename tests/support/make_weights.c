/* SPDX-License-Identifier: Apache-2.0 */
/* make_weights SPEC OUT.safetensors - the random weights of a tiny model, from a page of text instead of megabytes.
 *
 * A line of SPEC is: NAME DTYPE DIMS SCALE MEAN. DTYPE is bf16 or f32, DIMS like 16x128x64; {a-b} in NAME stands for each
 * number from a to b. Value i of a tensor is MEAN + SCALE * g, g about normal, from a counter-based generator seeded by the
 * tensor's name: the same bytes on every machine, whatever else is in the file. Lines that start with # are comments.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 8192, NAME_MAX_TEXT = 128, LINE_MAX_TEXT = 256 };

typedef struct {
    char name[NAME_MAX_TEXT], dims[48];
    int bf16;
    double scale, mean;
    uint64_t n;
} tensor;

static tensor tensors[MAX_TENSORS];
static size_t n_tensors;

static void fail(const char *what, const char *where)
{
    fprintf(stderr, "make_weights: %s: %s\n", what, where);
    exit(1);
}

/* --- numbers --------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t seed_of(const char *name) /* FNV-1a */
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name != '\0'; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    return h;
}

/* The sum of four 16-bit uniforms has the variance of one times four: scaled to 1. Integers, so exact everywhere. */
static double normal(uint64_t bits)
{
    int64_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int64_t)(bits >> 16 * i & 0xffff) - 32768;
    return (double)sum / 37837.2; /* sqrt(4 / 12) * 65536 */
}

static void put(FILE *f, const tensor *t)
{
    const uint64_t seed = seed_of(t->name);
    for (uint64_t i = 0; i < t->n; i++) {
        const float value = (float)(t->mean + t->scale * normal(mix(seed + i)));
        uint32_t u;
        memcpy(&u, &value, 4);
        if (t->bf16)
            u = (u + 0x7fff + (u >> 16 & 1)) >> 16;
        if (fwrite(&u, t->bf16 ? 2 : 4, 1, f) != 1)
            fail("cannot write", t->name);
    }
}

/* --- the list --------------------------------------------------------------------------------------------- */

static void add(const tensor *t)
{
    const char *open = strchr(t->name, '{');
    unsigned first = 0, last = 0;
    int end = 0;
    if (open == NULL) {
        if (n_tensors == MAX_TENSORS)
            fail("too many tensors", t->name);
        tensors[n_tensors++] = *t;
        return;
    }
    if (sscanf(open, "{%u-%u}%n", &first, &last, &end) != 2 || end == 0)
        fail("expected {a-b}", t->name);
    for (unsigned i = first; i <= last; i++) {
        tensor one = *t;
        if (snprintf(one.name, sizeof one.name, "%.*s%u%s", (int)(open - t->name), t->name, i, open + end) >= (int)sizeof one.name)
            fail("name too long", t->name);
        add(&one);
    }
}

static void read_spec(const char *path)
{
    char line[LINE_MAX_TEXT], dtype[8];
    FILE *f = fopen(path, "r");
    if (f == NULL)
        fail("cannot open", path);
    while (fgets(line, sizeof line, f) != NULL) {
        tensor t = { .n = 1 };
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (sscanf(line, "%127s %7s %47s %lf %lf", t.name, dtype, t.dims, &t.scale, &t.mean) != 5)
            fail("expected NAME DTYPE DIMS SCALE MEAN", line);
        t.bf16 = strcmp(dtype, "bf16") == 0;
        if (!t.bf16 && strcmp(dtype, "f32") != 0)
            fail("expected bf16 or f32", line);
        for (char *p = t.dims; *p != '\0';) {
            t.n *= strtoull(p, &p, 10);
            if (*p == 'x')
                *p++ = ',';
            else if (*p != '\0')
                fail("expected dimensions", line);
        }
        add(&t);
    }
    fclose(f);
}

int main(int argc, char **argv)
{
    enum { HEADER_ROOM = 4 << 20, ALIGN = 64 };
    if (argc != 3)
        return 2;
    read_spec(argv[1]);
    char *header = malloc(HEADER_ROOM);
    FILE *f = fopen(argv[2], "wb");
    if (header == NULL || f == NULL)
        fail("cannot write", argv[2]);
    size_t n = (size_t)sprintf(header, "{\"__metadata__\":{\"format\":\"pt\"}");
    uint64_t at = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        const uint64_t bytes = tensors[i].n * (tensors[i].bf16 ? 2 : 4);
        if (n + 2 * LINE_MAX_TEXT > HEADER_ROOM)
            fail("header too long", argv[1]);
        n += (size_t)sprintf(header + n, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                             tensors[i].name, tensors[i].bf16 ? "BF16" : "F32", tensors[i].dims, at, at + bytes);
        at += bytes;
    }
    header[n++] = '}';
    while ((n + 8) % ALIGN != 0)
        header[n++] = ' ';
    const uint64_t length = n;
    if (fwrite(&length, 8, 1, f) != 1 || fwrite(header, 1, n, f) != n)
        fail("cannot write", argv[2]);
    for (size_t i = 0; i < n_tensors; i++)
        put(f, &tensors[i]);
    free(header);
    if (fclose(f) != 0)
        fail("cannot write", argv[2]);
    return 0;
}
