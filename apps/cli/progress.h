/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - how far a long job is, on standard error: a bar on a terminal (at most ten times a second),
 * otherwise a line every 10 %. Jobs that end within half a second show nothing. Thread: owner only. */
#ifndef AEG_CLI_PROGRESS_H
#define AEG_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const char *label;
    uint64_t start_ns, last_ns;
    uint32_t last_tenth;
    bool shown;
} aeg_progress;

void aeg_progress_start(aeg_progress *p, const char *label);
/* ctx: an aeg_progress. The type of aegis_pack's and aegis_store_verify's callbacks. */
void aeg_progress_update(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
/* Clear the bar. */
void aeg_progress_end(aeg_progress *p);

#endif
