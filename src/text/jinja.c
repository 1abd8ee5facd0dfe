/* SPDX-License-Identifier: Apache-2.0 */
/* Compile, render, and the limits of a render. */
#include "text/jinja.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "text/jinja_eval.h"
#include "text/jinja_parse.h"

aegis_status aeg_jinja_compile(aeg_jinja **out, const char *text, size_t n, aeg_memory *memory,
                               aegis_error *err)
{
    aeg_jparser parser;
    *out = NULL;
    if (n > AEG_JINJA_MAX_SOURCE)
        return aeg_fail(err, AEGIS_E_MODEL, "chat template: %zu bytes, at most %d are accepted", n,
                        AEG_JINJA_MAX_SOURCE);
    aeg_jinja *t = aeg_calloc(memory, 1, sizeof *t);
    if (t == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "chat template: no memory");
    t->arena.memory = memory;
    const aegis_status status = aeg_jin_parse(&parser, t, text, n, memory, err);
    if (status != AEGIS_OK) {
        aeg_jinja_free(t);
        return status;
    }
    *out = t;
    return AEGIS_OK;
}

void aeg_jinja_free(aeg_jinja *t)
{
    if (t == NULL)
        return;
    aeg_memory *memory = t->arena.memory;
    aeg_jarena_free(&t->arena);
    aeg_free(memory, t);
}

aeg_jinja_limits aeg_jinja_default_limits(void)
{
    return (aeg_jinja_limits){ .max_steps = 50 * 1000 * 1000, .max_output_bytes = 256 << 20,
                               .max_memory = 1 << 30, .max_depth = 256 };
}

bool aeg_jrun_fail(aeg_jrun *r, aegis_status status, const char *fmt, ...)
{
    if (r->status != AEGIS_OK)
        return false;
    char text[AEGIS_ERROR_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->status = aeg_fail(r->err, status, "chat template line %u: %s", r->line, text);
    return false;
}

bool aeg_jrun_no_memory(aeg_jrun *r)
{
    return aeg_jrun_fail(r, AEGIS_E_MEMORY, "rendering needs more memory than its limit of %llu bytes allows",
                         (unsigned long long)r->limits.max_memory);
}

bool aeg_jrun_undefined(aeg_jrun *r, const aeg_jval *v)
{
    const aeg_jval owner = { .type = v->owner };
    const int n = (int)AEG_MIN(v->u.s.n, 200);
    switch ((aeg_jorigin)v->sub) {
    case JU_NAME: return aeg_jrun_fail(r, AEGIS_E_USAGE, "'%.*s' is undefined", n, v->u.s.p);
    case JU_ATTRIBUTE:
        return aeg_jrun_fail(r, AEGIS_E_USAGE, "'%s object' has no attribute '%.*s'",
                             v->owner == JV_LIST ? "list" : aeg_jv_type_name(&owner), n, v->u.s.p);
    case JU_HINT: break;
    }
    return aeg_jrun_fail(r, AEGIS_E_USAGE, "%.*s", n, v->u.s.p);
}

bool aeg_jrun_step(aeg_jrun *r, uint64_t n)
{
    r->steps += n;
    if (r->steps <= r->limits.max_steps)
        return true;
    return aeg_jrun_fail(r, AEGIS_E_RUNTIME, "rendering takes more than %llu steps",
                         (unsigned long long)r->limits.max_steps);
}

bool aeg_jrun_enter(aeg_jrun *r)
{
    if (r->depth >= r->limits.max_depth)
        return aeg_jrun_fail(r, AEGIS_E_RUNTIME, "nested deeper than %u levels", r->limits.max_depth);
    r->depth++;
    return true;
}

bool aeg_jrun_alloc(aeg_jrun *r, size_t n, size_t size, void *out_pointer)
{
    uint64_t bytes;
    void *p = aeg_mul(n, size, &bytes) ? aeg_jarena_alloc(&r->arena, bytes) : NULL;
    if (p == NULL)
        return aeg_jrun_no_memory(r);
    memcpy(out_pointer, &p, sizeof p);
    return aeg_jrun_step(r, bytes / 256);
}

bool aeg_jrun_text(aeg_jrun *r, size_t n, char **out)
{
    *out = aeg_jarena_text(&r->arena, n);
    return *out != NULL ? aeg_jrun_step(r, n / 64) : aeg_jrun_no_memory(r);
}

bool aeg_jrun_write(aeg_jrun *r, const char *p, size_t n)
{
    if (n == 0)
        return true;
    AEG_JTRY(aeg_jrun_step(r, n / 64));
    if (n > r->limits.max_output_bytes || r->out_n > r->limits.max_output_bytes - n)
        return aeg_jrun_fail(r, AEGIS_E_RUNTIME, "the rendered text is longer than %llu bytes",
                             (unsigned long long)r->limits.max_output_bytes);
    if (r->out_cap - r->out_n <= n) {
        const size_t cap = AEG_MAX(r->out_cap + r->out_cap / 2, r->out_n + n + 1);
        char *out = aeg_realloc(r->memory, r->out, AEG_MAX(cap, 1024));
        if (out == NULL)
            return aeg_jrun_no_memory(r);
        r->out = out;
        r->out_cap = AEG_MAX(cap, 1024);
    }
    memcpy(r->out + r->out_n, p, n);
    r->out_n += n;
    return true;
}

size_t aeg_jrun_capture_begin(aeg_jrun *r) { return r->out_n; }

void aeg_jrun_capture_drop(aeg_jrun *r, size_t mark) { r->out_n = mark; }

bool aeg_jrun_capture_end(aeg_jrun *r, size_t mark, aeg_jval *out)
{
    const size_t n = r->out_n - mark;
    char *text;
    r->out_n = mark;
    AEG_JTRY(aeg_jrun_text(r, n, &text));
    if (n > 0)
        memcpy(text, r->out + mark, n);
    *out = aeg_jv_text(text, n);
    return true;
}

static bool render(aeg_jrun *r)
{
    const aeg_jinja *t = r->t;
    AEG_JTRY(aeg_jrun_alloc(r, t->n_symbols, sizeof *r->globals, &r->globals));
    for (uint32_t i = 0; i < t->n_symbols; i++)
        r->globals[i] = (aeg_jval){ .type = JV_UNSET };
    aeg_jscope *top = aeg_jscope_for(r, NULL, &t->body);
    return top != NULL && aeg_jin_exec(r, top, &t->body) != JX_FAIL;
}

aegis_status aeg_jinja_render(const aeg_jinja *t, const json_t *variables, const aeg_jinja_limits *limits,
                              char **out, size_t *n, aeg_memory *memory, aegis_error *err)
{
    *out = NULL;
    *n = 0;
    if (!json_is_object(variables))
        return aeg_fail(err, AEGIS_E_USAGE, "chat template: the variables must be a JSON object");
    aeg_jrun r = { .t = t, .memory = memory, .err = err, .variables = variables, .line = 1,
                   .limits = limits != NULL ? *limits : aeg_jinja_default_limits() };
    r.arena = (aeg_jarena){ .memory = memory, .limit = r.limits.max_memory };

    const bool ok = render(&r);
    aeg_jarena_free(&r.arena);
    char *text = ok ? aeg_realloc(memory, r.out, r.out_n + 1) : NULL;
    if (text == NULL) {
        aeg_free(memory, r.out);
        return ok ? aeg_fail(err, AEGIS_E_MEMORY, "chat template: no memory for the rendered text") : r.status;
    }
    text[r.out_n] = '\0';
    *out = text;
    *n = r.out_n;
    return AEGIS_OK;
}
