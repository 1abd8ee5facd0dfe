/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis show`: the description of a store or source, as JSON or as indented lines. */
#include <stdio.h>
#include <string.h>

#include "aegis/pack.h"
#include "base/json.h"
#include "base/size.h"
#include "commands.h"
#include "ui.h"

static bool is_bytes(const char *key)
{
    const size_t n = strlen(key);
    return strcmp(key, "bytes") == 0 || (n > 6 && strcmp(key + n - 6, "_bytes") == 0);
}

static void print_scalar(const char *key, const json_t *value)
{
    char text[AEG_SIZE_TEXT];
    if (json_is_integer(value) && is_bytes(key))
        printf("%s", aeg_size_format(text, (uint64_t)json_integer_value(value)));
    else if (json_is_integer(value))
        printf("%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        printf("%.6g", json_real_value(value));
    else if (json_is_string(value))
        printf("%s", json_string_value(value));
    else
        printf("%s", json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "none");
}

static bool is_nested(const json_t *value) { return json_is_object(value) || json_is_array(value); }

/* Members on lines of their own; an array of objects one object per line; other arrays on one line. */
static void print_members(json_t *object, int depth)
{
    const char *key;
    json_t *value, *item, *member;
    size_t i;
    json_object_foreach(object, key, value) {
        printf("%*s%-*s ", depth * 2, "", 24 - depth * 2, key);
        if (json_is_object(value)) {
            printf("\n");
            print_members(value, depth + 1);
        } else if (json_is_array(value)) {
            json_array_foreach(value, i, item) {
                if (!is_nested(item)) {
                    print_scalar("", item);
                    printf(" ");
                    continue;
                }
                const char *name;
                printf("\n%*s", depth * 2 + 2, "");
                json_object_foreach(item, name, member) {
                    if (is_nested(member))
                        continue;
                    printf("%s ", name);
                    print_scalar(name, member);
                    printf("  ");
                }
            }
            printf("\n");
        } else {
            print_scalar(key, value);
            printf("\n");
        }
    }
}

aegis_status aeg_cmd_show(aeg_cli *cli, aegis_error *err)
{
    char *text = NULL;
    AEG_TRY(aegis_show_json(cli->model, &text, err));
    json_t *description = NULL;
    const aegis_status status = aeg_json_parse(&description, text, strlen(text), cli->model, AEGIS_E_RUNTIME, err);
    aegis_free_text(text);
    AEG_TRY(status);
    if (cli->json)
        return aeg_ui_print_json(description, err);
    print_members(description, 0);
    json_decref(description);
    return aeg_ui_flush(err);
}
