/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON line per step and layer: {"token","layer","experts","hits","prefetch_hits","misses","bytes","wait_ns"}.
 * Written with one write() from a stack buffer: nothing on the token path allocates. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "engine/engine_parts.h"

aegis_status aeg_telemetry_open(aeg_telemetry *t, const char *path, aegis_error *err)
{
    *t = (aeg_telemetry){ .fd = -1 };
    if (path == NULL)
        return AEGIS_OK;
    t->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (t->fd < 0)
        return aeg_fail_os(err, AEGIS_E_IO, errno, "telemetry file %s", path);
    return AEGIS_OK;
}

void aeg_telemetry_close(aeg_telemetry *t)
{
    if (t->dropped > 0)
        aeg_log(AEG_LOG_NOTICE, "telemetry: %llu lines could not be written", (unsigned long long)t->dropped);
    if (t->fd >= 0)
        close(t->fd);
    *t = (aeg_telemetry){ .fd = -1 };
}

void aeg_telemetry_layer(void *ctx, const aeg_streamer_event *ev)
{
    aeg_telemetry *t = ctx;
    char line[256];
    const int n = snprintf(line, sizeof line,
                           "{\"token\":%llu,\"layer\":%u,\"experts\":%u,\"hits\":%u,\"prefetch_hits\":%u,"
                           "\"misses\":%u,\"bytes\":%llu,\"wait_ns\":%llu}\n",
                           (unsigned long long)ev->token, ev->layer, ev->n_experts, ev->hits, ev->prefetch_hits,
                           ev->misses, (unsigned long long)ev->read_bytes, (unsigned long long)ev->wait_ns);
    if (n <= 0 || write(t->fd, line, (size_t)n) != n)
        t->dropped++;
}
