/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/stop.h"

#include <string.h>

static const char REPLACEMENT[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Bytes of the character that starts with `lead`; 0 if none does. */
static uint32_t character_bytes(uint8_t lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead <= 0xDF)
        return 2;
    if (lead >= 0xE0 && lead <= 0xEF)
        return 3;
    if (lead >= 0xF0 && lead <= 0xF4)
        return 4;
    return 0;
}

/* May `next` follow as byte number `at` (1..3)? The second byte also rules out overlong forms, surrogates
 * and values above U+10FFFF (Unicode 15, table 3-7). */
static bool continues(uint8_t lead, uint32_t at, uint8_t next)
{
    uint8_t low = 0x80, high = 0xBF;
    if (at == 1) {
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    }
    return next >= low && next <= high;
}

static bool valid_utf8(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        const uint8_t lead = (uint8_t)text[i];
        const uint32_t bytes = character_bytes(lead);
        if (bytes == 0 || bytes > n - i)
            return false;
        for (uint32_t k = 1; k < bytes; k++)
            if (!continues(lead, k, (uint8_t)text[i + k]))
                return false;
        i += bytes;
    }
    return true;
}

aegis_status aeg_stopper_init(aeg_stopper *s, const char *const *stops, uint32_t n_stops, aegis_error *err)
{
    if (n_stops > AEGIS_MAX_STOPS)
        return aeg_fail(err, AEGIS_E_USAGE, "%u stop strings, expected at most %d", n_stops, AEGIS_MAX_STOPS);
    for (uint32_t i = 0; i < n_stops; i++) {
        const size_t n = strlen(stops[i]);
        if (n == 0 || n > AEG_STOP_MAX_BYTES)
            return aeg_fail(err, AEGIS_E_USAGE, "stop string %u has %zu bytes, expected 1 to %d", i + 1, n,
                            AEG_STOP_MAX_BYTES);
        if (!valid_utf8(stops[i], n))
            return aeg_fail(err, AEGIS_E_USAGE, "stop string %u is not UTF-8", i + 1);
    }
    *s = (aeg_stopper){ .n_stops = n_stops };
    for (uint32_t i = 0; i < n_stops; i++) {
        s->stops[i] = stops[i];
        s->stop_bytes[i] = strlen(stops[i]);
    }
    return AEGIS_OK;
}

static bool begins_stop(const aeg_stopper *s, const char *bytes, size_t n)
{
    for (uint32_t i = 0; i < s->n_stops; i++)
        if (n <= s->stop_bytes[i] && memcmp(s->stops[i], bytes, n) == 0)
            return true;
    return false;
}

/* Bytes of the longest stop string that the held text ends with; 0: none. Looked for at every start, not only
 * where text is held from: with stops "abc" and "b" the text "ab" is held for the first and ends the second. */
static size_t completed_stop(const aeg_stopper *s)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < s->n_stops; i++) {
        const size_t n = s->stop_bytes[i];
        if (n > longest && n <= s->n_held && memcmp(s->held + s->n_held - n, s->stops[i], n) == 0)
            longest = n;
    }
    return longest;
}

static int release(aeg_stopper *s, size_t n, aeg_stop_text text, void *ctx)
{
    int rc = 0;
    if (n > 0 && text != NULL)
        rc = text(ctx, s->held, n);
    memmove(s->held, s->held + n, s->n_held - n);
    s->n_held -= n;
    return rc;
}

/* One whole character. Afterwards `held` is the longest ending of the text that may begin a stop string. */
static int push_character(aeg_stopper *s, const char *bytes, size_t n, aeg_stop_text text, void *ctx)
{
    memcpy(s->held + s->n_held, bytes, n);
    s->n_held += n;
    const size_t stop_bytes = completed_stop(s);
    if (stop_bytes > 0) {
        const int rc = release(s, s->n_held - stop_bytes, text, ctx);
        s->stopped = true;
        s->n_held = 0;
        return rc != 0 ? rc : 1;
    }
    size_t start = 0;
    while (start < s->n_held && !begins_stop(s, s->held + start, s->n_held - start))
        start++;
    return release(s, start, text, ctx);
}

/* Without stop strings nothing is held: pass whole runs of characters on in one piece. */
static size_t plain_run(const aeg_stopper *s, const char *bytes, size_t n)
{
    if (s->n_stops > 0 || s->n_partial > 0)
        return 0;
    size_t end = 0;
    while (end < n) {
        const uint32_t size = character_bytes((uint8_t)bytes[end]);
        if (size == 0 || size > n - end || !valid_utf8(bytes + end, size))
            break;
        end += size;
    }
    return end;
}

int aeg_stopper_push(aeg_stopper *s, const char *bytes, size_t n, aeg_stop_text text, void *ctx)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0 && !s->stopped;) {
        const size_t run = plain_run(s, bytes + i, n - i);
        if (run > 0) {
            rc = text != NULL ? text(ctx, bytes + i, run) : 0;
            i += run;
            continue;
        }
        const uint8_t byte = (uint8_t)bytes[i];
        if (s->n_partial > 0 && !continues(s->partial[0], s->n_partial, byte)) {
            s->n_partial = 0; /* a broken character; `byte` begins the next one */
            rc = push_character(s, REPLACEMENT, 3, text, ctx);
            continue;
        }
        i++;
        s->partial[s->n_partial++] = byte;
        const uint32_t size = character_bytes(s->partial[0]);
        if (size == 0) {
            s->n_partial = 0;
            rc = push_character(s, REPLACEMENT, 3, text, ctx);
        } else if (s->n_partial == size) {
            s->n_partial = 0;
            rc = push_character(s, (const char *)s->partial, size, text, ctx);
        }
    }
    return rc;
}

int aeg_stopper_finish(aeg_stopper *s, aeg_stop_text text, void *ctx)
{
    int rc = 0;
    if (s->stopped)
        return 0;
    if (s->n_partial > 0) {
        s->n_partial = 0;
        rc = push_character(s, REPLACEMENT, 3, text, ctx);
    }
    if (rc == 0)
        rc = release(s, s->n_held, text, ctx);
    return rc;
}
