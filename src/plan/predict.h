/* SPDX-License-Identifier: Apache-2.0 */
/* plan/predict.h - decode speed before anything is opened, from bytes, rates and a hit rate.
 *
 * The model is the usual one, t = t_dense + t_experts + (1 - phi) * d / B, with phi not a constant but what this engine
 * hides: the misses of a layer fly while its shared expert and its resident experts are computed, and nothing else
 * does. Per layer, with m of the k experts missing,
 *     t(0) = s + k*e              t(m) = max(s + k*e + m*a, latency + m*r + w(m) + e)
 * s: shared expert, e: one expert, r: one record from the disk, a: what an expert that arrives alone costs besides its
 * bytes, w: waking up after the last read, in proportion where the wait is short enough to spin. The expert that
 * arrives last cannot hide. m is binomial with the hit rate. Computing is reading memory: bytes / (AEG_PREDICT_ETA *
 * bandwidth), and AEG_PREDICT_LAYER_S per layer for what does not grow with bytes (barriers, norms, small products).
 * All times in seconds, rates in bytes per second. Thread: any, no state.
 */
#ifndef AEG_PLAN_PREDICT_H
#define AEG_PLAN_PREDICT_H

#include <stdint.h>

/* ETA is fitted to rows of docs/results/full-size.csv (three models of 30 to 35B, 3 to 22 GiB, 2 virtual cores) at the hit rate and disk rate of each
 * run: nine of eleven within 15 %, median 5 %, the other two, all in memory, too slow: Xing4.0 17 %, Qwen3-30B-A3B 19 % (the memory was disturbed there).
 * Left out of the fit: a GGUF of Qwen3.6 all in memory, for which it is 25 % too fast in a disturbed hour. The other constants are those of docs/results/prediction.csv; the rows do not
 * tell them apart.
 * Left out: guesses (a prediction is for --prefetch off), other work on the machine, a disk that slows down, the row of the embedding (one small read), page
 * faults of a pool that is still cold, and barriers of models so small that these cost more than their bytes. */
#define AEG_PREDICT_ETA 0.95
#define AEG_PREDICT_LAYER_S 15e-6
#define AEG_PREDICT_ARRIVAL_S 4e-6 /* submitting a read, and computing apart from the others: a */
#define AEG_PREDICT_WAKE_S 120e-6   /* the decode thread, and a team that went to sleep meanwhile */
#define AEG_PREDICT_SPIN_S 50e-6    /* shorter waits cost less of it */

typedef struct {
    uint32_t n_layers, top_k;
    uint64_t dense_bytes;      /* every weight that every token reads: mixers, routers, shared experts, head */
    uint64_t shared_bytes;     /* of these, the shared experts of all layers */
    uint64_t state_bytes;      /* recurrent state, read and written, and KV rows read */
    uint64_t expert_bytes;     /* computed with, of one routed expert */
    uint64_t record_bytes;     /* read, of one routed expert */
    double hit_rate;           /* 0 to 1 */
    double read_bandwidth;     /* memory, all threads; > 0 */
    double disk_bytes_per_s;   /* reads of a record, several at once; > 0 unless hit_rate is 1 */
    double disk_latency_s;     /* m reads at once take latency + m * record / rate */
} aeg_predict_inputs;

typedef struct {
    double tok_s;              /* 0: the inputs do not say (a rate that is needed is 0) */
    double dense_s, experts_s; /* computing, per token */
    double read_s;             /* of the misses of a token, latencies included */
    double hidden;             /* phi: share of read_s behind computing; 0 if nothing is read */
} aeg_prediction;

aeg_prediction aeg_predict(const aeg_predict_inputs *in);

/* The hit rate that text has on models of this shape with an admission by frequency, for stores that have no measured
 * curve: rates by share of the experts that have a slot. */
double aeg_predict_typical_hit_rate(uint32_t n_slots, uint32_t n_experts_total);

#endif
