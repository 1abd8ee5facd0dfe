/* SPDX-License-Identifier: Apache-2.0 */
#include "aegis/probe.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "io/io.h"
#include "kernels/kernels.h"

static const uint64_t MAX_RECORD = 256u << 20;

enum { MAX_BATCHES = 4096 };

typedef struct {
    const aegis_probe_reads *what;
    aeg_arena arena, buffer;
    aeg_io *io;
    uint64_t n_records, next;
    uint64_t issued, done, bytes, start_ns;
    uint64_t *batches;       /* [MAX_BATCHES] times, in the buffer's arena behind the records */
    uint32_t n_batches;
} probe;

static aegis_status check(const aegis_probe_reads *w, uint64_t *n_records, aegis_error *err)
{
    struct stat st;
    if (w->record_bytes == 0 || w->record_bytes % AEG_IO_ALIGN != 0 || w->record_bytes > MAX_RECORD)
        return aeg_fail(err, AEGIS_E_USAGE, "reads of %llu bytes, expected a multiple of %d up to %llu",
                        (unsigned long long)w->record_bytes, AEG_IO_ALIGN, (unsigned long long)MAX_RECORD);
    if (w->depth < 1 || w->depth > AEG_IO_MAX_DEPTH)
        return aeg_fail(err, AEGIS_E_USAGE, "reads in flight: %u, expected 1 to %d", w->depth, AEG_IO_MAX_DEPTH);
    if (w->io != AEGIS_IO_AUTO && w->io != AEGIS_IO_URING && w->io != AEGIS_IO_PREAD)
        return aeg_fail(err, AEGIS_E_USAGE, "a disk is probed through io_uring or pread");
    if (stat(w->path, &st) != 0 || !S_ISREG(st.st_mode))
        return aeg_fail(err, AEGIS_E_IO, "%s: not a regular file", w->path);
    *n_records = aegis_probe_records((uint64_t)st.st_size, w->record_bytes);
    if (*n_records == 0)
        return aeg_fail(err, AEGIS_E_USAGE, "%s: %lld bytes, shorter than one read of %llu", w->path,
                        (long long)st.st_size, (unsigned long long)w->record_bytes);
    return AEGIS_OK;
}

static aegis_status open_probe(probe *p, aegis_error *err)
{
    const aegis_probe_reads *w = p->what;
    const uint64_t bytes = aeg_align_up(AEG_MAX((uint64_t)w->depth * w->record_bytes, w->buffer_bytes), AEG_PAGE);
    AEG_TRY(aeg_arena_map(&p->buffer, "probe", bytes + MAX_BATCHES * sizeof *p->batches, bytes >= 64u << 20, err));
    p->batches = (uint64_t *)(void *)(p->buffer.base + bytes); /* records are whole pages */
    const aeg_io_config cfg = { .kind = w->io == AEGIS_IO_URING ? AEG_IO_URING : w->io == AEGIS_IO_PREAD ? AEG_IO_PREAD
                                : AEG_IO_AUTO,
                                .depth = w->depth, .n_files = 1, .paths = { w->path }, .buffer = p->buffer.base,
                                .buffer_bytes = bytes, .buffer_unit = w->record_bytes };
    aeg_arena measure = aeg_arena_measure("probe");
    AEG_TRY(aeg_io_open(&p->io, &measure, &cfg, err));
    AEG_TRY(aeg_arena_map(&p->arena, "probe", measure.used, false, err));
    return aeg_io_open(&p->io, &p->arena, &cfg, err);
}

static void close_probe(probe *p)
{
    aeg_io_close(p->io);
    aeg_arena_unmap(&p->arena);
    aeg_arena_unmap(&p->buffer);
}

static bool over(const probe *p)
{
    return p->issued >= p->what->max_reads ||
           (double)(aeg_now_ns() - p->start_ns) * 1e-9 >= p->what->max_seconds;
}

/* A read into each free place of the buffer; its tag is the place. */
static void queue(probe *p, uint32_t place)
{
    const uint64_t bytes = p->what->record_bytes;
    const aeg_io_read read = { .bytes = (uint32_t)bytes, .offset = p->next * bytes,
                               .dst = p->buffer.base + (uint64_t)place * bytes, .tag = place };
    p->next = (p->next + p->what->stride) % p->n_records;
    p->issued++;
    aeg_io_queue(p->io, &read);
}

static aegis_status take(probe *p, uint32_t min, uint32_t *places, uint32_t *n, aegis_error *err)
{
    aeg_io_done done[AEG_IO_MAX_DEPTH];
    AEG_TRY(aeg_io_wait(p->io, min, done, AEG_IO_MAX_DEPTH, n, err));
    for (uint32_t i = 0; i < *n; i++) {
        if (done[i].os_code != 0)
            return aeg_fail_os(err, AEGIS_E_IO, done[i].os_code, "%s: a read of %u bytes", p->what->path, done[i].bytes);
        places[i] = (uint32_t)done[i].tag;
        p->done++;
        p->bytes += done[i].bytes;
    }
    return AEGIS_OK;
}

static aegis_status read_on(probe *p, aegis_error *err)
{
    uint32_t places[AEG_IO_MAX_DEPTH], n = p->what->depth;
    for (uint32_t i = 0; i < n; i++)
        places[i] = i;
    p->start_ns = aeg_now_ns();
    bool more = true;
    while (more || aeg_io_flight(p->io) > 0) {
        const uint64_t begin = aeg_now_ns();
        for (uint32_t i = 0; more && i < n; i++)
            queue(p, places[i]);
        AEG_TRY(aeg_io_submit(p->io, err));
        AEG_TRY(take(p, p->what->together ? aeg_io_flight(p->io) : 1, places, &n, err));
        if (p->what->together && p->n_batches < MAX_BATCHES)
            p->batches[p->n_batches++] = aeg_now_ns() - begin;
        more = !over(p);
    }
    return AEGIS_OK;
}

/* Counting those below is quadratic and needs no memory; there are few. */
static uint64_t median(const uint64_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t below = 0, equal = 0;
        for (uint32_t j = 0; j < n; j++) {
            below += values[j] < values[i];
            equal += values[j] == values[i];
        }
        if (below <= n / 2 && n / 2 < below + equal)
            return values[i];
    }
    return 0;
}

aegis_status aegis_probe_disk(const aegis_probe_reads *what, aegis_probe_rate *out, aegis_error *err)
{
    probe p = { .what = what };
    AEG_TRY(check(what, &p.n_records, err));
    p.next = what->first % p.n_records;
    aegis_status status = open_probe(&p, err);
    if (status == AEGIS_OK)
        status = read_on(&p, err);
    if (status == AEGIS_OK) {
        const char *how = aeg_io_describe(p.io);
        *out = (aegis_probe_rate){ .n_reads = p.done, .bytes = p.bytes, .ns = aeg_now_ns() - p.start_ns,
                                   .batch_ns = median(p.batches, p.n_batches), .next = p.next,
                                   .direct = strstr(how, "O_DIRECT") != NULL, .uring = strstr(how, "io_uring") != NULL,
                                   .registered = strstr(how, "registered") != NULL };
        snprintf(out->how, sizeof out->how, "%s", how);
    }
    close_probe(&p);
    return status;
}

const char *aegis_probe_kernels(const char **dropped)
{
    aeg_kernels kernels;
    aeg_kernels_init(&kernels, aeg_cpu_detect());
    aeg_kernels_self_check(&kernels, dropped);
    return aeg_cpu_name(kernels.cpu);
}
