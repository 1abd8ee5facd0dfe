/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static aeg_log_sink the_sink;
static void *the_ctx;

void aeg_log_set_sink(aeg_log_sink sink, void *ctx)
{
    the_sink = sink;
    the_ctx = ctx;
}

void aeg_log(aeg_log_level level, const char *fmt, ...)
{
    if (the_sink == NULL)
        return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    the_sink(the_ctx, level, line);
}
