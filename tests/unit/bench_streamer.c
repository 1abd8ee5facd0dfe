/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of one expert record at a time from random places of a big file, by back end and depth, beside a plain
 * sequential direct reader. Not a test: run by hand,
 *     bench_streamer FOLDER [record_bytes [file_MiB [reads]]]
 * and it deletes its file. One row per setting: GB/s, and the processor time one read costs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/io.h"

static uint64_t record_bytes = 1769472, n_records, n_reads = 400;
static uint64_t random_state = 88172645463325252u;
static uint8_t *region;
enum { REGION_SLOTS = 256 };

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static double cpu_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static void make_file(const char *path, uint64_t bytes)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    const uint64_t piece = 4 << 20;
    for (uint64_t i = 0; i < piece / 8; i++)
        ((uint64_t *)(void *)region)[i] = next_random();
    for (uint64_t at = 0; at < bytes; at += piece)
        if (fd < 0 || pwrite(fd, region, piece, (off_t)at) != (ssize_t)piece) {
            perror(path);
            exit(1);
        }
    fsync(fd);
    close(fd);
}

static void sequential(const char *path, uint64_t bytes)
{
    const int fd = open(path, O_RDONLY | O_DIRECT);
    const uint64_t piece = 8 << 20, start = aeg_now_ns(), limit = AEG_MIN(bytes, 1u << 30);
    uint64_t at = 0;
    const double cpu = cpu_seconds();
    while (at < limit && pread(fd, region, piece, (off_t)at) == (ssize_t)piece)
        at += piece;
    printf("sequential 8 MiB direct reads,,,%.2f,%.0f\n", (double)at / (double)(aeg_now_ns() - start),
           (cpu_seconds() - cpu) * 1e6 / ((double)at / (double)record_bytes));
    close(fd);
}

typedef struct {
    aeg_io_kind kind;
    uint32_t depth, parts;
    bool registered;
} setting;

static void queue_record(aeg_io *io, const setting *s, uint64_t number)
{
    const uint64_t record = next_random() % n_records, slot = number % REGION_SLOTS;
    const uint64_t cut = s->parts == 1 ? record_bytes : aeg_align_up(record_bytes * 2 / 3, AEG_IO_ALIGN);
    for (uint64_t at = 0; at < record_bytes; at = at == 0 ? cut : record_bytes) {
        const aeg_io_read read = { .bytes = (uint32_t)(at == 0 ? cut : record_bytes - cut),
                                   .offset = record * record_bytes + at,
                                   .dst = region + slot * record_bytes + at };
        aeg_io_queue(io, &read);
    }
}

static void run(const char *path, const setting *s)
{
    aeg_io_config cfg = { .kind = s->kind, .depth = s->depth * s->parts, .n_files = 1, .paths = { path },
                          .n_threads = AEG_MIN(s->depth, 16) };
    aegis_error err;
    aeg_io *io = NULL;
    aeg_arena arena = aeg_arena_measure("io");
    if (s->registered)
        cfg.buffer = region, cfg.buffer_bytes = REGION_SLOTS * record_bytes;
    aegis_status status = aeg_io_open(&io, &arena, &cfg, &err);
    if (status == AEGIS_OK)
        status = aeg_arena_map(&arena, "io", arena.used, false, &err);
    if (status == AEGIS_OK)
        status = aeg_io_open(&io, &arena, &cfg, &err);
    if (status != AEGIS_OK) {
        printf("# %s\n", err.message);
        return;
    }
    const uint64_t start = aeg_now_ns();
    const double cpu = cpu_seconds();
    uint64_t queued = 0, left = n_reads * s->parts;
    aeg_io_done done[64];
    while (left > 0) {
        while (queued < n_reads && aeg_io_room(io) >= s->parts)
            queue_record(io, s, queued++);
        uint32_t n = 0;
        if (aeg_io_submit(io, &err) != AEGIS_OK || aeg_io_wait(io, 1, done, 64, &n, &err) != AEGIS_OK)
            exit(1);
        for (uint32_t i = 0; i < n; i++)
            if (done[i].os_code != 0)
                exit(1);
        left -= n;
    }
    printf("%s,%u,%u,%.2f,%.0f\n", aeg_io_describe(io), s->depth, s->parts,
           (double)(n_reads * record_bytes) / (double)(aeg_now_ns() - start), (cpu_seconds() - cpu) * 1e6 / (double)n_reads);
    fflush(stdout);
    aeg_io_close(io);
    aeg_arena_unmap(&arena);
}

static void show_notice(void *ctx, aeg_log_level level, const char *line)
{
    (void)ctx, (void)level;
    printf("# %s\n", line);
}

int main(int argc, char **argv)
{
    static const uint32_t depths[] = { 1, 2, 4, 8, 16, 32 };
    char path[4096];
    if (argc < 2)
        return 2;
    if (argc > 2)
        record_bytes = aeg_align_up(strtoull(argv[2], NULL, 10), AEG_IO_ALIGN);
    const uint64_t file_bytes = (argc > 3 ? strtoull(argv[3], NULL, 10) : 2048) << 20;
    if (argc > 4)
        n_reads = strtoull(argv[4], NULL, 10);
    n_records = file_bytes / record_bytes;
    snprintf(path, sizeof path, "%s/bench_streamer.%ld", argv[1], (long)getpid());
    region = mmap(NULL, REGION_SLOTS * record_bytes + (8 << 20), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (region == MAP_FAILED)
        return 1;
    aeg_log_set_sink(show_notice, NULL);
    make_file(path, file_bytes);
    printf("back end,depth,parts,GB/s,cpu_us_per_record\n");
    sequential(path, file_bytes);
    for (uint32_t i = 0; i < AEG_ARRAY_LEN(depths); i++)
        for (uint32_t parts = 1; parts <= 2; parts++) {
            run(path, &(setting){ AEG_IO_URING, depths[i], parts, true });
            run(path, &(setting){ AEG_IO_URING, depths[i], parts, false });
            run(path, &(setting){ AEG_IO_PREAD, depths[i], parts, false });
        }
    sequential(path, file_bytes);
    unlink(path);
    return 0;
}
