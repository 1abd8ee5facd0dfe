/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "ui.h"

enum { BAR = 24, REDRAW_NS = 100000000, QUIET_NS = 500000000 };

void aeg_progress_start(aeg_progress *p, const char *label)
{
    *p = (aeg_progress){ .label = label, .start_ns = aeg_now_ns() };
}

static void put(const char *line)
{
    if (write(STDERR_FILENO, line, strlen(line)) < 0) {
        /* a lost bar is no failure */
    }
}

static void draw(const aeg_progress *p, uint64_t now, uint64_t done, uint64_t total, double share)
{
    char bar[BAR + 1], done_text[AEG_SIZE_TEXT], total_text[AEG_SIZE_TEXT], rate_text[AEG_SIZE_TEXT], line[256];
    const int filled = (int)(share * BAR);
    for (int i = 0; i < BAR; i++)
        bar[i] = i < filled ? '=' : i == filled ? '>' : ' ';
    bar[BAR] = '\0';
    const double seconds = (double)(now - p->start_ns) * 1e-9;
    const double rate = (double)done / seconds;
    snprintf(line, sizeof line, "\r%s [%s] %3.0f%% %s/%s %s/s ETA %.0fs \033[K", p->label, bar, share * 100,
             aeg_size_format(done_text, done), aeg_size_format(total_text, total),
             aeg_size_format(rate_text, (uint64_t)rate), rate > 0 ? (double)(total - done) / rate : 0.0);
    put(line);
}

void aeg_progress_update(void *ctx, uint64_t done, uint64_t total)
{
    aeg_progress *p = ctx;
    const uint64_t now = aeg_now_ns();
    if (total == 0 || done > total || now - p->start_ns < QUIET_NS)
        return;
    const double share = (double)done / (double)total;
    if (aeg_ui_stderr_is_terminal()) {
        if (now - p->last_ns < REDRAW_NS && done < total)
            return;
        p->last_ns = now;
        p->shown = true;
        draw(p, now, done, total, share);
        return;
    }
    const uint32_t tenth = (uint32_t)(share * 10);
    if (tenth > p->last_tenth) {
        p->last_tenth = tenth;
        aeg_ui_say("%s: %u %%", p->label, tenth * 10);
    }
}

void aeg_progress_end(aeg_progress *p)
{
    if (p->shown)
        put("\r\033[K");
    p->shown = false;
}
