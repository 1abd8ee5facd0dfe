/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_routes.h"

#include <stdio.h>
#include <string.h>

#include "aegis/routes.h"
#include "base/checked.h"
#include "base/json.h"
#include "bench.h"
#include "buffer.h"
#include "model_source.h"
#include "setup.h"
#include "signals.h"
#include "ui.h"

enum { DEFAULT_PP = 512, DEFAULT_TG = 64, DEFAULT_CTX = 4096 };

bool aeg_bench_routes_wanted(const aeg_cli *cli)
{
    return cli->record_routes != NULL || cli->replay != NULL || cli->text_file != NULL || cli->save_curve;
}

static aegis_status check_options(const aeg_cli *cli, aegis_error *err)
{
    if (cli->record_routes != NULL && cli->replay != NULL)
        return aeg_fail(err, AEGIS_E_USAGE, "--record-routes and --replay: one of them");
    if (cli->text_file != NULL && cli->record_routes == NULL)
        return aeg_fail(err, AEGIS_E_USAGE, "--text is for --record-routes");
    if (cli->save_curve && cli->replay == NULL)
        return aeg_fail(err, AEGIS_E_USAGE, "--save-curve is for --replay");
    if (cli->json && cli->csv)
        return aeg_fail(err, AEGIS_E_USAGE, "--json and --csv: one of them");
    if (cli->ab != NULL)
        return aeg_fail(err, AEGIS_E_USAGE, "--ab measures; it neither records nor replays");
    return cli->text_file != NULL ? aeg_buffer_check(cli->text_file, err) : AEGIS_OK;
}

/* ---- recording ---- */

/* One window of a text: its first tokens by prefill, the others step by step. */
static aegis_status record_window(aegis_engine *engine, aegis_recorder *recorder, const uint32_t *ids, size_t n,
                                  size_t n_prefill, uint64_t *n_left, aegis_error *err)
{
    n_prefill = AEG_MIN(n_prefill, n);
    aegis_session_clear(engine);
    aegis_recorder_text(recorder);
    aegis_recorder_prefill(recorder, true);
    AEG_TRY(aegis_session_sync(engine, ids, n_prefill, NULL, NULL, err));
    aegis_recorder_prefill(recorder, false);
    for (size_t i = n_prefill; i < n && *n_left > 0; i++, (*n_left)--)
        AEG_TRY(aegis_session_step(engine, ids[i], err));
    return AEGIS_OK;
}

static aegis_status record_text(const aeg_cli *cli, aegis_engine *engine, aegis_recorder *recorder, aegis_error *err)
{
    aegis_info info;
    aeg_buffer text = { 0 };
    uint32_t *ids = NULL;
    size_t n = 0;
    uint64_t n_left = cli->tg != 0 ? cli->tg : UINT64_MAX;
    aegis_engine_info(engine, &info);
    aegis_status status = aeg_buffer_read(&text, cli->text_file, err);
    if (status == AEGIS_OK)
        status = aeg_setup_too_long(engine, text.n, aegis_tokenize(engine, text.n > 0 ? text.p : "", text.n, true, &ids, &n,
                                                                   err), err);
    if (status == AEGIS_OK && n == 0)
        status = aeg_fail(err, AEGIS_E_USAGE, "%s: no text", cli->text_file);
    const size_t n_window = info.plan.n_ctx;
    for (size_t i = 0; i < n && n_left > 0 && status == AEGIS_OK; i += n_window)
        status = record_window(engine, recorder, ids + i, AEG_MIN(n_window, n - i), cli->pp != 0 ? cli->pp : 1, &n_left,
                               err);
    aegis_free_ids(ids);
    aeg_buffer_free(&text);
    return status;
}

static aegis_status record_answer(aeg_bench_side *side, const aeg_bench_setup *setup, aegis_recorder *recorder,
                                  aegis_error *err)
{
    uint64_t random = (uint64_t)setup->seed;
    for (uint32_t i = 0; i < setup->pp; i++)
        side->prompt[i] = side->n_text > 0 ? side->text[i % side->n_text]
                                           : (uint32_t)(aeg_bench_random(&random) % side->info.vocab_size);
    aegis_recorder_text(recorder);
    aegis_recorder_prefill(recorder, true);
    AEG_TRY(aegis_session_sync(side->engine, side->prompt, setup->pp, NULL, NULL, err));
    aegis_recorder_prefill(recorder, false);
    for (uint32_t i = 0; i < setup->tg; i++) {
        const uint32_t token = aeg_bench_choose(setup->tokens, &random, aegis_session_logits(side->engine),
                                                side->info.vocab_size);
        AEG_TRY(aegis_session_step(side->engine, token, err));
    }
    return AEGIS_OK;
}

static aegis_status record_all(const aeg_cli *cli, aeg_bench_side *side, const aeg_bench_setup *setup, uint64_t *n_tokens,
                               aegis_error *err)
{
    aegis_recorder *recorder;
    if (cli->text_file != NULL) /* no prompt is made: the text needs its room */
        AEG_TRY(aeg_setup_open(&side->cli, 0, &side->engine, err));
    else
        AEG_TRY(aeg_bench_open(side, setup, err));
    aeg_signals_watch(aegis_engine_cancel, side->engine);
    AEG_TRY(aegis_recorder_open(&recorder, side->engine, cli->record_routes, err));
    const aegis_status status = cli->text_file != NULL ? record_text(cli, side->engine, recorder, err)
                                                       : record_answer(side, setup, recorder, err);
    const aegis_status closed = aegis_recorder_close(recorder, n_tokens, status == AEGIS_OK ? err : NULL);
    return status != AEGIS_OK ? status : closed;
}

static aegis_status record(const aeg_cli *cli, aegis_error *err)
{
    static aeg_bench_side side; /* larger than a stack likes */
    const aeg_bench_setup setup = { .pp = cli->pp != 0 ? cli->pp : DEFAULT_PP, .tg = cli->tg != 0 ? cli->tg : DEFAULT_TG,
                                    .repeats = 1, .tokens = (aeg_bench_tokens)cli->bench_tokens,
                                    .seed = cli->seed_given ? cli->seed : 1 };
    uint64_t n_tokens = 0;
    side.cli = *cli;
    if (cli->n_ctx == 0 && cli->text_file == NULL && (uint64_t)setup.pp + setup.tg > DEFAULT_CTX)
        side.cli.n_ctx = setup.pp + setup.tg;
    const aegis_status status = record_all(cli, &side, &setup, &n_tokens, err);
    aeg_bench_close(&side);
    AEG_TRY(status);
    if (cli->json) {
        aeg_json_init();
        return aeg_ui_print_json(json_pack("{s:s, s:I}", "routes", cli->record_routes, "tokens", (json_int_t)n_tokens), err);
    }
    printf("%s: routes of %llu tokens\n", cli->record_routes, (unsigned long long)n_tokens);
    return aeg_ui_flush(err);
}

/* ---- replay ---- */

typedef struct {
    bool csv, begun;
    json_t *rows;              /* NULL unless --json */
} table;

static double share(uint64_t hits, uint64_t uses) { return uses > 0 ? (double)hits / (double)uses : 0.0; }

static void on_row(void *ctx, const aegis_replay_row *r)
{
    table *t = ctx;
    if (!t->begun && t->rows == NULL)
        printf(t->csv ? "slots,policy,hit_rate,misses_per_token,prefill_hit_rate\n"
                      : "   slots  policy                               decode misses/token      prefill\n");
    t->begun = true;
    const double decode = share(r->hits, r->uses), prefill = share(r->prefill_hits, r->prefill_uses);
    if (t->rows != NULL)
        json_array_append_new(t->rows, json_pack("{s:i, s:s, s:f, s:f, s:f}", "slots", (int)r->slots, "policy", r->policy,
                                                 "hit_rate", decode, "misses_per_token", r->misses_per_token,
                                                 "prefill_hit_rate", prefill));
    else if (t->csv)
        printf("%u,\"%s\",%.4f,%.2f,%.4f\n", r->slots, r->policy, decode, r->misses_per_token, prefill);
    else
        printf("%8u  %-32s %8.2f %% %12.2f %10.2f %%\n", r->slots, r->policy, 100 * decode, r->misses_per_token, 100 * prefill);
}

static aegis_status replay(const aeg_cli *cli, aegis_error *err)
{
    char store[AEG_PATH_MAX];
    aegis_replay_info info;
    table t = { .csv = cli->csv };
    AEG_TRY(aeg_source_resolve(cli, store, err));
    if (cli->json) {
        aeg_json_init();
        t.rows = json_array();
    }
    const aegis_replay_options options = { .trace = cli->replay, .store = store, .save_curve = cli->save_curve, .row = on_row,
                                           .ctx = &t };
    const aegis_status status = aegis_replay(&options, &info, err);
    if (status != AEGIS_OK) {
        json_decref(t.rows);
        return status;
    }
    if (!info.same_model)
        aeg_ui_say("%s was recorded with another store of this shape", cli->replay);
    if (t.rows == NULL)
        return aeg_ui_flush(err);
    return aeg_ui_print_json(json_pack("{s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:b, s:o}", "routes", cli->replay, "layers",
                                       (int)info.n_layers, "experts", (int)info.n_experts, "top_k", (int)info.top_k, "tokens",
                                       (json_int_t)info.n_tokens, "decode_tokens", (json_int_t)info.n_decode_tokens, "texts",
                                       (json_int_t)info.n_texts, "curve_saved", (int)cli->save_curve, "rows", t.rows), err);
}

aegis_status aeg_bench_routes(const aeg_cli *cli, aegis_error *err)
{
    AEG_TRY(check_options(cli, err));
    return cli->replay != NULL ? replay(cli, err) : record(cli, err);
}
