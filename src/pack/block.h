/* SPDX-License-Identifier: Apache-2.0 */
/* pack/block.h - rows as a published model has them -> one row block of x16 tiles, or one embedding row.
 *
 * The same type in and out only moves codes and scales; anything else goes through float32 and the MLX rule.
 * Thread: any.
 */
#ifndef AEG_PACK_BLOCK_H
#define AEG_PACK_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/weights.h"

/* Consecutive rows in source form; row r is r strides on in each of the three. */
typedef struct {
    aeg_weight_type type;
    uint32_t n_cols;
    const uint8_t *weight, *scales, *biases; /* the last two NULL for plain numbers and ggml types, whose rows are their blocks;
                                              * F8: scales are f32, one per row and 128 columns or the rest of them */
} aeg_rows;

size_t aeg_rows_weight_bytes(aeg_weight_type type, uint32_t n_cols); /* of one row */
size_t aeg_rows_scale_bytes(aeg_weight_type type, uint32_t n_cols);  /* of one row's scales; 0 for plain numbers */
size_t aeg_rows_bytes(aeg_weight_type type, uint32_t n_cols);        /* of one row with its scales and biases */
aeg_rows aeg_rows_at(const aeg_rows *rows, uint64_t row);

/* Columns [first, first + n) of row 0 as f32. An affine source is s * q + b with both operations rounded, as MLX does;
 * n is at most 256; first and n are multiples of its group or block. F8: its codes are no NaN. */
void aeg_rows_floats(const aeg_rows *row, uint32_t first, uint32_t n, float *out);

/* What a matrix becomes when it is transposed: plain numbers stay what they are, codes become f32, which holds their values
 * exactly (a group of codes runs along a row; across rows it has no meaning). */
static inline aeg_weight_type aeg_transposed_type(aeg_weight_type type)
{
    return (aeg_weight_type){ .kind = type.kind == AEG_W_F16 || type.kind == AEG_W_BF16 ? type.kind : (uint8_t)AEG_W_F32 };
}

/* n rows to dst [n_cols][n] of aeg_transposed_type. */
void aeg_rows_transpose(const aeg_rows *rows, uint32_t n, uint8_t *dst);

/* Rows 0..n_rows-1 (1 to 16) as a row block of type `out`, missing rows zero. dst: aeg_block_bytes(out, n_cols).
 * Changing the type: out.kind is AEG_W_AFFINE, or AEG_W_F32 for F8. False if a source value (of a ggml type: a
 * scale) is not finite. */
bool aeg_block_pack(const aeg_rows *rows, uint32_t n_rows, aeg_weight_type out, uint8_t *dst);

/* Row 0 as a row of embed.bin. */
bool aeg_embed_row_pack(const aeg_rows *rows, aeg_weight_type out, uint8_t *dst);

#endif
