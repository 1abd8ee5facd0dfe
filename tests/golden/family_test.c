/* SPDX-License-Identifier: Apache-2.0 */
/* family_test STORE GOLDEN [CODED] - a tiny model against an independent float64 forward pass (tests/data/README.md, models/).
 * The bounds are those of the goldens' makers: f32 activations agree to rounding, with the same experts wherever the choice
 * was not a tie; with the default codes a swap of two near experts moves single positions, so longer prompts are compared by
 * the median and the correlation. One token at a time, in chunks and in one go give the same bits. CODED: the same model
 * packed to 8 bits, whose weights are read with codes; it is compared with its own f32 activations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/t_engine.h"

static const char *store, *golden_path, *coded;
static const uint32_t LENGTHS[] = { 1, 7, 40, 300 };
enum { N_LENGTHS = 4, ALL_UP_TO = 40, LAST = 4, MAX_TOP_K = 16 };
static const float TIE = 1e-4f, CODES_TIE = 0.02f, GREEDY_TIE = 0.01f;

typedef struct {
    const t_tensors *golden;
    uint32_t n, first, vocab, hidden, n_layers, top_k;
    double logit[ALL_UP_TO];       /* largest difference, by compared position */
    double sum_xy, sum_xx, sum_yy; /* of logits, for their correlation         */
    double stream;                 /* largest difference of the residual       */
    bool near_tie[ALL_UP_TO];      /* a choice up to here is open for codes    */
    uint32_t n_argmax_wrong, n_router_wrong, n_router;
} comparison;

static void on_logits(void *ctx, uint32_t pos, const float *logits)
{
    comparison *c = ctx;
    const t_tensor *want = t_tensors_get(c->golden, "logits_%u", c->n);
    const uint32_t row = pos - c->first;
    for (uint32_t i = 0; i < c->vocab; i++) {
        const double x = logits[i], y = t_tensor_f32(want, (uint64_t)row * c->vocab + i);
        c->logit[row] = fmax(c->logit[row], fabs(x - y));
        c->sum_xy += x * y, c->sum_xx += x * x, c->sum_yy += y * y;
    }
    c->n_argmax_wrong += t_argmax(logits, c->vocab) != (uint32_t)t_tensor_i64(t_tensors_get(c->golden, "argmax_%u", c->n), pos);
}

static void on_hidden(void *ctx, uint32_t layer, uint32_t pos, const float *x)
{
    comparison *c = ctx;
    if (c->n != 7)
        return;
    const t_tensor *want = t_tensors_get(c->golden, "streams_7");
    const uint64_t width = want->n_elements / (c->n * (c->n_layers + 1ull)); /* all streams */
    for (uint64_t i = 0; i < width; i++)
        c->stream = fmax(c->stream, fabs((double)x[i] - t_tensor_f32(want, ((uint64_t)layer * c->n + pos) * width + i)));
}

static void on_router(void *ctx, uint32_t layer, uint32_t pos, const uint16_t *ids)
{
    comparison *c = ctx;
    const t_tensor *pick = t_tensors_get(c->golden, "router_%u.%u.pick", c->n, layer);
    const float margin = t_tensor_f32(t_tensors_get(c->golden, "router_%u.%u.margin", c->n, layer), pos);
    for (uint32_t p = pos; margin <= CODES_TIE && p < c->n; p++)
        if (p >= c->first)
            c->near_tie[p - c->first] = true;
    if (margin <= TIE)
        return;
    c->n_router++;
    bool same = true;
    for (uint32_t i = 0; i < c->top_k; i++) {
        bool found = false;
        for (uint32_t k = 0; k < c->top_k; k++)
            found |= ids[k] == t_tensor_i64(pick, (uint64_t)pos * c->top_k + i);
        same &= found;
    }
    c->n_router_wrong += !same;
}

static comparison evaluate(aegis_engine *e, const t_tensors *golden, uint32_t length)
{
    size_t n = 0;
    aegis_error err;
    aegis_info info;
    aegis_engine_info(e, &info);
    uint32_t *ids = t_ids(t_tensors_get(golden, "ids_%u", length), &n);
    comparison c = { .golden = golden, .n = length, .vocab = info.vocab_size, .hidden = info.hidden_size,
                     .n_layers = info.n_layers, .top_k = info.top_k,
                     .first = length <= ALL_UP_TO ? 0 : length - LAST };
    const aegis_watch watch = { .ctx = &c, .logits_from = c.first, .logits = on_logits, .hidden = on_hidden,
                                .router = on_router };
    T_OK(aegis_session_sync(e, ids, n, NULL, &watch, &err), &err);
    t_free(ids);
    return c;
}

static int by_value(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static double worst(const comparison *c)
{
    double w = 0;
    for (uint32_t i = 0; i < c->n - c->first; i++)
        w = fmax(w, c->logit[i]);
    return w;
}

/* The greedy continuation, fed with the golden's own tokens: the best one where it is best by enough. */
static void check_greedy(aegis_engine *e, const t_tensors *golden, const comparison *c)
{
    char name[32];
    aegis_error err;
    snprintf(name, sizeof name, "greedy_%u", c->n);
    if (!t_tensors_has(golden, name))
        return;
    const t_tensor *greedy = t_tensors_get(golden, "greedy_%u", c->n), *gap = t_tensors_get(golden, "greedy_gap_%u", c->n);
    for (uint64_t i = 0; i < greedy->n_elements; i++) {
        const uint32_t id = (uint32_t)t_tensor_i64(greedy, i);
        if (t_tensor_f32(gap, i) > GREEDY_TIE)
            T_CHECK(t_argmax(aegis_session_logits(e), c->vocab) == id);
        if (i + 1 < greedy->n_elements)
            T_OK(aegis_session_step(e, id, &err), &err);
    }
}

static void check_exact(uint32_t chunk)
{
    aegis_options o = t_engine_options(store);
    o.activations = AEGIS_ACTIVATIONS_F32;
    o.kv = AEGIS_KV_F32;
    o.chunk = chunk;
    aegis_engine *e = t_engine_open(&o);
    t_tensors *golden = t_tensors_open(golden_path);
    for (int i = 0; i < N_LENGTHS; i++) {
        const comparison c = evaluate(e, golden, LENGTHS[i]);
        printf("%u tokens: logits %.2e, residual %.2e, %u choices of experts\n", c.n, worst(&c), c.stream, c.n_router);
        T_CHECK(worst(&c) <= (c.n >= 300 ? 5e-4 : 3e-4));
        T_CHECK(c.stream <= 3e-4 * fmax(1, t_tensors_has(golden, "max_abs_7") ? t_tensor_f32(t_tensors_get(golden, "max_abs_7"), c.n_layers) : 1));
        T_CHECK(c.n_router_wrong == 0 && c.n_router > 0 && c.n_argmax_wrong == 0);
        check_greedy(e, golden, &c);
    }
    t_tensors_close(golden);
    aegis_engine_close(e);
}

static void f32_matches_golden(void **state) { (void)state; check_exact(0); }
static void f32_matches_golden_token_by_token(void **state) { (void)state; check_exact(1); }

/* The default: codes of 8 bits. */
static void codes_stay_near_golden(void **state)
{
    (void)state;
    const aegis_options o = t_engine_options(store);
    aegis_engine *e = t_engine_open(&o);
    t_tensors *golden = t_tensors_open(golden_path);
    for (int i = 0; i < N_LENGTHS; i++) {
        comparison c = evaluate(e, golden, LENGTHS[i]);
        const uint32_t n = c.n - c.first;
        double clear = 0;
        for (uint32_t p = 0; p < n; p++)
            clear = c.near_tie[p] ? clear : fmax(clear, c.logit[p]);
        const double correlation = c.sum_xy / sqrt(c.sum_xx * c.sum_yy);
        qsort(c.logit, n, sizeof c.logit[0], by_value);
        printf("%u tokens: logits median %.2e, without near ties %.2e, correlation %.5f\n", c.n, c.logit[n / 2], clear, correlation);
        T_CHECK(c.logit[n / 2] <= 1.0 && correlation > 0.98);
        T_CHECK(c.n > 7 || clear <= 0.5);
    }
    t_tensors_close(golden);
    aegis_engine_close(e);
}

enum { CODED_ROOM = ALL_UP_TO * 1024 };

static void keep_logits(void *ctx, uint32_t pos, const float *logits)
{
    float *all = ctx;
    memcpy(all + (size_t)pos * (size_t)all[CODED_ROOM], logits, (size_t)all[CODED_ROOM] * sizeof(float));
}

/* logits of ids_40, behind them the size of the vocabulary */
static void coded_logits(float *all, aegis_activations activations)
{
    aegis_error err;
    aegis_info info;
    size_t n = 0;
    aegis_options o = t_engine_options(coded);
    o.activations = activations;
    aegis_engine *e = t_engine_open(&o);
    t_tensors *golden = t_tensors_open(golden_path);
    uint32_t *ids = t_ids(t_tensors_get(golden, "ids_40"), &n);
    aegis_engine_info(e, &info);
    T_CHECK(info.vocab_size <= CODED_ROOM / ALL_UP_TO);
    all[CODED_ROOM] = (float)info.vocab_size;
    const aegis_watch watch = { .ctx = all, .logits = keep_logits };
    T_OK(aegis_session_sync(e, ids, n, NULL, &watch, &err), &err);
    t_free(ids);
    t_tensors_close(golden);
    aegis_engine_close(e);
}

/* Median over positions of the largest difference. */
static double coded_difference(const float *x, const float *exact)
{
    const uint32_t vocab = (uint32_t)exact[CODED_ROOM];
    double most[ALL_UP_TO] = { 0 };
    for (uint32_t p = 0; p < ALL_UP_TO; p++)
        for (uint32_t i = 0; i < vocab; i++)
            most[p] = fmax(most[p], fabs((double)x[p * vocab + i] - (double)exact[p * vocab + i]));
    qsort(most, ALL_UP_TO, sizeof most[0], by_value);
    return most[ALL_UP_TO / 2];
}

static void codes_of_activations_stay_near_f32(void **state)
{
    (void)state;
    if (coded == NULL)
        skip();
    float *exact = calloc(2 * (CODED_ROOM + 1), sizeof *exact), *x = exact + CODED_ROOM + 1;
    T_CHECK(exact != NULL);
    coded_logits(exact, AEGIS_ACTIVATIONS_F32);
    coded_logits(x, AEGIS_ACTIVATIONS_INT16);
    const double wide = coded_difference(x, exact);
    coded_logits(x, AEGIS_ACTIVATIONS_INT8);
    const double narrow = coded_difference(x, exact);
    printf("packed to 8 bits: median difference of logits by int16 %.2e, by int8 %.2e\n", wide, narrow);
    T_CHECK(wide > 0 && wide <= 0.02 && narrow > wide && narrow <= 1.0);
    free(exact);
}

static void chunks_do_not_show(void **state)
{
    (void)state;
    static const uint32_t chunks[] = { 0, 1, 3, 16 };
    t_tensors *golden = t_tensors_open(golden_path);
    size_t n = 0;
    uint32_t *ids = t_ids(t_tensors_get(golden, "ids_40"), &n);
    uint64_t first = 0;
    for (int i = 0; i < 4; i++) {
        aegis_options o = t_engine_options(store);
        o.chunk = chunks[i];
        aegis_engine *e = t_engine_open(&o);
        const uint64_t hash = t_logits_hash(e, ids, n, 4);
        aegis_engine_close(e);
        first = i == 0 ? hash : first;
        T_CHECK(hash == first);
    }
    t_free(ids);
    t_tensors_close(golden);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4)
        return 2;
    store = argv[1];
    golden_path = argv[2];
    coded = argc == 4 ? argv[3] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_matches_golden), cmocka_unit_test(f32_matches_golden_token_by_token),
        cmocka_unit_test(codes_stay_near_golden), cmocka_unit_test(codes_of_activations_stay_near_f32),
        cmocka_unit_test(chunks_do_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
