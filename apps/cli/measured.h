/* SPDX-License-Identifier: Apache-2.0 */
/* measured.h - what plan and bench know of this machine when they predict. Thread: main only. */
#ifndef AEG_CLI_MEASURED_H
#define AEG_CLI_MEASURED_H

#include "aegis/aegis.h"
#include "options.h"

/* Fill options->measured for options->store: doctor's disk figure for reads of its records, and the read bandwidth: the
 * given one, or (0) doctor's, or one that is measured now if everything else is known. *disk_bytes_per_s: what the disk
 * delivers at best, the simulated one with --io sim; 0 if it is not known. */
aegis_status aeg_measured_fill(const aeg_cli *cli, aegis_options *options, double read_bandwidth, double *disk_bytes_per_s,
                               aegis_error *err);

#endif
