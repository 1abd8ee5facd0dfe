/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

int aegis_exit_code(aegis_status status)
{
    switch (status) {
    case AEGIS_OK: return 0;
    case AEGIS_E_USAGE: return 2;
    case AEGIS_E_BUDGET: return 3;
    case AEGIS_E_MODEL: return 4;
    case AEGIS_E_IO: return 5;
    case AEGIS_E_HARDWARE: return 6;
    case AEGIS_E_SERVER: return 7;
    case AEGIS_E_CANCELLED: return 130;
    case AEGIS_E_RUNTIME:
    case AEGIS_E_MEMORY: break;
    }
    return 1;
}

/* What `fmt` makes, with nothing in it that a file could have written for the terminal: names and strings of files are
 * quoted in most messages, so this is the place where all of them pass. */
static void put_message(aegis_error *err, const char *fmt, va_list ap)
{
    char raw[AEGIS_ERROR_MAX];
    vsnprintf(raw, sizeof raw, fmt, ap);
    aeg_utf8_show(err->message, sizeof err->message, raw);
}

static void fill(aegis_error *err, aegis_status status, int os_code, const char *fmt, va_list ap)
{
    err->status = status;
    err->os_code = os_code;
    put_message(err, fmt, ap);
    if (os_code != 0) {
        const size_t n = strlen(err->message);
        char text[128];
        /* XSI or GNU form: glibc with _GNU_SOURCE returns the pointer. */
        const char *msg = strerror_r(os_code, text, sizeof text);
        snprintf(err->message + n, sizeof err->message - n, ": %s", msg);
    }
}

aegis_status aeg_fail(aegis_error *err, aegis_status status, const char *fmt, ...)
{
    if (err != NULL) {
        va_list ap;
        va_start(ap, fmt);
        fill(err, status, 0, fmt, ap);
        va_end(ap);
    }
    return status;
}

aegis_status aeg_fail_os(aegis_error *err, aegis_status status, int os_code, const char *fmt, ...)
{
    if (err != NULL) {
        va_list ap;
        va_start(ap, fmt);
        fill(err, status, os_code, fmt, ap);
        va_end(ap);
    }
    return status;
}

aegis_status aeg_wrap(aegis_error *err, aegis_status status, const char *fmt, ...)
{
    if (err == NULL)
        return status;

    char inner[AEGIS_ERROR_MAX];
    memcpy(inner, err->message, sizeof inner);
    va_list ap;
    va_start(ap, fmt);
    put_message(err, fmt, ap);
    va_end(ap);
    const size_t n = strlen(err->message);
    snprintf(err->message + n, sizeof err->message - n, ": %s", inner);
    return err->status;
}

aegis_status aeg_wrap_path(aegis_error *err, aegis_status status, const char *what, const char *path)
{
    char shown[AEGIS_ERROR_MAX];
    if (err == NULL)
        return status;
    aeg_utf8_show(shown, sizeof shown, path);
    return strstr(err->message, shown) != NULL ? status : aeg_wrap(err, status, "%s%s", what, path);
}
