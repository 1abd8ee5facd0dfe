/* SPDX-License-Identifier: Apache-2.0 */
/* base/file.h - small files, read and written whole, without leaving page cache behind. Thread: any. */
#ifndef AEG_BASE_FILE_H
#define AEG_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

enum { AEG_PATH_MAX = 4096 };

/* The whole file as *out (n bytes and a NUL after them; free with aeg_free). A file larger than `max`
 * is refused. AEGIS_E_MODEL if it is missing or too large, AEGIS_E_IO if reading fails. The pages
 * read are dropped from the page cache. */
aegis_status aeg_file_read(char **out, size_t *n, const char *path, size_t max, aeg_memory *memory,
                           aegis_error *err);

/* Write, fsync and close; an existing file is replaced atomically (temporary name, rename). */
aegis_status aeg_file_write(const char *path, const void *data, size_t n, aegis_error *err);

/* Read exactly n bytes at `offset`; a short read is AEGIS_E_IO naming `name`. */
aegis_status aeg_file_pread(int fd, void *dst, size_t n, uint64_t offset, const char *name,
                            aegis_error *err);

bool aeg_file_exists(const char *path);
bool aeg_is_directory(const char *path);

/* dir "/" name into out[AEG_PATH_MAX]; AEGIS_E_USAGE if it does not fit. */
aegis_status aeg_path_join(char *out, const char *dir, const char *name, aegis_error *err);

/* mkdir -p. */
aegis_status aeg_make_dirs(const char *path, aegis_error *err);

#endif
