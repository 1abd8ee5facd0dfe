/* SPDX-License-Identifier: Apache-2.0 */
#include "suggest.h"

#include <string.h>

#include "base/checked.h"

enum { MAX_WORD = 40 };

uint32_t aeg_suggest_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    if (n_a > MAX_WORD || n_b > MAX_WORD)
        return MAX_WORD;
    uint32_t rows[3][MAX_WORD + 1]; /* of the table of beginnings; three are enough for swaps */
    uint32_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= n_b; j++)
        last[j] = (uint32_t)j;
    for (size_t i = 1; i <= n_a; i++) {
        now[0] = (uint32_t)i;
        for (size_t j = 1; j <= n_b; j++) {
            const uint32_t replace = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = AEG_MIN(replace, AEG_MIN(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = AEG_MIN(now[j], before[j - 2] + 1);
        }
        uint32_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[n_b];
}

/* Up to a third of the word may be wrong, at least one letter and at most four. */
static uint32_t near_limit(size_t n)
{
    return (uint32_t)AEG_MAX(1u, AEG_MIN(4u, n / 3));
}

static void offer(char out[AEG_OPTION_NAME_MAX], uint32_t *best, const char *known, size_t n_known,
                  const char *name, size_t n)
{
    const uint32_t distance = aeg_suggest_distance(known, n_known, name, n);
    if (distance >= *best || n_known >= AEG_OPTION_NAME_MAX)
        return;
    *best = distance;
    memcpy(out, known, n_known);
    out[n_known] = '\0';
}

bool aeg_suggest_option(char out[AEG_OPTION_NAME_MAX], aeg_command command, const char *name, size_t n)
{
    uint32_t best = near_limit(n) + 1;
    const uint32_t limit = best;
    for (size_t i = 0; i < aeg_n_options; i++) {
        const aeg_option *o = &aeg_option_table[i];
        if (!(o->commands & 1u << command) || o->help == NULL)
            continue;
        const char *rest = o->names, *known;
        size_t n_known;
        while ((known = aeg_option_name(&rest, &n_known)) != NULL)
            offer(out, &best, known, n_known, name, n);
    }
    return best < limit;
}

bool aeg_suggest_command(char out[AEG_OPTION_NAME_MAX], const char *name)
{
    const size_t n = strlen(name);
    uint32_t best = near_limit(n) + 1;
    const uint32_t limit = best;
    for (uint32_t i = 0; i < AEG_N_COMMANDS; i++)
        offer(out, &best, aeg_command_table[i].name, strlen(aeg_command_table[i].name), name, n);
    return best < limit;
}
