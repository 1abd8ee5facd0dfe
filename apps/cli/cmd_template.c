/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis template`: the prompt that the chat template makes of messages, byte for byte. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "setup.h"
#include "buffer.h"
#include "ui.h"

/* A file holds the list of messages, or a request with "messages" and "tools". */
static aegis_status split_request(const aeg_cli *cli, const aeg_buffer *text, char **messages, char **tools,
                                  aegis_error *err)
{
    json_t *request = NULL;
    AEG_TRY(aeg_json_parse(&request, text->p, text->n, cli->file, AEGIS_E_USAGE, err));
    const json_t *list = json_is_object(request) ? json_object_get(request, "messages") : request;
    aegis_status status = AEGIS_OK;
    if (!json_is_array(list))
        status = aeg_fail(err, AEGIS_E_USAGE, "%s: expected a list of messages, or an object with \"messages\"", cli->file);
    else if ((*messages = json_dumps(list, JSON_COMPACT)) == NULL)
        status = aeg_fail(err, AEGIS_E_MEMORY, "no memory for the messages");
    if (status == AEGIS_OK && json_is_array(json_object_get(request, "tools")))
        *tools = json_dumps(json_object_get(request, "tools"), JSON_COMPACT);
    json_decref(request);
    return status;
}

static aegis_status read_tools(const aeg_cli *cli, char **tools, aegis_error *err)
{
    aeg_buffer text = { 0 };
    json_t *list = NULL;
    aegis_status status = aeg_buffer_read(&text, cli->tools, err);
    if (status == AEGIS_OK)
        status = aeg_json_parse(&list, text.p, text.n, cli->tools, AEGIS_E_USAGE, err);
    if (status == AEGIS_OK && !json_is_array(list))
        status = aeg_fail(err, AEGIS_E_USAGE, "%s: expected a list of tools", cli->tools);
    if (status == AEGIS_OK) {
        aeg_free(aeg_json_memory(), *tools);
        *tools = json_dumps(list, JSON_COMPACT);
    }
    json_decref(list);
    aeg_buffer_free(&text);
    return status;
}

aegis_status aeg_cmd_template(aeg_cli *cli, aegis_error *err)
{
    if (cli->file == NULL)
        return aeg_fail(err, AEGIS_E_USAGE, "usage: aegis template %s", aeg_command_table[AEG_CMD_TEMPLATE].args);
    aegis_engine *engine = NULL;
    aeg_buffer text = { 0 };
    char *messages = NULL, *tools = NULL, *prompt = NULL;
    size_t n = 0;
    AEG_TRY(aeg_buffer_check(cli->file, err));
    aegis_status status = aeg_setup_open_text(cli, &engine, err); /* first: it knows what --memory leaves */
    if (status != AEGIS_OK)
        return status;
    status = aeg_buffer_read(&text, cli->file, err);
    if (status == AEGIS_OK)
        status = split_request(cli, &text, &messages, &tools, err);
    if (status == AEGIS_OK && cli->tools != NULL)
        status = read_tools(cli, &tools, err);
    if (status == AEGIS_OK)
        status = aegis_template(engine, messages, tools, cli->think, !cli->no_generation_prompt, &prompt, &n, err);
    if (status == AEGIS_E_MEMORY && cli->memory != 0)
        status = aeg_setup_too_long(engine, text.n, status, err);
    if (status == AEGIS_OK && cli->json)
        status = aeg_ui_print_json(json_pack("{s:s%}", "prompt", prompt, n), err);
    else if (status == AEGIS_OK)
        status = aeg_ui_write(prompt, n, err);
    aegis_text_free(prompt);
    aeg_free(aeg_json_memory(), messages);
    aeg_free(aeg_json_memory(), tools);
    aeg_buffer_free(&text);
    aeg_setup_close(engine);
    return status;
}
