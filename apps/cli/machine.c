/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json.h"
#include "base/process.h"
#include "base/processors.h"

/* The value of the first "key<blanks>: value" line, or NULL; *n are its bytes. */
static const char *cpuinfo_value(const char *text, const char *key, size_t *n)
{
    const char *p = strstr(text, key);
    p = p != NULL ? strstr(p, ": ") : NULL;
    *n = p != NULL ? strcspn(p + 2, "\n") : 0;
    return p != NULL ? p + 2 : NULL;
}

static void describe_processor(aeg_machine *m)
{
    static const char *const used[] = { "avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl",
                                        "avx512_vnni", "avx512_bf16", "amx_int8", "asimd", "asimddp", "i8mm", "sve" };
    char text[8192], word[32];
    size_t n;
    aeg_system_text("/proc/cpuinfo", text, sizeof text);
    const char *name = cpuinfo_value(text, "model name", &n);
    if (name != NULL)
        snprintf(m->processor, sizeof m->processor, "%.*s", (int)n, name);
    const char *flags = cpuinfo_value(text, "\nflags", &n);
    if (flags == NULL)
        flags = cpuinfo_value(text, "\nFeatures", &n);
    for (const char *p = flags; p != NULL && p < flags + n;) {
        const size_t length = strcspn(p, " \n");
        snprintf(word, sizeof word, "%.*s", (int)length, p);
        for (size_t i = 0; i < sizeof used / sizeof used[0]; i++) {
            const size_t at = strlen(m->features);
            if (strcmp(word, used[i]) == 0)
                snprintf(m->features + at, sizeof m->features - at, "%s%s", at > 0 ? " " : "", word);
        }
        p += length + 1;
    }
}

/* How many processors share a core with the first one; 0: not known. */
static uint32_t count_siblings(void)
{
    char text[1024];
    aeg_processor_set siblings;
    return aeg_system_text("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", text, sizeof text) &&
                   aeg_processor_list(text, &siblings)
               ? aeg_processor_count(&siblings) : 0;
}

static void describe_memory(aeg_machine *m)
{
    aeg_machine_memory memory = { 0 };
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    m->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    if (aeg_machine_memory_now(&memory)) {
        m->available_bytes = memory.available_bytes;
        m->limit_bytes = memory.limited_by_cgroup ? memory.total_bytes : 0;
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
        m->memlock_bytes = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
    char text[128];
    aeg_system_text("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text);
    const char *chosen = strchr(text, '['); /* "always [madvise] never" */
    if (chosen != NULL)
        snprintf(m->huge_pages, sizeof m->huge_pages, "%.*s", (int)strcspn(chosen + 1, "]"), chosen + 1);
}

void aeg_machine_describe(aeg_machine *m)
{
    *m = (aeg_machine){ .usable = aeg_usable_processors(), .threads_per_core = count_siblings() };
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    m->cores = cores > 0 ? (uint32_t)cores : 1;
    struct utsname name;
    if (uname(&name) == 0)
        snprintf(m->kernel, sizeof m->kernel, "%.40s %.50s %.20s", name.sysname, name.release, name.machine);
    describe_processor(m);
    describe_memory(m);
}

json_t *aeg_machine_json(const aeg_machine *m)
{
    json_t *limit = m->limit_bytes != 0 ? json_integer((json_int_t)m->limit_bytes) : json_null();
    json_t *lock = m->memlock_bytes != UINT64_MAX ? json_integer((json_int_t)m->memlock_bytes) : json_null();
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:o, s:o, s:s}", "processor", m->processor, "features",
                     m->features, "kernel", m->kernel, "cores", (int)m->cores, "usable_cores", (int)m->usable,
                     "threads_per_core", (int)m->threads_per_core, "memory_bytes", (json_int_t)m->memory_bytes,
                     "available_bytes", (json_int_t)m->available_bytes, "memory_limit", limit, "memlock_bytes", lock,
                     "huge_pages", m->huge_pages);
}
