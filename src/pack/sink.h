/* SPDX-License-Identifier: Apache-2.0 */
/* pack/sink.h - writing a large file from start to end, without dirty page cache.
 *
 * The producer gets room in one of two buffers, fills it and commits; full buffers are written behind its back by
 * one helper thread with direct I/O (where the file system refuses that: buffered, synced and dropped piece by
 * piece). What is committed is also hashed. Errors of a write show at the next call.
 * Memory: two buffers and a stack, counted. Thread: one producer.
 */
#ifndef AEG_PACK_SINK_H
#define AEG_PACK_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

typedef struct aeg_sink aeg_sink;

/* `room`: the most that is ever reserved at once; `buffer_bytes` >= room + 2 * 4096. */
aegis_status aeg_sink_new(aeg_sink **out, size_t room, size_t buffer_bytes, aeg_memory *memory, aegis_error *err);
void aeg_sink_free(aeg_sink *sink); /* NULL allowed; waits for the thread, closes the file */

/* Start `path` (created, must not exist). `expected` bytes are allocated on disk where possible, so that a full
 * disk shows before the work. */
aegis_status aeg_sink_open(aeg_sink *sink, const char *path, uint64_t expected, aegis_error *err);
/* Room for n bytes at *out, not yet part of the file. */
aegis_status aeg_sink_reserve(aeg_sink *sink, size_t n, uint8_t **out, aegis_error *err);
void aeg_sink_commit(aeg_sink *sink, size_t n);
aegis_status aeg_sink_append(aeg_sink *sink, const void *data, size_t n, aegis_error *err);
/* Zeros up to a multiple of `align`, or up to position `at`. */
aegis_status aeg_sink_pad(aeg_sink *sink, uint64_t align, aegis_error *err);
aegis_status aeg_sink_pad_to(aeg_sink *sink, uint64_t at, aegis_error *err);
uint64_t aeg_sink_position(const aeg_sink *sink);

/* The XXH3 of everything committed since the last reset. */
void aeg_sink_hash_reset(aeg_sink *sink);
uint64_t aeg_sink_hash(const aeg_sink *sink);

/* Write what is left, fsync, close. */
aegis_status aeg_sink_close(aeg_sink *sink, aegis_error *err);

#endif
