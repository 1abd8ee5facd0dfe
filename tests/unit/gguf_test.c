/* SPDX-License-Identifier: Apache-2.0 */
/* The GGUF container: what is accepted, and each way in which a file can lie (the classes of faults that public
 * readers had: counts, lengths, shapes, offsets, types, alignment, duplicates, cut files). */
#include "support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/gguf.h"
#include "format/gguf_parse.h"
#include "support/gguf_write.h"

enum { F32 = 0, Q4_0 = 2, Q4_K = 12, BF16 = 30 };
static const char *folder;

static const char *put(gw *w, const char *name)
{
    const char *path = t_path(folder, name);
    gw_write(w, path);
    gw_free(w);
    return path;
}

static void fails(gw *w, const char *part)
{
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_gguf g;
    const char *path = put(w, "bad.gguf");
    T_FAILS(aeg_gguf_open(&g, path, &memory, &err), &err, AEGIS_E_MODEL, part);
    T_CHECK(strstr(err.message, "bad.gguf") != NULL && g.kv == NULL && g.source.files == NULL);
    t_no_leak(&memory);
}

/* Two matrices and a vector behind keys of every type. */
static void small_file(gw *w, uint32_t version)
{
    static const uint64_t ne[] = { 256, 3 }, cube[] = { 32, 2, 5 }, one[] = { 7 };
    gw_head(w, version, 4, 16);
    gw_key_text(w, "general.architecture", "test");
    gw_key_int(w, "a.u8", AEG_GGUF_U8, 200, 1);
    gw_key_int(w, "a.i8", AEG_GGUF_I8, 0xfe, 1);
    gw_key_int(w, "a.u16", AEG_GGUF_U16, 65535, 2);
    gw_key_int(w, "a.i16", AEG_GGUF_I16, 0xfffe, 2);
    gw_key_u32(w, "a.u32", 4000000000u);
    gw_key_int(w, "a.i32", AEG_GGUF_I32, 0xfffffffe, 4);
    gw_key_f32(w, "a.f32", 0.5f);
    gw_key_bool(w, "a.bool", 1);
    gw_key_int(w, "a.u64", AEG_GGUF_U64, UINT64_MAX, 8);
    gw_key_int(w, "a.i64", AEG_GGUF_I64, (uint64_t)-5, 8);
    gw_key(w, "a.f64", AEG_GGUF_F64);
    gw_raw(w, &(double){ 1e100 }, 8);
    gw_key_array(w, "a.ints", AEG_GGUF_I16, 3);
    gw_int(w, 1, 2), gw_int(w, 0xffff, 2), gw_int(w, 3, 2);
    gw_key_array(w, "a.texts", AEG_GGUF_STRING, 3);
    gw_text(w, "x"), gw_text(w, ""), gw_text(w, "\xc4\xa0the");
    gw_key_array(w, "a.none", AEG_GGUF_F32, 0);
    gw_key_u32(w, "general.alignment", 64);
    gw_tensor(w, "b.weight", 2, ne, Q4_K, 0);            /* 432 bytes */
    gw_tensor(w, "c.weight", 3, cube, Q4_0, 448);         /* 180 bytes */
    gw_tensor(w, "a.weight", 1, one, F32, 640);           /* 28 bytes  */
    gw_tensor(w, "s", 0, NULL, BF16, 704);
    gw_pad(w, 64);
    for (uint32_t i = 0; i < 706; i++)
        gw_int(w, i * 7 + 1, 1);
}

static void check_int(const aeg_gguf *g, const char *key, int64_t want)
{
    aegis_error err = { 0 };
    int64_t v = 0;
    bool found = false;
    T_OK(aeg_gguf_int(g, key, INT64_MIN, INT64_MAX, &v, &found, &err), &err);
    T_CHECK(found && v == want);
}

static void every_type_of_value_is_read(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        T_MEMORY(memory);
        aegis_error err = { 0 };
        aeg_gguf g;
        gw w = { 0 };
        small_file(&w, version);
        const char *path = put(&w, "small.gguf");
        T_CHECK(aeg_gguf_probe(path) && !aeg_gguf_probe(folder));
        T_OK(aeg_gguf_open(&g, path, &memory, &err), &err);
        check_int(&g, "a.u8", 200), check_int(&g, "a.i8", -2), check_int(&g, "a.u16", 65535), check_int(&g, "a.i16", -2);
        check_int(&g, "a.u32", 4000000000), check_int(&g, "a.i32", -2), check_int(&g, "a.i64", -5);
        int64_t i = 7;
        double d = 0;
        bool b = false, found = true;
        aeg_gguf_text text = { 0 };
        T_FAILS(aeg_gguf_int(&g, "a.u64", 0, INT64_MAX, &i, NULL, &err), &err, AEGIS_E_MODEL, "'a.u64'");
        T_FAILS(aeg_gguf_int(&g, "a.u8", 0, 100, &i, NULL, &err), &err, AEGIS_E_MODEL, "'a.u8' is 200, expected 0 to 100");
        T_FAILS(aeg_gguf_int(&g, "a.f32", 0, 100, &i, NULL, &err), &err, AEGIS_E_MODEL, "'a.f32' is f32, expected an integer");
        T_FAILS(aeg_gguf_int(&g, "a.ints", 0, 100, &i, NULL, &err), &err, AEGIS_E_MODEL, "an array of i16");
        T_FAILS(aeg_gguf_string(&g, "a.u8", &text, NULL, &err), &err, AEGIS_E_MODEL, "expected a string");
        T_FAILS(aeg_gguf_bool(&g, "a.u8", &b, NULL, &err), &err, AEGIS_E_MODEL, "expected a bool");
        T_OK(aeg_gguf_int(&g, "a.absent", 0, 1, &i, &found, &err), &err);
        T_CHECK(!found && i == 7);
        T_OK(aeg_gguf_number(&g, "a.f32", &d, NULL, &err), &err);
        T_CHECK(d == 0.5);
        T_OK(aeg_gguf_number(&g, "a.i8", &d, NULL, &err), &err);
        T_CHECK(d == -2);
        T_OK(aeg_gguf_number(&g, "a.f64", &d, NULL, &err), &err);
        T_CHECK(d == 1e100);
        T_OK(aeg_gguf_bool(&g, "a.bool", &b, NULL, &err), &err);
        T_CHECK(b);
        T_OK(aeg_gguf_string(&g, "general.architecture", &text, NULL, &err), &err);
        T_CHECK(aeg_gguf_text_is(text, "test") && !aeg_gguf_text_is(text, "tes") && !aeg_gguf_text_is(text, "testx"));
        const aeg_gguf_kv *kv;
        T_OK(aeg_gguf_array(&g, "a.ints", AEG_GGUF_INTS, &kv, &err), &err);
        T_CHECK(kv->count == 3 && aeg_gguf_int_at(kv, 1, &i) && i == -1);
        T_FAILS(aeg_gguf_array(&g, "a.ints", AEG_GGUF_STRINGS, &kv, &err), &err, AEGIS_E_MODEL, "expected an array of strings");
        T_OK(aeg_gguf_array(&g, "a.texts", AEG_GGUF_STRINGS, &kv, &err), &err);
        aeg_gguf_strings each = aeg_gguf_each(kv);
        T_CHECK(aeg_gguf_next(&each, &text) && aeg_gguf_text_is(text, "x"));
        T_CHECK(aeg_gguf_next(&each, &text) && text.n == 0);
        T_CHECK(aeg_gguf_next(&each, &text) && aeg_gguf_text_is(text, "\xc4\xa0the") && !aeg_gguf_next(&each, &text));
        aeg_gguf_close(&g);
        t_no_leak(&memory);
    }
}

static void tensors_are_where_they_are_said_to_be(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_gguf g;
    gw w = { 0 };
    small_file(&w, 3);
    T_OK(aeg_gguf_open(&g, put(&w, "small.gguf"), &memory, &err), &err);
    const aeg_tensor *a = aeg_source_find(&g.source, "a.weight"), *b = aeg_source_find(&g.source, "b.weight");
    const aeg_tensor *c = aeg_source_find(&g.source, "c.weight"), *s = aeg_source_find(&g.source, "s");
    T_CHECK(g.source.n_tensors == 4 && a != NULL && b != NULL && c != NULL && s != NULL);
    T_CHECK(b->rank == 2 && b->dims[0] == 3 && b->dims[1] == 256 && b->bytes == 432 && b->dtype == AEG_DT_Q4_K);
    T_CHECK(c->rank == 3 && c->dims[0] == 5 && c->dims[2] == 32 && c->bytes == 180 && c->dtype == AEG_DT_Q4_0);
    T_CHECK(a->rank == 1 && a->bytes == 28 && s->rank == 0 && s->bytes == 2 && s->dtype == AEG_DT_BF16);
    uint8_t bytes[28];
    T_OK(aeg_source_read(&g.source, a, 0, 28, bytes, &err), &err);
    for (uint32_t i = 0; i < 28; i++)
        T_CHECK(bytes[i] == (uint8_t)((640 + i) * 7 + 1));
    aeg_gguf_close(&g);
    t_no_leak(&memory);
}

/* --- what is refused ------------------------------------------------------------------------------------------- */

static void wrong_beginnings(void **state)
{
    (void)state;
    gw w = { 0 };
    gw_raw(&w, "GGU", 3);
    fails(&w, "the file has 3 more");
    gw_raw(&w, "GGML", 4), gw_raw(&w, NULL, 60);
    fails(&w, "not a GGUF file: it begins with 47 47 4d 4c");
    gw_head(&w, 1, 0, 0);
    fails(&w, "version 1, expected 2 or 3");
    gw_head(&w, 4, 0, 0);
    fails(&w, "version 4, expected 2 or 3");
    gw_head(&w, 0x03000000, 0, 0);
    fails(&w, "big-endian");
    gw_raw(&w, "", 0);
    fails(&w, "a magic number of 4 bytes, but the file has 0 more (file truncated?)");
}

/* Counts that would wrap when multiplied by a record's size, or ask for far more than the file can hold. */
static void counts_beyond_the_file(void **state)
{
    static const uint64_t counts[] = { 2, 1000, 1 << 20, (uint64_t)1 << 40, INT64_MAX, UINT64_MAX, 0x0666666666666667u };
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        gw w = { 0 };
        gw_head(&w, 3, counts[i], 0), gw_raw(&w, NULL, 40);
        fails(&w, "bytes that are left hold at most 1 (file truncated?)");
        gw_head(&w, 3, 0, counts[i]), gw_raw(&w, NULL, 27);
        fails(&w, "bytes that are left hold at most 1 (file truncated?)");
    }
}

static void strings_beyond_the_file(void **state)
{
    static const uint64_t lengths[] = { 100, 65535, (uint64_t)1 << 31, INT64_MAX, UINT64_MAX, UINT64_MAX - 7 };
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        gw w = { 0 };
        gw_head(&w, 3, 0, 1), gw_int(&w, lengths[i], 8), gw_raw(&w, "abcdefgh", 8);
        fails(&w, "a key of");
        gw_head(&w, 3, 0, 1), gw_key(&w, "k", AEG_GGUF_STRING), gw_int(&w, lengths[i], 8), gw_raw(&w, "abcdefgh", 8);
        fails(&w, "'k': a string of");
        gw_head(&w, 3, 1, 0), gw_int(&w, lengths[i], 8), gw_raw(&w, NULL, 40);
        fails(&w, "a tensor's name of");
    }
    gw w = { 0 };
    gw_head(&w, 3, 0, 1), gw_int(&w, 0, 8), gw_raw(&w, NULL, 20);
    fails(&w, "an empty key");
    gw_head(&w, 3, 0, 1), gw_key_u32(&w, "a\nb", 1);
    fails(&w, "control character 10");
    gw_head(&w, 3, 1, 0), gw_tensor(&w, "ab\xe4x", 0, NULL, F32, 0);
    fails(&w, "is not UTF-8: byte 2 is 0xe4");
    gw_head(&w, 3, 1, 0), gw_tensor(&w, "1234567890123456789012345678901234567890123456789012345678901234", 0, NULL, F32, 0);
    fails(&w, "name of 64 bytes, expected at most 63");
}

static void arrays_that_lie(void **state)
{
    static const uint64_t counts[] = { 3, 1000, (uint64_t)1 << 33, (uint64_t)1 << 61, UINT64_MAX };
    static const uint32_t types[] = { AEG_GGUF_U64, AEG_GGUF_F64, AEG_GGUF_STRING };
    (void)state;
    gw w = { 0 };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (size_t k = 0; k < 3; k++) {
            gw_head(&w, 3, 0, 1), gw_key_array(&w, "k", types[k], counts[i]), gw_raw(&w, NULL, 16);
            fails(&w, "elements of");
        }
    gw_head(&w, 3, 0, 1), gw_key_array(&w, "k", AEG_GGUF_ARRAY, 1), gw_raw(&w, NULL, 40);
    fails(&w, "array of arrays");
    gw_head(&w, 3, 0, 1), gw_key_array(&w, "k", 13, 1), gw_raw(&w, NULL, 40);
    fails(&w, "value type 13, expected 0 to 12");
    gw_head(&w, 3, 0, 1), gw_key(&w, "k", 0xffffffff), gw_raw(&w, NULL, 40);
    fails(&w, "value type 4294967295");
    gw_head(&w, 3, 0, 1), gw_key_bool(&w, "k", 2);
    fails(&w, "a bool of value 2");
    gw_head(&w, 3, 0, 1), gw_key_array(&w, "k", AEG_GGUF_BOOL, 2), gw_raw(&w, "\1\3", 2);
    fails(&w, "a bool of value 3");
}

static void shapes_that_lie(void **state)
{
    static const uint64_t huge[] = { (uint64_t)1 << 41, 1 }, wraps[] = { (uint64_t)1 << 40, (uint64_t)1 << 24, 1, 1 };
    static const uint64_t negative[] = { UINT64_MAX, 1 }, odd[] = { 255, 1 }, big[] = { 256, 1 << 20 }, four[] = { 4, 1, 1, 1 };
    static const uint64_t bytes_wrap[] = { (uint64_t)1 << 40, (uint64_t)1 << 22, 1, 1 };
    (void)state;
    gw w = { 0 };
    gw_head(&w, 3, 1, 0), gw_tensor(&w, "t", 0, NULL, F32, 0);
    w.p[24 + 9] = 5; /* dimensions */
    gw_raw(&w, NULL, 64);
    fails(&w, "5 dimensions, expected at most 4");
    gw_head(&w, 3, 1, 0), gw_tensor(&w, "t", 2, huge, F32, 0), gw_raw(&w, NULL, 64);
    fails(&w, "expected at most 2^40");
    gw_head(&w, 3, 1, 0), gw_tensor(&w, "t", 2, negative, F32, 0), gw_raw(&w, NULL, 64);
    fails(&w, "expected at most 2^40");
    gw_head(&w, 3, 1, 0), gw_tensor(&w, "t", 4, wraps, F32, 0), gw_raw(&w, NULL, 64);
    fails(&w, "overflows");
    gw_head(&w, 3, 1, 0), gw_tensor(&w, "t", 4, bytes_wrap, F32, 0), gw_raw(&w, NULL, 64);
    fails(&w, "overflows");
    gw_head(&w, 3, 1, 0), gw_tensor(&w, "t", 2, odd, Q4_K, 0), gw_raw(&w, NULL, 400);
    fails(&w, "no multiple of 256 values");
    gw_head(&w, 3, 1, 0), gw_tensor(&w, "t", 2, big, F32, 0), gw_raw(&w, NULL, 400);
    fails(&w, "the file has");
    gw_head(&w, 3, 1, 0), gw_tensor(&w, "t", 4, four, F32, 64), gw_pad(&w, 32), gw_raw(&w, NULL, 79);
    fails(&w, "ends at data byte 80, but there are 79");
}

static void types_that_do_not_exist(void **state)
{
    static const uint32_t ids[] = { 4, 5, 31, 32, 33, 36, 37, 38, 43, 97, 133, 201, 0x7fffffff, 0xffffffff };
    static const uint64_t ne[] = { 256, 1 };
    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        gw w = { 0 };
        char part[60];
        gw_head(&w, 3, 1, 0), gw_tensor(&w, "blk.0.x", 2, ne, ids[i], 0), gw_raw(&w, NULL, 2000);
        snprintf(part, sizeof part, "'blk.0.x' has type number %u", ids[i]);
        fails(&w, part);
    }
}

static void alignments_that_are_none(void **state)
{
    static const uint32_t values[] = { 0, 1, 4, 24, 33, 1 << 21, 0x80000000 };
    static const uint64_t ne[] = { 8, 1 };
    (void)state;
    gw w = { 0 };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        gw_head(&w, 3, 0, 1), gw_key_u32(&w, "general.alignment", values[i]);
        fails(&w, "'general.alignment' is");
    }
    gw_head(&w, 3, 0, 1), gw_key_int(&w, "general.alignment", AEG_GGUF_U64, 32, 8);
    fails(&w, "'general.alignment' is u64, expected u32");
    gw_head(&w, 3, 0, 1), gw_key_array(&w, "general.alignment", AEG_GGUF_U32, 1), gw_int(&w, 32, 4);
    fails(&w, "'general.alignment' is an array of u32");
    gw_head(&w, 3, 1, 0), gw_tensor(&w, "t", 2, ne, F32, 16), gw_raw(&w, NULL, 200);
    fails(&w, "begins at data byte 16, expected a multiple of 32");
    gw_head(&w, 3, 1, 1), gw_key_u32(&w, "general.alignment", 16), gw_tensor(&w, "t", 2, ne, F32, UINT64_MAX - 15);
    gw_raw(&w, NULL, 200);
    fails(&w, "from data byte 18446744073709551600 on");
}

static void things_given_twice(void **state)
{
    static const uint64_t ne[] = { 8, 1 };
    (void)state;
    gw w = { 0 };
    gw_head(&w, 3, 0, 3), gw_key_u32(&w, "k", 1), gw_key_u32(&w, "l", 1), gw_key_text(&w, "k", "x");
    fails(&w, "'k' is given twice");
    gw_head(&w, 3, 2, 0), gw_tensor(&w, "t", 2, ne, F32, 0), gw_tensor(&w, "t", 2, ne, F32, 32), gw_raw(&w, NULL, 200);
    fails(&w, "tensor 't' is in");
    gw_head(&w, 3, 2, 0), gw_tensor(&w, "t", 2, ne, F32, 0), gw_tensor(&w, "u", 2, ne, F32, 0), gw_raw(&w, NULL, 200);
    fails(&w, "inside the tensor before it");
}

/* --- split sets ---------------------------------------------------------------------------------------------------- */

static void part(gw *w, uint32_t no, uint32_t count, uint32_t tensors, const char *name)
{
    static const uint64_t ne[] = { 8, 1 };
    gw_head(w, 3, name == NULL ? 0 : 1, 3);
    gw_key_int(w, "split.no", AEG_GGUF_U16, no, 2);
    gw_key_int(w, "split.count", AEG_GGUF_U16, count, 2);
    gw_key_int(w, "split.tensors.count", AEG_GGUF_I32, tensors, 4);
    if (name != NULL)
        gw_tensor(w, name, 2, ne, F32, 0);
    gw_pad(w, 32);
    for (uint32_t i = 0; i < (name == NULL ? 0 : 32); i++)
        gw_int(w, no + i, 1);
}

static void put_parts(uint32_t no1, uint32_t count1, uint32_t tensors, const char *name1, const char *name2)
{
    gw w = { 0 };
    part(&w, 0, 3, tensors, NULL), put(&w, "m-00001-of-00003.gguf");
    part(&w, no1, count1, tensors, name1), put(&w, "m-00002-of-00003.gguf");
    part(&w, 2, 3, tensors, name2), put(&w, "m-00003-of-00003.gguf");
}

static void set_fails(const char *name, aegis_status want, const char *message)
{
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_gguf g;
    T_FAILS(aeg_gguf_open(&g, t_path(folder, name), &memory, &err), &err, want, message);
    t_no_leak(&memory);
}

static void a_split_set_is_one_source(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_gguf g;
    put_parts(1, 3, 2, "a", "b");
    T_OK(aeg_gguf_open(&g, t_path(folder, "m-00001-of-00003.gguf"), &memory, &err), &err);
    T_CHECK(g.source.n_files == 3 && g.source.n_tensors == 2);
    uint8_t a[32], b[32];
    T_OK(aeg_source_read(&g.source, aeg_source_find(&g.source, "a"), 0, 32, a, &err), &err);
    T_OK(aeg_source_read(&g.source, aeg_source_find(&g.source, "b"), 0, 32, b, &err), &err);
    T_CHECK(a[0] == 1 && a[31] == 32 && b[0] == 2);
    aeg_gguf_close(&g);
    t_no_leak(&memory);

    set_fails("m-00002-of-00003.gguf", AEGIS_E_MODEL, "part 2 of 3; name the first one");
    put_parts(1, 3, 3, "a", "b");
    set_fails("m-00001-of-00003.gguf", AEGIS_E_MODEL, "have 2 tensors, but 'split.tensors.count' is 3");
    put_parts(2, 3, 2, "a", "b");
    set_fails("m-00001-of-00003.gguf", AEGIS_E_MODEL, "part 3 of 3, expected part 2");
    put_parts(1, 4, 2, "a", "b");
    set_fails("m-00001-of-00003.gguf", AEGIS_E_MODEL, "part 2 of 4, expected part 2 of 3");
    put_parts(1, 3, 2, "a", "a");
    set_fails("m-00001-of-00003.gguf", AEGIS_E_MODEL, "tensor 'a' is in");
    unlink(t_path(folder, "m-00003-of-00003.gguf"));
    set_fails("m-00001-of-00003.gguf", AEGIS_E_MODEL, "m-00003-of-00003.gguf");
    gw w = { 0 };
    part(&w, 0, 3, 2, NULL), put(&w, "renamed.gguf");
    set_fails("renamed.gguf", AEGIS_E_MODEL, "its name should end in '-00001-of-00003.gguf'");
}

/* --- loops ----------------------------------------------------------------------------------------------------------- */

/* Every beginning of a good file, and every file with one bit changed: an error with a sentence, or a source whose
 * tensors lie inside the file. The header alone in a buffer of exactly its size, so that sanitizers see a byte too many. */
static void check_bytes(const uint8_t *bytes, size_t n, size_t file_bytes)
{
    enum { MAX = 64 };
    uint8_t *exact = malloc(n == 0 ? 1 : n);
    aeg_gguf_kv kv[MAX];
    aeg_gguf_tensor tensors[MAX];
    aeg_gguf_head head;
    aegis_error err = { 0 };
    bool more = false;
    memcpy(exact, bytes, n);
    aegis_status status = aeg_gguf_parse(&head, NULL, NULL, exact, n, file_bytes, "x", &more, &err);
    T_CHECK(status == AEGIS_OK || (status == AEGIS_E_MODEL && err.message[0] != '\0' && !more));
    T_CHECK(!more || n < file_bytes);
    if (status == AEGIS_OK && !more && head.n_kv <= MAX && head.n_tensors <= MAX) {
        T_CHECK(aeg_gguf_parse(&head, kv, tensors, exact, n, file_bytes, "x", &more, &err) == AEGIS_OK && !more);
        for (uint32_t i = 0; i < head.n_tensors; i++)
            T_CHECK(tensors[i].t.bytes <= file_bytes && tensors[i].t.offset <= file_bytes - tensors[i].t.bytes);
    }
    free(exact);
}

static void cut_and_damaged_headers(void **state)
{
    (void)state;
    gw w = { 0 };
    small_file(&w, 3);
    for (size_t n = 0; n <= w.n; n++) {
        check_bytes(w.p, n, n);   /* the file is cut          */
        check_bytes(w.p, n, w.n); /* only so much was read yet */
    }
    for (size_t bit = 0; bit < 8 * w.n; bit++) {
        w.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
        check_bytes(w.p, w.n, w.n);
        w.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    gw_free(&w);
}

T_PROPERTY(random_damage_is_survived, 2000)
{
    gw w = { 0 };
    small_file(&w, 3);
    const uint64_t changes = t_between(1, 12);
    for (uint64_t i = 0; i < changes; i++) {
        const size_t at = t_below(w.n);
        const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff, (uint8_t)t_random() };
        w.p[at] = values[t_below(6)];
    }
    w.p[0] = 'G', w.p[1] = 'G', w.p[2] = 'U', w.p[3] = 'F';
    check_bytes(w.p, w.n, w.n);
    gw_free(&w);
}

static const char *number(uint64_t n)
{
    static char text[24];
    snprintf(text, sizeof text, "%09llu", (unsigned long long)n);
    return text;
}

/* A header of 10 MB is read in growing pieces, and each refused allocation is an error. */
static void large_headers_and_refused_memory(void **state)
{
    enum { N = 200000 };
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_gguf g;
    gw w = { 0 };
    static const uint64_t ne[] = { 8, 1 };
    gw_head(&w, 3, 1, 2), gw_key_array(&w, "tokens", AEG_GGUF_STRING, N);
    for (uint32_t i = 0; i < N; i++) {
        char text[40];
        snprintf(text, sizeof text, "%039u", i);
        gw_text(&w, text);
    }
    gw_key_u32(&w, "last", 5), gw_tensor(&w, "t", 2, ne, F32, 0), gw_pad(&w, 32), gw_raw(&w, NULL, 32);
    const size_t bytes = w.n;
    const char *path = put(&w, "large.gguf");
    T_OK(aeg_gguf_open(&g, path, &memory, &err), &err);
    check_int(&g, "last", 5);
    uint64_t n = 0;
    aeg_gguf_text text;
    for (aeg_gguf_strings each = aeg_gguf_each(aeg_gguf_find(&g, "tokens")); aeg_gguf_next(&each, &text); n++)
        T_CHECK(text.n == 39 && memcmp(text.p + 30, number(n), 9) == 0);
    T_CHECK(n == N && memory.in_use < bytes + (64 << 10));
    aeg_gguf_close(&g);
    t_no_leak(&memory);
    for (uint64_t k = 1;; k++) {
        t_fault_at(k);
        const aegis_status status = aeg_gguf_open(&g, path, &memory, &err);
        const bool hit = t_fault_hit();
        t_fault_at(0);
        T_CHECK(!hit || status == AEGIS_E_MEMORY || status == AEGIS_OK); /* a shrinking that is refused changes nothing */
        aeg_gguf_close(&g);
        t_no_leak(&memory);
        if (!hit)
            break;
    }
}

int main(void)
{
    folder = t_folder();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_value_is_read), cmocka_unit_test(tensors_are_where_they_are_said_to_be),
        cmocka_unit_test(wrong_beginnings), cmocka_unit_test(counts_beyond_the_file),
        cmocka_unit_test(strings_beyond_the_file), cmocka_unit_test(arrays_that_lie), cmocka_unit_test(shapes_that_lie),
        cmocka_unit_test(types_that_do_not_exist), cmocka_unit_test(alignments_that_are_none),
        cmocka_unit_test(things_given_twice), cmocka_unit_test(a_split_set_is_one_source),
        cmocka_unit_test(cut_and_damaged_headers), cmocka_unit_test(random_damage_is_survived),
        cmocka_unit_test(large_headers_and_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
