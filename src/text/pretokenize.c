/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pretokenize.h"

#include <pcre2.h>
#include <string.h>

enum {
    STEP_LIMIT = 1 << 30,       /* see the header                                                    */
    HEAP_LIMIT_KIB = 64 << 10,  /* of one match in the interpreter; the known patterns need under 1 MiB */
};

typedef struct {
    pcre2_code *code;
    bool jit;
    bool drop_gaps;
} step;

struct aeg_pretok {
    aeg_memory *memory;
    pcre2_general_context *general;
    pcre2_compile_context *compile;
    pcre2_match_context *match;
    uint32_t n_steps;
    step steps[AEG_PRETOK_MAX_PATTERNS];
};

/* The run is only PCRE2's room for one match: each level copies its offsets out before it goes deeper. */
struct aeg_pretok_run {
    pcre2_match_data *match;
};

static void *counted_malloc(PCRE2_SIZE n, void *memory) { return aeg_malloc(memory, n); }
static void counted_free(void *p, void *memory) { aeg_free(memory, p); }

static aegis_status open_step(aeg_pretok *p, const aeg_pretok_pattern *pattern, aegis_error *err)
{
    char *text = NULL;
    AEG_TRY(aeg_pattern_translate(pattern->text, pattern->n, &text, p->memory, err));
    int code = 0;
    PCRE2_SIZE at = 0;
    step *s = &p->steps[p->n_steps];
    s->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE, &code, &at, p->compile);
    aegis_status status = AEGIS_OK;
    if (s->code == NULL) {
        PCRE2_UCHAR why[160] = "";
        pcre2_get_error_message(code, why, sizeof(why));
        status = aeg_fail(err, code == PCRE2_ERROR_HEAP_FAILED ? AEGIS_E_MEMORY : AEGIS_E_MODEL,
                          "pre-tokenizer pattern '%.*s': %s", (int)pattern->n, pattern->text, (const char *)why);
    } else {
        /* Refused where pages may not be writable and executable: slower, same pieces. */
        s->jit = pcre2_jit_compile(s->code, PCRE2_JIT_COMPLETE) == 0;
        s->drop_gaps = pattern->drop_gaps;
        p->n_steps++;
    }
    aeg_free(p->memory, text);
    return status;
}

aegis_status aeg_pretok_open(aeg_pretok **out, const aeg_pretok_pattern *patterns, uint32_t n_patterns,
                             aeg_memory *memory, aegis_error *err)
{
    if (n_patterns > AEG_PRETOK_MAX_PATTERNS)
        return aeg_fail(err, AEGIS_E_MODEL, "pre-tokenizer: %u patterns, expected at most %d", n_patterns,
                        AEG_PRETOK_MAX_PATTERNS);
    aeg_pretok *p = aeg_calloc(memory, 1, sizeof(*p));
    if (p == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "pre-tokenizer: no memory");
    p->memory = memory;
    p->general = pcre2_general_context_create(counted_malloc, counted_free, memory);
    if (p->general != NULL) {
        p->compile = pcre2_compile_context_create(p->general);
        p->match = pcre2_match_context_create(p->general);
    }
    if (p->compile == NULL || p->match == NULL) {
        aeg_pretok_close(p);
        return aeg_fail(err, AEGIS_E_MEMORY, "pre-tokenizer: no memory for its patterns");
    }
    pcre2_set_newline(p->compile, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(p->compile, 64);
    pcre2_set_match_limit(p->match, STEP_LIMIT);
    pcre2_set_depth_limit(p->match, STEP_LIMIT);
    pcre2_set_heap_limit(p->match, HEAP_LIMIT_KIB);
    for (uint32_t i = 0; i < n_patterns; i++) {
        const aegis_status status = open_step(p, &patterns[i], err);
        if (status != AEGIS_OK) {
            aeg_pretok_close(p);
            return status;
        }
    }
    *out = p;
    return AEGIS_OK;
}

void aeg_pretok_close(aeg_pretok *p)
{
    if (p == NULL)
        return;
    for (uint32_t i = 0; i < p->n_steps; i++)
        pcre2_code_free(p->steps[i].code);
    pcre2_match_context_free(p->match);
    pcre2_compile_context_free(p->compile);
    pcre2_general_context_free(p->general);
    aeg_free(p->memory, p);
}

void aeg_pretok_no_jit(aeg_pretok *p)
{
    for (uint32_t i = 0; i < p->n_steps; i++)
        p->steps[i].jit = false;
}

aegis_status aeg_pretok_begin(aeg_pretok_run **out, const aeg_pretok *p, aegis_error *err)
{
    aeg_pretok_run *run = aeg_calloc(p->memory, 1, sizeof(*run));
    if (run != NULL)
        run->match = pcre2_match_data_create(1, p->general);
    if (run == NULL || run->match == NULL) {
        aeg_free(p->memory, run);
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory to match the pre-tokenizer pattern");
    }
    *out = run;
    return AEGIS_OK;
}

void aeg_pretok_end(const aeg_pretok *p, aeg_pretok_run *run)
{
    if (run == NULL)
        return;
    pcre2_match_data_free(run->match);
    aeg_free(p->memory, run);
}

/* The next match at or after `at`; *found is false if there is none. Never an empty match. */
static aegis_status find_match(const aeg_pretok *p, const step *s, pcre2_match_data *room, const uint8_t *text,
                               size_t n, size_t at, bool *found, size_t *start, size_t *end, aegis_error *err)
{
    int rc = PCRE2_ERROR_JIT_STACKLIMIT;
    if (s->jit)
        rc = pcre2_jit_match(s->code, text, n, at, PCRE2_NOTEMPTY, room, p->match);
    /* NO_UTF_CHECK: the text is known to be valid; checking it again for each piece would be quadratic. */
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(s->code, text, n, at, PCRE2_NOTEMPTY | PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, room, p->match);
    *found = rc >= 0;
    if (rc == PCRE2_ERROR_NOMATCH)
        return AEGIS_OK;
    if (rc < 0) {
        PCRE2_UCHAR why[160] = "";
        pcre2_get_error_message(rc, why, sizeof(why));
        return aeg_fail(err, rc == PCRE2_ERROR_NOMEMORY ? AEGIS_E_MEMORY : AEGIS_E_RUNTIME,
                        "pre-tokenizer pattern on %zu bytes of text: %s", n, (const char *)why);
    }
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(room);
    *start = offsets[0];
    *end = offsets[1];
    return AEGIS_OK;
}

static aegis_status split(const aeg_pretok *p, aeg_pretok_run *run, uint32_t level, const uint8_t *text, size_t n,
                          aeg_pretok_fn piece, void *ctx, aegis_error *err)
{
    if (n == 0)
        return AEGIS_OK;
    if (level == p->n_steps)
        return piece(ctx, text, n, err);
    const step *s = &p->steps[level];
    for (size_t at = 0; at < n;) {
        bool found;
        size_t start = n, end = n;
        AEG_TRY(find_match(p, s, run->match, text, n, at, &found, &start, &end, err));
        if (!found)
            start = end = n;
        /* A look-behind can start before `at`, and \K is refused, so this only guards our own mistakes. */
        if (start < at || end < start || (found && end == start))
            return aeg_fail(err, AEGIS_E_MODEL, "pre-tokenizer pattern matched backwards");
        if (start > at && !s->drop_gaps)
            AEG_TRY(split(p, run, level + 1, text + at, start - at, piece, ctx, err));
        if (end > start)
            AEG_TRY(split(p, run, level + 1, text + start, end - start, piece, ctx, err));
        at = end;
    }
    return AEGIS_OK;
}

aegis_status aeg_pretok_split(const aeg_pretok *p, aeg_pretok_run *run, const uint8_t *text, size_t n,
                              aeg_pretok_fn piece, void *ctx, aegis_error *err)
{
    return split(p, run, 0, text, n, piece, ctx, err);
}
