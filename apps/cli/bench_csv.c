/* SPDX-License-Identifier: Apache-2.0 */
/* One header line, then a line for the cold run, each run, the median, both quartiles and the spread of a side. The
 * columns behind the figures are the members of the JSON description, with dots for what is nested. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "bench.h"
#include "ui.h"

/* A field with a comma, a quote or a line end is quoted (RFC 4180). */
static void print_text(const char *text)
{
    if (strpbrk(text, ",\"\n\r") == NULL) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_value(const json_t *value)
{
    if (json_is_string(value))
        print_text(json_string_value(value));
    else if (json_is_integer(value))
        printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        printf("%.9g", json_real_value(value));
    else if (json_is_boolean(value))
        printf("%d", json_is_true(value));
}

/* Names or values of all leaves, each behind a comma. */
static void print_leaves(json_t *object, const char *prefix, bool names)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        char name[128];
        snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", key);
        if (json_is_object(value)) {
            print_leaves(value, name, names);
            continue;
        }
        putchar(',');
        if (names)
            print_text(name);
        else
            print_value(value);
    }
}

static void print_line(const aeg_bench_side *side, json_t *rest, const char *row, const char *seed,
                       const aeg_bench_figures *f)
{
    putchar(side->label != '\0' ? side->label : 'a');
    printf(",%s,%s", row, seed);
    for (uint32_t m = 0; m < AEG_BENCH_N_METRICS; m++) {
        const bool unknown = aeg_bench_needs_disk(m) && !side->has_disk;
        if (unknown)
            putchar(',');
        else
            printf(",%.9g", f->value[m]);
    }
    print_leaves(rest, "", false);
    putchar('\n');
}

static void print_header(json_t *rest)
{
    printf("side,row,seed");
    for (uint32_t m = 0; m < AEG_BENCH_N_METRICS; m++)
        printf(",%s", aeg_bench_metric_names[m]);
    print_leaves(rest, "", true);
    putchar('\n');
}

aegis_status aeg_bench_csv(const aeg_bench_side *sides, uint32_t n_sides, const aeg_bench_setup *setup, aegis_error *err)
{
    aeg_json_init();
    for (uint32_t i = 0; i < n_sides; i++) {
        const aeg_bench_side *side = &sides[i];
        char seed[32], row[16];
        json_t *rest = aeg_bench_describe(side, setup);
        if (rest == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "no memory for the description of the machine");
        if (i == 0)
            print_header(rest);
        snprintf(seed, sizeof seed, "%" PRId64, setup->seed - 1);
        print_line(side, rest, "cold", seed, &side->cold);
        for (uint32_t r = 0; r < side->n_runs; r++) {
            snprintf(seed, sizeof seed, "%" PRId64, side->seeds[r]);
            snprintf(row, sizeof row, "run%u", r + 1);
            print_line(side, rest, row, seed, &side->runs[r]);
        }
        print_line(side, rest, "median", "", &side->summary.median);
        print_line(side, rest, "q1", "", &side->summary.q1);
        print_line(side, rest, "q3", "", &side->summary.q3);
        print_line(side, rest, "spread", "", &side->summary.spread);
        json_decref(rest);
    }
    return aeg_ui_flush(err);
}
