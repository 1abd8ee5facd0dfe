/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of one expert record at a time from random places of a big file, by back end and depth, beside a plain
 * sequential direct reader. Not a test: run by hand,
 *     bench_streamer FOLDER [record_bytes [file_MiB [reads [rounds]]]]
 * and it deletes its file. All settings run in turn, `rounds` times over. One row per setting: GB/s (median, least,
 * most) and the processor time that one record costs. */
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

enum { MAX_ROUNDS = 15 };

typedef struct {
    aeg_io_kind kind;
    uint32_t depth, parts; /* depth 0: the sequential reader */
    bool registered;
    char name[64];
    double rates[MAX_ROUNDS], cpu_us;
} setting;

static double sequential(const char *path, uint64_t bytes)
{
    const int fd = open(path, O_RDONLY | O_DIRECT);
    const uint64_t piece = 8 << 20, start = aeg_now_ns(), limit = AEG_MIN(bytes, n_reads * record_bytes);
    uint64_t at = 0;
    while (at < limit && pread(fd, region, piece, (off_t)at) == (ssize_t)piece)
        at += piece;
    close(fd);
    return (double)at / (double)(aeg_now_ns() - start);
}

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

static aeg_io *open_io(const char *path, const setting *s, aeg_arena *arena)
{
    aeg_io_config cfg = { .kind = s->kind, .depth = s->depth * s->parts, .n_files = 1, .paths = { path },
                          .n_threads = AEG_MIN(s->depth, 16) };
    aegis_error err;
    aeg_io *io = NULL;
    *arena = aeg_arena_measure("io");
    if (s->registered)
        cfg.buffer = region, cfg.buffer_bytes = REGION_SLOTS * record_bytes, cfg.buffer_unit = record_bytes;
    aegis_status status = aeg_io_open(&io, arena, &cfg, &err);
    if (status == AEGIS_OK)
        status = aeg_arena_map(arena, "io", arena->used, false, &err);
    if (status == AEGIS_OK)
        status = aeg_io_open(&io, arena, &cfg, &err);
    if (status == AEGIS_OK)
        return io;
    fprintf(stderr, "%s\n", err.message);
    exit(1);
}

static double run(const char *path, setting *s)
{
    aeg_arena arena;
    aegis_error err;
    aeg_io *io = open_io(path, s, &arena);
    const uint64_t start = aeg_now_ns();
    const double cpu = cpu_seconds();
    uint64_t queued = 0, left = n_reads * s->parts;
    aeg_io_done done[64];
    while (left > 0) {
        while (queued < n_reads && aeg_io_room(io) >= s->parts)
            queue_record(io, s, queued++);
        uint32_t n = 0;
        /* Both parts of a record are waited for: that is when it can be used. */
        if (aeg_io_submit(io, &err) != AEGIS_OK || aeg_io_wait(io, s->parts, done, 64, &n, &err) != AEGIS_OK)
            exit(1);
        for (uint32_t i = 0; i < n; i++)
            if (done[i].os_code != 0)
                exit(1);
        left -= n;
    }
    const double rate = (double)(n_reads * record_bytes) / (double)(aeg_now_ns() - start);
    s->cpu_us = (cpu_seconds() - cpu) * 1e6 / (double)n_reads;
    snprintf(s->name, sizeof s->name, "%s", aeg_io_describe(io));
    aeg_io_close(io);
    aeg_arena_unmap(&arena);
    return rate;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void show_notice(void *ctx, aeg_log_level level, const char *line)
{
    (void)ctx, (void)level;
    printf("# %s\n", line);
}

int main(int argc, char **argv)
{
    static setting settings[64];
    char path[4096];
    uint32_t n = 1, rounds = 3;
    if (argc < 2)
        return 2;
    if (argc > 2)
        record_bytes = aeg_align_up(strtoull(argv[2], NULL, 10), AEG_IO_ALIGN);
    const uint64_t file_bytes = (argc > 3 ? strtoull(argv[3], NULL, 10) : 2048) << 20;
    if (argc > 4)
        n_reads = strtoull(argv[4], NULL, 10);
    if (argc > 5)
        rounds = (uint32_t)AEG_MIN(strtoul(argv[5], NULL, 10), (unsigned long)MAX_ROUNDS);
    n_records = file_bytes / record_bytes;
    snprintf(path, sizeof path, "%s/bench_streamer.%ld", argv[1], (long)getpid());
    region = mmap(NULL, REGION_SLOTS * record_bytes + (8 << 20), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (region == MAP_FAILED)
        return 1;
    aeg_log_set_sink(show_notice, NULL);
    make_file(path, file_bytes);
    snprintf(settings[0].name, sizeof settings[0].name, "sequential 8 MiB reads");
    for (uint32_t depth = 1; depth <= 32; depth *= 2)
        for (uint32_t parts = 1; parts <= 2; parts++) {
            settings[n++] = (setting){ .kind = AEG_IO_URING, .depth = depth, .parts = parts, .registered = true };
            settings[n++] = (setting){ .kind = AEG_IO_URING, .depth = depth, .parts = parts };
            settings[n++] = (setting){ .kind = AEG_IO_PREAD, .depth = depth, .parts = parts };
        }
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t i = 0; i < n; i++)
            settings[i].rates[round] = i == 0 ? sequential(path, file_bytes) : run(path, &settings[i]);
    unlink(path);
    printf("back end;depth;parts;GB/s;least;most;cpu_us_per_record\n");
    for (uint32_t i = 0; i < n; i++) {
        setting *s = &settings[i];
        qsort(s->rates, rounds, sizeof s->rates[0], by_size);
        printf("%s;%u;%u;%.2f;%.2f;%.2f;%.0f\n", s->name, s->depth, s->parts, s->rates[rounds / 2], s->rates[0],
               s->rates[rounds - 1], s->cpu_us);
    }
    return 0;
}
