/* SPDX-License-Identifier: Apache-2.0 */
#include "text/template.h"

#include <string.h>

/* `call` with its arguments as an object, or a new reference to `call` itself when they already are one
 * or are not the text of one. */
static json_t *with_parsed_arguments(json_t *call)
{
    json_t *function = json_object_get(call, "function");
    json_t *holder = json_is_object(function) ? function : call;
    const json_t *text = json_object_get(holder, "arguments");
    json_t *parsed = NULL;
    if (!json_is_string(text) ||
        aeg_json_parse(&parsed, json_string_value(text), json_string_length(text), "arguments", AEGIS_E_USAGE,
                       NULL) != AEGIS_OK)
        return json_incref(call);
    if (!json_is_object(parsed)) {
        json_decref(parsed);
        return json_incref(call);
    }
    json_t *copy = json_copy(call);
    json_t *inner = holder == call ? json_incref(copy) : json_copy(holder);
    bool ok = copy != NULL && inner != NULL && json_object_set_new(inner, "arguments", parsed) == 0;
    if (ok && holder != call)
        ok = json_object_set(copy, "function", inner) == 0;
    json_decref(inner);
    if (!ok) {
        json_decref(copy);
        return NULL;
    }
    return copy;
}

static json_t *message_for_template(json_t *message)
{
    const json_t *calls = json_object_get(message, "tool_calls");
    if (!json_is_array(calls) || json_array_size(calls) == 0)
        return json_incref(message);
    json_t *copy = json_copy(message), *list = json_array();
    bool ok = copy != NULL && list != NULL;
    for (size_t i = 0; ok && i < json_array_size(calls); i++) {
        json_t *call = json_array_get(calls, i);
        ok = json_array_append_new(list, json_is_object(call) ? with_parsed_arguments(call) : json_incref(call)) == 0;
    }
    ok = ok && json_object_set(copy, "tool_calls", list) == 0;
    json_decref(list);
    if (!ok) {
        json_decref(copy);
        return NULL;
    }
    return copy;
}

static aegis_status messages_for_template(const json_t *messages, json_t **out, aegis_error *err)
{
    if (!json_is_array(messages))
        return aeg_fail(err, AEGIS_E_USAGE, "messages must be an array");
    json_t *list = json_array();
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i);
        if (!json_is_object(message)) {
            json_decref(list);
            return aeg_fail(err, AEGIS_E_USAGE, "message %zu must be an object", i);
        }
        ok = json_array_append_new(list, message_for_template(message)) == 0;
    }
    if (!ok) {
        json_decref(list);
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for the messages of a chat template");
    }
    *out = list;
    return AEGIS_OK;
}

static bool add_variables(json_t *v, const json_t *tools, const aeg_chat_options *o)
{
    bool ok = json_object_set_new(v, "documents", json_null()) == 0 &&
              json_object_set_new(v, "add_generation_prompt", json_boolean(o->add_generation_prompt)) == 0 &&
              (tools != NULL ? json_object_set(v, "tools", (json_t *)tools)
                             : json_object_set_new(v, "tools", json_null())) == 0;
    if (ok && o->enable_thinking != AEG_THINKING_UNSET)
        ok = json_object_set_new(v, "enable_thinking", json_boolean(o->enable_thinking == AEG_THINKING_ON)) == 0;
    if (ok && o->bos_token != NULL)
        ok = json_object_set_new(v, "bos_token", json_string(o->bos_token)) == 0;
    if (ok && o->eos_token != NULL)
        ok = json_object_set_new(v, "eos_token", json_string(o->eos_token)) == 0;
    if (ok && o->extra != NULL)
        ok = json_object_update(v, (json_t *)o->extra) == 0;
    return ok;
}

aegis_status aeg_chat_render(const aeg_jinja *t, const json_t *messages, const json_t *tools,
                             const aeg_chat_options *options, char **out, size_t *n, aeg_memory *memory,
                             aegis_error *err)
{
    aeg_jinja_limits limits = options->limits != NULL ? *options->limits : aeg_jinja_default_limits();
    json_t *list = NULL, *variables = NULL;
    aegis_status status;

    *out = NULL;
    *n = 0;
    limits.now = options->now;
    aeg_json_init();
    if (tools != NULL && !json_is_array(tools) && !json_is_null(tools))
        return aeg_fail(err, AEGIS_E_USAGE, "tools must be an array");
    if (options->extra != NULL && !json_is_object(options->extra))
        return aeg_fail(err, AEGIS_E_USAGE, "the extra variables of a chat template must be an object");
    AEG_TRY_GOTO(messages_for_template(messages, &list, err));
    variables = json_object();
    if (variables == NULL || json_object_set(variables, "messages", list) != 0 ||
        !add_variables(variables, tools, options)) {
        status = aeg_fail(err, AEGIS_E_MEMORY, "no memory for the variables of a chat template");
        goto done;
    }
    status = aeg_jinja_render(t, variables, &limits, out, n, memory, err);
done:
    json_decref(variables);
    json_decref(list);
    return status;
}
