/* SPDX-License-Identifier: Apache-2.0 */
#include "dialog.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "setup.h"
#include "ui.h"

static const char DIM[] = "\033[2m", PLAIN[] = "\033[0m";

aegis_status aeg_dialog_init(aeg_dialog *d, aegis_engine *engine, const char *system, aegis_error *err)
{
    aeg_json_init();
    *d = (aeg_dialog){ .engine = engine, .think = -1, .show = true, .messages = json_array() };
    if (d->messages == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for the messages");
    return system != NULL ? aeg_dialog_set_system(d, system, err) : AEGIS_OK;
}

void aeg_dialog_close(aeg_dialog *d)
{
    json_decref(d->messages);
    aeg_buffer_free(&d->answer);
    aeg_buffer_free(&d->thought);
    *d = (aeg_dialog){ 0 };
}

static aegis_status make_message(json_t **out, const char *role, const char *content, size_t n, aegis_error *err)
{
    json_t *text = json_stringn(content, n);
    if (text == NULL) { /* Jansson does not say why; unchecked, only memory can be missing */
        json_t *unchecked = json_stringn_nocheck(content, n);
        json_decref(unchecked);
        return unchecked == NULL ? aeg_fail(err, AEGIS_E_MEMORY, "no memory for a message of %zu bytes", n)
                                 : aeg_fail(err, AEGIS_E_USAGE, "the %s message is not UTF-8 text", role);
    }
    *out = json_pack("{s:s, s:o}", "role", role, "content", text);
    return *out != NULL ? AEGIS_OK : aeg_fail(err, AEGIS_E_MEMORY, "no memory for a message");
}

aegis_status aeg_dialog_add(aeg_dialog *d, const char *role, const char *content, size_t n, aegis_error *err)
{
    json_t *message = NULL;
    aegis_status status = make_message(&message, role, content, n, err);
    if (status == AEGIS_OK && json_array_append_new(d->messages, message) != 0)
        status = aeg_fail(err, AEGIS_E_MEMORY, "no memory for a message");
    return aeg_setup_too_long(d->engine, n, status, err);
}

static bool has_role(const json_t *message, const char *role)
{
    const char *value = json_string_value(json_object_get(message, "role"));
    return value != NULL && strcmp(value, role) == 0;
}

aegis_status aeg_dialog_set_system(aeg_dialog *d, const char *content, aegis_error *err)
{
    json_t *message = NULL;
    if (content != NULL) {
        const aegis_status status = make_message(&message, "system", content, strlen(content), err);
        AEG_TRY(aeg_setup_too_long(d->engine, strlen(content), status, err));
    }
    if (has_role(json_array_get(d->messages, 0), "system"))
        json_array_remove(d->messages, 0);
    if (message != NULL && json_array_insert_new(d->messages, 0, message) != 0)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a message");
    return AEGIS_OK;
}

bool aeg_dialog_drop_last(aeg_dialog *d, const char *role)
{
    const size_t n = json_array_size(d->messages);
    return n > 0 && has_role(json_array_get(d->messages, n - 1), role) && json_array_remove(d->messages, n - 1) == 0;
}

void aeg_dialog_clear(aeg_dialog *d)
{
    const size_t keep = has_role(json_array_get(d->messages, 0), "system") ? 1 : 0;
    while (json_array_size(d->messages) > keep)
        json_array_remove(d->messages, json_array_size(d->messages) - 1);
    aegis_session_clear(d->engine);
}

aegis_status aeg_dialog_render(aeg_dialog *d, bool generation_prompt, char **text, size_t *n, aegis_error *err)
{
    char *messages = json_dumps(d->messages, JSON_COMPACT);
    if (messages == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for the messages");
    const aegis_status status = aegis_template(d->engine, messages, NULL, d->think, generation_prompt, text, n, err);
    aeg_free(aeg_json_memory(), messages);
    return status;
}

/* --- streaming ------------------------------------------------------------------------------------------ */

static int put(aeg_dialog *d, const char *bytes, size_t n)
{
    d->write_status = aeg_ui_write(bytes, n, d->write_error);
    return d->write_status == AEGIS_OK ? 0 : 1;
}

static void show_style(aeg_dialog *d, bool dim)
{
    if (d->dim_open == dim)
        return;
    d->dim_open = dim;
    fputs(aeg_ui_color() ? (dim ? DIM : PLAIN) : "", stdout);
}

/* Thoughts are for eyes: shown dim on a terminal, never in a pipe. */
static int on_split(void *ctx, bool thought, const char *bytes, size_t n)
{
    aeg_dialog *d = ctx;
    aeg_buffer *into = thought ? &d->thought : &d->answer;
    d->write_status = aeg_buffer_append(into, bytes, n, d->write_error);
    if (d->write_status != AEGIS_OK)
        return 1;
    if (!d->show || (thought && !aeg_ui_stdout_is_terminal()))
        return 0;
    if (d->dim_open && !thought) {
        show_style(d, false);
        put(d, "\n\n", 2);
    }
    show_style(d, thought);
    return put(d, bytes, n);
}

static int on_text(void *ctx, const char *bytes, size_t n)
{
    aeg_dialog *d = ctx;
    return aeg_think_push(&d->splitter, bytes, n, on_split, d);
}

/* --- answers --------------------------------------------------------------------------------------------- */

static aegis_status generate(aeg_dialog *d, const uint32_t *ids, size_t n_ids, bool open_thought, aegis_error *err)
{
    aegis_info info;
    aegis_engine_info(d->engine, &info);
    if (n_ids > info.plan.n_ctx)
        return aeg_fail(err, AEGIS_E_USAGE, "the prompt has %zu tokens, the context %u; raise it with -c", n_ids,
                        info.plan.n_ctx);
    aeg_think_init(&d->splitter, open_thought);
    d->g.text = on_text;
    d->g.ctx = d;
    d->write_error = err;
    d->write_status = AEGIS_OK;
    const aegis_status status = aegis_generate(d->engine, ids, n_ids, &d->g, &d->result, err);
    if (d->write_status == AEGIS_OK)
        aeg_think_finish(&d->splitter, on_split, d);
    show_style(d, false);
    aegis_engine_stats(d->engine, &d->stats);
    return status != AEGIS_OK ? status : d->write_status;
}

static size_t content_bytes(const aeg_dialog *d)
{
    size_t sum = 0, i;
    const json_t *message;
    json_array_foreach(d->messages, i, message)
        sum += json_string_length(json_object_get(message, "content"));
    return sum;
}

static aegis_status tokens_of(aeg_dialog *d, bool generation_prompt, uint32_t **ids, size_t *n_ids, bool *open_thought,
                              aegis_error *err)
{
    char *text = NULL;
    size_t n = 0;
    aegis_status status = aeg_dialog_render(d, generation_prompt, &text, &n, err);
    if (status == AEGIS_OK) {
        *open_thought = aeg_think_is_open(text, n);
        status = aegis_tokenize(d->engine, text, n, true, ids, n_ids, err);
    }
    aegis_text_free(text);
    return aeg_setup_too_long(d->engine, content_bytes(d), status, err);
}

/* Evaluate what the prompt shares with the messages alone, and remember the state there: the next turn begins
 * with the same tokens, whatever the template makes of our answer. */
static aegis_status sync_and_remember(aeg_dialog *d, const uint32_t *ids, size_t n_ids, size_t *n_reused,
                                      aegis_error *err)
{
    uint32_t *messages = NULL;
    size_t n = 0, shared = 0;
    bool open_thought;
    AEG_TRY(tokens_of(d, false, &messages, &n, &open_thought, err));
    while (shared < n && shared < n_ids && messages[shared] == ids[shared])
        shared++;
    aegis_free_ids(messages);
    if (shared == 0)
        return AEGIS_OK;
    AEG_TRY(aegis_session_sync(d->engine, ids, shared, n_reused, NULL, err));
    aegis_session_checkpoint(d->engine);
    return AEGIS_OK;
}

aegis_status aeg_dialog_answer(aeg_dialog *d, bool checkpoint, aegis_error *err)
{
    uint32_t *ids = NULL;
    size_t n_ids = 0, n_reused = 0;
    bool open_thought = false, synced = false;
    const uint64_t start = aeg_now_ns();
    aeg_buffer_clear(&d->answer);
    aeg_buffer_clear(&d->thought);
    d->result = (aegis_generated){ 0 };
    aegis_engine_stats_reset(d->engine);
    AEG_TRY(tokens_of(d, true, &ids, &n_ids, &open_thought, err));

    aegis_info info;
    aegis_engine_info(d->engine, &info);
    aegis_status status = AEGIS_OK;
    if (checkpoint && n_ids <= info.plan.n_ctx) {
        status = sync_and_remember(d, ids, n_ids, &n_reused, err);
        synced = true;
    }
    const uint64_t before_ns = aeg_now_ns() - start;
    if (status == AEGIS_OK)
        status = generate(d, ids, n_ids, open_thought, err);
    aegis_free_ids(ids);
    if (synced && status == AEGIS_OK) {
        d->result.n_reused = (uint32_t)n_reused;
        d->result.ttft_ns += before_ns;
    }
    if (status == AEGIS_E_CANCELLED) {
        d->result.stop = AEGIS_STOP_CANCELLED;
        return AEGIS_OK;
    }
    return status;
}

aegis_status aeg_dialog_continue(aeg_dialog *d, const char *text, size_t n, aegis_error *err)
{
    uint32_t *ids = NULL;
    size_t n_ids = 0;
    aeg_buffer_clear(&d->answer);
    aeg_buffer_clear(&d->thought);
    aegis_engine_stats_reset(d->engine);
    aegis_status status = aegis_tokenize(d->engine, text, n, true, &ids, &n_ids, err);
    AEG_TRY(aeg_setup_too_long(d->engine, n, status, err));
    status = n_ids > 0 ? AEGIS_OK : aeg_fail(err, AEGIS_E_USAGE, "the prompt has no tokens");
    if (status == AEGIS_OK) {
        d->splitter.state = AEG_THINK_ANSWER;
        status = generate(d, ids, n_ids, false, err);
    }
    aegis_free_ids(ids);
    return status;
}
