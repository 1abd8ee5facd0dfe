/* SPDX-License-Identifier: Apache-2.0 */
/* The disk as the engine reads it: records in random order, several at once, no record twice if the file is large enough. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "doctor.h"
#include "model_source.h"
#include "ui.h"

const uint32_t aeg_doctor_depths[AEG_DOCTOR_DEPTHS] = { 1, 2, 4, 8, 16, 32 };
const uint32_t aeg_doctor_bursts[AEG_DOCTOR_BURSTS] = { 1, 2, 4, 8 };

enum {
    USUAL_RECORD = 1769472,     /* an expert of a 35B-A3B model in 4 bits */
    SEQUENTIAL_RECORD = 1 << 20, SEQUENTIAL_DEPTH = 4,
    TEMPORARY_BYTES = 256 << 20,
    MIN_FILE = 1 << 20,
    MIN_READS = 48,             /* of one measurement, even where that means reading a record again */
};
static const double SECONDS = 0.4; /* of one measurement */

/* --- which file ------------------------------------------------------------------------------------------ */

static aegis_status find_record(aeg_doctor_disk *disk, const char *store, aegis_error *err)
{
    const aegis_options options = { .store = store, .memory_bytes = UINT64_C(1) << 40 };
    aegis_plan plan;
    AEG_TRY(aegis_plan_compute(&options, &plan, err));
    disk->figure.record_bytes = plan.slot_bytes;
    return AEGIS_OK;
}

static aegis_status find_store_file(aeg_doctor_disk *disk, const char *store, aegis_error *err)
{
    AEG_TRY(find_record(disk, store, err));
    return aeg_path_join(disk->path, store, "experts.bin", err);
}

static aegis_status find_largest_file(aeg_doctor_disk *disk, const char *folder, aegis_error *err)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "%s", folder);
    const struct dirent *entry;
    uint64_t largest = 0;
    aegis_status status = AEGIS_OK;
    while (status == AEGIS_OK && (entry = readdir(dir)) != NULL) {
        struct stat st;
        if (fstatat(dirfd(dir), entry->d_name, &st, 0) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size <= largest)
            continue;
        largest = (uint64_t)st.st_size;
        status = aeg_path_join(disk->path, folder, entry->d_name, err);
    }
    closedir(dir);
    if (status == AEGIS_OK && largest < MIN_FILE)
        snprintf(disk->why_not, sizeof disk->why_not, "%.400s holds no file of 1 MiB or more to read", folder);
    return status;
}

/* Random bytes would say no more to a disk that does not compress, and ours would: so each block differs. */
static bool write_temporary(int fd)
{
    static uint64_t block[128 << 10];
    for (uint64_t at = 0, word = 1; at < TEMPORARY_BYTES; at += sizeof block) {
        for (size_t i = 0; i < AEG_ARRAY_LEN(block); i++)
            block[i] = word = word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
            return false;
    }
    return fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
}

static aegis_status make_temporary_file(aeg_doctor_disk *disk, aegis_error *err)
{
    char folder[AEG_PATH_MAX];
    struct statvfs vfs;
    AEG_TRY(aeg_source_cache_folder(folder, err));
    char *slash = strrchr(folder, '/'); /* beside the folder of stores, not in it */
    if (slash != NULL)
        *slash = '\0';
    AEG_TRY(aeg_make_dirs(folder, err));
    if (statvfs(folder, &vfs) != 0 || (uint64_t)vfs.f_bavail * vfs.f_frsize < 4ull * TEMPORARY_BYTES) {
        snprintf(disk->why_not, sizeof disk->why_not, "%.400s has less than 1 GiB free for a temporary file", folder);
        return AEGIS_OK;
    }
    AEG_TRY(aeg_path_join(disk->path, folder, "doctor.XXXXXX", err));
    const int fd = mkstemp(disk->path);
    if (fd < 0) {
        snprintf(disk->why_not, sizeof disk->why_not, "%.400s: %s", folder, strerror(errno));
        return AEGIS_OK;
    }
    disk->temporary = true;
    if (!write_temporary(fd))
        snprintf(disk->why_not, sizeof disk->why_not, "%.400s: a temporary file cannot be written", folder);
    close(fd);
    return AEGIS_OK;
}

static aegis_status find_file(aeg_doctor_disk *disk, const char *model, aegis_error *err)
{
    aeg_cli source;
    struct stat st;
    disk->figure.record_bytes = USUAL_RECORD;
    if (model == NULL)
        return make_temporary_file(disk, err);
    if (stat(model, &st) != 0)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "%s", model);
    if (aeg_source_is_store(model))
        return find_store_file(disk, model, err);
    aeg_options_init(&source); /* as a first use without options packs it */
    source.model = model;
    if (aeg_source_is_source(&source)) {
        aeg_outline outline;
        AEG_TRY(aeg_source_outline(&source, &outline, err));
        const bool packed = !outline.is_outline;
        const aegis_status status = packed ? find_store_file(disk, outline.store, err) : find_record(disk, outline.store, err);
        aeg_source_drop(&outline);
        if (packed || status != AEGIS_OK)
            return status;
    }
    if (S_ISDIR(st.st_mode))
        return find_largest_file(disk, model, err);
    if ((size_t)snprintf(disk->path, sizeof disk->path, "%s", model) >= sizeof disk->path)
        return aeg_fail(err, AEGIS_E_USAGE, "the path is too long");
    return AEGIS_OK;
}

/* --- reading --------------------------------------------------------------------------------------------- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* About the golden section of n and coprime to it: successive reads are far apart and none comes twice in n. */
static uint64_t stride_of(uint64_t n)
{
    uint64_t stride = n * 618 / 1000 + 1;
    while (gcd(stride, n) != 1)
        stride++;
    return n > 2 ? stride % n : 1;
}

typedef struct {
    aegis_probe_reads what;
    uint64_t n_records, n_read;
} walk;

static aegis_status step(walk *w, uint32_t depth, bool together, aegis_probe_rate *rate, aegis_error *err)
{
    enum { MEASUREMENTS = 12 };
    w->what.depth = depth;
    w->what.together = together;
    w->what.max_reads = (uint32_t)AEG_MIN(AEG_MAX(w->n_records / MEASUREMENTS, (uint64_t)MIN_READS), 1000000u);
    w->what.max_seconds = SECONDS;
    AEG_TRY(aegis_probe_disk(&w->what, rate, err));
    w->what.first = rate->next;
    w->n_read += rate->n_reads;
    return AEGIS_OK;
}

static double rate_of(const aegis_probe_rate *r) { return r->ns > 0 ? (double)r->bytes * 1e9 / (double)r->ns : 0; }

static aegis_status read_records(aeg_doctor_disk *disk, walk *w, aegis_error *err)
{
    aegis_probe_rate rate;
    for (uint32_t i = 0; i < AEG_DOCTOR_DEPTHS; i++) {
        AEG_TRY(step(w, aeg_doctor_depths[i], false, &rate, err));
        if (i == 0)
            disk->first = rate;
        disk->depth_rate[i] = rate_of(&rate);
        disk->figure.bytes_per_s = AEG_MAX(disk->figure.bytes_per_s, disk->depth_rate[i]);
    }
    for (uint32_t i = 0; i < AEG_DOCTOR_BURSTS; i++) {
        AEG_TRY(step(w, aeg_doctor_bursts[i], true, &rate, err));
        disk->burst_s[i] = (double)rate.batch_ns * 1e-9;
    }
    disk->reread = w->n_read > w->n_records;
    aeg_doctor_fit_bursts(aeg_doctor_bursts, disk->burst_s, AEG_DOCTOR_BURSTS, disk->figure.record_bytes,
                          &disk->figure.burst_bytes_per_s, &disk->figure.burst_latency_s);
    if (disk->figure.burst_bytes_per_s <= 0)
        disk->figure.burst_bytes_per_s = disk->figure.bytes_per_s;
    return AEGIS_OK;
}

static aegis_status read_sequential(aeg_doctor_disk *disk, walk *w, aegis_error *err)
{
    aegis_probe_rate rate;
    walk s = *w;
    s.what.record_bytes = SEQUENTIAL_RECORD;
    s.what.stride = 1;
    s.n_records = aegis_probe_records(disk->file_bytes, SEQUENTIAL_RECORD);
    if (s.n_records == 0)
        return AEGIS_OK;
    s.what.first = w->what.first * w->what.record_bytes / SEQUENTIAL_RECORD % s.n_records;
    AEG_TRY(step(&s, SEQUENTIAL_DEPTH, false, &rate, err));
    disk->sequential_rate = rate_of(&rate);
    return AEGIS_OK;
}

static void try_uring(aeg_doctor_disk *disk)
{
    aegis_probe_rate rate;
    aegis_error err = { .status = AEGIS_OK };
    const aegis_probe_reads one = { .path = disk->path, .record_bytes = 4096, .depth = 1, .stride = 1, .max_reads = 1,
                                    .max_seconds = 1, .io = AEGIS_IO_URING };
    disk->uring = aegis_probe_disk(&one, &rate, &err) == AEGIS_OK;
    disk->uring_code = disk->uring ? 0 : err.os_code;
}

/* As the engine does it: a whole piece of slots. A few records alone may be allowed where a piece is not. */
static void try_registering(aeg_doctor_disk *disk, aegis_io io)
{
    aegis_probe_rate rate = { 0 };
    const aegis_probe_reads one = { .path = disk->path, .record_bytes = disk->figure.record_bytes, .depth = 1, .stride = 1,
                                    .max_reads = 1, .max_seconds = 1, .io = io, .buffer_bytes = AEGIS_PROBE_PIECE };
    disk->registered = aegis_probe_disk(&one, &rate, NULL) == AEGIS_OK && rate.registered;
}

static aegis_status read_file(aeg_doctor_disk *disk, aegis_io io, aegis_error *err)
{
    struct stat st;
    if (stat(disk->path, &st) != 0)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "%s", disk->path);
    disk->file_bytes = (uint64_t)st.st_size;
    walk w = { .what = { .path = disk->path, .record_bytes = disk->figure.record_bytes, .io = io } };
    w.n_records = aegis_probe_records(disk->file_bytes, disk->figure.record_bytes);
    if (w.n_records < 2) {
        snprintf(disk->why_not, sizeof disk->why_not, "%.400s is shorter than two records of %llu bytes", disk->path,
                 (unsigned long long)disk->figure.record_bytes);
        return AEGIS_OK;
    }
    w.what.stride = stride_of(w.n_records);
    /* Another beginning each time: what an earlier run read may lie in a cache of the device. */
    if (getrandom(&w.what.first, sizeof w.what.first, 0) != sizeof w.what.first)
        w.what.first = (uint64_t)time(NULL);
    try_uring(disk);
    try_registering(disk, io);
    AEG_TRY(read_records(disk, &w, err));
    AEG_TRY(read_sequential(disk, &w, err));
    disk->measured = true;
    disk->figure.measured_at = (int64_t)time(NULL);
    return AEGIS_OK;
}

aegis_status aeg_doctor_read_disk(aeg_doctor_disk *disk, const char *model, aegis_io io, aegis_error *err)
{
    AEG_TRY(find_file(disk, model, err));
    aegis_status status = AEGIS_OK;
    if (disk->why_not[0] == '\0')
        status = read_file(disk, io, err);
    if (disk->temporary)
        unlink(disk->path);
    if (status == AEGIS_E_IO && err != NULL) { /* a disk that cannot be read is a finding */
        snprintf(disk->why_not, sizeof disk->why_not, "%s", err->message);
        status = AEGIS_OK;
    }
    return status;
}
