/* SPDX-License-Identifier: Apache-2.0 */
/* The one sequence of inits that is run twice: measuring, to plan, and real, to carve. */
#include <stdio.h>

#include "base/checked.h"
#include "base/file.h"
#include "engine/engine_parts.h"

enum { IO_DEPTH = 32 };

static uint32_t count_mixers(const aeg_hparams *hp, aeg_mixer mixer)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < hp->n_layers; i++)
        n += hp->mixer[i] == mixer;
    return n;
}

/* Latent attention is one KV head whose rows all query heads share. */
static aeg_kv_config kv_config(const aeg_hparams *hp, const aeg_settings *s)
{
    const uint32_t n_latent = count_mixers(hp, AEG_MIXER_MLA);
    aeg_kv_config cfg = { .n_layers = count_mixers(hp, AEG_MIXER_ATTENTION), .n_kv_heads = hp->n_kv_heads,
                          .head_dim = hp->head_dim, .n_ctx = s->n_ctx, .kind = s->kv };
    if (n_latent > 0) {
        cfg.n_layers = n_latent;
        cfg.n_kv_heads = 1;
        cfg.head_dim = hp->kv_lora + hp->qk_rope;
        cfg.latent = hp->kv_lora;
    }
    return cfg;
}

static aegis_status build_memory(aegis_engine *e, aegis_error *err)
{
    const aeg_hparams *hp = &e->store->hparams;
    const aeg_kv_config kv = kv_config(hp, &e->settings);
    const aeg_state_config state = {
        .n_layers = count_mixers(hp, AEG_MIXER_GDN), .v_heads = hp->gdn_v_heads, .k_dim = hp->gdn_k_dim,
        .v_dim = hp->gdn_v_dim, .n_checkpoints = e->settings.n_checkpoints,
        .channels = 2 * hp->gdn_k_heads * hp->gdn_k_dim + hp->gdn_v_heads * hp->gdn_v_dim,
    };
    AEG_TRY(aeg_kv_init(&e->kv, &e->accounts.arena[AEG_ACCT_KV], &kv, err));
    return aeg_state_init(&e->state, &e->accounts.arena[AEG_ACCT_STATE], &e->accounts.arena[AEG_ACCT_CHECKPOINTS],
                          &state, err);
}

static aegis_status build_io(aegis_engine *e, aegis_error *err)
{
    char paths[3][AEG_PATH_MAX];
    aeg_io_config cfg = { .kind = e->settings.io, .depth = IO_DEPTH, .n_files = 3,
                          .sim_bytes_per_s = e->settings.sim_bytes_per_s, .sim_latency_s = e->settings.sim_latency_s };
    for (uint32_t i = 0; i < cfg.n_files; i++) {
        AEG_TRY(aeg_path_join(paths[i], e->store->path, aeg_store_file_name((aeg_store_file)i), err));
        cfg.paths[i] = paths[i];
    }
    /* What the kernel keeps for the ring and its registered pages; the slots are that buffer. */
    aeg_io_config system = cfg;
    system.buffer_bytes = (uint64_t)e->settings.n_slots * e->store->experts.record_bytes;
    e->accounts.extra[AEG_ACCT_IO] = aeg_io_system_bytes(&system);
    return aeg_io_open(&e->io, &e->accounts.arena[AEG_ACCT_IO], &cfg, err);
}

static aegis_status build_streamer(aegis_engine *e, aegis_error *err)
{
    aeg_arena *slots = &e->accounts.arena[AEG_ACCT_SLOTS];
    const aeg_streamer_config cfg = {
        .store = e->store, .io = e->io, .file = AEG_FILE_EXPERTS, .n_slots = e->settings.n_slots,
        .max_demand = e->store->hparams.n_experts, .prefetch = e->settings.prefetch,
        .telemetry = e->telemetry.fd >= 0 ? aeg_telemetry_layer : NULL, .telemetry_ctx = &e->telemetry,
    };
    return aeg_streamer_init(&e->streamer, &e->accounts.arena[AEG_ACCT_IO], slots, &cfg, err);
}

aegis_status aeg_engine_build(aegis_engine *e, aegis_error *err)
{
    aeg_arena *activations = &e->accounts.arena[AEG_ACCT_ACTIVATIONS];
    const aeg_settings *s = &e->settings;
    const uint32_t vocab = e->store->hparams.vocab_size;

    /* The tokenizer's table is carved here and read by aeg_text_open. */
    e->tokenizer_table = aeg_arena_alloc(&e->accounts.arena[AEG_ACCT_TEXT], e->tokenizer_bytes, AEG_PAGE);
    AEG_TRY(aeg_team_init(&e->team, &e->accounts.arena[AEG_ACCT_IO], s->n_threads, err));
    AEG_TRY(build_memory(e, err));
    AEG_TRY(build_io(e, err));
    AEG_TRY(build_streamer(e, err));

    const aeg_model_config model = {
        .store = e->store, .kernels = &e->kernels, .team = e->team, .io = e->io, .streamer = e->streamer, .kv = &e->kv,
        .state = &e->state, .act = s->act, .n_ctx = s->n_ctx, .chunk = s->chunk, .n_threads = s->n_threads,
        .n_guess = s->prefetch,
    };
    AEG_TRY(aeg_model_init(&e->model, activations, &e->accounts.arena[AEG_ACCT_DENSE], &model, err));
    AEG_TRY(aeg_sampler_init(&e->sampler, activations, vocab, err));
    const aeg_session_config session = { .model = e->model, .state = &e->state, .n_ctx = s->n_ctx, .chunk = s->chunk,
                                         .vocab_size = vocab,
                                         .recurrent = count_mixers(&e->store->hparams, AEG_MIXER_GDN) > 0 };
    return aeg_session_init(&e->session, activations, &session, err);
}

void aeg_engine_unbuild(aegis_engine *e)
{
    aeg_streamer_close(e->streamer);
    aeg_io_close(e->io);
    aeg_team_close(e->team);
    e->streamer = NULL;
    e->io = NULL;
    e->team = NULL;
    aeg_accounts_unmap(&e->accounts);
}
