/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h - one function per command. Each prints its answer to standard output and returns a status; the
 * message of an error is printed by main. Thread: main. */
#ifndef AEG_CLI_COMMANDS_H
#define AEG_CLI_COMMANDS_H

#include "options.h"

aegis_status aeg_cmd_run(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_chat(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_pack(aeg_cli *cli, aegis_error *err);
/* What `aegis pack` does. first_use: the command whose first use of the model this is, said when packing begins; else NULL.
 * outline: all but the weights (aegis/pack.h), and nothing is said. */
aegis_status aeg_pack_model(const aeg_cli *cli, const aeg_cli *first_use, bool outline, aegis_error *err);
aegis_status aeg_cmd_plan(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_show(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_verify(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_cache(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_tokenize(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_template(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_logits(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_eval(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_bench(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_doctor(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_version(aeg_cli *cli, aegis_error *err);
aegis_status aeg_cmd_completion(aeg_cli *cli, aegis_error *err);

#endif
