/* SPDX-License-Identifier: Apache-2.0 */
/* expert/replay_trace: what is recorded is what is read, and a damaged file is named as such. */
#include "support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expert/replay_trace.h"

static const char *path;

/* A prefill of two tokens and one decode step; 2 layers, top 2. */
static void record(uint32_t n_experts)
{
    static const uint16_t prefill[2][2][2] = { { { 0, 5 }, { 1, 2 } }, { { 3, 4 }, { 6, 7 } } }, step[2][2] = { { 1, 7 }, { 0, 1 } };
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_trace_writer *w;
    uint64_t n = 0;
    const aeg_trace_shape shape = { 2, n_experts, 2, 0x1122334455667788 };
    T_OK(aeg_trace_create(&w, path, &shape, 2, &memory, &err), &err);
    aeg_trace_set_prefill(w, true);
    aeg_trace_start_text(w);
    for (uint32_t layer = 0; layer < 2; layer++)
        for (uint32_t token = 0; token < 2; token++)
            aeg_trace_add(w, layer, prefill[layer][token]);
    aeg_trace_set_prefill(w, false);
    aeg_trace_add(w, 0, prefill[0][0]); /* a step that failed after its first layer */
    aeg_trace_add(w, 1, step[1]);
    for (uint32_t layer = 0; layer < 2; layer++)
        aeg_trace_add(w, layer, step[layer]);
    T_OK(aeg_trace_finish(w, &n, &err), &err);
    T_CHECK(n == 4);
    t_no_leak(&memory);
}

static void what_was_recorded_comes_back(void **state)
{
    (void)state;
    for (uint32_t n_experts = 200; n_experts <= 300; n_experts += 100) { /* ids of one byte and of two */
        T_MEMORY(memory);
        aegis_error err = { 0 };
        aeg_trace t;
        record(n_experts);
        T_OK(aeg_trace_read(&t, path, &memory, &err), &err);
        static const uint16_t ids[] = { 0, 5, 3, 4, 1, 2, 6, 7, 0, 5, 0, 1, 1, 7, 0, 1 };
        T_CHECK(t.n_tokens == 4 && t.shape.n_experts == n_experts && t.shape.model_key == 0x1122334455667788);
        T_CHECK(memcmp(t.ids, ids, sizeof ids) == 0);
        T_CHECK(t.flags[0] == (AEG_ROUTE_PREFILL | AEG_ROUTE_STEP | AEG_ROUTE_TEXT) && t.flags[1] == AEG_ROUTE_PREFILL);
        T_CHECK(t.flags[2] == AEG_ROUTE_STEP && t.flags[3] == AEG_ROUTE_STEP);
        aeg_trace_free(&t);
        t_no_leak(&memory);
    }
}

static void fails(const char *part)
{
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_trace t;
    T_FAILS(aeg_trace_read(&t, path, &memory, &err), &err, AEGIS_E_MODEL, part);
    T_CHECK(strstr(err.message, path) != NULL);
    t_no_leak(&memory);
}

static void damage_is_named(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t value;
        const char *part;
    } edits[] = {
        { 0, 'X', "not a file of recorded routes" }, { 8, 2, "version 2" },      { 12, 0, "0 layers" },
        { 13, 2, "layers" },                         { 16, 1, "top 2" },         { 20, 0, "top 0" },
        { 20, 65, "top 65" },                        { 24, 3, "for 3 tokens" },  { 24, 0, "for 0 tokens" },
        { 31, 255, "truncated" },                    { 64, 1, "flags 0x01" },    { 64, 9, "flags 0x09" },
        { 69, 0, "flags 0x00" },                     { 65, 200, "token 0, layer 0: expert 200" },
        { 73, 6, "token 1, layer 1: expert 6" },     { 83, 0, "token 3, layer 1: expert 0" },
    };
    record(200);
    size_t n;
    char *good = t_read_file(path, &n);
    T_CHECK(n == 64 + 4 * 5);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        char *bad = malloc(n);
        memcpy(bad, good, n);
        bad[edits[i].at] = (char)edits[i].value;
        t_write_file(path, bad, n);
        fails(edits[i].part);
        free(bad);
    }
    for (size_t m = 0; m < n; m++) {
        t_write_file(path, good, m);
        fails(m < 64 ? "not a file" : "truncated");
    }
    t_free(good);
}

static void a_file_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_trace_writer *w;
    const aeg_trace_shape shape = { 1, 8, 1, 0 };
    if (access("/dev/full", W_OK) != 0)
        skip();
    T_FAILS(aeg_trace_create(&w, "/nowhere/x", &shape, 1, &memory, &err), &err, AEGIS_E_IO, "/nowhere/x");
    T_OK(aeg_trace_create(&w, "/dev/full", &shape, 1, &memory, &err), &err);
    T_FAILS(aeg_trace_finish(w, NULL, &err), &err, AEGIS_E_IO, "/dev/full");
    struct stat st;
    T_CHECK(stat("/dev/full", &st) == 0); /* a device is not removed as a file would be */
    T_OK(aeg_trace_finish(NULL, NULL, &err), &err);
    t_no_leak(&memory);
}

int main(void)
{
    static char file[4200];
    snprintf(file, sizeof file, "%s/r.routes", t_folder());
    path = file;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_recorded_comes_back),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(a_file_that_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
