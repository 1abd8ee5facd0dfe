/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - `aegis bench`: what its files share. Thread: main only.
 *
 * cmd_bench.c is the order of things, bench_run.c one repetition, bench_tokens.c which tokens, bench_bounds.c the bounds,
 * bench_stats.c medians, bench_report.c the table and the JSON object, bench_csv.c the lines.
 * Choosing a token is not on the clock: decode is the sum of its steps, so `--tokens` does not change what is measured.
 */
#ifndef AEG_CLI_BENCH_H
#define AEG_CLI_BENCH_H

#include "aegis/aegis.h"
#include "aegis/probe.h"
#include "bandwidth.h"
#include "bench_stats.h"
#include "disk_figure.h"
#include "machine.h"
#include "options.h"

struct json_t;

typedef enum { AEG_BENCH_SAMPLED, AEG_BENCH_GREEDY, AEG_BENCH_RANDOM } aeg_bench_tokens; /* order of the choices */

/* splitmix64: small, and the same numbers everywhere. */
uint64_t aeg_bench_random(uint64_t *state);
/* The next token by temperature 1 over logits[n], by the largest, or any. */
uint32_t aeg_bench_choose(aeg_bench_tokens how, uint64_t *state, const float *logits, uint32_t n);

/* What every repetition of both sides has in common. */
typedef struct {
    uint32_t pp, tg, repeats;
    aeg_bench_tokens tokens;
    int64_t seed;              /* of the first repetition; repetition i has seed + i, the cold one seed - 1 */
    aeg_machine machine;
    aeg_bandwidth bandwidth_start, bandwidth_end;
} aeg_bench_setup;

/* One setting that is measured. */
typedef struct {
    char label;                /* 'a', 'b'; 0: the only one */
    aeg_cli cli;
    aegis_engine *engine;      /* NULL: closed */
    aegis_info info;           /* kept after closing; its texts are the copies below */
    char path[AEGIS_ERROR_MAX], cpu[32], io[128], family[32];
    double open_s;             /* of the first opening */
    bool has_disk;             /* the figures below are known */
    double disk_bytes_per_s;   /* doctor's, or the simulated one */
    double predicted_tok_s;    /* as `aegis plan` says it; 0: not known, as for the next two */
    double predicted_at_measured_hits_tok_s;
    double predicted_at_measured_disk_tok_s; /* the hit rate and the disk's rate of this very run */
    double predicted_hit_rate;
    bool typical_hit_curve;
    uint32_t n_text;           /* the text's tokens; 0: no tokenizer */
    uint32_t *text, *prompt;   /* [n_text], [pp] */
    aeg_bench_figures cold, runs[AEG_BENCH_MAX_RUNS];
    int64_t seeds[AEG_BENCH_MAX_RUNS];
    uint32_t n_runs;
    aegis_resident_rate resident; /* behind the last run */
    aeg_bench_summary summary;
} aeg_bench_side;

/* bench_run.c. Open: resolves the model, keeps info, makes the prompt's tokens. Close may be called twice. */
aegis_status aeg_bench_open(aeg_bench_side *side, const aeg_bench_setup *setup, aegis_error *err);
void aeg_bench_close(aeg_bench_side *side);
aegis_status aeg_bench_once(aeg_bench_side *side, const aeg_bench_setup *setup, int64_t seed, aeg_bench_figures *out,
                            aegis_error *err);
/* Predictions of a side; with `measured_hits` from what was measured, else as `aegis plan` says it. */
aegis_status aeg_bench_predict(aeg_bench_side *side, const aeg_bench_setup *setup, bool measured_hits, aegis_error *err);

/* Bytes that decoding one token reads in the middle of the run. */
double aeg_bench_touched_bytes(const aeg_bench_side *side, const aeg_bench_setup *setup);
/* Milliseconds that a plain loop takes for the bytes of a token, each where it lies; 0: not known. */
double aeg_bench_resident_ms(const aeg_bench_side *side, const aeg_bench_setup *setup);

/* The larger of the two medians of the read bandwidth. */
double aeg_bench_bandwidth(const aeg_bench_setup *setup);

/* bench_report.c, bench_csv.c. n_sides: 1, or 2 with `together` saying how they were opened. */
struct json_t *aeg_bench_describe(const aeg_bench_side *side, const aeg_bench_setup *setup); /* machine, model, settings */
aegis_status aeg_bench_report(const aeg_bench_side *sides, uint32_t n_sides, const aeg_bench_setup *setup, bool together,
                              bool json, aegis_error *err);
aegis_status aeg_bench_csv(const aeg_bench_side *sides, uint32_t n_sides, const aeg_bench_setup *setup, aegis_error *err);

#endif
