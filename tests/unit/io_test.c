/* SPDX-License-Identifier: Apache-2.0 */
/* io/: every back end gives the same bytes; short, failing and refused reads are told, never hidden. */
#include "support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/io.h"

enum { FILE_BYTES = 40 * AEG_IO_ALIGN + 1234, BLOCKS = 41, MAX_BLOCKS = 5, DEPTH_MAX = 9 };

static uint8_t contents[2][FILE_BYTES];
static const char *folder, *paths[2];
static char path_text[2][4096];
static char notices[4096];

static void note(void *ctx, aeg_log_level level, const char *line)
{
    (void)ctx, (void)level;
    strncat(notices, line, sizeof notices - strlen(notices) - 1);
}

static int setup(void **state)
{
    (void)state;
    aeg_log_set_sink(note, NULL);
    folder = t_folder();
    for (int f = 0; f < 2; f++) {
        char name[16];
        snprintf(name, sizeof name, "data%d", f);
        t_fill_random(contents[f], FILE_BYTES);
        snprintf(path_text[f], sizeof path_text[f], "%s/%s", folder, name);
        paths[f] = path_text[f];
        t_write_file(paths[f], contents[f], FILE_BYTES);
    }
    return 0;
}

/* Plans, maps and opens; the arena comes from the same lines as the plan. */
static aegis_status open_io(aeg_io **io, aeg_arena *arena, const aeg_io_config *cfg, aegis_error *err)
{
    *io = NULL;
    aeg_arena plan = aeg_arena_measure("io");
    AEG_TRY(aeg_io_open(io, &plan, cfg, err));
    T_CHECK(*io == NULL);
    AEG_TRY(aeg_arena_map(arena, "io", plan.used, false, err));
    const aegis_status status = aeg_io_open(io, arena, cfg, err);
    T_CHECK(status != AEGIS_OK || arena->used == plan.used);
    return status;
}

/* Emulators and some containers refuse io_uring: there AUTO, and so the pread pool, is what a user gets. */
static bool uring_works(void)
{
    return syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno == EFAULT;
}

static aeg_io_config config(aeg_io_kind kind)
{
    if (kind == AEG_IO_URING && !uring_works())
        kind = AEG_IO_AUTO;
    return (aeg_io_config){ .kind = kind, .depth = 4, .n_files = 2, .paths = { paths[0], paths[1] }, .n_threads = 3,
                            .sim_bytes_per_s = 1e9, .sim_latency_s = 20e-6 };
}

static const aeg_io_kind real_kinds[] = { AEG_IO_URING, AEG_IO_PREAD, AEG_IO_SIM };

/* Random reads, with random numbers of them in flight, registered or not, direct or not. */
T_PROPERTY(every_back_end_gives_the_bytes_of_the_file, 60)
{
    aeg_io_config cfg = config(real_kinds[t_below(3)]);
    const uint32_t n_slots = 12;
    aeg_arena slots = t_arena(n_slots * MAX_BLOCKS * AEG_IO_ALIGN), arena = { 0 };
    aegis_error err;
    aeg_io *io;
    cfg.depth = (uint32_t)t_between(1, DEPTH_MAX);
    cfg.buffered = t_below(3) == 0;
    cfg.buffer = t_below(2) ? slots.base : NULL;
    cfg.buffer_bytes = t_below(2) ? slots.size : slots.size / 2;
    T_OK(open_io(&io, &arena, &cfg, &err), &err);
    if (t_below(2))
        T_OK(aeg_io_set_buffer(io, slots.base, slots.size, t_below(2) * MAX_BLOCKS * AEG_IO_ALIGN, &err), &err);

    aeg_io_read reads[DEPTH_MAX + 3];
    uint32_t busy[12] = { 0 }, queued = 0, got = 0;
    while (got < 60) {
        while (aeg_io_room(io) > 0 && queued < 60 && t_below(4) > 0) {
            const uint32_t slot = (uint32_t)t_below(n_slots);
            if (busy[slot])
                continue;
            busy[slot] = 1;
            queued++;
            const uint32_t block = (uint32_t)t_below(BLOCKS);
            reads[slot] = (aeg_io_read){ .file = (uint32_t)t_below(2), .offset = (uint64_t)block * AEG_IO_ALIGN,
                                         .bytes = (uint32_t)t_between(1, MAX_BLOCKS) * AEG_IO_ALIGN,
                                         .dst = slots.base + slot * MAX_BLOCKS * AEG_IO_ALIGN, .tag = slot };
            memset(reads[slot].dst, 0xEE, reads[slot].bytes);
            aeg_io_queue(io, &reads[slot]);
        }
        if (t_below(2))
            T_OK(aeg_io_submit(io, &err), &err);
        aeg_io_done done[DEPTH_MAX];
        uint32_t n = 0;
        const uint32_t min = (uint32_t)t_below(aeg_io_flight(io) + 1);
        T_OK(aeg_io_wait(io, min, done, DEPTH_MAX, &n, &err), &err);
        T_CHECK(n >= min);
        for (uint32_t i = 0; i < n; i++) {
            const aeg_io_read *r = &reads[done[i].tag];
            const uint64_t want = AEG_MIN(r->bytes, FILE_BYTES - r->offset);
            T_CHECK(busy[done[i].tag] == 1 && done[i].os_code == 0 && done[i].bytes >= want);
            T_CHECK(memcmp(r->dst, contents[r->file] + r->offset, want) == 0);
            busy[done[i].tag] = 0;
        }
        got += n;
    }
    T_CHECK(aeg_io_flight(io) == 0 && aeg_io_room(io) == cfg.depth);
    T_CHECK(aeg_io_get_stats(io).reads == 60);
    aeg_io_close(io);
    aeg_arena_unmap(&arena);
    aeg_arena_unmap(&slots);
}

/* Any offset, length and destination, on every back end (`null` too: dense weights are always real). */
T_PROPERTY(synchronous_reads_need_no_alignment, 100)
{
    aeg_io_config cfg = config((aeg_io_kind)t_between(AEG_IO_AUTO, AEG_IO_SIM));
    static uint8_t dst[FILE_BYTES + 2 * AEG_IO_ALIGN + 2] __attribute__((aligned(4096)));
    aeg_arena arena;
    aegis_error err;
    aeg_io *io;
    cfg.buffered = t_below(3) == 0;
    T_OK(open_io(&io, &arena, &cfg, &err), &err);
    for (int i = 0; i < 10; i++) {
        const uint32_t file = (uint32_t)t_below(2);
        uint64_t at = t_below(FILE_BYTES + 1), skew = 1 + t_below(AEG_IO_ALIGN);
        if (t_below(3) == 0)
            at -= at % AEG_IO_ALIGN;
        if (t_below(2))
            skew = AEG_IO_ALIGN + at % AEG_IO_ALIGN;
        const uint64_t n = t_below(FILE_BYTES - at + 1);
        memset(dst, 0xEE, sizeof dst);
        T_OK(aeg_io_read_sync(io, file, at, dst + skew, n, &err), &err);
        T_CHECK(memcmp(dst + skew, contents[file] + at, n) == 0);
        T_CHECK(dst[skew - 1] == 0xEE && dst[skew + n] == 0xEE);
    }
    T_FAILS(aeg_io_read_sync(io, 1, FILE_BYTES - 3, dst, 4, &err), &err, AEGIS_E_IO, paths[1]);
    T_FAILS(aeg_io_read_sync(io, 0, UINT64_MAX, dst, 4, &err), &err, AEGIS_E_IO, "expected 4 bytes");
    T_FAILS(aeg_io_read_sync(io, 2, 0, dst, 4, &err), &err, AEGIS_E_USAGE, "file 2 of 2");
    aeg_io_close(io);
    aeg_arena_unmap(&arena);
}

static int read_one(aeg_io *io, uint32_t file, uint64_t offset, void *dst, uint32_t bytes)
{
    aeg_io_done done = { 0 };
    aegis_error err;
    uint32_t n = 0;
    aeg_io_queue(io, &(aeg_io_read){ .file = file, .offset = offset, .bytes = bytes, .dst = dst, .tag = 7 });
    T_OK(aeg_io_wait(io, 1, &done, 1, &n, &err), &err);
    T_CHECK(n == 1 && done.tag == 7);
    return done.os_code;
}

static void a_file_that_became_shorter_is_an_io_error(void **state)
{
    (void)state;
    static uint8_t dst[4 * AEG_IO_ALIGN] __attribute__((aligned(4096)));
    for (uint32_t k = 0; k < AEG_ARRAY_LEN(real_kinds); k++)
        for (int buffered = 0; buffered < 2; buffered++) {
            aeg_io_config cfg = config(real_kinds[k]);
            const char *path = t_path(folder, "shrinks");
            aeg_arena arena;
            aegis_error err;
            aeg_io *io;
            t_write_file(path, contents[0], FILE_BYTES);
            cfg.paths[1] = path;
            cfg.buffered = buffered;
            T_OK(open_io(&io, &arena, &cfg, &err), &err);
            T_CHECK(truncate(path, 5 * AEG_IO_ALIGN + 100) == 0);
            T_CHECK(read_one(io, 1, 4 * AEG_IO_ALIGN, dst, sizeof dst) == EIO);
            T_CHECK(read_one(io, 1, 30 * AEG_IO_ALIGN, dst, sizeof dst) == EIO);
            T_CHECK(read_one(io, 1, 0, dst, sizeof dst) == 0);
            T_CHECK(read_one(io, 0, BLOCKS * AEG_IO_ALIGN, dst, AEG_IO_ALIGN) == EIO); /* behind the end */
            T_FAILS(aeg_io_read_sync(io, 1, 6 * AEG_IO_ALIGN, dst, 10, &err), &err, AEGIS_E_IO, "shrinks");
            T_CHECK(err.os_code == EIO);
            aeg_io_close(io);
            aeg_arena_unmap(&arena);
        }
}

static int fail_some(void *ctx, uint32_t file, uint64_t offset)
{
    (void)offset;
    return file == 1 ? *(int *)ctx : 0;
}

static void a_failing_read_fails_alone(void **state)
{
    (void)state;
    static uint8_t dst[2][AEG_IO_ALIGN] __attribute__((aligned(4096)));
    for (aeg_io_kind kind = AEG_IO_AUTO; kind <= AEG_IO_SIM; kind++) {
        int os_code = ENODATA;
        aeg_io_config cfg = config(kind);
        aeg_arena arena;
        aegis_error err;
        aeg_io *io;
        cfg.fault = fail_some;
        cfg.fault_ctx = &os_code;
        T_OK(open_io(&io, &arena, &cfg, &err), &err);
        for (uint32_t f = 0; f < 2; f++)
            aeg_io_queue(io, &(aeg_io_read){ .file = f, .bytes = AEG_IO_ALIGN, .dst = dst[f], .tag = f });
        aeg_io_done done[2];
        uint32_t n = 0;
        T_OK(aeg_io_wait(io, 2, done, 2, &n, &err), &err);
        T_CHECK(n == 2);
        for (uint32_t i = 0; i < 2; i++)
            T_CHECK(done[i].os_code == (done[i].tag == 1 ? ENODATA : 0));
        T_FAILS(aeg_io_read_sync(io, 1, 5, dst[0], 10, &err), &err, AEGIS_E_IO, paths[1]);
        os_code = 0;
        T_CHECK(read_one(io, 1, 0, dst[0], AEG_IO_ALIGN) == 0);
        aeg_io_close(io);
        aeg_arena_unmap(&arena);
    }
}

static void opening_names_what_is_wrong(void **state)
{
    (void)state;
    aeg_arena arena = { 0 };
    aegis_error err;
    aeg_io *io;
    for (aeg_io_kind kind = AEG_IO_AUTO; kind <= AEG_IO_SIM; kind++) {
        aeg_io_config cfg = config(kind);
        cfg.paths[1] = t_path(folder, "absent");
        T_FAILS(open_io(&io, &arena, &cfg, &err), &err, AEGIS_E_IO, "absent");
        aeg_arena_unmap(&arena);
        cfg.paths[1] = folder;
        T_FAILS(open_io(&io, &arena, &cfg, &err), &err, AEGIS_E_IO, folder);
        aeg_arena_unmap(&arena);
        cfg.depth = 0;
        T_FAILS(open_io(&io, &arena, &cfg, &err), &err, AEGIS_E_USAGE, "in flight: 0");
    }
    aeg_io_close(NULL);
}

static void buffered_reads_leave_no_page_cache(void **state)
{
    (void)state;
    static uint8_t dst[16 * AEG_IO_ALIGN] __attribute__((aligned(4096)));
    const char *path = t_path(folder, "cache");
    aeg_arena arena;
    aegis_error err;
    aeg_io *io;
    struct statfs fs;
    t_write_file(path, contents[0], FILE_BYTES);
    if (statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
        skip(); /* the page cache is all there is */
    const int fd = open(path, O_RDONLY);
    T_CHECK(fdatasync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    for (uint32_t k = 0; k < 2; k++) {
        aeg_io_config cfg = config(real_kinds[k]);
        cfg.paths[0] = path;
        cfg.buffered = true;
        T_OK(open_io(&io, &arena, &cfg, &err), &err);
        T_CHECK(strstr(aeg_io_describe(io), ", buffered") != NULL);
        /* A byte that is in the page cache can be had without waiting; one that is not, cannot. The kernel keeps a page
         * that it still holds itself at the moment of the advice: now and then one stays, never all. */
        enum { ROUNDS = 20, MAY_STAY = 4 };
        uint32_t n_stayed = 0;
        for (uint32_t i = 0; i < ROUNDS; i++) {
            T_CHECK(read_one(io, 0, 0, dst, sizeof dst) == 0);
            struct iovec part = { dst, 1 };
            const ssize_t got = preadv2(fd, &part, 1, 8 * AEG_IO_ALIGN, RWF_NOWAIT);
            T_CHECK(got == 1 || errno == EAGAIN || errno == EOPNOTSUPP);
            n_stayed += got == 1;
        }
        T_CHECK(n_stayed <= MAY_STAY);
        aeg_io_close(io);
        aeg_arena_unmap(&arena);
    }
    close(fd);
}

static void the_simulated_disk_keeps_its_pace(void **state)
{
    (void)state;
    static uint8_t dst[8][4 * AEG_IO_ALIGN] __attribute__((aligned(4096)));
    aeg_io_config cfg = config(AEG_IO_SIM);
    aeg_io_done done[8];
    aeg_arena arena;
    aegis_error err;
    aeg_io *io;
    uint32_t n = 0;
    cfg.depth = 8;
    cfg.sim_bytes_per_s = 8.0 * sizeof dst[0] / 20e-3; /* eight reads take 20 ms, and 5 ms of latency once */
    cfg.sim_latency_s = 5e-3;
    T_OK(open_io(&io, &arena, &cfg, &err), &err);
    const uint64_t start = aeg_now_ns();
    for (uint32_t i = 0; i < 8; i++)
        aeg_io_queue(io, &(aeg_io_read){ .bytes = sizeof dst[0], .dst = dst[i] });
    T_OK(aeg_io_wait(io, 8, done, 8, &n, &err), &err);
    const double ms = (double)(aeg_now_ns() - start) * 1e-6;
    T_CHECK(n == 8 && ms >= 24.9 && ms < 1000);
    /* A busy machine may let time pass between queueing and waiting. */
    T_CHECK(aeg_io_get_stats(io).busy_ns >= 20000000 && aeg_io_get_stats(io).wait_ns > 0);
    aeg_io_close(io);
    aeg_arena_unmap(&arena);
}

static void opening_and_reading_take_no_heap(void **state)
{
    (void)state;
    static uint8_t dst[AEG_IO_ALIGN] __attribute__((aligned(4096)));
    const uint64_t calls = aeg_memory_calls();
    for (aeg_io_kind kind = AEG_IO_AUTO; kind <= AEG_IO_SIM; kind++) {
        aeg_io_config cfg = config(kind);
        aeg_arena arena;
        aegis_error err;
        aeg_io *io;
        T_OK(open_io(&io, &arena, &cfg, &err), &err);
        T_CHECK(read_one(io, 0, 0, dst, sizeof dst) == 0);
        aeg_io_close(io);
        aeg_arena_unmap(&arena);
    }
    T_CHECK(aeg_memory_calls() == calls);
}

/* Bytes are those of the waiting only as far as the read and the waiting overlap. Bounds are wide: a busy machine wakes late. */
static void waiting_has_its_own_bytes(void **state)
{
    (void)state;
    static uint8_t dst[4][8 * AEG_IO_ALIGN] __attribute__((aligned(4096)));
    aeg_io_config cfg = config(AEG_IO_SIM);
    aeg_arena arena;
    aegis_error err;
    aeg_io *io;
    aeg_io_done done[4];
    uint32_t n;
    cfg.sim_bytes_per_s = 4.0 * sizeof dst[0] / 80e-3;
    cfg.sim_latency_s = 0;
    T_OK(open_io(&io, &arena, &cfg, &err), &err);
    const uint64_t began = aeg_now_ns();
    for (uint64_t i = 0; i < 4; i++)
        aeg_io_queue(io, &(aeg_io_read){ .file = 1, .bytes = sizeof dst[0], .offset = i * sizeof dst[0], .dst = dst[i] });
    T_OK(aeg_io_submit(io, &err), &err);
    usleep(40 * 1000);
    const double slept = (double)(aeg_now_ns() - began);
    T_CHECK(aeg_io_get_stats(io).busy_ns > 35 * 1000 * 1000 && aeg_io_get_stats(io).wait_bytes[1] == 0);
    while (aeg_io_flight(io) > 0)
        T_OK(aeg_io_wait(io, 1, done, 4, &n, &err), &err);
    const aeg_io_stats stats = aeg_io_get_stats(io);
    const double all = (double)(aeg_now_ns() - began), share = (double)stats.wait_bytes[1] / (double)stats.bytes;
    T_CHECK(stats.bytes == sizeof dst && stats.wait_bytes[0] == 0);
    T_CHECK(share <= 1 - slept / all + 0.02 && (slept > 60e6 || share > 0.05)); /* the last read waited for half of its time */
    T_CHECK(stats.busy_ns <= (uint64_t)all && stats.wait_ns <= (uint64_t)(all - slept));
    aeg_io_close(io);
    aeg_arena_unmap(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_back_end_gives_the_bytes_of_the_file),
        cmocka_unit_test(synchronous_reads_need_no_alignment),
        cmocka_unit_test(a_file_that_became_shorter_is_an_io_error),
        cmocka_unit_test(a_failing_read_fails_alone),
        cmocka_unit_test(opening_names_what_is_wrong),
        cmocka_unit_test(buffered_reads_leave_no_page_cache),
        cmocka_unit_test(the_simulated_disk_keeps_its_pace),
        cmocka_unit_test(waiting_has_its_own_bytes),
        cmocka_unit_test(opening_and_reading_take_no_heap),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
