/* SPDX-License-Identifier: Apache-2.0 */
#include "store_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_dots(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

bool aeg_is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

aegis_status aeg_store_folder_remove(const char *path, aegis_error *err)
{
    if (aeg_is_link(path))
        return unlink(path) == 0 ? AEGIS_OK : aeg_fail_os(err, AEGIS_E_IO, errno, "removing %s", path);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        const int code = errno;
        if (fd >= 0)
            close(fd);
        return aeg_fail_os(err, AEGIS_E_IO, code, "%s", path);
    }
    if (flock(dirfd(dir), LOCK_EX | LOCK_NB) != 0) {
        closedir(dir);
        return aeg_fail(err, AEGIS_E_RUNTIME, "%s is being packed by another process", path);
    }
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL)
        if (!is_dots(entry->d_name))
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    if (rmdir(path) != 0)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "removing %s", path);
    return AEGIS_OK;
}

uint64_t aeg_store_folder_bytes(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return 0;
    uint64_t sum = 0;
    const struct dirent *entry;
    struct stat st;
    while ((entry = readdir(dir)) != NULL)
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_size;
    closedir(dir);
    return sum;
}
