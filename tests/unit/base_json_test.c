/* SPDX-License-Identifier: Apache-2.0 */
#include "support/t.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"

static json_t *parse(const char *text)
{
    json_t *v = NULL;
    aegis_error err;
    T_OK(aeg_json_parse(&v, text, strlen(text), "config.json", AEGIS_E_MODEL, &err), &err);
    return v;
}

static void getters_give_what_is_there(void **state)
{
    (void)state;
    json_t *v = parse("{\"n\":64,\"big\":9223372036854775807,\"x\":2.5,\"i\":3,\"s\":\"mlx\",\"o\":{},\"a\":[1]}");
    aegis_error err;
    uint32_t u = 0;
    uint64_t w = 0;
    double d = 0;
    const char *s = NULL;
    const json_t *inner = NULL;
    T_OK(aeg_json_get_u32(v, "n", "config.json", 1, 64, &u, &err), &err);
    assert_int_equal(u, 64);
    T_OK(aeg_json_get_u64(v, "big", "config.json", &w, &err), &err);
    assert_true(w == INT64_MAX);
    T_OK(aeg_json_get_f64(v, "x", "config.json", &d, &err), &err);
    assert_true(d == 2.5);
    T_OK(aeg_json_get_f64(v, "i", "config.json", &d, &err), &err); /* an integer is a number */
    assert_true(d == 3);
    T_OK(aeg_json_get_string(v, "s", "config.json", &s, &err), &err);
    assert_string_equal(s, "mlx");
    T_OK(aeg_json_get_object(v, "o", "config.json", &inner, &err), &err);
    T_OK(aeg_json_get_array(v, "a", "config.json", &inner, &err), &err);
    assert_int_equal(json_array_size(inner), 1);
    json_decref(v);
    t_no_leak(aeg_json_memory());
}

static void messages_name_file_key_found_and_expected(void **state)
{
    (void)state;
    json_t *v = parse("{\"n\":65,\"neg\":-1,\"x\":2.5,\"s\":\"8\",\"b\":true,\"z\":null,\"o\":{},\"a\":[]}");
    aegis_error err;
    uint32_t u = 7;
    uint64_t w = 7;
    double d = 7;
    const char *s = NULL;
    const json_t *inner = NULL;
    T_FAILS(aeg_json_get_u32(v, "n", "c.json", 1, 64, &u, &err), &err, AEGIS_E_MODEL, "c.json: 'n' is 65, expected 1 to 64");
    T_FAILS(aeg_json_get_u32(v, "n", "c.json", 66, 99, &u, &err), &err, AEGIS_E_MODEL, "66 to 99");
    T_FAILS(aeg_json_get_u64(v, "neg", "c.json", &w, &err), &err, AEGIS_E_MODEL, "'neg' is -1, expected 0 or more");
    T_FAILS(aeg_json_get_u64(v, "x", "c.json", &w, &err), &err, AEGIS_E_MODEL, "a number with a fraction, expected an integer");
    T_FAILS(aeg_json_get_u64(v, "gone", "c.json", &w, &err), &err, AEGIS_E_MODEL, "'gone' is nothing, expected an integer");
    T_FAILS(aeg_json_get_f64(v, "s", "c.json", &d, &err), &err, AEGIS_E_MODEL, "'s' is a string, expected a number");
    T_FAILS(aeg_json_get_string(v, "b", "c.json", &s, &err), &err, AEGIS_E_MODEL, "a boolean, expected a string");
    T_FAILS(aeg_json_get_object(v, "a", "c.json", &inner, &err), &err, AEGIS_E_MODEL, "an array, expected an object");
    T_FAILS(aeg_json_get_array(v, "z", "c.json", &inner, &err), &err, AEGIS_E_MODEL, "null, expected an array");
    assert_true(u == 7 && w == 7 && d == 7 && s == NULL && inner == NULL);
    json_decref(v);
}

static void bad_texts_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "{", "[1,2", "{\"a\":1}x", "{\"a\":1,\"a\":2}", "{a:1}", "nul", "\"\xff\"", "[1e999]", "[99999999999999999999]",
        "'x'", "[1,]", "\"\\ud800\"",
    };
    for (size_t i = 0; i < AEG_ARRAY_LEN(bad); i++) {
        json_t *v = NULL;
        aegis_error err;
        T_FAILS(aeg_json_parse(&v, bad[i], strlen(bad[i]), "f.json", AEGIS_E_USAGE, &err), &err, AEGIS_E_USAGE,
                "f.json: not valid JSON at line");
        assert_null(v);
    }
    t_no_leak(aeg_json_memory());
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    char text[4096];
    json_t *v = NULL;
    aegis_error err;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    T_OK(aeg_json_parse(&v, text, 128, "f", AEGIS_E_MODEL, &err), &err);
    json_decref(v);
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    T_FAILS(aeg_json_parse(&v, text, 130, "f", AEGIS_E_MODEL, &err), &err, AEGIS_E_MODEL, "deeper than 64");
    /* Brackets inside strings do not nest, an escaped quote does not end one. */
    memset(text, '[', sizeof text);
    memcpy(text, "\"\\\"", 3);
    text[sizeof text - 1] = '"';
    T_OK(aeg_json_parse(&v, text, sizeof text, "f", AEGIS_E_MODEL, &err), &err);
    json_decref(v);
    t_no_leak(aeg_json_memory());
}

static void every_failing_allocation_is_a_clean_error(void **state)
{
    (void)state;
    const char *text = "{\"a\":[1,2,{\"b\":\"a longer string that needs a buffer\"}],\"c\":1.5,\"d\":\"x\"}";
    uint64_t n = 1;
    for (;; n++) {
        json_t *v = NULL;
        aegis_error err;
        t_fault_at(n);
        const aegis_status status = aeg_json_parse(&v, text, strlen(text), "f", AEGIS_E_MODEL, &err);
        const bool hit = t_fault_hit();
        t_fault_at(0);
        if (!hit) {
            T_OK(status, &err);
            json_decref(v);
            break;
        }
        T_FAILS(status, &err, AEGIS_E_MEMORY, "f: no memory");
        assert_null(v);
        t_no_leak(aeg_json_memory());
    }
    assert_true(n > 10);
    t_no_leak(aeg_json_memory());
}

/* Strings and numbers of every length that make the lexer's buffer grow, and a ceiling at every byte: Jansson must
 * never go on with a character missing. */
static void a_ceiling_anywhere_is_a_clean_error(void **state)
{
    (void)state;
    char text[2048];
    size_t n = 0;
    aeg_memory *memory = aeg_json_memory();
    n += (size_t)sprintf(text + n, "{\"k\":[");
    for (int length = 1; length < 300; length = length * 3 / 2 + 1)
        n += (size_t)sprintf(text + n, "\"\\n%0*d\\u00e9\\\\\", 0.%0*d, {\"%0*d\": null}, ", length, 7, length / 2 + 1, 1, length, 3);
    n += (size_t)sprintf(text + n, "1]}");
    const uint64_t saved = memory->ceiling;
    for (uint64_t room = 16;; room += 24) {
        json_t *v = NULL;
        aegis_error err;
        memory->ceiling = memory->in_use + room;
        const aegis_status status = aeg_json_parse(&v, text, n, "f", AEGIS_E_MODEL, &err);
        memory->ceiling = saved;
        if (status == AEGIS_OK) {
            assert_true(room > 2000);
            json_decref(v);
            break;
        }
        T_FAILS(status, &err, AEGIS_E_MEMORY, "f: no memory");
        t_no_leak(memory);
    }
    t_no_leak(memory);
}

int main(void)
{
    aeg_json_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(getters_give_what_is_there),
        cmocka_unit_test(messages_name_file_key_found_and_expected),
        cmocka_unit_test(bad_texts_are_refused),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(every_failing_allocation_is_a_clean_error),
        cmocka_unit_test(a_ceiling_anywhere_is_a_clean_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
