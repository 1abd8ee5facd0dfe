/* SPDX-License-Identifier: Apache-2.0 */
#include "measured.h"

#include "bandwidth.h"
#include "base/processors.h"
#include "disk_figure.h"

aegis_status aeg_measured_fill(const aeg_cli *cli, aegis_options *options, double read_bandwidth, double *disk_bytes_per_s,
                               aegis_error *err)
{
    aegis_plan plan;
    aeg_disk_figure disk;
    aegis_measured *m = &options->measured;
    *disk_bytes_per_s = 0;
    AEG_TRY(aegis_plan_compute(options, &plan, err)); /* for the size of a record */
    if (options->io == AEGIS_IO_SIM) {
        *disk_bytes_per_s = options->sim_bytes_per_s;
    } else if (options->io != AEGIS_IO_NULL && aeg_disk_figure_find(options->store, plan.slot_bytes, &disk)) {
        *disk_bytes_per_s = disk.bytes_per_s;
        m->disk_bytes_per_s = disk.burst_bytes_per_s;
        m->disk_latency_s = disk.burst_latency_s;
    }
    if (read_bandwidth <= 0)
        read_bandwidth = aeg_disk_figure_bandwidth();
    if (read_bandwidth <= 0 && *disk_bytes_per_s > 0)
        read_bandwidth = aeg_bandwidth_measure(aeg_bandwidth_bytes(cli->memory),
                                               cli->threads != 0 ? cli->threads : aeg_usable_processors()).median;
    m->read_bytes_per_s = read_bandwidth;
    return AEGIS_OK;
}
