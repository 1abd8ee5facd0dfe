/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - `aegis doctor`: what its files share. Thread: main only.
 *
 * cmd_doctor.c prints, doctor_disk.c reads, doctor_checks.c turns findings into items with advice.
 */
#ifndef AEG_CLI_DOCTOR_H
#define AEG_CLI_DOCTOR_H

#include "aegis/probe.h"
#include "bandwidth.h"
#include "base/file.h"
#include "disk_figure.h"
#include "machine.h"
#include "options.h"

enum {
    AEG_DOCTOR_MAX_ITEMS = 20, AEG_DOCTOR_DEPTHS = 6, AEG_DOCTOR_BURSTS = 4, AEG_DOCTOR_MAX_STEPS = 12,
    AEG_DOCTOR_TEXT = 256,
};

typedef enum { AEG_DOCTOR_OK, AEG_DOCTOR_ADVICE, AEG_DOCTOR_FAIL } aeg_doctor_state; /* ADVICE: works, could be better */

typedef struct {
    const char *name;
    aeg_doctor_state state;
    char found[AEG_DOCTOR_TEXT];
    char advice[AEG_DOCTOR_TEXT]; /* one sentence on what to do; empty when OK */
} aeg_doctor_item;

typedef struct {
    char path[AEG_PATH_MAX];   /* the file that was read */
    bool temporary;            /* it is ours and is removed again */
    uint64_t file_bytes;
    bool measured;
    char why_not[AEGIS_ERROR_MAX];
    aegis_probe_rate first;    /* how reads are done here */
    double depth_rate[AEG_DOCTOR_DEPTHS];   /* random reads of a record at depths 1, 2, 4, 8, 16, 32 */
    double burst_s[AEG_DOCTOR_BURSTS];      /* 1, 2, 4, 8 of them submitted together and waited for */
    double sequential_rate;
    bool reread;               /* the file has too few records for reading each once */
    bool registered;           /* a piece of the engine's slots can be, and is read into */
    bool uring;                /* can be used */
    int uring_code;            /* errno of the refusal */
    aeg_disk_figure figure;
} aeg_doctor_disk;

typedef struct {
    aeg_machine machine;
    aeg_doctor_disk disk;
    uint32_t n_steps;          /* read bandwidth by threads */
    uint32_t threads[AEG_DOCTOR_MAX_STEPS];
    aeg_bandwidth bandwidth[AEG_DOCTOR_MAX_STEPS];
    uint32_t knee;             /* fewest threads that reach 95 % of the best */
    const char *kernels, *dropped;
    bool kept;                 /* the figure is in the cache */
    uint32_t n_items;
    aeg_doctor_item items[AEG_DOCTOR_MAX_ITEMS];
} aeg_doctor;

extern const uint32_t aeg_doctor_depths[AEG_DOCTOR_DEPTHS], aeg_doctor_bursts[AEG_DOCTOR_BURSTS];

/* Reads the model's own experts.bin, the largest file of a folder, a file, or (NULL) a temporary file in the cache
 * folder. AEGIS_E_MODEL: no such model or folder. A disk that cannot be measured is no error: why_not says so. */
aegis_status aeg_doctor_read_disk(aeg_doctor_disk *disk, const char *model, aegis_io io, aegis_error *err);

/* Latency and rate of t(m) = latency + m * bytes / rate through the bursts, by least squares of the relative error;
 * a rate of 0 if there is no such line. */
void aeg_doctor_fit_bursts(const uint32_t *n_reads, const double *seconds, uint32_t n, uint64_t bytes, double *rate,
                           double *latency_s);

void aeg_doctor_judge(aeg_doctor *d);

#endif
