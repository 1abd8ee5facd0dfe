/* SPDX-License-Identifier: Apache-2.0 */
/* unit/mlx_order.h - the tensors of a packed store put back into the order and names of an MLX model, through
 * aeg_tile_unpack (slow and exact), so that they can be compared with what MLX itself would have written. */
#ifndef AEG_TESTS_MLX_ORDER_H
#define AEG_TESTS_MLX_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* One tensor: "language_model.model.layers.0.mlp.gate.scales", its bytes. Vectors come as bf16 (rounded). */
typedef void (*mlx_tensor_fn)(void *ctx, const char *name, const uint8_t *data, size_t n);

/* Every tensor of the store at `path`; all matrices must be affine. Returns how many. */
size_t mlx_each_tensor(const char *path, mlx_tensor_fn fn, void *ctx);

#endif
