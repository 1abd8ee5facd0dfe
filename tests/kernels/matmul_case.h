/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_case.h - a matrix, activations and outputs of a chosen shape, for the matmul test and its benchmark. */
#ifndef AEG_TESTS_MATMUL_CASE_H
#define AEG_TESTS_MATMUL_CASE_H

#include "kernels/kernels.h"

typedef enum {
    FILL_RANDOM,
    FILL_HIGHEST, /* every code at its maximum, every activation at the positive extreme */
    FILL_LOWEST,  /* ... at the negative extreme                                         */
    FILL_ZEROS,   /* random with zero activation blocks (d = 0, s = 0)                    */
    N_FILLS,
} case_fill;

typedef struct {
    aeg_weight_type type;
    aeg_act_kind act;
    uint32_t n_rows, n_cols, n;
    case_fill fill;
    bool gather;     /* rows[] in an order of its own, with repeats    */
    bool interleave; /* block_stride = 2 * block_bytes                 */
} matmul_case;

enum { CASE_GUARD = 24 }; /* floats after each token's outputs that nobody may write */

typedef struct {
    aeg_weights w;
    aeg_acts x;
    aeg_matmul_args args;
    uint32_t rows[64];
    float *y;
    size_t y_floats, matrix_bytes;
    void *owned[9];
    int n_owned;
} matmul_data;

uint32_t case_random(void);
/* Exits on an allocation failure. */
void case_make(matmul_data *d, const matmul_case *c);
void case_free(matmul_data *d);
/* All of y, outputs and guards, to a value no product has. */
void case_clear_y(matmul_data *d);
void case_describe(char *out, size_t n, const matmul_case *c);

/* The levels this processor has, scalar first; returns how many (at most 5). */
typedef struct {
    const char *name;
    aeg_kernels k;
} case_level;
int case_levels(case_level *levels);

/* Times every level; `only` (or NULL) picks the weight types whose name holds it. */
int matmul_bench(const char *only);

#endif
