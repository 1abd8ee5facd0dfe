/* SPDX-License-Identifier: Apache-2.0 */
/* make_fp8 MODEL OUT_FP8 OUT_VALUES [BREAK] - a tiny model of tests/data/models with its projections in FP8 as published ones have
 * them: e4m3 codes, and .weight_scale_inv of blocks of 128 x 128 (f32, bf16 or a power of two by turns). OUT_VALUES is the same
 * model with the values of these codes as f32: whatever reads both must compute the same. BREAK: see breaks[].
 * Own arithmetic, nothing of src/.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "support/t.h"
#include "support/t_tensors.h"

enum { BLOCK = 128, PATH_MAX_TEXT = 4096, HEADER_ROOM = 4 << 20, MAX_SCALES = 1024 };

typedef struct {
    FILE *f;
    char *header;
    size_t n;
    uint64_t at;
    bool writing; /* the second pass: bytes instead of header entries */
} writer;

static const char *broken; /* one of: "no-scales", "nan", "no-config", "shape", "infinity"; NULL */

static bool breaks(const char *what) { return broken != NULL && strcmp(broken, what) == 0; }

static void put(writer *w, const char *name, const char *dtype, const uint64_t *dim, uint32_t n_dims, const void *data, uint64_t bytes)
{
    if (w->writing) {
        T_CHECK(fwrite(data, 1, bytes, w->f) == bytes);
        return;
    }
    T_CHECK(w->n + 1024 < HEADER_ROOM);
    w->n += (size_t)sprintf(w->header + w->n, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", w->n > 1 ? "," : "", name, dtype);
    for (uint32_t i = 0; i < n_dims; i++)
        w->n += (size_t)sprintf(w->header + w->n, "%s%" PRIu64, i ? "," : "", dim[i]);
    w->n += (size_t)sprintf(w->header + w->n, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", w->at, w->at + bytes);
    w->at += bytes;
}

/* sign, 4 bits of exponent (bias 7), 3 of mantissa; no infinities */
static float e4m3(uint32_t code)
{
    const int exponent = (int)(code >> 3 & 15), mantissa = (int)(code & 7);
    const float value = exponent == 0 ? ldexpf((float)mantissa, -9) : ldexpf((float)(8 + mantissa), exponent - 10);
    return code & 0x80 ? -value : value;
}

static uint8_t nearest(float x)
{
    static float values[127];
    uint32_t low = 0, high = 126;
    for (uint32_t code = 0; values[126] == 0 && code < 127; code++)
        values[code] = e4m3(code);
    while (high - low > 1)
        *(values[(low + high) / 2] <= fabsf(x) ? &low : &high) = (low + high) / 2;
    const uint32_t code = values[high] - fabsf(x) < fabsf(x) - values[low] ? high : low;
    return (uint8_t)(x < 0 ? code | 0x80 : code);
}

/* How the scales are stored. A model has one way in truth; this one has all. */
typedef enum { SCALE_F32, SCALE_BF16, SCALE_E8M0 } scale_form;

static float stored(scale_form form, float scale, uint8_t *out)
{
    uint32_t u;
    if (form == SCALE_E8M0)
        scale = ldexpf(1.0f, (int)ceilf(log2f(scale)));
    memcpy(&u, &scale, 4);
    if (form == SCALE_BF16)
        u = (u + 0x8000) & 0xffff0000u;
    if (form == SCALE_F32)
        memcpy(out, &u, 4);
    else if (form == SCALE_BF16)
        memcpy(out, (const uint8_t *)&u + 2, 2); /* little-endian, as the file */
    else
        out[0] = (uint8_t)(u >> 23);
    memcpy(&scale, &u, 4);
    return scale;
}

static void quantise(writer *fp8, writer *values, const t_tensor *t, scale_form form)
{
    static const char *const names[] = { "F32", "BF16", "F8_E8M0" };
    static const uint32_t sizes[] = { 4, 2, 1 };
    const uint64_t rows = t->dim[0], cols = t->dim[1], grid[2] = { (rows + BLOCK - 1) / BLOCK, (cols + BLOCK - 1) / BLOCK };
    uint8_t *codes = malloc(rows * cols), scales[4 * MAX_SCALES];
    float *w = malloc(4 * rows * cols);
    char name[200];
    T_CHECK(codes != NULL && w != NULL && grid[0] * grid[1] <= MAX_SCALES);
    for (uint64_t b = 0; b < grid[0] * grid[1]; b++) {
        const uint64_t r0 = b / grid[1] * BLOCK, c0 = b % grid[1] * BLOCK;
        const uint64_t r1 = r0 + BLOCK < rows ? r0 + BLOCK : rows, c1 = c0 + BLOCK < cols ? c0 + BLOCK : cols;
        float largest = 1e-30f;
        for (uint64_t i = r0; i < r1; i++)
            for (uint64_t j = c0; j < c1; j++)
                largest = fmaxf(largest, fabsf(t_tensor_f32(t, i * cols + j)));
        const float scale = stored(form, largest / 448.0f, scales + b * sizes[form]);
        for (uint64_t i = r0; i < r1; i++)
            for (uint64_t j = c0; j < c1; j++) {
                codes[i * cols + j] = fp8->writing ? nearest(t_tensor_f32(t, i * cols + j) / scale) : 0;
                w[i * cols + j] = e4m3(codes[i * cols + j]) * scale;
            }
    }
    const bool first = strstr(t->name, "layers.1.self_attn.o_proj") != NULL;
    if (first && breaks("nan"))
        codes[3 * cols + 5] = 0xff;
    if (first && breaks("infinity"))
        memcpy(scales, "\0\0\x80\x7f", 4);
    const uint64_t wrong[2] = { grid[1] + 1, grid[0] };
    put(fp8, t->name, "F8_E4M3", t->dim, 2, codes, rows * cols);
    snprintf(name, sizeof name, "%s_scale_inv", t->name);
    if (!first || !breaks("no-scales"))
        put(fp8, name, names[form], first && breaks("shape") ? wrong : grid, 2, scales,
            (first && breaks("shape") ? wrong[0] * wrong[1] : grid[0] * grid[1]) * sizes[form]);
    put(values, t->name, "F32", t->dim, 2, w, 4 * rows * cols);
    free(codes);
    free(w);
}

static bool is_projection(const t_tensor *t)
{
    const char *dot = strrchr(t->name, '.');
    return t->n_dims == 2 && dot != NULL && strcmp(dot, ".weight") == 0 &&
           (strstr(t->name, "_proj") != NULL || strstr(t->name, "in_proj_qkvz") != NULL) && strstr(t->name, "in_proj_ba") == NULL;
}

static void put_all(writer *fp8, writer *values, const t_tensors *model)
{
    uint32_t turn = 0;
    for (size_t i = 0; i < t_tensors_count(model); i++) {
        const t_tensor *t = t_tensors_at(model, i);
        if (is_projection(t)) {
            quantise(fp8, values, t, strstr(t->name, "layers.1.self_attn.o_proj") ? SCALE_F32 : (scale_form)(turn++ % 3));
            continue;
        }
        put(fp8, t->name, t->dtype, t->dim, t->n_dims, t->data, t->n_bytes);
        put(values, t->name, t->dtype, t->dim, t->n_dims, t->data, t->n_bytes);
    }
}

static void open_out(writer *w, const char *folder)
{
    char path[PATH_MAX_TEXT];
    aegis_error err;
    T_OK(aeg_make_dirs(folder, &err), &err);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    *w = (writer){ .f = fopen(path, "wb"), .header = malloc(HEADER_ROOM) };
    T_CHECK(w->f != NULL && w->header != NULL);
    w->header[w->n++] = '{';
}

static void end_header(writer *w)
{
    w->header[w->n++] = '}';
    while ((w->n + 8) % 64 != 0)
        w->header[w->n++] = ' ';
    const uint64_t n = w->n;
    T_CHECK(fwrite(&n, 8, 1, w->f) == 1 && fwrite(w->header, 1, w->n, w->f) == w->n);
    w->writing = true;
}

/* config.json, with `extra` as its first members. */
static void copy_config(const char *from, const char *folder, const char *extra)
{
    char path[PATH_MAX_TEXT];
    size_t n;
    snprintf(path, sizeof path, "%s/config.json", from);
    char *text = t_read_file(path, &n), *brace = memchr(text, '{', n);
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *f = fopen(path, "wb");
    T_CHECK(brace != NULL && f != NULL);
    fprintf(f, "{%s%.*s", extra, (int)(n - (size_t)(brace + 1 - text)), brace + 1);
    T_CHECK(fclose(f) == 0);
    t_free(text);
}

int main(int argc, char **argv)
{
    static const char fp8_config[] = "\"quantization_config\": {\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", \"activation_scheme\": "
                                     "\"dynamic\", \"weight_block_size\": [128, 128], \"modules_to_not_convert\": [\"lm_head\"]},";
    char path[PATH_MAX_TEXT];
    writer fp8, values;
    if (argc != 4 && argc != 5)
        return 2;
    broken = argc == 5 ? argv[4] : NULL;
    snprintf(path, sizeof path, "%s/model.safetensors", argv[1]);
    t_tensors *model = t_tensors_open(path);
    open_out(&fp8, argv[2]);
    open_out(&values, argv[3]);
    put_all(&fp8, &values, model);
    end_header(&fp8);
    end_header(&values);
    put_all(&fp8, &values, model);
    T_CHECK(fclose(fp8.f) == 0 && fclose(values.f) == 0);
    free(fp8.header);
    free(values.header);
    copy_config(argv[1], argv[2], breaks("no-config") ? "" : fp8_config);
    copy_config(argv[1], argv[3], "");
    t_tensors_close(model);
    return 0;
}
