/* SPDX-License-Identifier: Apache-2.0 */
/* base/arena.h - memory that is planned before it exists.
 *
 * A module's init() asks its arena for memory. A *measuring* arena only adds sizes up and
 * returns NULL; a *real* one carves an anonymous mapping of exactly the measured size. The
 * same lines of code plan and carve, so the plan cannot drift from what is used.
 *
 * Idiom:   x = aeg_arena_alloc(a, n, align);  if (aeg_arena_measuring(a)) return AEGIS_OK;
 * Thread: owner only.
 */
#ifndef AEG_BASE_ARENA_H
#define AEG_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { AEG_CACHE_LINE = 64, AEG_PAGE = 4096 };

typedef struct {
    const char *name;  /* the account, for messages                        */
    uint8_t *base;     /* NULL while measuring                             */
    uint64_t size;     /* bytes mapped; UINT64_MAX while measuring         */
    uint64_t used;     /* bytes handed out, with alignment                 */
    bool overflow;     /* a real arena was asked for more than it has      */
} aeg_arena;

/* An arena that counts. It never fails. */
aeg_arena aeg_arena_measure(const char *name);

/* An arena of `size` bytes, page aligned, zero filled, not yet resident.
 * `huge` asks for 2 MiB pages (advice only). AEGIS_E_MEMORY if the OS refuses. */
aegis_status aeg_arena_map(aeg_arena *out, const char *name, uint64_t size, bool huge,
                           aegis_error *err);
void aeg_arena_unmap(aeg_arena *arena);  /* accepts a zeroed or measuring arena */

/* `n` bytes aligned to `align` (a power of two, at most AEG_PAGE), zero filled in a real
 * arena that was not reset. Measuring: NULL. Real and too small: NULL and `overflow` is
 * set: that is a bug of ours, and aeg_arena_check() turns it into an error. */
void *aeg_arena_alloc(aeg_arena *arena, uint64_t n, uint64_t align);

static inline bool aeg_arena_measuring(const aeg_arena *arena) { return arena->base == NULL; }

/* AEGIS_E_BUDGET naming the account if an allocation did not fit. */
aegis_status aeg_arena_check(const aeg_arena *arena, aegis_error *err);

#define AEG_ARENA_ARRAY(arena, type, n) \
    ((type *)aeg_arena_alloc((arena), (uint64_t)(n) * sizeof(type), AEG_CACHE_LINE))

#endif
