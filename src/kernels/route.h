/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/route.h - which experts a token goes to, in the form of DeepSeek-V2/V3 and Xing4.0: arguments and formulas.
 *
 *   s_i = sigmoid(l_i), or e_i / sum of e with e_i = exp(l_i - max l) (16 partial sums)
 *   c_i = s_i + bias_i: decides the choice only
 *   with groups (n / n_groups consecutive experts): a group's score is its largest c, or the sum of its two largest; the
 *   top_groups largest scores stay, experts of the others are out (as if c were -infinity: 0 would beat a negative c)
 *   the top_k largest c, ids ascending; ties, of groups too: the lower id; a NaN last
 *   weight = s; with `renormalise` s / (sum of the chosen s, ascending id, + 1e-20); then * scale
 */
#ifndef AEG_KERNELS_ROUTE_H
#define AEG_KERNELS_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const float *logits;
    const float *bias;              /* NULL: none */
    uint32_t n, top_k;              /* top_k <= experts of the groups that stay */
    uint32_t n_groups, top_groups;  /* 1, 1: none; n a multiple of n_groups */
    bool sigmoid, renormalise, group_top2;
    float scale;
    float *scratch;                 /* aeg_route_scratch floats */
    uint16_t *ids;                  /* [top_k] out */
    float *weights;                 /* [top_k] out */
} aeg_route_args;

static inline size_t aeg_route_scratch(uint32_t n, uint32_t n_groups) { return 2 * (size_t)n + n_groups; }

#endif
