/* SPDX-License-Identifier: Apache-2.0 */
/* ops_world.c - guarded buffers with reproducible contents. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "ops_check.h"

enum { GUARD = 64, FILL = 0xA5 };

void ops_world_reset(ops_world *w, uint64_t seed, ops_values values)
{
    w->used = 0;
    w->random = seed * 2654435761u + 88172645463325252u;
    w->values = values;
    w->n_buffers = 0;
    memset(w->memory, FILL, WORLD_BYTES);
}

uint32_t ops_random(ops_world *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 32);
}

uint32_t ops_below(ops_world *w, uint32_t n) { return (uint32_t)(((uint64_t)ops_random(w) * n) >> 32); }

uint32_t ops_size(ops_world *w, uint32_t max)
{
    const uint32_t limit = ops_below(w, 2) ? max : (max < 70 ? max : 70);
    uint32_t n = 1 + ops_below(w, limit);
    if (ops_below(w, 2))
        n = (n + 15) / 16 * 16 + ops_below(w, 3) - 1; /* one less, equal, one more */
    return n < 1 ? 1 : n > max ? max : n;
}

uint32_t ops_size16(ops_world *w, uint32_t max) { return 16 * (1 + ops_below(w, max / 16)); }

static float plain(ops_world *w) { return ((float)(ops_random(w) >> 8) / 8388608.0f - 1.0f) * 3.0f; }

float ops_value(ops_world *w)
{
    static const float edges[] = {
        0.0f, -0.0f, 1e-45f, -1e-45f, 1e-39f, -1e-39f, FLT_MIN, 1.0f, -1.0f, 0.5f, 20.0f, 20.000002f, -20.0f,
        -87.3f, -87.30001f, -87.29999f, 87.3f, 88.0f, 88.72283f, 88.72284f, 89.0f, -88.72284f, -104.0f,
        65504.0f, 65519.99f, 65520.0f, -65520.0f, 1e30f, -1e30f, FLT_MAX, -FLT_MAX, 2.5f, 3.5f, 0.6931472f, 0.34657359f,
    };
    const uint32_t pick = ops_random(w);
    switch (w->values) {
    case VALUES_WIDE: return ldexpf(plain(w), (int)(pick % 121) - 60);
    case VALUES_EDGES: return pick % 4 ? edges[(pick >> 8) % (sizeof edges / sizeof *edges)] : plain(w);
    case VALUES_BROKEN:
        if (pick % 64 == 0)
            return aeg_f32_from_bits(0x7fc00000u | (pick & 0x80000000u) | (pick >> 12 & 0x3fffu) << 8);
        return pick % 64 == 1 ? INFINITY : pick % 64 == 2 ? -INFINITY : plain(w);
    default: return plain(w);
    }
}

static void *add_buffer(ops_world *w, size_t bytes, ops_buffer_kind kind)
{
    const size_t at = (w->used + 63) / 64 * 64 + GUARD + 4 * (size_t)ops_below(w, 16);
    if (at + bytes + GUARD > WORLD_BYTES || w->n_buffers == MAX_BUFFERS) {
        printf("a case needs more room than a world has\n");
        ops_failures++;
        return w->memory; /* too small a test, not a crash: WORLD_BYTES is more than any request */
    }
    w->used = at + bytes + GUARD;
    w->buffers[w->n_buffers].at = at;
    w->buffers[w->n_buffers].bytes = bytes;
    w->buffers[w->n_buffers++].kind = kind;
    return w->memory + at;
}

float *ops_floats(ops_world *w, size_t n)
{
    float *x = add_buffer(w, n * sizeof *x, BUFFER_FLOATS);
    for (size_t i = 0; i < n; i++)
        x[i] = ops_value(w);
    return x;
}

void *ops_bytes(ops_world *w, size_t n) { return add_buffer(w, n, BUFFER_BYTES); }

float *ops_scratch(ops_world *w, size_t n) { return add_buffer(w, n * sizeof(float), BUFFER_SCRATCH); }

static bool same_floats(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (aeg_f32_bits(a[i]) != aeg_f32_bits(b[i]) && !(a[i] != a[i] && b[i] != b[i]))
            return false;
    return true;
}

const char *ops_world_difference(const ops_world *a, const ops_world *b)
{
    size_t end = 0;
    if (a->used != b->used || a->n_buffers != b->n_buffers)
        return "shape (the case is not reproducible)";
    for (int i = 0; i <= a->n_buffers; i++) {
        const size_t at = i < a->n_buffers ? a->buffers[i].at : a->used;
        const size_t bytes = i < a->n_buffers ? a->buffers[i].bytes : 0;
        for (size_t g = end; g < at; g++)
            if (a->memory[g] != FILL || b->memory[g] != FILL)
                return "a guard (something was written outside a buffer)";
        end = at + bytes;
        if (i == a->n_buffers || a->buffers[i].kind == BUFFER_SCRATCH)
            continue;
        const void *x = a->memory + at, *y = b->memory + at;
        if (a->buffers[i].kind == BUFFER_BYTES ? memcmp(x, y, bytes) != 0 : !same_floats(x, y, bytes / sizeof(float)))
            return "the result";
    }
    return NULL;
}
