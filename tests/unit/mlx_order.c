/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/mlx_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expert/store.h"
#include "kernels/half.h"
#include "support/t.h"

typedef struct {
    mlx_tensor_fn fn;
    void *ctx;
    size_t n;
} sink;

/* Three growing arrays: what a quantised module consists of. */
typedef struct {
    uint8_t *data[3];
    size_t n[3], room;
} module;

static const struct {
    const char *ours, *theirs;
} parts[] = {
    { "mixer_norm", "input_layernorm.weight" },
    { "ffn_norm", "post_attention_layernorm.weight" },
    { "gdn.qkv", "linear_attn.in_proj_qkv" },
    { "gdn.z", "linear_attn.in_proj_z" },
    { "gdn.b", "linear_attn.in_proj_b" },
    { "gdn.a", "linear_attn.in_proj_a" },
    { "gdn.out", "linear_attn.out_proj" },
    { "gdn.conv", "linear_attn.conv1d.weight" },
    { "gdn.a_log", "linear_attn.A_log" },
    { "gdn.dt_bias", "linear_attn.dt_bias" },
    { "gdn.norm", "linear_attn.norm.weight" },
    { "attn.q", "self_attn.q_proj" },
    { "attn.k", "self_attn.k_proj" },
    { "attn.v", "self_attn.v_proj" },
    { "attn.o", "self_attn.o_proj" },
    { "attn.q_norm", "self_attn.q_norm.weight" },
    { "attn.k_norm", "self_attn.k_norm.weight" },
    { "router", "mlp.gate" },
    { "shared.gate", "mlp.shared_expert.gate_proj" },
    { "shared.up", "mlp.shared_expert.up_proj" },
    { "shared.down", "mlp.shared_expert.down_proj" },
    { "shared_gate", "mlp.shared_expert_gate" },
};

static void their_name(char *out, size_t room, const char *ours)
{
    unsigned layer;
    int n = 0;
    if (strcmp(ours, "final_norm") == 0) {
        snprintf(out, room, "language_model.model.norm.weight");
    } else if (strcmp(ours, "lm_head") == 0) {
        snprintf(out, room, "language_model.lm_head");
    } else {
        T_CHECK(sscanf(ours, "layers.%u.%n", &layer, &n) == 1 && n > 0);
        size_t i = 0;
        while (i < sizeof parts / sizeof parts[0] && strcmp(parts[i].ours, ours + n) != 0)
            i++;
        T_CHECK(i < sizeof parts / sizeof parts[0]);
        snprintf(out, room, "language_model.model.layers.%u.%s", layer, parts[i].theirs);
    }
}

static void emit(sink *s, const char *name, const uint8_t *data, size_t n)
{
    s->fn(s->ctx, name, data, n);
    s->n++;
}

static void emit_module(sink *s, const char *name, module *m)
{
    static const char *const suffixes[] = { "weight", "scales", "biases" };
    char full[256];
    for (int i = 0; i < 3; i++) {
        snprintf(full, sizeof full, "%s.%s", name, suffixes[i]);
        emit(s, full, m->data[i], m->n[i]);
        free(m->data[i]);
    }
    memset(m, 0, sizeof *m);
}

/* Bit by bit, not like the packer does it. */
static void put_codes(uint8_t *dst, const uint8_t *codes, size_t n, uint32_t bits)
{
    for (size_t i = 0; i < n * bits; i++)
        if (codes[i / bits] >> (i % bits) & 1)
            dst[i / 8] = (uint8_t)(dst[i / 8] | 1u << (i % 8));
}

static uint8_t *room_for(module *m, int which, size_t n)
{
    m->data[which] = realloc(m->data[which], m->n[which] + n);
    T_CHECK(m->data[which] != NULL);
    uint8_t *p = m->data[which] + m->n[which];
    memset(p, 0, n);
    m->n[which] += n;
    return p;
}

/* One row block of x16 tiles at `src` appended to a module: its first n_rows rows. */
static void add_block(module *m, aeg_weight_type type, uint32_t n_rows, uint32_t n_cols, const uint8_t *src)
{
    const uint32_t groups = n_cols / type.group, scale_bytes = type.scale_kind == AEG_W_F32 ? 4 : 2;
    const size_t row_bytes = (size_t)n_cols * type.bits / 8, row_scales = (size_t)groups * scale_bytes;
    uint8_t codes[AEG_ROWS * 128];
    uint32_t scales[AEG_ROWS], biases[AEG_ROWS];
    uint8_t *w = room_for(m, 0, n_rows * row_bytes), *s = room_for(m, 1, n_rows * row_scales);
    uint8_t *b = room_for(m, 2, n_rows * row_scales);
    for (uint32_t g = 0; g < groups; g++) {
        aeg_tile_unpack(type, src + g * aeg_tile_bytes(type), codes, scales, biases);
        for (uint32_t r = 0; r < n_rows; r++) {
            put_codes(w + r * row_bytes + (size_t)g * type.group * type.bits / 8, codes + (size_t)r * type.group,
                      type.group, type.bits);
            memcpy(s + r * row_scales + g * scale_bytes, &scales[r], scale_bytes);
            memcpy(b + r * row_scales + g * scale_bytes, &biases[r], scale_bytes);
        }
        for (uint32_t r = n_rows; r < AEG_ROWS; r++)
            T_CHECK(scales[r] == 0 && biases[r] == 0 && codes[(size_t)r * type.group] == 0);
    }
}

static void add_matrix(module *m, aeg_weight_type type, uint32_t n_rows, uint32_t n_cols, const uint8_t *src, size_t stride)
{
    for (uint32_t row = 0; row < n_rows; row += AEG_ROWS, src += stride)
        add_block(m, type, n_rows - row < AEG_ROWS ? n_rows - row : AEG_ROWS, n_cols, src);
}

static void emit_vector(sink *s, const char *name, const uint8_t *src, uint32_t n, bool conv)
{
    uint16_t *out = malloc(n * sizeof *out);
    T_CHECK(out != NULL);
    for (uint32_t i = 0; i < n; i++) {
        float f;
        memcpy(&f, src + 4 * (size_t)i, 4);
        /* ours is [4][channels], theirs [channels][4] */
        out[conv ? i % (n / 4) * 4 + i / (n / 4) : i] = aeg_bf16_from_f32(f);
    }
    emit(s, name, (const uint8_t *)out, n * sizeof *out);
    free(out);
}

static void each_dense(sink *s, const aeg_store *store)
{
    uint8_t *dense = (uint8_t *)t_read_file(t_path(store->path, "dense.bin"), NULL);
    for (uint32_t i = 0; i < store->n_tensors; i++) {
        const aeg_store_tensor *t = &store->tensors[i];
        char name[200];
        module m = { 0 };
        their_name(name, sizeof name, t->name);
        if (t->vector) {
            emit_vector(s, name, dense + t->offset, t->n_cols, strstr(name, "conv1d") != NULL);
            continue;
        }
        add_matrix(&m, t->type, t->n_rows, t->n_cols, dense + t->offset, aeg_block_bytes(t->type, t->n_cols));
        emit_module(s, name, &m);
    }
    t_free(dense);
}

static void each_embed(sink *s, const aeg_store *store)
{
    const aeg_store_embed *e = &store->embed;
    uint8_t *embed = (uint8_t *)t_read_file(t_path(store->path, "embed.bin"), NULL);
    const size_t codes = (size_t)e->n_cols * e->type.bits / 8, scales = (e->row_bytes - codes) / 2;
    module m = { 0 };
    for (uint32_t row = 0; row < e->n_rows; row++) {
        const uint8_t *p = embed + row * e->row_bytes;
        memcpy(room_for(&m, 0, codes), p, codes);
        memcpy(room_for(&m, 1, scales), p + codes, scales);
        memcpy(room_for(&m, 2, scales), p + codes + scales, scales);
    }
    emit_module(s, "language_model.model.embed_tokens", &m);
    t_free(embed);
}

static void each_expert(sink *s, const aeg_store *store)
{
    const aeg_store_experts *x = &store->experts;
    const aeg_hparams *h = &store->hparams;
    static const char *const names[] = { "gate_proj", "up_proj", "down_proj" };
    uint8_t *bytes = (uint8_t *)t_read_file(t_path(store->path, "experts.bin"), NULL);
    for (uint32_t layer = 0; layer < h->n_layers; layer++) {
        const size_t block = aeg_block_bytes(x->gate_up[layer], h->hidden_size);
        module m[3] = { 0 };
        for (uint32_t e = 0; e < h->n_experts; e++) {
            const uint8_t *record = bytes + ((uint64_t)layer * h->n_experts + e) * x->record_bytes;
            add_matrix(&m[0], x->gate_up[layer], h->expert_width, h->hidden_size, record, 2 * block);
            add_matrix(&m[1], x->gate_up[layer], h->expert_width, h->hidden_size, record + block, 2 * block);
            add_matrix(&m[2], x->down[layer], h->hidden_size, h->expert_width, record + x->down_offset,
                       aeg_block_bytes(x->down[layer], h->expert_width));
        }
        for (int i = 0; i < 3; i++) {
            char name[200];
            snprintf(name, sizeof name, "language_model.model.layers.%u.mlp.switch_mlp.%s", layer, names[i]);
            emit_module(s, name, &m[i]);
        }
    }
    t_free(bytes);
}

size_t mlx_each_tensor(const char *path, mlx_tensor_fn fn, void *ctx)
{
    T_MEMORY(memory);
    aegis_error err;
    aeg_store *store = NULL;
    sink s = { .fn = fn, .ctx = ctx };
    T_OK(aeg_store_open(&store, path, &memory, &err), &err);
    each_dense(&s, store);
    each_embed(&s, store);
    each_expert(&s, store);
    aeg_store_close(store);
    t_no_leak(&memory);
    return s.n;
}
