/* SPDX-License-Identifier: Apache-2.0 */
/* The public sampling settings: neutral values and their ranges. */
#include <math.h>

#include "aegis/aegis.h"
#include "base/checked.h"
#include "base/error.h"

void aegis_sampling_greedy(aegis_sampling *s)
{
    *s = (aegis_sampling){ .top_p = 1, .repeat_penalty = 1 };
}

aegis_status aegis_sampling_check(const aegis_sampling *s, aegis_error *err)
{
    /* Wide enough for every sensible use; the bounds keep float arithmetic away from infinities. */
    const struct { const char *name; double value, min, max; } ranges[] = {
        { "temperature", s->temperature, 0, 100 },
        { "top_k", (double)s->top_k, 0, 2147483647.0 },
        { "top_p", s->top_p, 0, 1 },
        { "min_p", s->min_p, 0, 1 },
        { "repeat_penalty", s->repeat_penalty, 0.01, 100 },
        { "presence_penalty", s->presence_penalty, -100, 100 },
        { "frequency_penalty", s->frequency_penalty, -100, 100 },
    };
    for (size_t i = 0; i < AEG_ARRAY_LEN(ranges); i++)
        if (!(ranges[i].value >= ranges[i].min && ranges[i].value <= ranges[i].max))
            return aeg_fail(err, AEGIS_E_USAGE, "%s is %g, expected %g to %g", ranges[i].name, ranges[i].value,
                            ranges[i].min, ranges[i].max);
    if (s->temperature > 0 && s->temperature < 1e-6)
        return aeg_fail(err, AEGIS_E_USAGE, "temperature is %g, expected 0 (greedy) or at least 1e-06",
                        s->temperature);
    if (s->n_bias > AEGIS_MAX_BIAS)
        return aeg_fail(err, AEGIS_E_USAGE, "logit bias has %u entries, expected at most %d", s->n_bias,
                        AEGIS_MAX_BIAS);
    for (uint32_t i = 0; i < s->n_bias; i++)
        if (isnan(s->bias[i].bias) || s->bias[i].bias > 1e6f)
            return aeg_fail(err, AEGIS_E_USAGE, "logit bias of token %u is %g, expected -inf to 1e+06",
                            s->bias[i].id, (double)s->bias[i].bias);
    return AEGIS_OK;
}
