/* SPDX-License-Identifier: Apache-2.0 */
/* base/checked.h - arithmetic on sizes that come from files: false means it would wrap. */
#ifndef AEG_BASE_CHECKED_H
#define AEG_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool aeg_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool aeg_add(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* `align` is a power of two; `n` must be at most UINT64_MAX - align (our own sizes are). */
static inline uint64_t aeg_align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) & ~(align - 1);
}

static inline uint64_t aeg_div_up(uint64_t n, uint64_t d)
{
    return n / d + (n % d != 0);
}

#define AEG_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define AEG_MIN(a, b) ((a) < (b) ? (a) : (b))
#define AEG_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
