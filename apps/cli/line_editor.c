/* SPDX-License-Identifier: Apache-2.0 */
#include "line_editor.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "signals.h"
#include "ui.h"

enum { INPUT = 1024, HISTORY_LINES = 1000, TAB_SPACES = 4, LINE_MARK = 0x23CE };
static const char LINE_MARK_UTF8[] = "\xE2\x8F\x8E";

/* The part of libedit that is used, by name: dlsym finds each. */
typedef struct {
    void *library;
    EditLine *(*el_init)(const char *, FILE *, FILE *, FILE *);
    void (*el_end)(EditLine *);
    int (*el_set)(EditLine *, int, ...);
    const char *(*el_gets)(EditLine *, int *);
    const LineInfo *(*el_line)(EditLine *);
    History *(*history_init)(void);
    void (*history_end)(History *);
    int (*history)(History *, HistEvent *, int, ...);
} edit_library;

struct aeg_line_editor {
    edit_library lib;
    EditLine *edit;           /* NULL: plain reads */
    History *past;
    char history[4096];       /* "": none */
    const char *prompt;
    char input[INPUT];        /* bytes read and not yet used */
    size_t at, n_input;
    bool terminal, in_paste, interrupted, was_empty;
    uint32_t spaces_left;     /* of a pasted tab */
};

static aeg_line_editor *the_editor; /* libedit's callbacks get no context of ours */

/* --- input ------------------------------------------------------------------------------------------------ */

/* 1: there is a byte at input[at]; 0: end; -1: interrupted or failed (errno). */
static int fill(aeg_line_editor *e)
{
    if (e->at < e->n_input)
        return 1;
    for (;;) {
        if (aeg_signals_caught(false) != 0) {
            errno = EINTR;
            return -1;
        }
        const ssize_t got = read(STDIN_FILENO, e->input, sizeof e->input);
        if (got < 0 && errno == EINTR)
            continue; /* SIGWINCH and such; ours are seen above */
        e->at = 0;
        e->n_input = got > 0 ? (size_t)got : 0;
        return got > 0 ? 1 : got == 0 ? 0 : -1;
    }
}

static bool take(aeg_line_editor *e, const char *sequence)
{
    const size_t n = strlen(sequence);
    if (e->n_input - e->at < n || memcmp(e->input + e->at, sequence, n) != 0)
        return false;
    e->at += n;
    return true;
}

/* One character as UTF-8; a byte that fits nowhere is passed on as itself. */
static int next_character(aeg_line_editor *e, wchar_t *out)
{
    int rc = fill(e);
    if (rc != 1)
        return rc;
    const unsigned char lead = (unsigned char)e->input[e->at++];
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    wchar_t c = more == 0 ? lead : (wchar_t)(lead & (0x3F >> more));
    for (int i = 0; i < more; i++) {
        rc = fill(e);
        if (rc != 1)
            return rc;
        c = (wchar_t)(c << 6 | ((unsigned char)e->input[e->at++] & 0x3F));
    }
    *out = c;
    return 1;
}

/* libedit asks for one character. Terminals send a paste marker in one write, so it is in the buffer whole. */
static int get_character(EditLine *edit, wchar_t *out)
{
    aeg_line_editor *e = the_editor;
    for (;;) {
        if (e->spaces_left > 0) {
            e->spaces_left--;
            *out = L' ';
            return 1;
        }
        const int ready = fill(e);
        if (ready != 1) {
            if (ready < 0 && errno == EINTR) {
                const LineInfo *line = e->lib.el_line(edit);
                e->interrupted = true;
                e->was_empty = line->lastchar == line->buffer;
            }
            return ready;
        }
        if (take(e, "\033[200~")) {
            e->in_paste = true;
        } else if (take(e, "\033[201~")) {
            e->in_paste = false;
        } else if (take(e, "\033\r") || (e->in_paste && (take(e, "\r\n") || take(e, "\r") || take(e, "\n")))) {
            *out = LINE_MARK;
            return 1;
        } else if (e->in_paste && take(e, "\t")) {
            e->spaces_left = TAB_SPACES;
        } else {
            return next_character(e, out);
        }
    }
}

static char *get_prompt(EditLine *edit)
{
    (void)edit;
    return (char *)the_editor->prompt;
}

/* --- libedit ---------------------------------------------------------------------------------------------- */

static bool load_library(edit_library *lib)
{
    const struct { const char *name; void *slot; } names[] = {
        { "el_init", &lib->el_init }, { "el_end", &lib->el_end }, { "el_set", &lib->el_set },
        { "el_gets", &lib->el_gets }, { "el_line", &lib->el_line }, { "history_init", &lib->history_init },
        { "history_end", &lib->history_end }, { "history", &lib->history },
    };
    lib->library = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; lib->library != NULL && i < sizeof names / sizeof names[0]; i++) {
        void *function = dlsym(lib->library, names[i].name);
        if (function == NULL)
            return false;
        memcpy(names[i].slot, &function, sizeof function); /* POSIX: object and function pointers are alike */
    }
    return lib->library != NULL;
}

static void open_history(aeg_line_editor *e, const char *path)
{
    HistEvent event;
    e->past = e->lib.history_init();
    if (e->past == NULL)
        return;
    e->lib.history(e->past, &event, H_SETSIZE, HISTORY_LINES);
    e->lib.history(e->past, &event, H_SETUNIQUE, 1);
    e->lib.el_set(e->edit, EL_HIST, e->lib.history, e->past);
    if (path == NULL || strlen(path) >= sizeof e->history)
        return;
    /* What someone asked a model is private: the file is made before libedit writes to it. */
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        aeg_ui_say("no history is kept: %s: %s", path, strerror(errno));
        return;
    }
    fchmod(fd, 0600);
    close(fd);
    snprintf(e->history, sizeof e->history, "%s", path);
    e->lib.history(e->past, &event, H_LOAD, e->history);
}

static void open_edit(aeg_line_editor *e, const char *history)
{
    /* libedit draws through the locale; UTF-8 is what we speak whatever the locale is. */
    if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
    if (!load_library(&e->lib)) {
        aeg_ui_say("lines are read without editing: libedit.so.2 is missing (Debian: libedit2)");
        return;
    }
    e->edit = e->lib.el_init("aegis", stdin, stdout, stderr);
    if (e->edit == NULL)
        return;
    e->lib.el_set(e->edit, EL_PROMPT, get_prompt);
    e->lib.el_set(e->edit, EL_EDITOR, "emacs");
    e->lib.el_set(e->edit, EL_GETCFN, get_character);
    e->lib.el_set(e->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    open_history(e, history);
}

aegis_status aeg_line_open(aeg_line_editor **out, bool terminal, const char *history, aegis_error *err)
{
    aeg_line_editor *e = aeg_calloc(aeg_ui_memory(), 1, sizeof *e);
    if (e == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for the line editor");
    e->terminal = terminal;
    the_editor = e;
    if (terminal)
        open_edit(e, history);
    *out = e;
    return AEGIS_OK;
}

void aeg_line_close(aeg_line_editor *e)
{
    HistEvent event;
    if (e == NULL)
        return;
    if (e->past != NULL && e->history[0] != '\0')
        e->lib.history(e->past, &event, H_SAVE, e->history);
    if (e->past != NULL)
        e->lib.history_end(e->past);
    if (e->edit != NULL)
        e->lib.el_end(e->edit);
    /* The library stays: its exit handlers may still be registered. */
    aeg_free(aeg_ui_memory(), e);
    the_editor = NULL;
}

/* --- lines ------------------------------------------------------------------------------------------------ */

/* Line marks back to line ends. */
static aegis_status append_line(aeg_buffer *out, const char *line, size_t n, aegis_error *err)
{
    while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
        n--;
    for (size_t from = 0, i = 0;;) {
        if (i + 3 <= n && memcmp(line + i, LINE_MARK_UTF8, 3) == 0) {
            AEG_TRY(aeg_buffer_append(out, line + from, i - from, err));
            AEG_TRY(aeg_buffer_append(out, "\n", 1, err));
            from = i += 3;
        } else if (i++ >= n) {
            return aeg_buffer_append(out, line + from, n - from, err);
        }
    }
}

static aeg_line_result read_edited(aeg_line_editor *e, aeg_buffer *out, aegis_error *err)
{
    int n = 0;
    HistEvent event;
    e->interrupted = false;
    fputs("\033[?2004h", stdout);
    const char *line = e->lib.el_gets(e->edit, &n);
    fputs("\033[?2004l", stdout);
    fflush(stdout);
    if (e->interrupted) {
        fputs("\n", stdout);
        return e->was_empty ? AEG_LINE_INTERRUPTED_EMPTY : AEG_LINE_INTERRUPTED;
    }
    if (line == NULL || n <= 0)
        return AEG_LINE_END;
    if (e->past != NULL && strspn(line, " \n") != (size_t)n)
        e->lib.history(e->past, &event, H_ENTER, line);
    return append_line(out, line, (size_t)n, err) == AEGIS_OK ? AEG_LINE_READ : AEG_LINE_FAILED;
}

static aeg_line_result read_plain(aeg_line_editor *e, aeg_buffer *out, aegis_error *err)
{
    bool any = false;
    for (;;) {
        const int ready = fill(e);
        if (ready < 0 && errno == EINTR)
            return any ? AEG_LINE_INTERRUPTED : AEG_LINE_INTERRUPTED_EMPTY;
        if (ready < 0) {
            aeg_fail_os(err, AEGIS_E_IO, errno, "reading standard input");
            return AEG_LINE_FAILED;
        }
        if (ready == 0)
            return any ? AEG_LINE_READ : AEG_LINE_END;
        any = true;
        const char *end = memchr(e->input + e->at, '\n', e->n_input - e->at);
        const size_t n = end != NULL ? (size_t)(end - (e->input + e->at)) : e->n_input - e->at;
        if (aeg_buffer_append(out, e->input + e->at, n, err) != AEGIS_OK)
            return AEG_LINE_FAILED;
        e->at += n + (end != NULL ? 1 : 0);
        if (end != NULL)
            return AEG_LINE_READ;
    }
}

aeg_line_result aeg_line_read(aeg_line_editor *e, const char *prompt, aeg_buffer *out, aegis_error *err)
{
    e->prompt = prompt;
    if (e->edit != NULL)
        return read_edited(e, out, err);
    if (e->terminal) {
        fputs(prompt, stdout);
        fflush(stdout);
    }
    return read_plain(e, out, err);
}
