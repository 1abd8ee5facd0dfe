/* SPDX-License-Identifier: Apache-2.0 */
/* model/tune.h - how many threads a decode step should use, measured on the loaded model.
 *
 * A step has about ten barriers per layer. On a small model they cost more than further threads bring, and on a large
 * one memory is busy before all cores are; where that turns depends on the machine, so it is timed. The number of
 * threads never shows in the bits (ADR 0004).
 * Memory: none; the model's scratch is written, weights are read, KV, recurrent state and slots are not touched.
 * Thread: the owner of the model, not during a forward.
 */
#ifndef AEG_MODEL_TUNE_H
#define AEG_MODEL_TUNE_H

#include "model/model.h"

enum {
    AEG_TUNE_COUNTS = 9,  /* 1, 2, 4, ... up to AEG_MAX_THREADS */
    AEG_TUNE_ROUNDS = 15, /* at most, of one pass per count     */
};

/* 1, 2, 4, ... below n, then n; returns how many. n in [1, AEG_MAX_THREADS]. */
uint32_t aeg_tune_counts(uint32_t out[AEG_TUNE_COUNTS], uint32_t n);

/* The smallest of counts [n], ascending, whose cost is within 3 % of the least. cost > 0, any unit; n >= 1. */
uint32_t aeg_tune_choose(const uint32_t *counts, const double *cost, uint32_t n);

/* The middle one of cost [n], n >= 1; with an even n the upper middle. Reorders cost. */
double aeg_tune_median(double *cost, uint32_t n);

/* Time the resident matrices as a decode step reads them with each of aeg_tune_counts of the model's threads, for about
 * 60 ms at most, and have chunks of up to AEG_DECODE_TOKENS tokens use the best; returns it. Where the time does not
 * suffice for three rounds, jobs are so long that barriers do not matter, and all threads are used. */
uint32_t aeg_model_tune(aeg_model *model);

#endif
