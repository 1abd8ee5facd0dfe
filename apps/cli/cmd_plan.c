/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis plan`: what a budget would be spent on. */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/json.h"
#include "base/size.h"
#include "commands.h"
#include "disk_figure.h"
#include "measured.h"
#include "model_source.h"
#include "setup.h"
#include "store_folder.h"
#include "ui.h"

static json_t *plan_json(const aegis_plan *plan, const aegis_measured *measured, double disk)
{
    aeg_json_init();
    json_t *accounts = json_array();
    for (uint32_t i = 0; i < plan->n_accounts; i++)
        json_array_append_new(accounts, json_pack("{s:s, s:I}", "name", plan->accounts[i].name, "bytes",
                                                  (json_int_t)plan->accounts[i].bytes));
    return json_pack("{s:I, s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:f, s:f, s:b, s:f, s:f}",
                     "budget", (json_int_t)plan->budget_bytes, "fits", (int)plan->fits,
                     "minimum_budget", (json_int_t)plan->minimum_bytes, "total", (json_int_t)plan->total_bytes,
                     "all_resident", (json_int_t)plan->all_resident_bytes, "n_ctx", (json_int_t)plan->n_ctx,
                     "max_n_ctx", (json_int_t)plan->max_n_ctx, "accounts", accounts,
                     "expert_slots", (json_int_t)plan->expert_slots, "experts", (json_int_t)plan->n_experts_total,
                     "slot_bytes", (json_int_t)plan->slot_bytes, "chunk", (json_int_t)plan->chunk,
                     "threads", (json_int_t)plan->n_threads, "predicted_decode_tok_s", plan->predicted_decode_tok_s,
                     "predicted_full_tok_s", plan->predicted_full_tok_s, "predicted_position",
                     (json_int_t)plan->predicted_position, "predicted_hit_rate", plan->predicted_hit_rate, "predicted_hidden", plan->predicted_hidden,
                     "typical_hit_curve", (int)plan->typical_hit_curve, "disk_bytes_per_s", disk, "read_bandwidth",
                     measured->read_bytes_per_s);
}

/* As it was given, so that the line can be copied; doctor has no options of packing and would look for another store. */
static const char *as_doctor_finds_it(const aeg_cli *cli, const aeg_outline *model)
{
    const bool other = cli->expert_bits != 0 || cli->dense_bits != 0 || cli->tokenizer != NULL;
    return other && !model->is_outline ? model->store : cli->model;
}

static void print_no_prediction(const aegis_plan *plan, const aegis_options *options, const char *model)
{
    aeg_disk_figure other;
    char measured[AEG_SIZE_TEXT], needed[AEG_SIZE_TEXT];
    aeg_disk_figure_find(options->store, plan->slot_bytes, &other);
    printf("decode speed is not predicted: ");
    if (other.record_bytes != 0)
        printf("the disk was measured with reads of %s, this model's are %s; ", aeg_size_format(measured, other.record_bytes),
               aeg_size_format(needed, plan->slot_bytes));
    printf("run `aegis doctor %s` first, or name a disk (--sim-disk 3GB/s)\n", model);
}

static void print_prediction(const aegis_plan *plan, const aegis_measured *measured, double disk)
{
    if (plan->predicted_hit_rate >= 1)
        printf("predicted with all experts in memory");
    else
        printf("predicted with %s hit curve: %.0f %% of the experts found, disk %.2f GB/s, %.0f %% of the reading behind computing",
               plan->typical_hit_curve ? "a typical" : "the store's", 100 * plan->predicted_hit_rate, disk * 1e-9,
               100 * plan->predicted_hidden);
    printf(", memory reads %.1f GB/s\n", measured->read_bytes_per_s * 1e-9);
}

/* Free bytes where the store will be; 0: not known. */
static uint64_t free_bytes(const char *folder)
{
    struct statvfs s;
    return statvfs(folder, &s) == 0 ? (uint64_t)s.f_bavail * s.f_frsize : 0;
}

static void print_not_packed(const aeg_outline *outline, uint64_t bytes)
{
    char needs[AEG_SIZE_TEXT], has[AEG_SIZE_TEXT];
    const uint64_t room = free_bytes(outline->place.folder);
    printf("not packed yet: its first use writes %s to %s, where %s are free%s\n", aeg_size_format(needs, bytes), outline->place.folder,
           aeg_size_format(has, room), room < bytes ? ": too little (set XDG_CACHE_HOME, or run aegis pack SRC DST)" : "");
}

static aegis_status print_plan(const aeg_cli *cli, const aeg_outline *model, aegis_error *err)
{
    aegis_options options;
    aegis_plan plan;
    double disk = 0;
    const uint64_t bytes = aeg_store_folder_bytes(model->store);
    aeg_setup_options(cli, model->store, &options);
    aeg_setup_warn(cli);
    AEG_TRY(aeg_measured_fill(cli, &options, 0, &disk, err));
    AEG_TRY(aegis_plan_compute(&options, &plan, err));
    if (cli->json) {
        json_t *json = plan_json(&plan, &options.measured, disk);
        json_object_set_new(json, "packed", json_boolean(!model->is_outline));
        json_object_set_new(json, "store_bytes", json_integer((json_int_t)bytes));
        AEG_TRY(aeg_ui_print_json(json, err));
    } else {
        aeg_setup_print_plan(&plan, stdout);
        if (plan.fits && plan.predicted_decode_tok_s > 0)
            print_prediction(&plan, &options.measured, disk);
        else if (plan.fits)
            print_no_prediction(&plan, &options, as_doctor_finds_it(cli, model));
        if (model->is_outline)
            print_not_packed(model, bytes);
        AEG_TRY(aeg_ui_flush(err));
    }
    return plan.fits ? AEGIS_OK : aegis_plan_refuse(&plan, err);
}

aegis_status aeg_cmd_plan(aeg_cli *cli, aegis_error *err)
{
    aeg_outline model;
    AEG_TRY(aeg_source_outline(cli, &model, err));
    const aegis_status status = print_plan(cli, &model, err);
    aeg_source_drop(&model);
    return status;
}
