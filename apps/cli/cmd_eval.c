/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis eval`: perplexity of a text in windows, and how far our distributions are from reference ones.
 *
 * Windows of N tokens follow each other without overlap. The logits of position i score token i + 1 of the same
 * window; the first K targets of each window are left out. All sums are in double.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "commands.h"
#include "ids.h"
#include "reference.h"
#include "setup.h"
#include "signals.h"
#include "buffer.h"
#include "ui.h"

typedef struct {
    const uint32_t *ids;       /* of the whole text */
    size_t n_ids, start, end;  /* the window */
    uint32_t vocab_size, skip;
    uint64_t n_scored, n_compared, n_same;
    double nll, kl, top20;     /* top20: sum over compared positions of the shared part of the 20 likeliest */
    bool has_reference;
    aeg_reference reference;
    aegis_engine *engine;
    aegis_status status;
    aegis_error *err;
} evaluation;

/* log of the sum of exp: subtract it from a logit to get its log probability. */
static double log_sum(const float *logits, uint32_t n, uint32_t *best)
{
    uint32_t top = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[top])
            top = i;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - (double)logits[top]);
    *best = top;
    return log(sum) + (double)logits[top];
}

enum { TOP = 20 };

/* Ids of the largest logits, any order; ties to the lower id. Returns how many (fewer in a small vocabulary). */
static uint32_t top_ids(uint32_t *ids, const float *logits, uint32_t n)
{
    uint32_t n_top = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = n_top;
        while (at > 0 && logits[i] > logits[ids[at - 1]])
            at--;
        if (at == TOP)
            continue;
        n_top = AEG_MIN(n_top + 1, (uint32_t)TOP);
        memmove(ids + at + 1, ids + at, (n_top - 1 - at) * sizeof *ids);
        ids[at] = i;
    }
    return n_top;
}

/* Share of the 20 likeliest tokens that are among the other's 20. */
static double top_overlap(const float *a, const float *b, uint32_t n)
{
    uint32_t ids[2][TOP], n_same = 0;
    const uint32_t n_top = top_ids(ids[0], a, n);
    top_ids(ids[1], b, n);
    for (uint32_t i = 0; i < n_top; i++)
        for (uint32_t j = 0; j < n_top; j++)
            n_same += ids[0][i] == ids[1][j];
    return (double)n_same / n_top;
}

static void compare(evaluation *e, uint32_t pos, const float *logits, double our_log_sum, uint32_t our_best)
{
    uint32_t best;
    e->status = aeg_reference_read(&e->reference, pos, e->err);
    if (e->status != AEGIS_OK) {
        aegis_engine_cancel(e->engine);
        return;
    }
    const float *reference = e->reference.values;
    const double their_log_sum = log_sum(reference, e->vocab_size, &best);
    double kl = 0;
    for (uint32_t i = 0; i < e->vocab_size; i++) {
        const double theirs = (double)reference[i] - their_log_sum;
        const double p = exp(theirs);
        if (p > 0)
            kl += p * (theirs - ((double)logits[i] - our_log_sum));
    }
    e->kl += kl;
    e->top20 += top_overlap(reference, logits, e->vocab_size);
    e->n_same += best == our_best;
    e->n_compared++;
}

static void on_logits(void *ctx, uint32_t pos, const float *logits)
{
    evaluation *e = ctx;
    const size_t at = e->start + pos;
    uint32_t best;
    if (pos < e->skip || e->status != AEGIS_OK)
        return;
    const double sum = log_sum(logits, e->vocab_size, &best);
    if (at + 1 < e->end) {
        e->nll += sum - (double)logits[e->ids[at + 1]];
        e->n_scored++;
    }
    if (e->has_reference && at >= e->reference.first && at < e->reference.n)
        compare(e, (uint32_t)at, logits, sum, best);
}

/* The first token of a window has nothing before it, so the longest window scores its length - 1 - skip. */
static aegis_status check_windows(const evaluation *e, size_t n_ids, uint32_t window, aegis_error *err)
{
    if (AEG_MIN(n_ids, (size_t)window) > (size_t)e->skip + 1)
        return AEGIS_OK;
    return aeg_fail(err, AEGIS_E_USAGE, "nothing to score: windows of %zu tokens (-c), the first and %u more (--skip) left out",
                    AEG_MIN(n_ids, (size_t)window), e->skip);
}

static aegis_status evaluate(evaluation *e, uint32_t window, aegis_error *err)
{
    AEG_TRY(check_windows(e, e->n_ids, window, err));
    for (e->start = 0; e->start < e->n_ids; e->start = e->end) {
        e->end = AEG_MIN(e->start + window, e->n_ids);
        if (e->end - e->start <= e->skip)
            continue;
        const aegis_watch watch = { .ctx = e, .logits_from = e->skip, .logits = on_logits };
        aegis_error sync_err;
        aegis_session_clear(e->engine);
        const aegis_status status = aegis_session_sync(e->engine, e->ids + e->start, e->end - e->start, NULL, &watch,
                                                       &sync_err);
        if (e->status != AEGIS_OK)
            return e->status; /* its message is in err */
        if (status != AEGIS_OK) {
            *err = sync_err;
            return status;
        }
    }
    return AEGIS_OK;
}

static aegis_status check_reference(const evaluation *e, aegis_error *err)
{
    const aeg_reference *r = &e->reference;
    if (r->vocab_size != e->vocab_size)
        return aeg_fail(err, AEGIS_E_USAGE, "%s: logits of %u tokens, the model has %u", r->path, r->vocab_size,
                        e->vocab_size);
    if (r->n > e->n_ids)
        return aeg_fail(err, AEGIS_E_USAGE, "%s: %u ids, the text has %zu tokens", r->path, r->n, e->n_ids);
    for (uint32_t i = 0; i < r->n; i++)
        if (r->ids[i] != e->ids[i])
            return aeg_fail(err, AEGIS_E_USAGE, "%s: id %u is %u, in the text it is %u", r->path, i, r->ids[i], e->ids[i]);
    return AEGIS_OK;
}

static aegis_status print_result(const aeg_cli *cli, const evaluation *e, uint32_t window, aegis_error *err)
{
    const double nll = e->nll / (double)e->n_scored;
    const double kl = e->n_compared > 0 ? e->kl / (double)e->n_compared : 0;
    const double top1 = e->n_compared > 0 ? (double)e->n_same / (double)e->n_compared : 0;
    const double top20 = e->n_compared > 0 ? e->top20 / (double)e->n_compared : 0;
    if (!cli->json) {
        printf("%llu of %zu tokens scored in windows of %u: nll %.6f, perplexity %.4f\n",
               (unsigned long long)e->n_scored, e->n_ids, window, nll, exp(nll));
        if (e->has_reference)
            printf("against %s at %llu positions: kl %.6f, same first choice %.2f %%, of the 20 likeliest %.2f %%\n",
                   e->reference.path, (unsigned long long)e->n_compared, kl, 100 * top1, 100 * top20);
        return aeg_ui_flush(err);
    }
    aeg_json_init();
    json_t *result = json_pack("{s:I, s:f, s:f, s:I, s:i, s:i}", "tokens", (json_int_t)e->n_scored, "nll", nll, "ppl",
                               exp(nll), "text_tokens", (json_int_t)e->n_ids, "window", (int)window, "skip", (int)e->skip);
    if (e->has_reference) {
        json_object_set_new(result, "kl", json_real(kl));
        json_object_set_new(result, "top1", json_real(top1));
        json_object_set_new(result, "top20", json_real(top20));
        json_object_set_new(result, "compared", json_integer((json_int_t)e->n_compared));
    }
    return aeg_ui_print_json(result, err);
}

static aegis_status evaluate_ids(const aeg_cli *cli, evaluation *e, aegis_error *err)
{
    aegis_info info;
    aegis_engine_info(e->engine, &info);
    e->vocab_size = info.vocab_size;
    for (size_t i = 0; i < e->n_ids; i++)
        if (e->ids[i] >= info.vocab_size)
            return aeg_fail(err, AEGIS_E_USAGE, "token %zu is %u, the vocabulary has %u", i, e->ids[i], info.vocab_size);
    if (e->has_reference)
        AEG_TRY(check_reference(e, err));
    AEG_TRY(evaluate(e, info.plan.n_ctx, err));
    return print_result(cli, e, info.plan.n_ctx, err);
}

static aegis_status evaluate_text(const aeg_cli *cli, evaluation *e, aegis_error *err)
{
    aeg_buffer text = { 0 };
    uint32_t *ids = NULL;
    aegis_status status = aeg_buffer_read(&text, cli->file, err);
    if (status == AEGIS_OK)
        status = aeg_setup_too_long(e->engine, text.n, aegis_tokenize(e->engine, text.n > 0 ? text.p : "", text.n, true,
                                                                      &ids, &e->n_ids, err), err);
    aeg_buffer_free(&text);
    e->ids = ids;
    if (status == AEGIS_OK)
        status = evaluate_ids(cli, e, err);
    aegis_free_ids(ids);
    return status;
}

static aegis_status evaluate_list(const aeg_cli *cli, evaluation *e, aegis_error *err)
{
    aeg_ids list = { 0 };
    aegis_status status = aeg_ids_read(&list, cli->ids, cli->ids_file, AEG_IDS_MAX, err);
    e->ids = list.ids;
    e->n_ids = list.n;
    if (status == AEGIS_OK)
        status = evaluate_ids(cli, e, err);
    aeg_ids_free(&list);
    return status;
}

aegis_status aeg_cmd_eval(aeg_cli *cli, aegis_error *err)
{
    const int n_sources = (cli->ids != NULL) + (cli->ids_file != NULL) + (cli->file != NULL);
    if (n_sources > 1 || (n_sources == 0 && cli->ref == NULL))
        return aeg_fail(err, AEGIS_E_USAGE, "usage: aegis eval %s", aeg_command_table[AEG_CMD_EVAL].args);
    evaluation e = { .skip = cli->skip, .has_reference = cli->ref != NULL, .err = err };
    if (cli->file != NULL || cli->ids_file != NULL)
        AEG_TRY(aeg_buffer_check(cli->file != NULL ? cli->file : cli->ids_file, err));
    if (cli->n_ctx != 0)
        AEG_TRY(check_windows(&e, cli->n_ctx, cli->n_ctx, err));
    aegis_status status = aeg_setup_open(cli, 0, &e.engine, err);
    if (status == AEGIS_OK && e.has_reference)
        status = aeg_reference_open(&e.reference, cli->ref, err);
    if (status == AEGIS_OK && cli->file != NULL) {
        status = evaluate_text(cli, &e, err);
    } else if (status == AEGIS_OK && n_sources == 1) {
        status = evaluate_list(cli, &e, err);
    } else if (status == AEGIS_OK) {
        e.ids = e.reference.ids;
        e.n_ids = e.reference.n;
        status = evaluate_ids(cli, &e, err);
    }
    aeg_reference_close(&e.reference);
    aeg_setup_close(e.engine);
    return status;
}
