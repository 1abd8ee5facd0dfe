/* SPDX-License-Identifier: Apache-2.0 */
#include "aegis/pack.h"

#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/processors.h"
#include "base/size.h"
#include "pack/batch.h"
#include "pack/extras.h"
#include "pack/folder.h"
#include "pack/manifest.h"
#include "pack/plan.h"
#include "pack/sink.h"
#include "pack/write.h"

/* One read window and two write buffers of the same size: while one chunk is written the next is read. */
enum { MAX_WINDOW = 8 << 20, MAX_BUFFER = 8 << 20, MIN_BUFFER = 128 << 10 };
static const uint64_t default_memory = 300u << 20;
static const uint64_t manifest_estimate = 1 << 20;

typedef struct {
    const aegis_pack_options *options;
    const char *src, *tokenizer_dir;
    aeg_memory memory;
    uint64_t ceiling, peak;    /* of memory and JSON trees together */
    aeg_plan plan;
    aeg_pack_folder folder;
    aeg_sink *sink;
    uint8_t *window;
    size_t window_bytes;
    uint32_t n_threads;
    aeg_batch *batch;
    aeg_extras extras;
    bool has_tokenizer;
    uint64_t needed, store_bytes; /* about; what it became */
} packer;

static aegis_status check_bits(int bits, const char *name, aegis_error *err)
{
    if (bits == AEGIS_BITS_DEFAULT || bits == AEGIS_BITS_KEEP || (bits >= 2 && bits <= 6) || bits == 8)
        return AEGIS_OK;
    return aeg_fail(err, AEGIS_E_USAGE, "%s is %d, expected 2, 3, 4, 5, 6, 8 or keep", name, bits);
}

/* Threads that fit a quarter of the spare memory; one where types stay, because moving codes is as fast as a disk with one. */
static uint32_t choose_threads(const packer *p, uint64_t spare)
{
    uint32_t n = 1;
    if (aeg_plan_requantises(&p->plan))
        n = AEG_MIN(p->options->n_threads != 0 ? p->options->n_threads : aeg_usable_processors(), (uint32_t)AEG_BATCH_MAX_THREADS);
    while (n > 1 && aeg_batch_bytes(n) > spare / 4)
        n--;
    return n;
}

/* What is left of the ceiling after the tables goes to threads, one read window and two write buffers. */
static aegis_status share_memory(packer *p, size_t *buffer, aegis_error *err)
{
    /* the manifest's text may double while it grows; stack and headers of the sink */
    const uint64_t tables = p->memory.in_use + (400u << 10) + ((uint64_t)p->plan.vision.n + p->plan.mtp.n) * 700 +
                            (uint64_t)p->plan.n_tensors * 700 + aeg_batch_bytes(1);
    const uint64_t smallest = AEG_MAX(p->plan.max_block + 2 * AEG_RAW_ALIGN, (size_t)MIN_BUFFER);
    const uint64_t needed = tables + 2 * smallest + p->plan.min_window;
    char a[AEG_SIZE_TEXT], b[AEG_SIZE_TEXT];
    if (p->ceiling < needed)
        return aeg_fail(err, AEGIS_E_MEMORY, "packing this model needs %s of memory, but may use %s", aeg_size_format(a, needed),
                        aeg_size_format(b, p->ceiling));
    p->n_threads = choose_threads(p, p->ceiling - needed);
    const uint64_t spare = p->ceiling - needed - (aeg_batch_bytes(p->n_threads) - aeg_batch_bytes(1));
    *buffer = (size_t)AEG_MAX(smallest, AEG_MIN((uint64_t)MAX_BUFFER, smallest + spare / 3));
    p->window_bytes = (size_t)AEG_MAX(p->plan.min_window, AEG_MIN((uint64_t)MAX_WINDOW, p->plan.min_window + spare / 3));
    return AEGIS_OK;
}

static aegis_status write_manifest(packer *p, aegis_error *err)
{
    aeg_text text = { .memory = &p->memory };
    aeg_pack_file file = { .name = "manifest.json" };
    aegis_status status;
    aeg_manifest_write(&text, &p->plan, p->extras.files, p->extras.n_files, p->options->outline);
    if (text.failed)
        status = aeg_fail(err, AEGIS_E_MEMORY, "no memory for the manifest");
    else
        status = aeg_extras_put(p->sink, p->folder.part, &file, text.data, text.n, err);
    p->store_bytes += file.bytes;
    aeg_text_free(&text);
    return status;
}

/* The tokenizer needs the most memory for a moment: before the large buffers are there. */
static aegis_status write_extras(packer *p, aegis_error *err)
{
    AEG_TRY(aeg_sink_new(&p->sink, MIN_BUFFER - 2 * AEG_RAW_ALIGN, MIN_BUFFER, &p->memory, err));
    p->extras = (aeg_extras){ .folder = p->folder.part, .src = p->src, .tokenizer_dir = p->tokenizer_dir,
                              .gguf = aeg_plan_is_gguf(&p->plan) ? &p->plan.gguf : NULL, .sink = p->sink,
                              .memory = &p->memory };
    AEG_TRY(aeg_extras_write(&p->extras, err));
    for (uint32_t i = 0; i < p->extras.n_files; i++) {
        p->store_bytes += p->extras.files[i].bytes;
        p->has_tokenizer |= strcmp(p->extras.files[i].name, "tokenizer.bin") == 0;
    }
    aeg_sink_free(p->sink);
    p->sink = NULL;
    return AEGIS_OK;
}

static aegis_status check_tokenizer(const packer *p, aegis_error *err)
{
    if (p->has_tokenizer || !p->options->needs_tokenizer)
        return AEGIS_OK;
    if (p->tokenizer_dir == NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: no tokenizer in it (key 'tokenizer.ggml.model'), so it has no text; name a folder that "
                        "has one with --tokenizer, or use token ids", p->src);
    return aeg_fail(err, AEGIS_E_MODEL, "%s: neither tokenizer.json nor tokenizer.model is there, so the model has no text; name a "
                    "folder that has one with --tokenizer, or use token ids", p->tokenizer_dir);
}

/* A batch is a part of a buffer, so that the other one is written meanwhile in large pieces. */
static aegis_status open_sink(packer *p, size_t buffer, aegis_error *err)
{
    const size_t room = buffer - 2 * AEG_RAW_ALIGN;
    AEG_TRY(aeg_sink_new(&p->sink, room, buffer, &p->memory, err));
    return aeg_batch_new(&p->batch, p->sink, AEG_MAX(p->plan.max_block, room / 4), p->n_threads, &p->memory, err);
}

static void add_file_sizes(packer *p)
{
    for (int f = 0; f < AEG_N_FILES; f++)
        p->store_bytes += p->plan.file_bytes[f];
}

/* The large files with nothing in them, and what a plan needs. */
static aegis_status write_outline(packer *p, aegis_error *err)
{
    for (int f = 0; f < AEG_N_FILES; f++)
        if (p->plan.file_bytes[f] > 0)
            AEG_TRY(aeg_folder_hole(&p->folder, aeg_store_file_name((aeg_store_file)f), p->plan.file_bytes[f], err));
    add_file_sizes(p);
    AEG_TRY(aeg_sink_new(&p->sink, MIN_BUFFER - 2 * AEG_RAW_ALIGN, MIN_BUFFER, &p->memory, err));
    return write_manifest(p, err);
}

static aegis_status write_files(packer *p, aegis_error *err)
{
    p->window = aeg_raw_buffer(&p->memory, p->window_bytes);
    if (p->window == NULL)
        return aeg_fail(err, AEGIS_E_MEMORY, "no memory for a read buffer of %zu bytes", p->window_bytes);
    aeg_pack_writer w = { .plan = &p->plan, .sink = p->sink, .batch = p->batch, .folder = p->folder.part, .window = p->window,
                          .window_bytes = p->window_bytes, .options = p->options };
    AEG_TRY(aeg_write_dense(&w, err));
    AEG_TRY(aeg_write_embed(&w, err));
    AEG_TRY(aeg_write_experts(&w, err));
    AEG_TRY(aeg_write_raw(&w, AEG_FILE_VISION, &p->plan.vision, err));
    AEG_TRY(aeg_write_raw(&w, AEG_FILE_MTP, &p->plan.mtp, err));
    add_file_sizes(p);
    return write_manifest(p, err);
}

/* Everything that may hold a JSON tree: half of the ceiling for trees, half for the rest. */
static aegis_status prepare(packer *p, const char *dst, size_t *buffer, aegis_error *err)
{
    AEG_TRY(aeg_folder_check(&p->folder, dst, err));
    AEG_TRY(aeg_plan_open(&p->plan, p->src, p->options->expert_bits, p->options->dense_bits, &p->memory, err));
    AEG_TRY(share_memory(p, buffer, err));
    if (p->tokenizer_dir == NULL && !aeg_plan_is_gguf(&p->plan))
        p->tokenizer_dir = p->src;
    p->needed = manifest_estimate + aeg_extras_estimate(p->src, p->tokenizer_dir, &p->plan.gguf);
    for (int f = 0; f < AEG_N_FILES; f++)
        p->needed += p->plan.file_bytes[f];
    if (!p->options->outline)
        AEG_TRY(aeg_folder_space(&p->folder, p->needed, err));
    AEG_TRY(aeg_folder_begin(&p->folder, err));
    AEG_TRY(write_extras(p, err));
    return check_tokenizer(p, err);
}

static aegis_status run(packer *p, const char *dst, aegis_error *err)
{
    size_t buffer = 0;
    AEG_TRY(check_bits(p->options->expert_bits, "expert bits", err));
    AEG_TRY(check_bits(p->options->dense_bits, "dense bits", err));
    aeg_json_init();
    aeg_memory *json = aeg_json_memory();
    const aeg_memory saved = { .ceiling = json->ceiling, .peak = json->peak, .in_use = json->in_use };
    p->memory.ceiling = p->ceiling / 2;
    if (json->ceiling == 0)
        json->ceiling = saved.in_use + p->ceiling / 2;
    json->peak = saved.in_use;
    const aegis_status status = prepare(p, dst, &buffer, err);
    p->peak = p->memory.peak + (json->peak - saved.in_use);
    json->peak = AEG_MAX(json->peak, saved.peak);
    json->ceiling = saved.ceiling;
    AEG_TRY(status);
    p->memory.ceiling = p->ceiling;
    p->memory.peak = p->memory.in_use;
    if (p->options->outline) {
        AEG_TRY(write_outline(p, err));
        return aeg_folder_finish(&p->folder, err);
    }
    AEG_TRY(open_sink(p, buffer, err));
    if (p->options->begins != NULL)
        p->options->begins(p->options->begins_ctx, p->needed);
    AEG_TRY(write_files(p, err));
    p->peak = AEG_MAX(p->peak, p->memory.peak);
    return aeg_folder_finish(&p->folder, err);
}

aegis_status aegis_pack(const char *src, const char *dst, const aegis_pack_options *options, aegis_pack_result *result,
                        aegis_error *err)
{
    static const aegis_pack_options defaults;
    const uint64_t start = aeg_now_ns();
    packer p = { .options = options == NULL ? &defaults : options, .src = src, .folder = { .fd = -1 },
                 .memory = { .name = "pack" } };
    p.tokenizer_dir = p.options->tokenizer_dir;
    p.ceiling = p.options->memory_bytes == 0 ? default_memory : AEG_MIN(p.options->memory_bytes, default_memory);
    aegis_status status = run(&p, dst, err);
    if (status == AEGIS_E_MODEL) /* a tensor or a tokenizer, say */
        status = aeg_wrap_path(err, status, "model ", src);
    if (status == AEGIS_OK && result != NULL)
        *result = (aegis_pack_result){ .source_bytes = p.plan.source_bytes, .store_bytes = p.store_bytes,
                                       .peak_memory_bytes = p.peak,
                                       .seconds = (double)(aeg_now_ns() - start) * 1e-9 };
    aeg_batch_free(p.batch);
    aeg_sink_free(p.sink);
    aeg_raw_buffer_free(&p.memory, p.window);
    aeg_folder_abandon(&p.folder);
    aeg_plan_close(&p.plan);
    return status;
}
