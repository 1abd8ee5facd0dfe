/* SPDX-License-Identifier: Apache-2.0 */
#include "expert/hit_curve.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "expert/store_manifest.h"

enum { POINT_TEXT = 32, RATE_STEPS = 10000 };

double aeg_hit_curve_at(const aeg_hit_curve *curve, uint32_t slots)
{
    aeg_hit_point low = { 0, 0.0 };
    for (uint32_t i = 0; i < curve->n; i++) {
        const aeg_hit_point high = curve->points[i];
        if (slots == high.slots)
            return high.hit_rate;
        if (slots < high.slots)
            return low.hit_rate + (high.hit_rate - low.hit_rate) * (slots - low.slots) / (high.slots - low.slots);
        low = high;
    }
    return low.hit_rate;
}

static aegis_status check_point(const aeg_hit_curve *c, uint32_t i, const char *where, aegis_status status,
                                aegis_error *err)
{
    const aeg_hit_point p = c->points[i];
    if (i > 0 && p.slots <= c->points[i - 1].slots)
        return aeg_fail(err, status, "%s: point %u has %u slots, expected more than the %u of the point before", where, i,
                        p.slots, c->points[i - 1].slots);
    if (!(p.hit_rate >= 0.0 && p.hit_rate <= 1.0)) /* a NaN fails as well */
        return aeg_fail(err, status, "%s: hit rate %g at %u slots, expected 0 to 1", where, p.hit_rate, p.slots);
    return AEGIS_OK;
}

aegis_status aeg_hit_curve_check(const aeg_hit_curve *curve, aegis_error *err)
{
    if (curve->n > AEG_HIT_CURVE_MAX)
        return aeg_fail(err, AEGIS_E_USAGE, "hit curve of %u points, expected at most %d", curve->n, AEG_HIT_CURVE_MAX);
    for (uint32_t i = 0; i < curve->n; i++)
        AEG_TRY(check_point(curve, i, "hit curve", AEGIS_E_USAGE, err));
    return AEGIS_OK;
}

aegis_status aeg_hit_curve_read(aeg_hit_curve *out, const json_t *manifest, aegis_error *err)
{
    static const char where[] = "manifest.json: hit_curve";
    const json_t *list;
    aeg_hit_curve c = { 0 };
    *out = c;
    if (json_object_get(manifest, "hit_curve") == NULL)
        return AEGIS_OK;
    AEG_TRY(aeg_json_get_array(manifest, "hit_curve", "manifest.json", &list, err));
    if (json_array_size(list) < 1 || json_array_size(list) > AEG_HIT_CURVE_MAX)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: %zu points, expected 1 to %d", where, json_array_size(list),
                        AEG_HIT_CURVE_MAX);
    for (; c.n < json_array_size(list); c.n++) {
        const json_t *point = json_array_get(list, c.n), *slots = json_array_get(point, 0);
        if (json_array_size(point) != 2 || !json_is_integer(slots) || json_integer_value(slots) < 0 ||
            json_integer_value(slots) > UINT32_MAX || !json_is_number(json_array_get(point, 1)))
            return aeg_fail(err, AEGIS_E_MODEL, "%s: point %u is not [slots, hit rate]", where, c.n);
        c.points[c.n] = (aeg_hit_point){ (uint32_t)json_integer_value(slots), json_number_value(json_array_get(point, 1)) };
        AEG_TRY(check_point(&c, c.n, where, AEGIS_E_MODEL, err));
    }
    *out = c;
    return AEGIS_OK;
}

aegis_status aeg_hit_curve_save(const aeg_hit_curve *curve, const char *folder, aeg_memory *memory, aegis_error *err)
{
    char member[AEG_HIT_CURVE_MAX * POINT_TEXT];
    size_t n = 0;
    AEG_TRY(aeg_hit_curve_check(curve, err));
    if (curve->n == 0)
        return aeg_fail(err, AEGIS_E_USAGE, "a hit curve without points cannot be saved");
    for (uint32_t i = 0; i < curve->n; i++) {
        /* whole numbers only: the decimal point of %f depends on the locale */
        const unsigned rate = (unsigned)lrint(curve->points[i].hit_rate * RATE_STEPS);
        n += (size_t)snprintf(member + n, sizeof member - n, "%s[%u, %u.%04u]", i == 0 ? "[" : ", ",
                              curve->points[i].slots, rate / RATE_STEPS, rate % RATE_STEPS);
    }
    snprintf(member + n, sizeof member - n, "]");
    return aeg_manifest_set_hit_curve(folder, member, memory, err);
}
