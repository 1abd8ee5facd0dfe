/* SPDX-License-Identifier: Apache-2.0 */
/* ops_check.h - the float kernels under test: a world of guarded buffers that one op runs in.
 *
 * An op's case builds its inputs in a world and calls the kernel. It runs twice from one seed, with the scalar
 * table and with the level under test; then the two worlds must be equal, guards and inputs included. No cmocka:
 * the program is also built for processors where that library is not at hand.
 */
#ifndef AEG_TESTS_OPS_CHECK_H
#define AEG_TESTS_OPS_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "kernels/kernels.h"

#define OPS_CHECK(cond, ...)                                    \
    do {                                                        \
        if (!(cond)) {                                          \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #cond);   \
            printf(__VA_ARGS__);                                \
            printf("\n");                                       \
            ops_failures++;                                     \
        }                                                       \
    } while (0)
extern int ops_failures;

/* Where the values of t_floats come from. */
typedef enum {
    VALUES_PLAIN,   /* uniform in [-3, 3)                                  */
    VALUES_WIDE,    /* magnitudes from 2^-60 to 2^60                       */
    VALUES_EDGES,   /* zeros, denormals, the limits of exp, huge, ties     */
    VALUES_BROKEN,  /* plain, with NaN and infinities among them           */
    N_VALUES,
} ops_values;

typedef enum { BUFFER_FLOATS, BUFFER_BYTES, BUFFER_SCRATCH } ops_buffer_kind;

enum { WORLD_BYTES = 4 << 20, MAX_BUFFERS = 16 };
typedef struct {
    uint8_t *memory; /* WORLD_BYTES */
    size_t used;
    uint64_t random;
    ops_values values;
    struct {
        size_t at, bytes;
        ops_buffer_kind kind;
    } buffers[MAX_BUFFERS];
    int n_buffers;
} ops_world;

void ops_world_reset(ops_world *w, uint64_t seed, ops_values values);
uint32_t ops_random(ops_world *w);
uint32_t ops_below(ops_world *w, uint32_t n);
/* 1 to max, often small, often next to a multiple of 16 */
uint32_t ops_size(ops_world *w, uint32_t max);
/* a multiple of 16 up to max */
uint32_t ops_size16(ops_world *w, uint32_t max);
float ops_value(ops_world *w);

/* Buffers between guards, at a random multiple of 4 bytes. Floats hold values; bytes and scratch are filled with a
 * pattern. The content of scratch is not compared. */
float *ops_floats(ops_world *w, size_t n);
void *ops_bytes(ops_world *w, size_t n);
float *ops_scratch(ops_world *w, size_t n);

/* NULL if equal (bit for bit; one NaN is as good as another), else what differs. */
const char *ops_world_difference(const ops_world *a, const ops_world *b);

/* ops_cases.c: every op of AEG_KERNEL_LIST. */
typedef struct {
    const char *name;
    void (*run)(ops_world *w, const aeg_kernels *k);
} ops_case;
extern const ops_case ops_cases[];
extern const int n_ops_cases;

/* ops_truth.c: the scalar kernels against arithmetic in double and known vectors. */
void ops_check_truth(const aeg_kernels *k);

/* ops_bench.c */
void ops_bench(const aeg_kernels *k);

#endif
