/* SPDX-License-Identifier: Apache-2.0 */
#include "format/gguf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "format/gguf_parse.h"

/* The first read of a header; it doubles until the header fits. */
enum { FIRST_READ = 1 << 20 };

bool aeg_gguf_probe(const char *path)
{
    char magic[4] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    const bool is = read(fd, magic, sizeof magic) == sizeof magic && memcmp(magic, "GGUF", 4) == 0;
    close(fd);
    return is;
}

/* --- one file --------------------------------------------------------------------------------------------------- */

/* Bytes [have, want) of the file behind those that the header buffer has. */
static aegis_status read_on(aeg_source *s, uint32_t file, size_t have, size_t want, aegis_error *err)
{
    char *grown = aeg_realloc(s->memory, s->headers[file], AEG_MAX(want, (size_t)1));
    if (grown == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for a header of at least %zu bytes", s->paths[file], want);
    s->headers[file] = grown;
    return aeg_source_read_file(s, file, have, want - have, grown + have, err);
}

/* Read as much as the header needs and check it; the buffer then holds nothing behind it. */
static aegis_status read_header(aeg_source *s, uint32_t file, aeg_gguf_head *head, aegis_error *err)
{
    const char *path = s->paths[file];
    AEG_TRY(aeg_raw_open(&s->files[file], path, err));
    const uint64_t bytes = s->files[file].bytes, most = AEG_MIN(bytes, (uint64_t)AEG_GGUF_MAX_HEADER);
    size_t have = 0;
    bool more = true;
    for (size_t want = FIRST_READ; more; want *= 2) {
        want = (size_t)AEG_MIN((uint64_t)want, most);
        if (want == have && have > 0)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: a header of more than %d bytes", path, AEG_GGUF_MAX_HEADER);
        AEG_TRY(read_on(s, file, have, want, err));
        have = want;
        AEG_TRY(aeg_gguf_parse(head, NULL, NULL, (const uint8_t *)s->headers[file], have, bytes, path, &more, err));
    }
    char *fitted = aeg_realloc(s->memory, s->headers[file], (size_t)head->header_bytes);
    if (fitted != NULL)
        s->headers[file] = fitted;
    return AEGIS_OK;
}

static int by_offset(const void *a, const void *b)
{
    const aeg_gguf_tensor *x = a, *y = b;
    if (x->t.offset != y->t.offset)
        return x->t.offset < y->t.offset ? -1 : 1;
    /* empty tensors sit before the one that starts at the same byte */
    return x->t.bytes < y->t.bytes ? -1 : x->t.bytes > y->t.bytes;
}

/* Inside the file and apart from each other; offsets become positions in the file. */
static aegis_status place_tensors(const aeg_source *s, uint32_t file, const aeg_gguf_head *head, aeg_gguf_tensor *tensors,
                                  aegis_error *err)
{
    const uint64_t bytes = s->files[file].bytes, data = bytes > head->data_offset ? bytes - head->data_offset : 0;
    uint64_t end = 0;
    if (head->n_tensors > 0)
        qsort(tensors, head->n_tensors, sizeof *tensors, by_offset);
    for (uint32_t i = 0; i < head->n_tensors; i++) {
        aeg_gguf_tensor *x = &tensors[i];
        if (x->t.offset < end)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.*s' begins at data byte %llu, inside the tensor before it, which "
                            "ends at %llu", s->paths[file], (int)x->name.n, x->name.p, (unsigned long long)x->t.offset,
                            (unsigned long long)end);
        if (x->t.offset > data || x->t.bytes > data - x->t.offset)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%.*s' ends at data byte %llu, but there are %llu (file truncated?)",
                            s->paths[file], (int)x->name.n, x->name.p, (unsigned long long)(x->t.offset + x->t.bytes),
                            (unsigned long long)data);
        end = x->t.offset + x->t.bytes;
        x->t.offset += head->data_offset;
    }
    return AEGIS_OK;
}

/* Names get their NUL in place: it lands on the number of dimensions, which has been read. */
static aegis_status keep_tensors(aeg_source *s, uint32_t file, const aeg_gguf_head *head, const aeg_gguf_tensor *tensors,
                                 aegis_error *err)
{
    char *header = s->headers[file];
    for (uint32_t i = 0; i < head->n_tensors; i++) {
        aeg_tensor t = tensors[i].t;
        const size_t at = (size_t)(tensors[i].name.p - header);
        header[at + tensors[i].name.n] = '\0';
        t.name = header + at;
        t.file = file;
        AEG_TRY(aeg_source_add(s, &t, s->paths[file], err));
    }
    return AEGIS_OK;
}

/* One part: its tensors are added to the source; *kv [n_kv] is the caller's. */
static aegis_status load_part(aeg_source *s, uint32_t file, aeg_gguf_kv **kv, uint32_t *n_kv, aegis_error *err)
{
    aeg_gguf_head head;
    bool more;
    AEG_TRY(read_header(s, file, &head, err));
    aeg_gguf_tensor *tensors = aeg_calloc(s->memory, (size_t)head.n_tensors + 1, sizeof *tensors);
    *kv = aeg_calloc(s->memory, (size_t)head.n_kv + 1, sizeof **kv);
    *n_kv = head.n_kv;
    aegis_status status = AEGIS_OK;
    if (tensors == NULL || *kv == NULL)
        status = aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for tables of %u keys and %u tensors", s->paths[file], head.n_kv,
                          head.n_tensors);
    if (status == AEGIS_OK)
        status = aeg_gguf_parse(&head, *kv, tensors, (const uint8_t *)s->headers[file], (size_t)head.header_bytes,
                                s->files[file].bytes, s->paths[file], &more, err);
    if (status == AEGIS_OK)
        status = place_tensors(s, file, &head, tensors, err);
    if (status == AEGIS_OK)
        status = keep_tensors(s, file, &head, tensors, err);
    if (status == AEGIS_OK)
        status = aeg_gguf_sort(*kv, head.n_kv, s->paths[file], err);
    aeg_free(s->memory, tensors);
    return status;
}

/* --- split sets ---------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t no, count, tensors; /* this part from 0, parts, tensors of all parts (-1: not said) */
} split;

static aegis_status read_split(const aeg_gguf *g, uint32_t file, split *out, aegis_error *err)
{
    /* messages name the first path: this is asked of part 0, or of a view of one other part */
    bool found = false;
    *out = (split){ .count = 1, .tensors = -1 };
    AEG_TRY(aeg_gguf_int(g, "split.count", 0, 99999, &out->count, &found, err));
    if (!found || out->count <= 1) {
        out->count = 1;
        return AEGIS_OK;
    }
    AEG_TRY(aeg_gguf_int(g, "split.no", 0, out->count - 1, &out->no, &found, err));
    if (!found)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'split.count' without 'split.no'", g->source.paths[file]);
    return aeg_gguf_int(g, "split.tensors.count", 0, AEG_SOURCE_MAX_TENSORS, &out->tensors, NULL, err);
}

/* "model-00001-of-00003.gguf" -> "model" */
static aegis_status split_prefix(const char *path, const split *s, char *prefix, aegis_error *err)
{
    char suffix[64];
    const int n = snprintf(suffix, sizeof suffix, "-%05u-of-%05u.gguf", (unsigned)s->no + 1, (unsigned)s->count);
    const size_t length = strlen(path);
    if (length <= (size_t)n || strcmp(path + length - (size_t)n, suffix) != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: part %d of %d of a split model, so its name should end in '%s'", path,
                        (int)s->no + 1, (int)s->count, suffix);
    if (s->no != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: part %d of %d; name the first one, '%.*s-00001-of-%05u.gguf'", path,
                        (int)s->no + 1, (int)s->count, (int)(length - (size_t)n), path, (unsigned)s->count);
    if (length >= AEG_PATH_MAX)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: the path is too long", path);
    snprintf(prefix, AEG_PATH_MAX, "%.*s", (int)(length - (size_t)n), path);
    return AEGIS_OK;
}

static aegis_status load_other(aeg_gguf *g, const char *prefix, uint32_t file, const split *first, aegis_error *err)
{
    char path[AEG_PATH_MAX + 32];
    aeg_source *s = &g->source;
    snprintf(path, sizeof path, "%s-%05u-of-%05u.gguf", prefix, file + 1, (unsigned)first->count);
    s->paths[file] = aeg_strdup(s->memory, path);
    if (s->paths[file] == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for a path", path);
    s->n_files = file + 1;
    /* the getters look at a gguf: one with this part's keys and path */
    aeg_gguf part = { .source.paths = &s->paths[file] };
    split mine = { 0 };
    aegis_status status = load_part(s, file, &part.kv, &part.n_kv, err);
    if (status != AEGIS_OK)
        status = aeg_wrap(err, status, "part %u of %d", file + 1, (int)first->count);
    else
        status = read_split(&part, 0, &mine, err);
    if (status == AEGIS_OK && (mine.no != (int64_t)file || mine.count != first->count))
        status = aeg_fail(err, AEGIS_E_MODEL, "%s: says that it is part %d of %d, expected part %u of %d", path, (int)mine.no + 1,
                          (int)mine.count, file + 1, (int)first->count);
    aeg_free(s->memory, part.kv);
    return status;
}

/* Part 0 is in; the others. */
static aegis_status load_others(aeg_gguf *g, const split *s, aegis_error *err)
{
    char prefix[AEG_PATH_MAX];
    AEG_TRY(split_prefix(g->source.paths[0], s, prefix, err));
    for (uint32_t i = 1; i < (uint32_t)s->count; i++)
        AEG_TRY(load_other(g, prefix, i, s, err));
    if (s->tensors >= 0 && s->tensors != (int64_t)g->source.n_tensors)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: the %d parts have %u tensors, but 'split.tensors.count' is %lld",
                        g->source.paths[0], (int)s->count, g->source.n_tensors, (long long)s->tensors);
    return AEGIS_OK;
}

static aegis_status grow_files(aeg_source *s, uint32_t n, const char *path, aegis_error *err)
{
    aeg_source larger;
    if (n > AEG_SOURCE_MAX_FILES)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: a model in %u parts, expected at most %d", path, n, AEG_SOURCE_MAX_FILES);
    const aegis_status status = aeg_source_init(&larger, n, path, s->memory, err);
    if (status != AEGIS_OK) {
        aeg_source_close(&larger);
        return status;
    }
    larger.files[0] = s->files[0];
    larger.paths[0] = s->paths[0];
    larger.headers[0] = s->headers[0];
    aeg_free(s->memory, s->files);
    aeg_free(s->memory, s->paths);
    aeg_free(s->memory, s->headers);
    s->files = larger.files;
    s->paths = larger.paths;
    s->headers = larger.headers;
    return AEGIS_OK;
}

static aegis_status load(aeg_gguf *g, const char *path, aeg_memory *memory, aegis_error *err)
{
    split s = { 0 };
    aeg_source *source = &g->source;
    AEG_TRY(aeg_source_init(source, 1, path, memory, err));
    source->paths[0] = aeg_strdup(memory, path);
    if (source->paths[0] == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for a path", path);
    source->n_files = 1;
    AEG_TRY(load_part(source, 0, &g->kv, &g->n_kv, err));
    AEG_TRY(read_split(g, 0, &s, err));
    if (s.count > 1) {
        AEG_TRY(grow_files(source, (uint32_t)s.count, path, err));
        AEG_TRY(load_others(g, &s, err));
    }
    return aeg_source_sort(source, err);
}

aegis_status aeg_gguf_open(aeg_gguf *out, const char *path, aeg_memory *memory, aegis_error *err)
{
    *out = (aeg_gguf){ .source.memory = memory };
    const aegis_status status = load(out, path, memory, err);
    if (status != AEGIS_OK)
        aeg_gguf_close(out);
    return status;
}

void aeg_gguf_close(aeg_gguf *g)
{
    aeg_free(g->source.memory, g->kv);
    aeg_source_close(&g->source);
    *g = (aeg_gguf){ 0 };
}
