/* SPDX-License-Identifier: Apache-2.0 */
/* expert/predictor.h - how many experts are worth reading early.
 *
 * Which experts is the model's business (the next layer's router on the present hidden state); this only
 * measures how long the disk is idle between the demands of two layers and how long one read takes. Decode
 * and prefill have their own figures. Thread: the decode thread only.
 */
#ifndef AEG_EXPERT_PREDICTOR_H
#define AEG_EXPERT_PREDICTOR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double idle_ns, read_ns;   /* moving averages per demand, per read */
    uint32_t n_idle, n_read;   /* samples so far, saturating           */
} aeg_predictor_pace;

typedef struct {
    int32_t prefetch;          /* 0 off, > 0 fixed, -1 by measured idle time */
    bool ordered;              /* of the demand that began last              */
    uint64_t begin_ns, end_ns; /* it began; its last read arrived (= begin_ns if it had none) */
    aeg_predictor_pace pace[2];
} aeg_predictor;

/* A demand begins; its last read has arrived (n_reads of them; 0 = only reads that were guesses). */
void aeg_predictor_begin(aeg_predictor *p, uint64_t now_ns, bool ordered);
void aeg_predictor_end(aeg_predictor *p, uint64_t now_ns, uint32_t n_reads);

/* The demand was abandoned: what it measured means nothing. */
void aeg_predictor_forget(aeg_predictor *p);

/* Experts that may be read early now; UINT32_MAX never. A fixed number is for decode: a prefill that may guess goes by
 * the idle time. */
uint32_t aeg_predictor_limit(const aeg_predictor *p);

#endif
