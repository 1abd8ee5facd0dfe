/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No stdio: it would allocate. */
bool aeg_system_text(const char *path, char *out, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    while (fd >= 0 && n < size - 1) {
        const ssize_t got = read(fd, out + n, size - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    out[n] = '\0';
    return n > 0;
}

/* "Key:   123 kB" -> bytes. */
static uint64_t kib_field(const char *text, const char *key)
{
    const char *p = strstr(text, key);
    return p == NULL ? 0 : strtoull(p + strlen(key), NULL, 10) * 1024;
}

bool aeg_process_memory_now(aeg_process_memory *out)
{
    char text[4096];
    if (!aeg_system_text("/proc/self/status", text, sizeof text))
        return false;
    *out = (aeg_process_memory){
        .rss_bytes = kib_field(text, "VmRSS:"),
        .peak_bytes = kib_field(text, "VmHWM:"),
        .page_table_bytes = kib_field(text, "VmPTE:"),
    };
    return true;
}

/* The folder of our memory cgroup; version 2 has the line "0::/path", version 1 "N:memory:/path". */
static bool cgroup_folder(char *out, size_t size, bool *v2)
{
    char text[4096];
    if (!aeg_system_text("/proc/self/cgroup", text, sizeof text))
        return false;
    char *save = NULL;
    bool found = false;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        const char *p = strstr(line, ":memory:");
        if (p != NULL) {
            snprintf(out, size, "/sys/fs/cgroup/memory%s", p + strlen(":memory:"));
            *v2 = false;
            return true;
        }
        if (strncmp(line, "0::", 3) == 0) {
            snprintf(out, size, "/sys/fs/cgroup%s", line + 3);
            *v2 = true;
            found = true;
        }
    }
    return found;
}

static bool read_number(const char *folder, const char *file, uint64_t *out)
{
    char path[4400], text[64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (!aeg_system_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return false; /* "max" means no limit */
    *out = strtoull(text, NULL, 10);
    return true;
}

static uint64_t reclaimable(const char *folder)
{
    char path[4400], text[8192];
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (!aeg_system_text(path, text, sizeof text))
        return 0;
    uint64_t sum = 0;
    static const char *const keys[] = { "\ninactive_file ", "\nactive_file " };
    for (size_t i = 0; i < 2; i++) {
        const char *p = strstr(text, keys[i]);
        if (p != NULL)
            sum += strtoull(p + strlen(keys[i]), NULL, 10);
    }
    return sum;
}

bool aeg_machine_memory_now(aeg_machine_memory *out)
{
    char text[8192];
    if (!aeg_system_text("/proc/meminfo", text, sizeof text))
        return false;
    aeg_machine_memory m = {
        .total_bytes = kib_field(text, "MemTotal:"),
        .available_bytes = kib_field(text, "MemAvailable:"),
    };

    char folder[4096];
    bool v2 = false;
    uint64_t limit = 0, usage = 0;
    if (cgroup_folder(folder, sizeof folder, &v2) &&
        read_number(folder, v2 ? "memory.max" : "memory.limit_in_bytes", &limit) && limit < m.total_bytes) {
        m.limited_by_cgroup = true;
        m.total_bytes = limit;
        read_number(folder, v2 ? "memory.current" : "memory.usage_in_bytes", &usage);
        const uint64_t cache = reclaimable(folder);
        const uint64_t held = usage > cache ? usage - cache : 0;
        const uint64_t room = limit > held ? limit - held : 0;
        if (room < m.available_bytes)
            m.available_bytes = room;
    }
    *out = m;
    return true;
}
