/* SPDX-License-Identifier: Apache-2.0 */
#include "expert/replay_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "format/hparams.h"

static const char magic[8] = { 'A', 'E', 'G', 'R', 'O', 'U', 'T', 'E' };
enum { VERSION = 1 };

struct aeg_trace_writer {
    aeg_trace_shape shape;
    char *path;
    int fd, os_code;         /* os_code: of the first write that failed */
    bool prefill, text;
    uint32_t max_step, n_step, layer, n_layer; /* tokens of the step; layer and how many tokens it has so far */
    uint64_t n_tokens;
    uint32_t id_bytes;
    size_t record_bytes;
    uint8_t *step;           /* [max_step][record_bytes] */
    aeg_memory *memory;
};

static void put_number(uint8_t *p, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_number(const uint8_t *p, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static uint32_t id_bytes_of(const aeg_trace_shape *shape) { return shape->n_experts <= 256 ? 1 : 2; }

static size_t record_bytes_of(const aeg_trace_shape *shape)
{
    return 1 + (size_t)shape->n_layers * shape->top_k * id_bytes_of(shape);
}

static void write_bytes(aeg_trace_writer *w, const uint8_t *p, size_t n)
{
    while (n > 0 && w->os_code == 0) {
        const ssize_t put = write(w->fd, p, n);
        if (put < 0 && errno != EINTR)
            w->os_code = errno;
        if (put > 0) {
            p += put;
            n -= (size_t)put;
        }
    }
}

static void write_header(aeg_trace_writer *w)
{
    uint8_t header[AEG_TRACE_HEADER] = { 0 };
    memcpy(header, magic, sizeof magic);
    put_number(header + 8, VERSION, 4);
    put_number(header + 12, w->shape.n_layers, 4);
    put_number(header + 16, w->shape.n_experts, 4);
    put_number(header + 20, w->shape.top_k, 4);
    put_number(header + 24, w->n_tokens, 8);
    put_number(header + 32, w->shape.model_key, 8);
    write_bytes(w, header, sizeof header);
}

aegis_status aeg_trace_create(aeg_trace_writer **out, const char *path, const aeg_trace_shape *shape, uint32_t max_step,
                              aeg_memory *memory, aegis_error *err)
{
    aeg_trace_writer *w = aeg_calloc(memory, 1, sizeof *w);
    if (w == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory to record routes", path);
    *w = (aeg_trace_writer){ .shape = *shape, .fd = -1, .max_step = max_step, .id_bytes = id_bytes_of(shape),
                             .record_bytes = record_bytes_of(shape), .memory = memory };
    w->path = aeg_strdup(memory, path);
    w->step = aeg_malloc(memory, max_step * w->record_bytes);
    aegis_status status = AEGIS_OK;
    if (w->path == NULL || w->step == NULL)
        status = aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory to record steps of %u tokens", path, max_step);
    else if ((w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0)
        status = aeg_fail_os(err, AEGIS_E_IO, errno, "routes file %s", path);
    if (status != AEGIS_OK) {
        aeg_free(memory, w->step);
        aeg_free(memory, w->path);
        aeg_free(memory, w);
        return status;
    }
    write_header(w); /* with 0 tokens, which no reader accepts: a run that dies leaves no half trace */
    *out = w;
    return AEGIS_OK;
}

void aeg_trace_set_prefill(aeg_trace_writer *w, bool prefill) { w->prefill = prefill; }
void aeg_trace_start_text(aeg_trace_writer *w) { w->text = true; }

static void begin_token(aeg_trace_writer *w)
{
    uint8_t flags = w->prefill ? AEG_ROUTE_PREFILL : 0;
    if (w->n_step == 0)
        flags |= AEG_ROUTE_STEP;
    if (w->text)
        flags |= AEG_ROUTE_TEXT;
    w->text = false;
    w->step[w->n_step++ * w->record_bytes] = flags;
}

void aeg_trace_add(aeg_trace_writer *w, uint32_t layer, const uint16_t *ids)
{
    if (layer == 0 && w->layer != 0)
        w->n_step = w->n_layer = w->layer = 0; /* the step before failed half-way: it never happened */
    if (layer != w->layer) {
        w->layer = layer;
        w->n_layer = 0;
    }
    if (layer == 0 && w->n_step < w->max_step)
        begin_token(w);
    if (w->n_layer >= w->n_step) {
        w->os_code = EOVERFLOW; /* a longer step than was promised */
        return;
    }
    uint8_t *to = w->step + w->n_layer++ * w->record_bytes + 1 + (size_t)layer * w->shape.top_k * w->id_bytes;
    for (uint32_t k = 0; k < w->shape.top_k; k++)
        put_number(to + (size_t)k * w->id_bytes, ids[k], (int)w->id_bytes);
    if (layer + 1 < w->shape.n_layers || w->n_layer < w->n_step)
        return;
    write_bytes(w, w->step, w->n_step * w->record_bytes);
    w->n_tokens += w->n_step;
    w->n_step = w->n_layer = w->layer = 0;
}

aegis_status aeg_trace_finish(aeg_trace_writer *w, uint64_t *n_tokens, aegis_error *err)
{
    if (w == NULL)
        return AEGIS_OK;
    if (w->os_code == 0 && lseek(w->fd, 0, SEEK_SET) != 0)
        w->os_code = errno;
    write_header(w);
    struct stat st;
    const bool regular = fstat(w->fd, &st) == 0 && S_ISREG(st.st_mode);
    if (regular && fsync(w->fd) != 0 && w->os_code == 0)
        w->os_code = errno;
    if (close(w->fd) != 0 && w->os_code == 0)
        w->os_code = errno;
    if (n_tokens != NULL)
        *n_tokens = w->n_tokens;
    aegis_status status = AEGIS_OK;
    if (w->os_code != 0) {
        status = aeg_fail_os(err, AEGIS_E_IO, w->os_code, "routes file %s: writing", w->path);
        if (regular) /* never a device */
            unlink(w->path);
    }
    aeg_free(w->memory, w->step);
    aeg_free(w->memory, w->path);
    aeg_free(w->memory, w);
    return status;
}

/* ---- reading ---- */

static aegis_status read_header(aeg_trace *t, const uint8_t *p, size_t n, const char *path, aegis_error *err)
{
    if (n < AEG_TRACE_HEADER || memcmp(p, magic, sizeof magic) != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: does not begin with \"AEGROUTE\": not a file of recorded routes", path);
    const uint32_t version = (uint32_t)get_number(p + 8, 4);
    if (version != VERSION)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: version %u, expected %d", path, version, VERSION);
    aeg_trace_shape *s = &t->shape;
    *s = (aeg_trace_shape){ .n_layers = (uint32_t)get_number(p + 12, 4), .n_experts = (uint32_t)get_number(p + 16, 4),
                            .top_k = (uint32_t)get_number(p + 20, 4), .model_key = get_number(p + 32, 8) };
    t->n_tokens = get_number(p + 24, 8);
    if (s->n_layers < 1 || s->n_layers > AEG_MAX_LAYERS || s->n_experts < 1 || s->n_experts > AEG_MAX_EXPERTS ||
        s->top_k < 1 || s->top_k > AEG_MAX_TOP_K || s->top_k > s->n_experts)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %u layers, %u experts, top %u: expected at most %d, %d, %d, and none of them 0",
                        path, s->n_layers, s->n_experts, s->top_k, AEG_MAX_LAYERS, AEG_MAX_EXPERTS, AEG_MAX_TOP_K);
    const uint64_t room = (n - AEG_TRACE_HEADER) / record_bytes_of(s);
    if (t->n_tokens < 1 || t->n_tokens != room || (n - AEG_TRACE_HEADER) % record_bytes_of(s) != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %zu bytes for %llu tokens, expected %zu for each after a header of %d (truncated, or its recording was not completed?)",
                        path, n, (unsigned long long)t->n_tokens, record_bytes_of(s), AEG_TRACE_HEADER);
    return AEGIS_OK;
}

/* A decode step is one token; a prefill goes on only after a prefill. */
static aegis_status check_flags(const aeg_trace *t, uint64_t token, const char *path, aegis_error *err)
{
    const uint8_t flags = t->flags[token], known = AEG_ROUTE_PREFILL | AEG_ROUTE_STEP | AEG_ROUTE_TEXT;
    const bool goes_on = !(flags & AEG_ROUTE_STEP);
    if ((flags & ~known) != 0 || (goes_on && (token == 0 || !(flags & AEG_ROUTE_PREFILL) ||
                                              !(t->flags[token - 1] & AEG_ROUTE_PREFILL))))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: token %llu has flags 0x%02x, which cannot follow 0x%02x", path,
                        (unsigned long long)token, flags, token > 0 ? t->flags[token - 1] : 0);
    return AEGIS_OK;
}

static aegis_status read_token(aeg_trace *t, uint64_t token, const uint8_t *p, const char *path, aegis_error *err)
{
    const aeg_trace_shape *s = &t->shape;
    const uint32_t n = s->n_layers * s->top_k, bytes = id_bytes_of(s);
    uint16_t *ids = t->ids + token * n;
    t->flags[token] = p[0];
    AEG_TRY(check_flags(t, token, path, err));
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = (uint16_t)get_number(p + 1 + (size_t)i * bytes, (int)bytes);
        if (ids[i] >= s->n_experts || (i % s->top_k > 0 && ids[i] <= ids[i - 1]))
            return aeg_fail(err, AEGIS_E_MODEL, "%s: token %llu, layer %u: expert %u, expected ascending ids below %u", path,
                            (unsigned long long)token, i / s->top_k, ids[i], s->n_experts);
    }
    return AEGIS_OK;
}

static aegis_status read_tokens(aeg_trace *t, const uint8_t *p, const char *path, aegis_error *err)
{
    const uint64_t n_ids = t->n_tokens * t->shape.n_layers * t->shape.top_k;
    t->flags = aeg_malloc(t->memory, t->n_tokens);
    t->ids = aeg_malloc(t->memory, n_ids * sizeof *t->ids);
    if (t->flags == NULL || t->ids == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for the routes of %llu tokens", path,
                        (unsigned long long)t->n_tokens);
    for (uint64_t token = 0; token < t->n_tokens; token++)
        AEG_TRY(read_token(t, token, p + token * record_bytes_of(&t->shape), path, err));
    return AEGIS_OK;
}

aegis_status aeg_trace_read(aeg_trace *out, const char *path, aeg_memory *memory, aegis_error *err)
{
    char *text = NULL;
    size_t n = 0;
    aeg_trace t = { .memory = memory };
    AEG_TRY(aeg_file_read(&text, &n, path, AEG_TRACE_MAX_BYTES, memory, err));
    aegis_status status = read_header(&t, (const uint8_t *)text, n, path, err);
    if (status == AEGIS_OK)
        status = read_tokens(&t, (const uint8_t *)text + AEG_TRACE_HEADER, path, err);
    aeg_free(memory, text);
    if (status != AEGIS_OK) {
        aeg_trace_free(&t);
        return status;
    }
    *out = t;
    return AEGIS_OK;
}

void aeg_trace_free(aeg_trace *t)
{
    if (t->memory == NULL)
        return;
    aeg_free(t->memory, t->flags);
    aeg_free(t->memory, t->ids);
    *t = (aeg_trace){ 0 };
}
