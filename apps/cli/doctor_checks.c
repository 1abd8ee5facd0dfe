/* SPDX-License-Identifier: Apache-2.0 */
/* From findings to items: what is fine, what could be better, what does not work, and what to do about it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/size.h"
#include "doctor.h"

static const double SLOW_DISK = 500e6;         /* bytes per second: below a token a second for most models */
static const uint64_t SMALL_MEMORY = 2ull << 30;

static aeg_doctor_item *add(aeg_doctor *d, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static aeg_doctor_item *add(aeg_doctor *d, const char *name, const char *fmt, ...)
{
    aeg_doctor_item *item = &d->items[d->n_items++];
    va_list ap;
    *item = (aeg_doctor_item){ .name = name };
    va_start(ap, fmt);
    vsnprintf(item->found, sizeof item->found, fmt, ap);
    va_end(ap);
    return item;
}

static void advise(aeg_doctor_item *item, aeg_doctor_state state, const char *what)
{
    item->state = state;
    snprintf(item->advice, sizeof item->advice, "%s", what);
}

static void judge_reads(aeg_doctor *d)
{
    const aeg_doctor_disk *k = &d->disk;
    aeg_doctor_item *item = add(d, "direct reads", "%s", k->first.direct ? "O_DIRECT works on this filesystem" : "O_DIRECT is refused");
    if (!k->first.direct)
        advise(item, AEG_DOCTOR_FAIL, "Put the store on a filesystem that takes O_DIRECT (ext4, xfs, btrfs on a local disk): "
               "buffered reads cost processor time and page cache.");
    item = add(d, "io_uring", "%s", k->uring ? "available" : k->uring_code != 0 ? strerror(k->uring_code) : "refused");
    if (!k->uring)
        advise(item, AEG_DOCTOR_ADVICE, "Allow it (sysctl kernel.io_uring_disabled=0, or in the container's seccomp profile); "
               "until then a few threads read.");
    item = add(d, "registered buffers", "%s", k->registered ? "yes" : "no: a piece of 16 MiB, as the engine's slots are registered, is refused");
    if (!k->registered)
        advise(item, AEG_DOCTOR_ADVICE, "Needs io_uring and locked memory as large as the expert slots: raise the limit (ulimit -l, or "
               "memlock in /etc/security/limits.conf); until then reads cost more processor time.");
}

static void judge_disk(aeg_doctor *d)
{
    const aeg_doctor_disk *k = &d->disk;
    char record[AEG_SIZE_TEXT];
    if (!k->measured) {
        aeg_doctor_item *item = add(d, "disk", "%.200s", k->why_not);
        advise(item, AEG_DOCTOR_FAIL, "Name a store or a folder with model files on the disk that is meant: aegis doctor MODEL.");
        return;
    }
    judge_reads(d);
    aeg_doctor_item *item = add(d, "disk", "%.2f GB/s for random reads of %s, %.2f GB/s sequential%s", k->figure.bytes_per_s * 1e-9,
                                aeg_size_format(record, k->figure.record_bytes), k->sequential_rate * 1e-9,
                                k->reread ? "; the file is small, so records were read again and a cache may have helped" : "");
    if (k->figure.bytes_per_s < SLOW_DISK)
        advise(item, AEG_DOCTOR_ADVICE, "Decode will wait for this disk: put the store on an NVMe drive, or give more --memory.");
    else if (k->reread)
        advise(item, AEG_DOCTOR_ADVICE, "Measure with a larger model for a figure that can be trusted.");
}

static void judge_memory(aeg_doctor *d)
{
    const aeg_machine *m = &d->machine;
    char total[AEG_SIZE_TEXT], available[AEG_SIZE_TEXT], limit[AEG_SIZE_TEXT];
    aeg_doctor_item *item = add(d, "memory", "%s, %s available%s%s", aeg_size_format(total, m->memory_bytes),
                                aeg_size_format(available, m->available_bytes),
                                m->limit_bytes != 0 ? ", memory cgroup limited to " : ", no limit by a memory cgroup",
                                m->limit_bytes != 0 ? aeg_size_format(limit, m->limit_bytes) : "");
    if (m->available_bytes < SMALL_MEMORY)
        advise(item, AEG_DOCTOR_ADVICE, "Free memory or raise the cgroup's limit: large models need a budget of 2 GiB or more.");
    item = add(d, "locked memory", "%s", m->memlock_bytes == UINT64_MAX ? "no limit" : aeg_size_format(limit, m->memlock_bytes));
    if (d->disk.measured && d->disk.uring && !d->disk.registered)
        advise(item, AEG_DOCTOR_ADVICE, "Raise the limit (ulimit -l) so that expert slots can be registered with the ring.");
    item = add(d, "huge pages", "%s", m->huge_pages[0] != '\0' ? m->huge_pages : "not known");
    if (strcmp(m->huge_pages, "never") == 0)
        advise(item, AEG_DOCTOR_ADVICE, "Write madvise to /sys/kernel/mm/transparent_hugepage/enabled: weights are then read with "
               "fewer address translations.");
}

static void judge_processor(aeg_doctor *d)
{
    const aeg_machine *m = &d->machine;
    aeg_doctor_item *item = add(d, "processor", "%s: %s", m->processor[0] != '\0' ? m->processor : "unknown",
                                m->features[0] != '\0' ? m->features : "no feature the kernels use");
    item = add(d, "kernels", "%s", d->kernels);
    if (d->dropped != NULL)
        advise(item, AEG_DOCTOR_FAIL, "Faster kernels gave wrong answers here and are not used: report it with the output of "
               "aegis doctor --json.");
    else if (strcmp(d->kernels, "scalar") == 0)
        advise(item, AEG_DOCTOR_FAIL, "Use a processor with AVX2 or NEON: the scalar kernels are slow.");
    item = add(d, "cores", "%u, of which this process may use %u%s", m->cores, m->usable,
               m->threads_per_core > 1 ? "; two or more of them share a core" : "");
    if (m->threads_per_core > 1 && d->knee < m->usable)
        advise(item, AEG_DOCTOR_ADVICE, "Try --threads with half as many: threads that share a core add little.");
    else if (m->usable < m->cores)
        advise(item, AEG_DOCTOR_ADVICE, "Widen the affinity (taskset, cpuset) if the other processors are meant to be used.");
}

static void judge_bandwidth(aeg_doctor *d)
{
    double best = 0;
    for (uint32_t i = 0; i < d->n_steps; i++)
        best = AEG_MAX(best, d->bandwidth[i].median);
    for (uint32_t i = 0; i < d->n_steps && d->knee == 0; i++)
        if (d->bandwidth[i].median >= 0.95 * best)
            d->knee = d->threads[i];
    d->disk.figure.read_bandwidth = best;
    aeg_doctor_item *item = add(d, "memory reads", "%.1f GB/s, reached with %u thread%s", best * 1e-9, d->knee, d->knee == 1 ? "" : "s");
    if (best <= 0)
        advise(item, AEG_DOCTOR_FAIL, "The measurement could not run: free 256 MiB of memory and try again.");
}

void aeg_doctor_judge(aeg_doctor *d)
{
    judge_disk(d);
    judge_memory(d);
    judge_bandwidth(d);
    judge_processor(d);
    add(d, "GPU", "not in this version");
}
