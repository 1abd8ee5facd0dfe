/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/checked.h"
#include "base/clock.h"
#include "model/blocks/norm.h"
#include "model/model_parts.h"

enum {
    LOGITS_ROOM = 1 << 20, /* bytes of logits kept at once when many positions are asked for */
    LOGITS_ROWS = 8,
};

/* What room for codes is planned with. */
static aeg_act_kind planned_act(const aeg_model_config *cfg)
{
    return aeg_store_reads_sums(cfg->store) ? (aeg_act_kind)(cfg->act | AEG_ACT_SUMS) : cfg->act;
}

/* What is used one after the other shares the same bytes: each part is carved from the mark on, and the longest counts. */
typedef struct {
    aeg_arena *arena;
    uint64_t mark, end;
} overlap;

static overlap overlap_begin(aeg_arena *arena)
{
    const uint64_t mark = aeg_align_up(arena->used, AEG_CACHE_LINE);
    return (overlap){ .arena = arena, .mark = mark, .end = mark };
}

static void overlap_next(overlap *o)
{
    o->end = AEG_MAX(o->end, o->arena->used);
    o->arena->used = o->mark;
}

static void overlap_end(overlap *o)
{
    overlap_next(o);
    o->arena->used = o->end;
}

/* Guesses are made when the routes are known and before anything is summed. */
static void carve_experts(aeg_model *m, aeg_arena *arena, const aeg_model_config *cfg)
{
    const aeg_hparams *hp = &cfg->store->hparams;
    aeg_moe_routing_init(&m->moe_scratch, arena, hp, cfg->chunk, cfg->n_threads);
    overlap o = overlap_begin(arena);
    aeg_guess_scratch_init(&m->guess, arena, hp, cfg->chunk);
    overlap_next(&o);
    aeg_moe_sums_init(&m->moe_scratch, arena, hp, planned_act(cfg), cfg->chunk);
    overlap_end(&o);
}

/* Logits, which are written when all layers are done, are read until the next embedding overwrites them. */
static void carve_blocks(aeg_model *m, aeg_arena *arena, const aeg_model_config *cfg)
{
    const aeg_hparams *hp = &cfg->store->hparams;
    overlap o = overlap_begin(arena);
    bool has[AEG_N_MIXERS] = { false };
    for (uint32_t layer = 0; layer < hp->n_layers; layer++)
        has[hp->mixer[layer]] = true;

    aeg_embed_room_init(&m->embed, arena, &cfg->store->embed, cfg->chunk);
    overlap_next(&o);
    if (has[AEG_MIXER_GDN])
        aeg_gdn_scratch_init(&m->mixer_scratch[AEG_MIXER_GDN].gdn, arena, hp, planned_act(cfg), cfg->chunk);
    overlap_next(&o);
    if (has[AEG_MIXER_ATTENTION])
        aeg_attn_scratch_init(&m->mixer_scratch[AEG_MIXER_ATTENTION].attn, arena, hp, planned_act(cfg), &cfg->kv->cfg,
                              cfg->chunk, cfg->n_threads);
    overlap_next(&o);
    if (has[AEG_MIXER_MLA])
        aeg_mla_scratch_init(&m->mixer_scratch[AEG_MIXER_MLA].mla, arena, hp, planned_act(cfg), &cfg->kv->cfg, cfg->chunk,
                             cfg->n_threads);
    overlap_next(&o);
    carve_experts(m, arena, cfg);
    overlap_next(&o);
    m->logits = AEG_ARENA_ARRAY(arena, float, (uint64_t)m->n_logits * hp->vocab_size);
    overlap_end(&o);
}

static void carve(aeg_model *m, aeg_arena *arena, const aeg_model_config *cfg)
{
    const aeg_hparams *hp = &cfg->store->hparams;
    const uint64_t rows = (uint64_t)cfg->chunk * hp->hidden_size;
    m->mixer_index = AEG_ARENA_ARRAY(arena, uint32_t, hp->n_layers);
    m->weights.layers = AEG_ARENA_ARRAY(arena, aeg_layer_weights, hp->n_layers);
    aeg_rope_init(&m->rope, arena, hp, cfg->chunk);
    m->x = AEG_ARENA_ARRAY(arena, float, rows * aeg_n_streams(hp));
    if (hp->hc_streams > 0)
        aeg_hyper_scratch_init(&m->hyper, arena, hp, cfg->chunk);
    m->u = AEG_ARENA_ARRAY(arena, float, rows);
    m->y = AEG_ARENA_ARRAY(arena, float, rows);
    aeg_act_room_init(&m->room, arena, planned_act(cfg), cfg->chunk, hp->hidden_size);
    const uint64_t fit = LOGITS_ROOM / (sizeof(float) * (uint64_t)hp->vocab_size);
    m->n_logits = (uint32_t)AEG_MAX(1u, AEG_MIN(fit, (uint64_t)LOGITS_ROWS));
    carve_blocks(m, arena, cfg);
}

typedef struct {
    const aeg_store *store;
    const uint8_t *dense;
    _Atomic uint32_t damaged;   /* index of a damaged tensor + 1; any one will do */
} hash_job;

static void hash_tensors(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    hash_job *j = ctx;
    (void)thread;
    for (uint32_t i = begin; i < end; i++) {
        const aeg_store_tensor *t = &j->store->tensors[i];
        if (XXH3_64bits(j->dense + t->offset, t->bytes) != t->xxh3)
            j->damaged = i + 1;
    }
}

/* Everything is read once here anyway, and hashing is several times faster than a disk: a flipped bit is an error at
 * open rather than a strange answer. */
static aegis_status load_dense(const aeg_model_config *cfg, uint8_t *dense, aegis_error *err)
{
    enum { PIECE = 8 << 20 };
    const uint64_t bytes = cfg->store->file_bytes[AEG_FILE_DENSE];
    for (uint64_t at = 0; at < bytes; at += PIECE)
        AEG_TRY(aeg_io_read_sync(cfg->io, AEG_FILE_DENSE, at, dense + at, AEG_MIN(bytes - at, (uint64_t)PIECE), err));
    hash_job job = { .store = cfg->store, .dense = dense };
    aeg_team_run(cfg->team, cfg->store->n_tensors, hash_tensors, &job);
    if (job.damaged != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: tensor '%s' in %s is damaged (its hash differs); pack the model again",
                        cfg->store->path, cfg->store->tensors[job.damaged - 1].name, aeg_store_file_name(AEG_FILE_DENSE));
    return AEGIS_OK;
}

aegis_status aeg_model_init(aeg_model **out, aeg_arena *activations, aeg_arena *dense, const aeg_model_config *cfg,
                            aegis_error *err)
{
    aeg_model measured = { 0 };
    const aeg_hparams *hp = &cfg->store->hparams;
    const aeg_family *family = NULL;
    AEG_TRY(aeg_family_find(&family, hp, cfg->store->path, err));

    aeg_model *m = AEG_ARENA_ARRAY(activations, aeg_model, 1);
    /* Rounded up so that the last read may be a whole block. */
    uint8_t *bytes = aeg_arena_alloc(dense, aeg_align_up(cfg->store->file_bytes[AEG_FILE_DENSE], AEG_IO_ALIGN), AEG_PAGE);
    carve(m == NULL ? &measured : m, activations, cfg);
    if (aeg_arena_measuring(activations))
        return AEGIS_OK;
    AEG_TRY(aeg_arena_check(activations, err));
    AEG_TRY(aeg_arena_check(dense, err));

    m->cfg = *cfg;
    m->hp = hp;
    m->family = family;
    m->n_decode = cfg->n_threads;
    m->compute = (aeg_compute){ .kernels = cfg->kernels, .team = cfg->team, .act = cfg->act };
    uint32_t n_of[AEG_N_MIXERS] = { 0 };
    for (uint32_t layer = 0; layer < hp->n_layers; layer++)
        m->mixer_index[layer] = n_of[hp->mixer[layer]]++;
    AEG_TRY(aeg_model_bind(&m->weights, m->weights.layers, cfg->store, bytes, err));
    AEG_TRY(load_dense(cfg, bytes, err));
    *out = m;
    return AEGIS_OK;
}

static aegis_status embed_tokens(aeg_model *m, const uint32_t *tokens, uint32_t n, aegis_error *err)
{
    const uint64_t start = aeg_now_ns();
    AEG_TRY(aeg_embed_read(&m->embed, m->cfg.io, m->cfg.streamer, tokens, n, m->x, err));
    m->embed_ns += aeg_now_ns() - start;
    return AEGIS_OK;
}

/* Every stream begins as the embedding; from the last token on, so that rows are read before they are written over. */
static void copy_to_streams(aeg_model *m, uint32_t n)
{
    const size_t hidden = m->hp->hidden_size, streams = aeg_n_streams(m->hp);
    for (uint32_t t = n; streams > 1 && t-- > 0;)
        for (size_t s = streams; s-- > 0;)
            memmove(m->x + (t * streams + s) * hidden, m->x + t * hidden, hidden * sizeof(float));
}

uint64_t aeg_model_embed_ns(const aeg_model *m) { return m->embed_ns; }

static void watch_hidden(const aeg_model *m, const aeg_watch *watch, uint32_t layer, uint32_t n, uint32_t pos0)
{
    if (watch != NULL && watch->hidden != NULL)
        for (uint32_t t = 0; t < n; t++)
            watch->hidden(watch->ctx, layer, pos0 + t, m->x + (size_t)t * aeg_n_streams(m->hp) * m->hp->hidden_size);
}

/* x * 0 is 0 for every finite number and a NaN for the others. Sixteen sums, so that the compiler may use vectors. */
static bool finite_row(const float *x, uint32_t n)
{
    float sum[16] = { 0 };
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (uint32_t j = 0; j < 16; j++)
            sum[j] += x[i + j] * 0.0f;
    for (; i < n; i++)
        sum[0] += x[i] * 0.0f;
    for (uint32_t j = 1; j < 16; j++)
        sum[0] += sum[j];
    return sum[0] == 0.0f;
}

/* What the final norm reads: the residual, or the mean of its streams in m->y. */
static const float *final_rows(aeg_model *m, uint32_t n)
{
    if (m->hp->hc_streams == 0)
        return m->x;
    const aeg_hyper h = { .c = &m->compute, .hp = m->hp, .s = &m->hyper, .x = m->x, .n = n };
    aeg_hyper_mean(&h, m->y);
    return m->y;
}

/* Final norm and head for the positions that are asked for, n_logits rows at a time. */
static aegis_status run_head(aeg_model *m, uint32_t n, uint32_t pos0, bool last, const aeg_watch *watch, aegis_error *err)
{
    const aeg_hparams *hp = m->hp;
    uint32_t from = last ? n - 1 : n;
    if (watch != NULL && watch->logits != NULL && watch->logits_from < pos0 + n)
        from = AEG_MIN(from, watch->logits_from > pos0 ? watch->logits_from - pos0 : 0);
    const bool all_final = watch != NULL && watch->final != NULL && watch->hidden != NULL;
    const uint32_t norm_from = all_final ? 0 : from;
    if (norm_from < n)
        aeg_norm_rows(&m->compute, m->u + (size_t)norm_from * hp->hidden_size, final_rows(m, n) + (size_t)norm_from * hp->hidden_size,
                      hp->hidden_size, m->weights.final_norm, n - norm_from, hp->hidden_size, hp->rms_eps);
    if (watch != NULL && watch->final != NULL)
        for (uint32_t t = norm_from; t < n; t++)
            watch->final(watch->ctx, pos0 + t, m->u + (size_t)t * hp->hidden_size);

    for (uint32_t t = from; t < n;) {
        const uint32_t rows = AEG_MIN(m->n_logits, n - t);
        const aeg_linear_out out = { .w = &m->weights.head, .y = m->logits, .y_stride = hp->vocab_size };
        aeg_linear(&m->compute, &m->room, m->u + (size_t)t * hp->hidden_size, rows, hp->hidden_size, &out, 1);
        for (uint32_t r = 0; r < rows; r++)
            if (!finite_row(m->logits + (size_t)r * hp->vocab_size, hp->vocab_size))
                return aeg_fail(err, AEGIS_E_MODEL, "%s: the logits of position %u are not finite numbers: the weights are "
                                "damaged (aegis verify) or do not belong together", m->cfg.store->path, pos0 + t + r);
        if (watch != NULL && watch->logits != NULL)
            for (uint32_t r = 0; r < rows; r++)
                if (pos0 + t + r >= watch->logits_from || t + r + 1 == n)
                    watch->logits(watch->ctx, pos0 + t + r, m->logits + (size_t)r * hp->vocab_size);
        m->last_logits = rows - 1;
        t += rows;
    }
    return AEGIS_OK;
}

aegis_status aeg_model_forward(aeg_model *m, const uint32_t *tokens, uint32_t n, uint32_t pos0, bool last,
                               const aeg_watch *watch, aegis_error *err)
{
    aeg_team_use(m->cfg.team, n > AEG_DECODE_TOKENS ? m->cfg.n_threads : m->n_decode);
    AEG_TRY(embed_tokens(m, tokens, n, err));
    copy_to_streams(m, n);
    aeg_rope_fill(&m->rope, pos0, n);
    watch_hidden(m, watch, 0, n, pos0);
    for (uint32_t layer = 0; layer < m->hp->n_layers; layer++) {
        AEG_TRY(m->family->layer(m, layer, n, pos0, watch, err));
        watch_hidden(m, watch, layer + 1, n, pos0);
    }
    AEG_TRY(run_head(m, n, pos0, last, watch, err));
    aeg_streamer_tick(m->cfg.streamer, n);
    return AEGIS_OK;
}

const float *aeg_model_logits(const aeg_model *m)
{
    return m->logits + (size_t)m->last_logits * m->hp->vocab_size;
}
