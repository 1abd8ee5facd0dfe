/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/log.h"
#include "io/backend.h"

static void set_name(io_file *file, const char *path)
{
    const size_t n = strlen(path);
    if (n < IO_NAME_MAX)
        memcpy(file->name, path, n + 1);
    else
        snprintf(file->name, sizeof file->name, "...%s", path + n - (IO_NAME_MAX - 4));
}

/* Some file systems accept the flag and refuse the first read. The block probed, and the address it goes to,
 * are at odd multiples of AEG_IO_ALIGN where the file is long enough, so that a device which wants more
 * alignment than ours says so here. */
static int probe_direct(int fd, uint64_t bytes, uint8_t *bounce)
{
    const uint64_t offset = bytes >= 2 * AEG_IO_ALIGN ? AEG_IO_ALIGN : 0;
    ssize_t n;
    do
        n = pread(fd, bounce + AEG_IO_ALIGN, AEG_IO_ALIGN, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n < 0 ? errno : 0;
}

static bool refuses_direct(int os_code) { return os_code == EINVAL || os_code == EOPNOTSUPP; }

/* *fd stays -1 where O_DIRECT is refused. */
static aegis_status open_direct(int *fd, const char *path, uint8_t *bounce, aegis_error *err)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (*fd < 0)
        return refuses_direct(errno) ? AEGIS_OK : aeg_fail_os(err, AEGIS_E_IO, errno, "%s", path);
    int os_code = fstat(*fd, &st) != 0 ? errno : 0;
    if (os_code == 0 && S_ISREG(st.st_mode))
        os_code = probe_direct(*fd, (uint64_t)st.st_size, bounce);
    if (os_code == 0)
        return AEGIS_OK;
    close(*fd);
    *fd = -1;
    return refuses_direct(os_code) ? AEGIS_OK : aeg_fail_os(err, AEGIS_E_IO, os_code, "%s: first read", path);
}

aegis_status aeg_io_file_open(io_file *file, const char *path, bool buffered, bool keep_cache,
                              uint8_t *bounce, aegis_error *err)
{
    int fd = -1;
    struct stat st;

    if (!buffered)
        AEG_TRY(open_direct(&fd, path, bounce, err));
    const bool direct = fd >= 0;
    if (!direct) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return aeg_fail_os(err, AEGIS_E_IO, errno, "%s", path);
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return aeg_fail(err, AEGIS_E_IO, "%s: not a regular file", path);
    }
    /* Read-ahead would be page cache charged to us for bytes that nobody asked for. */
    if (!direct && !keep_cache)
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    if (!direct && !buffered)
        aeg_log(AEG_LOG_NOTICE, "%s: direct reads are refused here, so reads are buffered and their pages dropped",
                path);
    *file = (io_file){ .fd = fd, .direct = direct, .drop = !direct && !keep_cache, .bytes = (uint64_t)st.st_size };
    set_name(file, path);
    return AEGIS_OK;
}

void aeg_io_file_drop(const io_file *file, uint64_t offset, uint64_t bytes)
{
    if (file->drop)
        posix_fadvise(file->fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}

bool aeg_io_progress(const io_file *file, io_request *request, int64_t result)
{
    if (result == -EINTR)
        return false;
    if (result == -EAGAIN && ++request->tries < IO_MAX_TRIES)
        return false;
    if (result < 0) {
        request->os_code = (int)-result;
        return true;
    }
    const uint32_t before = request->got;
    request->got += (uint32_t)result;
    if (request->got >= request->want)
        return true;
    if (file->direct)
        request->got &= ~(uint32_t)(AEG_IO_ALIGN - 1); /* a direct read may only go on at a block */
    if (result == 0 || (request->got == before && ++request->tries >= IO_MAX_TRIES)) {
        request->os_code = EIO; /* the file has become shorter since it was opened */
        return true;
    }
    return false;
}
