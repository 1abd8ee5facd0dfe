/* SPDX-License-Identifier: Apache-2.0 */
/* --threads: a named count is obeyed; auto measures, which changes neither bits nor state nor figures. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/processors.h"
#include "engine/engine_parts.h"
#include "support/t_engine.h"

enum { N_PROMPT = 40, N_STEPS = 4 };
static uint32_t ids[N_PROMPT];

static aegis_options with_threads(const char *store, uint32_t n_threads)
{
    aegis_options o = t_engine_options(store);
    o.n_threads = n_threads;
    o.n_ctx = 128;
    o.chunk = N_PROMPT;
    return o;
}

static aegis_info info_of(const aegis_engine *e)
{
    aegis_info info;
    aegis_engine_info(e, &info);
    return info;
}

static void fill_ids(uint32_t vocab_size)
{
    for (uint32_t i = 0; i < N_PROMPT; i++)
        ids[i] = (i * 2654435761u + 12345u) % vocab_size;
}

static void named_counts_are_obeyed(void **state)
{
    (void)state;
    aegis_error err;
    for (uint32_t n = 1; n <= 5; n++) {
        const aegis_options o = with_threads(T_STORE_TINY_4, n);
        aegis_engine *e = t_engine_open(&o);
        const aegis_info info = info_of(e);
        fill_ids(info.vocab_size);
        assert_int_equal(info.plan.n_threads, n);
        assert_int_equal(info.n_threads_used, n);
        T_OK(aegis_session_sync(e, ids, N_PROMPT, NULL, NULL, &err), &err);
        assert_int_equal(aeg_team_in_use(e->team), n);
        T_OK(aegis_session_step(e, 1, &err), &err);
        assert_int_equal(aeg_team_in_use(e->team), n);
        aegis_engine_close(e);
    }
}

/* Prompts take every core, steps and short chunks what was measured. */
static void auto_switches_between_prompt_and_step(void **state)
{
    (void)state;
    aegis_error err;
    const aegis_options o = with_threads(T_STORE_TINY_4, 0);
    aegis_engine *e = t_engine_open(&o);
    const aegis_info info = info_of(e);
    assert_int_equal(info.plan.n_threads, aeg_usable_cores());
    assert_in_range(info.n_threads_used, 1, info.plan.n_threads);
    fill_ids(info.vocab_size);
    for (int i = 0; i < 3; i++) {
        aegis_session_clear(e);
        T_OK(aegis_session_sync(e, ids, AEG_DECODE_TOKENS + 1, NULL, NULL, &err), &err);
        assert_int_equal(aeg_team_in_use(e->team), info.plan.n_threads);
        T_OK(aegis_session_step(e, 1, &err), &err);
        assert_int_equal(aeg_team_in_use(e->team), info.n_threads_used);
        T_OK(aegis_session_sync(e, ids, N_PROMPT, NULL, NULL, &err), &err);
        aegis_session_clear(e);
        T_OK(aegis_session_sync(e, ids, AEG_DECODE_TOKENS, NULL, NULL, &err), &err);
        assert_int_equal(aeg_team_in_use(e->team), info.n_threads_used);
    }
    aegis_engine_close(e);
}

static uint64_t hash_with(const char *store, uint32_t n_threads)
{
    const aegis_options o = with_threads(store, n_threads);
    aegis_engine *e = t_engine_open(&o);
    aegis_stats s;
    aegis_engine_stats(e, &s);
    T_CHECK(s.expert_uses == 0 && s.read_bytes == 0 && s.decode_tokens == 0 && s.prefill_tokens == 0);
    fill_ids(info_of(e).vocab_size);
    const uint64_t hash = t_logits_hash(e, ids, N_PROMPT, N_STEPS);
    aegis_engine_close(e);
    return hash;
}

static void measuring_changes_no_bits(void **state)
{
    (void)state;
    static const char *const stores[] = { T_STORE_TINY_4, T_STORE_TINY_KEEP, T_STORE_DEMO };
    for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++)
        for (int again = 0; again < 2; again++)
            T_CHECK(hash_with(stores[i], 0) == hash_with(stores[i], 1));
}

static const aeg_account kept[] = { AEG_ACCT_KV, AEG_ACCT_STATE, AEG_ACCT_CHECKPOINTS, AEG_ACCT_SLOTS, AEG_ACCT_DENSE };
enum { N_KEPT = sizeof kept / sizeof kept[0] };

/* Of what a fresh engine holds, one number per account. */
static void hash_accounts(uint32_t n_threads, uint64_t out[N_KEPT])
{
    const aegis_options o = with_threads(T_STORE_TINY_4, n_threads);
    aegis_engine *e = t_engine_open(&o);
    for (uint32_t i = 0; i < N_KEPT; i++)
        out[i] = XXH3_64bits(e->accounts.arena[kept[i]].base, e->accounts.arena[kept[i]].used);
    aegis_engine_close(e);
}

static void measuring_leaves_state_and_weights_alone(void **state)
{
    (void)state;
    uint64_t measured[N_KEPT], named[N_KEPT];
    hash_accounts(0, measured);
    hash_accounts(aeg_usable_cores(), named);
    assert_memory_equal(measured, named, sizeof named);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_counts_are_obeyed),   cmocka_unit_test(auto_switches_between_prompt_and_step),
        cmocka_unit_test(measuring_changes_no_bits), cmocka_unit_test(measuring_leaves_state_and_weights_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
