/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/size.h"

static bool is_dots(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

static bool is_empty_folder(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return false;
    bool empty = true;
    for (const struct dirent *e; empty && (e = readdir(dir)) != NULL;)
        empty = is_dots(e->d_name);
    closedir(dir);
    return empty;
}

aegis_status aeg_folder_check(aeg_pack_folder *f, const char *dst, aegis_error *err)
{
    static const char suffix[] = ".aegis-part";
    size_t n = strlen(dst);
    *f = (aeg_pack_folder){ .fd = -1 };
    while (n > 1 && dst[n - 1] == '/')
        n--;
    if (n == 0 || n + sizeof suffix > sizeof f->part)
        return aeg_fail(err, AEGIS_E_USAGE, "destination of %zu bytes, expected 1 to %zu", n, sizeof f->part - sizeof suffix);
    memcpy(f->dst, dst, n);
    memcpy(f->part, dst, n);
    memcpy(f->part + n, suffix, sizeof suffix);
    const char *slash = strrchr(f->dst, '/');
    if (slash == NULL)
        memcpy(f->parent, ".", 2);
    else if (slash == f->dst)
        memcpy(f->parent, "/", 2);
    else
        memcpy(f->parent, f->dst, (size_t)(slash - f->dst));
    const char *last = slash == NULL ? f->dst : slash + 1;
    if (*last == '\0' || is_dots(last))
        return aeg_fail(err, AEGIS_E_USAGE, "destination '%s' has no name of its own", f->dst);
    struct stat st;
    if (lstat(f->dst, &st) == 0 && !is_empty_folder(f->dst))
        return aeg_fail(err, AEGIS_E_USAGE, "%s: exists and is not an empty folder", f->dst);
    return AEGIS_OK;
}

aegis_status aeg_folder_space(const aeg_pack_folder *f, uint64_t needed, aegis_error *err)
{
    struct statvfs s;
    char path[AEG_PATH_MAX], a[AEG_SIZE_TEXT], b[AEG_SIZE_TEXT], c[AEG_SIZE_TEXT];
    memcpy(path, f->parent, sizeof path);
    while (statvfs(path, &s) != 0) { /* the parent may not exist yet: ask the nearest that does, at last "/" or "." */
        char *slash = strrchr(path, '/');
        if (errno != ENOENT || strcmp(path, "/") == 0 || strcmp(path, ".") == 0)
            return aeg_fail_os(err, AEGIS_E_IO, errno, "%s", f->parent);
        if (slash == NULL)
            memcpy(path, ".", 2);
        else
            slash[slash == path] = '\0';
    }
    const uint64_t available = (uint64_t)s.f_bavail * s.f_frsize;
    if (available >= needed)
        return AEGIS_OK;
    return aeg_fail(err, AEGIS_E_IO, "%s: the store needs %s and %s are free: %s are missing", f->dst,
                    aeg_size_format(a, needed), aeg_size_format(b, available), aeg_size_format(c, needed - available));
}

static void remove_files(int fd)
{
    const int copy = dup(fd);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (dir == NULL) {
        if (copy >= 0)
            close(copy);
        return;
    }
    rewinddir(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (!is_dots(e->d_name))
            unlinkat(fd, e->d_name, 0);
    closedir(dir);
}

/* Make and lock the folder. *again: another packer removed or renamed it between the two. */
static aegis_status lock_part(aeg_pack_folder *f, bool *again, aegis_error *err)
{
    struct stat by_fd, by_path;
    *again = false;
    if (mkdir(f->part, 0755) != 0 && errno != EEXIST)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "creating folder %s", f->part);
    const int fd = open(f->part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        *again = errno == ENOENT;
        return aeg_fail_os(err, AEGIS_E_IO, errno, "%s", f->part);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int code = errno;
        close(fd);
        if (code == EWOULDBLOCK)
            return aeg_fail(err, AEGIS_E_USAGE, "%s: another process is packing there", f->part);
        return aeg_fail_os(err, AEGIS_E_IO, code, "locking %s", f->part);
    }
    if (fstat(fd, &by_fd) != 0 || stat(f->part, &by_path) != 0 || by_fd.st_ino != by_path.st_ino ||
        by_fd.st_dev != by_path.st_dev) {
        close(fd);
        *again = true;
        return aeg_fail(err, AEGIS_E_IO, "%s: another process keeps replacing it", f->part);
    }
    f->fd = fd;
    return AEGIS_OK;
}

aegis_status aeg_folder_begin(aeg_pack_folder *f, aegis_error *err)
{
    enum { TRIES = 10 };
    bool again = true;
    aegis_status status = AEGIS_OK;
    AEG_TRY(aeg_make_dirs(f->parent, err));
    for (int i = 0; i < TRIES && again; i++)
        status = lock_part(f, &again, err);
    AEG_TRY(status);
    remove_files(f->fd); /* of a packer that was killed */
    if (!is_empty_folder(f->part)) {
        close(f->fd);
        f->fd = -1;
        return aeg_fail(err, AEGIS_E_IO, "%s: not empty, and its contents cannot be removed", f->part);
    }
    return AEGIS_OK;
}

aegis_status aeg_folder_hole(const aeg_pack_folder *f, const char *name, uint64_t bytes, aegis_error *err)
{
    const int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const bool failed = fd < 0 || ftruncate(fd, (off_t)bytes) != 0;
    const int code = errno;
    if (fd >= 0)
        close(fd);
    return failed ? aeg_fail_os(err, AEGIS_E_IO, code, "%s/%s of %llu bytes", f->part, name, (unsigned long long)bytes) : AEGIS_OK;
}

static aegis_status sync_folder(const char *path, aegis_error *err)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "%s", path);
    /* some file systems cannot sync a folder: the files themselves are safe */
    const bool failed = fsync(fd) != 0 && errno != EINVAL;
    const int code = errno;
    close(fd);
    return failed ? aeg_fail_os(err, AEGIS_E_IO, code, "%s: fsync", path) : AEGIS_OK;
}

aegis_status aeg_folder_finish(aeg_pack_folder *f, aegis_error *err)
{
    AEG_TRY(sync_folder(f->part, err));
    if (rename(f->part, f->dst) != 0)
        return aeg_fail_os(err, errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR ? AEGIS_E_USAGE : AEGIS_E_IO,
                           errno, "renaming %s to %s", f->part, f->dst);
    close(f->fd);
    f->fd = -1;
    return sync_folder(f->parent, err);
}

void aeg_folder_abandon(aeg_pack_folder *f)
{
    if (f->fd < 0)
        return;
    remove_files(f->fd);
    rmdir(f->part);
    close(f->fd);
    f->fd = -1;
}
