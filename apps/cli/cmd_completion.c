/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts, from the same tables as --help. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "ui.h"

static void print_option_words(aeg_command command, const char *separator)
{
    for (size_t i = 0; i < aeg_n_options; i++) {
        const aeg_option *o = &aeg_option_table[i];
        if (!(o->commands & 1u << command) || o->help == NULL)
            continue;
        const char *rest = o->names, *name;
        size_t n;
        while ((name = aeg_option_name(&rest, &n)) != NULL)
            printf("%.*s%s", (int)n, name, separator);
    }
}

static void print_choices(const char *choices)
{
    for (const char *p = choices; *p != '\0'; p++)
        putchar(*p == '|' ? ' ' : *p);
}

static void print_command_words(void)
{
    for (uint32_t i = 0; i < AEG_N_COMMANDS; i++)
        printf("%s%s", i > 0 ? " " : "", aeg_command_table[i].name);
}

static void print_bash(void)
{
    printf("# bash completion of aegis\n_aegis() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '");
    print_command_words();
    printf("' -- \"$word\")); return\n    fi\n    case $before in\n");
    for (size_t i = 0; i < aeg_n_options; i++) {
        const aeg_option *o = &aeg_option_table[i];
        char title[AEG_OPTION_NAME_MAX];
        if (o->choices == NULL)
            continue;
        printf("    %s) COMPREPLY=($(compgen -W '", aeg_option_title(title, o));
        print_choices(o->choices);
        printf("' -- \"$word\")); return ;;\n");
    }
    printf("    esac\n    case $word in\n    -*)\n        case $command in\n");
    for (uint32_t i = 0; i < AEG_N_COMMANDS; i++) {
        printf("        %s) COMPREPLY=($(compgen -W '", aeg_command_table[i].name);
        print_option_words((aeg_command)i, " ");
        printf("' -- \"$word\")) ;;\n");
    }
    printf("        esac ;;\n    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n    esac\n}\n"
           "complete -o filenames -F _aegis aegis\n");
}

/* A help text inside single quotes, with the characters that zsh gives a meaning in specs taken out. */
static void print_quoted(const char *text, bool zsh)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs(zsh ? "'\\''" : "\\'", stdout);
        else if (zsh && (*text == '[' || *text == ']' || *text == ':'))
            putchar(' ');
        else
            putchar(*text);
    }
}

static void print_zsh(void)
{
    printf("#compdef aegis\n_aegis() {\n  local -a commands options\n  commands=(\n");
    for (uint32_t i = 0; i < AEG_N_COMMANDS; i++) {
        printf("    '%s:", aeg_command_table[i].name);
        print_quoted(aeg_command_table[i].summary, true);
        printf("'\n");
    }
    printf("  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
           "  case $words[2] in\n");
    for (uint32_t i = 0; i < AEG_N_COMMANDS; i++) {
        printf("    %s) options=(", aeg_command_table[i].name);
        print_option_words((aeg_command)i, " ");
        printf(") ;;\n");
    }
    printf("  esac\n  if [[ $words[CURRENT] == -* ]]; then compadd -- $options; else _files; fi\n}\n"
           "compdef _aegis aegis\n");
}

static void print_fish_option(aeg_command command, const aeg_option *o)
{
    const char *rest = o->names, *name;
    size_t n;
    printf("complete -c aegis -n '__fish_seen_subcommand_from %s'", aeg_command_table[command].name);
    while ((name = aeg_option_name(&rest, &n)) != NULL) {
        if (name[1] == '-')
            printf(" -l %.*s", (int)n - 2, name + 2);
        else
            printf(" -%c %.*s", n == 2 ? 's' : 'o', (int)n - 1, name + 1);
    }
    if (o->choices != NULL) {
        printf(" -x -a '");
        print_choices(o->choices);
        printf("'");
    } else if (o->meta != NULL) {
        printf(" -r");
    }
    printf(" -d '");
    print_quoted(o->help, false);
    printf("'\n");
}

static void print_fish(void)
{
    printf("# fish completion of aegis\n");
    for (uint32_t i = 0; i < AEG_N_COMMANDS; i++) {
        printf("complete -c aegis -n __fish_use_subcommand -f -a %s -d '", aeg_command_table[i].name);
        print_quoted(aeg_command_table[i].summary, false);
        printf("'\n");
        for (size_t k = 0; k < aeg_n_options; k++)
            if (aeg_option_table[k].commands & 1u << i && aeg_option_table[k].help != NULL)
                print_fish_option((aeg_command)i, &aeg_option_table[k]);
    }
}

aegis_status aeg_cmd_completion(aeg_cli *cli, aegis_error *err)
{
    switch (aeg_choice_index("bash|zsh|fish", cli->args[0])) {
    case 0: print_bash(); return aeg_ui_flush(err);
    case 1: print_zsh(); return aeg_ui_flush(err);
    case 2: print_fish(); return aeg_ui_flush(err);
    default: break;
    }
    return aeg_fail(err, AEGIS_E_USAGE, "completion for '%.40s' is not known, expected bash, zsh or fish", cli->args[0]);
}
