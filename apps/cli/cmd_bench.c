/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis bench`: prefill and decode on a fixed text. One cold run is reported apart, then medians of the rest. With --ab
 * two settings take turns in one process: A B A B ..., the same seeds on both sides. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/processors.h"
#include "bench.h"
#include "bench_routes.h"
#include "commands.h"
#include "model_source.h"
#include "setup.h"
#include "ui.h"

enum { DEFAULT_PP = 512, DEFAULT_TG = 64, DEFAULT_REPEATS = 3, DEFAULT_CTX = 4096 };

typedef struct {
    aeg_bench_setup setup;
    uint32_t n_sides;
    bool together;             /* both engines stay open: they fit one budget */
    aeg_bench_side sides[2];
} bench;

static aegis_status read_options(bench *b, const aeg_cli *cli, char *ab, aegis_error *err)
{
    aeg_bench_setup *s = &b->setup;
    if (cli->json && cli->csv)
        return aeg_fail(err, AEGIS_E_USAGE, "--json and --csv: one of them");
    s->pp = cli->pp != 0 ? cli->pp : DEFAULT_PP;
    s->tg = cli->tg != 0 ? cli->tg : DEFAULT_TG;
    s->repeats = cli->repeats != 0 ? cli->repeats : DEFAULT_REPEATS;
    s->tokens = (aeg_bench_tokens)cli->bench_tokens;
    s->seed = cli->seed_given ? cli->seed : 1;
    b->n_sides = ab != NULL ? 2 : 1;
    b->sides[0].cli = *cli;
    if (ab != NULL) {
        aeg_cli *other = &b->sides[1].cli;
        *other = *cli;
        const aegis_status status = aeg_options_override(other, ab, err);
        if (status != AEGIS_OK)
            return aeg_wrap(err, status, "--ab");
        if (other->pp != cli->pp || other->tg != cli->tg || other->repeats != cli->repeats || other->seed != cli->seed ||
            other->bench_tokens != cli->bench_tokens || other->json != cli->json || other->csv != cli->csv ||
            other->ab != cli->ab || other->help != cli->help)
            return aeg_fail(err, AEGIS_E_USAGE, "--ab: -pp, -tg, -r, --tokens, --seed and the output are the same for both "
                            "sides and stand outside");
        b->sides[0].label = 'a';
        b->sides[1].label = 'b';
    }
    for (uint32_t i = 0; i < b->n_sides; i++)
        if (b->sides[i].cli.n_ctx == 0 && (uint64_t)s->pp + s->tg > DEFAULT_CTX)
            b->sides[i].cli.n_ctx = s->pp + s->tg;
    return AEGIS_OK;
}

static aegis_status plan_of(const aeg_bench_side *side, aegis_plan *plan, aegis_error *err)
{
    char store[AEG_PATH_MAX];
    aegis_options options;
    AEG_TRY(aeg_source_resolve(&side->cli, store, err));
    aeg_setup_options(&side->cli, store, &options);
    return aegis_plan_compute(&options, plan, err);
}

/* Two engines in one process are one process: what both use must be within the smaller budget, and the second must get
 * the slots that it would get alone. */
static aegis_status fit_together(bench *b, const aegis_plan *a, const aegis_plan *alone, bool *fit, aegis_error *err)
{
    aegis_plan beside;
    *fit = a->fits && alone->fits && a->total_bytes + alone->total_bytes <= AEG_MIN(a->budget_bytes, alone->budget_bytes);
    if (!*fit)
        return AEGIS_OK;
    AEG_TRY(aeg_bench_open(&b->sides[0], &b->setup, err));
    aeg_json_memory()->ceiling = 0; /* the first engine's plan has no room for the manifest of the second */
    AEG_TRY(plan_of(&b->sides[1], &beside, err));
    *fit = beside.fits && beside.expert_slots == alone->expert_slots && beside.chunk == alone->chunk;
    if (!*fit) {
        aeg_bench_close(&b->sides[0]);
        return AEGIS_OK;
    }
    return aeg_bench_open(&b->sides[1], &b->setup, err);
}

static void say_run(const bench *b, const aeg_bench_side *side)
{
    const double *v = side->runs[side->n_runs - 1].value;
    if (side->cli.verbose)
        aeg_ui_say("%srun %u of %u: prefill %.1f tok/s, decode %.2f tok/s, hit rate %.3f",
                   side->label == 'b' ? "B " : side->label == 'a' ? "A " : "", side->n_runs, b->setup.repeats,
                   v[AEG_BENCH_prefill_tok_s], v[AEG_BENCH_decode_tok_s], v[AEG_BENCH_hit_rate]);
}

/* The next repetition of a side. An engine that was just opened runs once before: its slots are empty. */
static aegis_status run_next(bench *b, aeg_bench_side *side, bool just_opened, aegis_error *err)
{
    const int64_t seed = (int64_t)((uint64_t)b->setup.seed + side->n_runs);
    if (just_opened) {
        aeg_bench_figures cold;
        AEG_TRY(aeg_bench_once(side, &b->setup, (int64_t)((uint64_t)b->setup.seed - 1), &cold, err));
        if (side->n_runs == 0)
            side->cold = cold;
    }
    side->seeds[side->n_runs] = seed;
    AEG_TRY(aeg_bench_once(side, &b->setup, seed, &side->runs[side->n_runs], err));
    side->n_runs++;
    say_run(b, side);
    return AEGIS_OK;
}

static aegis_status measure(bench *b, aegis_error *err)
{
    for (uint32_t turn = 0; turn < b->setup.repeats; turn++)
        for (uint32_t i = 0; i < b->n_sides; i++) {
            aeg_bench_side *side = &b->sides[i];
            const bool closed = side->engine == NULL;
            if (closed)
                AEG_TRY(aeg_bench_open(side, &b->setup, err));
            AEG_TRY(run_next(b, side, turn == 0 || closed, err));
            if (turn + 1 == b->setup.repeats)
                AEG_TRY(aegis_probe_resident(side->engine, &side->resident, err));
            if (b->n_sides == 2 && !b->together)
                aeg_bench_close(side);
        }
    return AEGIS_OK;
}

static aegis_status run_sides(bench *b, aegis_error *err)
{
    if (b->n_sides == 2) {
        aegis_plan plans[2];
        for (uint32_t i = 0; i < 2; i++)
            AEG_TRY(plan_of(&b->sides[i], &plans[i], err));
        AEG_TRY(fit_together(b, &plans[0], &plans[1], &b->together, err));
    }
    return measure(b, err);
}

static aeg_bandwidth measure_bandwidth(const bench *b)
{
    uint64_t budget = 0;
    uint32_t n_threads = 0;
    for (uint32_t i = 0; i < b->n_sides; i++) {
        const aeg_cli *cli = &b->sides[i].cli;
        if (cli->memory != 0)
            budget = budget == 0 ? cli->memory : AEG_MIN(budget, cli->memory);
        n_threads = AEG_MAX(n_threads, cli->threads != 0 ? cli->threads : aeg_usable_processors());
    }
    return aeg_bandwidth_measure(aeg_bandwidth_bytes(budget), n_threads);
}

static aegis_status run_bench(bench *b, aegis_error *err)
{
    aeg_machine_describe(&b->setup.machine);
    b->setup.bandwidth_start = measure_bandwidth(b);
    for (uint32_t i = 0; i < b->n_sides; i++)
        AEG_TRY(aeg_bench_predict(&b->sides[i], &b->setup, false, err));
    const aegis_status status = run_sides(b, err);
    for (uint32_t i = 0; i < b->n_sides; i++)
        aeg_bench_close(&b->sides[i]);
    AEG_TRY(status);
    b->setup.bandwidth_end = measure_bandwidth(b); /* the engines' memory is free again */
    for (uint32_t i = 0; i < b->n_sides; i++) {
        aeg_bench_summarise(b->sides[i].runs, b->sides[i].n_runs, &b->sides[i].summary);
        AEG_TRY(aeg_bench_predict(&b->sides[i], &b->setup, true, err));
    }
    return AEGIS_OK;
}

aegis_status aeg_cmd_bench(aeg_cli *cli, aegis_error *err)
{
    static bench b; /* larger than a stack likes */
    char *ab = NULL;
    if (aeg_bench_routes_wanted(cli))
        return aeg_bench_routes(cli, err);
    if (cli->ab != NULL && (ab = aeg_strdup(aeg_ui_memory(), cli->ab)) == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for the options of --ab");
    aegis_status status = read_options(&b, cli, ab, err);
    if (status == AEGIS_OK)
        status = run_bench(&b, err);
    if (status == AEGIS_OK)
        status = cli->csv ? aeg_bench_csv(b.sides, b.n_sides, &b.setup, err)
                          : aeg_bench_report(b.sides, b.n_sides, &b.setup, b.together, cli->json, err);
    aeg_free(aeg_ui_memory(), ab);
    return status;
}
