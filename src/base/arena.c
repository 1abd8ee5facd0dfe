/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/checked.h"

aeg_arena aeg_arena_measure(const char *name)
{
    return (aeg_arena){ .name = name, .size = UINT64_MAX };
}

aegis_status aeg_arena_map(aeg_arena *out, const char *name, uint64_t size, bool huge,
                           aegis_error *err)
{
    const uint64_t bytes = aeg_align_up(size == 0 ? 1 : size, AEG_PAGE);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return aeg_fail_os(err, AEGIS_E_MEMORY, errno, "account '%s': mapping %llu bytes", name,
                           (unsigned long long)bytes);
    /* Without the advice a system set to "always" would back a sparse arena with 2 MiB pages
     * and the plan, which counts 4 KiB pages, would be too small: so say no as well. */
    madvise(p, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    *out = (aeg_arena){ .name = name, .base = p, .size = bytes };
    return AEGIS_OK;
}

void aeg_arena_unmap(aeg_arena *arena)
{
    if (arena->base != NULL)
        munmap(arena->base, arena->size);
    *arena = (aeg_arena){ 0 };
}

void *aeg_arena_alloc(aeg_arena *arena, uint64_t n, uint64_t align)
{
    const uint64_t start = aeg_align_up(arena->used, align);
    uint64_t end;
    if (!aeg_add(start, n, &end) || end > arena->size) {
        arena->overflow = true;
        return NULL;
    }
    arena->used = end;
    return arena->base == NULL ? NULL : arena->base + start;
}

aegis_status aeg_arena_check(const aeg_arena *arena, aegis_error *err)
{
    if (!arena->overflow)
        return AEGIS_OK;
    return aeg_fail(err, AEGIS_E_BUDGET, "account '%s': more memory was asked for than its %llu planned bytes",
                    arena->name, (unsigned long long)arena->size);
}
