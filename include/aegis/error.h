/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - the one error type of aegis.
 *
 * Functions that can fail return `aegis_status` (0 or a negative value) and fill a
 * caller-owned `aegis_error` (NULL is allowed). The message says which thing, what
 * was found and what was expected. Library code never prints, exits or aborts on input.
 */
#ifndef AEGIS_ERROR_H
#define AEGIS_ERROR_H

typedef enum {
    AEGIS_OK = 0,
    AEGIS_E_RUNTIME = -1,   /* anything without a better class; exit code 1       */
    AEGIS_E_USAGE = -2,     /* an argument is wrong; exit code 2                  */
    AEGIS_E_BUDGET = -3,    /* the plan does not fit the budget; exit code 3      */
    AEGIS_E_MODEL = -4,     /* model missing, corrupt or unsupported; exit code 4 */
    AEGIS_E_IO = -5,        /* a read or write failed; exit code 5                */
    AEGIS_E_HARDWARE = -6,  /* hardware or driver missing; exit code 6            */
    AEGIS_E_SERVER = -7,    /* the server refused; exit code 7                    */
    AEGIS_E_MEMORY = -8,    /* an allocation failed or met its ceiling; exit 1    */
    AEGIS_E_CANCELLED = -9, /* stopped by the caller; exit code 130               */
} aegis_status;

enum { AEGIS_ERROR_MAX = 1024 }; /* bytes of a message with its final NUL */

typedef struct {
    aegis_status status;
    int os_code;                   /* errno value, 0 if the OS was not involved */
    char message[AEGIS_ERROR_MAX]; /* one sentence, UTF-8, no final full stop   */
} aegis_error;

/* Process exit code of a status (DESIGN section 11). Thread: any. */
int aegis_exit_code(aegis_status status);

#endif
