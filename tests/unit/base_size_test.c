/* SPDX-License-Identifier: Apache-2.0 */
#include "support/t.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/size.h"

static const uint64_t KIB = 1024, MIB = 1 << 20, GIB = 1 << 30;

static void every_unit_and_spelling(void **state)
{
    (void)state;
    const struct { const char *text; uint64_t bytes; } good[] = {
        { "1", 1 }, { "1048576", MIB }, { "7B", 7 }, { "300KiB", 300 * KIB }, { "24MiB", 24 * MIB },
        { "512 MiB", 512 * MIB }, { "4GiB", 4 * GIB }, { "2TiB", 2048 * GIB }, { "1KB", 1000 },
        { "3MB", 3000000 }, { "1.5GB", 1500000000 }, { "2TB", 2000000000000 }, { "4G", 4 * GIB },
        { "8m", 8 * MIB }, { "16k", 16 * KIB }, { "4gib", 4 * GIB }, { "1.5GiB", 3 * GIB / 2 },
        { ".5MiB", MIB / 2 }, { "2.MiB", 2 * MIB }, { "0.001KB", 1 }, { "50%", 500 }, { "100%", 1000 },
        { "12.5 %", 125 },
    };
    for (size_t i = 0; i < AEG_ARRAY_LEN(good); i++) {
        uint64_t bytes = 0;
        aegis_error err;
        T_OK(aeg_size_parse(&bytes, good[i].text, 1000, &err), &err);
        if (bytes != good[i].bytes)
            fail_msg("'%s' gave %llu", good[i].text, (unsigned long long)bytes);
    }
}

static void anything_else_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", " ", "GiB", "-1GiB", "+1", "1GiBs", "1 GiB x", "1..5GiB", "1.5.GiB", ".", "0", "0GiB", "0.4", "1e9",
        "0x10", "inf", "nan", "101%", "0%", "-5%", "4 G i B", "\xc3\xa9", "9999999999999TiB", "1,5GiB",
        "111111111111111111111", "%", "50%%",
    };
    for (size_t i = 0; i < AEG_ARRAY_LEN(bad); i++) {
        uint64_t bytes = 42;
        aegis_error err;
        char quoted[64];
        snprintf(quoted, sizeof quoted, "'%s'", bad[i]);
        T_FAILS(aeg_size_parse(&bytes, bad[i], 1000, &err), &err, AEGIS_E_USAGE, quoted);
        assert_int_equal(bytes, 42); /* a failing call leaves its result alone */
    }
    uint64_t bytes = 0;
    aegis_error err;
    T_FAILS(aeg_size_parse(&bytes, "50%", 0, &err), &err, AEGIS_E_USAGE, "'50%'");
}

static void a_very_long_text_does_not_hurt(void **state)
{
    (void)state;
    char text[100000];
    uint64_t bytes;
    aegis_error err;
    memset(text, '9', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    T_FAILS(aeg_size_parse(&bytes, text, 0, &err), &err, AEGIS_E_USAGE, "is not a size");
}

static void sizes_are_shown_in_three_digits(void **state)
{
    (void)state;
    const struct { uint64_t bytes; const char *text; } cases[] = {
        { 0, "0 B" }, { 1023, "1023 B" }, { 1024, "1.00 KiB" }, { 1855979, "1.77 MiB" }, { 24 * MIB, "24.0 MiB" },
        { 512 * MIB, "512 MiB" }, { 4 * GIB, "4.00 GiB" }, { UINT64_MAX, "16777216 TiB" },
    };
    for (size_t i = 0; i < AEG_ARRAY_LEN(cases); i++) {
        char out[AEG_SIZE_TEXT];
        assert_ptr_equal(aeg_size_format(out, cases[i].bytes), out);
        assert_string_equal(out, cases[i].text);
    }
}

T_PROPERTY(whole_units_come_back_exactly, 2000)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
    const uint64_t n = t_between(1, 4000), unit = t_below(4);
    uint64_t bytes = 0;
    aegis_error err;
    char text[64];
    snprintf(text, sizeof text, "%llu%s%s", (unsigned long long)n, t_below(2) ? " " : "", units[unit]);
    T_OK(aeg_size_parse(&bytes, text, 0, &err), &err);
    assert_true(bytes == n << (10 * unit));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_and_spelling),
        cmocka_unit_test(anything_else_is_refused_by_name),
        cmocka_unit_test(a_very_long_text_does_not_hurt),
        cmocka_unit_test(sizes_are_shown_in_three_digits),
        cmocka_unit_test(whole_units_come_back_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
