/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis logits`: evaluate tokens, write logits (and what else is asked for) as safetensors. */
#include <string.h>

#include "base/checked.h"
#include "commands.h"
#include "ids.h"
#include "output.h"
#include "setup.h"
#include "buffer.h"
#include "ui.h"

enum { MAX_TOP_K = 256 };
/* Numbers of the tensors in the file; the last three only when asked for. */
enum { T_IDS, T_LOGITS, T_FINAL, T_HIDDEN, T_ROUTER };

typedef struct {
    aegis_engine *engine;
    aeg_output out;
    uint32_t n, from, vocab_size, top_k, n_dense_layers, n_streams, hidden_size;
    uint32_t final_from;         /* first position that gets `final`                   */
    int32_t hidden, router;      /* numbers of these tensors, -1: not asked for        */
    aegis_status status;         /* of the first write that failed                     */
    aegis_error *err;
} writer;

static void put(writer *w, uint32_t tensor, uint64_t row, const void *data)
{
    if (w->status != AEGIS_OK)
        return;
    w->status = aeg_output_row(&w->out, tensor, row, data, w->err);
    if (w->status != AEGIS_OK)
        aegis_engine_cancel(w->engine); /* nothing that follows can be kept */
}

static void on_logits(void *ctx, uint32_t pos, const float *logits)
{
    writer *w = ctx;
    if (pos >= w->from)
        put(w, T_LOGITS, pos - w->from, logits);
}

static void on_final(void *ctx, uint32_t pos, const float *x)
{
    writer *w = ctx;
    if (pos >= w->final_from)
        put(w, T_FINAL, pos - w->final_from, x);
}

static void on_hidden(void *ctx, uint32_t layer, uint32_t pos, const float *x)
{
    writer *w = ctx;
    for (uint32_t s = 0; s < w->n_streams; s++)
        put(w, (uint32_t)w->hidden, ((uint64_t)layer * w->n + pos) * w->n_streams + s, x + (size_t)s * w->hidden_size);
}

static void on_router(void *ctx, uint32_t layer, uint32_t pos, const uint16_t *ids)
{
    writer *w = ctx;
    int32_t wide[MAX_TOP_K];
    for (uint32_t i = 0; i < w->top_k; i++)
        wide[i] = ids[i];
    put(w, (uint32_t)w->router, (uint64_t)(layer - w->n_dense_layers) * w->n + pos, wide);
}

static aegis_status open_output(writer *w, const aeg_cli *cli, const aegis_info *info, aegis_error *err)
{
    aeg_output_tensor t[AEG_OUTPUT_MAX_TENSORS] = {
        [T_IDS] = { "ids", "I32", 1, { w->n }, 0, 0 },
        [T_LOGITS] = { "logits", "F32", 2, { w->n - w->from, info->vocab_size }, 0, 0 },
        [T_FINAL] = { "final", "F32", 2, { w->n - w->final_from, info->hidden_size }, 0, 0 },
    };
    uint32_t n = T_FINAL + 1;
    w->hidden = w->router = -1;
    if (cli->hidden) {
        w->hidden = (int32_t)n;
        t[n++] = info->n_streams == 1
                     ? (aeg_output_tensor){ "hidden", "F32", 3, { info->n_layers + 1, w->n, info->hidden_size }, 0, 0 }
                     : (aeg_output_tensor){ "hidden", "F32", 4, { info->n_layers + 1, w->n, info->n_streams, info->hidden_size }, 0, 0 };
    }
    if (cli->router) {
        w->router = (int32_t)n;
        t[n++] = (aeg_output_tensor){ "router", "I32", 3, { info->n_layers - info->n_dense_layers, w->n, info->top_k }, 0, 0 };
    }
    return aeg_output_open(&w->out, cli->output, t, n, err);
}

static aegis_status evaluate(const aeg_cli *cli, aegis_engine *engine, const uint32_t *ids, size_t n, aegis_error *err)
{
    aegis_info info;
    aegis_engine_info(engine, &info);
    if (n == 0 || n > info.plan.n_ctx)
        return aeg_fail(err, AEGIS_E_USAGE, "%zu tokens, expected 1 to %u (the context, -c)", n, info.plan.n_ctx);
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= info.vocab_size)
            return aeg_fail(err, AEGIS_E_USAGE, "token %zu is %u, the vocabulary has %u", i, ids[i], info.vocab_size);
    if (cli->router && info.top_k > MAX_TOP_K)
        return aeg_fail(err, AEGIS_E_USAGE, "--router: %u experts per token, expected at most %d", info.top_k, MAX_TOP_K);

    writer w = { .engine = engine, .n = (uint32_t)n, .vocab_size = info.vocab_size, .top_k = info.top_k,
                 .n_dense_layers = info.n_dense_layers, .n_streams = info.n_streams, .hidden_size = info.hidden_size, .err = err };
    if (cli->last > 0 && cli->last < n)
        w.from = (uint32_t)n - cli->last;
    w.final_from = cli->hidden ? 0 : w.from;
    AEG_TRY(open_output(&w, cli, &info, err));
    put(&w, T_IDS, 0, ids); /* one row; a u32 below 2^31 and an I32 have the same bytes */
    const aegis_watch watch = { .ctx = &w, .logits_from = w.from, .logits = on_logits, .final = on_final,
                                .hidden = cli->hidden ? on_hidden : NULL, .router = cli->router ? on_router : NULL };
    aegis_error sync_err;
    aegis_status status = w.status;
    if (status == AEGIS_OK)
        status = aegis_session_sync(engine, ids, n, NULL, &watch, &sync_err);
    if (w.status != AEGIS_OK)
        status = w.status; /* its message is in err already */
    else if (status != AEGIS_OK)
        *err = sync_err;
    const aegis_status closed = aeg_output_close(&w.out, status != AEGIS_OK, status == AEGIS_OK ? err : NULL);
    return status != AEGIS_OK ? status : closed;
}

/* Ids that are given, before opening: a context that was not named grows with them. */
static aegis_status given_ids(aeg_cli *cli, aeg_ids *list, aegis_error *err)
{
    enum { DEFAULT_CTX = 4096 };
    aeg_ui_memory()->ceiling = cli->memory / 2; /* there is no plan yet */
    const aegis_status status = aeg_ids_read(list, cli->ids, cli->ids_file, cli->n_ctx != 0 ? cli->n_ctx : AEG_IDS_MAX, err);
    aeg_ui_memory()->ceiling = 0;
    if (status == AEGIS_OK && cli->n_ctx == 0 && list->n > DEFAULT_CTX)
        cli->n_ctx = (uint32_t)AEG_MIN(list->n, (size_t)UINT32_MAX);
    return status;
}

static aegis_status evaluate_text(const aeg_cli *cli, aegis_engine *engine, aegis_error *err)
{
    aeg_buffer text = { 0 };
    uint32_t *ids = NULL;
    size_t n = 0;
    aegis_status status;
    if (cli->prompt != NULL && strcmp(cli->prompt, "-") != 0)
        status = aeg_buffer_append(&text, cli->prompt, strlen(cli->prompt), err);
    else
        status = aeg_buffer_read(&text, cli->file != NULL ? cli->file : "-", err);
    if (status == AEGIS_OK)
        status = aeg_setup_too_long(engine, text.n, aegis_tokenize(engine, text.n > 0 ? text.p : "", text.n, true, &ids,
                                                                   &n, err), err);
    aeg_buffer_free(&text);
    if (status == AEGIS_OK)
        status = evaluate(cli, engine, ids, n, err);
    aegis_free_ids(ids);
    return status;
}

aegis_status aeg_cmd_logits(aeg_cli *cli, aegis_error *err)
{
    const int n_sources = (cli->ids != NULL) + (cli->ids_file != NULL) + (cli->prompt != NULL) + (cli->file != NULL);
    if (n_sources != 1 || cli->output == NULL)
        return aeg_fail(err, AEGIS_E_USAGE, "usage: aegis logits %s", aeg_command_table[AEG_CMD_LOGITS].args);
    if (cli->file != NULL || cli->ids_file != NULL)
        AEG_TRY(aeg_buffer_check(cli->file != NULL ? cli->file : cli->ids_file, err));
    AEG_TRY(aeg_output_check(cli->output, err));
    aeg_ids list = { 0 };
    aegis_engine *engine = NULL;
    const bool given = cli->ids != NULL || cli->ids_file != NULL;
    aegis_status status = given ? given_ids(cli, &list, err) : AEGIS_OK;
    if (status == AEGIS_OK)
        status = aeg_setup_open(cli, 0, &engine, err);
    if (status == AEGIS_OK)
        status = given ? evaluate(cli, engine, list.ids, list.n, err) : evaluate_text(cli, engine, err);
    aeg_setup_close(engine);
    aeg_ids_free(&list);
    return status;
}
