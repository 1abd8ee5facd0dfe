/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_run.h - one render under way: its arena, limits, output and error, and what every built-in
 * needs from the evaluator. Thread: owner only. */
#ifndef AEG_TEXT_JINJA_RUN_H
#define AEG_TEXT_JINJA_RUN_H

#include "text/jinja.h"
#include "text/jinja_arena.h"
#include "text/jinja_tree.h"
#include "text/jinja_value.h"

typedef struct aeg_jscope aeg_jscope;

struct aeg_jrun {
    const aeg_jinja *t;
    aeg_jinja_limits limits;
    aeg_jarena arena;
    aeg_memory *memory;
    aegis_error *err;
    aegis_status status;    /* of the first error                                */
    uint64_t steps;
    uint32_t depth;
    uint32_t line;          /* of the node being evaluated                       */
    char *out;              /* output; captures (macros, block sets) nest in it  */
    size_t out_n, out_cap;
    size_t capture;         /* where the innermost capture starts                */
    const json_t *variables;
    aeg_jval *globals;      /* by symbol; JV_UNSET until first used              */
};

struct aeg_jcall {
    const aeg_jval *args;
    uint32_t n_args;
    const aeg_jval *kwargs; /* values of names[]             */
    const char *const *names;
    uint32_t n_kwargs;
    const char *what;       /* name of the callee, messages  */
};

/* Record the first error (the line is added) and return false. */
bool aeg_jrun_fail(aeg_jrun *r, aegis_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool aeg_jrun_undefined(aeg_jrun *r, const aeg_jval *v); /* use of an undefined value */
bool aeg_jrun_no_memory(aeg_jrun *r);
bool aeg_jrun_step(aeg_jrun *r, uint64_t n);
bool aeg_jrun_enter(aeg_jrun *r); /* one level deeper; pair with r->depth-- when true */

/* Arena memory; false when refused, recorded. */
bool aeg_jrun_alloc(aeg_jrun *r, size_t n, size_t size, void *out_pointer);
bool aeg_jrun_text(aeg_jrun *r, size_t n, char **out);
bool aeg_jrun_write(aeg_jrun *r, const char *p, size_t n);

/* Captures: what is written between the two becomes a string instead of output. */
size_t aeg_jrun_capture_begin(aeg_jrun *r);
bool aeg_jrun_capture_end(aeg_jrun *r, size_t mark, aeg_jval *out);
void aeg_jrun_capture_drop(aeg_jrun *r, size_t mark);

/* jinja_repr.c: append str(v) / repr(v) to the output or capture under way; or make a string of it. */
bool aeg_jin_write_str(aeg_jrun *r, const aeg_jval *v);
bool aeg_jin_write_repr(aeg_jrun *r, const aeg_jval *v);
bool aeg_jin_str(aeg_jrun *r, const aeg_jval *v, aeg_jval *out); /* keeps strings as they are */
bool aeg_jin_repr(aeg_jrun *r, const aeg_jval *v, aeg_jval *out);

/* jinja_iterate.c: the items of anything iterable (a generator is used up); `unpack` wants exactly n. */
bool aeg_jin_iterate(aeg_jrun *r, const aeg_jval *v, const aeg_jval **items, size_t *n);
bool aeg_jin_length(aeg_jrun *r, const aeg_jval *v, int64_t *out);
bool aeg_jin_contains(aeg_jrun *r, const aeg_jval *container, const aeg_jval *item, bool *out);
bool aeg_jin_sort(aeg_jrun *r, aeg_jval *items, const aeg_jval *keys, size_t n, bool reverse);

/* jinja_ops.c */
bool aeg_jin_binary(aeg_jrun *r, int op, const aeg_jval *a, const aeg_jval *b, aeg_jval *out);
bool aeg_jin_unary(aeg_jrun *r, int op, const aeg_jval *a, aeg_jval *out);
bool aeg_jin_compare(aeg_jrun *r, int op, const aeg_jval *a, const aeg_jval *b, bool *out);
bool aeg_jin_concat(aeg_jrun *r, const aeg_jval *a, const aeg_jval *b, aeg_jval *out); /* two strings */

/* jinja_subscript.c: obj.name, obj[key], obj[a:b:c] (JV_NONE bounds are absent). */
bool aeg_jin_getattr(aeg_jrun *r, const aeg_jval *obj, const char *name, size_t n, aeg_jval *out);
bool aeg_jin_getitem(aeg_jrun *r, const aeg_jval *obj, const aeg_jval *key, aeg_jval *out);
bool aeg_jin_slice(aeg_jrun *r, const aeg_jval *obj, const aeg_jval bounds[3], aeg_jval *out);
bool aeg_jin_attribute_path(aeg_jrun *r, const aeg_jval *obj, const aeg_jval *path, aeg_jval *out);

/* jinja_call.c */
bool aeg_jin_call(aeg_jrun *r, const aeg_jval *callee, const aeg_jcall *call, aeg_jval *out);
/* Put the arguments of `call` into slots[] by position or name; JV_UNSET where absent. `names` ends
 * with NULL. A TypeError for too many, unknown, doubled or fewer than n_required. */
bool aeg_jin_bind(aeg_jrun *r, const aeg_jcall *call, const char *const *names, uint32_t n_required,
                  aeg_jval *slots);

/* Argument readers for built-ins: a TypeError naming call->what. */
bool aeg_jin_want_string(aeg_jrun *r, const aeg_jcall *c, const aeg_jval *v, const char **p, size_t *n);
bool aeg_jin_want_int(aeg_jrun *r, const aeg_jcall *c, const aeg_jval *v, int64_t *out);

/* The tables; NULL when there is no such name. */
const aeg_jbuiltin *aeg_jin_find_filter(const char *name, size_t n);
const aeg_jbuiltin *aeg_jin_find_test(const char *name, size_t n);
const aeg_jbuiltin *aeg_jin_find_function(const char *name, size_t n);
const aeg_jbuiltin *aeg_jin_find_method(aeg_jtype type, aeg_jflavor flavor, const char *name, size_t n);
const aeg_jbuiltin *aeg_jin_lookup(const aeg_jbuiltin *table, const char *name, size_t n);

#endif
