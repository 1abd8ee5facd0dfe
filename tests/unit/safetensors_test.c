/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors container: what is accepted, and each way in which a file can lie. */
#include "support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/safetensors.h"

/* A file of this header and `data` zero bytes; `length` < 0: the header's true length. */
static void write_file(const char *path, const char *header, size_t header_n, long long length, size_t data)
{
    const size_t n = 8 + header_n + data;
    uint8_t *bytes = calloc(1, n);
    T_CHECK(bytes != NULL);
    const uint64_t stated = length < 0 ? header_n : (uint64_t)length;
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(stated >> (8 * i));
    memcpy(bytes + 8, header, header_n);
    for (size_t i = 0; i < data; i++)
        bytes[8 + header_n + i] = (uint8_t)(i * 7 + 1);
    t_write_file(path, bytes, n);
    free(bytes);
}

static void put(const char *folder, const char *name, const char *header, size_t data)
{
    write_file(t_path(folder, name), header, strlen(header), -1, data);
}

static void fails(const char *path, aegis_status want, const char *part)
{
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_source st;
    T_FAILS(aeg_st_open(&st, path, &memory, &err), &err, want, part);
    T_CHECK(st.n_files == 0 && st.tensors == NULL);
    t_no_leak(&memory);
}

static void reads_what_is_there(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_source st;
    const char *folder = t_folder();
    put(folder, "model.safetensors",
        "{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[2,26]},"
        "\"a\":{\"shape\":[],\"data_offsets\":[0,2],\"dtype\":\"BF16\"}, \"none\":{\"dtype\":\"I64\",\"shape\":[4,0],"
        "\"data_offsets\":[26,26]},\"h\\u00e9\\ud83d\\ude00\\n\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[26,27]}}   ",
        27);
    T_OK(aeg_st_open(&st, folder, &memory, &err), &err);
    T_CHECK(st.n_tensors == 4);
    const aeg_tensor *a = aeg_source_find(&st, "a"), *b = aeg_source_find(&st, "b"), *none = aeg_source_find(&st, "none");
    T_CHECK(a != NULL && a->rank == 0 && a->bytes == 2 && a->dtype == AEG_DT_BF16);
    T_CHECK(b != NULL && b->rank == 2 && b->dims[0] == 2 && b->dims[1] == 3 && b->bytes == 24);
    T_CHECK(none != NULL && none->bytes == 0 && none->rank == 2);
    T_CHECK(aeg_source_find(&st, "h\xc3\xa9\xf0\x9f\x98\x80\n") != NULL && aeg_source_find(&st, "c") == NULL);
    uint8_t bytes[24];
    T_OK(aeg_source_read(&st, b, 0, 24, bytes, &err), &err);
    for (int i = 0; i < 24; i++)
        T_CHECK(bytes[i] == (uint8_t)((i + 2) * 7 + 1));
    T_OK(aeg_source_read(&st, b, 20, 4, bytes, &err), &err);
    T_CHECK(bytes[0] == (uint8_t)(22 * 7 + 1));
    T_FAILS(aeg_source_read(&st, b, 20, 5, bytes, &err), &err, AEGIS_E_RUNTIME, "'b'");
    aeg_source_close(&st);
    /* the file alone, and one without tensors */
    T_OK(aeg_st_open(&st, t_path(folder, "model.safetensors"), &memory, &err), &err);
    T_CHECK(st.n_tensors == 4);
    aeg_source_close(&st);
    put(folder, "empty.safetensors", "{}", 0);
    T_OK(aeg_st_open(&st, t_path(folder, "empty.safetensors"), &memory, &err), &err);
    T_CHECK(st.n_tensors == 0 && aeg_source_find(&st, "a") == NULL);
    aeg_source_close(&st);
    t_no_leak(&memory);
}

/* A read of any range, across pages and pieces, is the bytes of the file. */
static void large_ranges_are_read_right(void **state)
{
    (void)state;
    enum { N = 1000003 };
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_source st;
    char header[100];
    const char *folder = t_folder();
    snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", N, N);
    put(folder, "model.safetensors", header, N);
    T_OK(aeg_st_open(&st, folder, &memory, &err), &err);
    const aeg_tensor *x = aeg_source_find(&st, "x");
    uint8_t *bytes = malloc(N), *buffer = aeg_raw_buffer(&memory, aeg_raw_room(N));
    for (int i = 0; i < 30; i++) {
        const size_t begin = i == 0 ? 0 : t_below(N), n = i == 0 ? N : t_below(N - begin + 1);
        const uint8_t *p;
        memset(bytes, 0, N);
        T_OK(aeg_source_read(&st, x, begin, n, bytes, &err), &err);
        T_OK(aeg_source_view(&st, x, begin, n, buffer, &p, &err), &err);
        for (size_t k = 0; k < n; k++)
            T_CHECK(bytes[k] == (uint8_t)((begin + k) * 7 + 1) && p[k] == bytes[k]);
    }
    /* the file shrinks behind our back */
    T_CHECK(truncate(t_path(folder, "model.safetensors"), 500001) == 0);
    T_FAILS(aeg_source_read(&st, x, 0, N, bytes, &err), &err, AEGIS_E_IO, "ends");
    aeg_raw_buffer_free(&memory, buffer);
    aeg_source_close(&st);
    free(bytes);
    t_no_leak(&memory);
}

#define ONE(members) "{\"t\":{" members "}}"
#define GOOD "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]"

static const struct {
    const char *name, *header;
    size_t data;
    const char *part;
} lies[] = {
    { "no object", "[]", 0, "'{'" },
    { "empty header", "", 0, "'{'" },
    { "space first", " {}", 0, "'{'" },
    { "cut", "{\"t\":{", 0, "ends" },
    { "not JSON", "{t:1}", 0, "'\"'" },
    { "trailing text", "{} x", 0, "after the header" },
    { "trailing newline", "{}\n", 0, "after the header" },
    { "two objects", "{}{}", 0, "after the header" },
    { "trailing comma", "{\"t\":{" GOOD "},}", 4, "'\"'" },
    { "hole at the start", ONE("\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[1,5]"), 5, "hole" },
    { "hole", "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\",\"shape\":[2],"
              "\"data_offsets\":[3,5]}}", 5, "hole" },
    { "overlap", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[2],"
                 "\"data_offsets\":[3,5]}}", 5, "overlap" },
    { "reuse", "{\"a\":{" GOOD "},\"b\":{" GOOD "}}", 4, "overlap" },
    { "backwards", ONE("\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]"), 4, "backwards" },
    { "size", ONE("\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,4]"), 4, "span 4 bytes" },
    { "overflow", ONE("\"dtype\":\"F64\",\"shape\":[4611686018427387904,8],\"data_offsets\":[0,4]"), 4, "overflows" },
    { "bits overflow", ONE("\"dtype\":\"F64\",\"shape\":[1152921504606846976],\"data_offsets\":[0,4]"), 4, "overflows" },
    { "half a byte", ONE("\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]"), 1, "bits" },
    { "short data", ONE(GOOD), 3, "truncated" },
    { "long data", ONE(GOOD), 5, "truncated" },
    { "duplicate", "{\"t\":{" GOOD "},\"t\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]}}", 6, "again" },
    { "duplicate by escape", "{\"t\":{" GOOD "},\"\\u0074\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]}}", 6,
      "again" },
    { "second member", ONE(GOOD ",\"dtype\":\"I8\""), 4, "second" },
    { "unknown member", ONE(GOOD ",\"x\":1"), 4, "unknown" },
    { "missing member", ONE("\"dtype\":\"U8\",\"shape\":[4]"), 4, "expected dtype" },
    { "no members", "{\"t\":{}}", 0, "'\"'" },
    { "negative", ONE("\"dtype\":\"U8\",\"shape\":[-4],\"data_offsets\":[0,4]"), 4, "integer" },
    { "fraction", ONE("\"dtype\":\"U8\",\"shape\":[4.0],\"data_offsets\":[0,4]"), 4, "fraction" },
    { "exponent", ONE("\"dtype\":\"U8\",\"shape\":[4e0],\"data_offsets\":[0,4]"), 4, "exponent" },
    { "leading zero", ONE("\"dtype\":\"U8\",\"shape\":[04],\"data_offsets\":[0,4]"), 4, "leading zero" },
    { "plus sign", ONE("\"dtype\":\"U8\",\"shape\":[+4],\"data_offsets\":[0,4]"), 4, "integer" },
    { "64 bits", ONE("\"dtype\":\"U8\",\"shape\":[9223372036854775808],\"data_offsets\":[0,4]"), 4, "63 bits" },
    { "string offset", ONE("\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[\"0\",4]"), 4, "integer" },
    { "three offsets", ONE("\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,4]"), 4, "']'" },
    { "one offset", ONE("\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]"), 4, "','" },
    { "rank 9", ONE("\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,4],\"data_offsets\":[0,4]"), 4, "dimensions" },
    { "dtype", ONE("\"dtype\":\"Q4\",\"shape\":[4],\"data_offsets\":[0,4]"), 4, "unknown dtype 'Q4'" },
    { "dtype number", ONE("\"dtype\":8,\"shape\":[4],\"data_offsets\":[0,4]"), 4, "'\"'" },
    { "metadata number", "{\"__metadata__\":{\"a\":1}}", 0, "'\"'" },
    { "metadata array", "{\"__metadata__\":[]}", 0, "'{'" },
    { "two metadata", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "second __metadata__" },
    { "bad UTF-8", "{\"t\xff\":{" GOOD "}}", 4, "UTF-8" },
    { "over-long UTF-8", "{\"t\xc0\xaf\":{" GOOD "}}", 4, "UTF-8" },
    { "surrogate in UTF-8", "{\"t\xed\xa0\x80\":{" GOOD "}}", 4, "UTF-8" },
    { "lone surrogate", "{\"\\ud800\":{" GOOD "}}", 4, "surrogate" },
    { "swapped surrogates", "{\"\\udc00\\ud800\":{" GOOD "}}", 4, "surrogate" },
    { "U+0000", "{\"a\\u0000b\":{" GOOD "}}", 4, "U+0000" },
    { "control character", "{\"a\tb\":{" GOOD "}}", 4, "control" },
    { "bad escape", "{\"a\\x\":{" GOOD "}}", 4, "escape" },
    { "bad hex", "{\"a\\u12g4\":{" GOOD "}}", 4, "hexadecimal" },
    { "array of tensors", "{\"t\":[" GOOD "]}", 4, "'{'" },
};

static void each_lie_is_named(void **state)
{
    (void)state;
    const char *folder = t_folder();
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        put(folder, "model.safetensors", lies[i].header, lies[i].data);
        print_message("%s\n", lies[i].name);
        fails(folder, AEGIS_E_MODEL, lies[i].part);
    }
    char path[4096];
    snprintf(path, sizeof path, "%s", t_path(folder, "model.safetensors"));
    write_file(path, "{}", 2, 3, 0);
    fails(path, AEGIS_E_MODEL, "a header of 3 bytes, but the file has 2 more (file truncated?)");
    write_file(path, "{}", 2, 100000001, 0);
    fails(path, AEGIS_E_MODEL, "header of 100000001 bytes");
    write_file(path, "{}", 2, INT64_MAX, 0);
    fails(path, AEGIS_E_MODEL, "header");
    t_write_file(path, "1234567", 7);
    fails(path, AEGIS_E_MODEL, "at least 8");
    fails(t_path(folder, "none"), AEGIS_E_MODEL, "none");
    fails("/dev/null", AEGIS_E_MODEL, "regular");
    char *name = malloc(3000);
    const int n = snprintf(name, 3000, "{\"%01500d\":{" GOOD "}}", 1);
    write_file(path, name, (size_t)n, -1, 4);
    fails(path, AEGIS_E_MODEL, "1500 bytes");
    free(name);
}

/* --- sets ------------------------------------------------------------------------------------------------------ */

#define T2(a, b) "{\"" a "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"" b \
                 "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}"

static uint32_t opens(const char *folder)
{
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_source st;
    T_OK(aeg_st_open(&st, folder, &memory, &err), &err);
    const uint32_t n = st.n_tensors;
    aeg_source_close(&st);
    t_no_leak(&memory);
    return n;
}

static void index_text(const char *folder, const char *text)
{
    t_write_file(t_path(folder, "model.safetensors.index.json"), text, strlen(text));
}

static void shards_and_indexes(void **state)
{
    (void)state;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", t_folder());
    fails(folder, AEGIS_E_MODEL, "no model*.safetensors");
    put(folder, "model-00002-of-00002.safetensors", T2("c", "d"), 2);
    put(folder, "model-00001-of-00002.safetensors", T2("a", "b"), 2);
    put(folder, "other.safetensors", "junk", 0);
    T_CHECK(opens(folder) == 4); /* no index */
    index_text(folder, "{\"metadata\":{\"total_size\":4,\"x\":[1,{\"y\":null}]},\"weight_map\":{\"d\":\"model-00002-of-00002.safetensors\","
                       "\"a\":\"model-00001-of-00002.safetensors\",\"b\":\"model-00001-of-00002.safetensors\"}}\n");
    T_CHECK(opens(folder) == 4); /* one tensor that the map does not know is no harm */
    index_text(folder, "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\"}}");
    T_CHECK(opens(folder) == 2); /* only what the map names */
    index_text(folder, "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\",\"z\":\"model-00002-of-00002.safetensors\"}}");
    fails(folder, AEGIS_E_MODEL, "'z'");
    index_text(folder, "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\",\"b\":\"model-00002-of-00002.safetensors\"}}");
    fails(folder, AEGIS_E_MODEL, "'b' is in model-00002");
    index_text(folder, "{\"weight_map\":{\"q\":\"model-00001-of-00002.safetensors\"}}"); /* of another model altogether */
    T_CHECK(opens(folder) == 2);
    index_text(folder, "{\"weight_map\":{\"a\":\"model-1.safetensors\"}}"); /* stale: names a file that is not there */
    T_CHECK(opens(folder) == 4);
    index_text(folder, "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\",\"c\":\"model-00002-of-00002.safetensors\","
                       "\"e\":\"model-00003-of-00002.safetensors\"}}"); /* an unfinished download */
    fails(folder, AEGIS_E_MODEL, "model-00003");
    put(folder, "model-00002-of-00002.safetensors", T2("c", "a"), 2);
    unlink(t_path(folder, "model.safetensors.index.json"));
    fails(folder, AEGIS_E_MODEL, "'a' is in");
}

static void hostile_indexes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } bad[] = {
        { "{\"weight_map\":{\"a\":\"../model.safetensors\"}}", "plain" },
        { "{\"weight_map\":{\"a\":\"/etc/model.safetensors\"}}", "plain" },
        { "{\"weight_map\":{\"a\":\"x\\\\model.safetensors\"}}", "plain" },
        { "{\"weight_map\":{\"a\":\"..\"}}", "plain" },
        { "{\"weight_map\":{\"a\":\".model.safetensors\"}}", "plain" },
        { "{\"weight_map\":{\"a\":\"passwd\"}}", "plain" },
        { "{\"weight_map\":{\"a\":\"\"}}", "plain" },
        { "{\"weight_map\":{\"a\":\".safetensors\"}}", "plain" },
        { "{\"weight_map\":{\"a\":\"model\\u0000.safetensors\"}}", "U+0000" },
        { "{\"weight_map\":{\"a\":1}}", "'\"'" },
        { "{\"weight_map\":[]}", "'{'" },
        { "{\"weight_map\":{}}", "weight_map" },
        { "{}", "weight_map" },
        { "[]", "'{'" },
        { "", "'{'" },
        { "{\"weight_map\":{\"a\":\"model.safetensors\"}} x", "after" },
        { "{\"weight_map\":{\"a\":\"model.safetensors\"},\"weight_map\":{}}", "second" },
        { "{\"metadata\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]],\"weight_map\":{\"a\":\"model.safetensors\"}}", "nested" },
        { "{\"metadata\":tru}", "value" },
    };
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", t_folder());
    put(folder, "model.safetensors", T2("a", "b"), 2);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        index_text(folder, bad[i].text);
        fails(folder, AEGIS_E_MODEL, bad[i].part);
    }
}

/* --- damage ------------------------------------------------------------------------------------------------------ */

static void open_and_close(const char *path)
{
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_source st;
    const aegis_status status = aeg_st_open(&st, path, &memory, &err);
    if (status != AEGIS_OK && (status != AEGIS_E_MODEL || err.message[0] == '\0'))
        fail_msg("status %d: %s", status, err.message);
    aeg_source_close(&st);
    t_no_leak(&memory);
}

static void truncated_and_flipped_files_give_errors(void **state)
{
    (void)state;
    size_t n;
    char *bytes = t_read_file(AEGIS_SOURCE_DIR "/tests/data/qwen35moe-tiny/model.safetensors", &n);
    char path[4096];
    snprintf(path, sizeof path, "%s", t_path(t_folder(), "model.safetensors"));
    for (int percent = 0; percent < 100; percent++) {
        t_write_file(path, bytes, n * (size_t)percent / 100);
        fails(path, AEGIS_E_MODEL, "model.safetensors");
    }
    /* flips of the header; the data behind it is only zeros of the right length (a hole) */
    size_t header = 0;
    for (int i = 7; i >= 0; i--)
        header = header << 8 | (uint8_t)bytes[i];
    for (int i = 0; i < 1500; i++) {
        const size_t at = i < 64 ? (size_t)i / 8 : t_below(8 + header);
        const char saved = bytes[at];
        bytes[at] = (char)(bytes[at] ^ (1 << (i < 64 ? i % 8 : (int)t_below(8))));
        t_write_file(path, bytes, 8 + header);
        T_CHECK(truncate(path, (off_t)n) == 0);
        open_and_close(path);
        bytes[at] = saved;
    }
    t_free(bytes);
}

/* Memory is the header and one entry per tensor, whatever the header says. */
static void memory_follows_the_header(void **state)
{
    (void)state;
    enum { N = 3000000 };
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_source st;
    const char *path = t_path(t_folder(), "model.safetensors");
    char *text = malloc(N + 1);
    const int head = sprintf(text, "{\"t\":{\"shape\":[");
    for (int i = head; i < N; i++)
        text[i] = i % 2 ? '1' : ',';
    text[head] = '1';
    write_file(path, text, N, -1, 0);
    T_FAILS(aeg_st_open(&st, path, &memory, &err), &err, AEGIS_E_MODEL, "dimensions");
    T_CHECK(memory.peak < N + (600 << 10));
    memory.ceiling = 1 << 20;
    T_FAILS(aeg_st_open(&st, path, &memory, &err), &err, AEGIS_E_MEMORY, "header of 3000000");
    free(text);
    t_no_leak(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_is_there),
        cmocka_unit_test(large_ranges_are_read_right),
        cmocka_unit_test(each_lie_is_named),
        cmocka_unit_test(shards_and_indexes),
        cmocka_unit_test(hostile_indexes),
        cmocka_unit_test(truncated_and_flipped_files_give_errors),
        cmocka_unit_test(memory_follows_the_header),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
