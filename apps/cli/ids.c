/* SPDX-License-Identifier: Apache-2.0 */
#include "ids.h"

#include <stdbool.h>
#include <string.h>

#include "base/checked.h"
#include "buffer.h"
#include "ui.h"

static aegis_status append(aeg_ids *list, uint32_t id, aegis_error *err)
{
    if (list->n == list->capacity) {
        const size_t capacity = AEG_MAX(list->capacity * 2, (size_t)64);
        uint32_t *ids = aeg_realloc(aeg_ui_memory(), list->ids, capacity * sizeof *ids);
        if (ids == NULL)
            return aeg_fail(err, AEGIS_E_MEMORY, "no memory for %zu token ids", capacity);
        list->ids = ids;
        list->capacity = capacity;
    }
    list->ids[list->n++] = id;
    return AEGIS_OK;
}

static bool is_separator(char c) { return c == ' ' || c == ',' || c == '\n' || c == '\r' || c == '\t'; }

aegis_status aeg_ids_parse(aeg_ids *list, const char *text, size_t n, const char *name, aegis_error *err)
{
    size_t i = 0;
    while (n > 0 && is_separator(text[n - 1]))
        n--;
    while (i < n && is_separator(text[i]))
        i++;
    if (i < n && text[i] == '[') {
        if (text[n - 1] != ']')
            return aeg_fail(err, AEGIS_E_USAGE, "%s: '[' without ']' at the end", name);
        i++;
        n--;
    }
    while (i < n) {
        if (is_separator(text[i])) {
            i++;
            continue;
        }
        uint64_t id = 0;
        const size_t start = i;
        while (i < n && text[i] >= '0' && text[i] <= '9' && id <= UINT32_MAX)
            id = id * 10 + (uint64_t)(text[i++] - '0');
        if (i == start || id > UINT32_MAX || (i < n && !is_separator(text[i])))
            return aeg_fail(err, AEGIS_E_USAGE, "%s: '%.*s' at byte %zu is not a token id", name,
                            (int)AEG_MIN(n - start, (size_t)20), text + start, start);
        AEG_TRY(append(list, (uint32_t)id, err));
    }
    return AEGIS_OK;
}

aegis_status aeg_ids_read(aeg_ids *list, const char *text, const char *file, aegis_error *err)
{
    if (text != NULL)
        return aeg_ids_parse(list, text, strlen(text), "--ids", err);
    aeg_buffer buffer = { 0 };
    aegis_status status = aeg_buffer_read(&buffer, file, err);
    if (status == AEGIS_OK)
        status = aeg_ids_parse(list, buffer.p, buffer.n, file, err);
    aeg_buffer_free(&buffer);
    return status;
}

void aeg_ids_free(aeg_ids *list)
{
    aeg_free(aeg_ui_memory(), list->ids);
    *list = (aeg_ids){ 0 };
}
