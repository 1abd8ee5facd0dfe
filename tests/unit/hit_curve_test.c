/* SPDX-License-Identifier: Apache-2.0 */
/* expert/hit_curve: interpolation, and its way into and out of a manifest. */
#include "support/t.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "aegis/pack.h"
#include "base/json.h"
#include "expert/store.h"
#include "tiny_store.h"

static int free_all(void **state)
{
    (void)state;
    t_free(manifest);
    return 0;
}

static void between_points_it_is_linear(void **state)
{
    (void)state;
    const aeg_hit_curve c = { 3, { { 100, 0.2 }, { 200, 0.6 }, { 600, 0.8 } } }, none = { 0 };
    T_CHECK(aeg_hit_curve_at(&none, 50) == 0.0);
    T_CHECK(aeg_hit_curve_at(&c, 0) == 0.0 && fabs(aeg_hit_curve_at(&c, 50) - 0.1) < 1e-12);
    T_CHECK(aeg_hit_curve_at(&c, 100) == 0.2 && aeg_hit_curve_at(&c, 200) == 0.6 && aeg_hit_curve_at(&c, 600) == 0.8);
    T_CHECK(fabs(aeg_hit_curve_at(&c, 150) - 0.4) < 1e-12 && fabs(aeg_hit_curve_at(&c, 300) - 0.65) < 1e-12);
    T_CHECK(aeg_hit_curve_at(&c, 601) == 0.8 && aeg_hit_curve_at(&c, UINT32_MAX) == 0.8);
    const aeg_hit_curve from_zero = { 2, { { 0, 0.0 }, { 10, 1.0 } } };
    T_CHECK(aeg_hit_curve_at(&from_zero, 0) == 0.0 && fabs(aeg_hit_curve_at(&from_zero, 5) - 0.5) < 1e-12);
}

static void open_store(aeg_store **s, aeg_memory *memory)
{
    aegis_error err = { 0 };
    T_OK(aeg_store_open(s, store_path, memory, &err), &err);
}

/* Saved twice, read back, and the key of the model is what it was. */
static void a_saved_curve_comes_back(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    aeg_store *s;
    const aeg_hit_curve first = { 2, { { 8, 0.125 }, { 32, 1.0 } } };
    aeg_hit_curve second = { AEG_HIT_CURVE_MAX, { { 0 } } };
    for (uint32_t i = 0; i < AEG_HIT_CURVE_MAX; i++)
        second.points[i] = (aeg_hit_point){ UINT32_MAX - 100 + i, (i + 0.00004) / AEG_HIT_CURVE_MAX };
    open_store(&s, &memory);
    const uint64_t key = s->model_key;
    T_CHECK(s->hit_curve.n == 0);
    aeg_store_close(s);

    T_OK(aeg_hit_curve_save(&first, store_path, &memory, &err), &err);
    open_store(&s, &memory);
    T_CHECK(s->hit_curve.n == 2 && s->hit_curve.points[0].slots == 8 && s->hit_curve.points[0].hit_rate == 0.125);
    T_CHECK(s->hit_curve.points[1].slots == 32 && s->hit_curve.points[1].hit_rate == 1.0 && s->model_key == key);
    aeg_store_close(s);

    T_OK(aeg_hit_curve_save(&second, store_path, &memory, &err), &err);
    open_store(&s, &memory);
    T_CHECK(s->hit_curve.n == AEG_HIT_CURVE_MAX && s->model_key == key);
    for (uint32_t i = 0; i < AEG_HIT_CURVE_MAX; i++)
        T_CHECK(s->hit_curve.points[i].slots == second.points[i].slots &&
                fabs(s->hit_curve.points[i].hit_rate - second.points[i].hit_rate) <= 0.5001e-4);
    T_OK(aeg_store_verify(s, NULL, NULL, &err), &err);
    aeg_store_close(s);
    t_write_file(t_path(store_path, "manifest.json"), manifest, manifest_n);
    t_no_leak(&memory);
}

static void what_cannot_be_a_curve_is_not_saved(void **state)
{
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    const struct {
        aeg_hit_curve curve;
        const char *part;
    } bad[] = {
        { { 0 }, "without points" },
        { { .n = AEG_HIT_CURVE_MAX + 1 }, "17 points" },
        { { 2, { { 5, 0.1 }, { 5, 0.2 } } }, "point 1 has 5 slots" },
        { { 1, { { 5, 1.001 } } }, "hit rate 1.001" },
        { { 1, { { 5, -0.1 } } }, "hit rate -0.1" },
        { { 1, { { 5, (double)NAN } } }, "nan at 5 slots" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        T_FAILS(aeg_hit_curve_save(&bad[i].curve, store_path, &memory, &err), &err, AEGIS_E_USAGE, bad[i].part);
    const aeg_hit_curve good = { 1, { { 5, 0.5 } } };
    T_FAILS(aeg_hit_curve_save(&good, t_path(store_path, "nowhere"), &memory, &err), &err, AEGIS_E_MODEL, "nowhere");
    size_t n;
    char *now = t_read_file(t_path(store_path, "manifest.json"), &n);
    T_CHECK(n == manifest_n && memcmp(now, manifest, n) == 0);
    t_free(now);
    t_no_leak(&memory);
}

/* Members put before the checksum, with the checksum made right. */
static void curves_of_others_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *member, *part;
    } edits[] = {
        { "\"hit_curve\": 3,\n ", "'hit_curve' is an integer" },
        { "\"hit_curve\": [],\n ", "0 points" },
        { "\"hit_curve\": [[1,0],[2,0],[3,0],[4,0],[5,0],[6,0],[7,0],[8,0],[9,0],[10,0],[11,0],[12,0],[13,0],[14,0],"
          "[15,0],[16,0],[17,0]],\n ", "17 points" },
        { "\"hit_curve\": [[5, 0.5], [4, 0.6]],\n ", "point 1 has 4 slots" },
        { "\"hit_curve\": [[5, 1.5]],\n ", "hit rate 1.5 at 5 slots" },
        { "\"hit_curve\": [[5]],\n ", "point 0 is not" },
        { "\"hit_curve\": [[5, 0.1, 3]],\n ", "point 0 is not" },
        { "\"hit_curve\": [5],\n ", "point 0 is not" },
        { "\"hit_curve\": [[5.5, 0.1]],\n ", "point 0 is not" },
        { "\"hit_curve\": [[4294967296, 0.1]],\n ", "point 0 is not" },
        { "\"hit_curve\": [[5, \"x\"]],\n ", "just before the checksum" },
        { "\"hit_curve\": [[5, 0.5]], \"more\": \"x\",\n ", "just before the checksum" },
        { "\"hit_curve\": [[5, 0.5]],\n \"hit_curve\": [[5, 0.5]],\n ", "JSON" },
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        T_MEMORY(memory);
        aegis_error err = { 0 };
        aeg_store *s = NULL;
        char text[1024];
        char *made = malloc(manifest_n + sizeof text);
        size_t n = manifest_n - strlen("\"xxh3\": \"0123456789abcdef\"\n}\n");
        memcpy(made, manifest, n);
        n += (size_t)sprintf(made + n, "%s", edits[i].member);
        n += (size_t)sprintf(made + n, "\"xxh3\": \"%016" PRIx64 "\"\n}\n", XXH3_64bits(made, n));
        t_write_file(t_path(store_path, "manifest.json"), made, n);
        T_FAILS(aeg_store_open(&s, store_path, &memory, &err), &err, AEGIS_E_MODEL, edits[i].part);
        free(made);
        t_no_leak(&memory);
    }
    t_write_file(t_path(store_path, "manifest.json"), manifest, manifest_n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between_points_it_is_linear),
        cmocka_unit_test(a_saved_curve_comes_back),
        cmocka_unit_test(what_cannot_be_a_curve_is_not_saved),
        cmocka_unit_test(curves_of_others_are_checked),
    };
    return cmocka_run_group_tests(tests, pack_once, free_all);
}
