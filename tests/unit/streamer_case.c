/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/streamer_case.h"

#include <string.h>

#include "io/backend.h"

static uint8_t byte_of(uint32_t layer, uint32_t expert, uint32_t at)
{
    const uint32_t x = (layer * CASE_EXPERTS + expert + 1) * 2654435761u ^ at * 40503u;
    return (uint8_t)(x >> 11 ^ x >> 3);
}

static char file_path[4096];

void case_restore(void)
{
    static uint8_t bytes[CASE_LAYERS * CASE_EXPERTS * CASE_RECORD];
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = byte_of(i / CASE_RECORD / CASE_EXPERTS, i / CASE_RECORD % CASE_EXPERTS, i % CASE_RECORD);
    t_write_file(file_path, bytes, sizeof bytes);
}

const char *case_path(void)
{
    if (file_path[0] == '\0') {
        strncpy(file_path, t_path(t_folder(), "experts.bin"), sizeof file_path - 1);
        case_restore();
    }
    return file_path;
}

void case_fill_store(aeg_store *store)
{
    *store = (aeg_store){ .hparams = { .n_layers = CASE_LAYERS, .n_experts = CASE_EXPERTS, .top_k = CASE_TOP_K },
                          .experts = { .record_bytes = CASE_RECORD, .down_offset = CASE_DOWN } };
    for (uint32_t layer = 0; layer < CASE_LAYERS; layer++) {
        store->experts.gate_up_bytes[layer] = 5000 + layer;
        store->experts.down_bytes[layer] = 4000 - layer;
    }
}

static void count_event(void *ctx, const aeg_streamer_event *event)
{
    case_state *c = ctx;
    c->n_events++;
    c->last = *event;
}

void case_open(case_state *c, const case_config *cfg)
{
    *c = (case_state){ .n_slots = cfg->n_slots, .has_bytes = cfg->kind != AEG_IO_NULL };
    case_fill_store(&c->store);
    /* Emulators and containers may refuse io_uring: then the pool is what users get. */
    int os_code;
    const bool refused = cfg->kind == AEG_IO_URING && !aeg_io_uring_usable(&os_code);
    const aeg_io_config io = { .kind = refused ? AEG_IO_PREAD : cfg->kind, .depth = cfg->depth, .n_files = 1, .paths = { case_path() },
                               .sim_bytes_per_s = cfg->sim_bytes_per_s, .sim_latency_s = cfg->sim_latency_s,
                               .fault = cfg->fault, .fault_ctx = cfg->fault_ctx };
    aeg_streamer_config streamer = { .store = &c->store, .n_slots = cfg->n_slots, .max_demand = CASE_EXPERTS,
                                     .prefetch = cfg->prefetch, .split_bytes = cfg->split_bytes,
                                     .telemetry = count_event, .telemetry_ctx = c };
    aegis_error err;
    c->io_arena = aeg_arena_measure("io");
    c->tables = aeg_arena_measure("tables");
    c->slots = aeg_arena_measure("slots");
    T_OK(aeg_io_open(&c->io, &c->io_arena, &io, &err), &err);
    T_OK(aeg_streamer_init(&c->streamer, &c->tables, &c->slots, &streamer, &err), &err);
    T_CHECK(c->io == NULL && c->streamer == NULL && c->slots.used == (uint64_t)cfg->n_slots * CASE_RECORD);
    T_OK(aeg_arena_map(&c->io_arena, "io", c->io_arena.used, false, &err), &err);
    T_OK(aeg_arena_map(&c->tables, "tables", c->tables.used, false, &err), &err);
    T_OK(aeg_arena_map(&c->slots, "slots", c->slots.used, false, &err), &err);
    T_OK(aeg_io_open(&c->io, &c->io_arena, &io, &err), &err);
    streamer.io = c->io;
    T_OK(aeg_streamer_init(&c->streamer, &c->tables, &c->slots, &streamer, &err), &err);
}

void case_close(case_state *c)
{
    aeg_streamer_close(c->streamer);
    T_CHECK(aeg_io_flight(c->io) == 0);
    aeg_io_close(c->io);
    aeg_arena_unmap(&c->io_arena);
    aeg_arena_unmap(&c->tables);
    aeg_arena_unmap(&c->slots);
}

uint32_t case_choose(uint16_t *experts, uint32_t *uses, uint32_t n)
{
    uint32_t chosen = 0;
    for (uint32_t expert = 0; expert < CASE_EXPERTS && chosen < n; expert++)
        if (t_below(CASE_EXPERTS - expert) < n - chosen) {
            experts[chosen] = (uint16_t)expert;
            uses[chosen++] = (uint32_t)t_between(1, 5);
        }
    return chosen;
}

void case_check_view(const case_state *c, uint32_t layer, const uint16_t *experts, const aeg_expert_view *view)
{
    const uint32_t expert = experts[view->index];
    if (!c->has_bytes)
        return;
    for (uint32_t i = 0; i < 5000 + layer; i++)
        if (view->gate_up[i] != byte_of(layer, expert, i))
            T_CHECK(!"a byte of gate and up");
    for (uint32_t i = 0; i < 4000 - layer; i++)
        if (view->down[i] != byte_of(layer, expert, CASE_DOWN + i))
            T_CHECK(!"a byte of down");
}

aegis_status case_take_all(case_state *c, uint32_t layer, const uint16_t *experts, uint32_t n, aegis_error *err)
{
    aeg_expert_view views[CASE_EXPERTS];
    uint32_t got = 0;
    for (uint32_t total = 0; total < n; total += got) {
        AEG_TRY(aeg_streamer_take(c->streamer, views, CASE_EXPERTS, &got, err));
        T_CHECK(got > 0);
        for (uint32_t i = 0; i < got; i++) {
            case_check_view(c, layer, experts, &views[i]);
            aeg_streamer_done(c->streamer, &views[i]);
        }
    }
    return AEGIS_OK;
}
