/* SPDX-License-Identifier: Apache-2.0 */
/* What the second turn of a chat shares with the first under Xing4.0's rules: its prompt ends in an open thought, but history
 * keeps a closed one, so tokens are equal up to the assistant's mark and not one further. */
#include <string.h>

#include "support/t.h"
#include "text/template.h"
#include "text/tokenizer.h"
#include "text/tokenizer_gguf.h"

enum { CAP = 256, N_TOKENS = 64 };

static aeg_memory memory = { .name = "chat" };
static aegis_error err;
static aeg_jinja *template;
static uint8_t *table;
static aeg_tokenizer *tokenizer;

static int open_all(void **state)
{
    (void)state;
    aeg_gguf g;
    size_t n;
    char *text = t_read_file(AEGIS_SOURCE_DIR "/tests/data/templates/xing4-style.jinja", &n);
    T_OK(aeg_jinja_compile(&template, text, n, &memory, &err), &err);
    t_free(text);
    T_OK(aeg_gguf_open(&g, AEGIS_SOURCE_DIR "/tests/data/gguf/xing4-metadata.gguf", &memory, &err), &err);
    T_OK(aeg_tokenizer_compile_gguf(&g, &table, &n, &memory, &err), &err);
    aeg_gguf_close(&g);
    T_OK(aeg_tokenizer_open(&tokenizer, table, n, &memory, &err), &err);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    aeg_tokenizer_close(tokenizer);
    aeg_free(&memory, table);
    aeg_jinja_free(template);
    t_no_leak(&memory);
    return 0;
}

/* Messages to text, and to ids; returns how many. */
static size_t prompt(const char *messages, aeg_thinking thinking, char *text, uint32_t *ids)
{
    const aeg_chat_options o = { .add_generation_prompt = true, .enable_thinking = thinking };
    json_t *m = NULL;
    char *out;
    size_t n, count = 0;
    T_OK(aeg_json_parse(&m, messages, strlen(messages), "test", AEGIS_E_RUNTIME, &err), &err);
    T_OK(aeg_chat_render(template, m, NULL, &o, &out, &n, &memory, &err), &err);
    T_CHECK(n < CAP);
    memcpy(text, out, n + 1);
    T_OK(aeg_tokenizer_encode(tokenizer, out, n, AEG_TOKENIZE_ADDED, ids, N_TOKENS, &count, &err), &err);
    aeg_free(&memory, out);
    json_decref(m);
    return count;
}

static const char first[] = "[{\"role\":\"user\",\"content\":\"Q1\"}]";
static const char second[] = "[{\"role\":\"user\",\"content\":\"Q1\"},{\"role\":\"assistant\",\"content\":\"A1\"},"
                             "{\"role\":\"user\",\"content\":\"Q2\"}]";

static size_t common(const uint32_t *a, const uint32_t *b, size_t n)
{
    size_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

static void a_second_turn_shares_all_but_the_open_thought(void **state)
{
    (void)state;
    char text[CAP];
    uint32_t a[N_TOKENS], b[N_TOKENS], bot;
    const size_t n = prompt(first, AEG_THINKING_UNSET, text, a);
    assert_string_equal(text, "<_system><_user>Q1<_bot><think>\n");
    const size_t m = prompt(second, AEG_THINKING_UNSET, text, b);
    assert_string_equal(text, "<_system><_user>Q1<_bot></think>A1<_end>\n<_user>Q2<_bot><think>\n");
    const size_t shared = common(a, b, n < m ? n : m);
    T_CHECK(aeg_tokenizer_find(tokenizer, "<_bot>", &bot) && a[shared - 1] == bot);
    T_CHECK(shared < n && m > n);
}

/* Without thinking the first prompt is a beginning of the second: everything is shared. */
static void without_thinking_everything_is_shared(void **state)
{
    (void)state;
    char text[CAP];
    uint32_t a[N_TOKENS], b[N_TOKENS];
    const size_t n = prompt(first, AEG_THINKING_OFF, text, a);
    assert_string_equal(text, "<_system><_user>Q1<_bot></think>");
    prompt(second, AEG_THINKING_OFF, text, b);
    T_CHECK(common(a, b, n) == n);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_second_turn_shares_all_but_the_open_thought),
                                        cmocka_unit_test(without_thinking_everything_is_shared) };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
