/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* 16 bytes keep malloc's alignment for the caller. */
typedef struct {
    uint64_t bytes;
    uint64_t unused;
} block_header;

static int (*fault_hook)(void *ctx, size_t n);
static void *fault_ctx;
static _Atomic uint64_t n_calls;

void aeg_memory_set_fault(int (*fail)(void *ctx, size_t n), void *ctx)
{
    fault_hook = fail;
    fault_ctx = ctx;
}

uint64_t aeg_memory_calls(void) { return atomic_load_explicit(&n_calls, memory_order_relaxed); }

/* Reserve first, allocate then: two threads can never pass the ceiling together. */
static int reserve(aeg_memory *m, uint64_t bytes)
{
    const uint64_t now = atomic_fetch_add_explicit(&m->in_use, bytes, memory_order_relaxed) + bytes;
    if (m->ceiling != 0 && now > m->ceiling) {
        atomic_fetch_sub_explicit(&m->in_use, bytes, memory_order_relaxed);
        return 0;
    }
    uint64_t peak = atomic_load_explicit(&m->peak, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak_explicit(&m->peak, &peak, now,
                                                                memory_order_relaxed, memory_order_relaxed))
        ;
    return 1;
}

static void unreserve(aeg_memory *m, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&m->in_use, bytes, memory_order_relaxed);
}

static int refused(size_t n)
{
    atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
    return fault_hook != NULL && fault_hook(fault_ctx, n) != 0;
}

void *aeg_malloc(aeg_memory *m, size_t n)
{
    uint64_t bytes;
    if (refused(n) || !aeg_add(n, sizeof(block_header), &bytes) || !reserve(m, bytes))
        return NULL;
    block_header *h = malloc(bytes);
    if (h == NULL) {
        unreserve(m, bytes);
        return NULL;
    }
    h->bytes = bytes;
    return h + 1;
}

void *aeg_calloc(aeg_memory *m, size_t n, size_t size)
{
    uint64_t bytes;
    if (!aeg_mul(n, size, &bytes))
        return NULL;
    void *p = aeg_malloc(m, bytes);
    if (p != NULL)
        memset(p, 0, bytes);
    return p;
}

void *aeg_realloc(aeg_memory *m, void *p, size_t n)
{
    if (p == NULL)
        return aeg_malloc(m, n);
    block_header *old = (block_header *)p - 1;
    const uint64_t old_bytes = old->bytes;
    uint64_t bytes;
    if (refused(n) || !aeg_add(n, sizeof(block_header), &bytes))
        return NULL;
    /* The old block may live beside the new one for a moment: count both. */
    if (!reserve(m, bytes))
        return NULL;
    block_header *h = realloc(old, bytes);
    if (h == NULL) {
        unreserve(m, bytes);
        return NULL;
    }
    h->bytes = bytes;
    unreserve(m, old_bytes);
    return h + 1;
}

void aeg_free(aeg_memory *m, void *p)
{
    if (p == NULL)
        return;
    block_header *h = (block_header *)p - 1;
    unreserve(m, h->bytes);
    free(h);
}

char *aeg_strdup(aeg_memory *m, const char *s)
{
    const size_t n = strlen(s) + 1;
    char *p = aeg_malloc(m, n);
    if (p != NULL)
        memcpy(p, s, n);
    return p;
}
