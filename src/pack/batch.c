/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/batch.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/threads.h"
#include "format/rawfile.h"

enum { MAX_BLOCKS = 512 };

typedef struct {
    aeg_batch_block block;
    size_t at;                 /* from the beginning of the stretch */
} placed;

struct aeg_batch {
    aeg_memory *memory;
    aeg_sink *sink;
    aeg_team *team;            /* NULL: one thread */
    uint8_t *team_buffer;
    size_t limit, bytes;
    uint32_t n;
    uint8_t *dst;
    _Atomic uint32_t failed;   /* the first block that could not be made, or MAX_BLOCKS */
    placed blocks[MAX_BLOCKS];
};

static uint64_t team_bytes(uint32_t n_threads)
{
    aeg_arena measure = aeg_arena_measure("pack");
    aeg_team *team = NULL;
    if (n_threads > 1)
        aeg_team_init(&team, &measure, n_threads, NULL);
    return measure.used;
}

uint64_t aeg_batch_bytes(uint32_t n_threads) { return sizeof(aeg_batch) + team_bytes(n_threads) + 2 * AEG_RAW_ALIGN; }

static aegis_status start_team(aeg_batch *b, uint32_t n_threads, aegis_error *err)
{
    const uint64_t bytes = team_bytes(n_threads);
    if (bytes == 0)
        return AEGIS_OK;
    b->team_buffer = aeg_raw_buffer(b->memory, bytes);
    if (b->team_buffer == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for the stacks of %u threads", n_threads);
    memset(b->team_buffer, 0, bytes);
    aeg_arena arena = { .name = "pack", .base = b->team_buffer, .size = bytes };
    aegis_error why;
    if (aeg_team_init(&b->team, &arena, n_threads, &why) == AEGIS_OK)
        return AEGIS_OK;
    /* As the sink does without its helper: slower, and said. */
    aeg_log(AEG_LOG_NOTICE, "packing with one thread: %s", why.message);
    aeg_raw_buffer_free(b->memory, b->team_buffer);
    b->team_buffer = NULL;
    return AEGIS_OK;
}

aegis_status aeg_batch_new(aeg_batch **out, aeg_sink *sink, size_t limit, uint32_t n_threads, aeg_memory *memory,
                           aegis_error *err)
{
    aeg_batch *b = aeg_calloc(memory, 1, sizeof *b);
    if (b == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a table of %d row blocks", MAX_BLOCKS);
    b->memory = memory;
    b->sink = sink;
    b->limit = limit;
    const aegis_status status = start_team(b, n_threads, err);
    if (status == AEGIS_OK)
        *out = b;
    else
        aeg_batch_free(b);
    return status;
}

void aeg_batch_free(aeg_batch *b)
{
    if (b == NULL)
        return;
    aeg_team_close(b->team);
    aeg_raw_buffer_free(b->memory, b->team_buffer);
    aeg_free(b->memory, b);
}

static bool make(const aeg_batch_block *k, uint8_t *dst)
{
    return k->n_rows > 0 ? aeg_block_pack(&k->rows, k->n_rows, k->out, dst) : aeg_embed_row_pack(&k->rows, k->out, dst);
}

static void make_blocks(void *ctx, uint32_t begin, uint32_t end, uint32_t thread)
{
    aeg_batch *b = ctx;
    (void)thread;
    for (uint32_t i = begin; i < end; i++) {
        if (make(&b->blocks[i].block, b->dst + b->blocks[i].at))
            continue;
        /* relaxed: read after the job, which orders it */
        uint32_t first = atomic_load_explicit(&b->failed, memory_order_relaxed);
        while (i < first && !atomic_compare_exchange_weak_explicit(&b->failed, &first, i, memory_order_relaxed, memory_order_relaxed))
            ;
    }
}

static size_t bytes_of(const aeg_batch_block *k)
{
    return k->n_rows > 0 ? aeg_block_bytes(k->out, k->rows.n_cols)
                         : aeg_rows_weight_bytes(k->out, k->rows.n_cols) + 2 * aeg_rows_scale_bytes(k->out, k->rows.n_cols);
}

aegis_status aeg_batch_put(aeg_batch *b, const aeg_batch_block *block, aegis_error *err)
{
    const size_t n = bytes_of(block);
    if (b->n == MAX_BLOCKS || (b->n > 0 && b->bytes + n > b->limit))
        AEG_TRY(aeg_batch_flush(b, err));
    b->blocks[b->n++] = (placed){ .block = *block, .at = b->bytes };
    b->bytes += n;
    return AEGIS_OK;
}

aegis_status aeg_batch_flush(aeg_batch *b, aegis_error *err)
{
    const uint32_t n = b->n;
    const size_t bytes = b->bytes;
    if (n == 0)
        return AEGIS_OK;
    b->n = 0;
    b->bytes = 0;
    b->failed = MAX_BLOCKS;
    AEG_TRY(aeg_sink_reserve(b->sink, bytes, &b->dst, err));
    aeg_team_run(b->team, n, make_blocks, b);
    if (b->failed < n) {
        const aeg_batch_block *k = &b->blocks[b->failed].block;
        return aeg_fail(err, AEGIS_E_MODEL, "tensor '%.200s': a value near row %llu is not finite, or its group is too wide",
                        k->m->weight->name, (unsigned long long)(k->m->row0 + k->row));
    }
    aeg_sink_commit(b->sink, bytes);
    return AEGIS_OK;
}
