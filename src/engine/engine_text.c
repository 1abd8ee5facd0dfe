/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizer and chat template of an open engine. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/engine_parts.h"
#include "text/template.h"

enum { MAX_TEMPLATE = 1 << 20, MAX_TABLE = 256 << 20, NO_PLAN_BYTES = 64 << 20 };

static const char TABLE_FILE[] = "tokenizer.bin", TEMPLATE_FILE[] = "chat_template.jinja";

/* Results handed to callers outlive the engine's ceilings and are freed without it. */
static aeg_memory results = { .name = "results" };

/* Bytes that each part may take: something fixed, and something for every token of the context. A token is 4 to 5
 * bytes of text; the tokenizer's scratch for text that needs normalising is 20 bytes per byte, messages stand as
 * JSON a few times while they are rendered, a growing buffer is twice its text and copied once. */
typedef enum { PART_TOKENIZER, PART_JSON, PART_RESULTS, PART_CALLER, N_PARTS } text_part;

static uint64_t part_bytes(text_part part, uint32_t n_ctx)
{
    static const struct { uint32_t fixed, per_token; } parts[N_PARTS] = {
        [PART_TOKENIZER] = { 512 << 10, 96 }, [PART_JSON] = { 64 << 10, 48 },
        [PART_RESULTS] = { 64 << 10, 32 },    [PART_CALLER] = { 64 << 10, 24 },
    };
    return parts[part].fixed + (uint64_t)parts[part].per_token * n_ctx;
}

uint64_t aeg_text_heap_bytes(uint32_t n_ctx)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < N_PARTS; i++)
        sum += part_bytes((text_part)i, n_ctx);
    return sum;
}

uint64_t aeg_text_caller_bytes(uint32_t n_ctx) { return part_bytes(PART_CALLER, n_ctx); }

void aeg_text_set_ceilings(aegis_engine *e)
{
    e->text_memory.ceiling = part_bytes(PART_TOKENIZER, e->settings.n_ctx);
    results.ceiling = part_bytes(PART_RESULTS, e->settings.n_ctx);
    aeg_json_memory()->ceiling = aeg_json_memory()->in_use + part_bytes(PART_JSON, e->settings.n_ctx);
}

aegis_status aeg_text_size(aegis_engine *e, aegis_error *err)
{
    char path[AEG_PATH_MAX];
    struct stat st;
    e->tokenizer_bytes = 0;
    if (!e->store->has_tokenizer)
        return AEGIS_OK;
    AEG_TRY(aeg_path_join(path, e->store->path, TABLE_FILE, err));
    if (stat(path, &st) != 0)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "%s", path);
    if (st.st_size <= 0 || st.st_size > MAX_TABLE)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %lld bytes, expected 1 to %d", path, (long long)st.st_size, MAX_TABLE);
    e->tokenizer_bytes = (uint64_t)st.st_size;
    return AEGIS_OK;
}

static aegis_status load_table(aegis_engine *e, aegis_error *err)
{
    char path[AEG_PATH_MAX];
    AEG_TRY(aeg_path_join(path, e->store->path, TABLE_FILE, err));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "%s", path);
    /* Pieces, dropped behind us: the table must not stand in the page cache a second time. */
    enum { PIECE = 256 << 10 };
    aegis_status status = AEGIS_OK;
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    for (uint64_t at = 0; at < e->tokenizer_bytes && status == AEGIS_OK; at += PIECE) {
        const uint64_t n = AEG_MIN(e->tokenizer_bytes - at, (uint64_t)PIECE);
        status = aeg_file_pread(fd, e->tokenizer_table + at, n, at, path, err);
        posix_fadvise(fd, (off_t)at, (off_t)n, POSIX_FADV_DONTNEED);
    }
    close(fd);
    return status;
}

static aegis_status load_template(aegis_engine *e, aegis_error *err)
{
    char path[AEG_PATH_MAX];
    char *text = NULL;
    size_t n = 0;
    AEG_TRY(aeg_path_join(path, e->store->path, TEMPLATE_FILE, err));
    AEG_TRY(aeg_file_read(&text, &n, path, MAX_TEMPLATE, &e->text_memory, err));
    aegis_status status = aeg_jinja_compile(&e->template, text, n, &e->text_memory, err);
    if (status != AEGIS_OK)
        status = aeg_wrap(err, status, "%s", path);
    aeg_free(&e->text_memory, text);
    return status;
}

aegis_status aeg_text_open(aegis_engine *e, aegis_error *err)
{
    if (e->store->has_tokenizer) {
        AEG_TRY(load_table(e, err));
        const aegis_status status = aeg_tokenizer_open(&e->tokenizer, e->tokenizer_table, e->tokenizer_bytes, &e->text_memory, err);
        if (status != AEGIS_OK)
            return aeg_wrap(err, status, "%s/%s", e->store->path, TABLE_FILE);
    }
    if (e->store->has_template)
        AEG_TRY(load_template(e, err));
    return AEGIS_OK;
}

void aeg_text_close(aegis_engine *e)
{
    results.ceiling = 0;
    aeg_json_memory()->ceiling = 0;
    aeg_jinja_free(e->template);
    aeg_tokenizer_close(e->tokenizer);
    e->template = NULL;
    e->tokenizer = NULL;
}

static aegis_status need_tokenizer(const aegis_engine *e, aegis_error *err)
{
    if (e->tokenizer == NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: the store has no tokenizer; use token ids (aegis logits --ids), or pack with --tokenizer DIR",
                        e->store->path);
    return AEGIS_OK;
}

aegis_status aegis_tokenize(aegis_engine *e, const char *text, size_t n, bool special, uint32_t **ids, size_t *n_ids,
                            aegis_error *err)
{
    AEG_TRY(need_tokenizer(e, err));
    const uint32_t flags = special ? AEG_TOKENIZE_ADDED : 0;
    /* A token is at least one byte, so n ids are always enough; most texts need a quarter of that. */
    size_t cap = n / 3 + 16, count = 0;
    uint32_t *out = NULL;
    for (;;) {
        out = aeg_malloc(&results, cap * sizeof *out);
        if (out == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "no memory for %zu token ids", cap);
        const aegis_status status = aeg_tokenizer_encode(e->tokenizer, text, n, flags, out, cap, &count, err);
        if (status != AEGIS_OK) {
            aeg_free(&results, out);
            return status;
        }
        if (count <= cap)
            break;
        aeg_free(&results, out);
        cap = count;
    }
    *ids = out;
    *n_ids = count;
    return AEGIS_OK;
}

void aegis_free_ids(uint32_t *ids) { aeg_free(&results, ids); }

aegis_status aegis_token_bytes(aegis_engine *e, uint32_t id, const char **bytes, size_t *n, bool *is_special,
                               aegis_error *err)
{
    AEG_TRY(need_tokenizer(e, err));
    const uint8_t *p = NULL;
    if (!aeg_tokenizer_token(e->tokenizer, id, &p, n))
        return aeg_fail(err, AEGIS_E_USAGE, "no token has the id %u; the tokenizer has 0 to %u", id,
                        aeg_tokenizer_n_tokens(e->tokenizer) - 1);
    *bytes = (const char *)p;
    *is_special = aeg_tokenizer_is_special(e->tokenizer, id);
    return AEGIS_OK;
}

/* A special token's name as the template's variable; NULL if the model has none. */
static const char *token_name(const aegis_engine *e, uint32_t id, char *out, size_t size)
{
    const uint8_t *bytes = NULL;
    size_t n = 0;
    if (e->tokenizer == NULL || id == AEG_TOKEN_NONE || !aeg_tokenizer_token(e->tokenizer, id, &bytes, &n) || n >= size)
        return NULL;
    memcpy(out, bytes, n);
    out[n] = '\0';
    return out;
}

aegis_status aegis_template(aegis_engine *e, const char *messages_json, const char *tools_json, int think,
                            bool add_generation_prompt, char **text, size_t *n, aegis_error *err)
{
    if (e->template == NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: the store has no chat template; use --raw", e->store->path);
    char bos[AEG_TOKEN_MAX_BYTES + 1], eos[AEG_TOKEN_MAX_BYTES + 1];
    const bool has = e->tokenizer != NULL;
    /* What a template may take is what the plan gives results; without a plan, far more than any prompt needs. */
    aeg_jinja_limits limits = aeg_jinja_default_limits();
    limits.max_memory = results.ceiling != 0 ? results.ceiling : NO_PLAN_BYTES;
    limits.max_output_bytes = limits.max_memory;
    const aeg_chat_options options = {
        .limits = &limits,
        .add_generation_prompt = add_generation_prompt,
        .enable_thinking = think < 0 ? AEG_THINKING_UNSET : think > 0 ? AEG_THINKING_ON : AEG_THINKING_OFF,
        .bos_token = has ? token_name(e, aeg_tokenizer_bos(e->tokenizer), bos, sizeof bos) : NULL,
        .eos_token = has ? token_name(e, aeg_tokenizer_eos(e->tokenizer), eos, sizeof eos) : NULL,
        .now = time(NULL),
    };
    json_t *messages = NULL, *tools = NULL;
    aegis_status status = AEGIS_OK;
    AEG_TRY_GOTO(aeg_json_parse(&messages, messages_json, strlen(messages_json), "messages", AEGIS_E_USAGE, err));
    if (tools_json != NULL)
        AEG_TRY_GOTO(aeg_json_parse(&tools, tools_json, strlen(tools_json), "tools", AEGIS_E_USAGE, err));
    status = aeg_chat_render(e->template, messages, tools, &options, text, n, &results, err);
done:
    json_decref(messages);
    json_decref(tools);
    return status;
}

void aegis_text_free(char *text) { aeg_free(&results, text); }
