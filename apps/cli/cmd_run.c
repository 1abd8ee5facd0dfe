/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis run`: one prompt, one answer. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "dialog.h"
#include "setup.h"
#include "signals.h"
#include "ui.h"

static const char *const stop_names[] = {
    [AEGIS_STOP_EOS] = "eos", [AEGIS_STOP_LENGTH] = "length", [AEGIS_STOP_STRING] = "stop",
    [AEGIS_STOP_CONTEXT] = "context", [AEGIS_STOP_CANCELLED] = "cancelled", [AEGIS_STOP_CALLBACK] = "callback",
};

/* Read after opening, when the plan is made: a prompt from a file may be long. */
static aegis_status read_prompt(const aeg_cli *cli, aeg_buffer *prompt, aegis_error *err)
{
    if (cli->prompt != NULL && strcmp(cli->prompt, "-") != 0)
        return aeg_buffer_append(prompt, cli->prompt, strlen(cli->prompt), err);
    const char *file = cli->file != NULL ? cli->file : "-";
    AEG_TRY(aeg_buffer_read(prompt, file, err));
    if (!cli->raw && prompt->n > 0 && prompt->p[prompt->n - 1] == '\n')
        prompt->p[--prompt->n] = '\0'; /* the line end of `echo` and of editors */
    return prompt->n > 0 ? AEGIS_OK
                         : aeg_fail(err, AEGIS_E_USAGE, "the prompt from %s is empty",
                                    strcmp(file, "-") == 0 ? "standard input" : file);
}

static aegis_status print_result(const aeg_dialog *d, aegis_error *err)
{
    const aegis_stats *s = &d->stats;
    const uint64_t tokens = s->prefill_tokens + s->decode_tokens;
    json_t *reasoning = d->splitter.thought ? json_stringn(d->thought.n > 0 ? d->thought.p : "", d->thought.n)
                                            : json_null();
    return aeg_ui_print_json(
        json_pack("{s:s%, s:o, s:s, s:i, s:i, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:I}", "text",
                  d->answer.n > 0 ? d->answer.p : "", d->answer.n, "reasoning", reasoning, "stop",
                  stop_names[d->result.stop], "prompt_tokens", (int)d->result.n_prompt, "reused_tokens",
                  (int)d->result.n_reused, "tokens", (int)d->result.n_generated, "seed",
                  (json_int_t)d->g.sampling.seed, "ttft_s", (double)d->result.ttft_ns * 1e-9, "prefill_tok_s",
                  aeg_setup_rate(s->prefill_tokens, s->prefill_ns), "decode_tok_s",
                  aeg_setup_rate(s->decode_tokens, s->decode_ns), "hit_rate", aeg_setup_hit_rate(s),
                  "disk_bytes_per_token", tokens > 0 ? (double)s->read_bytes / (double)tokens : 0.0, "peak_bytes",
                  (json_int_t)s->peak_bytes), err);
}

static aegis_status finish(const aeg_cli *cli, aeg_dialog *d, aegis_error *err)
{
    if (cli->json)
        AEG_TRY(print_result(d, err));
    else if (!cli->raw || aeg_ui_stdout_is_terminal())
        AEG_TRY(aeg_ui_write("\n", 1, err));
    if (cli->verbose)
        aeg_setup_say_figures(&d->result, &d->stats, &d->g.sampling);
    if (d->result.stop == AEGIS_STOP_CANCELLED)
        return aeg_fail(err, AEGIS_E_CANCELLED, "interrupted");
    if (d->stats.telemetry_dropped > 0)
        return aeg_fail(err, AEGIS_E_IO, "%s: %llu lines could not be written", cli->telemetry,
                        (unsigned long long)d->stats.telemetry_dropped);
    if (d->answer.n == 0 && d->splitter.thought)
        aeg_ui_say("the answer ended (%s) while the model was thinking; raise -n, or use --no-think",
                   stop_names[d->result.stop]);
    else if (d->result.stop == AEGIS_STOP_CONTEXT)
        aeg_ui_say("the context of the model is full; raise it with -c");
    return AEGIS_OK;
}

static aegis_status answer(const aeg_cli *cli, aeg_dialog *d, aegis_error *err)
{
    aegis_info info;
    aeg_buffer prompt = { 0 };
    aegis_engine_info(d->engine, &info);
    const bool raw = cli->raw || !info.has_template;
    if (raw && !cli->raw)
        aeg_ui_say("the model has no chat template: the text is fed as it is");
    aegis_status status = read_prompt(cli, &prompt, err);
    if (status == AEGIS_OK && raw) {
        status = aeg_dialog_continue(d, prompt.p, prompt.n, err);
    } else if (status == AEGIS_OK) {
        status = aeg_dialog_add(d, "user", prompt.p, prompt.n, err);
        aeg_buffer_free(&prompt);
        if (status == AEGIS_OK)
            status = aeg_dialog_answer(d, false, err);
    }
    aeg_buffer_free(&prompt);
    return status == AEGIS_OK ? finish(cli, d, err) : status;
}

aegis_status aeg_cmd_run(aeg_cli *cli, aegis_error *err)
{
    if (cli->prompt == NULL && cli->file == NULL && isatty(STDIN_FILENO))
        return aeg_cmd_chat(cli, err);
    if (cli->prompt != NULL && cli->file != NULL)
        return aeg_fail(err, AEGIS_E_USAGE, "both -p and -f were given");
    if (cli->prompt != NULL && cli->prompt[0] == '\0')
        return aeg_fail(err, AEGIS_E_USAGE, "the prompt is empty");
    if (cli->raw && (cli->system != NULL || cli->think >= 0))
        return aeg_fail(err, AEGIS_E_USAGE, "--raw feeds the text alone: %s has no meaning with it",
                        cli->system != NULL ? "--system-prompt" : "--think or --no-think");
    if (cli->file != NULL)
        AEG_TRY(aeg_buffer_check(cli->file, err));

    aegis_engine *engine = NULL;
    aeg_dialog d;
    AEG_TRY(aeg_setup_open(cli, 0, &engine, err));
    aegis_status status = aeg_dialog_init(&d, engine, cli->system, err);
    if (status == AEGIS_OK) {
        d.think = cli->think;
        d.show = !cli->json;
        d.g.max_tokens = cli->n_predict;
        d.g.ignore_eos = cli->ignore_eos;
        d.g.n_stops = cli->n_stops;
        memcpy(d.g.stops, cli->stops, sizeof d.g.stops);
        status = aeg_setup_sampling(cli, engine, &d.g.sampling, err);
    }
    if (status == AEGIS_OK)
        status = answer(cli, &d, err);
    aeg_dialog_close(&d);
    aeg_setup_close(engine);
    return status;
}
