/* SPDX-License-Identifier: Apache-2.0 */
/* base/error.h - filling an aegis_error. Thread: any (the error belongs to the caller). */
#ifndef AEG_BASE_ERROR_H
#define AEG_BASE_ERROR_H

#include "aegis/error.h"

/* Fill `err` (NULL allowed) and return `status`, so that a caller can `return aeg_fail(...)`. */
aegis_status aeg_fail(aegis_error *err, aegis_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with ": <text of os_code>" appended; os_code is an errno value (positive). */
aegis_status aeg_fail_os(aegis_error *err, aegis_status status, int os_code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Put "<fmt>: " before the message already in `err`; returns err->status (or `status` if err is NULL).
 * Use it on the way up, so that one sentence goes from general to particular. */
aegis_status aeg_wrap(aegis_error *err, aegis_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "<what><path>: " before the message, unless it names the path already; what: "" or a word and a space. */
aegis_status aeg_wrap_path(aegis_error *err, aegis_status status, const char *what, const char *path);

#define AEG_TRY(expr)                                   \
    do {                                                \
        aegis_status aeg_try_status_ = (expr);          \
        if (aeg_try_status_ != AEGIS_OK)                \
            return aeg_try_status_;                     \
    } while (0)

/* The form for functions with something to release: sets `status` and jumps to `done`. */
#define AEG_TRY_GOTO(expr)                              \
    do {                                                \
        status = (expr);                                \
        if (status != AEGIS_OK)                         \
            goto done;                                  \
    } while (0)

#endif
