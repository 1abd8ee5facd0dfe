/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - random numbers that are a function of (seed, counter) and of nothing else.
 *
 * Philox4x32 with 10 rounds (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC11): integer
 * arithmetic only, so every machine draws the same numbers, and the n-th draw needs no state but n.
 * Thread: any.
 */
#ifndef AEG_SAMPLE_RANDOM_H
#define AEG_SAMPLE_RANDOM_H

#include <stdint.h>

/* out = Philox4x32-10(counter, key), words as in the paper's reference vectors. */
void aeg_random_block(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

/* Draw number `step` of `seed`, uniform in [0, 1): a multiple of 2^-53. */
double aeg_random_uniform(uint64_t seed, uint64_t step);

#endif
