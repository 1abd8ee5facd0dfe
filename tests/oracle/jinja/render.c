/* SPDX-License-Identifier: Apache-2.0 */
/* Renders templates for the oracle script: one JSON request a line on stdin, one answer a line on
 * stdout. {"template", "variables", "now"} -> {"ok", "text"} or {"ok": false, "status", "error"}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja.h"

static void answer(json_t *reply)
{
    char *line = json_dumps(reply, JSON_COMPACT);
    puts(line != NULL ? line : "{\"ok\":false,\"error\":\"the answer is not UTF-8\"}");
    free(line);
    json_decref(reply);
}

static json_t *render(const json_t *request, aeg_memory *memory)
{
    aegis_error err = { 0 };
    aeg_jinja *t = NULL;
    char *text = NULL;
    size_t n = 0;
    const json_t *source = json_object_get(request, "template");
    aeg_jinja_limits limits = aeg_jinja_default_limits();
    limits.now = (time_t)json_integer_value(json_object_get(request, "now"));
    aegis_status status = aeg_jinja_compile(&t, json_string_value(source), json_string_length(source), memory, &err);
    if (status == AEGIS_OK)
        status = aeg_jinja_render(t, json_object_get(request, "variables"), &limits, &text, &n, memory, &err);
    json_t *reply = status == AEGIS_OK
                        ? json_pack("{s:b,s:s%}", "ok", 1, "text", text, n)
                        : json_pack("{s:b,s:i,s:s}", "ok", 0, "status", (int)status, "error", err.message);
    aeg_free(memory, text);
    aeg_jinja_free(t);
    return reply;
}

int main(void)
{
    aeg_memory memory = { .name = "templates" };
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, stdin)) > 0) {
        json_error_t e;
        json_t *request = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, &e);
        if (request == NULL) {
            fprintf(stderr, "request: %s\n", e.text);
            return 1;
        }
        answer(render(request, &memory));
        fflush(stdout);
        json_decref(request);
    }
    free(line);
    if (memory.in_use != 0) {
        fprintf(stderr, "%llu bytes were not given back\n", (unsigned long long)memory.in_use);
        return 1;
    }
    return 0;
}
