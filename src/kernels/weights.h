/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/weights.h - matrices in the x16 layout, and the activations they meet.
 *
 * A matrix y = W x has n_rows outputs and n_cols inputs. Rows are grouped in *row blocks* of 16; within a
 * row block the tiles follow each other by ascending column, so a row block is one sequential read.
 *   AFFINE, group g:  tile = 16 rows x g columns =
 *       16 scales, 16 biases (scale_kind, row order; 2 or 4 bytes each), then g/32 *plane groups*
 *       of 64*bits bytes, each holding 16 rows x 32 columns (docs/store-format.md; the planes of
 *       2, 3, 4, 5, 6 and 8 bits follow one rule: quad j of lane r = codes of row r, columns 4j..4j+3).
 *       value = scale * code + bias, code unsigned.
 *   BF16, F16, F32:   for each column, 16 values, row order (32 or 64 bytes).
 *   the ggml types:   tiles of 16 rows x 32 or 256 columns, kernels/blocks.h.
 *   F8, e4m3:         tile = 16 rows x 128 columns = 16 f32 scales, then for each column 16 codes, row order.
 *       value = scale * code, rounded to f32 once. 0x7f and 0xff (NaN) do not occur, scale * 448 is finite.
 * Rows are padded to 16 with zero codes, scales and biases; n_cols must be a multiple of the group (of 32
 * for plain types, of a block for ggml types, of 128 for F8). The same bytes serve AVX-512 (one vector), AVX2 (halves) and NEON (quarters).
 */
#ifndef AEG_KERNELS_WEIGHTS_H
#define AEG_KERNELS_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AEG_ROWS = 16, AEG_PLANE_COLS = 32, AEG_SUM_COLS = 16, AEG_F8_COLS = 128 };

typedef enum {
    AEG_W_F32, AEG_W_F16, AEG_W_BF16,
    AEG_W_AFFINE,
    /* the block types of ggml; bits, scale_kind and group are 0 */
    AEG_W_Q8_0,
    AEG_W_Q4_0,
    AEG_W_Q4_1,
    AEG_W_Q5_0,
    AEG_W_Q5_1,
    AEG_W_Q2_K,
    AEG_W_Q3_K,
    AEG_W_Q4_K,
    AEG_W_Q5_K,
    AEG_W_Q6_K,
    AEG_W_IQ4_NL,
    AEG_W_IQ4_XS,
    AEG_W_MXFP4,
    AEG_W_IQ3_XXS, AEG_W_IQ3_S, AEG_W_IQ2_XXS, AEG_W_IQ2_XS, AEG_W_IQ2_S,
    AEG_W_BLOCKS_END,
    AEG_W_F8 = AEG_W_BLOCKS_END, /* bits, scale_kind and group are 0 */
    AEG_N_WEIGHT_KINDS,
} aeg_weight_kind;

typedef struct {
    uint8_t kind;       /* aeg_weight_kind                              */
    uint8_t bits;       /* AFFINE: 2, 3, 4, 5, 6 or 8; else 0           */
    uint8_t scale_kind; /* AFFINE: AEG_W_F32, AEG_W_F16 or AEG_W_BF16   */
    uint8_t group;      /* AFFINE: 32, 64 or 128; else 0                */
} aeg_weight_type;

typedef struct {
    aeg_weight_type type;
    uint32_t n_rows;
    uint32_t n_cols;
    size_t block_stride;  /* bytes from one row block to the next: block_bytes, or 2*block_bytes where
                           * the gate and up matrices of an expert are interleaved by row block      */
    const uint8_t *data;  /* first row block, 64-byte aligned                                        */
} aeg_weights;

/* Is this a type we can run? (kind, bits, group, scale_kind all in the ranges above) */
bool aeg_weight_type_valid(aeg_weight_type type);
bool aeg_weight_type_equal(aeg_weight_type a, aeg_weight_type b);
/* "affine 4-bit g64 bf16", "bf16" into out[AEG_TYPE_TEXT]; returns out. */
enum { AEG_TYPE_TEXT = 32 };
char *aeg_weight_type_text(char *out, aeg_weight_type type);

/* A block type of ggml? */
static inline bool aeg_weight_is_block(aeg_weight_type type) { return type.kind >= AEG_W_Q8_0 && type.kind < AEG_W_BLOCKS_END; }
/* Do products read codes of the activations, where codes are asked for? Plain numbers and F8 always read f32. */
static inline bool aeg_weight_reads_codes(aeg_weight_type t) { return t.kind == AEG_W_AFFINE || aeg_weight_is_block(t); }
/* And aeg_acts.sums? */
static inline bool aeg_weight_reads_sums(aeg_weight_type type) { return aeg_weight_is_block(type); }
/* The kind whose name this is ("bf16", "q4_k"; not "affine"), or AEG_N_WEIGHT_KINDS. */
uint32_t aeg_weight_kind_named(const char *name);

/* What the number of columns must be a multiple of. */
uint32_t aeg_weight_col_step(aeg_weight_type type);
/* Bytes of one tile (16 rows x group, block or 128 columns, or x 1 column for plain types). */
size_t aeg_tile_bytes(aeg_weight_type type);
/* Bytes of one row block of n_cols columns; of a whole matrix (rows padded to 16). No overflow for
 * n_rows, n_cols <= 2^24. */
size_t aeg_block_bytes(aeg_weight_type type, uint32_t n_cols);
uint64_t aeg_matrix_bytes(aeg_weight_type type, uint32_t n_rows, uint32_t n_cols);
static inline uint32_t aeg_row_blocks(uint32_t n_rows) { return (n_rows + AEG_ROWS - 1) / AEG_ROWS; }

/* --- packing and reading back (slow, exact; used by pack, verify and tests) --------------------- */

/* One AFFINE tile. codes[16][group] unsigned, scales/biases [16] as stored bits (scale_kind, in the
 * low 2 or all 4 bytes). dst: aeg_tile_bytes(type). */
void aeg_tile_pack(aeg_weight_type type, const uint8_t *codes, const uint32_t *scales,
                   const uint32_t *biases, uint8_t *dst);
void aeg_tile_unpack(aeg_weight_type type, const uint8_t *src, uint8_t *codes, uint32_t *scales,
                     uint32_t *biases);

/* Row `row` as f32 [n_cols]: fmaf(scale, code, bias) for AFFINE, the value of the format for the others. */
void aeg_weights_row(const aeg_weights *w, uint32_t row, float *out);

/* --- activations ---------------------------------------------------------------------------- */

typedef enum {
    AEG_ACT_F32,  /* the reference path                                             */
    AEG_ACT_I8,   /* codes in [-127, 127] per block, f32 scale, f32 scaled code sum */
    AEG_ACT_I16,  /* codes in [-32767, 32767]                                       */
    AEG_ACT_SUMS = 4, /* added to a kind where room is planned: with sums of codes  */
} aeg_act_kind;

/* Rows of activations, n_cols apart; the matrix says how many of them are read. A matmul against plain weights (F32, F16, BF16) or F8 always reads f32.
 * Quantisation, per block of `block` = 32 or 64 columns (cpu-kernels.md 2): a = max|x|; if a < 1e-30 the
 * block is all zero (d = 0); else d = a / 127 (I16: / 32767), q = rint(x * (1/d)) half to even, clamped;
 * s = d * (float)sum(q). 1/d is computed once per block and rounded to f32. */
typedef struct {
    uint8_t kind;         /* aeg_act_kind: which codes are valid */
    uint32_t n_cols;      /* from one row to the next: at least the columns of the matrix, multiple of block */
    uint32_t block;       /* 32 or 64; min(group, 64) of the weights it is meant for, 32 for ggml types */
    const float *f32;     /* [rows, n_cols], always valid  */
    const int8_t *q8;     /* [rows, n_cols] when kind == I8  */
    const int16_t *q16;   /* [rows, n_cols] when kind == I16 */
    const float *d;       /* [rows, n_cols/block] */
    const float *s;       /* [rows, n_cols/block] */
    const int32_t *sums;  /* [rows, n_cols/16] sums of 16 codes: read where aeg_weight_reads_sums(), else NULL will do */
} aeg_acts;

/* One product: for m in [0, n): y[m*y_stride + row] = W[row] . x[rows ? rows[m] : m], for the rows of
 * row blocks [block0, block1). Padding rows are not written. Each output is one sequential chain over the
 * columns, so the bits do not depend on n, on the ISA or on how row blocks are split:
 *   I8/I16 with AFFINE, per activation block b of group g (a group of 128 has two blocks):
 *       y = fmaf(scale*d, (float)dot, y);  y = fmaf(bias, s, y)    [scale*d rounded to f32 first]
 *   F32 with AFFINE, per column:  w = fmaf(scale, code, bias);  y = fmaf(w, x, y)
 *   plain, per column:            y = fmaf(w, x, y)                                   (y starts at 0)
 *   F8, per column:               w = scale * code;  y = fmaf(w, x, y)                [w rounded to f32 first]
 *   ggml types: kernels/blocks.h */
typedef struct {
    const aeg_weights *w;
    const aeg_acts *x;
    const uint32_t *rows;  /* [n] rows of x, or NULL for 0..n-1 */
    uint32_t n;            /* tokens, >= 1                      */
    float *y;
    size_t y_stride;       /* floats between tokens             */
} aeg_matmul_args;

typedef void (*aeg_matmul_fn)(const aeg_matmul_args *a, uint32_t block0, uint32_t block1);

#endif
