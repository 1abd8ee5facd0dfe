/* SPDX-License-Identifier: Apache-2.0 */
#include "format/rawfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

aegis_status aeg_raw_open(aeg_raw *out, const char *name, aegis_error *err)
{
    bool direct = true;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (fd < 0 && errno == EINVAL) { /* tmpfs before 6.6 and some overlays refuse the flag */
        direct = false;
        fd = open(name, O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0)
        return aeg_fail_os(err, errno == ENOENT || errno == ENOTDIR ? AEGIS_E_MODEL : AEGIS_E_IO, errno, "%s", name);
    struct stat st;
    if (fstat(fd, &st) != 0) {
        const int code = errno;
        close(fd);
        return aeg_fail_os(err, AEGIS_E_IO, code, "%s", name);
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return aeg_fail(err, AEGIS_E_MODEL, "%s: not a regular file", name);
    }
    if (!direct) /* read-ahead would be page cache charged to us */
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    *out = (aeg_raw){ .fd = fd, .direct = direct, .bytes = (uint64_t)st.st_size, .name = name };
    return AEGIS_OK;
}

void aeg_raw_close(aeg_raw *raw)
{
    if (raw->name != NULL)
        close(raw->fd);
    *raw = (aeg_raw){ 0 };
}

/* Some file systems take the flag at open and refuse the read. */
static bool leave_direct(aeg_raw *raw)
{
    const int flags = fcntl(raw->fd, F_GETFL);
    if (!raw->direct || flags < 0 || fcntl(raw->fd, F_SETFL, flags & ~O_DIRECT) != 0)
        return false;
    raw->direct = false;
    posix_fadvise(raw->fd, 0, 0, POSIX_FADV_RANDOM);
    return true;
}

aegis_status aeg_raw_view(aeg_raw *raw, uint64_t offset, size_t n, uint8_t *buffer, const uint8_t **out,
                          aegis_error *err)
{
    uint64_t end;
    if (!aeg_add(offset, n, &end) || end > raw->bytes)
        return aeg_fail(err, AEGIS_E_IO, "%s: %zu bytes at offset %llu, but the file has %llu", raw->name, n,
                        (unsigned long long)offset, (unsigned long long)raw->bytes);
    const uint64_t first = offset & ~(uint64_t)(AEG_RAW_ALIGN - 1);
    const size_t head = (size_t)(offset - first), wanted = head + n;
    const size_t room = (size_t)aeg_align_up(wanted, AEG_RAW_ALIGN);
    size_t done = 0;
    while (done < wanted) {
        /* A short direct read ends at a block boundary or at the end of the file. */
        const ssize_t got = pread(raw->fd, buffer + done, room - done, (off_t)(first + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EINVAL && leave_direct(raw))
            continue;
        if (got < 0)
            return aeg_fail_os(err, AEGIS_E_IO, errno, "%s: reading %zu bytes at offset %llu", raw->name, n,
                               (unsigned long long)offset);
        size_t now = done + (size_t)got;
        if (now < wanted && raw->direct) /* go on from an aligned position; no progress means the end */
            now &= ~(size_t)(AEG_RAW_ALIGN - 1);
        if (now == done)
            return aeg_fail(err, AEGIS_E_IO, "%s: the file ends at byte %llu, expected %llu bytes", raw->name,
                            (unsigned long long)(first + done + (size_t)got), (unsigned long long)raw->bytes);
        done = now;
    }
    if (!raw->direct)
        posix_fadvise(raw->fd, (off_t)first, (off_t)room, POSIX_FADV_DONTNEED);
    *out = buffer + head;
    return AEGIS_OK;
}

/* The counted block is found again through a pointer kept just before the aligned bytes. */
uint8_t *aeg_raw_buffer(aeg_memory *memory, size_t n)
{
    uint64_t bytes;
    if (!aeg_add(n, AEG_RAW_ALIGN + sizeof(void *), &bytes))
        return NULL;
    uint8_t *block = aeg_malloc(memory, (size_t)bytes);
    if (block == NULL)
        return NULL;
    uint8_t *p = (uint8_t *)(uintptr_t)aeg_align_up((uintptr_t)(block + sizeof(void *)), AEG_RAW_ALIGN);
    memcpy(p - sizeof block, &block, sizeof block);
    return p;
}

void aeg_raw_buffer_free(aeg_memory *memory, uint8_t *buffer)
{
    if (buffer == NULL)
        return;
    uint8_t *block;
    memcpy(&block, buffer - sizeof block, sizeof block);
    aeg_free(memory, block);
}
