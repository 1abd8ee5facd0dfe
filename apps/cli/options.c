/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/process.h"
#include "base/size.h"
#include "suggest.h"

void aeg_options_init(aeg_cli *cli)
{
    *cli = (aeg_cli){
        .think = -1, .checkpoints = -1, .prefetch = -1, .top_k = -1,
        .temperature = NAN, .top_p = NAN, .min_p = NAN,
        .repeat_penalty = NAN, .presence_penalty = NAN, .frequency_penalty = NAN,
    };
}

/* --- values -------------------------------------------------------------------------------------------- */

static aegis_status bad_value(const char *name, const char *value, const char *expected, aegis_error *err)
{
    return aeg_fail(err, AEGIS_E_USAGE, "%s: '%.80s' is not valid, expected %s", name, value, expected);
}

/* strtod would also take hex, "nan" and spaces in front; only "inf" is of use, for bans. */
static bool parse_real(const char *text, bool infinite, double *out)
{
    if (infinite && (strcmp(text, "-inf") == 0 || strcmp(text, "false") == 0)) {
        *out = -INFINITY;
        return true;
    }
    if (text[0] == '\0' || strspn(text, "+-.0123456789eE") != strlen(text))
        return false;
    char *end;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

static bool parse_int(const char *text, long long *out)
{
    if (text[0] == '\0' || strspn(text, "+-0123456789") != strlen(text))
        return false;
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0;
}

/* Signed or unsigned 64 bits; both mean the same bits. */
static bool parse_seed(const char *text, int64_t *out)
{
    long long value;
    if (parse_int(text, &value)) {
        *out = value;
        return true;
    }
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text))
        return false;
    char *end;
    errno = 0;
    const unsigned long long wide = strtoull(text, &end, 10);
    *out = (int64_t)wide;
    return *end == '\0' && errno == 0;
}

static aegis_status set_whole(const aeg_option *o, void *at, const char *name, const char *value, aegis_error *err)
{
    long long v = 0;
    const bool automatic = o->min <= 0 && strcmp(value, "auto") == 0;
    if (o->kind == AEG_OPT_AUTO && strcmp(value, "auto") == 0)
        v = -1;
    else if (o->kind == AEG_OPT_AUTO && strcmp(value, "off") == 0)
        v = 0;
    else if (o->kind == AEG_OPT_COUNT && automatic)
        v = 0;
    else if (!parse_int(value, &v) || (double)v < o->min || (double)v > o->max) {
        char expected[96];
        snprintf(expected, sizeof expected, "a whole number from %.0f to %.0f%s", o->min, o->max,
                 o->kind == AEG_OPT_AUTO ? ", auto or off" : "");
        return bad_value(name, value, expected, err);
    }
    if (o->kind == AEG_OPT_COUNT)
        *(uint32_t *)at = (uint32_t)AEG_MAX(v, 0);
    else
        *(int32_t *)at = (int32_t)v;
    return AEGIS_OK;
}

static aegis_status set_real(const aeg_option *o, void *at, const char *name, const char *value, aegis_error *err)
{
    double v;
    if (!parse_real(value, false, &v) || v < o->min || v > o->max) {
        char expected[64];
        snprintf(expected, sizeof expected, "a number from %g to %g", o->min, o->max);
        return bad_value(name, value, expected, err);
    }
    *(double *)at = v;
    return AEGIS_OK;
}

int32_t aeg_choice_index(const char *choices, const char *value)
{
    const size_t n = strlen(value);
    int32_t index = 0;
    for (const char *p = choices; p != NULL && n > 0; index++) {
        const size_t n_choice = strcspn(p, "|");
        if (n_choice == n && memcmp(p, value, n) == 0)
            return index;
        p = p[n_choice] == '|' ? p + n_choice + 1 : NULL;
    }
    return -1;
}

static aegis_status set_choice(const aeg_option *o, void *at, const char *name, const char *value, aegis_error *err)
{
    const int32_t index = aeg_choice_index(o->choices, value);
    if (index >= 0) {
        *(int32_t *)at = index;
        return AEGIS_OK;
    }
    char head[16]; /* cuda:1 is cuda */
    snprintf(head, sizeof head, "%.*s", (int)AEG_MIN(strcspn(value, ":"), sizeof head - 1), value);
    if (aeg_choice_index(o->later, head) >= 0)
        return aeg_fail(err, strcmp(head, "cuda") == 0 ? AEGIS_E_HARDWARE : AEGIS_E_USAGE,
                        "not in this version: %s %.40s", name, value);
    char expected[96];
    snprintf(expected, sizeof expected, "one of %s", o->choices);
    return bad_value(name, value, expected, err);
}

static aegis_status set_size(const aeg_option *o, void *at, const char *name, const char *value, aegis_error *err)
{
    char text[64];
    size_t n = strlen(value);
    uint64_t bytes = 0, whole = 0;
    if (o->kind != AEG_OPT_SIZE && n > 2 && strcmp(value + n - 2, "/s") == 0)
        n -= 2;
    if (n >= sizeof text)
        return bad_value(name, value, "a size such as 4GiB", err);
    memcpy(text, value, n);
    text[n] = '\0';
    if (o->kind != AEG_OPT_SIZE && strchr(text, '%') != NULL)
        return bad_value(name, value, "a rate such as 7GB/s", err);
    aeg_machine_memory machine;
    if (o->kind == AEG_OPT_SIZE && strchr(text, '%') != NULL && aeg_machine_memory_now(&machine))
        whole = machine.total_bytes;
    const aegis_status status = aeg_size_parse(&bytes, text, whole, err);
    if (status != AEGIS_OK)
        return aeg_wrap(err, status, "%s", name);
    if (o->kind != AEG_OPT_SIZE)
        *(double *)at = (double)bytes;
    else
        *(uint64_t *)at = bytes;
    return AEGIS_OK;
}

/* "7GB/s" or "7GB/s,80us"; "us" may be left out. */
static aegis_status set_disk(aeg_cli *cli, const aeg_option *o, const char *name, const char *value, aegis_error *err)
{
    char rate[64], latency[32];
    const char *comma = strchr(value, ',');
    if (comma == NULL)
        return set_size(o, &cli->sim_bytes_per_s, name, value, err);
    size_t n = strlen(comma + 1);
    if (n > 2 && strcmp(comma + 1 + n - 2, "us") == 0)
        n -= 2;
    if ((size_t)(comma - value) >= sizeof rate || n >= sizeof latency)
        return bad_value(name, value, "a rate and a latency such as 7GB/s,80us", err);
    snprintf(rate, sizeof rate, "%.*s", (int)(comma - value), value);
    snprintf(latency, sizeof latency, "%.*s", (int)n, comma + 1);
    double us;
    if (!parse_real(latency, false, &us) || us < 0 || us > 1e9)
        return bad_value(name, value, "a rate and a latency in microseconds such as 7GB/s,80us", err);
    AEG_TRY(set_size(o, &cli->sim_bytes_per_s, name, rate, err));
    cli->sim_latency_us = us;
    return AEGIS_OK;
}

static aegis_status set_bits(void *at, const char *name, const char *value, aegis_error *err)
{
    const int32_t index = aeg_choice_index("keep|2|3|4|5|6|8", value);
    if (index < 0)
        return bad_value(name, value, "keep, 2, 3, 4, 5, 6 or 8", err);
    *(int32_t *)at = index == 0 ? -1 : value[0] - '0';
    return AEGIS_OK;
}

static aegis_status add_bias(aeg_cli *cli, const char *name, const char *value, aegis_error *err)
{
    char id_text[16];
    const size_t n = strcspn(value, "=");
    long long id;
    double bias;
    if (n >= sizeof id_text || value[n] != '=')
        return bad_value(name, value, "ID=BIAS such as 42=-5", err);
    memcpy(id_text, value, n);
    id_text[n] = '\0';
    if (!parse_int(id_text, &id) || id < 0 || id > UINT32_MAX || !parse_real(value + n + 1, true, &bias))
        return bad_value(name, value, "ID=BIAS such as 42=-5", err);
    if (cli->n_bias == AEGIS_MAX_BIAS)
        return aeg_fail(err, AEGIS_E_USAGE, "%s: more than %d entries", name, AEGIS_MAX_BIAS);
    cli->bias[cli->n_bias].id = (uint32_t)id;
    cli->bias[cli->n_bias++].bias = (float)bias;
    return AEGIS_OK;
}

static aegis_status set_seed(aeg_cli *cli, const char *name, const char *value, aegis_error *err)
{
    if (!parse_seed(value, &cli->seed))
        return bad_value(name, value, "a 64-bit whole number", err);
    cli->seed_given = strcmp(value, "-1") != 0; /* a habit from llama.cpp: draw one */
    return AEGIS_OK;
}

static aegis_status set_value(aeg_cli *cli, const aeg_option *o, const char *name, const char *value,
                              aegis_error *err)
{
    void *at = (char *)cli + o->offset;
    switch (o->kind) {
    case AEG_OPT_FLAG: *(bool *)at = true; return AEGIS_OK;
    case AEG_OPT_SET: *(int32_t *)at = (int32_t)o->min; return AEGIS_OK;
    case AEG_OPT_TEXT: *(const char **)at = value; return AEGIS_OK;
    case AEG_OPT_COUNT:
    case AEG_OPT_INT:
    case AEG_OPT_AUTO: return set_whole(o, at, name, value, err);
    case AEG_OPT_REAL: return set_real(o, at, name, value, err);
    case AEG_OPT_SIZE:
    case AEG_OPT_RATE: return set_size(o, at, name, value, err);
    case AEG_OPT_DISK: return set_disk(cli, o, name, value, err);
    case AEG_OPT_CHOICE: return set_choice(o, at, name, value, err);
    case AEG_OPT_BITS: return set_bits(at, name, value, err);
    case AEG_OPT_SEED: return set_seed(cli, name, value, err);
    case AEG_OPT_BIAS: return add_bias(cli, name, value, err);
    case AEG_OPT_STOP:
        if (cli->n_stops == AEGIS_MAX_STOPS)
            return aeg_fail(err, AEGIS_E_USAGE, "%s: more than %d", name, AEGIS_MAX_STOPS);
        cli->stops[cli->n_stops++] = value;
        return AEGIS_OK;
    case AEG_OPT_IGNORED:
    case AEG_OPT_IGNORED_VALUE:
        if (cli->n_ignored < AEG_CLI_MAX_IGNORED)
            cli->ignored[cli->n_ignored++] = o->names;
        return AEGIS_OK;
    case AEG_OPT_LATER: break;
    }
    return aeg_fail(err, AEGIS_E_USAGE, "not in this version: %s", name);
}

static bool takes_value(const aeg_option *o)
{
    return o->kind != AEG_OPT_FLAG && o->kind != AEG_OPT_SET && o->kind != AEG_OPT_IGNORED && o->kind != AEG_OPT_LATER;
}

/* --- words --------------------------------------------------------------------------------------------- */

static aegis_status unknown_option(const aeg_cli *cli, const char *name, size_t n, aegis_error *err)
{
    const aeg_option *other = aeg_option_find(name, n, 1u << cli->command);
    const char *command = aeg_command_table[cli->command].name;
    if (other != NULL) {
        char owners[160] = "";
        for (uint32_t i = 0; i < AEG_N_COMMANDS; i++)
            if (other->commands & 1u << i) {
                const size_t used = strlen(owners);
                snprintf(owners + used, sizeof owners - used, "%s%s", used > 0 ? ", " : "", aeg_command_table[i].name);
            }
        return aeg_fail(err, AEGIS_E_USAGE, "%.*s is no option of 'aegis %s'; it belongs to %s", (int)n, name,
                        command, owners);
    }
    char nearest[AEG_OPTION_NAME_MAX];
    if (aeg_suggest_option(nearest, cli->command, name, n))
        return aeg_fail(err, AEGIS_E_USAGE, "unknown option '%.*s'; did you mean %s?", (int)AEG_MIN(n, 60), name, nearest);
    return aeg_fail(err, AEGIS_E_USAGE, "unknown option '%.*s'; see aegis %s --help", (int)AEG_MIN(n, 60), name, command);
}

/* One option at argv[*i]; moves *i past a value in the next word. */
static aegis_status parse_option(aeg_cli *cli, int argc, char *const *argv, int *i, aegis_error *err)
{
    const char *word = argv[*i];
    const size_t n = strcspn(word, "=");
    const aeg_option *o = aeg_option_find(word, n, 1u << cli->command);
    if (o == NULL || !(o->commands & 1u << cli->command))
        return unknown_option(cli, word, n, err);

    char name[AEG_OPTION_NAME_MAX];
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    const char *value = word[n] == '=' ? word + n + 1 : NULL;
    if (value != NULL && !takes_value(o) && o->kind != AEG_OPT_LATER)
        return aeg_fail(err, AEGIS_E_USAGE, "%s takes no value, found '%.80s'", name, value);
    if (value == NULL && takes_value(o)) {
        if (*i + 1 >= argc)
            return aeg_fail(err, AEGIS_E_USAGE, "%s needs a value: %s %s", name, name, o->meta);
        value = argv[++*i];
    }
    AEG_TRY(set_value(cli, o, name, value, err));
    if (o->kind == AEG_OPT_IGNORED || o->kind == AEG_OPT_IGNORED_VALUE)
        cli->ignored[cli->n_ignored - 1] = word;
    return AEGIS_OK;
}

aegis_status aeg_options_set(aeg_cli *cli, const char *name, const char *value, aegis_error *err)
{
    const aeg_option *o = aeg_option_find(name, strlen(name), 1u << cli->command);
    if (o == NULL)
        return aeg_fail(err, AEGIS_E_USAGE, "unknown parameter '%.60s'", name);
    return set_value(cli, o, name, value, err);
}

/* The next word at *at, without its quotes, ended in place; NULL at the end. */
static char *cut_word(char **at)
{
    char *from = *at + strspn(*at, " \t\n"), *to = from, *word = from, quote = '\0';
    if (*from == '\0')
        return NULL;
    for (; *from != '\0' && (quote != '\0' || strchr(" \t\n", *from) == NULL); from++) {
        if (*from == quote)
            quote = '\0';
        else if (quote == '\0' && (*from == '\'' || *from == '"'))
            quote = *from;
        else
            *to++ = *from;
    }
    *at = *from != '\0' ? from + 1 : from;
    *to = '\0';
    return word;
}

/* A simulated disk is meant to be read from. */
static aegis_status resolve_disk(aeg_cli *cli, aegis_error *err)
{
    if (cli->sim_bytes_per_s <= 0 && cli->sim_latency_us <= 0)
        return AEGIS_OK;
    if (cli->io == AEGIS_IO_AUTO)
        cli->io = AEGIS_IO_SIM;
    if (cli->io != AEGIS_IO_SIM)
        return aeg_fail(err, AEGIS_E_USAGE, "--sim-disk and --sim-latency are for --io sim, found another --io");
    return AEGIS_OK;
}

aegis_status aeg_options_override(aeg_cli *cli, char *text, aegis_error *err)
{
    enum { MAX_WORDS = 64 };
    char *words[MAX_WORDS], *word;
    int n = 0;
    while ((word = cut_word(&text)) != NULL) {
        if (n == MAX_WORDS)
            return aeg_fail(err, AEGIS_E_USAGE, "more than %d words of options", MAX_WORDS);
        words[n++] = word;
    }
    for (int i = 0; i < n; i++) {
        if (words[i][0] != '-' || words[i][1] == '\0')
            return aeg_fail(err, AEGIS_E_USAGE, "'%.80s' is no option", words[i]);
        AEG_TRY(parse_option(cli, n, words, &i, err));
    }
    return resolve_disk(cli, err);
}

static bool is_true(const char *value)
{
    return aeg_choice_index("1|on|true|yes|enabled", value) >= 0;
}

/* --ctx-size -> AEGIS_CTX_SIZE */
static aegis_status read_environment(aeg_cli *cli, aegis_error *err)
{
    for (size_t i = 0; i < aeg_n_options; i++) {
        const aeg_option *o = &aeg_option_table[i];
        if (!(o->marks & AEG_OPT_ENV) || !(o->commands & 1u << cli->command))
            continue;
        char title[AEG_OPTION_NAME_MAX], name[AEG_OPTION_NAME_MAX + 8];
        aeg_option_title(title, o);
        snprintf(name, sizeof name, "AEGIS_%s", title + 2);
        for (char *p = name; *p != '\0'; p++)
            *p = *p == '-' ? '_' : (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
        const char *value = getenv(name);
        if (value == NULL || value[0] == '\0' || (o->kind == AEG_OPT_FLAG && !is_true(value)))
            continue;
        AEG_TRY(set_value(cli, o, name, value, err));
    }
    return AEGIS_OK;
}

static aegis_status find_command(aeg_cli *cli, const char *word, aegis_error *err)
{
    for (uint32_t i = 0; i < AEG_N_COMMANDS; i++)
        if (strcmp(word, aeg_command_table[i].name) == 0) {
            cli->command = (aeg_command)i;
            return AEGIS_OK;
        }
    for (const char *const *later = aeg_later_commands; *later != NULL; later++)
        if (strcmp(word, *later) == 0)
            return aeg_fail(err, AEGIS_E_USAGE, "not in this version: aegis %s", word);
    char nearest[AEG_OPTION_NAME_MAX];
    if (strchr(word, '/') != NULL || access(word, F_OK) == 0)
        return aeg_fail(err, AEGIS_E_USAGE, "unknown command '%.200s'; for a model: aegis run %.200s", word, word);
    if (aeg_suggest_command(nearest, word))
        return aeg_fail(err, AEGIS_E_USAGE, "unknown command '%.60s'; did you mean %s?", word, nearest);
    return aeg_fail(err, AEGIS_E_USAGE, "unknown command '%.60s'; see aegis help", word);
}

static aegis_status check_args(aeg_cli *cli, aegis_error *err)
{
    const aeg_command_info *info = &aeg_command_table[cli->command];
    const bool wants_model = strncmp(info->args, "MODEL", 5) == 0 || cli->command == AEG_CMD_VERIFY;
    if (wants_model && cli->n_args > 0 && cli->model != NULL)
        return aeg_fail(err, AEGIS_E_USAGE, "two models: '%.80s' and '%.80s'", cli->model, cli->args[0]);
    if (wants_model && cli->model == NULL)
        cli->model = cli->n_args > 0 ? cli->args[0] : NULL;
    if ((wants_model && cli->model == NULL) || cli->n_args < info->min_args)
        return aeg_fail(err, AEGIS_E_USAGE, "usage: aegis %s %s", info->name, info->args);
    return AEGIS_OK;
}

aegis_status aeg_options_parse(aeg_cli *cli, int argc, char *const *argv, aegis_error *err)
{
    aeg_options_init(cli);
    int i = 1;
    bool only_args = false;
    if (argc < 2 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
        cli->command = AEG_CMD_HELP;
        cli->help = argc < 2 || argv[1][1] == 'h' ? AEG_HELP_SHORT : AEG_HELP_FULL;
        return argc < 2 ? aeg_fail(err, AEGIS_E_USAGE, "no command; see aegis help") : AEGIS_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        cli->command = AEG_CMD_VERSION;
        i = 2;
    } else if (argv[1][0] != '-') {
        AEG_TRY(find_command(cli, argv[1], err));
        i = 2;
    }
    AEG_TRY(read_environment(cli, err));
    for (; i < argc; i++) {
        const char *word = argv[i];
        if (!only_args && strcmp(word, "--") == 0) {
            only_args = true;
        } else if (!only_args && word[0] == '-' && word[1] != '\0') {
            AEG_TRY(parse_option(cli, argc, argv, &i, err));
        } else {
            if (cli->n_args >= aeg_command_table[cli->command].max_args)
                return aeg_fail(err, AEGIS_E_USAGE, "unexpected argument '%.80s'; usage: aegis %s %s", word,
                                aeg_command_table[cli->command].name, aeg_command_table[cli->command].args);
            cli->args[cli->n_args++] = word;
        }
    }
    if (cli->help != AEG_HELP_NONE)
        return AEGIS_OK;
    AEG_TRY(resolve_disk(cli, err));
    return check_args(cli, err);
}
