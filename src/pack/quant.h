/* SPDX-License-Identifier: Apache-2.0 */
/* pack/quant.h - the MLX affine rule, and MLX's order of codes (docs/store-format.md, "Quantisation").
 *
 * All arithmetic is float32, one rounding per operation, so that the codes equal those of MLX bit for bit.
 * Thread: any.
 */
#ifndef AEG_PACK_QUANT_H
#define AEG_PACK_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/weights.h"

/* One group: codes[group], and the scale and bias before they are rounded to their stored type. False if a
 * value, or the group's range, is not finite. */
bool aeg_quantise_group(const float *w, uint32_t group, uint32_t bits, uint8_t *codes, float *scale, float *bias);

/* Codes as a little-endian string of bits: code k at bits [k*bits, (k+1)*bits). n is a multiple of 8. */
void aeg_codes_pack(const uint8_t *codes, size_t n, uint32_t bits, uint8_t *out);
void aeg_codes_unpack(const uint8_t *in, size_t n, uint32_t bits, uint8_t *codes);

/* Rounded to kind AEG_W_F32, AEG_W_F16 or AEG_W_BF16; the bits in the low 2 or all 4 bytes. */
uint32_t aeg_stored_bits(uint32_t kind, float value);

#endif
