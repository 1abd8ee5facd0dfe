/* SPDX-License-Identifier: Apache-2.0 */
/* What a bench says: the table for people, the JSON object for programs. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/size.h"
#include "bench.h"
#include "ui.h"

static const char *const token_names[] = { "sampled", "greedy", "random" };

/* --- JSON ------------------------------------------------------------------------------------------------- */

/* known: the disk figure is, so that what needs it means something. */
static json_t *figures_json(const aeg_bench_figures *f, bool known)
{
    json_t *object = json_object();
    for (uint32_t m = 0; m < AEG_BENCH_N_METRICS; m++) {
        const double v = f->value[m];
        json_object_set_new(object, aeg_bench_metric_names[m],
                            !known && aeg_bench_needs_disk(m) ? json_null() : m == AEG_BENCH_peak_bytes && v >= 8
                                ? json_integer((json_int_t)v) : json_real(v));
    }
    return object;
}

static json_t *known(double v) { return v > 0 ? json_real(v) : json_null(); }

static json_t *bandwidth_json(const aeg_bandwidth *b)
{
    return json_pack("{s:f, s:f, s:f}", "min", b->min, "median", b->median, "max", b->max);
}

static json_t *machine_json(const aeg_bench_side *side, const aeg_bench_setup *setup)
{
    json_t *machine = aeg_machine_json(&setup->machine);
    json_object_set_new(machine, "kernels", json_string(side->info.cpu));
    json_object_set_new(machine, "read_bandwidth", json_real(aeg_bench_bandwidth(setup)));
    json_object_set_new(machine, "read_bandwidth_start", bandwidth_json(&setup->bandwidth_start));
    json_object_set_new(machine, "read_bandwidth_end", bandwidth_json(&setup->bandwidth_end));
    json_object_set_new(machine, "disk_bytes_per_s", side->has_disk ? json_real(side->disk_bytes_per_s) : json_null());
    return machine;
}

static json_t *settings_json(const aeg_bench_side *side, const aeg_bench_setup *setup)
{
    static const char *const activations[] = { "int8", "int16", "f32" };
    const aegis_plan *plan = &side->info.plan;
    const aeg_cli *cli = &side->cli;
    const aeg_option *kv = aeg_option_find("--kv-type", strlen("--kv-type"), 1u << AEG_CMD_BENCH);
    char kv_type[16] = "";
    const char *p = kv->choices; /* the table knows the names */
    for (int32_t i = 0; i < cli->kv && strchr(p, '|') != NULL; i++)
        p = strchr(p, '|') + 1;
    snprintf(kv_type, sizeof kv_type, "%.*s", (int)strcspn(p, "|"), p);
    json_t *s = json_pack("{s:I, s:i, s:i, s:i, s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:s, s:I}",
                          "budget", (json_int_t)plan->budget_bytes, "n_ctx", (int)plan->n_ctx, "threads",
                          (int)plan->n_threads, "threads_used", (int)side->info.n_threads_used, "chunk", (int)plan->chunk,
                          "activations", activations[cli->activations], "kv_type", kv_type, "io", side->info.io, "prefetch", (int)cli->prefetch, "expert_slots",
                          (int)plan->expert_slots, "pp", (int)setup->pp, "tg", (int)setup->tg, "repeats",
                          (int)setup->repeats, "tokens", token_names[setup->tokens], "seed", (json_int_t)setup->seed);
    json_object_set_new(s, "preload", json_boolean(cli->preload));
    const bool sim = cli->io == AEGIS_IO_SIM;
    json_object_set_new(s, "sim_bytes_per_s", sim ? json_real(cli->sim_bytes_per_s) : json_null());
    json_object_set_new(s, "sim_latency_us", sim ? json_real(cli->sim_latency_us) : json_null());
    return s;
}

json_t *aeg_bench_describe(const aeg_bench_side *side, const aeg_bench_setup *setup)
{
    const aegis_info *info = &side->info;
    return json_pack("{s:s, s:o, s:{s:s, s:s, s:i, s:i, s:i, s:i}, s:o}", "version", aegis_version(), "machine",
                     machine_json(side, setup), "model", "path", info->path, "family", info->family, "layers",
                     (int)info->n_layers, "experts", (int)info->n_experts, "top_k", (int)info->top_k, "hidden_size",
                     (int)info->hidden_size, "settings", settings_json(side, setup));
}

static json_t *roof_json(const aeg_bench_side *side, const aeg_bench_setup *setup)
{
    const aegis_touched *t = &side->info.touched;
    const double bytes = aeg_bench_touched_bytes(side, setup), rate = aeg_bench_bandwidth(setup);
    const double kv = (double)t->kv_position_bytes * (setup->pp + setup->tg / 2.0);
    const double tok_s = side->summary.median.value[AEG_BENCH_decode_tok_s], resident_ms = aeg_bench_resident_ms(side, setup);
    return json_pack("{s:f, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "bytes_per_token", bytes, "dense",
                     (json_int_t)t->dense_bytes, "experts", (json_int_t)t->expert_bytes, "state", (json_int_t)t->state_bytes,
                     "kv", kv, "tok_s", rate / bytes, "share", rate > 0 ? tok_s * bytes / rate : 0.0, "dense_bytes_per_s",
                     side->resident.dense_bytes_per_s, "experts_bytes_per_s", side->resident.experts_bytes_per_s,
                     "resident_tok_s", known(resident_ms > 0 ? 1e3 / resident_ms : 0), "resident_share",
                     known(tok_s * resident_ms * 1e-3));
}

static json_t *side_json(const aeg_bench_side *side, const aeg_bench_setup *setup)
{
    const aeg_bench_summary *s = &side->summary;
    json_t *result = figures_json(&s->median, side->has_disk), *runs = json_array();
    json_object_set_new(result, "spread", figures_json(&s->spread, side->has_disk));
    json_object_set_new(result, "q1", figures_json(&s->q1, side->has_disk));
    json_object_set_new(result, "q3", figures_json(&s->q3, side->has_disk));
    json_object_set_new(result, "cold", figures_json(&side->cold, side->has_disk));
    for (uint32_t i = 0; i < side->n_runs; i++) {
        json_t *run = figures_json(&side->runs[i], side->has_disk);
        json_object_set_new(run, "seed", json_integer(side->seeds[i]));
        json_array_append_new(runs, run);
    }
    json_object_set_new(result, "runs", runs);
    json_object_set_new(result, "open_s", json_real(side->open_s));
    json_object_set_new(result, "roof", roof_json(side, setup));
    json_object_set_new(result, "predicted_decode_tok_s", known(side->predicted_tok_s));
    json_object_set_new(result, "predicted_hit_rate", known(side->predicted_hit_rate));
    json_object_set_new(result, "predicted_with_typical_hit_curve", json_boolean(side->typical_hit_curve));
    json_object_set_new(result, "predicted_at_measured_hits_tok_s", known(side->predicted_at_measured_hits_tok_s));
    json_object_set_new(result, "predicted_at_measured_disk_tok_s", known(side->predicted_at_measured_disk_tok_s));
    json_t *rest = aeg_bench_describe(side, setup);
    json_object_update(result, rest);
    json_decref(rest);
    return result;
}

static bool same_tokens(const aeg_bench_side *a, const aeg_bench_side *b)
{
    bool same = a->cold.tokens_hash == b->cold.tokens_hash;
    for (uint32_t i = 0; i < a->n_runs && i < b->n_runs; i++)
        same &= a->runs[i].tokens_hash == b->runs[i].tokens_hash;
    return same;
}

static const char *how_opened(bool together)
{
    return together ? "together" : "one after the other";
}

static json_t *pair_json(const aeg_bench_side *sides, const aeg_bench_setup *setup, bool together)
{
    aeg_bench_figures ratio, pair;
    const bool known = sides[0].has_disk && sides[1].has_disk;
    aeg_bench_compare(sides[0].runs, sides[1].runs, sides[0].n_runs, &ratio, &pair);
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:b}", "version", aegis_version(), "a", side_json(&sides[0], setup),
                     "b", side_json(&sides[1], setup), "ratio_of_medians", figures_json(&ratio, known), "median_of_pair_ratios",
                     figures_json(&pair, known), "engines", how_opened(together), "same_tokens",
                     (int)same_tokens(&sides[0], &sides[1]));
}

/* --- text ------------------------------------------------------------------------------------------------- */

static void print_machine(const aeg_bench_side *side, const aeg_bench_setup *setup)
{
    const aeg_machine *m = &setup->machine;
    char memory[AEG_SIZE_TEXT], limit[AEG_SIZE_TEXT];
    printf("%s, %u cores, %s of memory%s%s, kernels %s\n", m->processor[0] != '\0' ? m->processor : "processor", m->cores,
           aeg_size_format(memory, m->memory_bytes), m->limit_bytes != 0 ? ", limited to " : "",
           m->limit_bytes != 0 ? aeg_size_format(limit, m->limit_bytes) : "", side->info.cpu);
    printf("memory reads %.1f GB/s before (slowest pass %.1f), %.1f GB/s after (slowest %.1f)", setup->bandwidth_start.median * 1e-9,
           setup->bandwidth_start.min * 1e-9, setup->bandwidth_end.median * 1e-9, setup->bandwidth_end.min * 1e-9);
    if (side->has_disk)
        printf("; %s %.2f GB/s", side->cli.io == AEGIS_IO_SIM ? "simulated disk" : "disk", side->disk_bytes_per_s * 1e-9);
    else
        printf("; disk not measured (aegis doctor MODEL)");
    printf("\naegis %s\n", aegis_version());
}

static void print_side(const aeg_bench_side *side, const aeg_bench_setup *setup)
{
    const aegis_plan *p = &side->info.plan;
    char budget[AEG_SIZE_TEXT];
    printf("\n");
    if (side->label != '\0')
        printf("%c: ", side->label - 'a' + 'A');
    printf("%s, budget %s, decode with %u of %u threads, context %u, chunk %u, %u of %u experts in slots, reads by %s", side->path,
           aeg_size_format(budget, p->budget_bytes), side->info.n_threads_used, p->n_threads, p->n_ctx, p->chunk, p->expert_slots,
           p->n_experts_total, side->info.io);
    if (side->cli.io == AEGIS_IO_SIM)
        printf(" at %.2f GB/s, %.0f us", side->cli.sim_bytes_per_s * 1e-9, side->cli.sim_latency_us);
    if (side->cli.prefetch == 0)
        printf(", no guesses\n");
    else if (side->cli.prefetch < 0)
        printf(", guesses auto\n");
    else
        printf(", %d guesses\n", side->cli.prefetch);
    printf("%u + %u tokens, %s, seeds from %lld; the cold run apart, then the median of %u\n\n", setup->pp, setup->tg,
           token_names[setup->tokens], (long long)setup->seed, side->n_runs);
    printf("%-30s %14s %14s %14s %8s %14s\n", "", "median", "quartile 1", "quartile 3", "spread", "cold");
    for (uint32_t m = 0; m < AEG_BENCH_N_METRICS; m++)
        if (side->has_disk || !aeg_bench_needs_disk(m))
            printf("%-30s %14.6g %14.6g %14.6g %6.1f %% %14.6g\n", aeg_bench_metric_names[m], side->summary.median.value[m],
                   side->summary.q1.value[m], side->summary.q3.value[m], 100 * side->summary.spread.value[m],
                   side->cold.value[m]);
    const double bytes = aeg_bench_touched_bytes(side, setup), rate = aeg_bench_bandwidth(setup);
    if (rate > 0)
        printf("roof: %.4g GB touched per token, %.1f %% of the read bandwidth\n", bytes * 1e-9,
               100 * side->summary.median.value[AEG_BENCH_decode_tok_s] * bytes / rate);
    const double resident_ms = aeg_bench_resident_ms(side, setup);
    if (resident_ms > 0)
        printf("where they lie, the dense weights read at %.1f GB/s and the experts at %.1f: %.1f %% of that\n",
               side->resident.dense_bytes_per_s * 1e-9, side->resident.experts_bytes_per_s * 1e-9,
               0.1 * side->summary.median.value[AEG_BENCH_decode_tok_s] * resident_ms);
    if (side->predicted_tok_s > 0)
        printf("predicted: %.2f tok/s with %s hit rate of %.3f", side->predicted_tok_s,
               side->predicted_hit_rate >= 1 ? "the final" : side->typical_hit_curve ? "a typical" : "the store's",
               side->predicted_hit_rate);
    if (side->predicted_tok_s > 0 && side->predicted_at_measured_hits_tok_s > 0)
        printf("; %.2f tok/s with the measured one, %.2f with the measured disk too", side->predicted_at_measured_hits_tok_s,
               side->predicted_at_measured_disk_tok_s);
    if (side->predicted_tok_s > 0)
        printf("\n");
}

static void print_pair(const aeg_bench_side *sides, bool together)
{
    aeg_bench_figures ratio, pair;
    aeg_bench_compare(sides[0].runs, sides[1].runs, sides[0].n_runs, &ratio, &pair);
    printf("\nB / A, engines opened %s, %s tokens on both sides\n\n%-30s %16s %16s\n", how_opened(together),
           same_tokens(&sides[0], &sides[1]) ? "the same" : "DIFFERENT", "", "ratio of medians", "median of pairs");
    for (uint32_t m = 0; m < AEG_BENCH_N_METRICS; m++)
        if (ratio.value[m] != 0)
            printf("%-30s %16.4f %16.4f\n", aeg_bench_metric_names[m], ratio.value[m], pair.value[m]);
}

aegis_status aeg_bench_report(const aeg_bench_side *sides, uint32_t n_sides, const aeg_bench_setup *setup, bool together,
                              bool json, aegis_error *err)
{
    if (json) {
        aeg_json_init();
        return aeg_ui_print_json(n_sides == 2 ? pair_json(sides, setup, together) : side_json(&sides[0], setup), err);
    }
    print_machine(&sides[0], setup);
    for (uint32_t i = 0; i < n_sides; i++)
        print_side(&sides[i], setup);
    if (n_sides == 2)
        print_pair(sides, together);
    return aeg_ui_flush(err);
}
