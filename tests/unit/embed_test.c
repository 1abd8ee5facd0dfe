/* SPDX-License-Identifier: Apache-2.0 */
/* model/embed: every token gets its own row, whatever the row size, the queue, duplicates and reads of others; a row that
 * cannot be read is named and leaves nothing behind. */
#include "unit/streamer_case.h"

#include <errno.h>
#include <string.h>

#include "io/backend.h"
#include "model/embed.h"

enum { ROWS = 300, MAX_COLS = 1100, MAX_CHUNK = 200 };

typedef struct {
    aeg_store store;
    aeg_store_embed table;
    aeg_io *io;
    aeg_streamer *streamer;
    aeg_embed_room room;
    aeg_arena arena, slots;
    uint32_t n_read;        /* rows' reads seen by the fault hook */
    uint64_t fail_at;       /* offset below which no read fails; UINT64_MAX: none does */
} world;

static float value(uint32_t token, uint32_t c) { return (float)(token * 1024 + c); }

static int watch_reads(void *ctx, uint32_t file, uint64_t offset)
{
    world *w = ctx;
    if (file != AEG_FILE_EMBED)
        return 0;
    w->n_read++;
    return w->fail_at != UINT64_MAX && offset >= w->fail_at ? ENXIO : 0;
}

static const char *write_rows(const char *folder, uint32_t n_cols)
{
    static float rows[ROWS * MAX_COLS];
    for (uint32_t t = 0; t < ROWS; t++)
        for (uint32_t c = 0; c < n_cols; c++)
            rows[t * n_cols + c] = value(t, c);
    const char *path = t_path(folder, "embed.bin");
    t_write_file(path, rows, sizeof *rows * ROWS * n_cols);
    return path;
}

static void open_world(world *w, aeg_io_kind kind, uint32_t n_cols, uint32_t chunk, uint32_t depth)
{
    static char embed[4096];
    int os_code;
    if (kind == AEG_IO_URING && !aeg_io_uring_usable(&os_code))
        kind = AEG_IO_PREAD;
    *w = (world){ .fail_at = UINT64_MAX, .table = { .type = { .kind = AEG_W_F32 }, .n_rows = ROWS, .n_cols = n_cols,
                                                    .row_bytes = sizeof(float) * n_cols } };
    case_fill_store(&w->store);
    strncpy(embed, write_rows(t_folder(), n_cols), sizeof embed - 1);
    const aeg_io_config io = { .kind = kind, .depth = depth, .n_files = 3, .paths = { embed, embed, case_path() },
                               .sim_latency_s = 20e-6, .fault = watch_reads, .fault_ctx = w };
    aegis_error err;
    w->arena = t_arena(64 << 20); /* the readers' stacks are 2 MiB each under sanitizers */
    w->slots = t_arena(CASE_EXPERTS * CASE_RECORD);
    T_OK(aeg_io_open(&w->io, &w->arena, &io, &err), &err);
    const aeg_streamer_config streamer = { .store = &w->store, .io = w->io, .file = AEG_FILE_EXPERTS, .n_slots = CASE_EXPERTS,
                                           .max_demand = CASE_EXPERTS, .prefetch = 4 };
    T_OK(aeg_streamer_init(&w->streamer, &w->arena, &w->slots, &streamer, &err), &err);
    aeg_embed_room_init(&w->room, &w->arena, &w->table, chunk);
    T_OK(aeg_arena_check(&w->arena, &err), &err);
}

static void close_world(world *w)
{
    aeg_streamer_close(w->streamer);
    T_CHECK(aeg_io_flight(w->io) == 0);
    aeg_io_close(w->io);
    aeg_arena_unmap(&w->arena);
    aeg_arena_unmap(&w->slots);
}

static uint32_t n_distinct(const uint32_t *tokens, uint32_t n)
{
    bool seen[ROWS] = { false };
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < n; i++) {
        distinct += !seen[tokens[i]];
        seen[tokens[i]] = true;
    }
    return distinct;
}

static void check_rows(const world *w, const uint32_t *tokens, uint32_t n, const float *x)
{
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t c = 0; c < w->table.n_cols; c++)
            if (x[t * w->table.n_cols + c] != value(tokens[t], c))
                T_CHECK(!"a row's value");
}

static float x[MAX_CHUNK * MAX_COLS];

/* Guesses are on their way when the rows are asked for: both arrive where they belong. */
T_PROPERTY(every_token_gets_its_row, 60)
{
    static const aeg_io_kind kinds[] = { AEG_IO_URING, AEG_IO_PREAD, AEG_IO_SIM };
    const aeg_io_kind kind = kinds[t_below(3)];
    const uint32_t n_cols = (uint32_t)t_between(1, t_below(2) ? 40 : MAX_COLS), chunk = (uint32_t)t_between(1, MAX_CHUNK);
    uint32_t tokens[MAX_CHUNK];
    aegis_error err;
    world w;
    open_world(&w, kind, n_cols, chunk, (uint32_t)t_between(1, 40));
    for (int round = 0; round < 3; round++) {
        static const uint16_t guesses[] = { 1, 5, 9, 14 };
        const uint32_t n = (uint32_t)t_between(1, chunk), among = (uint32_t)t_between(1, ROWS);
        for (uint32_t i = 0; i < n; i++)
            tokens[i] = (uint32_t)t_below(among);
        aeg_streamer_guess(w.streamer, (uint32_t)round, guesses, 4);
        w.n_read = 0;
        memset(x, 0xff, sizeof x);
        T_OK(aeg_embed_read(&w.room, w.io, w.streamer, tokens, n, x, &err), &err);
        T_CHECK(w.n_read == n_distinct(tokens, n));
        check_rows(&w, tokens, n, x);
    }
    const uint16_t experts[] = { 1, 5, 9, 14 };
    const uint32_t uses[] = { 1, 1, 1, 1 };
    case_state c = { .store = w.store, .io = w.io, .streamer = w.streamer, .has_bytes = true };
    T_OK(aeg_streamer_demand(w.streamer, 2, experts, uses, 4, true, &err), &err);
    T_OK(case_take_all(&c, 2, experts, 4, &err), &err);
    close_world(&w);
}

static void a_row_that_fails_is_named(void **state)
{
    static const aeg_io_kind kinds[] = { AEG_IO_URING, AEG_IO_PREAD, AEG_IO_SIM };
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        uint32_t tokens[MAX_CHUNK];
        aegis_error err;
        world w;
        open_world(&w, kinds[k], 1024, MAX_CHUNK, 8); /* a row is a block */
        for (uint32_t i = 0; i < MAX_CHUNK; i++)
            tokens[i] = i == 77 ? 250 : i % 100;
        w.fail_at = 250 * 4096;
        T_FAILS(aeg_embed_read(&w.room, w.io, w.streamer, tokens, MAX_CHUNK, x, &err), &err, AEGIS_E_IO, "token 250");
        T_CHECK(strstr(err.message, "embed.bin") != NULL && aeg_io_flight(w.io) == 0);
        w.fail_at = UINT64_MAX;
        T_OK(aeg_embed_read(&w.room, w.io, w.streamer, tokens, MAX_CHUNK, x, &err), &err);
        check_rows(&w, tokens, MAX_CHUNK, x);
        close_world(&w);
    }
}

/* The null back end delivers no expert, but rows are real: NaNs from scratch would stop the forward pass. */
static void rows_are_real_without_a_disk(void **state)
{
    (void)state;
    const uint32_t tokens[] = { 3, 299, 3 };
    aegis_error err;
    world w;
    open_world(&w, AEG_IO_NULL, 100, 8, 4);
    T_OK(aeg_embed_read(&w.room, w.io, w.streamer, tokens, 3, x, &err), &err);
    check_rows(&w, tokens, 3, x);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_gets_its_row),
        cmocka_unit_test(a_row_that_fails_is_named),
        cmocka_unit_test(rows_are_real_without_a_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
