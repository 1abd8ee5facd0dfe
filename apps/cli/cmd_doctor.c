/* SPDX-License-Identifier: Apache-2.0 */
/* `aegis doctor`: what this machine gives the engine. Its disk figure is kept for plan and bench. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/size.h"
#include "commands.h"
#include "doctor.h"
#include "signals.h"
#include "ui.h"

static const char *const state_names[] = { "ok", "advice", "fail" };

static void measure_bandwidth(aeg_doctor *d, uint32_t asked_threads)
{
    const uint32_t most = asked_threads != 0 ? asked_threads : d->machine.usable;
    /* A machine with less than twice the buffer gets a smaller one. */
    const uint64_t bytes = aeg_bandwidth_bytes(d->machine.available_bytes);
    for (uint32_t n = 1; d->n_steps < AEG_DOCTOR_MAX_STEPS; n = AEG_MIN(2 * n, most)) {
        d->threads[d->n_steps] = n;
        d->bandwidth[d->n_steps++] = aeg_bandwidth_measure(bytes, n);
        if (n >= most)
            break;
    }
}

static json_t *disk_json(const aeg_doctor_disk *k)
{
    if (!k->measured)
        return json_null();
    json_t *depths = json_array(), *bursts = json_array();
    for (uint32_t i = 0; i < AEG_DOCTOR_DEPTHS; i++)
        json_array_append_new(depths, json_pack("{s:i, s:f}", "depth", (int)aeg_doctor_depths[i], "bytes_per_s", k->depth_rate[i]));
    for (uint32_t i = 0; i < AEG_DOCTOR_BURSTS; i++)
        json_array_append_new(bursts, json_pack("{s:i, s:f}", "reads", (int)aeg_doctor_bursts[i], "seconds", k->burst_s[i]));
    return json_pack("{s:s, s:I, s:I, s:s, s:b, s:b, s:b, s:b, s:o, s:o, s:f, s:f, s:f, s:f, s:b}",
                     "path", k->path, "file_bytes", (json_int_t)k->file_bytes, "record_bytes",
                     (json_int_t)k->figure.record_bytes, "how", k->first.how, "direct", (int)k->first.direct, "io_uring",
                     (int)k->uring, "registered_buffers", (int)k->registered, "temporary_file", (int)k->temporary,
                     "depths", depths, "bursts", bursts, "sequential_bytes_per_s", k->sequential_rate, "bytes_per_s",
                     k->figure.bytes_per_s, "burst_bytes_per_s", k->figure.burst_bytes_per_s, "burst_latency_s",
                     k->figure.burst_latency_s, "reread", (int)k->reread);
}

static json_t *doctor_json(const aeg_doctor *d)
{
    json_t *items = json_array(), *bandwidth = json_array();
    for (uint32_t i = 0; i < d->n_items; i++) {
        const aeg_doctor_item *item = &d->items[i];
        json_array_append_new(items, json_pack("{s:s, s:s, s:s, s:s}", "name", item->name, "state",
                                               state_names[item->state], "found", item->found, "advice", item->advice));
    }
    for (uint32_t i = 0; i < d->n_steps; i++)
        json_array_append_new(bandwidth, json_pack("{s:i, s:f, s:f, s:f}", "threads", (int)d->threads[i], "min",
                                                   d->bandwidth[i].min, "median", d->bandwidth[i].median, "max",
                                                   d->bandwidth[i].max));
    return json_pack("{s:s, s:o, s:s, s:o, s:o, s:i, s:o, s:b}", "version", aegis_version(), "machine",
                     aeg_machine_json(&d->machine), "kernels", d->kernels, "disk", disk_json(&d->disk), "read_bandwidth",
                     bandwidth, "knee_threads", (int)d->knee, "items", items, "kept", (int)d->kept);
}

static void print_rates(const aeg_doctor *d)
{
    const aeg_doctor_disk *k = &d->disk;
    if (k->measured) {
        char record[AEG_SIZE_TEXT];
        printf("\nrandom reads of %s by %s\n  in flight ", aeg_size_format(record, k->figure.record_bytes), k->first.how);
        for (uint32_t i = 0; i < AEG_DOCTOR_DEPTHS; i++)
            printf("%8u", aeg_doctor_depths[i]);
        printf("\n  GB/s      ");
        for (uint32_t i = 0; i < AEG_DOCTOR_DEPTHS; i++)
            printf("%8.2f", k->depth_rate[i] * 1e-9);
        printf("\n  n reads submitted together take %.0f us + n x %s at %.2f GB/s\n", k->figure.burst_latency_s * 1e6, record,
               k->figure.burst_bytes_per_s * 1e-9);
    }
    printf("\nreads from memory\n  threads   ");
    for (uint32_t i = 0; i < d->n_steps; i++)
        printf("%8u", d->threads[i]);
    printf("\n  GB/s      ");
    for (uint32_t i = 0; i < d->n_steps; i++)
        printf("%8.1f", d->bandwidth[i].median * 1e-9);
    printf("\n");
}

static void print_doctor(const aeg_doctor *d)
{
    for (uint32_t i = 0; i < d->n_items; i++) {
        const aeg_doctor_item *item = &d->items[i];
        printf("%-7s %-19s %s\n", state_names[item->state], item->name, item->found);
        if (item->advice[0] != '\0')
            printf("%-27s > %s\n", "", item->advice);
    }
    print_rates(d);
}

static void keep_figure(aeg_doctor *d)
{
    aegis_error err = { .status = AEGIS_OK };
    if (!d->disk.measured)
        return;
    char folder[AEG_PATH_MAX]; /* a temporary file is gone by now; its folder is not */
    snprintf(folder, sizeof folder, "%s", d->disk.path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL && slash != folder)
        *slash = '\0';
    d->kept = aeg_disk_figure_save(slash != NULL ? folder : ".", &d->disk.figure, &err) == AEGIS_OK;
    if (!d->kept)
        aeg_ui_say("the figures are not kept for plan and bench: %s", err.message);
}

aegis_status aeg_cmd_doctor(aeg_cli *cli, aegis_error *err)
{
    static aeg_doctor d; /* larger than a stack likes */
    const char *model = cli->model != NULL ? cli->model : cli->n_args > 0 ? cli->args[0] : NULL;
    if (cli->model != NULL && cli->n_args > 0)
        return aeg_fail(err, AEGIS_E_USAGE, "two models: '%.80s' and '%.80s'", cli->model, cli->args[0]);
    if (cli->io == AEGIS_IO_NULL || cli->io == AEGIS_IO_SIM)
        return aeg_fail(err, AEGIS_E_USAGE, "--io: a disk is examined with auto, uring or pread");
    aeg_json_init();
    aeg_machine_describe(&d.machine);
    measure_bandwidth(&d, cli->threads);
    AEG_TRY(aeg_doctor_read_disk(&d.disk, model, (aegis_io)cli->io, err));
    if (aeg_signals_caught(false) != 0)
        return aeg_fail(err, AEGIS_E_CANCELLED, "interrupted");
    d.kernels = aegis_probe_kernels(&d.dropped);
    aeg_doctor_judge(&d);
    keep_figure(&d);
    if (cli->json)
        return aeg_ui_print_json(doctor_json(&d), err);
    print_doctor(&d);
    if (d.kept)
        printf("\nkept for plan and bench: models on this filesystem with experts of about this size\n");
    return aeg_ui_flush(err);
}
