/* SPDX-License-Identifier: Apache-2.0 */
/* self_check.c - known inputs through every entry of a table, against scalar, bit for bit.
 *
 * A processor or compiler that computes differently must not quietly change the tokens. Sizes are small (all of
 * it takes about a millisecond) but cover each kernel's unrolled body and its rest. Inputs live on the stack.
 */
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/planes.h"

enum {
    N = 80,                                      /* a body of four vectors and one more */
    N_CODES = 128,
    DK = 8, DV = 96, N_TOKENS = 2,               /* six strips: one group and a rest    */
    N_REP = 5, N_POS = 21, HEAD_DIM = 80,
    CODE_DIM = 64, CODE_REP = 2, CODE_TOKENS = 2, CODE_ROWS = 32, /* rows of codes: 22 seen, in whole groups */
    CODE_SCRATCH = CODE_TOKENS * CODE_REP * (6 * AEG_ATTN_BLOCK + 4 * CODE_DIM + 28) + AEG_ATTN_VALUE_TILE * CODE_DIM + 64,
    LATENT_POS = 13,
    N_COLS = 128, GROUP = 64, N_ROWS_X = 3,
    B_COLS = AEG_BLOCK_MAX_COLS,                 /* columns of the ggml types; three tokens read the same row */
    WEIGHT_BYTES = 4096 * 3,                     /* 128 f32 columns of 16 rows, 2 tiles of 8 bits, or one of F8 */
};

typedef struct {
    float x[4][N], wide[4 * N], kv[2][N_POS * HEAD_DIM];
    uint16_t kv16[2][N_POS * HEAD_DIM];
    int8_t codes[3][CODE_ROWS * CODE_DIM];
    _Alignas(64) uint8_t codes_scratch[CODE_SCRATCH];
    _Alignas(64) uint8_t weights[WEIGHT_BYTES];
    float acts[N_ROWS_X * N_COLS], scratch[N_REP * AEG_ATTN_BLOCK];
} inputs;

/* Everything one op writes; cleared before each run, so that unused parts compare equal. */
typedef struct {
    float f[DK * DV + N_TOKENS * DV];
    float g[N_REP * HEAD_DIM];
    int16_t codes[N_ROWS_X * N_COLS];
} answers;

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static float next_value(uint32_t *seed) { return ((float)next_random(seed) / 8388608.0f - 1.0f) * 3.0f; }

static void fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = next_value(&seed);
}

static void make_inputs(inputs *in)
{
    memset(in, 0, sizeof *in);
    for (uint32_t i = 0; i < 4; i++)
        fill(in->x[i], N, 11 + i);
    fill(in->wide, 4 * N, 21);
    for (uint32_t i = 0; i < 2; i++) {
        fill(in->kv[i], N_POS * HEAD_DIM, 31 + i);
        for (uint32_t j = 0; j < N_POS * HEAD_DIM; j++)
            in->kv16[i][j] = aeg_f16_from_f32(in->kv[i][j]);
    }
    fill(in->acts, N_ROWS_X * N_COLS, 41);
    uint32_t seed = 61;
    for (uint32_t i = 0; i < 3 * CODE_ROWS * CODE_DIM; i++)
        in->codes[i / (CODE_ROWS * CODE_DIM)][i % (CODE_ROWS * CODE_DIM)] = (int8_t)(next_random(&seed) % 255 - 127);
}

#define CHECK_OP(name) static void check_##name(const aeg_kernels *k, inputs *in, answers *out)

CHECK_OP(rmsnorm) { k->rmsnorm(out->f, in->x[0], in->x[1], N, 1e-6f); }
CHECK_OP(rmsnorm_gated) { k->rmsnorm_gated(out->f, in->x[0], in->x[1], in->x[2], N, 1e-6f); }
CHECK_OP(silu_mul) { k->silu_mul(out->f, in->x[0], in->x[1], N - 3); }
CHECK_OP(dot) { out->f[0] = k->dot(in->x[0], in->x[1], N); }
CHECK_OP(store_f16) { k->store_f16((uint16_t *)out->codes, in->x[0], N - 3); }
CHECK_OP(conv4_silu) { k->conv4_silu(out->f, in->x[0], in->x[1], in->x[2], in->x[3], in->wide, N - 3); }
CHECK_OP(gdn_gates) { k->gdn_gates(out->f, out->g, in->x[0], in->x[1], in->x[2], in->x[3], N - 3); }

CHECK_OP(l2norm)
{
    memcpy(out->f, in->x[0], sizeof in->x[0]);
    k->l2norm(out->f, N, 1e-6f, 0.125f);
}

CHECK_OP(sigmoid_mul)
{
    memcpy(out->f, in->x[0], sizeof in->x[0]);
    k->sigmoid_mul(out->f, in->x[1], N - 3);
}

CHECK_OP(add)
{
    memcpy(out->f, in->x[0], sizeof in->x[0]);
    k->add(out->f, in->x[1], N - 3);
}

CHECK_OP(axpy)
{
    memcpy(out->f, in->x[0], sizeof in->x[0]);
    k->axpy(out->f, 0.7f, in->x[1], N - 3);
}

CHECK_OP(router) { k->router((uint16_t *)out->codes, out->f, in->x[0], N - 3, 6, 1, in->scratch); }

CHECK_OP(rope)
{
    memcpy(out->f, in->wide, sizeof in->wide);
    k->rope(out->f, in->x[0], in->x[1], N - 3);
}

CHECK_OP(rope_pairs)
{
    memcpy(out->f, in->wide, sizeof in->wide);
    k->rope_pairs(out->f, in->x[0], in->x[1], N - 3);
}

CHECK_OP(route)
{
    const aeg_route_args a = { .logits = in->x[0], .bias = in->x[1], .n = 75, .top_k = 6, .n_groups = 5, .top_groups = 3,
                               .sigmoid = true, .renormalise = true, .group_top2 = true, .scale = 2.5f,
                               .scratch = in->scratch, .ids = (uint16_t *)out->codes, .weights = out->f };
    k->route(&a);
}

CHECK_OP(hyper_dots)
{
    enum { HIDDEN = 20, COLUMN = 4 };
    for (size_t i = 0; i < (size_t)2 * AEG_ROWS * 4 * HIDDEN; i++)
        ((uint16_t *)(void *)in->weights)[i] = aeg_bf16_from_f32(in->kv[i % 2][i / 2]);
    const aeg_weights fn = { .type = { .kind = AEG_W_BF16 }, .n_rows = AEG_HYPER_GATES, .n_cols = 4 * HIDDEN,
                             .block_stride = 32 * 4 * HIDDEN, .data = in->weights };
    const aeg_hyper_dots_args a = { .fn = &fn, .x = in->wide, .stride = HIDDEN, .column = COLUMN, .n = HIDDEN - COLUMN,
                                    .dots = out->f };
    k->hyper_dots(&a);
}

CHECK_OP(hyper_gates)
{
    aeg_hyper_gates gates;
    const aeg_hyper_args a = { .dots = in->x[0], .base = in->x[1], .scale = in->x[2], .sum_squares = 50.0f, .width = N,
                               .rms_eps = 1e-6f, .clamp = 2.5f, .eps = 1e-6f, .iters = 20, .out = &gates };
    k->hyper_gates(&a);
    memcpy(out->f, &gates, sizeof gates);
}

CHECK_OP(hyper_collapse) { k->hyper_collapse(out->f, in->wide, N, in->x[0], N - 3); }

CHECK_OP(hyper_update)
{
    aeg_hyper_gates gates;
    memcpy(&gates, in->x[1], sizeof gates);
    memcpy(out->f, in->wide, sizeof in->wide);
    k->hyper_update(out->f, N, in->x[0], &gates, N - 3);
}

CHECK_OP(gdn)
{
    float decay[N_TOKENS], beta[N_TOKENS];
    for (uint32_t t = 0; t < N_TOKENS; t++) {
        decay[t] = 0.75f + 0.125f * (float)t;
        beta[t] = 0.5f - 0.2f * (float)t;
    }
    memcpy(out->f, in->kv[0], sizeof(float) * DK * DV);
    const aeg_gdn_args a = {
        .state = out->f, .q = in->x[0], .k = in->x[1], .q_stride = DK, .k_stride = DK, .v = in->wide, .v_stride = DV,
        .decay = decay, .beta = beta, .decay_stride = 1, .beta_stride = 1,
        .o = out->f + DK * DV, .o_stride = DV, .dk = DK, .dv = DV, .n_tokens = N_TOKENS,
    };
    k->gdn(&a, 0, DV / AEG_GDN_STRIP);
}

static aeg_attn_args attention(inputs *in, answers *out, const void *keys, const void *values, size_t size)
{
    return (aeg_attn_args){
        .n_tokens = 1, .q = in->kv[0] + 7, .q_stride = HEAD_DIM, .k = keys, .v = values, .kv_stride = HEAD_DIM * size,
        .n_rep = N_REP, .n_pos = N_POS, .head_dim = HEAD_DIM, .scale = 0.11f,
        .out_m = out->f, .out_l = out->f + N_REP, .acc = out->g, .scratch = in->scratch,
    };
}

CHECK_OP(attn_f32)
{
    const aeg_attn_args a = attention(in, out, in->kv[0], in->kv[1], sizeof(float));
    k->attn_f32(&a);
}

CHECK_OP(attn_f16)
{
    const aeg_attn_args a = attention(in, out, in->kv16[0], in->kv16[1], sizeof(uint16_t));
    k->attn_f16(&a);
}

/* The second token sees one position more. */
static void attend_codes(inputs *in, answers *out, void (*attend)(const aeg_attn_args *))
{
    const float q_scale[CODE_TOKENS * CODE_REP] = { 0.001f, 0.002f, 0.003f, 0.001f };
    float scales[CODE_ROWS];
    for (uint32_t i = 0; i < CODE_ROWS; i++)
        scales[i] = 0.25f + in->x[0][i] * in->x[0][i];
    const aeg_attn_args a = {
        .n_tokens = CODE_TOKENS, .n_rep = CODE_REP, .n_pos = N_POS, .head_dim = CODE_DIM,
        .q_codes = in->codes[2], .q_token = CODE_REP * CODE_DIM, .q_scale = q_scale, .q_scale_token = CODE_REP,
        .k = in->codes[0], .v = in->codes[1], .k_scale = scales, .v_scale = scales, .scale = 0.11f,
        .out_m = out->f, .out_l = out->f + CODE_TOKENS * CODE_REP, .acc = out->g, .scratch = in->codes_scratch,
    };
    attend(&a);
}

CHECK_OP(attn_q8) { attend_codes(in, out, k->attn_q8); }
/* Rows of twice the width: one half latent, one rotary; half as many of them. */
CHECK_OP(attn_q8_latent)
{
    const float q_scale[CODE_TOKENS] = { 0.001f, 0.002f };
    float scales[CODE_ROWS];
    for (uint32_t i = 0; i < CODE_ROWS; i++)
        scales[i] = 0.25f + in->x[0][i] * in->x[0][i];
    const aeg_attn_args a = {
        .n_tokens = CODE_TOKENS, .n_rep = 1, .n_pos = LATENT_POS, .head_dim = 2 * CODE_DIM, .value_dim = CODE_DIM,
        .rotary = CODE_DIM, .q_codes = in->codes[2], .q_token = 2 * CODE_DIM, .q_scale = q_scale, .q_scale_token = 1,
        .q_rotary_scale = q_scale, .k_rotary_scale = scales + 1, .k = in->codes[0], .v = in->codes[0], .k_scale = scales,
        .v_scale = scales, .scale = 0.11f, .out_m = out->f, .out_l = out->f + CODE_TOKENS, .acc = out->g,
        .scratch = in->codes_scratch,
    };
    k->attn_q8_latent(&a);
}

CHECK_OP(attn_t4) { attend_codes(in, out, k->attn_t4); }
CHECK_OP(attn_t3) { attend_codes(in, out, k->attn_t3); }

CHECK_OP(hadamard)
{
    memcpy(out->f, in->wide, sizeof in->wide);
    k->hadamard(out->f, 64);
}

CHECK_OP(attn_merge)
{
    memcpy(out->g, in->x[0], sizeof in->x[0]);
    out->f[0] = 1.5f;
    out->f[1] = 2.5f;
    k->attn_merge(&out->f[0], &out->f[1], out->g, 1.25f, 3.0f, in->x[1], N);
}

CHECK_OP(quantize_i8) { k->quantize_i8((int8_t *)out->codes, out->f, out->g, in->acts, N_CODES, 32); }
CHECK_OP(quantize_i16) { k->quantize_i16(out->codes, out->f, out->g, in->acts, N_CODES, 64); }
CHECK_OP(code_sums_i8) { k->code_sums_i8((int32_t *)out->f, in->codes[0], N_CODES); }
CHECK_OP(code_sums_i16) { k->code_sums_i16((int32_t *)out->f, (const int16_t *)in->kv16[0], N_CODES); }

static bool ops_agree(const aeg_kernels *k, const aeg_kernels *scalar, inputs *in)
{
    static void (*const checks[])(const aeg_kernels *, inputs *, answers *) = {
#define CHECK_ROW(name, ret, params) check_##name,
        AEG_KERNEL_LIST(CHECK_ROW)
#undef CHECK_ROW
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        answers mine, theirs;
        memset(&mine, 0, sizeof mine);
        memset(&theirs, 0, sizeof theirs);
        checks[i](k, in, &mine);
        checks[i](scalar, in, &theirs);
        if (memcmp(&mine, &theirs, sizeof mine) != 0)
            return false;
    }
    return true;
}

/* Random codes are fine, random scales are not: they could be infinities or NaNs. */
static void make_weights(inputs *in, aeg_weight_type type)
{
    uint32_t seed = 51;
    float *floats = (float *)(void *)in->weights;
    uint16_t *halves = (uint16_t *)(void *)in->weights;
    if (type.kind == AEG_W_AFFINE) {
        for (size_t i = 0; i < WEIGHT_BYTES; i++)
            in->weights[i] = (uint8_t)next_random(&seed);
        for (uint32_t tile = 0; tile < N_COLS / GROUP; tile++)
            for (uint32_t i = 0; i < 2 * AEG_ROWS; i++)
                halves[tile * aeg_tile_bytes(type) / 2 + i] = aeg_bf16_from_f32(next_value(&seed));
        return;
    }
    if (type.kind == AEG_W_F8) {
        for (uint32_t i = 0; i < AEG_ROWS; i++)
            floats[i] = next_value(&seed);
        for (uint32_t i = AEG_F8_HEADER; i < aeg_tile_bytes(type); i++)
            in->weights[i] = (uint8_t)(next_random(&seed) % 0x7f | (next_random(&seed) & 0x80));
        return;
    }
    for (uint32_t i = 0; i < AEG_ROWS * N_COLS; i++) {
        const float v = next_value(&seed);
        if (type.kind == AEG_W_F32)
            floats[i] = v;
        else
            halves[i] = type.kind == AEG_W_F16 ? aeg_f16_from_f32(v) : aeg_bf16_from_f32(v);
    }
}

static bool matmul_agrees(const aeg_kernels *k, const aeg_kernels *scalar, inputs *in, aeg_weight_type type,
                          aeg_act_kind act)
{
    int8_t q8[N_ROWS_X * N_COLS] = { 0 };
    int16_t q16[N_ROWS_X * N_COLS] = { 0 };
    float d[N_ROWS_X * N_COLS / GROUP] = { 0 }, s[N_ROWS_X * N_COLS / GROUP] = { 0 }, y[2][N_ROWS_X * AEG_ROWS];
    if (act == AEG_ACT_I8)
        scalar->quantize_i8(q8, d, s, in->acts, N_ROWS_X * N_COLS, GROUP);
    if (act == AEG_ACT_I16)
        scalar->quantize_i16(q16, d, s, in->acts, N_ROWS_X * N_COLS, GROUP);
    const aeg_weights w = { .type = type, .n_rows = AEG_ROWS, .n_cols = N_COLS,
                            .block_stride = aeg_block_bytes(type, N_COLS), .data = in->weights };
    const aeg_acts x = { .kind = (uint8_t)act, .n_cols = N_COLS, .block = GROUP, .f32 = in->acts,
                         .q8 = q8, .q16 = q16, .d = d, .s = s };
    for (int i = 0; i < 2; i++) {
        const aeg_matmul_args a = { .w = &w, .x = &x, .n = N_ROWS_X, .y = y[i], .y_stride = AEG_ROWS };
        aeg_kernels_matmul(i == 0 ? k : scalar, type, act)(&a, 0, 1);
    }
    return memcmp(y[0], y[1], sizeof y[0]) == 0;
}

/* Random bytes but for the exponent of MXFP4, which could overflow; a scale that is no number is drawn again. */
static void make_blocks(inputs *in, uint32_t kind)
{
    const aeg_block_shape s = aeg_block_shape_of(kind);
    const uint32_t n = (uint32_t)aeg_block_source_bytes(kind, B_COLS);
    uint8_t row[B_COLS / 32 * 34];
    uint32_t seed = 71 + kind;
    memset(in->weights, 0, WEIGHT_BYTES);
    for (uint32_t r = 0; r < AEG_ROWS;) {
        for (uint32_t i = 0; i < n; i++)
            row[i] = (uint8_t)(kind == AEG_W_MXFP4 && i % s.source == 0 ? 100 + next_random(&seed) % 32 : next_random(&seed));
        uint8_t lane[WEIGHT_BYTES] = { 0 };
        if (!aeg_blocks_pack_lane(kind, row, B_COLS, r, lane))
            continue;
        for (uint32_t i = 0; i < WEIGHT_BYTES; i++)
            in->weights[i] |= lane[i];
        r++;
    }
}

static bool blocks_agree(const aeg_kernels *k, const aeg_kernels *scalar, inputs *in, uint32_t kind, aeg_act_kind act)
{
    static const uint32_t same[3] = { 0, 0, 0 };
    int8_t q8[B_COLS] = { 0 };
    int16_t q16[B_COLS] = { 0 };
    int32_t sums[B_COLS / AEG_SUM_COLS] = { 0 };
    float d[B_COLS / 32] = { 0 }, s[B_COLS / 32] = { 0 }, y[2][3 * AEG_ROWS];
    const aeg_weight_type type = { .kind = (uint8_t)kind };
    if (act == AEG_ACT_I8) {
        scalar->quantize_i8(q8, d, s, in->acts, B_COLS, 32);
        scalar->code_sums_i8(sums, q8, B_COLS);
    } else if (act == AEG_ACT_I16) {
        scalar->quantize_i16(q16, d, s, in->acts, B_COLS, 32);
        scalar->code_sums_i16(sums, q16, B_COLS);
    }
    const aeg_weights w = { .type = type, .n_rows = AEG_ROWS, .n_cols = B_COLS, .block_stride = aeg_block_bytes(type, B_COLS),
                            .data = in->weights };
    const aeg_acts x = { .kind = (uint8_t)act, .n_cols = B_COLS, .block = 32, .f32 = in->acts, .q8 = q8, .q16 = q16, .d = d, .s = s,
                         .sums = sums };
    for (int i = 0; i < 2; i++) {
        const aeg_matmul_args a = { .w = &w, .x = &x, .rows = same, .n = 3, .y = y[i], .y_stride = AEG_ROWS };
        aeg_kernels_matmul(i == 0 ? k : scalar, type, act)(&a, 0, 1);
    }
    return memcmp(y[0], y[1], sizeof y[0]) == 0;
}

static bool all_blocks_agree(const aeg_kernels *k, const aeg_kernels *scalar, inputs *in)
{
    for (uint32_t kind = AEG_W_Q8_0; kind < AEG_W_BLOCKS_END; kind++) {
        make_blocks(in, kind);
        for (int act = AEG_ACT_F32; act <= AEG_ACT_I16; act++)
            if (!blocks_agree(k, scalar, in, kind, (aeg_act_kind)act))
                return false;
    }
    return true;
}

static bool matmuls_agree(const aeg_kernels *k, const aeg_kernels *scalar, inputs *in)
{
    static const uint8_t widths[] = { 2, 3, 4, 5, 6, 8 };
    for (size_t i = 0; i < sizeof widths; i++) {
        const aeg_weight_type type = { .kind = AEG_W_AFFINE, .bits = widths[i], .scale_kind = AEG_W_BF16,
                                       .group = GROUP };
        make_weights(in, type);
        for (int act = AEG_ACT_F32; act <= AEG_ACT_I16; act++)
            if (!matmul_agrees(k, scalar, in, type, (aeg_act_kind)act))
                return false;
    }
    for (int kind = AEG_W_F32; kind <= AEG_W_BF16; kind++) {
        const aeg_weight_type type = { .kind = (uint8_t)kind };
        make_weights(in, type);
        if (!matmul_agrees(k, scalar, in, type, AEG_ACT_F32))
            return false;
    }
    make_weights(in, (aeg_weight_type){ .kind = AEG_W_F8 });
    return matmul_agrees(k, scalar, in, (aeg_weight_type){ .kind = AEG_W_F8 }, AEG_ACT_F32);
}

void aeg_kernels_self_check(aeg_kernels *k, const char **dropped)
{
    aeg_kernels scalar;
    inputs in;
    *dropped = NULL;
    aeg_kernels_init(&scalar, AEG_CPU_SCALAR);
    make_inputs(&in);
    while (k->cpu != AEG_CPU_SCALAR) {
        if (ops_agree(k, &scalar, &in) && matmuls_agree(k, &scalar, &in) && all_blocks_agree(k, &scalar, &in))
            return;
        uint32_t top = AEG_CPU_NEON;
        while ((k->cpu & top) == 0)
            top >>= 1;
        const uint32_t rest = k->cpu & ~top;
        *dropped = aeg_cpu_name(k->cpu);
        aeg_kernels_init(k, rest);
    }
}
