/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "aegis/pack.h"
#include "base/json.h"
#include "commands.h"
#include "model_source.h"
#include "progress.h"
#include "ui.h"

aegis_status aeg_cmd_verify(aeg_cli *cli, aegis_error *err)
{
    if (aeg_file_exists(cli->model) && !aeg_source_is_store(cli->model))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: not a store (no manifest.json)", cli->model);
    aeg_progress progress;
    aeg_progress_start(&progress, "verifying");
    const aegis_status status = aegis_store_verify(cli->model, aeg_progress_update, &progress, err);
    aeg_progress_end(&progress);
    AEG_TRY(status);
    if (cli->json) {
        aeg_json_init();
        return aeg_ui_print_json(json_pack("{s:s, s:b}", "store", cli->model, "ok", 1), err);
    }
    printf("%s: every hash matches\n", cli->model);
    return aeg_ui_flush(err);
}
