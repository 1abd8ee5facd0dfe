/* SPDX-License-Identifier: Apache-2.0 */
/* kv/codes.h - vectors of one head to codes: a fixed rotation, then one scale and d codes (ADR 0006).
 *
 * The rotation is y = H (D x) / sqrt(d): D flips signs by a fixed splitmix64 stream, H is the Walsh-Hadamard matrix in
 * natural order. It spreads outlier channels over all elements and leaves dot products as they are; every element of
 * y / rms is then close to N(0,1), for which t4 and t3 hold the nearest of 16 or 8 Lloyd-Max centroids (TurboQuant,
 * arXiv 2504.19874, without its one-bit residual). Plain C in one order: the same codes on every processor.
 * Thread: any.
 */
#ifndef AEG_KV_CODES_H
#define AEG_KV_CODES_H

#include "kernels/kernels.h"
#include "kernels/kv_codes.h"

/* signs[d]: 1 or -1; d a power of two >= 64 */
void aeg_kv_signs(float *signs, uint32_t d);

/* y = H (D x) / sqrt(d), and its inverse x = D (H y) / sqrt(d); both in place. */
void aeg_kv_rotate(const aeg_kernels *kernels, const float *signs, float *x, uint32_t d);
void aeg_kv_rotate_back(const aeg_kernels *kernels, const float *signs, float *y, uint32_t d);

/* One rotated vector to a packed row (aeg_kv_row_bytes) and its scale: element = scale * code.
 *   q8      scale = max |y| / 127
 *   t4, t3  index = number of decision boundaries <= y / rms; scale such that the decoded vector has y's norm
 * A vector below 1e-30 becomes scale 0; one with a NaN, an infinity or an overflowing square becomes scale NaN:
 * loud, where codes would pass for numbers. */
float aeg_kv_encode(const aeg_kernels *kernels, aeg_kv_kind kind, uint8_t *row, const float *y, uint32_t d);

/* A rotated query to int8 codes in the order of aeg_kv_place; returns the scale, max |y| / 127. */
float aeg_kv_encode_query(aeg_kv_kind kind, int8_t *codes, const float *y, uint32_t d);

#endif
