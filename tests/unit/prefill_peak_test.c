/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says a prompt's chunk needs is what it touches: the account of activations against the pages of its arena that
 * are resident after a whole chunk, for four chunk sizes; and the refusal of a context that does not fit. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/engine_parts.h"
#include "support/t_engine.h"

enum { N_CTX = 1152, MAX_CHUNK = 1024 };

static uint64_t resident_bytes(const aeg_arena *a)
{
    static unsigned char pages[1 << 16];
    const size_t n = (size_t)(a->size + AEG_PAGE - 1) / AEG_PAGE;
    uint64_t bytes = 0;
    T_CHECK(n <= sizeof pages && mincore(a->base, a->size, pages) == 0);
    for (size_t i = 0; i < n; i++)
        bytes += pages[i] & 1 ? AEG_PAGE : 0;
    return bytes;
}

static aegis_options options_of(const char *store, uint32_t chunk)
{
    aegis_options o = t_engine_options(store);
    o.n_ctx = N_CTX;
    o.chunk = chunk;
    o.activations = AEGIS_ACTIVATIONS_F32; /* plain weights read no codes: room for them would stay untouched */
    return o;
}

/* Returns the account of activations. */
static uint64_t check_chunk(const char *store, uint32_t chunk)
{
    static uint32_t ids[MAX_CHUNK];
    const aegis_options o = options_of(store, chunk);
    aegis_error err;
    aegis_info info;
    aegis_engine *e = t_engine_open(&o);
    aegis_engine_info(e, &info);
    for (uint32_t i = 0; i < chunk; i++)
        ids[i] = (i * 2654435761u + 12345u) % info.vocab_size;
    T_OK(aegis_session_sync(e, ids, chunk, NULL, NULL, &err), &err);
    const uint64_t planned = aeg_account_bytes(&e->accounts, AEG_ACCT_ACTIVATIONS);
    const uint64_t touched = resident_bytes(&e->accounts.arena[AEG_ACCT_ACTIVATIONS]);
    printf("%s, chunk %u: planned %.2f MiB, touched %.2f MiB\n", strrchr(store, '/') + 1, chunk, (double)planned / 1048576,
           (double)touched / 1048576);
    T_CHECK(touched <= planned + AEG_PAGE);
    T_CHECK((double)touched >= 0.95 * (double)planned);
    aegis_engine_close(e);
    return planned;
}

static void a_chunk_touches_what_was_planned(void **state)
{
    (void)state;
    static const char *const stores[] = { T_STORE_DEEPSEEK2,       T_STORE_DEEPSEEK2_LITE,   T_STORE_XING4,
                                          T_STORE_KEEP("qwen3moe"), T_STORE_KEEP("qwen3next"), T_STORE_KEEP("olmoe"),
                                          T_STORE_TINY_KEEP };
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        uint64_t bytes[4];
        for (int c = 0; c < 4; c++)
            bytes[c] = check_chunk(stores[i], 128u << c);
        /* bytes = fixed + chunk * per token: nothing in it grows with chunk times context */
        const double slope = (double)(bytes[3] - bytes[2]) / 512, early = (double)(bytes[1] - bytes[0]) / 128;
        T_CHECK(slope > 0.95 * early && slope < 1.05 * early);
    }
}

/* Names the context, what is missing, the smallest budget, and the context that fits. */
static void a_context_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    aegis_options o = t_engine_options(T_STORE_XING4);
    aegis_plan plan;
    aegis_error err;
    aegis_engine *e = NULL;
    char text[64];
    o.n_ctx = 16384;
    T_OK(aegis_plan_compute(&o, &plan, &err), &err);
    o.memory_bytes = plan.minimum_bytes - (4u << 20);
    T_OK(aegis_plan_compute(&o, &plan, &err), &err);
    T_CHECK(!plan.fits && plan.max_n_ctx > 0 && plan.max_n_ctx < 16384);
    T_FAILS(aegis_engine_open(&e, &o, &err), &err, AEGIS_E_BUDGET, "16384 tokens");
    snprintf(text, sizeof text, "(-c %u)", plan.max_n_ctx);
    T_CHECK(strstr(err.message, text) != NULL);
    T_CHECK(strstr(err.message, "more is needed") != NULL && strstr(err.message, "--memory") != NULL);
    o.n_ctx = plan.max_n_ctx;
    T_OK(aegis_engine_open(&e, &o, &err), &err);
    aegis_engine_close(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_chunk_touches_what_was_planned),
                                        cmocka_unit_test(a_context_that_does_not_fit_is_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
