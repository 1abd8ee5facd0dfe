/* SPDX-License-Identifier: Apache-2.0 */
#include "support/t_engine.h"

#include <math.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

aegis_options t_engine_options(const char *store)
{
    return (aegis_options){ .store = store, .memory_bytes = 512u << 20, .n_threads = 2 };
}

aegis_engine *t_engine_open(const aegis_options *options)
{
    aegis_engine *e = NULL;
    aegis_error err;
    T_OK(aegis_engine_open(&e, options, &err), &err);
    return e;
}

uint32_t *t_ids(const t_tensor *t, size_t *n)
{
    uint32_t *ids = malloc((size_t)t->n_elements * sizeof *ids);
    T_CHECK(ids != NULL);
    for (uint64_t i = 0; i < t->n_elements; i++)
        ids[i] = (uint32_t)t_tensor_i64(t, i);
    *n = (size_t)t->n_elements;
    return ids;
}

uint32_t t_argmax(const float *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

double t_log_prob(const float *logits, uint32_t n, uint32_t id)
{
    /* Not fmax in double: vectorising that crashes gcc 12 for arm64. */
    const double top = logits[t_argmax(logits, n)];
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += exp(logits[i] - top);
    return logits[id] - top - log(sum);
}

typedef struct {
    XXH3_state_t *state;
    uint32_t vocab_size;
} hasher;

static void hash_logits(void *ctx, uint32_t pos, const float *logits)
{
    const hasher *h = ctx;
    (void)pos;
    XXH3_64bits_update(h->state, logits, h->vocab_size * sizeof logits[0]);
}

uint64_t t_logits_hash(aegis_engine *e, const uint32_t *ids, size_t n, uint32_t n_steps)
{
    aegis_error err;
    aegis_info info;
    aegis_engine_info(e, &info);
    hasher h = { .state = XXH3_createState(), .vocab_size = info.vocab_size };
    XXH3_64bits_reset(h.state);
    const aegis_watch watch = { .ctx = &h, .logits = hash_logits };
    T_OK(aegis_session_sync(e, ids, n, NULL, &watch, &err), &err);
    for (uint32_t i = 0; i < n_steps; i++) {
        T_OK(aegis_session_step(e, t_argmax(aegis_session_logits(e), info.vocab_size), &err), &err);
        hash_logits(&h, 0, aegis_session_logits(e));
    }
    const uint64_t hash = XXH3_64bits_digest(h.state);
    XXH3_freeState(h.state);
    return hash;
}
