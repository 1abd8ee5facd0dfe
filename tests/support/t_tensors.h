/* SPDX-License-Identifier: Apache-2.0 */
/* support/t_tensors.h - golden numbers out of a safetensors file.
 *
 * Small, trusting and independent of src/format, so that a mistake there cannot hide itself here.
 * A missing file or tensor fails the test.
 */
#ifndef AEG_TESTS_T_TENSORS_H
#define AEG_TESTS_T_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct t_tensors t_tensors;

typedef struct {
    char name[160];
    char dtype[8];      /* "F32", "I32", "BF16", ... */
    uint64_t dim[8];
    uint32_t n_dims;
    uint64_t n_elements;
    uint64_t n_bytes;
    const void *data;   /* aligned to 8; a loan until t_tensors_close */
} t_tensor;

/* `path` is relative to the source tree ("tests/data/demo-golden-mlx4.safetensors") or absolute. */
t_tensors *t_tensors_open(const char *path);
void t_tensors_close(t_tensors *t);

size_t t_tensors_count(const t_tensors *t);
const t_tensor *t_tensors_at(const t_tensors *t, size_t i);

/* The name is a printf format: t_tensors_get(t, "%s.ids", prompt). */
const t_tensor *t_tensors_get(const t_tensors *t, const char *name, ...) __attribute__((format(printf, 2, 3)));
bool t_tensors_has(const t_tensors *t, const char *name);

/* As f32 or i64 from any of F32, F16, BF16, I8..I64, U8..U32; element i. */
float t_tensor_f32(const t_tensor *t, uint64_t i);
int64_t t_tensor_i64(const t_tensor *t, uint64_t i);

#endif
