/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "suggest.h"
#include "support/t.h"
#include "think.h"

#define PARSE(cli, err, ...)                                                                    \
    parse((cli), (err), (const char *const[]){ "aegis", __VA_ARGS__, NULL })

static aegis_status parse(aeg_cli *cli, aegis_error *err, const char *const *words)
{
    int n = 0;
    while (words[n] != NULL)
        n++;
    err->message[0] = '\0';
    return aeg_options_parse(cli, n, (char *const *)words, err);
}

static void words_become_a_struct(void **state)
{
    (void)state;
    aeg_cli cli;
    aegis_error err;
    T_OK(PARSE(&cli, &err, "run", "m", "-p", "hi", "--memory", "1.5GiB", "--top-k=7", "-n", "-1", "--temp", "0",
               "--logit-bias", "5=-inf", "--logit-bias", "6=2.5", "--stop", "a", "--stop=b", "--no-think"), &err);
    assert_int_equal(cli.command, AEG_CMD_RUN);
    assert_string_equal(cli.model, "m");
    assert_string_equal(cli.prompt, "hi");
    assert_int_equal(cli.memory, 1536ull << 20);
    assert_int_equal(cli.top_k, 7);
    assert_int_equal(cli.n_predict, 0);
    assert_true(cli.temperature == 0 && isnan(cli.top_p));
    assert_int_equal(cli.n_bias, 2);
    assert_true(cli.bias[0].id == 5 && cli.bias[0].bias == -INFINITY && cli.bias[1].bias == 2.5f);
    assert_int_equal(cli.n_stops, 2);
    assert_string_equal(cli.stops[1], "b");
    assert_int_equal(cli.think, 0);
}

static void the_command_may_be_left_out(void **state)
{
    (void)state;
    aeg_cli cli;
    aegis_error err;
    T_OK(PARSE(&cli, &err, "-m", "x", "-p", "-"), &err);
    assert_int_equal(cli.command, AEG_CMD_RUN);
    assert_string_equal(cli.model, "x");
    assert_string_equal(cli.prompt, "-");
    T_OK(PARSE(&cli, &err, "run", "--", "-m"), &err);
    assert_string_equal(cli.model, "-m");
    T_OK(PARSE(&cli, &err, "--version"), &err);
    assert_int_equal(cli.command, AEG_CMD_VERSION);
}

static void seeds_have_64_bits(void **state)
{
    (void)state;
    aeg_cli cli;
    aegis_error err;
    T_OK(PARSE(&cli, &err, "run", "m", "-s", "9007199254740993"), &err); /* not a double */
    assert_true(cli.seed_given && cli.seed == 9007199254740993);
    T_OK(PARSE(&cli, &err, "run", "m", "-s", "18446744073709551615"), &err);
    assert_true(cli.seed_given && cli.seed == -1);
    T_OK(PARSE(&cli, &err, "run", "m", "-s", "-9223372036854775808"), &err);
    assert_true(cli.seed == INT64_MIN);
    T_OK(PARSE(&cli, &err, "run", "m", "--seed", "-1"), &err);
    assert_false(cli.seed_given);
    T_FAILS(PARSE(&cli, &err, "run", "m", "-s", "18446744073709551616"), &err, AEGIS_E_USAGE, "18446744073709551616");
    T_FAILS(PARSE(&cli, &err, "run", "m", "-s", "1.5"), &err, AEGIS_E_USAGE, "1.5");
}

static void wrong_words_are_named(void **state)
{
    (void)state;
    aeg_cli cli;
    aegis_error err;
    const struct { const char *words[6]; const char *says; } bad[] = {
        { { "aegis", "run", "m", "--tempp", "1" }, "did you mean --temp?" },
        { { "aegis", "run", "m", "--memroy", "1" }, "did you mean --memory?" },
        { { "aegis", "run", "m", "--zzzzzzzz" }, "unknown option '--zzzzzzzz'" },
        { { "aegis", "run", "m", "--ref", "f" }, "belongs to eval" },
        { { "aegis", "run", "m", "--top-p", "1.5" }, "--top-p: '1.5'" },
        { { "aegis", "run", "m", "--top-p", "0x1" }, "--top-p: '0x1'" },
        { { "aegis", "run", "m", "--top-p" }, "needs a value" },
        { { "aegis", "run", "m", "--raw=1" }, "takes no value" },
        { { "aegis", "run", "m", "--memory", "4 potatoes" }, "4 potatoes" },
        { { "aegis", "run", "m", "-c", "-5" }, "-c: '-5'" },
        { { "aegis", "run", "m", "-c", "-1" }, "-c: '-1'" },
        { { "aegis", "run", "m", "-t", "-1" }, "-t: '-1'" },
        { { "aegis", "run", "m", "--chunk", "-1" }, "--chunk: '-1'" },
        { { "aegis", "run", "m", "--chunk", "4097" }, "from 0 to 4096" },
        { { "aegis", "run", "m", "--checkpoints", "65" }, "from 0 to 64" },
        { { "aegis", "eval", "m", "--skip", "-1" }, "--skip: '-1'" },
        { { "aegis", "run", "m", "-n", "-2" }, "-n: '-2'" },
        { { "aegis", "run", "m", "--sim-disk", "50%" }, "a rate such as 7GB/s" },
        { { "aegis", "run", "m", "--io", "magic" }, "auto|uring|pread|null|sim" },
        { { "aegis", "run", "m", "--kv-type", "q8_0" }, "not in this version: --kv-type q8_0" },
        { { "aegis", "run", "m", "--image", "f" }, "not in this version: --image" },
        { { "aegis", "run", "m", "--logit-bias", "x" }, "ID=BIAS" },
        { { "aegis", "run", "m", "extra" }, "unexpected argument 'extra'" },
        { { "aegis", "run", "-m", "a", "b" }, "two models" },
        { { "aegis", "run" }, "usage: aegis run" },
        { { "aegis", "pack", "src" }, "usage: aegis pack" },
        { { "aegis", "pack", "a", "b", "--expert-bits", "7" }, "--expert-bits: '7'" },
        { { "aegis", "serve" }, "not in this version: aegis serve" },
        { { "aegis", "chta", "m" }, "did you mean chat?" },
        { { "aegis" }, "no command" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        T_FAILS(parse(&cli, &err, bad[i].words), &err, AEGIS_E_USAGE, bad[i].says);
    T_FAILS(PARSE(&cli, &err, "run", "m", "--device", "cuda:1"), &err, AEGIS_E_HARDWARE, "not in this version");
    T_OK(PARSE(&cli, &err, "run", "m", "--device", "cpu"), &err);
}

static void habits_from_elsewhere_are_ignored_aloud(void **state)
{
    (void)state;
    aeg_cli cli;
    aegis_error err;
    T_OK(PARSE(&cli, &err, "-m", "x", "--mlock", "-ngl", "99", "-p", "hi"), &err);
    assert_int_equal(cli.n_ignored, 2);
    assert_string_equal(cli.ignored[0], "--mlock");
    assert_string_equal(cli.ignored[1], "-ngl");
    assert_string_equal(cli.prompt, "hi");
}

static void the_environment_comes_before_flags(void **state)
{
    (void)state;
    aeg_cli cli;
    aegis_error err;
    setenv("AEGIS_MEMORY", "64MiB", 1);
    setenv("AEGIS_CTX_SIZE", "100", 1);
    setenv("AEGIS_VERBOSE", "0", 1);
    T_OK(PARSE(&cli, &err, "run", "m", "-c", "200"), &err);
    assert_int_equal(cli.memory, 64 << 20);
    assert_int_equal(cli.n_ctx, 200);
    assert_false(cli.verbose);
    T_OK(PARSE(&cli, &err, "version"), &err); /* not an option of version, so not looked at */
    setenv("AEGIS_MEMORY", "lots", 1);
    T_FAILS(PARSE(&cli, &err, "run", "m"), &err, AEGIS_E_USAGE, "AEGIS_MEMORY");
    unsetenv("AEGIS_MEMORY");
    unsetenv("AEGIS_CTX_SIZE");
    unsetenv("AEGIS_VERBOSE");
}

/* Every name is unique, every offset lies inside the struct, every shown option has a command. */
static void the_table_is_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < aeg_n_options; i++) {
        const aeg_option *o = &aeg_option_table[i];
        const char *rest = o->names, *name;
        size_t n;
        assert_true(o->commands != 0 && o->offset < sizeof(aeg_cli));
        while ((name = aeg_option_name(&rest, &n)) != NULL) {
            assert_true(name[0] == '-' && n > 1 && n < AEG_OPTION_NAME_MAX);
            assert_ptr_equal(aeg_option_find(name, n, o->commands), o);
        }
    }
    for (int i = 0; i < AEG_N_COMMANDS; i++)
        assert_true(aeg_command_table[i].name != NULL && aeg_command_table[i].summary != NULL);
}

static void distances_count_edits(void **state)
{
    (void)state;
    assert_int_equal(aeg_suggest_distance("", 0, "abc", 3), 3);
    assert_int_equal(aeg_suggest_distance("temp", 4, "temp", 4), 0);
    assert_int_equal(aeg_suggest_distance("tmep", 4, "temp", 4), 1);
    assert_int_equal(aeg_suggest_distance("kitten", 6, "sitting", 7), 3);
}

static void id_lists_are_numbers_only(void **state)
{
    (void)state;
    const struct { const char *text; size_t n; } good[] = {
        { "1,2,3", 3 }, { "[1, 2,\n 3]\n", 3 }, { " 7 8\t9 ", 3 }, { "[]", 0 }, { "", 0 }, { "4294967295", 1 },
    };
    const char *const bad[] = { "1,x", "-1", "[1", "1.5", "4294967296", "[[1]]", "99999999999999999999999", "1]", "[1]2", "[1][2]",
                                "1[2" };
    aegis_error err;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        aeg_ids list = { 0 };
        T_OK(aeg_ids_parse(&list, good[i].text, strlen(good[i].text), "--ids", &err), &err);
        assert_int_equal(list.n, good[i].n);
        aeg_ids_free(&list);
    }
    aeg_ids few = { 0 };
    T_FAILS(aeg_ids_read(&few, "[1, 2, 3]", NULL, 2, &err), &err, AEGIS_E_USAGE, "more than 2 token ids");
    aeg_ids_free(&few);
    T_OK(aeg_ids_read(&few, "[1, 2, 3]", NULL, 3, &err), &err);
    assert_true(few.n == 3 && few.ids[2] == 3);
    aeg_ids_free(&few);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        aeg_ids list = { 0 };
        T_FAILS(aeg_ids_parse(&list, bad[i], strlen(bad[i]), "--ids", &err), &err, AEGIS_E_USAGE, "--ids");
        aeg_ids_free(&list);
    }
}

typedef struct { char thought[256], answer[256]; } split;

static int collect(void *ctx, bool thought, const char *bytes, size_t n)
{
    split *s = ctx;
    strncat(thought ? s->thought : s->answer, bytes, n);
    return 0;
}

static void thoughts_are_split_off_in_any_cutting(void **state)
{
    (void)state;
    const struct { bool open; const char *text, *thought, *answer; } cases[] = {
        { true, "hm\n</think>\n\nYes", "hm\n", "Yes" },
        { true, "a<b </thin </think>c", "a<b </thin ", "c" },
        { true, "</think>\n\n", "", "" },
        { true, "never ends </th", "never ends </th", "" },
        { false, "<think>x</think>y", "x", "y" },
        { false, "<think", "", "<think" },
        { false, "use <think> tags</think>", "", "use <think> tags</think>" },
        { false, "<<think>", "", "<<think>" },
        { true, "<</think>z", "<", "z" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t piece = 1; piece <= 8; piece++) {
            aeg_think t;
            split s = { "", "" };
            const size_t n = strlen(cases[i].text);
            aeg_think_init(&t, cases[i].open);
            for (size_t at = 0; at < n; at += piece)
                aeg_think_push(&t, cases[i].text + at, n - at < piece ? n - at : piece, collect, &s);
            aeg_think_finish(&t, collect, &s);
            assert_string_equal(s.thought, cases[i].thought);
            assert_string_equal(s.answer, cases[i].answer);
        }
    assert_true(aeg_think_is_open("x<think>\n", 9));
    assert_false(aeg_think_is_open("<think>\n\n</think>\n\n", 19));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_become_a_struct),
        cmocka_unit_test(the_command_may_be_left_out),
        cmocka_unit_test(seeds_have_64_bits),
        cmocka_unit_test(wrong_words_are_named),
        cmocka_unit_test(habits_from_elsewhere_are_ignored_aloud),
        cmocka_unit_test(the_environment_comes_before_flags),
        cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(distances_count_edits),
        cmocka_unit_test(id_lists_are_numbers_only),
        cmocka_unit_test(thoughts_are_split_off_in_any_cutting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
