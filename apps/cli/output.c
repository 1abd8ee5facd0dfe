/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"

enum { ELEMENT = 4, MAX_HEADER = 2048, SYNC_EVERY = 256 << 10 };

static aegis_status write_at(aeg_output *out, const void *data, size_t n, uint64_t offset, aegis_error *err)
{
    const uint8_t *p = data;
    for (size_t done = 0; done < n;) {
        const ssize_t put = pwrite(out->fd, p + done, n - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return aeg_fail_os(err, AEGIS_E_IO, errno, "%s: writing %zu bytes", out->path, n);
        done += (size_t)put;
    }
    out->unsynced += n;
    if (out->unsynced >= SYNC_EVERY) {
        sync_file_range(out->fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
        posix_fadvise(out->fd, 0, 0, POSIX_FADV_DONTNEED);
        out->unsynced = 0;
    }
    return AEGIS_OK;
}

/* The tensor's part of the header; its place in the data. */
static aegis_status describe(aeg_output_tensor *t, uint64_t *end, char *header, size_t *n, aegis_error *err)
{
    uint64_t bytes = ELEMENT;
    char shape[128] = "";
    for (uint32_t i = 0; i < t->n_dims; i++) {
        const size_t used = strlen(shape);
        snprintf(shape + used, sizeof shape - used, "%s%llu", i > 0 ? "," : "", (unsigned long long)t->dims[i]);
        if (!aeg_mul(bytes, t->dims[i], &bytes))
            return aeg_fail(err, AEGIS_E_USAGE, "tensor '%s' would not fit 64 bits", t->name);
    }
    t->offset = *end;
    t->row_bytes = t->dims[t->n_dims - 1] * ELEMENT;
    if (!aeg_add(*end, bytes, end))
        return aeg_fail(err, AEGIS_E_USAGE, "tensor '%s' would not fit 64 bits", t->name);
    *n += (size_t)snprintf(header + *n, MAX_HEADER - *n, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%llu,%llu]}",
                           *n > 1 ? "," : "", t->name, t->dtype, shape, (unsigned long long)t->offset,
                           (unsigned long long)*end);
    return AEGIS_OK;
}

/* The rename at the end would put a file in the place of a device or a pipe. A link is followed: the file it
 * leads to is replaced, and the link stays. */
static aegis_status choose_paths(aeg_output *out, const char *path, aegis_error *err)
{
    struct stat old;
    char target[PATH_MAX];
    const bool exists = lstat(path, &old) == 0, link = exists && S_ISLNK(old.st_mode);
    if ((link && stat(path, &old) != 0) || (exists && !S_ISREG(old.st_mode)))
        return aeg_fail(err, AEGIS_E_USAGE, "%s: exists and is not a regular file; name another output", path);
    if (link && realpath(path, target) == NULL)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "%s", path);
    const char *file = link ? target : path;
    if (snprintf(out->path, sizeof out->path, "%s", file) >= (int)sizeof out->path ||
        snprintf(out->partial, sizeof out->partial, "%s.partial.%ld", file, (long)getpid()) >= (int)sizeof out->partial)
        return aeg_fail(err, AEGIS_E_USAGE, "the path of the output is too long");
    return AEGIS_OK;
}

aegis_status aeg_output_check(const char *path, aegis_error *err)
{
    aeg_output out;
    AEG_TRY(choose_paths(&out, path, err));
    char *slash = strrchr(out.partial, '/');
    if (slash == NULL)
        memcpy(out.partial, ".", 2);
    else
        slash[slash == out.partial] = '\0';
    return access(out.partial, W_OK | X_OK) == 0 ? AEGIS_OK : aeg_fail_os(err, AEGIS_E_IO, errno, "output %s", out.path);
}

aegis_status aeg_output_open(aeg_output *out, const char *path, const aeg_output_tensor *tensors, uint32_t n_tensors,
                             aegis_error *err)
{
    char header[MAX_HEADER] = "{";
    size_t n = 1;
    uint64_t end = 0;
    *out = (aeg_output){ .fd = -1, .n_tensors = n_tensors };
    for (uint32_t i = 0; i < n_tensors; i++) {
        out->tensors[i] = tensors[i];
        AEG_TRY(describe(&out->tensors[i], &end, header, &n, err));
    }
    header[n++] = '}';
    while (n % 8 != 0) /* data begins on a multiple of 8 */
        header[n++] = ' ';
    out->data_start = 8 + n;

    AEG_TRY(choose_paths(out, path, err));
    out->fd = open(out->partial, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (out->fd < 0)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "output %s", out->path);
    uint8_t size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (uint8_t)((uint64_t)n >> 8 * i);
    aegis_status status = AEGIS_OK;
    if (ftruncate(out->fd, (off_t)(out->data_start + end)) != 0)
        status = aeg_fail_os(err, AEGIS_E_IO, errno, "%s: making a file of %llu bytes", path,
                             (unsigned long long)(out->data_start + end));
    if (status == AEGIS_OK)
        status = write_at(out, size, sizeof size, 0, err);
    if (status == AEGIS_OK)
        status = write_at(out, header, n, 8, err);
    if (status != AEGIS_OK)
        aeg_output_close(out, true, NULL);
    return status;
}

aegis_status aeg_output_row(aeg_output *out, uint32_t tensor, uint64_t row, const void *data, aegis_error *err)
{
    const aeg_output_tensor *t = &out->tensors[tensor];
    return write_at(out, data, t->row_bytes, out->data_start + t->offset + row * t->row_bytes, err);
}

aegis_status aeg_output_close(aeg_output *out, bool failed, aegis_error *err)
{
    if (out->fd < 0)
        return AEGIS_OK;
    aegis_status status = AEGIS_OK;
    if (!failed && fsync(out->fd) != 0 && errno != EINVAL && errno != EROFS) /* pipes and devices cannot */
        status = aeg_fail_os(err, AEGIS_E_IO, errno, "%s: fsync", out->path);
    posix_fadvise(out->fd, 0, 0, POSIX_FADV_DONTNEED);
    if (close(out->fd) != 0 && status == AEGIS_OK)
        status = aeg_fail_os(err, AEGIS_E_IO, errno, "%s: close", out->path);
    if (!failed && status == AEGIS_OK && rename(out->partial, out->path) != 0)
        status = aeg_fail_os(err, AEGIS_E_IO, errno, "%s: rename", out->path);
    if (failed || status != AEGIS_OK)
        unlink(out->partial);
    out->fd = -1;
    return status;
}
