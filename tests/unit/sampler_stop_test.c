/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/stop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    char text[4096];
    size_t n;
    int result;
} sink;

static int collect(void *ctx, const char *bytes, size_t n)
{
    sink *s = ctx;
    assert_true(n > 0 && s->n + n < sizeof s->text);
    memcpy(s->text + s->n, bytes, n);
    s->n += n;
    s->text[s->n] = '\0';
    return s->result;
}

static void start(aeg_stopper *s, const char *a, const char *b)
{
    const char *stops[2] = { a, b };
    assert_int_equal(aeg_stopper_init(s, stops, a == NULL ? 0 : b == NULL ? 1 : 2, NULL), AEGIS_OK);
}

static void text_without_stops_passes_at_once(void **state)
{
    (void)state;
    aeg_stopper s;
    sink out = { .n = 0 };
    start(&s, NULL, NULL);
    assert_int_equal(aeg_stopper_push(&s, "h\xC3\xA4llo", 6, collect, &out), 0);
    assert_string_equal(out.text, "h\xC3\xA4llo");
}

static void only_what_may_begin_a_stop_is_held(void **state)
{
    (void)state;
    aeg_stopper s;
    sink out = { .n = 0 };
    start(&s, "</end>", "\n\n");
    assert_int_equal(aeg_stopper_push(&s, "one\n", 4, collect, &out), 0);
    assert_string_equal(out.text, "one");
    assert_int_equal(aeg_stopper_push(&s, "two</e", 6, collect, &out), 0);
    assert_string_equal(out.text, "one\ntwo");
    assert_int_equal(aeg_stopper_push(&s, "x", 1, collect, &out), 0);
    assert_string_equal(out.text, "one\ntwo</ex");
    assert_int_equal(aeg_stopper_push(&s, "<</end> more", 12, collect, &out), 1);
    assert_true(s.stopped);
    assert_string_equal(out.text, "one\ntwo</ex<");
    assert_int_equal(aeg_stopper_push(&s, "more", 4, collect, &out), 0);
    assert_int_equal(aeg_stopper_finish(&s, collect, &out), 0);
    assert_string_equal(out.text, "one\ntwo</ex<");
}

/* "aab" after "aaab": a matcher that forgets the overlap misses it. */
static void overlapping_beginnings_are_found(void **state)
{
    (void)state;
    aeg_stopper s;
    sink out = { .n = 0 };
    start(&s, "aab", NULL);
    assert_int_equal(aeg_stopper_push(&s, "xaaab", 5, collect, &out), 1);
    assert_string_equal(out.text, "xa");
}

static void held_text_comes_out_at_the_end(void **state)
{
    (void)state;
    aeg_stopper s;
    sink out = { .n = 0 };
    start(&s, "STOP", NULL);
    assert_int_equal(aeg_stopper_push(&s, "ST", 2, collect, &out), 0);
    assert_int_equal(out.n, 0);
    assert_int_equal(aeg_stopper_finish(&s, collect, &out), 0);
    assert_string_equal(out.text, "ST");
}

static void characters_are_never_split(void **state)
{
    (void)state;
    static const char text[] = "a\xF0\x9F\x98\x80z\xE2\x82\xAC";
    for (int with_stop = 0; with_stop < 2; with_stop++) {
        aeg_stopper s;
        sink out = { .n = 0 };
        start(&s, with_stop ? "\xF0\x9F\x98\x81" : NULL, NULL); /* differs in its last byte only */
        for (size_t i = 0; i < sizeof text - 1; i++) {
            assert_int_equal(aeg_stopper_push(&s, text + i, 1, collect, &out), 0);
            assert_true(out.n == 0 || out.n == 1 || out.n == 5 || out.n == 6 || out.n == 9);
        }
        assert_int_equal(aeg_stopper_finish(&s, collect, &out), 0);
        assert_string_equal(out.text, text);
    }
}

static void broken_bytes_become_replacement_characters(void **state)
{
    (void)state;
    aeg_stopper s;
    sink out = { .n = 0 };
    start(&s, NULL, NULL);
    /* a stray continuation, an overlong form, a surrogate, a character cut by another one, one cut by the end */
    static const char text[] = "\x80" "a\xC0\xAF" "\xED\xA0\x80" "\xE2\x82" "b\xF0\x9F";
    assert_int_equal(aeg_stopper_push(&s, text, sizeof text - 1, collect, &out), 0);
    assert_int_equal(aeg_stopper_finish(&s, collect, &out), 0);
    assert_string_equal(out.text, "\xEF\xBF\xBD" "a\xEF\xBF\xBD\xEF\xBF\xBD"
                                  "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" "\xEF\xBF\xBD" "b\xEF\xBF\xBD");
}

/* Any cutting into pieces gives the text before the first stop, on small random texts over "ab". */
static void every_cutting_gives_the_same_text(void **state)
{
    (void)state;
    srand(3);
    for (int round = 0; round < 3000; round++) {
        char text[24], a[5], b[5];
        const size_t n = 1 + (size_t)(rand() % 20);
        for (size_t i = 0; i < n; i++)
            text[i] = (char)('a' + rand() % 2);
        text[n] = '\0';
        const size_t na = 1 + (size_t)(rand() % 4), nb = 1 + (size_t)(rand() % 4);
        for (size_t i = 0; i < 4; i++) {
            a[i] = (char)('a' + rand() % 2);
            b[i] = (char)('a' + rand() % 2);
        }
        a[na] = b[nb] = '\0';
        size_t end = n; /* the stop that is complete first; of two that end together the longer one cuts */
        for (size_t e = 1; e <= n && end == n; e++) {
            if (e >= na && memcmp(text + e - na, a, na) == 0)
                end = e - na;
            if (e >= nb && memcmp(text + e - nb, b, nb) == 0 && (end == n || e - nb < end))
                end = e - nb;
        }
        aeg_stopper s;
        sink out = { .n = 0 };
        start(&s, a, b);
        for (size_t i = 0; i < n;) {
            const size_t piece = 1 + (size_t)rand() % (n - i);
            aeg_stopper_push(&s, text + i, piece, collect, &out);
            i += piece;
        }
        aeg_stopper_finish(&s, collect, &out);
        assert_int_equal(out.n, end);
        assert_memory_equal(out.text, text, end);
    }
}

static void the_sink_can_stop_the_stream(void **state)
{
    (void)state;
    aeg_stopper s;
    sink out = { .result = 42 };
    start(&s, "zzz", NULL);
    assert_int_equal(aeg_stopper_push(&s, "abc", 3, collect, &out), 42);
    assert_string_equal(out.text, "a");
}

static void bad_stop_strings_are_refused(void **state)
{
    (void)state;
    aeg_stopper s;
    char longer[AEG_STOP_MAX_BYTES + 2];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    const char *const bad[] = { "", longer, "\xFF" };
    for (int i = 0; i < 3; i++)
        assert_int_equal(aeg_stopper_init(&s, &bad[i], 1, NULL), AEGIS_E_USAGE);
    const char *many[AEGIS_MAX_STOPS + 1];
    for (int i = 0; i <= AEGIS_MAX_STOPS; i++)
        many[i] = "x";
    assert_int_equal(aeg_stopper_init(&s, many, AEGIS_MAX_STOPS + 1, NULL), AEGIS_E_USAGE);
    longer[AEG_STOP_MAX_BYTES] = '\0';
    const char *longest = longer;
    sink out = { .n = 0 };
    assert_int_equal(aeg_stopper_init(&s, &longest, 1, NULL), AEGIS_OK);
    for (int i = 0; i < 3; i++)
        aeg_stopper_push(&s, longer, AEG_STOP_MAX_BYTES - 1, collect, &out);
    assert_true(s.stopped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_without_stops_passes_at_once),
        cmocka_unit_test(only_what_may_begin_a_stop_is_held),
        cmocka_unit_test(overlapping_beginnings_are_found),
        cmocka_unit_test(held_text_comes_out_at_the_end),
        cmocka_unit_test(characters_are_never_split),
        cmocka_unit_test(broken_bytes_become_replacement_characters),
        cmocka_unit_test(every_cutting_gives_the_same_text),
        cmocka_unit_test(the_sink_can_stop_the_stream),
        cmocka_unit_test(bad_stop_strings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
