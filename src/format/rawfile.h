/* SPDX-License-Identifier: Apache-2.0 */
/* format/rawfile.h - large files read in ranges without growing the page cache.
 *
 * Reads are direct (O_DIRECT) where the file system allows it, because a memory cgroup charges page cache to
 * us; elsewhere they are buffered and the pages are dropped at once. Direct reads need aligned positions, so a
 * read lands in a caller's aligned buffer and the caller gets a pointer to the byte asked for: no copy.
 * Thread: owner only.
 */
#ifndef AEG_FORMAT_RAWFILE_H
#define AEG_FORMAT_RAWFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

enum { AEG_RAW_ALIGN = 4096 };

typedef struct {
    int fd;
    bool direct;
    uint64_t bytes;   /* size when opened                     */
    const char *name; /* for messages; the caller's, a loan   */
} aeg_raw;

/* AEGIS_E_MODEL if missing or not a regular file, AEGIS_E_IO if it cannot be opened. `name` must outlive it. */
aegis_status aeg_raw_open(aeg_raw *out, const char *name, aegis_error *err);
void aeg_raw_close(aeg_raw *raw); /* accepts one that was zeroed or closed */

/* Room that a view of n bytes may need in its buffer. */
static inline size_t aeg_raw_room(size_t n) { return (size_t)aeg_align_up(n, AEG_RAW_ALIGN) + AEG_RAW_ALIGN; }

/* Bytes [offset, offset + n) of the file, read into `buffer` (AEG_RAW_ALIGN aligned, at least aeg_raw_room(n));
 * *out points into it. AEGIS_E_IO if the read fails or the file has become shorter. */
aegis_status aeg_raw_view(aeg_raw *raw, uint64_t offset, size_t n, uint8_t *buffer, const uint8_t **out,
                          aegis_error *err);

/* n bytes aligned to AEG_RAW_ALIGN, counted; NULL when refused. Free with aeg_raw_buffer_free. */
uint8_t *aeg_raw_buffer(aeg_memory *memory, size_t n);
void aeg_raw_buffer_free(aeg_memory *memory, uint8_t *buffer); /* NULL allowed */

#endif
