/* SPDX-License-Identifier: Apache-2.0 */
/* support/t.h - what test programs share: properties with a seed, temporary folders, arenas.
 *
 * A program includes this instead of <cmocka.h> and its prerequisites.
 * Thread: the test's main thread, except where noted.
 */
#ifndef AEG_TESTS_T_H
#define AEG_TESTS_T_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/memory.h"

/* ---- properties: a body that holds for every input, run n times with a fresh seed ---- */

/* T_PROPERTY(name, n) { body } defines a cmocka test. If the body fails, the seed is printed, and
 * AEGIS_TEST_SEED=<seed> runs exactly that one case (in every property of the program). */
#define T_PROPERTY(name, n)                                          \
    static void name##_case(void);                                   \
    static void name(void **state)                                   \
    {                                                                \
        (void)state;                                                 \
        t_property(#name, (n), name##_case);                         \
    }                                                                \
    static void name##_case(void)

void t_property(const char *name, uint32_t n, void (*body)(void));

/* Random numbers of the running case; outside a property they follow AEGIS_TEST_SEED or a fixed seed. */
uint64_t t_random(void);
uint64_t t_below(uint64_t n);              /* uniform in [0, n), n >= 1        */
uint64_t t_between(uint64_t lo, uint64_t hi); /* uniform in [lo, hi]           */
float t_normal(void);                      /* mean 0, standard deviation 1, about */
void t_fill_random(void *dst, size_t n);

/* ---- checks ---- */
#define T_CHECK(cond) t_check((cond), #cond, __FILE__, __LINE__)
void t_check(bool ok, const char *what, const char *file, int line);

/* The status is AEGIS_OK, else the error's message is printed and the test fails. */
#define T_OK(expr, err) t_check_ok((expr), (err), #expr, __FILE__, __LINE__)
void t_check_ok(aegis_status status, const aegis_error *err, const char *what, const char *file, int line);

/* `err` has this status and its message contains `part`. */
#define T_FAILS(expr, err, want, part) t_check_fails((expr), (err), (want), (part), #expr, __FILE__, __LINE__)
void t_check_fails(aegis_status status, const aegis_error *err, aegis_status want, const char *part,
                   const char *what, const char *file, int line);

/* ---- files ---- */

/* A new empty folder, removed with its contents when the program ends. The string lives as long. */
const char *t_folder(void);
/* folder "/" name in one of eight rotating buffers. */
const char *t_path(const char *folder, const char *name);
void t_write_file(const char *path, const void *data, size_t n);
/* The whole file; a NUL follows. Free with t_free. *n may be NULL. */
char *t_read_file(const char *path, size_t *n);
void t_free(void *p);

/* ---- memory ---- */

/* 1 under a sanitizer: shadow memory is resident too, so sizes of the process say nothing about us. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define T_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define T_SANITIZED 1
#endif
#endif
#ifndef T_SANITIZED
#define T_SANITIZED 0
#endif

/* 1 under a sanitizer or an emulator (set by tests/CMakeLists.txt): run fewer cases of the same kind. */
#ifndef T_SLOW
#define T_SLOW T_SANITIZED
#endif

/* A real arena of `bytes`; unmap it with aeg_arena_unmap. */
aeg_arena t_arena(uint64_t bytes);

/* A counter without a ceiling for code under test; t_no_leak(m) fails if something is still in use. */
#define T_MEMORY(variable) aeg_memory variable = { .name = #variable }
void t_no_leak(const aeg_memory *m);

/* Fail the n-th allocation from now on (1 = the next), and only that one; 0 = none. Returns through
 * t_fault_hit() whether it was reached: loop n upwards until it was not. */
void t_fault_at(uint64_t n);
bool t_fault_hit(void);

#endif
