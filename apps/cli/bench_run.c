/* SPDX-License-Identifier: Apache-2.0 */
/* One repetition of a bench: a prompt, then decode steps, and the figures of both. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "bench.h"
#include "bench_bounds.h"
#include "measured.h"
#include "model_source.h"
#include "setup.h"
#include "signals.h"
#include "ui.h"

/* Prose rather than random ids: what a router chooses, and so what is read, depends on the text. */
static const char TEXT[] =
    "The harbour lay quiet before sunrise, and the keeper of the light wrote the last line of the night into his "
    "book. Two ships had passed, one of them late. He noted the wind, the height of the tide and the colour of the "
    "sky, as his father had done, and then he climbed down to wake his daughter, who wanted to know how a lens can "
    "throw a small flame twenty miles across the water. He told her: every piece of glass bends the light a little, "
    "and all of them together agree on one direction. ";

enum { TEXT_STRIDE = 17 }; /* tokens by which the prompts of two repetitions begin apart */

/* --- open and close ------------------------------------------------------------------------------------- */

/* VmHWM starts anew, so that each opening's peak is its own. Linux 4.0; elsewhere the peak is that of the process. */
static void forget_peak(void)
{
    const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "5", 1) != 1) {
        /* then it is the peak of the process */
    }
    close(fd);
}

static void keep_info(aeg_bench_side *side)
{
    aegis_engine_info(side->engine, &side->info);
    snprintf(side->path, sizeof side->path, "%s", side->info.path);
    snprintf(side->cpu, sizeof side->cpu, "%s", side->info.cpu);
    snprintf(side->io, sizeof side->io, "%s", side->info.io);
    snprintf(side->family, sizeof side->family, "%s", side->info.family);
    side->info.path = side->path;
    side->info.cpu = side->cpu;
    side->info.io = side->io;
    side->info.family = side->family;
}

static aegis_status make_text(aeg_bench_side *side, const aeg_bench_setup *setup, aegis_error *err)
{
    size_t n = 0;
    side->prompt = aeg_malloc(aeg_ui_memory(), setup->pp * sizeof *side->prompt);
    if (side->prompt == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for %u tokens", setup->pp);
    if (side->info.has_tokenizer && setup->tokens != AEG_BENCH_RANDOM)
        AEG_TRY(aegis_tokenize(side->engine, TEXT, sizeof TEXT - 1, false, &side->text, &n, err));
    side->n_text = (uint32_t)n;
    return AEGIS_OK;
}

aegis_status aeg_bench_open(aeg_bench_side *side, const aeg_bench_setup *setup, aegis_error *err)
{
    const bool first = side->n_runs == 0;
    forget_peak();
    AEG_TRY(aeg_setup_open(&side->cli, 0, &side->engine, err));
    keep_info(side);
    if (first)
        side->open_s = side->info.open_seconds;
    if ((uint64_t)setup->pp + setup->tg > side->info.plan.n_ctx)
        return aeg_fail(err, AEGIS_E_USAGE, "%u + %u tokens do not fit the context of %u (-c)", setup->pp, setup->tg,
                        side->info.plan.n_ctx);
    return make_text(side, setup, err);
}

void aeg_bench_close(aeg_bench_side *side)
{
    aeg_free(aeg_ui_memory(), side->prompt);
    aegis_free_ids(side->text);
    aeg_setup_close(side->engine);
    side->prompt = side->text = NULL;
    side->engine = NULL;
}

/* --- a repetition --------------------------------------------------------------------------------------- */

/* The text over and over from another beginning for each seed; without a text any tokens. */
static void make_prompt(aeg_bench_side *side, const aeg_bench_setup *setup, int64_t seed, uint64_t *random)
{
    const uint64_t start = side->n_text > 0 ? (uint64_t)seed * TEXT_STRIDE % side->n_text : 0;
    for (uint32_t i = 0; i < setup->pp; i++)
        side->prompt[i] = side->n_text > 0 ? side->text[(start + i) % side->n_text]
                                           : (uint32_t)(aeg_bench_random(random) % side->info.vocab_size);
}

typedef struct {
    uint64_t first_ns, steady_ns, hash;
    uint32_t steady_steps; /* the steps behind the first; with one step alone, that one */
    aegis_stats before;    /* the counters when those began */
} decode_times;

static aegis_status decode(aeg_bench_side *side, const aeg_bench_setup *setup, uint64_t *random, decode_times *t,
                           aegis_error *err)
{
    *t = (decode_times){ .hash = UINT64_C(0xcbf29ce484222325), .steady_steps = AEG_MAX(setup->tg, 2) - 1 };
    aegis_engine_stats(side->engine, &t->before);
    for (uint32_t i = 0; i < setup->tg; i++) {
        const uint32_t token = aeg_bench_choose(setup->tokens, random, aegis_session_logits(side->engine),
                                                side->info.vocab_size);
        t->hash = (t->hash ^ token) * UINT64_C(0x100000001b3); /* FNV-1a */
        const uint64_t start = aeg_now_ns();
        AEG_TRY(aegis_session_step(side->engine, token, err));
        const uint64_t ns = aeg_now_ns() - start;
        t->steady_ns += ns;
        if (i > 0)
            continue;
        t->first_ns = ns;
        if (setup->tg == 1)
            continue;
        t->steady_ns = 0;
        aegis_engine_stats(side->engine, &t->before);
    }
    return AEGIS_OK;
}

static void find_bounds(const aeg_bench_side *side, const decode_times *t, const aegis_stats *after, aeg_bench_figures *out)
{
    const double *v = out->value;
    aeg_bench_work w = { .dense_s = v[AEG_BENCH_dense_ms_per_token] * 1e-3, .expert_s = v[AEG_BENCH_expert_ms_per_token] * 1e-3,
                         .read_bytes = v[AEG_BENCH_disk_bytes_per_token], .record_bytes = (double)side->info.touched.record_bytes,
                         .wait_bytes_per_s = v[AEG_BENCH_disk_bytes_per_s_while_waiting],
                         .disk_bytes_per_s = side->has_disk ? side->disk_bytes_per_s : 0, .tokens = t->steady_steps };
    for (uint32_t m = 0; m <= AEGIS_MISSES_MAX; m++)
        w.layers_missing[m] = after->layers_missing[m] - t->before.layers_missing[m];
    aeg_bench_find_bounds(&w, out);
}

/* The statistics began anew with the prompt. What is read: the experts that its chunks needed and the slots did not have, each
 * once per chunk. */
static void find_prefill(const aeg_bench_side *side, const aeg_bench_setup *setup, uint64_t ns, const aegis_stats *stats, double *v)
{
    v[AEG_BENCH_ttft_s] = (double)ns * 1e-9;
    v[AEG_BENCH_prefill_tok_s] = aeg_setup_rate(setup->pp, ns);
    v[AEG_BENCH_prefill_wait_s] = (double)stats->wait_ns * 1e-9;
    v[AEG_BENCH_prefill_compute_s] = (double)(ns - AEG_MIN(ns, stats->wait_ns)) * 1e-9;
    v[AEG_BENCH_prefill_read_bytes] = (double)stats->read_bytes;
    if (!side->has_disk)
        return;
    v[AEG_BENCH_prefill_read_s] = (double)stats->read_bytes / side->disk_bytes_per_s;
    v[AEG_BENCH_prefill_share_of_bound] = AEG_MAX(v[AEG_BENCH_prefill_read_s], v[AEG_BENCH_prefill_compute_s]) / v[AEG_BENCH_ttft_s];
}

/* Figures of the steady steps alone, time and counters alike: a bound that held the first step's reads or its lost time would
 * be another's bound. */
static void find_figures(const aeg_bench_side *side, const decode_times *t, const aegis_stats *after, aeg_bench_figures *out)
{
    double *v = out->value;
    const aegis_stats *before = &t->before;
    const uint32_t steps = t->steady_steps;
    const double uses = (double)(after->expert_uses - before->expert_uses);
    const double wait_ns = (double)(after->wait_ns - before->wait_ns);
    const double expert_ns = (double)(after->expert_ns - before->expert_ns), total_ns = (double)t->steady_ns;
    out->tokens_hash = t->hash;
    v[AEG_BENCH_first_step_s] = (double)t->first_ns * 1e-9;
    v[AEG_BENCH_decode_tok_s] = aeg_setup_rate(steps, t->steady_ns);
    v[AEG_BENCH_disk_bytes_per_token] = (double)(after->read_bytes - before->read_bytes) / steps;
    v[AEG_BENCH_hit_rate] = uses > 0 ? (double)(after->expert_hits - before->expert_hits) / uses : 1;
    v[AEG_BENCH_disk_busy] = total_ns > 0 ? (double)(after->disk_busy_ns - before->disk_busy_ns) / total_ns : 0;
    const double busy_s = (double)(after->disk_busy_ns - before->disk_busy_ns) * 1e-9;
    v[AEG_BENCH_disk_busy_bytes_per_s] = busy_s > 0 ? (double)(after->disk_bytes - before->disk_bytes) / busy_s : 0;
    v[AEG_BENCH_disk_busy_while_waiting] = wait_ns > 0 ? (double)(after->wait_busy_ns - before->wait_busy_ns) / wait_ns : 0;
    v[AEG_BENCH_disk_bytes_per_s_while_waiting] = wait_ns > 0 ? (double)(after->wait_bytes - before->wait_bytes) * 1e9 / wait_ns : 0;
    v[AEG_BENCH_wait_ms_per_token] = wait_ns * 1e-6 / steps;
    v[AEG_BENCH_compute_ms_per_token] = (total_ns - wait_ns) * 1e-6 / steps;
    v[AEG_BENCH_embed_ms_per_token] = (double)(after->embed_ns - before->embed_ns) * 1e-6 / steps;
    v[AEG_BENCH_expert_ms_per_token] = expert_ns * 1e-6 / steps;
    v[AEG_BENCH_dense_ms_per_token] = (total_ns - wait_ns - expert_ns) * 1e-6 / steps;
    v[AEG_BENCH_peak_bytes] = (double)after->peak_bytes;
    find_bounds(side, t, after, out);
}

aegis_status aeg_bench_once(aeg_bench_side *side, const aeg_bench_setup *setup, int64_t seed, aeg_bench_figures *out,
                            aegis_error *err)
{
    aegis_stats after;
    decode_times times;
    uint64_t random = (uint64_t)seed;
    *out = (aeg_bench_figures){ 0 };
    make_prompt(side, setup, seed, &random);
    aeg_signals_watch(aegis_engine_cancel, side->engine);
    aegis_session_clear(side->engine);
    aegis_engine_stats_reset(side->engine);
    const uint64_t start = aeg_now_ns();
    AEG_TRY(aegis_session_sync(side->engine, side->prompt, setup->pp, NULL, NULL, err));
    const uint64_t prefill_ns = aeg_now_ns() - start;
    aegis_engine_stats(side->engine, &after);
    find_prefill(side, setup, prefill_ns, &after, out->value);
    AEG_TRY(decode(side, setup, &random, &times, err));
    aegis_engine_stats(side->engine, &after);
    find_figures(side, &times, &after, out);
    return AEGIS_OK;
}

/* --- figures from outside --------------------------------------------------------------------------------- */

double aeg_bench_bandwidth(const aeg_bench_setup *setup)
{
    return AEG_MAX(setup->bandwidth_start.median, setup->bandwidth_end.median);
}

double aeg_bench_touched_bytes(const aeg_bench_side *side, const aeg_bench_setup *setup)
{
    const aegis_touched *t = &side->info.touched;
    return (double)(t->dense_bytes + t->expert_bytes + t->state_bytes) +
           (double)t->kv_position_bytes * (setup->pp + setup->tg / 2.0);
}

double aeg_bench_resident_ms(const aeg_bench_side *side, const aeg_bench_setup *setup)
{
    const aegis_resident_rate *r = &side->resident;
    const double experts = (double)side->info.touched.expert_bytes;
    if (r->dense_bytes_per_s <= 0 || r->experts_bytes_per_s <= 0)
        return 0;
    return 1e3 * ((aeg_bench_touched_bytes(side, setup) - experts) / r->dense_bytes_per_s + experts / r->experts_bytes_per_s);
}

aegis_status aeg_bench_predict(aeg_bench_side *side, const aeg_bench_setup *setup, bool measured_hits, aegis_error *err)
{
    char store[AEG_PATH_MAX];
    aegis_options options;
    aegis_plan plan;
    AEG_TRY(aeg_source_resolve(&side->cli, store, err));
    aeg_setup_options(&side->cli, store, &options);
    AEG_TRY(aeg_measured_fill(&side->cli, &options, aeg_bench_bandwidth(setup), &side->disk_bytes_per_s, err));
    side->has_disk = side->disk_bytes_per_s > 0;
    options.measured.position = setup->pp + setup->tg / 2;
    const double *median = side->summary.median.value;
    if (measured_hits && median[AEG_BENCH_hit_rate] > 0) {
        options.measured.hit_rate = median[AEG_BENCH_hit_rate];
        AEG_TRY(aegis_plan_compute(&options, &plan, err));
        side->predicted_at_measured_hits_tok_s = plan.predicted_decode_tok_s;
        options.measured.disk_bytes_per_s = median[AEG_BENCH_disk_busy_bytes_per_s];
        options.measured.disk_latency_s = 0;
        AEG_TRY(aegis_plan_compute(&options, &plan, err));
        side->predicted_at_measured_disk_tok_s = plan.predicted_decode_tok_s;
    }
    if (measured_hits)
        return AEGIS_OK;
    AEG_TRY(aegis_plan_compute(&options, &plan, err));
    side->predicted_tok_s = plan.predicted_decode_tok_s;
    side->predicted_hit_rate = plan.predicted_hit_rate;
    side->typical_hit_curve = plan.typical_hit_curve;
    return AEGIS_OK;
}
