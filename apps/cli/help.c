/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts, all from the tables. */
#include <stdio.h>
#include <string.h>

#include "options.h"

static void print_option(const aeg_option *o)
{
    char left[120] = "";
    const char *rest = o->names, *name;
    size_t n, n_shown = 0;
    /* The short name and the title: aliases are only for habits from elsewhere. */
    char title[AEG_OPTION_NAME_MAX];
    aeg_option_title(title, o);
    while ((name = aeg_option_name(&rest, &n)) != NULL) {
        const bool is_short = n_shown == 0 && name[1] != '-';
        const bool is_title = n == strlen(title) && memcmp(name, title, n) == 0;
        if (!is_short && !is_title)
            continue;
        const size_t used = strlen(left);
        snprintf(left + used, sizeof left - used, "%s%.*s", n_shown > 0 ? ", " : "", (int)n, name);
        n_shown++;
    }
    const char *meta = o->choices != NULL ? o->choices : o->meta;
    if (meta != NULL) {
        const size_t used = strlen(left);
        snprintf(left + used, sizeof left - used, " %s", meta);
    }
    if (strlen(left) <= 26)
        printf("  %-26s  %s\n", left, o->help);
    else
        printf("  %s\n  %-26s  %s\n", left, "", o->help);
}

static void print_command(aeg_command command, aeg_help how)
{
    const aeg_command_info *info = &aeg_command_table[command];
    printf("aegis %s: %s\n\nusage: aegis %s %s [options]\n", info->name, info->summary, info->name, info->args);
    printf("\noptions:\n");
    bool more = false;
    for (size_t i = 0; i < aeg_n_options; i++) {
        const aeg_option *o = &aeg_option_table[i];
        if (!(o->commands & 1u << command) || o->help == NULL)
            continue;
        if (how == AEG_HELP_SHORT && !(o->marks & AEG_OPT_COMMON))
            more = true;
        else
            print_option(o);
    }
    if (info->examples[0] != '\0')
        printf("\nexamples:\n%s", info->examples);
    if (more)
        printf("\nmore options: aegis %s --help\n", info->name);
}

static void print_overview(void)
{
    printf("aegis: run Mixture-of-Experts models inside a memory budget\n\n"
           "usage: aegis COMMAND ...        aegis -m MODEL -p TEXT\n\ncommands:\n");
    for (uint32_t i = 0; i < AEG_N_COMMANDS; i++)
        printf("  %-12s %s\n", aeg_command_table[i].name, aeg_command_table[i].summary);
    printf("\nMODEL is a store, a model folder (MLX or Hugging Face safetensors) or a GGUF file, packed on first use.\n"
           "\nexamples:\n%s%s%s"
           "\nexit codes: 0 ok, 1 failure, 2 usage, 3 the plan does not fit the budget, 4 model missing, corrupt or\n"
           "unsupported, 5 input/output, 6 hardware missing, 129, 130 and 143 signals\n"
           "\nhelp on a command: aegis help COMMAND, or aegis COMMAND -h (short) and --help (all options)\n",
           aeg_command_table[AEG_CMD_RUN].examples, aeg_command_table[AEG_CMD_CHAT].examples,
           aeg_command_table[AEG_CMD_PLAN].examples);
}

void aeg_help_print(const aeg_cli *cli)
{
    if (cli->command != AEG_CMD_HELP) {
        print_command(cli->command, cli->help);
        return;
    }
    for (uint32_t i = 0; cli->n_args > 0 && i < AEG_N_COMMANDS; i++)
        if (strcmp(cli->args[0], aeg_command_table[i].name) == 0) {
            print_command((aeg_command)i, AEG_HELP_FULL);
            return;
        }
    print_overview();
}
