/* SPDX-License-Identifier: Apache-2.0 */
/* expert/hit_curve.h - the decode hit rate of a pool by its number of slots, as a replay of recorded routes
 * measured it (expert/replay.h), kept in the store's manifest.json and read by the plan's prediction.
 *
 * In the manifest: "hit_curve": [[slots, hit_rate], ...], the last member before the checksum. It describes use
 * and not the model, so the store's model_key does not cover it: saving a curve keeps snapshots valid.
 * Thread: any.
 */
#ifndef AEG_EXPERT_HIT_CURVE_H
#define AEG_EXPERT_HIT_CURVE_H

#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

struct json_t;

enum { AEG_HIT_CURVE_MAX = 16 };

typedef struct {
    uint32_t slots;
    double hit_rate;      /* of all expert uses in decode, 0 to 1, guesses not counted */
} aeg_hit_point;

typedef struct {
    uint32_t n;           /* 0: no curve is known */
    aeg_hit_point points[AEG_HIT_CURVE_MAX]; /* ascending slots */
} aeg_hit_curve;

/* Linear between points and from (0 slots, 0) to the first; the last point's rate behind it. 0 if n == 0. */
double aeg_hit_curve_at(const aeg_hit_curve *curve, uint32_t slots);

/* AEGIS_E_USAGE: more than AEG_HIT_CURVE_MAX points, slots not ascending, a rate outside 0..1. */
aegis_status aeg_hit_curve_check(const aeg_hit_curve *curve, aegis_error *err);

/* The member of a parsed manifest; n = 0 if it has none. AEGIS_E_MODEL names the point that is wrong. */
aegis_status aeg_hit_curve_read(aeg_hit_curve *out, const struct json_t *manifest, aegis_error *err);

/* Put the curve (n > 0) into <folder>/manifest.json, in place of an older one; rates are rounded to 1e-4. The
 * file is replaced atomically; engines that are open keep what they read. */
aegis_status aeg_hit_curve_save(const aeg_hit_curve *curve, const char *folder, aeg_memory *memory, aegis_error *err);

#endif
