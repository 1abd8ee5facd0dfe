/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor.h"

/* Minimise sum ((a + m*b - t) / t)^2: with w = 1/t the equations are linear in a and b. */
void aeg_doctor_fit_bursts(const uint32_t *n_reads, const double *seconds, uint32_t n, uint64_t bytes, double *rate,
                           double *latency_s)
{
    double ww = 0, wm = 0, mm = 0, w1 = 0, m1 = 0;
    *rate = *latency_s = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (seconds[i] <= 0)
            continue;
        const double w = 1 / seconds[i], m = n_reads[i] * w;
        ww += w * w;
        wm += w * m;
        mm += m * m;
        w1 += w;
        m1 += m;
    }
    const double det = ww * mm - wm * wm;
    double a = det > 0 ? (w1 * mm - m1 * wm) / det : 0;
    if (a < 0)
        a = 0; /* the line through the origin fits better than a negative latency */
    const double b = mm > 0 ? (m1 - a * wm) / mm : 0;
    if (b <= 0)
        return;
    *rate = (double)bytes / b;
    *latency_s = a;
}
