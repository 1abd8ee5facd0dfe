/* SPDX-License-Identifier: Apache-2.0 */
/* Real matrices in ggml's block types (tests/data/gguf/one-tensor-types.gguf, from a public quantiser) against the values of an
 * independent decoder: first and last ones, sums, and a hash of all; read from the source and back from x16 tiles. */
#include "support/t.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/gguf.h"
#include "format/names_gguf.h"
#include "kernels/blocks.h"
#include "pack/block.h"

#define DATA AEGIS_SOURCE_DIR "/tests/data/gguf/one-tensor-types"

enum { N_BLOCK_TENSORS = 24, MAX_VALUES = 1 << 16, MAX_COLS = 256, MAX_ROW = 8 * 1056 };

static float values[MAX_VALUES];

static void decode(aeg_gguf *g, const aeg_tensor *t, aeg_weight_type type, uint8_t **source)
{
    aegis_error err;
    const uint32_t rows = (uint32_t)t->dims[0], cols = (uint32_t)t->dims[1];
    *source = malloc(t->bytes);
    T_CHECK(*source != NULL && (uint64_t)rows * cols <= MAX_VALUES && cols <= MAX_COLS);
    T_OK(aeg_source_read(&g->source, t, 0, t->bytes, *source, &err), &err);
    const aeg_rows all = { .type = type, .n_cols = cols, .weight = *source };
    for (uint32_t r = 0; r < rows; r++) {
        const aeg_rows row = aeg_rows_at(&all, r);
        aeg_rows_floats(&row, 0, cols, values + (size_t)r * cols);
    }
}

static void check_tiles(const aeg_tensor *t, aeg_weight_type type, const uint8_t *source)
{
    const uint32_t rows = (uint32_t)t->dims[0], cols = (uint32_t)t->dims[1];
    const size_t stride = aeg_block_bytes(type, cols);
    const aeg_rows all = { .type = type, .n_cols = cols, .weight = source };
    uint8_t *tiles = malloc(stride);
    float row[MAX_COLS];
    T_CHECK(tiles != NULL);
    for (uint32_t b = 0; b < rows / AEG_ROWS; b++) {
        const aeg_rows block = aeg_rows_at(&all, (uint64_t)b * AEG_ROWS);
        const aeg_weights w = { .type = type, .n_rows = AEG_ROWS, .n_cols = cols, .block_stride = stride, .data = tiles };
        T_CHECK(aeg_block_pack(&block, AEG_ROWS, type, tiles));
        for (uint32_t r = 0; r < AEG_ROWS; r++) {
            aeg_weights_row(&w, r, row);
            assert_memory_equal(row, values + (size_t)(b * AEG_ROWS + r) * cols, cols * sizeof row[0]);
        }
    }
    free(tiles);
}

static void check_some(const json_t *list, const float *from)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        T_CHECK(from[i] == (float)json_number_value(json_array_get(list, i)));
}

/* The reference multiplies a code of 0 by its scale, which is -0 where that is negative; ours begins with the bias, +0. */
static void make_zeros_theirs(const aeg_tensor *t, aeg_weight_type type, const uint8_t *source)
{
    const uint32_t rows = (uint32_t)t->dims[0], cols = (uint32_t)t->dims[1];
    const aeg_block_shape s = aeg_block_shape_of(type.kind);
    const aeg_rows all = { .type = type, .n_cols = cols, .weight = source };
    uint8_t tiles[MAX_ROW];
    if (!aeg_weight_is_block(type) || s.bias)
        return;
    T_CHECK(aeg_block_bytes(type, cols) <= sizeof tiles);
    for (uint32_t r = 0; r < rows; r++) {
        memset(tiles, 0, sizeof tiles);
        T_CHECK(aeg_blocks_pack_lane(type.kind, aeg_rows_at(&all, r).weight, cols, 0, tiles));
        for (uint32_t c = 0; c < cols; c++) {
            aeg_piece p;
            float *v = &values[(size_t)r * cols + c];
            if (*v != 0)
                continue;
            aeg_block_piece(&p, type.kind, tiles + c / s.cols * aeg_block_tile_bytes(s), c % s.cols / AEG_PLANE_COLS, 0);
            *v = copysignf(0, p.scale[c % AEG_PLANE_COLS / AEG_SUM_COLS]);
        }
    }
}

/* sha256sum knows nothing of us. */
static bool hash_is(const char *expected, size_t n)
{
    char text[65] = "", path[4096], command[4200];
    snprintf(path, sizeof path, "%s/values", t_folder());
    snprintf(command, sizeof command, "sha256sum '%s'", path);
    FILE *f = fopen(path, "wb");
    T_CHECK(f != NULL && fwrite(values, sizeof values[0], n, f) == n && fclose(f) == 0);
    f = popen(command, "r");
    T_CHECK(f != NULL && fread(text, 1, 64, f) == 64);
    pclose(f);
    remove(path);
    return strcmp(text, expected) == 0;
}

static void check_values(const json_t *o, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    const double want = json_number_value(json_object_get(o, "sum")), want_squares = json_number_value(json_object_get(o, "sumsq"));
    T_CHECK(fabs(sum - want) <= 1e-9 * (1 + fabs(want)) && fabs(squares - want_squares) <= 1e-9 * want_squares);
    check_some(json_object_get(o, "first8"), values);
    check_some(json_object_get(o, "last4"), values + n - 4);
}

static void every_tensor_has_the_known_values(void **state)
{
    aegis_error err;
    aeg_memory memory = { 0 };
    aeg_gguf g;
    size_t n = 0, n_blocks = 0;
    (void)state;
    char *text = t_read_file(DATA ".json", &n);
    json_t *root = json_loadb(text, n, 0, NULL), *o;
    const char *name;
    T_OK(aeg_gguf_open(&g, DATA ".gguf", &memory, &err), &err);
    json_object_foreach(json_object_get(root, "tensors"), name, o) {
        const aeg_tensor *t = aeg_source_find(&g.source, name);
        aeg_weight_type type = { 0 };
        uint8_t *source;
        T_CHECK(t != NULL && t->rank == 2 && aeg_dtype_weight_type(t->dtype, &type));
        decode(&g, t, type, &source);
        check_values(o, t->dims[0] * t->dims[1]);
        check_tiles(t, type, source);
        make_zeros_theirs(t, type, source);
        if (!hash_is(json_string_value(json_object_get(o, "sha256_f32")), t->dims[0] * t->dims[1]))
            fail_msg("%s: the values have another hash", name);
        n_blocks += aeg_weight_is_block(type);
        free(source);
    }
    T_CHECK(n_blocks == N_BLOCK_TENSORS);
    aeg_gguf_close(&g);
    json_decref(root);
    t_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_tensor_has_the_known_values) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
