/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - a stream of answer bytes in, whole UTF-8 characters out, cut before the first stop string.
 *
 * Bytes are held back while a stop string may begin in them or while a character is incomplete, and not longer:
 * text without either is passed on at once. Bytes that are not UTF-8 become U+FFFD, so that what comes out is
 * always valid text. Held text is bounded by the longest stop string.
 * Memory: the struct only; stop strings are loans of the caller until the last push. Thread: owner only.
 */
#ifndef AEG_SAMPLE_STOP_H
#define AEG_SAMPLE_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aegis/aegis.h"
#include "base/error.h"

enum { AEG_STOP_MAX_BYTES = 256 }; /* of one stop string */

typedef struct {
    uint32_t n_stops;
    const char *stops[AEGIS_MAX_STOPS];
    size_t stop_bytes[AEGIS_MAX_STOPS];
    char held[AEG_STOP_MAX_BYTES + 8]; /* whole characters that may begin a stop string */
    size_t n_held;
    uint8_t partial[4];                /* beginning of one character                    */
    uint32_t n_partial;
    bool stopped;
} aeg_stopper;

/* Receives whole characters; non-zero asks to stop (the push returns it). */
typedef int (*aeg_stop_text)(void *ctx, const char *bytes, size_t n);

/* AEGIS_E_USAGE: too many, empty, longer than AEG_STOP_MAX_BYTES or not UTF-8. */
aegis_status aeg_stopper_init(aeg_stopper *s, const char *const *stops, uint32_t n_stops, aegis_error *err);

/* 0: go on. 1: a stop string was completed (s->stopped; everything before it has been passed on, later pushes
 * do nothing). Otherwise what `text` returned. text may be NULL: only match. */
int aeg_stopper_push(aeg_stopper *s, const char *bytes, size_t n, aeg_stop_text text, void *ctx);

/* The end of the answer: pass on what is held. Returns what `text` returned, or 0. */
int aeg_stopper_finish(aeg_stopper *s, aeg_stop_text text, void *ctx);

#endif
