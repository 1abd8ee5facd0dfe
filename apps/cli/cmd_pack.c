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

/* --memory is for the whole process; the packer gets what our code and libraries leave. */
static aegis_status packer_memory(const aeg_cli *cli, uint64_t *out, aegis_error *err)
{
    aeg_process_memory now = { 0 };
    aeg_process_memory_now(&now);
    const uint64_t budget = cli->memory == 0 ? PACK_DEFAULT_BYTES : AEG_MIN(cli->memory, PACK_DEFAULT_BYTES);
    const uint64_t own = now.rss_bytes + PACK_OWN_BYTES;
    if (budget <= own + (1 << 20)) {
        char has[AEG_SIZE_TEXT], needs[AEG_SIZE_TEXT];
        return aeg_fail(err, AEGIS_E_BUDGET, "packing does not fit %s: the program alone takes %s",
                        aeg_size_format(has, budget), aeg_size_format(needs, own));
    }
    *out = budget - own;
    return AEGIS_OK;
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

aegis_status aeg_pack_model(const aeg_cli *cli, const aeg_cli *first_use, aegis_error *err)
{
    aeg_progress progress;
    first_use_note note = { .model = first_use != NULL ? first_use->model : NULL, .store = cli->args[1] };
    aegis_pack_result result = { 0 };
    aegis_pack_options options = {
        .expert_bits = cli->expert_bits, .dense_bits = cli->dense_bits, .tokenizer_dir = cli->tokenizer, .n_threads = cli->threads,
        .needs_tokenizer = first_use != NULL && needs_text(first_use), .begins = first_use != NULL ? say_first_use : NULL, .begins_ctx = &note,
        .progress = aeg_progress_update, .progress_ctx = &progress, .cancelled = aeg_signals_cancelled,
    };
    AEG_TRY(packer_memory(cli, &options.memory_bytes, err));
    if (cli->expert_bits == 2)
        aeg_ui_say("experts at 2 bits lose much of the model's quality");
    aeg_progress_start(&progress, "packing");
    const aegis_status status = aegis_pack(cli->args[0], cli->args[1], &options, &result, err);
    aeg_progress_end(&progress);
    AEG_TRY(status);
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

aegis_status aeg_cmd_pack(aeg_cli *cli, aegis_error *err) { return aeg_pack_model(cli, NULL, err); }
