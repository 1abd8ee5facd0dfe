/* SPDX-License-Identifier: Apache-2.0 */
/* base/memory.h - counted heap memory with a ceiling, for libraries and for objects that are
 * built at open (parsed JSON, compiled patterns, token tables while packing).
 *
 * A counter wraps malloc/realloc/free: each block carries its size, so frees are exact. Over
 * the ceiling an allocation returns NULL, and the library reports its own out-of-memory.
 * Nothing on the token path may call these (tests/fault counts the calls).
 * Thread: any; the counters are atomic.
 */
#ifndef AEG_BASE_MEMORY_H
#define AEG_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct {
    const char *name;
    uint64_t ceiling;          /* bytes; 0 = none                          */
    _Atomic uint64_t in_use;   /* bytes now, headers included              */
    _Atomic uint64_t peak;
} aeg_memory;

void *aeg_malloc(aeg_memory *m, size_t n);              /* NULL: refused or out of memory */
void *aeg_calloc(aeg_memory *m, size_t n, size_t size); /* checked product, zero filled   */
void *aeg_realloc(aeg_memory *m, void *p, size_t n);
void aeg_free(aeg_memory *m, void *p);                  /* NULL allowed */
char *aeg_strdup(aeg_memory *m, const char *s);

/* Every allocation of the project goes through one hook, so that tests can fail the n-th one.
 * `fail` returns non-zero to refuse. NULL removes it. Tests only; not thread-safe to change. */
void aeg_memory_set_fault(int (*fail)(void *ctx, size_t n), void *ctx);
uint64_t aeg_memory_calls(void); /* allocations so far in this process, for "nothing allocates" tests */

#endif
