/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "aegis/pack.h"
#include "base/checked.h"
#include "base/json.h"
#include "base/process.h"
#include "base/size.h"
#include "commands.h"
#include "progress.h"
#include "signals.h"
#include "ui.h"

/* Besides the counted memory: library pages touched later, the reading thread, what malloc holds between blocks. */
enum { PACK_DEFAULT_BYTES = 300 << 20, PACK_OWN_BYTES = 3 << 20 };

/* --memory is for the whole process and, on a first use, for the parent that waits: the packer gets what they leave. */
typedef struct {
    uint64_t asked, own, left; /* --memory or the default; programs and libraries; for the packer */
} pack_budget;

static aegis_status share_budget(pack_budget *b, const aeg_cli *cli, const aeg_cli *first_use, aegis_error *err)
{
    aeg_process_memory now = { 0 };
    aeg_process_memory_now(&now);
    const uint64_t parent = first_use != NULL && first_use->memory > cli->memory ? first_use->memory - cli->memory : 0;
    b->asked = cli->memory == 0 ? PACK_DEFAULT_BYTES : AEG_MIN(cli->memory + parent, (uint64_t)PACK_DEFAULT_BYTES + parent);
    b->own = parent + now.rss_bytes + PACK_OWN_BYTES;
    if (b->asked <= b->own + (1 << 20)) {
        char has[AEG_SIZE_TEXT], needs[AEG_SIZE_TEXT];
        return aeg_fail(err, AEGIS_E_BUDGET, "packing does not fit --memory %s: the program alone takes %s",
                        aeg_size_format(has, b->asked), aeg_size_format(needs, b->own));
    }
    b->left = b->asked - b->own;
    return AEGIS_OK;
}

/* A ceiling that the user set is a budget that does not fit. */
static aegis_status refuse_budget(const pack_budget *b, aegis_error *err)
{
    const aegis_error why = *err;
    char has[AEG_SIZE_TEXT], own[AEG_SIZE_TEXT], most[AEG_SIZE_TEXT];
    return aeg_fail(err, AEGIS_E_BUDGET, "packing does not fit --memory %s, of which the program takes %s: %s; it never needs more than %s",
                    aeg_size_format(has, b->asked), aeg_size_format(own, b->own), why.message,
                    aeg_size_format(most, PACK_DEFAULT_BYTES));
}

typedef struct {
    const char *model, *store;
} first_use_note;

static void say_first_use(void *ctx, uint64_t store_bytes)
{
    const first_use_note *note = ctx;
    char size[AEG_SIZE_TEXT];
    aeg_ui_say("first use of %s: packing it into %s (at most %s)", note->model, note->store, aeg_size_format(size, store_bytes));
}

/* Without a tokenizer these could do nothing with the store. */
static bool needs_text(const aeg_cli *cli)
{
    switch (cli->command) {
    case AEG_CMD_RUN:
    case AEG_CMD_CHAT:
    case AEG_CMD_TOKENIZE:
    case AEG_CMD_TEMPLATE: return true;
    case AEG_CMD_LOGITS:
    case AEG_CMD_EVAL: return cli->prompt != NULL || cli->file != NULL;
    default: return false;
    }
}

aegis_status aeg_pack_model(const aeg_cli *cli, const aeg_cli *first_use, bool outline, aegis_error *err)
{
    aeg_progress progress;
    first_use_note note = { .model = first_use != NULL ? first_use->model : NULL, .store = cli->args[1] };
    aegis_pack_result result = { 0 };
    aegis_pack_options options = {
        .expert_bits = cli->expert_bits, .dense_bits = cli->dense_bits, .tokenizer_dir = cli->tokenizer, .n_threads = cli->threads,
        .outline = outline,
        .needs_tokenizer = first_use != NULL && needs_text(first_use), .begins = first_use != NULL ? say_first_use : NULL, .begins_ctx = &note,
        .progress = aeg_progress_update, .progress_ctx = &progress, .cancelled = aeg_signals_cancelled,
    };
    pack_budget budget = { 0 };
    AEG_TRY(share_budget(&budget, cli, first_use, err));
    options.memory_bytes = budget.left;
    if (cli->expert_bits == 2 && !outline)
        aeg_ui_say("experts at 2 bits lose much of the model's quality");
    aeg_progress_start(&progress, "packing");
    const aegis_status status = aegis_pack(cli->args[0], cli->args[1], &options, &result, err);
    aeg_progress_end(&progress);
    if (status == AEGIS_E_MEMORY && cli->memory != 0)
        return refuse_budget(&budget, err);
    AEG_TRY(status);
    if (outline)
        return AEGIS_OK;
    if (cli->json) {
        aeg_json_init();
        return aeg_ui_print_json(json_pack("{s:s, s:I, s:I, s:I, s:f}", "store", cli->args[1],
                                           "source_bytes", (json_int_t)result.source_bytes,
                                           "store_bytes", (json_int_t)result.store_bytes,
                                           "peak_memory_bytes", (json_int_t)result.peak_memory_bytes,
                                           "seconds", result.seconds), err);
    }
    char source[AEG_SIZE_TEXT], store[AEG_SIZE_TEXT], peak[AEG_SIZE_TEXT];
    aeg_ui_say("packed %s: %s -> %s in %.1f s, using %s of memory", cli->args[1],
               aeg_size_format(source, result.source_bytes), aeg_size_format(store, result.store_bytes),
               result.seconds, aeg_size_format(peak, result.peak_memory_bytes));
    return AEGIS_OK;
}

aegis_status aeg_cmd_pack(aeg_cli *cli, aegis_error *err) { return aeg_pack_model(cli, NULL, false, err); }
