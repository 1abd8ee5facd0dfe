/* SPDX-License-Identifier: Apache-2.0 */
/* Processors and cores, from texts and folders as /sys has them. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/processors.h"
#include "base/threads.h"
#include "support/t.h"

static bool in(const aeg_processor_set *s, uint32_t i) { return (s->bits[i / 64] >> (i % 64) & 1) != 0; }

static void lists_are_read_as_sys_writes_them(void **state)
{
    (void)state;
    aeg_processor_set s;
    T_CHECK(aeg_processor_list("0\n", &s) && aeg_processor_count(&s) == 1 && in(&s, 0));
    T_CHECK(aeg_processor_list("0,64\n", &s) && aeg_processor_count(&s) == 2 && in(&s, 0) && in(&s, 64));
    T_CHECK(aeg_processor_list("0-3,8,10-11", &s) && aeg_processor_count(&s) == 7);
    T_CHECK(in(&s, 3) && !in(&s, 4) && in(&s, 8) && !in(&s, 9) && in(&s, 10) && in(&s, 11));
    T_CHECK(aeg_processor_list("8191\n", &s) && in(&s, 8191) && aeg_processor_count(&s) == 1);
}

static void other_texts_are_no_lists(void **state)
{
    (void)state;
    static const char *const bad[] = { "", "\n", "a", "-1", "+1", " 1", "1,", ",1", "1-", "3-2", "1 2", "1;2", "0-3\n\n",
                                       "8192", "0-8192", "99999999999999999999" };
    aeg_processor_set s;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (aeg_processor_list(bad[i], &s))
            fail_msg("'%s' was read as a list", bad[i]);
}

/* folder/cpuN/topology/thread_siblings_list */
static void write_siblings(const char *folder, uint32_t processor, const char *text)
{
    char name[64];
    snprintf(name, sizeof name, "cpu%u/topology", processor);
    T_CHECK(aeg_make_dirs(t_path(folder, name), NULL) == AEGIS_OK);
    snprintf(name, sizeof name, "cpu%u/topology/thread_siblings_list", processor);
    t_write_file(t_path(folder, name), text, strlen(text));
}

static uint32_t cores(const char *folder, const char *usable)
{
    aeg_processor_set s;
    T_CHECK(aeg_processor_list(usable, &s));
    return aeg_core_count(folder, &s);
}

static void siblings_share_a_core(void **state)
{
    (void)state;
    const char *folder = t_folder(); /* four cores: 0 and 4, 1 and 5, 2 and 6, 3 and 7 */
    for (uint32_t i = 0; i < 8; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u,%u\n", i % 4, i % 4 + 4);
        write_siblings(folder, i, text);
    }
    T_CHECK(cores(folder, "0-7") == 4);
    T_CHECK(cores(folder, "0-3") == 4);
    T_CHECK(cores(folder, "0,4") == 1);
    T_CHECK(cores(folder, "4-7") == 4); /* the lower siblings are not ours */
    T_CHECK(cores(folder, "1,4-5") == 2);
}

static void what_cannot_be_told_is_a_core(void **state)
{
    (void)state;
    const char *folder = t_folder();
    write_siblings(folder, 0, "0-1\n");
    write_siblings(folder, 1, "0-1\n");
    write_siblings(folder, 2, "no list");
    write_siblings(folder, 3, "0-1\n"); /* does not name itself */
    T_CHECK(cores(folder, "0-4") == 4); /* nothing is said of 4 */
    T_CHECK(cores("/nowhere", "0-7") == 8);
}

static void this_process_has_processors(void **state)
{
    (void)state;
    T_CHECK(aeg_usable_processors() >= 1 && aeg_usable_processors() <= AEG_MAX_THREADS);
    T_CHECK(aeg_usable_cores() >= 1 && aeg_usable_cores() <= aeg_usable_processors());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read_as_sys_writes_them), cmocka_unit_test(other_texts_are_no_lists),
        cmocka_unit_test(siblings_share_a_core),             cmocka_unit_test(what_cannot_be_told_is_a_core),
        cmocka_unit_test(this_process_has_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
