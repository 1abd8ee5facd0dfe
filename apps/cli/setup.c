/* SPDX-License-Identifier: Apache-2.0 */
#include "setup.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "base/process.h"
#include "base/size.h"
#include "model_source.h"
#include "progress.h"
#include "signals.h"
#include "ui.h"

void aeg_setup_options(const aeg_cli *cli, const char *store, aegis_options *out)
{
    static const char *const cpus[] = { NULL, "scalar", "avx2", "avx512", "neon" }; /* order of the choices */
    *out = (aegis_options){
        .store = store, .memory_bytes = cli->memory, .n_ctx = cli->n_ctx, .n_threads = cli->threads,
        .cpu = cpus[cli->cpu], .activations = (aegis_activations)cli->activations, .kv = (aegis_kv)cli->kv,
        .io = (aegis_io)cli->io, .sim_bytes_per_s = cli->sim_bytes_per_s,
        .sim_latency_s = cli->sim_latency_us * 1e-6, .prefetch = cli->prefetch, .chunk = cli->chunk,
        .n_checkpoints = cli->checkpoints > 0 ? (uint32_t)cli->checkpoints : 0, .telemetry = cli->telemetry,
    };
}

static aegis_status preload(aegis_engine **engine, aegis_error *err)
{
    aeg_progress bar;
    aeg_progress_start(&bar, "reading experts");
    const aegis_status status = aegis_engine_preload(*engine, aeg_progress_update, &bar, err);
    aeg_progress_end(&bar);
    if (status == AEGIS_OK)
        return AEGIS_OK;
    aeg_setup_close(*engine);
    *engine = NULL;
    return status;
}

static void options_of(const aeg_cli *cli, uint32_t default_checkpoints, const char *store, aegis_options *out)
{
    aeg_setup_options(cli, store, out);
    if (cli->checkpoints < 0)
        out->n_checkpoints = default_checkpoints;
}

/* Packing takes minutes and as much disk as the model: that a model will not fit the budget is said before. */
static aegis_status check_fits(const aeg_cli *cli, uint32_t default_checkpoints, aegis_error *err)
{
    aeg_outline outline;
    aegis_options options;
    aegis_plan plan;
    AEG_TRY(aeg_source_locate(cli, &outline.place, err));
    if (outline.place.packed)
        return AEGIS_OK; /* opening plans */
    AEG_TRY(aeg_source_outline(cli, &outline, err));
    options_of(cli, default_checkpoints, outline.store, &options);
    const aegis_status status = aegis_plan_compute(&options, &plan, err);
    aeg_source_drop(&outline);
    AEG_TRY(status);
    return plan.fits ? AEGIS_OK : aegis_plan_refuse(&plan, err);
}

aegis_status aeg_setup_open(const aeg_cli *cli, uint32_t default_checkpoints, aegis_engine **out, aegis_error *err)
{
    char store[AEG_PATH_MAX];
    aegis_options options;
    AEG_TRY(check_fits(cli, default_checkpoints, err));
    AEG_TRY(aeg_source_resolve(cli, store, err));
    options_of(cli, default_checkpoints, store, &options);
    aeg_setup_warn(cli);
    AEG_TRY(aegis_engine_open(out, &options, err));
    aeg_signals_watch(aegis_engine_cancel, *out);
    if (aeg_signals_caught(false) != 0) {
        aeg_setup_close(*out);
        *out = NULL; /* the caller closes what it holds, once more */
        return aeg_fail(err, AEGIS_E_CANCELLED, "interrupted");
    }
    if (cli->preload)
        AEG_TRY(preload(out, err));
    aegis_info info;
    aegis_engine_info(*out, &info);
    aeg_ui_memory()->ceiling = info.caller_text_bytes; /* from here on every byte of ours is in the plan */
    if (cli->verbose) {
        aeg_setup_print_plan(&info.plan, stderr);
        aeg_ui_say("%s opened in %.2f s: %s, %u layers, %u experts, kernels %s, reads by %s, decode with %u of %u threads", info.path,
                   info.open_seconds, info.family, info.n_layers, info.n_experts, info.cpu, info.io,
                   info.n_threads_used, info.plan.n_threads);
    }
    return AEGIS_OK;
}

aegis_status aeg_setup_open_text(const aeg_cli *cli, aegis_engine **out, aegis_error *err)
{
    aeg_outline model; /* a tokenizer needs no weights: of a source that is not packed its outline will do */
    AEG_TRY(aeg_source_outline(cli, &model, err));
    const aegis_status status = aegis_engine_open_text(out, model.store, err);
    aeg_source_drop(&model);
    AEG_TRY(status);
    aeg_signals_default(); /* from here on nothing is written but the answer */
    if (cli->memory == 0)
        return AEGIS_OK;
    /* There is no plan: of what the budget leaves, the text may have as much as its growing buffer, its tokens (4
     * bytes for each byte at worst, twice while their list grows) or its JSON values need beside it. */
    enum { PER_TEXT_BYTE = 12, LEAST = 64 << 10 };
    aeg_process_memory now = { 0 };
    aeg_process_memory_now(&now);
    const uint64_t left = cli->memory > now.peak_bytes ? cli->memory - now.peak_bytes : 0;
    if (left < PER_TEXT_BYTE * LEAST) {
        aegis_engine_close(*out);
        *out = NULL;
        return aeg_fail(err, AEGIS_E_BUDGET, "the tokenizer of the model alone takes %llu bytes, --memory is %llu",
                        (unsigned long long)now.peak_bytes, (unsigned long long)cli->memory);
    }
    aeg_ui_memory()->ceiling = left / PER_TEXT_BYTE;
    aeg_json_memory()->ceiling = aeg_json_memory()->in_use + left / PER_TEXT_BYTE * 8;
    return AEGIS_OK;
}

void aeg_setup_close(aegis_engine *engine)
{
    aeg_signals_watch(NULL, NULL);
    aeg_ui_memory()->ceiling = 0;
    aeg_json_memory()->ceiling = 0;
    aegis_engine_close(engine);
}

aegis_status aeg_setup_too_long(const aegis_engine *engine, size_t n, aegis_status status, aegis_error *err)
{
    aegis_info info;
    if (status != AEGIS_E_MEMORY)
        return status;
    aegis_engine_info(engine, &info);
    if (info.caller_text_bytes == 0) /* no plan */
        return aeg_fail(err, AEGIS_E_USAGE, "the text of %zu bytes is too long for the budget; raise --memory", n);
    return aeg_fail(err, AEGIS_E_USAGE, "the prompt of %zu bytes is too long for a context of %u tokens; ask for a larger "
                    "one with -c", n, info.plan.n_ctx);
}

/* What is allowed and probably not meant. */
void aeg_setup_warn(const aeg_cli *cli)
{
    aeg_machine_memory machine;
    char asked[AEG_SIZE_TEXT], have[AEG_SIZE_TEXT];
    /* A cgroup rounds its limit down to pages: less than a page more is the same size. */
    if (cli->memory != 0 && aeg_machine_memory_now(&machine) && cli->memory / 4096 > machine.total_bytes / 4096)
        aeg_ui_say("the budget of %s is more than %s has (%s)", aeg_size_format(asked, cli->memory),
                   machine.limited_by_cgroup ? "this memory cgroup" : "this machine",
                   aeg_size_format(have, machine.total_bytes));
    if (cli->io == AEGIS_IO_NULL && cli->command != AEG_CMD_BENCH && cli->command != AEG_CMD_PLAN)
        aeg_ui_say("--io null reads no experts: what the model says will be meaningless");
}

static void override(double *value, double given)
{
    if (!isnan(given))
        *value = given;
}

aegis_status aeg_setup_sampling(const aeg_cli *cli, const aegis_engine *engine, aegis_sampling *s, aegis_error *err)
{
    aegis_sampling_default(engine, s);
    override(&s->temperature, cli->temperature);
    override(&s->top_p, cli->top_p);
    override(&s->min_p, cli->min_p);
    override(&s->repeat_penalty, cli->repeat_penalty);
    override(&s->presence_penalty, cli->presence_penalty);
    override(&s->frequency_penalty, cli->frequency_penalty);
    if (cli->top_k >= 0)
        s->top_k = cli->top_k;
    if (cli->repeat_last_n > 0)
        s->penalty_last_n = cli->repeat_last_n;
    s->n_bias = cli->n_bias;
    aegis_info info;
    aegis_engine_info(engine, &info);
    for (uint32_t i = 0; i < cli->n_bias; i++) {
        if (cli->bias[i].id >= info.vocab_size)
            return aeg_fail(err, AEGIS_E_USAGE, "--logit-bias: token %u, the vocabulary has %u", cli->bias[i].id,
                            info.vocab_size);
        s->bias[i].id = cli->bias[i].id;
        s->bias[i].bias = cli->bias[i].bias;
    }
    s->seed = cli->seed;
    if (!cli->seed_given && getrandom(&s->seed, sizeof s->seed, 0) != sizeof s->seed)
        return aeg_fail_os(err, AEGIS_E_RUNTIME, errno, "drawing a seed");
    return aegis_sampling_check(s, err);
}

void aeg_setup_print_plan(const aegis_plan *plan, void *file)
{
    FILE *out = file;
    char text[AEG_SIZE_TEXT];
    fprintf(out, "budget %s, context %u tokens, %u threads, %u prompt tokens per step\n",
            aeg_size_format(text, plan->budget_bytes), plan->n_ctx, plan->n_threads, plan->chunk);
    for (uint32_t i = 0; i < plan->n_accounts; i++) {
        const uint64_t bytes = plan->accounts[i].bytes;
        if (bytes == 0)
            continue;
        fprintf(out, "  %-16s %10s  %5.1f %%\n", plan->accounts[i].name, aeg_size_format(text, bytes),
                plan->total_bytes > 0 ? 100.0 * (double)bytes / (double)plan->total_bytes : 0.0);
    }
    fprintf(out, "  %-16s %10s\n", "total", aeg_size_format(text, plan->total_bytes));
    fprintf(out, "slots for %u of %u experts, %s each", plan->expert_slots, plan->n_experts_total,
            aeg_size_format(text, plan->slot_bytes));
    fprintf(out, "; smallest budget %s", aeg_size_format(text, plan->minimum_bytes));
    fprintf(out, ", all resident %s\n", aeg_size_format(text, plan->all_resident_bytes));
    fprintf(out, "largest context at this budget: %u tokens\n", plan->max_n_ctx);
    if (plan->predicted_decode_tok_s > 0)
        fprintf(out, "predicted decode: %.1f tokens/s after %u tokens, %.1f at the end of the context\n", plan->predicted_decode_tok_s,
                plan->predicted_position, plan->predicted_full_tok_s);
}

double aeg_setup_rate(uint64_t n, uint64_t ns) { return ns == 0 ? 0 : (double)n * 1e9 / (double)ns; }

double aeg_setup_hit_rate(const aegis_stats *s)
{
    return s->expert_uses == 0 ? 1 : (double)s->expert_hits / (double)s->expert_uses;
}

void aeg_setup_say_figures(const aegis_generated *g, const aegis_stats *s, const aegis_sampling *sampling)
{
    const uint64_t tokens = s->prefill_tokens + s->decode_tokens;
    char peak[AEG_SIZE_TEXT], seed[32] = "greedy";
    if (sampling->temperature > 0)
        snprintf(seed, sizeof seed, "seed %lld", (long long)sampling->seed);
    aeg_ui_say("%u tokens at %.1f tok/s, prompt %u tokens (%u reused) at %.1f tok/s, first token after %.2f s, "
               "hit rate %.1f %%, %.2f MiB/token read, peak %s, %s", g->n_generated,
               aeg_setup_rate(s->decode_tokens, s->decode_ns), g->n_prompt, g->n_reused,
               aeg_setup_rate(s->prefill_tokens, s->prefill_ns), (double)g->ttft_ns * 1e-9,
               100 * aeg_setup_hit_rate(s),
               tokens == 0 ? 0.0 : (double)s->read_bytes / (double)tokens / 1048576.0,
               aeg_size_format(peak, s->peak_bytes), seed);
}
