/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of Xing4.0, whole, against an independent float64 implementation (tests/data/README.md): latent attention of one
 * token behind a cache, the hyper-connection, and the YaRN table. */
#include <math.h>

#include "model/blocks/hyper.h"
#include "model/blocks/mla.h"
#include "support/t.h"
#include "support/t_tensors.h"

#define GOLDEN "tests/data/xing4-tiny/pieces.safetensors"
enum { S = AEG_HYPER_STREAMS, HIDDEN = 256, N_HEADS = 4, NOPE = 32, ROPE = 32, LATENT = 64, ROW = LATENT + ROPE, V_DIM = 32,
       Q_LORA = 64, N_BEFORE = 23, N_CTX = 24 };
static const double TOLERANCE = 1e-5;

static const aeg_hparams HP = {
    .hidden_size = HIDDEN, .n_heads = N_HEADS, .rms_eps = 1e-6f, .q_lora = Q_LORA, .kv_lora = LATENT, .qk_nope = NOPE,
    .qk_rope = ROPE, .v_dim = V_DIM, .rope_dim = ROPE, .rope_theta = 1e4, .rope_interleaved = true, .yarn_factor = 64,
    .yarn_orig_ctx = 4096, .yarn_beta_fast = 32, .yarn_beta_slow = 1, .yarn_mscale = 1, .yarn_mscale_all = 1,
    .hc_streams = S, .hc_iters = 20, .hc_eps = 1e-6f, .hc_clamp = 30,
};

static t_tensors *golden;
static aeg_kernels kernels;
static aeg_arena arena;

static int open_golden(void **state)
{
    (void)state;
    golden = t_tensors_open(GOLDEN);
    aeg_kernels_init(&kernels, aeg_cpu_detect());
    arena = t_arena(8 << 20);
    return 0;
}

static int close_golden(void **state)
{
    (void)state;
    aeg_arena_unmap(&arena);
    t_tensors_close(golden);
    return 0;
}

static float *load(const char *name)
{
    const t_tensor *t = t_tensors_get(golden, "%s", name);
    float *x = AEG_ARENA_ARRAY(&arena, float, t->n_elements);
    T_CHECK(x != NULL);
    for (uint64_t i = 0; i < t->n_elements; i++)
        x[i] = t_tensor_f32(t, i);
    return x;
}

static double worst(const float *got, const char *name, size_t n)
{
    const t_tensor *t = t_tensors_get(golden, "%s", name);
    double most = 0;
    T_CHECK(n == t->n_elements);
    for (size_t i = 0; i < n; i++) {
        const double want = t_tensor_f32(t, i);
        most = fmax(most, fabs(got[i] - want) / fmax(1.0, fabs(want)));
    }
    return most;
}

/* A golden matrix as f32 tiles: for each column the 16 rows of a block. */
static aeg_weights pack(const char *name, uint32_t rows, uint32_t cols)
{
    const float *x = load(name);
    const aeg_weight_type type = { .kind = AEG_W_F32 };
    float *tiles = aeg_arena_alloc(&arena, aeg_matrix_bytes(type, rows, cols), AEG_CACHE_LINE);
    T_CHECK(tiles != NULL);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < cols; c++)
            tiles[((size_t)(r / AEG_ROWS) * cols + c) * AEG_ROWS + r % AEG_ROWS] = x[(size_t)r * cols + c];
    return (aeg_weights){ .type = type, .n_rows = rows, .n_cols = cols, .block_stride = aeg_block_bytes(type, cols),
                          .data = (const uint8_t *)tiles };
}

static void yarn_table_matches(void **state)
{
    (void)state;
    aeg_rope rope;
    aeg_rope_init(&rope, &arena, &HP, 1);
    const t_tensor *want = t_tensors_get(golden, "rope.inv_freq");
    for (uint32_t i = 0; i < ROPE / 2; i++)
        T_CHECK(fabs(rope.inv_freq[i] / (double)t_tensor_f32(want, i) - 1) < 1e-6);
    T_CHECK(fabs(aeg_mla_scale(&HP) - (double)t_tensor_f32(t_tensors_get(golden, "mla.scale"), 0)) < 1e-7);
}

static void latent_attention_matches(void **state)
{
    (void)state;
    const aeg_compute c = { .kernels = &kernels, .act = AEG_ACT_F32 };
    const aeg_mla_weights w = {
        .q_a = pack("mla.w.q_a", Q_LORA, HIDDEN), .q_b = pack("mla.w.q_b", N_HEADS * (NOPE + ROPE), Q_LORA),
        .kv_a = pack("mla.w.kv_a", ROW, HIDDEN), .k_b = pack("mla.w.k_b", N_HEADS * LATENT, NOPE),
        .v_b = pack("mla.w.v_b", N_HEADS * V_DIM, LATENT), .o = pack("mla.w.o", HIDDEN, N_HEADS * V_DIM),
        .q_a_norm = load("mla.w.q_a_norm"), .kv_a_norm = load("mla.w.kv_a_norm"),
    };
    const aeg_kv_config cfg = { .n_layers = 1, .n_kv_heads = 1, .head_dim = ROW, .latent = LATENT, .n_ctx = N_CTX, .kind = AEG_KV_F32 };
    aeg_kv kv;
    aeg_rope rope;
    aeg_mla_scratch scratch;
    aeg_act_room room;
    float *before = load("mla.cache"), y[HIDDEN];
    T_OK(aeg_kv_init(&kv, &arena, &cfg, NULL), NULL);
    for (uint32_t p = 0; p < N_BEFORE; p++)
        aeg_kv_append(&kv, &kernels, 0, 0, p, before + (size_t)p * ROW, NULL);
    aeg_rope_init(&rope, &arena, &HP, 1);
    aeg_rope_fill(&rope, N_BEFORE, 1);
    aeg_mla_scratch_init(&scratch, &arena, &HP, AEG_ACT_F32, &cfg, 1, 1);
    aeg_act_room_init(&room, &arena, AEG_ACT_F32, 1, HIDDEN);
    const aeg_mla_args args = { .c = &c, .hp = &HP, .w = &w, .kv = &kv, .rope = &rope, .s = &scratch, .room = &room,
                                .u = load("mla.u"), .n = 1, .pos0 = N_BEFORE, .y = y };
    aeg_mla_forward(&args);
    T_CHECK(worst((const float *)kv.k + N_BEFORE * ROW, "mla.new_row", ROW) <= TOLERANCE);
    T_CHECK(worst(scratch.o, "mla.heads_out", N_HEADS * V_DIM) <= TOLERANCE);
    T_CHECK(worst(y, "mla.y", HIDDEN) <= TOLERANCE);
}

static void hyper_connection_matches(void **state)
{
    (void)state;
    enum { N = 7 };
    const aeg_compute c = { .kernels = &kernels, .act = AEG_ACT_F32 };
    const aeg_hyper_weights w = { .fn = pack("hc.fn", AEG_HYPER_GATES, S * HIDDEN), .base = load("hc.base"), .scale = load("hc.scale") };
    aeg_hyper_scratch scratch;
    float norm[HIDDEN], *u = AEG_ARENA_ARRAY(&arena, float, N * HIDDEN);
    for (int i = 0; i < HIDDEN; i++)
        norm[i] = 1.0f;
    aeg_hyper_scratch_init(&scratch, &arena, &HP, N);
    const aeg_hyper h = { .c = &c, .hp = &HP, .s = &scratch, .x = load("hc.x"), .n = N };
    aeg_hyper_leave(&h, NULL, &w);
    aeg_hyper_enter(&h, &w, norm, u);
    T_CHECK(worst(scratch.collapsed, "hc.collapsed", N * HIDDEN) <= TOLERANCE);
    aeg_hyper_leave(&h, load("hc.sublayer_out"), NULL);
    T_CHECK(worst(h.x, "hc.out", N * S * HIDDEN) <= TOLERANCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yarn_table_matches),
        cmocka_unit_test(latent_attention_matches),
        cmocka_unit_test(hyper_connection_matches),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
