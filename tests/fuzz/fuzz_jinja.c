/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a chat template, rendered with a fixed conversation under small limits: a text or a
 * sentence, and no byte kept. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "text/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static json_t *parse(const char *text)
{
    json_error_t e;
    json_t *v = json_loads(text, JSON_DECODE_ANY, &e);
    return v != NULL ? v : (abort(), NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static json_t *messages, *tools, *extra;
    static const aeg_jinja_limits limits = { .max_steps = 20000, .max_output_bytes = 1 << 16, .max_memory = 4 << 20,
                                             .max_depth = 100 };
    aeg_memory memory = { .name = "template", .ceiling = 64 << 20 };
    aegis_error err = { 0 };
    aeg_jinja *t = NULL;
    char *out = NULL;
    size_t n_out = 0;
    if (messages == NULL) {
        aeg_json_init();
        messages = parse("[{\"role\":\"system\",\"content\":\"be \\u00e9\"},"
                         "{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\" hi \\ud83d\\ude00\"}]},"
                         "{\"role\":\"assistant\",\"content\":\"<think>\\nx\\n</think>\\ny\",\"tool_calls\":"
                         "[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": [1, 2.5, null]}\"}}]},"
                         "{\"role\":\"tool\",\"content\":\"z\"}]");
        tools = parse("[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"a\":true}}}]");
        extra = parse("{\"n\":7,\"f\":-0.5,\"s\":\"A \\u00df\\n\",\"l\":[3,1,2],\"d\":{\"k\":\"v\",\"1\":[]}}");
    }
    const aeg_chat_options options = { .add_generation_prompt = true, .enable_thinking = AEG_THINKING_OFF, .bos_token = "<s>",
                                       .now = 1700000000, .extra = extra, .limits = &limits };
    aegis_status status = aeg_jinja_compile(&t, (const char *)data, n, &memory, &err);
    if (status == AEGIS_OK)
        status = aeg_chat_render(t, messages, tools, &options, &out, &n_out, &memory, &err);
    if ((status == AEGIS_OK) != (out != NULL) || (status != AEGIS_OK && err.message[0] == '\0'))
        abort();
    if (out != NULL && (out[n_out] != '\0' || n_out > limits.max_output_bytes))
        abort();
    aeg_free(&memory, out);
    aeg_jinja_free(t);
    if (memory.in_use != 0)
        abort();
    return 0;
}
