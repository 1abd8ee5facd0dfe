/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/process.h"
#include "plan/plan.h"

/* Measured on x86-64 Linux 6 (tests/property/budget); the rest of a process that has mapped no arena. */
enum {
    ANON_BYTES = 1536 << 10,      /* heap, main stack, relocated data of libraries            */
    KERNEL_BYTES = 768 << 10,     /* task, descriptors, page tables of the libraries, rings   */
    MORE_BYTES = 512 << 10,       /* what a process that holds more than that still grows by  */
    THREAD_BYTES = 48 << 10,      /* kernel stack and task of one more thread                 */
    MAX_FILES = 64,
};

static bool next_line(int fd, char *buf, size_t size, size_t *held, char *line, size_t line_size)
{
    for (;;) {
        char *end = memchr(buf, '\n', *held);
        if (end != NULL) {
            const size_t n = (size_t)(end - buf);
            const size_t m = AEG_MIN(n, line_size - 1);
            memcpy(line, buf, m);
            line[m] = '\0';
            memmove(buf, end + 1, *held - n - 1);
            *held -= n + 1;
            return true;
        }
        if (*held == size)
            *held = 0; /* a line longer than the buffer: not one of ours */
        const ssize_t got = read(fd, buf + *held, size - *held);
        if (got <= 0)
            return false;
        *held += (size_t)got;
    }
}

/* Sizes of the distinct files that are mapped: the binary and its libraries. */
static uint64_t mapped_file_bytes(void)
{
    struct { dev_t dev; ino_t ino; } seen[MAX_FILES];
    size_t n_seen = 0, held = 0;
    uint64_t sum = 0;
    char buf[4096], line[1024];
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 8u << 20; /* no /proc: assume a usual set of libraries */
    while (next_line(fd, buf, sizeof buf, &held, line, sizeof line)) {
        const char *path = strchr(line, '/');
        struct stat st;
        if (path == NULL || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        bool known = false;
        for (size_t i = 0; i < n_seen; i++)
            known |= seen[i].dev == st.st_dev && seen[i].ino == st.st_ino;
        if (known || n_seen == MAX_FILES)
            continue;
        seen[n_seen].dev = st.st_dev;
        seen[n_seen++].ino = st.st_ino;
        sum += aeg_align_up((uint64_t)st.st_size, AEG_PAGE);
    }
    close(fd);
    return sum;
}

uint64_t aeg_runtime_bytes(uint32_t n_threads, uint64_t mapped_bytes)
{
    /* 8 bytes of page table per 4 KiB page, and a little for the upper levels of each arena. */
    const uint64_t page_tables = aeg_align_up(mapped_bytes / 512, AEG_PAGE) + 2 * AEG_N_ACCOUNTS * AEG_PAGE;
    uint64_t process = mapped_file_bytes() + ANON_BYTES;
    /* A program that embeds the engine may hold more already: then that is what it costs. */
    aeg_process_memory now;
    if (aeg_process_memory_now(&now))
        process = AEG_MAX(process, now.rss_bytes + MORE_BYTES);
    return process + KERNEL_BYTES + (uint64_t)n_threads * THREAD_BYTES + page_tables;
}
