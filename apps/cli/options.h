/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the command line as a struct, and the one table it is parsed, explained and completed from.
 *
 * Precedence: flag, then environment (AEGIS_MEMORY, AEGIS_THREADS, ...: rows marked AEG_OPT_ENV), then default.
 * Parsing prints nothing and touches nothing; texts in aeg_cli are loans of argv or the environment.
 * Thread: any.
 */
#ifndef AEG_CLI_OPTIONS_H
#define AEG_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aegis/aegis.h"
#include "base/error.h"

typedef enum {
    AEG_CMD_RUN, AEG_CMD_CHAT, AEG_CMD_PACK, AEG_CMD_PLAN, AEG_CMD_SHOW, AEG_CMD_VERIFY, AEG_CMD_CACHE,
    AEG_CMD_TOKENIZE, AEG_CMD_TEMPLATE, AEG_CMD_LOGITS, AEG_CMD_EVAL, AEG_CMD_BENCH, AEG_CMD_DOCTOR, AEG_CMD_VERSION,
    AEG_CMD_COMPLETION, AEG_CMD_HELP,
    AEG_N_COMMANDS,
} aeg_command;

enum { AEG_CLI_MAX_ARGS = 8, AEG_CLI_MAX_IGNORED = 8 };

typedef enum { AEG_HELP_NONE, AEG_HELP_SHORT, AEG_HELP_FULL } aeg_help;
typedef enum { AEG_COLOR_AUTO, AEG_COLOR_ALWAYS, AEG_COLOR_NEVER } aeg_color;

typedef struct {
    aeg_command command;
    aeg_help help;
    uint32_t n_args;
    const char *args[AEG_CLI_MAX_ARGS];        /* what is no option: MODEL, SRC DST, ls KEY ... */
    uint32_t n_ignored;
    const char *ignored[AEG_CLI_MAX_IGNORED];  /* accepted without effect: one warning line each */

    const char *model, *prompt, *file, *system, *tools, *ids, *ids_file, *output, *ref, *tokenizer, *telemetry, *ab;
    const char *record_routes, *replay, *text_file; /* bench */
    bool save_curve;
    bool raw, json, csv, verbose, ignore_eos, hidden, router, all, no_history, no_generation_prompt, preload;
    int32_t think;                             /* -1: as the template has it */
    int32_t color;

    uint64_t memory;                           /* 0: not given, as for all counts below */
    uint32_t n_ctx, n_predict, threads, chunk, last, skip, pp, tg, repeats;
    int32_t checkpoints;                       /* -1: not given */
    int32_t prefetch;                          /* -1: auto */
    int32_t activations, kv, io, cpu, device, bench_tokens; /* index into the row's choices */
    double sim_bytes_per_s, sim_latency_us;
    int32_t expert_bits, dense_bits;           /* as aegis_pack_options */

    double temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty; /* NAN: not given */
    int32_t top_k;                             /* -1: not given */
    uint32_t repeat_last_n;
    bool seed_given;
    int64_t seed;
    uint32_t n_bias;
    struct { uint32_t id; float bias; } bias[AEGIS_MAX_BIAS];
    uint32_t n_stops;
    const char *stops[AEGIS_MAX_STOPS];
} aeg_cli;

/* --- the table ------------------------------------------------------------------------------------- */

typedef enum {
    AEG_OPT_FLAG,    /* bool <- true                                     */
    AEG_OPT_SET,     /* int32 <- min                                     */
    AEG_OPT_TEXT,    /* const char *                                     */
    AEG_OPT_COUNT,   /* uint32 in [min, max]; "auto" and < 0 give 0      */
    AEG_OPT_INT,     /* int32 in [min, max]                              */
    AEG_OPT_REAL,    /* double in [min, max]                             */
    AEG_OPT_SIZE,    /* uint64 bytes; % of the machine's memory          */
    AEG_OPT_RATE,    /* double bytes per second, "/s" optional           */
    AEG_OPT_DISK,    /* the same, with ",LATENCY" behind it if wished    */
    AEG_OPT_CHOICE,  /* int32 index of one of choices                    */
    AEG_OPT_BITS,    /* int32: keep or 2 3 4 5 6 8                       */
    AEG_OPT_AUTO,    /* int32: auto = -1, off = 0, N                     */
    AEG_OPT_SEED,    /* seed and seed_given                              */
    AEG_OPT_BIAS,    /* ID=BIAS, repeatable                              */
    AEG_OPT_STOP,    /* repeatable                                       */
    AEG_OPT_IGNORED, /* no value, accepted with a warning                */
    AEG_OPT_IGNORED_VALUE,
    AEG_OPT_LATER,   /* not in this version                              */
} aeg_option_kind;

enum { AEG_OPT_COMMON = 1, AEG_OPT_ENV = 2 }; /* shown by -h; has an environment variable */

typedef struct {
    const char *names;    /* "-m --model": separated by spaces; the last one is shown first in errors */
    aeg_option_kind kind;
    const char *meta;     /* of the value, for help */
    const char *help;
    uint32_t commands;    /* bit 1 << aeg_command */
    uint32_t marks;
    size_t offset;        /* in aeg_cli */
    double min, max;
    const char *choices;  /* "a|b|c" */
    const char *later;    /* choices known but not in this version */
} aeg_option;

typedef struct {
    const char *name, *args, *summary, *examples;
    uint32_t min_args, max_args;
} aeg_command_info;

extern const aeg_option aeg_option_table[];
extern const size_t aeg_n_options;
extern const aeg_command_info aeg_command_table[AEG_N_COMMANDS];
extern const char *const aeg_later_commands[]; /* NULL at the end */

/* Walk the names of a row: returns the next name's bytes in *n, NULL at the end. */
const char *aeg_option_name(const char **rest, size_t *n);
/* The row of this name; of several, the one that belongs to a command of the mask (bit 1 << aeg_command), else the
 * first. NULL if no row has the name. */
const aeg_option *aeg_option_find(const char *name, size_t n, uint32_t commands);
/* The longest name of a row ("--model") into out; returns out. */
enum { AEG_OPTION_NAME_MAX = 48 };
char *aeg_option_title(char out[AEG_OPTION_NAME_MAX], const aeg_option *option);

/* --- parsing --------------------------------------------------------------------------------------- */

void aeg_options_init(aeg_cli *cli);

/* AEGIS_E_USAGE with a suggestion for anything unknown, AEGIS_E_HARDWARE for a device this build lacks. */
aegis_status aeg_options_parse(aeg_cli *cli, int argc, char *const *argv, aegis_error *err);

/* More options for the same command, over what is set; `words` is cut in place and stays in use. Words are separated by
 * blanks, and '...' or "..." keeps them together. AEGIS_E_USAGE for what is no option. */
aegis_status aeg_options_override(aeg_cli *cli, char *words, aegis_error *err);

/* One option by name, as chat's /set parameter needs it. */
aegis_status aeg_options_set(aeg_cli *cli, const char *name, const char *value, aegis_error *err);

/* Index of `value` in "a|b|c", -1 if it is none of them. */
int32_t aeg_choice_index(const char *choices, const char *value);

/* --- help ------------------------------------------------------------------------------------------ */

void aeg_help_print(const aeg_cli *cli);
void aeg_completion_print(const char *shell); /* bash, zsh or fish */

#endif
