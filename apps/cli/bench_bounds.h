/* SPDX-License-Identifier: Apache-2.0 */
/* bench_bounds.h - how fast the same steps could have been, from what they read and computed. Thread: any.
 *
 * Three bounds on decoding without guesses, each the dense time and behind it the longer of reading and computing with the experts:
 * over the whole token at doctor's rate (bound), over the whole token at the rate that the disk had while the steps waited for it
 * (run_bound), and layer by layer at that rate (layer_bound). The last is the one that can be reached without guesses: what a layer
 * misses is known when its router has answered, so its reads hide behind its own experts only.
 */
#ifndef AEG_CLI_BENCH_BOUNDS_H
#define AEG_CLI_BENCH_BOUNDS_H

#include "aegis/aegis.h"
#include "bench_stats.h"

/* What a number of decode steps did, all per token but the counts. */
typedef struct {
    double dense_s, expert_s, read_bytes; /* of a token                                               */
    double record_bytes;                  /* of one read                                              */
    double wait_bytes_per_s;              /* the disk's rate while waiting; 0: never waited           */
    double disk_bytes_per_s;              /* doctor's figure, or the simulated disk's; 0: none        */
    uint64_t layers_missing[AEGIS_MISSES_MAX + 1]; /* steps of layers by the experts they missed, of all tokens */
    uint32_t tokens;                      /* >= 1                                                     */
} aeg_bench_work;

/* Seconds per token: at rate bytes/s, over the whole token. rate 0: as if nothing was read. */
double aeg_bench_bound(const aeg_bench_work *w, double rate);
/* The same, layer by layer, each with an equal part of the computing. */
double aeg_bench_layer_bound(const aeg_bench_work *w, double rate);

/* Sets layers_missing, run_bound_*, layer_bound_* and, with a disk figure, bound_*; AEG_BENCH_decode_tok_s is set already. */
void aeg_bench_find_bounds(const aeg_bench_work *w, aeg_bench_figures *out);

#endif
