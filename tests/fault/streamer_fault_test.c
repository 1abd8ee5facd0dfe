/* SPDX-License-Identifier: Apache-2.0 */
/* Every read of the streamer fails in turn: a clean error that names the expert, and the same demand works after
 * aeg_streamer_abort. */
#include "unit/streamer_case.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"

typedef struct {
    uint32_t fail_at, n; /* the fail_at-th read fails, 1 = the first; 0 = none */
    uint64_t offset;
    bool hit;
} fault_plan;

static int fail_one(void *ctx, uint32_t file, uint64_t offset)
{
    fault_plan *plan = ctx;
    (void)file;
    if (++plan->n != plan->fail_at)
        return 0;
    plan->offset = offset;
    plan->hit = true;
    return ENODATA;
}

typedef struct {
    uint32_t layer, n;
    bool ordered;
    uint16_t experts[CASE_EXPERTS], guess[3];
} step;

static const step steps[] = {
    { .layer = 0, .n = 4, .experts = { 1, 4, 6, 9 }, .guess = { 3, 4, 8 } },
    { .layer = 1, .n = 4, .experts = { 2, 3, 4, 11 }, .guess = { 0, 1, 2 } },
    { .layer = 2, .n = 16, .ordered = true, .experts = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } },
    { .layer = 0, .n = 4, .experts = { 1, 2, 6, 15 }, .guess = { 5, 6, 7 } },
    { .layer = 1, .n = 3, .experts = { 5, 6, 7 }, .guess = { 5, 6, 7 } },
};

static aegis_status run_step(case_state *c, const step *s, aegis_error *err)
{
    static const uint32_t ones[CASE_EXPERTS] = { [0 ... CASE_EXPERTS - 1] = 1 };
    AEG_TRY(aeg_streamer_demand(c->streamer, s->layer, s->experts, ones, s->n, s->ordered, err));
    aeg_streamer_guess(c->streamer, (s->layer + 1) % CASE_LAYERS, s->guess, 3);
    return case_take_all(c, s->layer, s->experts, s->n, err);
}

/* True if read `fail_at` was reached. */
static bool run_with_fault(const case_config *base, uint32_t fail_at)
{
    fault_plan plan = { .fail_at = fail_at };
    case_config cfg = *base;
    case_state c;
    cfg.fault = fail_one;
    cfg.fault_ctx = &plan;
    case_open(&c, &cfg);
    for (uint32_t i = 0; i < AEG_ARRAY_LEN(steps); i++) {
        aegis_error err = { 0 };
        const aegis_status status = run_step(&c, &steps[i], &err);
        if (status == AEGIS_OK)
            continue;
        char where[96];
        const uint32_t record = (uint32_t)(plan.offset / CASE_RECORD);
        snprintf(where, sizeof where, "experts.bin: expert %u of layer %u, %d bytes at offset %u", record % CASE_EXPERTS,
                 record / CASE_EXPERTS, CASE_RECORD, record * CASE_RECORD);
        T_CHECK(plan.hit);
        T_FAILS(status, &err, AEGIS_E_IO, where);
        T_CHECK(err.os_code == ENODATA);
        plan.hit = false;
        /* The failure stays until it is cleared. */
        aeg_expert_view view;
        uint32_t n;
        T_FAILS(aeg_streamer_take(c.streamer, &view, 1, &n, &err), &err, AEGIS_E_IO, where);
        T_FAILS(run_step(&c, &steps[i], &err), &err, AEGIS_E_RUNTIME, "not done");
        aeg_streamer_abort(c.streamer);
        T_CHECK(!aeg_streamer_resident(c.streamer, record / CASE_EXPERTS, record % CASE_EXPERTS));
        T_OK(run_step(&c, &steps[i], &err), &err);
    }
    const bool reached = plan.n >= fail_at;
    /* Without guesses nothing may be forgiven: each failed read was an error. */
    T_CHECK(!reached || cfg.prefetch != 0 || !plan.hit);
    case_close(&c);
    return reached;
}

static void every_failing_read_is_a_clean_error(void **state)
{
    (void)state;
    static const aeg_io_kind kinds[] = { AEG_IO_URING, AEG_IO_PREAD, AEG_IO_NULL };
    for (uint32_t k = 0; k < AEG_ARRAY_LEN(kinds); k++)
        for (uint32_t variant = 0; variant < 4; variant++) {
            const case_config cfg = { .kind = kinds[k], .depth = 4, .n_slots = variant & 1 ? 4 : 14,
                                      .prefetch = variant & 2 ? 3 : 0, .split_bytes = variant == 2 };
            /* The faults are made above the back end: all of them where reads cost nothing, a sample elsewhere. */
            const uint32_t stride = kinds[k] == AEG_IO_NULL ? 1 : 5;
            uint32_t n = 1;
            while (run_with_fault(&cfg, n))
                n += stride;
            T_CHECK(n > 20);
        }
}

static void a_truncated_store_names_the_first_expert_that_is_missing(void **state)
{
    (void)state;
    case_state c;
    aegis_error err;
    const step last = { .layer = 2, .n = 2, .experts = { 3, 9 } }, first = { .layer = 2, .n = 1, .experts = { 3 } };
    for (uint32_t kept = 0; kept < CASE_RECORD; kept += 1000) {
        case_open(&c, &(case_config){ .kind = kept % 2000 ? AEG_IO_PREAD : AEG_IO_URING, .depth = 4, .n_slots = 4 });
        T_CHECK(truncate(case_path(), (2 * CASE_EXPERTS + 9) * CASE_RECORD + kept) == 0);
        T_FAILS(run_step(&c, &last, &err), &err, AEGIS_E_IO, "expert 9 of layer 2");
        aeg_streamer_abort(c.streamer);
        T_OK(run_step(&c, &first, &err), &err);
        case_close(&c);
        case_restore();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_read_is_a_clean_error),
        cmocka_unit_test(a_truncated_store_names_the_first_expert_that_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
