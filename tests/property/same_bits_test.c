/* SPDX-License-Identifier: Apache-2.0 */
/* The promise of DESIGN section 2, all at once: budget x threads x instruction set x chunk x read back end x
 * guesses x context room give the same logits, bit for bit, in prefill and in decode; each type of keys and values
 * has its own. */
#include <stdio.h>
#include <string.h>

#include "support/t_engine.h"

enum { N_PROMPT = 48, N_STEPS = 6, MAX_LEVELS = 3, N_KV = AEGIS_KV_T3 + 1 };

typedef struct {
    const char *store;
    int n_kv;              /* types of keys and values that its heads can have: all, up to q8 (latent), up to f16 (32 elements) */
    uint64_t minimum;      /* of the smallest plan, bytes */
    uint64_t all_resident;
    uint64_t hash[N_KV];   /* of the reference runs, by type of keys and values */
    uint32_t ids[N_PROMPT];
} subject;

static subject demo = { .store = T_STORE_DEMO, .n_kv = N_KV }, tiny = { .store = T_STORE_TINY_4, .n_kv = N_KV },
               demo_e3 = { .store = T_STORE_DEMO_E3, .n_kv = N_KV }, xing4 = { .store = T_STORE_XING4_GGUF, .n_kv = AEGIS_KV_Q8 + 1 },
               deepseek2 = { .store = T_STORE_DEEPSEEK2_GGUF, .n_kv = AEGIS_KV_Q8 + 1 },
               next = { .store = T_STORE_8("qwen3next"), .n_kv = N_KV }, olmoe = { .store = T_STORE_8("olmoe"), .n_kv = AEGIS_KV_F16 + 1 };
static const char *levels[MAX_LEVELS + 1];
static uint32_t n_levels;

static const uint32_t N_CTX[] = { 64, 256, 1024 };

static aegis_options smallest(const char *store)
{
    aegis_options o = t_engine_options(store);
    o.n_ctx = N_CTX[0];
    o.n_threads = 1;
    return o;
}

static void prepare(subject *s)
{
    aegis_error err;
    aegis_options o = smallest(s->store);
    aegis_plan plan;
    T_OK(aegis_plan_compute(&o, &plan, &err), &err);
    s->minimum = plan.minimum_bytes;
    s->all_resident = plan.all_resident_bytes;
    aegis_engine *e = t_engine_open(&o);
    aegis_info info;
    aegis_engine_info(e, &info);
    for (uint32_t i = 0; i < N_PROMPT; i++)
        s->ids[i] = (i * 2654435761u + 12345u) % info.vocab_size;
    aegis_engine_close(e);
    for (int kv = 0; kv < s->n_kv; kv++) {
        o.kv = (aegis_kv)kv;
        e = t_engine_open(&o);
        s->hash[kv] = t_logits_hash(e, s->ids, N_PROMPT, N_STEPS);
        aegis_engine_close(e);
        for (int other = 0; other < kv; other++) /* or the type would not reach the arithmetic */
            T_CHECK(s->hash[kv] != s->hash[other]);
    }
}

static int setup(void **state)
{
    (void)state;
    static const char *const names[] = { "scalar", "avx2", "avx512", "neon" };
    for (size_t i = 0; i < 4; i++) {
        aegis_options o = smallest(tiny.store);
        aegis_plan plan;
        o.cpu = names[i];
        if (aegis_plan_compute(&o, &plan, NULL) == AEGIS_OK)
            levels[n_levels++] = names[i];
    }
    prepare(&demo);
    prepare(&tiny);
    prepare(&demo_e3);
    prepare(&xing4);
    prepare(&deepseek2);
    prepare(&next);
    prepare(&olmoe);
    return 0;
}

static aegis_options random_options(const subject *s)
{
    static const aegis_io ios[] = { AEGIS_IO_URING, AEGIS_IO_PREAD, AEGIS_IO_SIM };
    static const int32_t guesses[] = { 0, -1, 4, 8 };
    static const uint32_t chunks[] = { 0, 1, 3, 7, 16, 48 };
    aegis_options o = t_engine_options(s->store);
    o.n_threads = (uint32_t)t_between(0, 5);
    o.n_ctx = N_CTX[t_below(3)];
    o.chunk = chunks[t_below(6)];
    o.io = ios[t_below(3)];
    o.sim_bytes_per_s = 4e9;
    o.prefetch = guesses[t_below(4)];
    /* The scalar level of the larger model would take minutes there. */
    o.cpu = levels[T_SLOW && (s == &demo || s == &demo_e3) ? n_levels - 1 : t_below(n_levels)];
    o.n_checkpoints = (uint32_t)t_below(3);
    o.kv = (aegis_kv)t_below((uint64_t)s->n_kv);
    aegis_plan plan;
    aegis_error err;
    T_OK(aegis_plan_compute(&o, &plan, &err), &err);
    o.memory_bytes = t_between(plan.minimum_bytes, plan.all_resident_bytes);
    if (t_below(4) == 0)
        o.memory_bytes = plan.minimum_bytes;
    /* What a sanitizer or an emulator (its translated code) holds grows from call to call, and the plan counts what
     * the process holds. */
    if (T_SLOW)
        o.memory_bytes += 16u << 20;
    return o;
}

static void check(const subject *s)
{
    const aegis_options o = random_options(s);
    aegis_error err;
    aegis_engine *e = NULL;
    const aegis_status status = aegis_engine_open(&e, &o, &err);
    if (status == AEGIS_E_IO && o.io == AEGIS_IO_URING) {
        printf("io_uring is refused here: %s\n", err.message);
        return;
    }
    T_OK(status, &err);
    const uint64_t hash = t_logits_hash(e, s->ids, N_PROMPT, N_STEPS);
    aegis_engine_close(e);
    if (hash != s->hash[o.kv])
        fprintf(stderr, "%s: memory %llu threads %u ctx %u chunk %u io %d prefetch %d cpu %s kv %d differ\n", s->store,
                (unsigned long long)o.memory_bytes, o.n_threads, o.n_ctx, o.chunk, o.io, o.prefetch, o.cpu, (int)o.kv);
    T_CHECK(hash == s->hash[o.kv]);
}

/* Sanitizers and emulators make each case ten times slower; the cases are the same kind. */
#define CASES(n) (T_SLOW ? (n) / 6 + 1 : (n))
T_PROPERTY(every_setting_gives_the_same_bits_tiny, CASES(60)) { check(&tiny); }
T_PROPERTY(every_setting_gives_the_same_bits_xing4, CASES(40)) { check(&xing4); }
T_PROPERTY(every_setting_gives_the_same_bits_deepseek2, CASES(30)) { check(&deepseek2); }
T_PROPERTY(every_setting_gives_the_same_bits_demo, CASES(24)) { check(&demo); }
T_PROPERTY(every_setting_gives_the_same_bits_demo_e3, CASES(8)) { check(&demo_e3); }

T_PROPERTY(every_setting_gives_the_same_bits_qwen3next, CASES(20)) { check(&next); }
T_PROPERTY(every_setting_gives_the_same_bits_olmoe, CASES(30)) { check(&olmoe); }

/* Re-using a beginning must not show either: cut back to a checkpoint, append, start again. */
T_PROPERTY(a_reused_beginning_gives_the_same_bits, CASES(20))
{
    aegis_options o = smallest(tiny.store);
    o.n_checkpoints = 2;
    o.kv = (aegis_kv)t_below(N_KV);
    o.chunk = (uint32_t)t_between(1, 16);
    aegis_engine *e = t_engine_open(&o);
    aegis_error err;
    aegis_info info;
    aegis_engine_info(e, &info);
    uint32_t other[N_PROMPT];
    memcpy(other, tiny.ids, sizeof other);
    const uint32_t keep = (uint32_t)t_between(1, N_PROMPT - 1);
    for (uint32_t i = keep; i < N_PROMPT; i++)
        other[i] = (uint32_t)t_below(info.vocab_size);

    T_OK(aegis_session_sync(e, tiny.ids, t_between(1, keep), NULL, NULL, &err), &err);
    aegis_session_checkpoint(e);
    T_OK(aegis_session_sync(e, other, t_between(keep, N_PROMPT), NULL, NULL, &err), &err);
    size_t reused = 0;
    T_OK(aegis_session_sync(e, tiny.ids, N_PROMPT, &reused, NULL, &err), &err);
    float kept[512];
    T_CHECK(info.vocab_size == 512);
    memcpy(kept, aegis_session_logits(e), sizeof kept);
    aegis_session_clear(e);
    T_OK(aegis_session_sync(e, tiny.ids, N_PROMPT, NULL, NULL, &err), &err);
    T_CHECK(memcmp(kept, aegis_session_logits(e), sizeof kept) == 0);
    T_CHECK(reused > 0);
    aegis_engine_close(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_gives_the_same_bits_tiny),
        cmocka_unit_test(every_setting_gives_the_same_bits_xing4), cmocka_unit_test(every_setting_gives_the_same_bits_deepseek2),
        cmocka_unit_test(every_setting_gives_the_same_bits_demo),
        cmocka_unit_test(every_setting_gives_the_same_bits_demo_e3),
        cmocka_unit_test(every_setting_gives_the_same_bits_qwen3next),
        cmocka_unit_test(every_setting_gives_the_same_bits_olmoe),
        cmocka_unit_test(a_reused_beginning_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
