/* SPDX-License-Identifier: Apache-2.0 */
/* qwen35moe-tiny, its bf16 weights kept, against an independent f32 implementation at every stored length. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/t_engine.h"

static const uint32_t LENGTHS[] = { 1, 7, 40, 64, 65, 300, 1000 };
enum { N_LENGTHS = 7, TOP_K = 4, ALL_UP_TO = 40, LAST = 4 };
#define GOLDEN "tests/data/qwen35moe-tiny/golden.safetensors"

typedef struct {
    const t_tensors *golden;
    uint32_t n, first, vocab, hidden, n_layers;
    double worst_logit, worst_hidden;
    uint32_t router_wrong;
} comparison;

static void compare_logits(void *ctx, uint32_t pos, const float *logits)
{
    comparison *c = ctx;
    const t_tensor *want = t_tensors_get(c->golden, "t%u.logits", c->n);
    for (uint32_t i = 0; i < c->vocab; i++)
        c->worst_logit = fmax(c->worst_logit,
                              fabs((double)logits[i] - t_tensor_f32(want, (uint64_t)(pos - c->first) * c->vocab + i)));
}

static void compare_hidden(void *ctx, uint32_t layer, uint32_t pos, const float *x)
{
    comparison *c = ctx;
    if (layer == c->n_layers || !t_tensors_has(c->golden, "t7.hidden") || c->n != 7)
        return;
    const t_tensor *want = t_tensors_get(c->golden, "t7.hidden");
    for (uint32_t i = 0; i < c->hidden; i++)
        c->worst_hidden = fmax(c->worst_hidden,
            fabs((double)x[i] - t_tensor_f32(want, ((uint64_t)layer * c->n + pos) * c->hidden + i)));
}

static void compare_router(void *ctx, uint32_t layer, uint32_t pos, const uint16_t *ids)
{
    comparison *c = ctx;
    if (c->n > ALL_UP_TO)
        return;
    const t_tensor *want = t_tensors_get(c->golden, "t%u.router_topk", c->n);
    for (uint32_t i = 0; i < TOP_K; i++) {
        const int64_t id = t_tensor_i64(want, ((uint64_t)layer * c->n + pos) * TOP_K + i);
        bool found = false;
        for (uint32_t k = 0; k < TOP_K; k++)
            found |= ids[k] == id;
        c->router_wrong += !found;
    }
}

static void check_length(aegis_engine *e, const t_tensors *golden, uint32_t length)
{
    size_t n = 0;
    aegis_error err;
    aegis_info info;
    aegis_engine_info(e, &info);
    uint32_t *ids = t_ids(t_tensors_get(golden, "t%u.ids", length), &n);
    comparison c = { .golden = golden, .n = length, .vocab = info.vocab_size, .hidden = info.hidden_size,
                     .n_layers = info.n_layers, .first = length <= ALL_UP_TO ? 0 : length - LAST };
    const aegis_watch watch = { .ctx = &c, .logits_from = c.first, .logits = compare_logits,
                                .hidden = compare_hidden, .router = compare_router };
    T_OK(aegis_session_sync(e, ids, n, NULL, &watch, &err), &err);
    printf("t%u: logits %.2e hidden %.2e\n", length, c.worst_logit, c.worst_hidden);
    T_CHECK(c.worst_logit <= (length >= 300 ? 5e-4 : 3e-4));
    T_CHECK(c.worst_hidden <= 3e-4);
    T_CHECK(c.router_wrong == 0);

    if (length != 7 && length != 65) {
        t_free(ids);
        return;
    }
    const t_tensor *greedy = t_tensors_get(golden, "t%u.greedy", length), *margin = t_tensors_get(golden, "t%u.margin", length);
    for (uint64_t i = 0; i < greedy->n_elements; i++) {
        const uint32_t id = (uint32_t)t_tensor_i64(greedy, i);
        if (t_tensor_f32(margin, i) > 0.01f)
            T_CHECK(t_argmax(aegis_session_logits(e), info.vocab_size) == id);
        if (i + 1 < greedy->n_elements)
            T_OK(aegis_session_step(e, id, &err), &err);
    }
    t_free(ids);
}

static void check_all(const char *store, uint32_t chunk)
{
    aegis_options o = t_engine_options(store);
    o.activations = AEGIS_ACTIVATIONS_F32;
    o.chunk = chunk;
    aegis_engine *e = t_engine_open(&o);
    t_tensors *golden = t_tensors_open(GOLDEN);
    for (uint32_t i = 0; i < N_LENGTHS; i++)
        check_length(e, golden, LENGTHS[i]);
    t_tensors_close(golden);
    aegis_engine_close(e);
}

static void tiny_bf16_matches_golden(void **state) { (void)state; check_all(T_STORE_TINY_KEEP, 0); }
static void tiny_bf16_matches_golden_token_by_token(void **state) { (void)state; check_all(T_STORE_TINY_KEEP, 1); }
static void tiny_from_gguf_matches_golden(void **state) { (void)state; check_all(T_STORE_TINY_GGUF, 0); }

/* Fused tensors, and a set of three files, are packed to the same bytes. */
static void tiny_from_a_split_set_is_the_same_store(void **state)
{
    static const char *const files[] = { "dense.bin", "embed.bin", "experts.bin", "mtp.bin", "manifest.json" };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t n_a, n_b;
        char *a = t_read_file(t_path(T_STORE_TINY_GGUF, files[i]), &n_a), *b = t_read_file(t_path(T_STORE_TINY_SPLIT, files[i]), &n_b);
        T_CHECK(n_a > 0 && n_a == n_b && memcmp(a, b, n_a) == 0);
        t_free(a);
        t_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(tiny_bf16_matches_golden),
                                        cmocka_unit_test(tiny_bf16_matches_golden_token_by_token),
                                        cmocka_unit_test(tiny_from_gguf_matches_golden),
                                        cmocka_unit_test(tiny_from_a_split_set_is_the_same_store) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
