/* SPDX-License-Identifier: Apache-2.0 */
#include "think.h"

#include <string.h>

static const char OPEN[] = "<think>", CLOSE[] = "</think>";

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool aeg_think_is_open(const char *prompt, size_t n)
{
    while (n > 0 && is_blank(prompt[n - 1]))
        n--;
    const size_t n_tag = sizeof OPEN - 1;
    return n >= n_tag && memcmp(prompt + n - n_tag, OPEN, n_tag) == 0;
}

void aeg_think_init(aeg_think *t, bool open)
{
    *t = (aeg_think){ .state = open ? AEG_THINK_THOUGHT : AEG_THINK_START, .thought = open };
}

/* Held bytes are no tag: pass them on. */
static int release(aeg_think *t, aeg_think_sink sink, void *ctx)
{
    const size_t n = t->n_held;
    t->n_held = 0;
    return n == 0 ? 0 : sink(ctx, t->state == AEG_THINK_THOUGHT, t->held, n);
}

/* Both tags begin with '<' and contain no second one, so a mismatch can only start again at this byte. */
static int push_byte(aeg_think *t, char c, aeg_think_sink sink, void *ctx)
{
    const char *tag = t->state == AEG_THINK_THOUGHT ? CLOSE : OPEN;
    int rc = 0;
    if (t->state == AEG_THINK_GAP && is_blank(c))
        return 0;
    if (t->state == AEG_THINK_GAP)
        t->state = AEG_THINK_ANSWER;
    if (t->state == AEG_THINK_START && t->n_held == 0 && is_blank(c))
        return sink(ctx, false, &c, 1);
    if (t->state == AEG_THINK_ANSWER)
        return sink(ctx, false, &c, 1);

    if (tag[t->n_held] != c) {
        rc = release(t, sink, ctx);
        if (t->state == AEG_THINK_START)
            t->state = AEG_THINK_ANSWER;
        if (rc != 0)
            return rc;
        if (t->state == AEG_THINK_ANSWER || tag[0] != c)
            return sink(ctx, t->state == AEG_THINK_THOUGHT, &c, 1);
    }
    t->held[t->n_held++] = c;
    if (tag[t->n_held] == '\0') {
        t->n_held = 0;
        t->state = t->state == AEG_THINK_START ? AEG_THINK_THOUGHT : AEG_THINK_GAP;
        t->thought = true;
    }
    return rc;
}

int aeg_think_push(aeg_think *t, const char *bytes, size_t n, aeg_think_sink sink, void *ctx)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0;) {
        /* Whole runs where no tag can begin, so that characters and writes stay in one piece. */
        size_t run = 0;
        if (t->state == AEG_THINK_ANSWER)
            run = n - i;
        else if (t->state == AEG_THINK_THOUGHT && t->n_held == 0)
            while (i + run < n && bytes[i + run] != '<')
                run++;
        if (run > 0)
            rc = sink(ctx, t->state == AEG_THINK_THOUGHT, bytes + i, run);
        else
            rc = push_byte(t, bytes[i], sink, ctx);
        i += run > 0 ? run : 1;
    }
    return rc;
}

int aeg_think_finish(aeg_think *t, aeg_think_sink sink, void *ctx) { return release(t, sink, ctx); }
