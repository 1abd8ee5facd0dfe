/* SPDX-License-Identifier: Apache-2.0 */
#include "ui.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"

static struct {
    bool out_terminal, err_terminal, color, verbose;
    aeg_memory memory;
} ui = { .memory = { .name = "command line" } };

aeg_memory *aeg_ui_memory(void) { return &ui.memory; }
bool aeg_ui_stdout_is_terminal(void) { return ui.out_terminal; }
bool aeg_ui_stderr_is_terminal(void) { return ui.err_terminal; }
bool aeg_ui_color(void) { return ui.color; }

/* Any thread: one write. */
static void notice(void *ctx, aeg_log_level level, const char *line)
{
    (void)ctx;
    if (level == AEG_LOG_NOTICE || ui.verbose)
        aeg_ui_say("%s", line);
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

void aeg_ui_init(const aeg_cli *cli)
{
    const char *term = getenv("TERM");
    const bool dumb = term == NULL || strcmp(term, "dumb") == 0;
    ui.out_terminal = isatty(STDOUT_FILENO) == 1;
    ui.err_terminal = isatty(STDERR_FILENO) == 1;
    ui.color = cli->color == AEG_COLOR_ALWAYS ||
               (cli->color == AEG_COLOR_AUTO && ui.out_terminal && !dumb && !is_set("NO_COLOR"));
    ui.verbose = cli->verbose;
    aeg_log_set_sink(notice, NULL);
}

void aeg_ui_say(const char *fmt, ...)
{
    char text[AEGIS_ERROR_MAX + 64], line[sizeof text + 64] = "aegis: ";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t n = 7 + aeg_utf8_show(line + 7, sizeof line - 8, text);
    line[n++] = '\n';
    if (ui.out_terminal)
        fflush(stdout);
    if (write(STDERR_FILENO, line, n) < 0) {
        /* nowhere left to say it */
    }
}

aegis_status aeg_ui_flush(aegis_error *err)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout))
        return aeg_fail_os(err, AEGIS_E_IO, errno == 0 ? EIO : errno, "writing to standard output");
    return AEGIS_OK;
}

/* Bytes of the control character at s[0..n), 0 if there is none: C0 and DEL except line end and tab, and C1 as UTF-8 has it
 * (C2 80 to C2 9F). */
static size_t control_bytes(const char *s, size_t n)
{
    const unsigned char c = (unsigned char)s[0], next = n > 1 ? (unsigned char)s[1] : 0;
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
        return 1;
    return c == 0xc2 && next >= 0x80 && next < 0xa0 ? 2 : 0;
}

aegis_status aeg_ui_write(const char *bytes, size_t n, aegis_error *err)
{
    size_t from = 0;
    for (size_t i = 0; ui.out_terminal && i < n; i++) {
        const size_t length = control_bytes(bytes + i, n - i);
        if (length == 0)
            continue;
        fwrite(bytes + from, 1, i - from, stdout);
        fputc('?', stdout);
        from = i + length;
        i = from - 1;
    }
    fwrite(bytes + from, 1, n - from, stdout);
    return aeg_ui_flush(err);
}

aegis_status aeg_ui_print_json(struct json_t *value, aegis_error *err)
{
    if (value == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for the JSON answer");
    const int rc = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(value);
    fputc('\n', stdout);
    AEG_TRY(aeg_ui_flush(err));
    return rc == 0 ? AEGIS_OK : aeg_fail(err, AEGIS_E_MEMORY, "no memory for the JSON answer");
}
