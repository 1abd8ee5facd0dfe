/* SPDX-License-Identifier: Apache-2.0 */
#include "base/processors.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/process.h"
#include "base/threads.h"

static bool has(const aeg_processor_set *set, uint32_t i) { return (set->bits[i / 64] >> (i % 64) & 1) != 0; }

uint32_t aeg_processor_count(const aeg_processor_set *set)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < AEG_ARRAY_LEN(set->bits); w++)
        n += (uint32_t)__builtin_popcountll(set->bits[w]);
    return n;
}

/* Digits only: strtoul alone would take blanks and signs. */
static bool take_number(const char **p, uint32_t *out)
{
    if (**p < '0' || **p > '9')
        return false;
    char *end;
    const unsigned long n = strtoul(*p, &end, 10);
    *p = end;
    *out = (uint32_t)AEG_MIN(n, (unsigned long)AEG_MAX_PROCESSORS);
    return n < AEG_MAX_PROCESSORS;
}

bool aeg_processor_list(const char *text, aeg_processor_set *out)
{
    *out = (aeg_processor_set){ 0 };
    for (const char *p = text;; p++) {
        uint32_t first, last;
        if (!take_number(&p, &first))
            return false;
        last = first;
        if (*p == '-') {
            p++;
            if (!take_number(&p, &last) || last < first)
                return false;
        }
        for (uint32_t i = first; i <= last; i++)
            out->bits[i / 64] |= 1ull << (i % 64);
        if (*p != ',')
            return *p == '\0' || (*p == '\n' && p[1] == '\0');
    }
}

/* A core is counted at the lowest of its processors that may be used. */
static bool is_first_of_core(const char *folder, const aeg_processor_set *usable, uint32_t processor)
{
    char path[256], text[1024];
    aeg_processor_set siblings;
    const int n = snprintf(path, sizeof path, "%s/cpu%u/topology/thread_siblings_list", folder, processor);
    if (n < 0 || (size_t)n >= sizeof path || !aeg_system_text(path, text, sizeof text) ||
        !aeg_processor_list(text, &siblings) || !has(&siblings, processor))
        return true;
    for (uint32_t i = 0; i < processor; i++)
        if (has(&siblings, i) && has(usable, i))
            return false;
    return true;
}

uint32_t aeg_core_count(const char *folder, const aeg_processor_set *usable)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < AEG_MAX_PROCESSORS; i++)
        n += has(usable, i) && is_first_of_core(folder, usable, i);
    return n;
}

/* False where the system does not say. */
static bool usable_set(aeg_processor_set *out)
{
    *out = (aeg_processor_set){ 0 };
    return sched_getaffinity(0, sizeof out->bits, (cpu_set_t *)(void *)out->bits) == 0;
}

static uint32_t as_threads(uint32_t n) { return AEG_MIN(AEG_MAX(n, 1u), (uint32_t)AEG_MAX_THREADS); }

uint32_t aeg_usable_processors(void)
{
    aeg_processor_set set;
    return usable_set(&set) ? as_threads(aeg_processor_count(&set)) : 1;
}

uint32_t aeg_usable_cores(void)
{
    aeg_processor_set set;
    return usable_set(&set) ? as_threads(aeg_core_count("/sys/devices/system/cpu", &set)) : 1;
}
