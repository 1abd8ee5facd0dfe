/* SPDX-License-Identifier: Apache-2.0 */
#include "ids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "buffer.h"
#include "signals.h"
#include "ui.h"

enum { MAX_WORD = 20 };

/* Between two pieces of a text. */
typedef struct {
    aeg_ids *list;
    const char *name;
    size_t limit;
    uint64_t pos, id;
    bool begun, open, closed;  /* anything but separators; '[' and ']' seen */
    size_t n_word;             /* bytes of the number being read            */
    char word[MAX_WORD];       /* its beginning, for the message            */
} parser;

static aegis_status append(parser *p, aegis_error *err)
{
    aeg_ids *list = p->list;
    if (list->n >= p->limit)
        return aeg_fail(err, AEGIS_E_USAGE, "%s: more than %zu token ids do not fit the context; ask for a larger one with -c",
                        p->name, p->limit);
    if (list->n == list->capacity) {
        const size_t capacity = AEG_MAX(list->capacity * 2, (size_t)64);
        uint32_t *ids = aeg_realloc(aeg_ui_memory(), list->ids, capacity * sizeof *ids);
        if (ids == NULL && aeg_ui_memory()->ceiling != 0)
            return aeg_fail(err, AEGIS_E_USAGE, "%s: more than %zu token ids do not fit what is kept for them; ask for a "
                            "larger context with -c, or more --memory", p->name, list->n);
        if (ids == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "no memory for %zu token ids", capacity);
        list->ids = ids;
        list->capacity = capacity;
    }
    list->ids[list->n++] = (uint32_t)p->id;
    return AEGIS_OK;
}

static bool is_separator(char c) { return c == ' ' || c == ',' || c == '\n' || c == '\r' || c == '\t'; }

static aegis_status end_number(parser *p, aegis_error *err)
{
    if (p->n_word == 0)
        return AEGIS_OK;
    AEG_TRY(append(p, err));
    p->n_word = 0;
    p->id = 0;
    return AEGIS_OK;
}

static aegis_status feed(parser *p, char c, aegis_error *err)
{
    if (is_separator(c))
        return end_number(p, err);
    const bool first = !p->begun, digit = c >= '0' && c <= '9';
    p->begun = true;
    if (c == '[' && first) {
        p->open = true;
        return AEGIS_OK;
    }
    if (c == ']' && p->open && !p->closed) {
        p->closed = true;
        return end_number(p, err);
    }
    if (p->n_word < MAX_WORD)
        p->word[p->n_word] = c;
    p->n_word++;
    p->id = digit ? p->id * 10 + (uint64_t)(c - '0') : p->id;
    if (!digit || p->closed || p->id > UINT32_MAX)
        return aeg_fail(err, AEGIS_E_USAGE, "%s: '%.*s' at byte %llu is not a token id", p->name,
                        (int)AEG_MIN(p->n_word, (size_t)MAX_WORD), p->word,
                        (unsigned long long)(p->pos + 1 - p->n_word));
    return AEGIS_OK;
}

static aegis_status push(parser *p, const char *text, size_t n, aegis_error *err)
{
    for (size_t i = 0; i < n; i++, p->pos++)
        AEG_TRY(feed(p, text[i], err));
    return AEGIS_OK;
}

static aegis_status finish(parser *p, aegis_error *err)
{
    if (p->open && !p->closed)
        return aeg_fail(err, AEGIS_E_USAGE, "%s: '[' without ']' at the end", p->name);
    return end_number(p, err);
}

aegis_status aeg_ids_parse(aeg_ids *list, const char *text, size_t n, const char *name, aegis_error *err)
{
    parser p = { .list = list, .name = name, .limit = SIZE_MAX };
    AEG_TRY(push(&p, text, n, err));
    return finish(&p, err);
}

static aegis_status read_file(parser *p, int fd, aegis_error *err)
{
    char block[4096];
    for (;;) {
        const ssize_t got = read(fd, block, sizeof block);
        if (got == 0)
            return finish(p, err);
        if (got < 0 && errno != EINTR)
            return aeg_fail_os(err, AEGIS_E_IO, errno, "reading %s", p->name);
        if (aeg_signals_caught(false) != 0)
            return aeg_fail(err, AEGIS_E_CANCELLED, "interrupted");
        if (got > 0)
            AEG_TRY(push(p, block, (size_t)got, err));
    }
}

aegis_status aeg_ids_read(aeg_ids *list, const char *text, const char *file, size_t limit, aegis_error *err)
{
    parser p = { .list = list, .name = text != NULL ? "--ids" : file, .limit = limit };
    if (text != NULL) {
        AEG_TRY(push(&p, text, strlen(text), err));
        return finish(&p, err);
    }
    if (strcmp(file, "-") == 0)
        return read_file(&p, STDIN_FILENO, err);
    AEG_TRY(aeg_buffer_check(file, err));
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return aeg_fail_os(err, AEGIS_E_USAGE, errno, "%s", file);
    const aegis_status status = read_file(&p, fd, err);
    close(fd);
    return status;
}

void aeg_ids_free(aeg_ids *list)
{
    aeg_free(aeg_ui_memory(), list->ids);
    *list = (aeg_ids){ 0 };
}
