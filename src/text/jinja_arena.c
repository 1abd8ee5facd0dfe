/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja_arena.h"

#include <stdbool.h>
#include <string.h>

#include "base/checked.h"

struct aeg_jchunk {
    struct aeg_jchunk *next;
    uint64_t bytes;
};

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 256 << 10 };

static bool add_chunk(aeg_jarena *a, uint64_t need)
{
    uint64_t bytes = a->chunks == NULL ? FIRST_CHUNK : AEG_MIN(a->chunks->bytes * 2, LARGEST_CHUNK);
    if (!aeg_add(need, sizeof(struct aeg_jchunk), &need))
        return false;
    bytes = AEG_MAX(bytes, need);
    if (a->limit != 0 && (bytes > a->limit || a->used > a->limit - bytes)) {
        bytes = need; /* near the limit take only what is needed */
        if (bytes > a->limit || a->used > a->limit - bytes)
            return false;
    }
    struct aeg_jchunk *c = aeg_malloc(a->memory, bytes);
    if (c == NULL)
        return false;
    *c = (struct aeg_jchunk){ .next = a->chunks, .bytes = bytes };
    a->chunks = c;
    a->used += bytes;
    a->top = (uint8_t *)(c + 1);
    a->end = (uint8_t *)c + bytes;
    return true;
}

static void *take(aeg_jarena *a, size_t n, uintptr_t align)
{
    uintptr_t pad = (uintptr_t)a->top & (align - 1) ? align - ((uintptr_t)a->top & (align - 1)) : 0;
    if (a->top == NULL || (size_t)(a->end - a->top) < pad || (size_t)(a->end - a->top) - pad < n) {
        if (!add_chunk(a, n))
            return NULL;
        pad = 0;
    }
    void *p = a->top + pad;
    a->top += pad + n;
    return p;
}

void *aeg_jarena_alloc(aeg_jarena *a, size_t n) { return take(a, n, 8); }
char *aeg_jarena_text(aeg_jarena *a, size_t n) { return take(a, n, 1); }

char *aeg_jarena_extend(aeg_jarena *a, const char *p, size_t n, size_t extra)
{
    if (a->top != NULL && n > 0 && (const uint8_t *)p + n == a->top && (size_t)(a->end - a->top) >= extra) {
        a->top += extra;
        return (char *)a->top - extra - n;
    }
    uint64_t total;
    if (!aeg_add(n, extra, &total))
        return NULL;
    /* A large text that grows again would be copied each time: leave as much room behind it. */
    if (total > FIRST_CHUNK && (size_t)(a->end - a->top) < total * 2 && total <= SIZE_MAX / 4)
        (void)add_chunk(a, total * 2);
    char *q = aeg_jarena_text(a, total);
    if (q != NULL && n > 0)
        memcpy(q, p, n);
    return q;
}

void aeg_jarena_free(aeg_jarena *a)
{
    for (struct aeg_jchunk *c = a->chunks; c != NULL;) {
        struct aeg_jchunk *next = c->next;
        aeg_free(a->memory, c);
        c = next;
    }
    a->chunks = NULL;
    a->top = a->end = NULL;
    a->used = 0;
}
