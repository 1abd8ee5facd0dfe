/* SPDX-License-Identifier: Apache-2.0 */
#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"

/* Digits with at most one point; the locale must not matter, so no strtod. */
static const char *parse_number(const char *s, double *out)
{
    double v = 0, scale = 1;
    int n_digits = 0, seen_point = 0;
    for (;; s++) {
        if (*s >= '0' && *s <= '9') {
            v = v * 10 + (*s - '0');
            if (seen_point)
                scale *= 10;
            if (++n_digits > 20)
                return NULL;
        } else if (*s == '.' && !seen_point) {
            seen_point = 1;
        } else {
            break;
        }
    }
    if (n_digits == 0)
        return NULL;
    *out = v / scale;
    return s;
}

aegis_status aeg_size_parse(uint64_t *out, const char *text, uint64_t whole, aegis_error *err)
{
    static const struct { const char *name; double factor; } units[] = {
        { "", 1 }, { "B", 1 }, { "KiB", 1024.0 }, { "MiB", 1048576.0 }, { "GiB", 1073741824.0 },
        { "TiB", 1099511627776.0 }, { "KB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 }, { "TB", 1e12 },
        { "K", 1024.0 }, { "M", 1048576.0 }, { "G", 1073741824.0 },
    };
    double v = 0, bytes = -1;
    const char *unit = parse_number(text, &v);
    if (unit != NULL) {
        while (*unit == ' ')
            unit++;
        if (strcmp(unit, "%") == 0 && whole > 0 && v <= 100)
            bytes = v / 100 * (double)whole;
        for (size_t i = 0; i < AEG_ARRAY_LEN(units); i++)
            if (strcasecmp(unit, units[i].name) == 0)
                bytes = v * units[i].factor;
    }
    if (!(bytes >= 1) || bytes > 9e18)
        return aeg_fail(err, AEGIS_E_USAGE,
                        "'%.80s' is not a size; expected for example 4GiB, 1.5GB, 512MiB or 50%%", text);
    *out = (uint64_t)floor(bytes);
    return AEGIS_OK;
}

char *aeg_size_format(char *out, uint64_t bytes)
{
    static const char *const names[] = { "KiB", "MiB", "GiB", "TiB" };
    if (bytes < 1024) {
        snprintf(out, AEG_SIZE_TEXT, "%llu B", (unsigned long long)bytes);
        return out;
    }
    double v = (double)bytes / 1024;
    size_t i = 0;
    while (v >= 1000 && i + 1 < AEG_ARRAY_LEN(names)) {
        v /= 1024;
        i++;
    }
    snprintf(out, AEG_SIZE_TEXT, v < 10 ? "%.2f %s" : v < 100 ? "%.1f %s" : "%.0f %s", v, names[i]);
    return out;
}
