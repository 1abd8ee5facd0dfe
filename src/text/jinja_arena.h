/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_arena.h - a list of chunks for things that die together: a syntax tree, one render's values.
 * Thread: owner only. */
#ifndef AEG_TEXT_JINJA_ARENA_H
#define AEG_TEXT_JINJA_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

struct aeg_jchunk;

typedef struct {
    aeg_memory *memory;
    struct aeg_jchunk *chunks; /* newest first                       */
    uint8_t *top, *end;        /* the free part of the newest chunk  */
    uint64_t used;             /* bytes of all chunks                */
    uint64_t limit;            /* of `used`; 0 = only the memory's   */
} aeg_jarena;

/* `n` bytes, 8-aligned (text: unaligned), not cleared; NULL if the limit or the memory says no. */
void *aeg_jarena_alloc(aeg_jarena *a, size_t n);
char *aeg_jarena_text(aeg_jarena *a, size_t n);

/* The `n` bytes at `p` with room for `extra` more behind them: in place when they are the newest
 * text of the arena, so that a chain of additions costs no copies, otherwise a copy. */
char *aeg_jarena_extend(aeg_jarena *a, const char *p, size_t n, size_t extra);

void aeg_jarena_free(aeg_jarena *a);

#endif
