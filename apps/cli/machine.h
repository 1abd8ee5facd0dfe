/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - what bench rows and doctor say about the machine. Everything comes from /proc, /sys and sysconf; what cannot
 * be read stays empty or 0. Thread: main only. */
#ifndef AEG_CLI_MACHINE_H
#define AEG_CLI_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

struct json_t;

typedef struct {
    char processor[128];       /* "AMD EPYC 9R45" */
    char features[160];        /* those the kernels could use: "avx2 fma ..." */
    char kernel[128];          /* "Linux 6.1.0 x86_64" */
    char huge_pages[16];       /* transparent huge pages: always, madvise or never */
    uint32_t cores;            /* processors that are online */
    uint32_t usable;           /* of these, what the affinity of this process leaves */
    uint32_t threads_per_core; /* 0: not known */
    uint64_t memory_bytes;     /* of the machine */
    uint64_t available_bytes;  /* now, for this process */
    uint64_t limit_bytes;      /* of the memory cgroup; 0: none */
    uint64_t memlock_bytes;    /* RLIMIT_MEMLOCK; UINT64_MAX: none */
} aeg_machine;

void aeg_machine_describe(aeg_machine *out);

/* An object with all of it; "memory_limit" and "memlock_bytes" are null where there is none. */
struct json_t *aeg_machine_json(const aeg_machine *m);

#endif
