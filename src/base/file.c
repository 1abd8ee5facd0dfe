/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

aegis_status aeg_file_pread(int fd, void *dst, size_t n, uint64_t offset, const char *name,
                            aegis_error *err)
{
    uint8_t *p = dst;
    size_t done = 0;
    while (done < n) {
        const ssize_t got = pread(fd, p + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return aeg_fail_os(err, AEGIS_E_IO, errno, "%s: reading %zu bytes at offset %llu", name, n,
                               (unsigned long long)offset);
        if (got == 0)
            return aeg_fail(err, AEGIS_E_IO, "%s: file ends at byte %llu, expected %zu bytes at offset %llu",
                            name, (unsigned long long)(offset + done), n, (unsigned long long)offset);
        done += (size_t)got;
    }
    return AEGIS_OK;
}

aegis_status aeg_file_read(char **out, size_t *n, const char *path, size_t max, aeg_memory *memory,
                           aegis_error *err)
{
    /* Without O_NONBLOCK opening a named pipe waits for a writer; regular files ignore it. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "%s", path);

    aegis_status status = AEGIS_OK;
    char *data = NULL;
    struct stat st;
    if (fstat(fd, &st) != 0) {
        status = aeg_fail_os(err, AEGIS_E_IO, errno, "%s", path);
        goto done;
    }
    if (!S_ISREG(st.st_mode)) {
        status = aeg_fail(err, AEGIS_E_MODEL, "%s: not a regular file", path);
        goto done;
    }
    if ((uint64_t)st.st_size > max) {
        status = aeg_fail(err, AEGIS_E_MODEL, "%s: %llu bytes, expected at most %zu", path,
                          (unsigned long long)st.st_size, max);
        goto done;
    }
    /* No read-ahead beyond what we ask for: it would be page cache charged to us. */
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    data = aeg_malloc(memory, (size_t)st.st_size + 1);
    if (data == NULL) {
        status = aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for its %llu bytes", path,
                          (unsigned long long)st.st_size);
        goto done;
    }
    AEG_TRY_GOTO(aeg_file_pread(fd, data, (size_t)st.st_size, 0, path, err));
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    data[st.st_size] = '\0';
    *out = data;
    *n = (size_t)st.st_size;
    data = NULL;
done:
    aeg_free(memory, data);
    close(fd);
    return status;
}

static aegis_status write_all(int fd, const char *path, const void *data, size_t n, aegis_error *err)
{
    const uint8_t *p = data;
    size_t done = 0;
    while (done < n) {
        const ssize_t put = write(fd, p + done, n - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return aeg_fail_os(err, AEGIS_E_IO, errno, "%s: writing %zu bytes", path, n);
        done += (size_t)put;
    }
    if (fsync(fd) != 0)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "%s: fsync", path);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return AEGIS_OK;
}

aegis_status aeg_file_write(const char *path, const void *data, size_t n, aegis_error *err)
{
    char tmp[AEG_PATH_MAX + 32];
    snprintf(tmp, sizeof tmp, "%s.tmp.%ld", path, (long)getpid());
    const int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "writing %s", path);
    aegis_status status = write_all(fd, path, data, n, err);
    if (close(fd) != 0 && status == AEGIS_OK)
        status = aeg_fail_os(err, AEGIS_E_IO, errno, "%s: close", path);
    if (status == AEGIS_OK && rename(tmp, path) != 0)
        status = aeg_fail_os(err, AEGIS_E_IO, errno, "%s: rename", path);
    if (status != AEGIS_OK)
        unlink(tmp);
    return status;
}

bool aeg_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool aeg_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

aegis_status aeg_path_join(char *out, const char *dir, const char *name, aegis_error *err)
{
    const int n = snprintf(out, AEG_PATH_MAX, "%s/%s", dir, name);
    if (n < 0 || n >= AEG_PATH_MAX)
        return aeg_fail(err, AEGIS_E_USAGE, "path '%.200s/%.200s' is longer than %d bytes", dir, name,
                        AEG_PATH_MAX - 1);
    return AEGIS_OK;
}

aegis_status aeg_make_dirs(const char *path, aegis_error *err)
{
    char part[AEG_PATH_MAX];
    const size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return aeg_fail(err, AEGIS_E_USAGE, "path of %zu bytes, expected 1 to %d", n, AEG_PATH_MAX - 1);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        const char saved = part[i];
        part[i] = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return aeg_fail_os(err, AEGIS_E_IO, errno, "creating folder %s", part);
        part[i] = saved;
    }
    if (!aeg_is_directory(path))
        return aeg_fail(err, AEGIS_E_IO, "%s: not a folder", path);
    return AEGIS_OK;
}
