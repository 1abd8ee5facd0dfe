/* SPDX-License-Identifier: Apache-2.0 */
/* jinja.h - chat templates: our own subset of Jinja2.
 *
 * A model's template decides every byte of its prompt, so the measure is byte equality with Python's
 * Jinja2 set up as Hugging Face does it (trim_blocks, lstrip_blocks, loop controls, `tojson` without
 * ASCII escapes, raise_exception, strftime_now). Constructs we do not have are refused by name at
 * compile time, never rendered wrongly. tests/oracle/jinja/run compares.
 *
 * Memory: the tree and the values of a render live in arenas charged to the aeg_memory given.
 * Thread: a compiled template is read only, so any number of threads may render it at once. Compiling
 * and rendering at the default depth need less than 192 KiB of stack (measured, gcc -O0 and -O2).
 */
#ifndef AEG_TEXT_JINJA_H
#define AEG_TEXT_JINJA_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

typedef struct aeg_jinja aeg_jinja;

enum { AEG_JINJA_MAX_SOURCE = 4 << 20 }; /* bytes of a template; the largest public ones have 30 KiB */

/* What one render may use. A template is data from outside: without limits a loop in it is a hang. */
typedef struct {
    uint64_t max_steps;        /* nodes evaluated, plus one per 64 bytes or 8 values handled */
    uint64_t max_output_bytes; /* of the rendered text                                       */
    uint64_t max_memory;       /* bytes of values while rendering, output apart              */
    uint32_t max_depth;        /* nested evaluations (an expression, a loop, a macro call)   */
    time_t now;                /* what strftime_now() shows, in local time                   */
} aeg_jinja_limits;

/* Enough for every public template and a prompt of tens of megabytes. now = 0. */
aeg_jinja_limits aeg_jinja_default_limits(void);

/* Parse `text`. AEGIS_E_MODEL with the line, what was found and what was expected. */
aegis_status aeg_jinja_compile(aeg_jinja **out, const char *text, size_t n, aeg_memory *memory,
                               aegis_error *err);

/* Render with the members of `variables` (an object) as the template's variables; NULL limits are the
 * defaults. *out is NUL terminated, *n excludes the NUL; aeg_free(memory, *out).
 * AEGIS_E_USAGE: the template's own raise_exception message, or what went wrong and the line;
 * AEGIS_E_RUNTIME: a limit, named; AEGIS_E_MEMORY: max_memory or the ceiling of `memory`. */
aegis_status aeg_jinja_render(const aeg_jinja *t, const json_t *variables, const aeg_jinja_limits *limits,
                              char **out, size_t *n, aeg_memory *memory, aegis_error *err);

void aeg_jinja_free(aeg_jinja *t); /* NULL allowed */

#endif
