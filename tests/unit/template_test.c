/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations through the demo model's template. */
#include <string.h>

#include "support/t.h"
#include "text/template.h"

static aegis_error err;
static aeg_memory memory = { .name = "templates" };
static aeg_jinja *demo;

static json_t *parse(const char *text)
{
    json_t *v = NULL;
    T_OK(aeg_json_parse(&v, text, strlen(text), "test", AEGIS_E_RUNTIME, &err), &err);
    return v;
}

static aegis_status render(const aeg_jinja *t, const char *messages, const char *tools, const aeg_chat_options *o,
                           char **out)
{
    json_t *m = parse(messages), *f = tools != NULL ? parse(tools) : NULL;
    size_t n;
    err = (aegis_error){ 0 };
    const aegis_status status = aeg_chat_render(t, m, f, o, out, &n, &memory, &err);
    json_decref(m);
    json_decref(f);
    return status;
}

static void check(const aeg_jinja *t, const char *messages, const char *tools, aeg_chat_options o, const char *expected)
{
    char *out;
    T_OK(render(t, messages, tools, &o, &out), &err);
    assert_string_equal(out, expected);
    aeg_free(&memory, out);
}

static void the_demo_template_opens_a_thought_unless_told_not_to(void **state)
{
    (void)state;
    static const char hi[] = "[{\"role\":\"user\",\"content\":\"Hi\"}]";
    check(demo, hi, NULL, (aeg_chat_options){ .add_generation_prompt = false }, "<|im_start|>user\nHi<|im_end|>\n");
    check(demo, hi, NULL, (aeg_chat_options){ .add_generation_prompt = true },
          "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n");
    check(demo, hi, NULL, (aeg_chat_options){ .add_generation_prompt = true, .enable_thinking = AEG_THINKING_ON },
          "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n");
    check(demo, hi, NULL, (aeg_chat_options){ .add_generation_prompt = true, .enable_thinking = AEG_THINKING_OFF },
          "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
}

static void tools_pictures_and_calls_are_rendered(void **state)
{
    (void)state;
    check(demo,
          "[{\"role\":\"system\",\"content\":\"S\"},"
          "{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{}},{\"type\":\"text\",\"text\":\"w\\u00e9?\"}]},"
          "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"b\":[1,2.0],\"a\":\"x\"}}}]},"
          "{\"role\":\"tool\",\"content\":\"1\"},{\"role\":\"tool\",\"content\":\"2\"}]",
          "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"\\u00fc\"}}]", (aeg_chat_options){ 0 },
          "<|im_start|>system\n# Tools\n\nFunctions you can call:\n<tools>\n"
          "{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"\xc3\xbc\"}}\n</tools>\n\n"
          "To call one, answer only with:\n<tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n"
          "</function>\n</tool_call>\n\nS<|im_end|>\n"
          "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>w\xc3\xa9?<|im_end|>\n"
          "<|im_start|>assistant\n<think>\n\n</think>\n\n<tool_call>\n<function=f>\n<parameter=b>\n[1, 2.0]\n</parameter>\n"
          "<parameter=a>\nx\n</parameter>\n</function>\n</tool_call><|im_end|>\n"
          "<|im_start|>user\n<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response><|im_end|>\n");
}

/* OpenAI clients send the arguments of a call as JSON text; templates go through a mapping. */
static void arguments_as_text_become_a_mapping(void **state)
{
    (void)state;
    json_t *messages = parse("[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":"
                             "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"k\\\": 1}\"}}]}]");
    json_t *before = json_deep_copy(messages);
    const aeg_chat_options o = { 0 };
    char *out;
    size_t n;
    T_OK(aeg_chat_render(demo, messages, NULL, &o, &out, &n, &memory, &err), &err);
    assert_non_null(strstr(out, "<parameter=k>\n1\n</parameter>"));
    aeg_free(&memory, out);
    assert_true(json_equal(messages, before)); /* the caller's own is as it was */
    json_decref(messages);
    json_decref(before);
}

static aeg_jinja *compile(const char *text)
{
    aeg_jinja *t = NULL;
    T_OK(aeg_jinja_compile(&t, text, strlen(text), &memory, &err), &err);
    return t;
}

static void a_template_sees_the_tokens_tools_and_extra_variables(void **state)
{
    (void)state;
    aeg_jinja *t = compile("{{ bos_token }}|{{ eos_token }}|{{ tools }}|{{ documents }}|{{ enable_thinking is defined }}|"
                           "{{ strftime_now('%Y') }}|{{ level }}|{{ messages | length }}");
    json_t *extra = parse("{\"level\": \"high\", \"eos_token\": \"</x>\"}");
    check(t, "[]", NULL, (aeg_chat_options){ .bos_token = "<s>", .eos_token = "</s>", .now = 86400 * 400 },
          "<s>|</s>|None|None|False|1971||0");
    check(t, "[{}]", "[]", (aeg_chat_options){ .extra = extra, .enable_thinking = AEG_THINKING_OFF, .now = 86400 },
          "|</x>|[]|None|True|1970|high|1");
    json_decref(extra);
    aeg_jinja_free(t);
}

static void messages_of_the_wrong_shape_are_named(void **state)
{
    (void)state;
    const aeg_chat_options o = { 0 };
    char *out;
    T_FAILS(render(demo, "{}", NULL, &o, &out), &err, AEGIS_E_USAGE, "messages must be an array");
    T_FAILS(render(demo, "[{\"role\":\"user\"}, 3]", NULL, &o, &out), &err, AEGIS_E_USAGE, "message 1 must be an object");
    T_FAILS(render(demo, "[]", "{}", &o, &out), &err, AEGIS_E_USAGE, "tools must be an array");
    T_FAILS(render(demo, "[]", NULL, &o, &out), &err, AEGIS_E_USAGE, "at least one message is required");
    T_FAILS(render(demo, "[{\"role\":\"critic\",\"content\":\"\"}]", NULL, &o, &out), &err, AEGIS_E_USAGE,
            "unknown role critic");
    T_FAILS(render(demo, "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"system\",\"content\":\"b\"}]", NULL, &o, &out),
            &err, AEGIS_E_USAGE, "the system message must come first");
}

static int start(void **state)
{
    (void)state;
    size_t n;
    char *text = t_read_file(AEGIS_SOURCE_DIR "/models/demo/chat_template.jinja", &n);
    aeg_json_init();
    T_OK(aeg_jinja_compile(&demo, text, n, &memory, &err), &err);
    t_free(text);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    aeg_jinja_free(demo);
    return memory.in_use == 0 ? 0 : 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_demo_template_opens_a_thought_unless_told_not_to),
        cmocka_unit_test(tools_pictures_and_calls_are_rendered),
        cmocka_unit_test(arguments_as_text_become_a_mapping),
        cmocka_unit_test(a_template_sees_the_tokens_tools_and_extra_variables),
        cmocka_unit_test(messages_of_the_wrong_shape_are_named),
    };
    return cmocka_run_group_tests_name("template", tests, start, stop);
}
