/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis bench`: prefill and decode on a fixed text. One cold run is reported apart, then medians of the rest. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/process.h"
#include "base/size.h"
#include "bandwidth.h"
#include "commands.h"
#include "setup.h"
#include "ui.h"

enum { DEFAULT_PP = 512, DEFAULT_TG = 64, DEFAULT_REPEATS = 3, MAX_REPEATS = 64, DEFAULT_CTX = 4096 };

/* Prose rather than random ids: what a router chooses, and so what is read, depends on the text. */
static const char TEXT[] =
    "The harbour lay quiet before sunrise, and the keeper of the light wrote the last line of the night into his "
    "book. Two ships had passed, one of them late. He noted the wind, the height of the tide and the colour of the "
    "sky, as his father had done, and then he climbed down to wake his daughter, who wanted to know how a lens can "
    "throw a small flame twenty miles across the water. He told her: every piece of glass bends the light a little, "
    "and all of them together agree on one direction. ";

#define METRICS(X) X(prefill_tok_s) X(decode_tok_s) X(ttft_s) X(first_step_s) X(disk_bytes_per_token) X(hit_rate) \
    X(disk_busy) X(wait_ms_per_token) X(compute_ms_per_token) X(peak_bytes)

enum {
#define X(name) M_##name,
    METRICS(X)
#undef X
    N_METRICS,
};
static const char *const metric_names[N_METRICS] = {
#define X(name) #name,
    METRICS(X)
#undef X
};

typedef struct { double value[N_METRICS]; } run_figures;

typedef struct {
    const aeg_cli *cli;
    aegis_engine *engine;
    uint32_t pp, tg, repeats, vocab_size;
    uint32_t *prompt;
    double read_bandwidth;
} bench;

static uint32_t best_token(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* Figures of decode alone come from the difference of the counters at its two ends. */
static aegis_status run_once(bench *b, run_figures *out, aegis_error *err)
{
    aegis_stats before, after;
    double *v = out->value;
    aegis_session_clear(b->engine);
    aegis_engine_stats_reset(b->engine);
    const uint64_t start = aeg_now_ns();
    AEG_TRY(aegis_session_sync(b->engine, b->prompt, b->pp, NULL, NULL, err));
    const uint64_t prefill_ns = aeg_now_ns() - start;
    uint32_t token = best_token(aegis_session_logits(b->engine), b->vocab_size);
    v[M_ttft_s] = (double)(aeg_now_ns() - start) * 1e-9;
    v[M_prefill_tok_s] = aeg_setup_rate(b->pp, prefill_ns);

    aegis_engine_stats(b->engine, &before);
    const uint64_t decode_start = aeg_now_ns();
    uint64_t first_ns = 0;
    for (uint32_t i = 0; i < b->tg; i++) {
        AEG_TRY(aegis_session_step(b->engine, token, err));
        token = best_token(aegis_session_logits(b->engine), b->vocab_size);
        if (i == 0)
            first_ns = aeg_now_ns() - decode_start;
    }
    const uint64_t decode_ns = aeg_now_ns() - decode_start;
    aegis_engine_stats(b->engine, &after);

    const double uses = (double)(after.expert_uses - before.expert_uses);
    const double wait_ns = (double)(after.wait_ns - before.wait_ns);
    v[M_first_step_s] = (double)first_ns * 1e-9;
    v[M_decode_tok_s] = b->tg > 1 ? aeg_setup_rate(b->tg - 1, decode_ns - first_ns) : aeg_setup_rate(1, first_ns);
    v[M_disk_bytes_per_token] = (double)(after.read_bytes - before.read_bytes) / b->tg;
    v[M_hit_rate] = uses > 0 ? (double)(after.expert_hits - before.expert_hits) / uses : 1;
    v[M_disk_busy] = (double)(after.disk_busy_ns - before.disk_busy_ns) / (double)decode_ns;
    v[M_wait_ms_per_token] = wait_ns * 1e-6 / b->tg;
    v[M_compute_ms_per_token] = ((double)decode_ns - wait_ns) * 1e-6 / b->tg;
    v[M_peak_bytes] = (double)after.peak_bytes;
    return AEGIS_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise(const run_figures *runs, uint32_t n, run_figures *median, run_figures *spread)
{
    for (uint32_t m = 0; m < N_METRICS; m++) {
        double sorted[MAX_REPEATS];
        for (uint32_t i = 0; i < n; i++)
            sorted[i] = runs[i].value[m];
        qsort(sorted, n, sizeof sorted[0], by_value);
        const double middle = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
        median->value[m] = middle;
        spread->value[m] = middle != 0 ? (sorted[n - 1] - sorted[0]) / middle : 0;
    }
}

/* "model name : ..." of /proc/cpuinfo, or "". */
static void processor_name(char *out, size_t size)
{
    char text[4096];
    out[0] = '\0';
    const int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *p = strstr(text, "model name");
    p = p != NULL ? strstr(p, ": ") : NULL;
    if (p != NULL)
        snprintf(out, size, "%.*s", (int)strcspn(p + 2, "\n"), p + 2);
}

static json_t *figures_json(const run_figures *f)
{
    json_t *object = json_object();
    for (uint32_t m = 0; m < N_METRICS; m++)
        json_object_set_new(object, metric_names[m],
                            m == M_peak_bytes ? json_integer((json_int_t)f->value[m]) : json_real(f->value[m]));
    return object;
}

static json_t *circumstances(const bench *b)
{
    static const char *const activations[] = { "int8", "int16", "f32" }, *const kvs[] = { "f32", "f16" };
    aegis_info info;
    aeg_machine_memory memory = { 0 };
    char cpu[128];
    aegis_engine_info(b->engine, &info);
    aeg_machine_memory_now(&memory);
    processor_name(cpu, sizeof cpu);
    return json_pack("{s:s, s:{s:s, s:i, s:I, s:s, s:f}, s:{s:s, s:s, s:i, s:i, s:i, s:i},"
                     " s:{s:I, s:i, s:i, s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i}}",
                     "version", aegis_version(),
                     "machine", "processor", cpu, "cores", (int)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
                     (json_int_t)memory.total_bytes, "kernels", info.cpu, "read_bandwidth", b->read_bandwidth,
                     "model", "path", info.path, "family", info.family, "layers", (int)info.n_layers, "experts",
                     (int)info.n_experts, "top_k", (int)info.top_k, "hidden_size", (int)info.hidden_size,
                     "settings", "budget", (json_int_t)info.plan.budget_bytes, "n_ctx", (int)info.plan.n_ctx, "threads",
                     (int)info.plan.n_threads, "chunk", (int)info.plan.chunk, "activations",
                     activations[b->cli->activations], "kv_type", kvs[b->cli->kv], "io", info.io, "prefetch",
                     b->cli->prefetch, "expert_slots", (int)info.plan.expert_slots, "pp", (int)b->pp, "tg", (int)b->tg,
                     "repeats", (int)b->repeats);
}

static void print_table(const run_figures *cold, const run_figures *median, const run_figures *spread)
{
    printf("%-22s %14s %8s %14s\n", "", "median", "spread", "cold");
    for (uint32_t m = 0; m < N_METRICS; m++)
        printf("%-22s %14.6g %6.1f %% %14.6g\n", metric_names[m], median->value[m], 100 * spread->value[m],
               cold->value[m]);
}

static aegis_status measure(bench *b, aegis_error *err)
{
    run_figures cold, runs[MAX_REPEATS], median, spread;
    AEG_TRY(run_once(b, &cold, err));
    for (uint32_t i = 0; i < b->repeats; i++) {
        AEG_TRY(run_once(b, &runs[i], err));
        if (b->cli->verbose)
            aeg_ui_say("run %u: prefill %.1f tok/s, decode %.1f tok/s", i + 1, runs[i].value[M_prefill_tok_s],
                       runs[i].value[M_decode_tok_s]);
    }
    summarise(runs, b->repeats, &median, &spread);
    if (!b->cli->json) {
        print_table(&cold, &median, &spread);
        return aeg_ui_flush(err);
    }
    aeg_json_init();
    json_t *result = figures_json(&median);
    json_object_set_new(result, "spread", figures_json(&spread));
    json_object_set_new(result, "cold", figures_json(&cold));
    json_t *rest = circumstances(b);
    json_object_update(result, rest);
    json_decref(rest);
    return aeg_ui_print_json(result, err);
}

/* pp tokens: the text over and over, or without a tokenizer numbers spread over the vocabulary. */
static aegis_status make_prompt(bench *b, aegis_error *err)
{
    aegis_info info;
    uint32_t *ids = NULL;
    size_t n = 0;
    aegis_engine_info(b->engine, &info);
    b->vocab_size = info.vocab_size;
    if ((uint64_t)b->pp + b->tg > info.plan.n_ctx)
        return aeg_fail(err, AEGIS_E_USAGE, "%u + %u tokens do not fit the context of %u (-c)", b->pp, b->tg, info.plan.n_ctx);
    b->prompt = aeg_malloc(aeg_ui_memory(), b->pp * sizeof *b->prompt);
    if (b->prompt == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for %u tokens", b->pp);
    if (info.has_tokenizer)
        AEG_TRY(aegis_tokenize(b->engine, TEXT, sizeof TEXT - 1, false, &ids, &n, err));
    for (uint32_t i = 0; i < b->pp; i++)
        b->prompt[i] = n > 0 ? ids[i % n] : (uint32_t)((uint64_t)i * 2654435761u % info.vocab_size);
    aegis_free_ids(ids);
    return AEGIS_OK;
}

/* A buffer well above the caches, and within half of the budget. */
static double read_bandwidth(const aeg_cli *cli)
{
    uint64_t bytes = 256 << 20;
    if (cli->memory != 0)
        bytes = AEG_MIN(bytes, cli->memory / 2);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t n_threads = cli->threads != 0 ? cli->threads : (uint32_t)AEG_MIN(AEG_MAX(cores, 1), 64);
    return aeg_bandwidth_measure(bytes, n_threads);
}

aegis_status aeg_cmd_bench(aeg_cli *cli, aegis_error *err)
{
    bench b = { .cli = cli, .pp = cli->pp != 0 ? cli->pp : DEFAULT_PP, .tg = cli->tg != 0 ? cli->tg : DEFAULT_TG,
                .repeats = cli->repeats != 0 ? cli->repeats : DEFAULT_REPEATS };
    if (cli->n_ctx == 0 && (uint64_t)b.pp + b.tg > DEFAULT_CTX)
        cli->n_ctx = b.pp + b.tg;
    b.read_bandwidth = read_bandwidth(cli);
    aegis_status status = aeg_setup_open(cli, 0, &b.engine, err);
    if (status == AEGIS_OK)
        status = make_prompt(&b, err);
    if (status == AEGIS_OK)
        status = measure(&b, err);
    aeg_free(aeg_ui_memory(), b.prompt);
    aeg_setup_close(b.engine);
    return status;
}
