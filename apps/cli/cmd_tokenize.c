/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis tokenize`: one line per token (id, tab, text), or {"n", "ids", "tokens"}. Written as it is made: a
 * megabyte of text has no tree of values in memory. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "setup.h"
#include "buffer.h"
#include "ui.h"

/* Bytes that are not printable ASCII or part of UTF-8 text as \xNN. */
static void print_text(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if (c == '\n')
            fputs("\\n", stdout);
        else if (c == '\t')
            fputs("\\t", stdout);
        else if (c == '\\')
            fputs("\\\\", stdout);
        else if (c < 0x20 || c == 0x7f)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
}

/* Is bytes[i..] one whole UTF-8 character? Its size, or 0. Loose about overlong forms: tokens are parts of text. */
static size_t character(const char *bytes, size_t n, size_t i)
{
    const unsigned char lead = (unsigned char)bytes[i];
    const size_t size = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : lead >= 0xE0 && lead < 0xF0 ? 3
                      : lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
    if (size == 0 || size > n - i)
        return 0;
    for (size_t k = 1; k < size; k++)
        if (((unsigned char)bytes[i + k] & 0xC0) != 0x80)
            return 0;
    return size;
}

/* Half characters, which byte-level tokens may hold, become U+FFFD. */
static void print_json_string(const char *bytes, size_t n)
{
    putchar('"');
    for (size_t i = 0; i < n;) {
        const size_t size = character(bytes, n, i);
        const unsigned char c = (unsigned char)bytes[i];
        if (size == 0)
            fputs("\xEF\xBF\xBD", stdout);
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            fwrite(bytes + i, 1, size, stdout);
        i += size == 0 ? 1 : size;
    }
    putchar('"');
}

static aegis_status print_json(aegis_engine *engine, const uint32_t *ids, size_t n_ids, aegis_error *err)
{
    printf("{\"n\": %zu, \"ids\": [", n_ids);
    for (size_t i = 0; i < n_ids; i++)
        printf("%s%u", i > 0 ? ", " : "", ids[i]);
    printf("], \"tokens\": [");
    for (size_t i = 0; i < n_ids; i++) {
        const char *bytes = NULL;
        size_t n = 0;
        bool special;
        AEG_TRY(aegis_token_bytes(engine, ids[i], &bytes, &n, &special, err));
        fputs(i > 0 ? ", " : "", stdout);
        print_json_string(bytes, n);
    }
    printf("]}\n");
    return aeg_ui_flush(err);
}

static aegis_status print_lines(aegis_engine *engine, const uint32_t *ids, size_t n_ids, aegis_error *err)
{
    for (size_t i = 0; i < n_ids; i++) {
        const char *bytes = NULL;
        size_t n = 0;
        bool special;
        AEG_TRY(aegis_token_bytes(engine, ids[i], &bytes, &n, &special, err));
        printf("%u\t", ids[i]);
        print_text(bytes, n);
        putchar('\n');
    }
    return aeg_ui_flush(err);
}

aegis_status aeg_cmd_tokenize(aeg_cli *cli, aegis_error *err)
{
    if ((cli->prompt == NULL) == (cli->file == NULL))
        return aeg_fail(err, AEGIS_E_USAGE, "usage: aegis tokenize %s", aeg_command_table[AEG_CMD_TOKENIZE].args);
    if (cli->file != NULL)
        AEG_TRY(aeg_buffer_check(cli->file, err));
    aegis_engine *engine = NULL;
    aeg_buffer text = { 0 };
    uint32_t *ids = NULL;
    size_t n_ids = 0;
    aegis_status status = aeg_setup_open_text(cli, &engine, err);
    if (status != AEGIS_OK)
        return status;
    if (cli->prompt != NULL && strcmp(cli->prompt, "-") != 0)
        status = aeg_buffer_append(&text, cli->prompt, strlen(cli->prompt), err);
    else
        status = aeg_buffer_read(&text, cli->file != NULL ? cli->file : "-", err);
    if (status == AEGIS_OK)
        status = aegis_tokenize(engine, text.n > 0 ? text.p : "", text.n, true, &ids, &n_ids, err);
    if (status == AEGIS_OK)
        status = cli->json ? print_json(engine, ids, n_ids, err) : print_lines(engine, ids, n_ids, err);
    aegis_free_ids(ids);
    aeg_buffer_free(&text);
    aeg_setup_close(engine);
    return status;
}
