/* SPDX-License-Identifier: Apache-2.0 */
/* Tiny models with latent attention (DeepSeek-V3 with groups of experts, V2-Lite's shape, Xing4.0 with hyper-connections),
 * their bf16 weights kept, against an independent float64 implementation at every stored length. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/t_engine.h"

typedef struct {
    const char *name, *store, *golden;
    uint32_t first_router;   /* number of the first router in the golden's names */
} subject;

static const subject subjects[] = {
    { "deepseek2", T_STORE_DEEPSEEK2, "tests/data/models/deepseek2-tiny-hf/golden.safetensors", 0 },
    { "lite", T_STORE_DEEPSEEK2_LITE, "tests/data/models/deepseek2-lite-hf/golden.safetensors", 0 },
    { "xing4", T_STORE_XING4, "tests/data/models/xing4-tiny-hf/golden.safetensors", 0 },
    { "loud xing4", T_STORE_XING4_LOUD, "tests/data/models/xing4-loud-hf/golden.safetensors", 0 },
    { "xing4 GGUF", T_STORE_XING4_GGUF, "tests/data/models/xing4-gguf/golden.safetensors", 1 },
    { "legacy deepseek2 GGUF", T_STORE_DEEPSEEK2_GGUF, "tests/data/models/deepseek2-gguf/golden.safetensors", 1 },
};
enum { N_SUBJECTS = sizeof subjects / sizeof subjects[0], N_LENGTHS = 4, ALL_UP_TO = 40, LAST = 4, N_PLAIN = 3 /* the first subjects: nothing loud, nothing quantised */ };
static const uint32_t LENGTHS[N_LENGTHS] = { 1, 7, 40, 300 };
static const float CLEAR = 1e-4f; /* of an expert's margin: closer ones may go either way */

typedef struct {
    const t_tensors *golden;
    aegis_info info;
    uint32_t n, first, first_router;
    double worst_logit, worst_hidden; /* hidden: as a share of the layer's largest number, where that is above 1 */
    double largest;
    uint32_t router_wrong, argmax_wrong;
} comparison;

static void compare_logits(void *ctx, uint32_t pos, const float *logits)
{
    comparison *c = ctx;
    const uint32_t vocab = c->info.vocab_size;
    const t_tensor *want = t_tensors_get(c->golden, "logits_%u", c->n);
    for (uint32_t i = 0; i < vocab; i++)
        c->worst_logit = fmax(c->worst_logit,
                              fabs((double)logits[i] - t_tensor_f32(want, (uint64_t)(pos - c->first) * vocab + i)));
    c->argmax_wrong += t_argmax(logits, vocab) != t_tensor_i64(t_tensors_get(c->golden, "argmax_%u", c->n), pos);
}

static void compare_hidden(void *ctx, uint32_t layer, uint32_t pos, const float *x)
{
    comparison *c = ctx;
    const uint32_t width = c->info.n_streams * c->info.hidden_size;
    if (c->n != 7)
        return;
    const t_tensor *want = t_tensors_get(c->golden, "streams_7");
    T_CHECK(want->n_elements == (uint64_t)(c->info.n_layers + 1) * c->n * width);
    const double largest = t_tensor_f32(t_tensors_get(c->golden, "max_abs_7"), layer);
    for (uint32_t i = 0; i < width; i++)
        c->worst_hidden = fmax(c->worst_hidden, fabs((double)x[i] - t_tensor_f32(want, ((uint64_t)layer * c->n + pos) * width + i)) /
                                                    fmax(1.0, largest));
    c->largest = fmax(c->largest, largest);
}

static void compare_router(void *ctx, uint32_t layer, uint32_t pos, const uint16_t *ids)
{
    comparison *c = ctx;
    const uint32_t block = layer - c->info.n_dense_layers + c->first_router, k = c->info.top_k;
    const t_tensor *want = t_tensors_get(c->golden, "router_%u.%u.pick", c->n, block);
    if (t_tensor_f32(t_tensors_get(c->golden, "router_%u.%u.margin", c->n, block), pos) <= CLEAR)
        return;
    for (uint32_t i = 0; i < k; i++) {
        bool found = false;
        for (uint32_t j = 0; j < k; j++)
            found |= ids[j] == t_tensor_i64(want, (uint64_t)pos * k + i);
        c->router_wrong += !found;
    }
}

static void check_greedy(aegis_engine *e, const comparison *c)
{
    const t_tensor *greedy = t_tensors_get(c->golden, "greedy_%u", c->n), *gap = t_tensors_get(c->golden, "greedy_gap_%u", c->n);
    aegis_error err;
    for (uint64_t i = 0; i < greedy->n_elements; i++) {
        const uint32_t id = (uint32_t)t_tensor_i64(greedy, i);
        if (t_tensor_f32(gap, i) > 0.01f)
            T_CHECK(t_argmax(aegis_session_logits(e), c->info.vocab_size) == id);
        if (i + 1 < greedy->n_elements)
            T_OK(aegis_session_step(e, id, &err), &err);
    }
}

static void check_length(aegis_engine *e, const subject *s, const t_tensors *golden, uint32_t length)
{
    size_t n = 0;
    aegis_error err;
    comparison c = { .golden = golden, .n = length, .first_router = s->first_router, .first = length <= ALL_UP_TO ? 0 : length - LAST };
    aegis_engine_info(e, &c.info);
    uint32_t *ids = t_ids(t_tensors_get(golden, "ids_%u", length), &n);
    const aegis_watch watch = { .ctx = &c, .logits_from = c.first, .logits = compare_logits,
                                .hidden = compare_hidden, .router = compare_router };
    T_OK(aegis_session_sync(e, ids, n, NULL, &watch, &err), &err);
    printf("%s, %u tokens: logits %.2e streams %.2e (largest %.1f)\n", s->name, length, c.worst_logit, c.worst_hidden, c.largest);
    T_CHECK(c.worst_logit <= (length >= 300 ? 5e-4 : 3e-4));
    T_CHECK(c.worst_hidden <= 3e-4);
    T_CHECK(c.router_wrong == 0);
    T_CHECK(c.argmax_wrong == 0);
    if (length == 7 || length == 40)
        check_greedy(e, &c);
    t_free(ids);
}

static aegis_options options_of(const subject *s)
{
    aegis_options o = t_engine_options(s->store);
    o.activations = AEGIS_ACTIVATIONS_F32;
    o.kv = AEGIS_KV_F32;
    return o;
}

static void check_all(uint32_t chunk)
{
    for (int i = 0; i < N_SUBJECTS; i++) {
        aegis_options o = options_of(&subjects[i]);
        o.chunk = chunk;
        aegis_engine *e = t_engine_open(&o);
        t_tensors *golden = t_tensors_open(subjects[i].golden);
        for (int l = 0; l < N_LENGTHS; l++)
            check_length(e, &subjects[i], golden, LENGTHS[l]);
        t_tensors_close(golden);
        aegis_engine_close(e);
    }
}

static void latent_models_match_golden(void **state) { (void)state; check_all(0); }
static void latent_models_match_golden_token_by_token(void **state) { (void)state; check_all(1); }
static void latent_models_match_golden_in_chunks_of_96(void **state) { (void)state; check_all(96); }

/* Over 40 positions: the median of the largest difference to the golden logits, and the correlation of all of them. A random
 * model swaps experts at the smallest rounding, which moves a position by several units: no bound on the largest. */
typedef struct {
    double median, correlation;
} closeness;

static closeness close_to_golden(const subject *s, aegis_kv kv, aegis_activations activations)
{
    enum { N = 40 };
    aegis_options o = t_engine_options(s->store);
    aegis_error err;
    aegis_info info;
    size_t n = 0;
    double sorted[N], xy = 0, xx = 0, yy = 0;
    o.kv = kv;
    o.activations = activations;
    aegis_engine *e = t_engine_open(&o);
    aegis_engine_info(e, &info);
    t_tensors *golden = t_tensors_open(s->golden);
    const t_tensor *want = t_tensors_get(golden, "logits_40");
    uint32_t *ids = t_ids(t_tensors_get(golden, "ids_40"), &n);
    for (int t = 0; t < N; t++) {
        T_OK(t == 0 ? aegis_session_sync(e, ids, 1, NULL, NULL, &err) : aegis_session_step(e, ids[t], &err), &err);
        const float *got = aegis_session_logits(e);
        double worst = 0;
        for (uint32_t i = 0; i < info.vocab_size; i++) {
            const double x = got[i], y = t_tensor_f32(want, (uint64_t)t * info.vocab_size + i);
            worst = fmax(worst, fabs(x - y));
            xy += x * y;
            xx += x * x;
            yy += y * y;
        }
        int at = t;
        for (; at > 0 && sorted[at - 1] > worst; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = worst;
    }
    t_free(ids);
    t_tensors_close(golden);
    aegis_engine_close(e);
    return (closeness){ .median = sorted[N / 2], .correlation = xy / sqrt(xx * yy) };
}

/* Short prompts only: later a single swap of experts decides (the models' README says 0.5 with equal choices). */
static void default_activations_stay_close_on_short_prompts(void **state)
{
    (void)state;
    for (int i = 0; i < N_SUBJECTS; i++) {
        if (subjects[i].first_router == 0)
            continue; /* plain weights are multiplied with f32 either way */
        const aegis_options o = t_engine_options(subjects[i].store);
        aegis_engine *e = t_engine_open(&o);
        t_tensors *golden = t_tensors_open(subjects[i].golden);
        for (int l = 0; l < 2; l++) {
            size_t n = 0;
            aegis_error err;
            comparison c = { .golden = golden, .n = LENGTHS[l], .first_router = subjects[i].first_router };
            aegis_engine_info(e, &c.info);
            uint32_t *ids = t_ids(t_tensors_get(golden, "ids_%u", c.n), &n);
            const aegis_watch watch = { .ctx = &c, .logits = compare_logits, .router = compare_router };
            T_OK(aegis_session_sync(e, ids, n, NULL, &watch, &err), &err);
            printf("%s, int8 activations, %u tokens: logits %.2e\n", subjects[i].name, c.n, c.worst_logit);
            T_CHECK(c.worst_logit < 0.5 && c.worst_logit > 1e-3);
            T_CHECK(c.router_wrong == 0);
            t_free(ids);
        }
        t_tensors_close(golden);
        aegis_engine_close(e);
    }
}

static void loud_streams_pass_what_f16_holds(void **state)
{
    (void)state;
    t_tensors *golden = t_tensors_open("tests/data/models/xing4-loud-hf/golden.safetensors");
    const t_tensor *largest = t_tensors_get(golden, "max_abs_7");
    T_CHECK(t_tensor_f32(largest, largest->n_elements - 1) > 65504.0f);
    t_tensors_close(golden);
}

static void cache_types_cost_what_they_should(void **state)
{
    (void)state;
    for (int i = 0; i < N_PLAIN; i++) {
        const closeness f16 = close_to_golden(&subjects[i], AEGIS_KV_F16, AEGIS_ACTIVATIONS_F32);
        const closeness q8 = close_to_golden(&subjects[i], AEGIS_KV_Q8, AEGIS_ACTIVATIONS_F32);
        printf("%s: median error and correlation, f16 rows %.2e %.6f, q8 rows %.2e %.6f\n", subjects[i].name, f16.median,
               f16.correlation, q8.median, q8.correlation);
        T_CHECK(f16.median > 1e-6 && f16.median < 0.05 && f16.correlation > 0.999);
        T_CHECK(q8.median > f16.median && q8.correlation > 0.95);
    }
}

static void other_cache_types_are_refused_by_name(void **state)
{
    (void)state;
    static const struct { aegis_kv kv; const char *name; } types[] = { { AEGIS_KV_T4, "t4" }, { AEGIS_KV_T3, "t3" } };
    for (int i = 0; i < 2; i++) {
        aegis_options o = t_engine_options(T_STORE_DEEPSEEK2);
        aegis_error err;
        aegis_engine *e = NULL;
        o.kv = types[i].kv;
        T_FAILS(aegis_engine_open(&e, &o, &err), &err, AEGIS_E_USAGE, types[i].name);
        T_CHECK(strstr(err.message, "f32, f16 or q8") != NULL);
    }
}

/* A second, shorter request on the same cache must not see the first one's rows. */
static void a_shorter_request_sees_nothing_of_the_one_before(void **state)
{
    (void)state;
    static const aegis_kv kinds[] = { AEGIS_KV_F32, AEGIS_KV_F16, AEGIS_KV_Q8 };
    for (int i = 0; i < N_SUBJECTS; i++)
        for (int k = 0; k < 3; k++) {
            aegis_options o = t_engine_options(subjects[i].store);
            size_t n = 0, n_long = 0;
            o.kv = kinds[k];
            t_tensors *golden = t_tensors_open(subjects[i].golden);
            uint32_t *ids = t_ids(t_tensors_get(golden, "ids_40"), &n), *longer = t_ids(t_tensors_get(golden, "ids_300"), &n_long);
            aegis_engine *e = t_engine_open(&o);
            const uint64_t fresh = t_logits_hash(e, ids, n, 4);
            t_logits_hash(e, longer, n_long, 4);
            T_CHECK(t_logits_hash(e, ids, n, 4) == fresh);
            aegis_engine_close(e);
            t_free(ids);
            t_free(longer);
            t_tensors_close(golden);
        }
}

/* Decoding walks a long context in rounds, prefill in one go: the same bits. 4096 positions are a round. */
static void a_step_behind_a_long_context_equals_prefill(void **state)
{
    (void)state;
    enum { N = 4700 };
    static uint32_t ids[N];
    static float stepped[4096];
    aegis_options o = t_engine_options(T_STORE_XING4);
    aegis_error err;
    aegis_info info;
    o.n_ctx = N;
    o.chunk = 512;
    aegis_engine *e = t_engine_open(&o);
    aegis_engine_info(e, &info);
    for (uint32_t i = 0; i < N; i++)
        ids[i] = (i * 2654435761u + 12345u) % info.vocab_size;
    T_OK(aegis_session_sync(e, ids, N - 1, NULL, NULL, &err), &err);
    T_OK(aegis_session_step(e, ids[N - 1], &err), &err);
    memcpy(stepped, aegis_session_logits(e), info.vocab_size * sizeof(float));
    ids[0] ^= 1; /* start anew */
    T_OK(aegis_session_sync(e, ids, 2, NULL, NULL, &err), &err);
    ids[0] ^= 1;
    T_OK(aegis_session_sync(e, ids, N, NULL, NULL, &err), &err);
    T_CHECK(memcmp(stepped, aegis_session_logits(e), info.vocab_size * sizeof(float)) == 0);
    aegis_engine_close(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latent_models_match_golden),
        cmocka_unit_test(latent_models_match_golden_token_by_token),
        cmocka_unit_test(latent_models_match_golden_in_chunks_of_96),
        cmocka_unit_test(default_activations_stay_close_on_short_prompts),
        cmocka_unit_test(loud_streams_pass_what_f16_holds),
        cmocka_unit_test(cache_types_cost_what_they_should),
        cmocka_unit_test(other_cache_types_are_refused_by_name),
        cmocka_unit_test(a_step_behind_a_long_context_equals_prefill),
        cmocka_unit_test(a_shorter_request_sees_nothing_of_the_one_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
