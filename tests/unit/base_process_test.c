/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, log and what the system says about memory. */
#include "support/t.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/process.h"
#include "base/utf8.h"

static void the_peak_follows_what_is_touched(void **state)
{
    (void)state;
    if (T_SANITIZED)
        skip();
    enum { MIB = 1 << 20 };
    aeg_process_memory before, after, later;
    assert_true(aeg_process_memory_now(&before));
    assert_true(before.rss_bytes > 100 << 10 && before.peak_bytes >= before.rss_bytes);
    assert_true(before.page_table_bytes > 0);
    aeg_arena arena = t_arena(48 * MIB);
    memset(arena.base, 1, arena.size);
    assert_true(aeg_process_memory_now(&after));
    assert_in_range(after.rss_bytes - before.rss_bytes, 46 * MIB, 52 * MIB);
    aeg_arena_unmap(&arena);
    assert_true(aeg_process_memory_now(&later));
    assert_true(later.rss_bytes < after.rss_bytes - 40 * MIB);
    assert_true(later.peak_bytes >= after.rss_bytes - MIB);
}

static void the_machine_has_memory(void **state)
{
    (void)state;
    aeg_machine_memory m;
    assert_true(aeg_machine_memory_now(&m));
    assert_true(m.total_bytes > 64 << 20);
    assert_true(m.available_bytes > 0 && m.available_bytes <= m.total_bytes);
}

static aegis_status inner(aegis_error *err)
{
    return aeg_fail_os(err, AEGIS_E_IO, ENOENT, "experts.bin");
}

static aegis_status outer(aegis_error *err)
{
    const aegis_status status = inner(err);
    return status == AEGIS_OK ? status : aeg_wrap(err, status, "open %s", "store");
}

static void an_error_reads_from_general_to_particular(void **state)
{
    (void)state;
    aegis_error err;
    T_FAILS(outer(&err), &err, AEGIS_E_IO, "open store: experts.bin: No such file or directory");
    assert_int_equal(err.os_code, ENOENT);
    assert_int_equal(outer(NULL), AEGIS_E_IO);
}

static void a_long_error_is_cut_not_overrun(void **state)
{
    (void)state;
    struct {
        aegis_error err;
        char guard[16];
    } box;
    memset(&box, 'G', sizeof box);
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    aeg_fail(&box.err, AEGIS_E_MODEL, "%s", text);
    assert_int_equal(strlen(box.err.message), AEGIS_ERROR_MAX - 1);
    aeg_fail_os(&box.err, AEGIS_E_MODEL, EIO, "%s", text);
    aeg_wrap(&box.err, AEGIS_E_MODEL, "%s", text);
    assert_int_equal(strlen(box.err.message), AEGIS_ERROR_MAX - 1);
    for (size_t i = 0; i < sizeof box.guard; i++)
        assert_int_equal(box.guard[i], 'G');
}

/* Names and strings of a file are quoted in messages: they must not steer the terminal nor look like lines of ours. */
static void an_error_shows_what_a_file_says_as_text(void **state)
{
    (void)state;
    const struct { const char *in, *out; } cases[] = {
        { "naïve 日本 🙂", "naïve 日本 🙂" },
        { "\x1b[31mred\x07", "\\x1b[31mred\\x07" },
        { "two\nlines\tand\r\x7f", "two\\x0alines\\x09and\\x0d\\x7f" },
        { "\xc2\x9b" "31m", "\\xc2\\x9b31m" },               /* C1: CSI in one character */
        { "\x9b\xff half \xe6\x97", "\\x9b\\xff half \\xe6\\x97" }, /* no UTF-8 */
        { "\\x1b", "\\x1b" },
    };
    for (size_t i = 0; i < AEG_ARRAY_LEN(cases); i++) {
        aegis_error err;
        char text[AEGIS_ERROR_MAX], want[AEGIS_ERROR_MAX];
        aeg_fail(&err, AEGIS_E_MODEL, "%s", cases[i].in);
        assert_string_equal(err.message, cases[i].out);
        aeg_wrap(&err, AEGIS_E_MODEL, "%s", cases[i].in);
        snprintf(want, sizeof want, "%s: %s", cases[i].out, cases[i].out);
        assert_string_equal(err.message, want);
        aeg_utf8_show(text, sizeof text, want);
        assert_string_equal(text, want);
    }
    char small[6];
    assert_int_equal(aeg_utf8_show(small, sizeof small, "a\xff\xff"), 5);
    assert_string_equal(small, "a\\xff"); /* no half of an escape, */
    assert_int_equal(aeg_utf8_show(small, sizeof small, "abc日本"), 3);
    assert_string_equal(small, "abc"); /* nor of a character */
}

static void each_status_has_its_exit_code(void **state)
{
    (void)state;
    const struct { aegis_status status; int code; } table[] = {
        { AEGIS_OK, 0 }, { AEGIS_E_RUNTIME, 1 }, { AEGIS_E_USAGE, 2 }, { AEGIS_E_BUDGET, 3 }, { AEGIS_E_MODEL, 4 },
        { AEGIS_E_IO, 5 }, { AEGIS_E_HARDWARE, 6 }, { AEGIS_E_SERVER, 7 }, { AEGIS_E_MEMORY, 1 },
        { AEGIS_E_CANCELLED, 130 },
    };
    for (size_t i = 0; i < AEG_ARRAY_LEN(table); i++)
        assert_int_equal(aegis_exit_code(table[i].status), table[i].code);
}

static char last_line[2048];

static void keep_line(void *ctx, aeg_log_level level, const char *line)
{
    (void)level;
    (*(int *)ctx)++;
    strncpy(last_line, line, sizeof last_line - 1);
}

static void the_log_goes_where_the_program_says(void **state)
{
    (void)state;
    int n = 0;
    aeg_log(AEG_LOG_NOTICE, "nobody listens");
    aeg_log_set_sink(keep_line, &n);
    aeg_log(AEG_LOG_NOTICE, "reads are %s", "buffered");
    assert_int_equal(n, 1);
    assert_string_equal(last_line, "reads are buffered");
    aeg_log_set_sink(NULL, NULL);
    aeg_log(AEG_LOG_NOTICE, "nobody again");
    assert_int_equal(n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peak_follows_what_is_touched),
        cmocka_unit_test(the_machine_has_memory),
        cmocka_unit_test(an_error_reads_from_general_to_particular),
        cmocka_unit_test(a_long_error_is_cut_not_overrun),
        cmocka_unit_test(an_error_shows_what_a_file_says_as_text),
        cmocka_unit_test(each_status_has_its_exit_code),
        cmocka_unit_test(the_log_goes_where_the_program_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
