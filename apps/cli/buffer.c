/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "signals.h"
#include "ui.h"

aegis_status aeg_buffer_append(aeg_buffer *t, const char *bytes, size_t n, aegis_error *err)
{
    if (n > AEG_BUFFER_MAX - t->n)
        return aeg_fail(err, AEGIS_E_USAGE, "text longer than %d MiB", AEG_BUFFER_MAX >> 20);
    if (t->n + n + 1 > t->capacity) {
        const size_t capacity = AEG_MAX(AEG_MAX(t->capacity + t->capacity / 2, t->n + n + 1), (size_t)256);
        char *p = aeg_realloc(aeg_ui_memory(), t->p, capacity);
        if (p == NULL && aeg_ui_memory()->ceiling != 0)
            return aeg_fail(err, AEGIS_E_USAGE, "the text is longer than the %llu bytes kept for it; ask for a larger "
                            "context with -c, or where there is none, for more --memory",
                            (unsigned long long)aeg_ui_memory()->ceiling);
        if (p == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a text of %zu bytes", capacity);
        t->p = p;
        t->capacity = capacity;
    }
    if (n > 0)
        memcpy(t->p + t->n, bytes, n);
    t->n += n;
    t->p[t->n] = '\0';
    return AEGIS_OK;
}

void aeg_buffer_clear(aeg_buffer *t)
{
    t->n = 0;
    if (t->p != NULL)
        t->p[0] = '\0';
}

void aeg_buffer_free(aeg_buffer *t)
{
    aeg_free(aeg_ui_memory(), t->p);
    *t = (aeg_buffer){ 0 };
}

static aegis_status read_all(aeg_buffer *t, int fd, const char *name, aegis_error *err)
{
    char block[4096];
    for (;;) {
        const ssize_t got = read(fd, block, sizeof block);
        if (got == 0)
            return aeg_buffer_append(t, "", 0, err);
        if (got < 0 && errno == EINTR) {
            if (aeg_signals_caught(false) != 0)
                return aeg_fail(err, AEGIS_E_CANCELLED, "interrupted");
            continue;
        }
        if (got < 0)
            return aeg_fail_os(err, AEGIS_E_IO, errno, "reading %s", name);
        AEG_TRY(aeg_buffer_append(t, block, (size_t)got, err));
    }
}

aegis_status aeg_buffer_check(const char *path, aegis_error *err)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return AEGIS_OK;
    if (stat(path, &st) != 0 || access(path, R_OK) != 0)
        return aeg_fail_os(err, AEGIS_E_USAGE, errno, "%s", path);
    return S_ISDIR(st.st_mode) ? aeg_fail(err, AEGIS_E_USAGE, "%s is a folder, expected a file", path) : AEGIS_OK;
}

aegis_status aeg_buffer_read(aeg_buffer *t, const char *path, aegis_error *err)
{
    AEG_TRY(aeg_buffer_check(path, err));
    if (strcmp(path, "-") == 0)
        return read_all(t, STDIN_FILENO, "standard input", err);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return aeg_fail_os(err, AEGIS_E_USAGE, errno, "%s", path);
    const aegis_status status = read_all(t, fd, path, err);
    close(fd);
    return status;
}
