/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c - what this processor and its operating system can run, and the names of the levels. */
#include <string.h>

#include "kernels/register.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* The register state the OS saves: an AVX instruction faults without it, whatever cpuid says. */
static uint32_t saved_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

uint32_t aeg_cpu_detect(void)
{
    enum { FMA = 1 << 12, OSXSAVE = 1 << 27, F16C = 1 << 29 };                        /* leaf 1, ecx */
    enum { AVX2 = 1 << 5, BMI2 = 1 << 8, F = 1 << 16, DQ = 1 << 17, BW = 1 << 30 };   /* leaf 7, ebx */
    const uint32_t vl = 1u << 31, vnni = 1u << 11;                                    /* ebx; ecx    */
    const uint32_t ymm_state = 0x06, zmm_state = 0xe6;
    uint32_t eax, ebx, ecx, edx, ebx7, ecx7;

    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & OSXSAVE) == 0)
        return AEG_CPU_SCALAR;
    const uint32_t need1 = FMA | F16C, need7 = AVX2 | BMI2, need512 = F | DQ | BW | vl;
    if (!__get_cpuid_count(7, 0, &eax, &ebx7, &ecx7, &edx))
        return AEG_CPU_SCALAR;
    const uint32_t state = saved_state();
    if ((ecx & need1) != need1 || (ebx7 & need7) != need7 || (state & ymm_state) != ymm_state)
        return AEG_CPU_SCALAR;
    if ((ebx7 & need512) != need512 || (ecx7 & vnni) == 0 || (state & zmm_state) != zmm_state)
        return AEG_CPU_AVX2;
    return AEG_CPU_AVX2 | AEG_CPU_AVX512;
}

bool aeg_cpu_has_dotprod(void) { return false; }

#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

enum { HAS_ASIMD = 1 << 1, HAS_ASIMDDP = 1 << 20 }; /* AT_HWCAP bits of the Linux ABI */

uint32_t aeg_cpu_detect(void) { return (getauxval(AT_HWCAP) & HAS_ASIMD) ? AEG_CPU_NEON : AEG_CPU_SCALAR; }

bool aeg_cpu_has_dotprod(void) { return (getauxval(AT_HWCAP) & HAS_ASIMDDP) != 0; }

#else

uint32_t aeg_cpu_detect(void) { return AEG_CPU_SCALAR; }

bool aeg_cpu_has_dotprod(void) { return false; }

#endif

/* Ascending; `mask` holds the level and those below it. */
static const struct {
    const char *name;
    uint32_t mask;
} levels[] = {
    { "scalar", AEG_CPU_SCALAR },
    { "neon", AEG_CPU_NEON },
    { "avx2", AEG_CPU_AVX2 },
    { "avx512", AEG_CPU_AVX2 | AEG_CPU_AVX512 },
};
enum { N_LEVELS = sizeof levels / sizeof *levels };

aegis_status aeg_cpu_parse(uint32_t *mask, const char *name, aegis_error *err)
{
    const uint32_t have = aeg_cpu_detect();
    if (name == NULL || strcmp(name, "auto") == 0) {
        *mask = have;
        return AEGIS_OK;
    }
    for (int i = 0; i < N_LEVELS; i++) {
        if (strcmp(name, levels[i].name) != 0)
            continue;
        if ((levels[i].mask & have) != levels[i].mask)
            return aeg_fail(err, AEGIS_E_HARDWARE, "processor level '%s': this processor has only '%s'", name,
                            aeg_cpu_name(have));
        *mask = levels[i].mask;
        return AEGIS_OK;
    }
    return aeg_fail(err, AEGIS_E_USAGE, "processor level '%s': expected scalar, avx2, avx512, neon or auto", name);
}

const char *aeg_cpu_name(uint32_t mask)
{
    for (int i = N_LEVELS - 1; i > 0; i--)
        if ((mask & levels[i].mask) == levels[i].mask)
            return levels[i].name;
    return levels[0].name;
}
