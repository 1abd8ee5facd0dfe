/* SPDX-License-Identifier: Apache-2.0 */
/* base/log.h - notices for the person who runs the program ("reads are buffered because ...").
 *
 * Library code reports through a sink that the program sets; the default sink drops everything.
 * Thread: aeg_log_set_sink once at start; aeg_log any (the sink must be re-entrant).
 */
#ifndef AEG_BASE_LOG_H
#define AEG_BASE_LOG_H

typedef enum {
    AEG_LOG_NOTICE, /* something was chosen that the user should know, one line */
    AEG_LOG_DEBUG,  /* --verbose only                                           */
} aeg_log_level;

typedef void (*aeg_log_sink)(void *ctx, aeg_log_level level, const char *line);

void aeg_log_set_sink(aeg_log_sink sink, void *ctx);
void aeg_log(aeg_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
