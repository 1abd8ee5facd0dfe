/* SPDX-License-Identifier: Apache-2.0 */
/* The chat-template engine: 290 small templates with Python's answers, its errors and its limits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "support/t.h"
#include "text/jinja.h"

static aegis_error err;
static aeg_memory memory = { .name = "templates" };

static aegis_status render(const char *template, size_t n, const json_t *variables, const aeg_jinja_limits *limits,
                           char **out, size_t *n_out)
{
    aeg_jinja *t = NULL;
    *out = NULL;
    *n_out = 0;
    err = (aegis_error){ 0 };
    aegis_status status = aeg_jinja_compile(&t, template, n, &memory, &err);
    if (status == AEGIS_OK)
        status = aeg_jinja_render(t, variables, limits, out, n_out, &memory, &err);
    aeg_jinja_free(t);
    return status;
}

/* What `template` renders with no variables; the caller's to free. NULL: `err` says why. */
static char *text_of(const char *template)
{
    char *out;
    size_t n;
    json_t *none = json_object();
    (void)render(template, strlen(template), none, NULL, &out, &n);
    json_decref(none);
    return out;
}

static void check_text(const char *template, const char *expected)
{
    char *text = text_of(template);
    if (text == NULL || strcmp(text, expected) != 0)
        fail_msg("%s\n  gives %s\n  expected %s", template, text != NULL ? text : err.message, expected);
    aeg_free(&memory, text);
}

static void check_refused(const char *template, aegis_status status, const char *message)
{
    char *text = text_of(template);
    if (text != NULL || err.status != status || strstr(err.message, message) == NULL)
        fail_msg("%s\n  gives %s (%d)\n  expected the error %s (%d)", template, text != NULL ? text : err.message,
                 err.status, message, status);
}

/* tests/oracle/jinja/make_cases.py wrote the rows with Python's Jinja2 3.1.2. */
static void renders_what_pythons_jinja2_renders(void **state)
{
    (void)state;
    size_t n, n_bad = 0, index;
    char *file = t_read_file(AEGIS_SOURCE_DIR "/tests/data/templates/cases.json", &n);
    json_t *cases, *row;
    const aeg_jinja_limits base = aeg_jinja_default_limits();
    aeg_jinja_limits limits = base;
    limits.now = 1700000000;
    T_OK(aeg_json_parse(&cases, file, n, "cases.json", AEGIS_E_RUNTIME, &err), &err);
    t_free(file);
    assert_true(json_array_size(json_object_get(cases, "rows")) >= 200);
    json_array_foreach(json_object_get(cases, "rows"), index, row) {
        const json_t *template = json_object_get(row, "template"), *text = json_object_get(row, "text");
        char *out;
        size_t n_out;
        const aegis_status status = render(json_string_value(template), json_string_length(template),
                                           json_object_get(cases, "variables"), &limits, &out, &n_out);
        bool same;
        if (text != NULL) {
            same = status == AEGIS_OK && n_out == json_string_length(text) &&
                   memcmp(out, json_string_value(text), n_out) == 0;
        } else {
            char words[AEGIS_ERROR_MAX]; /* as errors show them: without control characters */
            aeg_utf8_show(words, sizeof words, json_string_value(json_object_get(row, "error")));
            same = status != AEGIS_OK && err.message[0] != '\0' && (words[0] == '\0' || strcmp(err.message, words) == 0);
        }
        if (!same)
            print_error("row %zu: %s\n  gives %s\n  expected %s\n", index, json_string_value(template),
                        out != NULL ? out : err.message, text != NULL ? json_string_value(text) : "an error");
        n_bad += !same;
        aeg_free(&memory, out);
    }
    json_decref(cases);
    assert_int_equal(n_bad, 0);
    assert_int_equal(memory.in_use, 0);
}

static void a_wrong_template_is_refused_with_line_and_expectation(void **state)
{
    (void)state;
    check_refused("a\n{{ x", AEGIS_E_MODEL, "line 2: tag without }}");
    check_refused("\n\n{% if x y %}", AEGIS_E_MODEL, "line 3: found 'y', expected '%}'");
    check_refused("{% for x of l %}", AEGIS_E_MODEL, "found 'of', expected 'in'");
    check_refused("{% if x %}a", AEGIS_E_MODEL, "block without its 'endif'");
    check_refused("{{ (1] }}", AEGIS_E_MODEL, "found ']', expected ')'");
    check_refused("{{ 'abc }}", AEGIS_E_MODEL, "string without its closing quote");
    check_refused("{{ a ? b }}", AEGIS_E_MODEL, "unexpected character U+003F");
    check_refused("{{ 99999999999999999999 }}", AEGIS_E_MODEL, "does not fit 64 bits");
    check_refused("{{ '\\ud800' }}", AEGIS_E_MODEL, "surrogate");
    check_refused("\xff", AEGIS_E_MODEL, "not UTF-8 at byte 0");
}

static void what_we_do_not_support_is_refused_by_name(void **state)
{
    (void)state;
    check_refused("{{ x | pprint }}", AEGIS_E_MODEL, "the filter 'pprint' is not supported");
    check_refused("{{ x is weird }}", AEGIS_E_MODEL, "the test 'weird' is not supported");
    check_refused("{% include 'a' %}", AEGIS_E_MODEL, "the tag 'include' is not supported");
    check_refused("{% do x %}", AEGIS_E_MODEL, "the tag 'do' is not supported");
    check_refused("{% for x in y recursive %}{% endfor %}", AEGIS_E_MODEL, "recursive loops are not supported");
    check_refused("{{ f(*a) }}", AEGIS_E_MODEL, "unpacking arguments with '*' is not supported");
    check_refused("{% frobnicate %}", AEGIS_E_MODEL, "unexpected tag 'frobnicate'");
}

static void a_failing_render_says_the_line_and_what_was_wrong(void **state)
{
    (void)state;
    check_refused("\n{{ messages }}\n{{ x.y }}", AEGIS_E_USAGE, "chat template line 3: 'x' is undefined");
    check_refused("{{ {}.a.b }}", AEGIS_E_USAGE, "'dict object' has no attribute 'a'");
    check_refused("{{ 1 + 'a' }}", AEGIS_E_USAGE, "unsupported operand types for +: 'int' and 'str'");
    check_refused("{{ none | length }}", AEGIS_E_USAGE, "object of type 'NoneType' has no length");
    check_refused("{{ 'a'.split(1) }}", AEGIS_E_USAGE, "split() got a 'int', expected a string");
    check_refused("{{ 9223372036854775807 + 1 }}", AEGIS_E_USAGE, "does not fit 64 bits");
    check_refused("{{ 'a'.upper(3) }}", AEGIS_E_USAGE, "upper() takes at most 0 arguments, found 1");
}

static void raise_exception_gives_the_templates_own_words(void **state)
{
    (void)state;
    (void)text_of("\n\n{{ raise_exception('Only one system message, please: ' ~ 2) }}");
    assert_int_equal(err.status, AEGIS_E_USAGE);
    assert_string_equal(err.message, "Only one system message, please: 2");
}

static void lists_may_grow_although_hugging_faces_sandbox_forbids_it(void **state)
{
    (void)state;
    check_text("{% set l = [1] %}{% set _ = l.append(2) %}{% set _ = l.insert(0, 'a') %}{% set _ = l.extend([3]) %}{{ l }}",
               "['a', 1, 2, 3]");
    check_text("{% set l = [1, 2, 3] %}{{ l.pop() }}{{ l.pop(0) }}{{ l }}", "31[2]");
    check_text("{% set d = {} %}{% set _ = d.update({'a': 1}, b=2) %}{{ d.pop('a') }}{{ d }}", "1{'b': 2}");
    check_text("{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}{{ l }}", "[1, 1]");
}

static void limit(const char *template, aeg_jinja_limits limits, aegis_status status, const char *message)
{
    char *out;
    size_t n;
    json_t *none = json_object();
    T_FAILS(render(template, strlen(template), none, &limits, &out, &n), &err, status, message);
    json_decref(none);
    assert_null(out);
    assert_int_equal(memory.in_use, 0);
}

static void every_limit_ends_a_render_with_its_name(void **state)
{
    (void)state;
    static const char endless[] = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    static const char recursion[] = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
    static const char doubling[] = "{% set n = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set n.s = n.s * 2 %}{% endfor %}";
    const aeg_jinja_limits base = aeg_jinja_default_limits();
    aeg_jinja_limits l = base;
    l.max_steps = 100000;
    limit(endless, l, AEGIS_E_RUNTIME, "more than 100000 steps");
    limit(recursion, base, AEGIS_E_RUNTIME, "nested deeper than 256 levels");
    limit("{% set n = namespace(l=[]) %}{% for i in range(999) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l }}", base,
          AEGIS_E_RUNTIME, "nested deeper than");
    limit("{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}", base, AEGIS_E_RUNTIME, "nested deeper than");
    l = base;
    l.max_output_bytes = 1000;
    limit("{% for i in range(500) %}abc{% endfor %}", l, AEGIS_E_RUNTIME, "longer than 1000 bytes");
    l = base;
    l.max_memory = 1 << 20;
    limit(doubling, l, AEGIS_E_MEMORY, "limit of 1048576 bytes");
    limit("{{ 'a' * 9223372036854775807 }}", base, AEGIS_E_MEMORY, "memory");
    limit("{{ [1, 2] * 9223372036854775807 }}", base, AEGIS_E_MEMORY, "memory");
}

/* Written by the parser's own recursion: each must be an error, not a crash. */
static void deep_templates_are_refused(void **state)
{
    (void)state;
    static const char *const pieces[] = { "(", "[", "{1:", "not ", "-", "f(", "a[", "{% if x %}", "1 if 1 else ", "x|d(" };
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        enum { DEPTH = 5000 };
        const size_t k = strlen(pieces[i]);
        char *text = malloc(k * DEPTH + 16), *out;
        size_t at = 0, n_out;
        json_t *none = json_object();
        if (pieces[i][0] != '{' || pieces[i][1] != '%')
            at = (size_t)sprintf(text, "{{ ");
        for (int d = 0; d < DEPTH; d++, at += k)
            memcpy(text + at, pieces[i], k);
        T_CHECK(render(text, at, none, NULL, &out, &n_out) != AEGIS_OK && err.message[0] != '\0');
        json_decref(none);
        free(text);
        assert_int_equal(memory.in_use, 0);
    }
}

/* A chain is not nesting: its length must not count against the depth. */
static void long_chains_are_not_deep(void **state)
{
    (void)state;
    static const char *const links[] = { " + 'a'", " ~ 'a'", " or none", " and 'a'" };
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        enum { LENGTH = 3000 };
        const size_t k = strlen(links[i]);
        char *text = malloc(k * LENGTH + 32);
        size_t at = (size_t)sprintf(text, "{{ ('a'");
        for (int d = 0; d < LENGTH; d++, at += k)
            memcpy(text + at, links[i], k);
        strcpy(text + at, ")[0] }}");
        check_text(text, "a");
        free(text);
    }
}

/* Adding to a string again and again costs its length, not its square. */
static void growing_a_text_piece_by_piece_needs_little_memory(void **state)
{
    (void)state;
    static const char template[] =
        "{% set n = namespace(s='') %}{% for i in range(20000) %}{% set n.s = n.s + '0123456789' %}{% endfor %}{{ n.s | length }}";
    aeg_jinja_limits l = aeg_jinja_default_limits();
    char *out;
    size_t n;
    json_t *none = json_object();
    l.max_memory = 8 << 20;
    T_OK(render(template, sizeof template - 1, none, &l, &out, &n), &err);
    assert_string_equal(out, "200000");
    aeg_free(&memory, out);
    json_decref(none);
}

static int fail_at(void *ctx, size_t n)
{
    (void)n;
    uint64_t *left = ctx;
    return *left == 0 || --*left == 0;
}

static void any_failed_allocation_is_an_error_without_a_leak(void **state)
{
    (void)state;
    static const char template[] =
        "{% macro m(a) %}{{ a | upper }}{% endmacro %}{% for x in range(300) %}{{ m('xyz' * 40) }}{{ {'a': [x]} | tojson }}{% endfor %}";
    json_t *none = json_object();
    uint64_t n_refused = 0;
    for (uint64_t nth = 1;; nth++) {
        uint64_t left = nth;
        char *out;
        size_t n;
        aeg_memory_set_fault(fail_at, &left);
        const aegis_status status = render(template, sizeof template - 1, none, NULL, &out, &n);
        aeg_memory_set_fault(NULL, NULL);
        aeg_free(&memory, out);
        assert_int_equal(memory.in_use, 0);
        if (status == AEGIS_OK)
            break;
        assert_int_equal(status, AEGIS_E_MEMORY);
        n_refused++;
    }
    json_decref(none);
    T_CHECK(n_refused > 10);
}

static int start(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1); /* strftime_now shows local time */
    aeg_json_init();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renders_what_pythons_jinja2_renders),
        cmocka_unit_test(a_wrong_template_is_refused_with_line_and_expectation),
        cmocka_unit_test(what_we_do_not_support_is_refused_by_name),
        cmocka_unit_test(a_failing_render_says_the_line_and_what_was_wrong),
        cmocka_unit_test(raise_exception_gives_the_templates_own_words),
        cmocka_unit_test(lists_may_grow_although_hugging_faces_sandbox_forbids_it),
        cmocka_unit_test(every_limit_ends_a_render_with_its_name),
        cmocka_unit_test(deep_templates_are_refused),
        cmocka_unit_test(long_chains_are_not_deep),
        cmocka_unit_test(growing_a_text_piece_by_piece_needs_little_memory),
        cmocka_unit_test(any_failed_allocation_is_an_error_without_a_leak),
    };
    return cmocka_run_group_tests_name("jinja", tests, start, NULL);
}
