/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_eval.h - scopes, and the evaluator's parts as they see each other. */
#ifndef AEG_TEXT_JINJA_EVAL_H
#define AEG_TEXT_JINJA_EVAL_H

#include "text/jinja_run.h"

typedef struct {
    uint32_t sym;
    aeg_jval value;
} aeg_jbinding;

/* A `for` iteration, macro call, `with`, block set or call block has one; an `if` has none. */
struct aeg_jscope {
    aeg_jscope *parent; /* of the place in the text: macros see where they were written */
    aeg_jbinding *bindings;
    uint32_t n, cap;
    bool captured;      /* a macro made here may still look at it */
};

struct aeg_jmacro {
    const aeg_jmacro_def *def;
    aeg_jscope *scope;
    const char *name;
};

struct aeg_jloop {
    const aeg_jval *items;
    size_t n, index0;
    aeg_jlist *last_changed; /* NULL before the first loop.changed() */
};

/* What a body ended with. */
typedef enum { JX_NEXT, JX_BREAK, JX_CONTINUE, JX_FAIL } aeg_jexit;

bool aeg_jscope_lookup(aeg_jrun *r, const aeg_jscope *s, uint32_t sym, aeg_jval *out);
bool aeg_jscope_set(aeg_jrun *r, aeg_jscope *s, uint32_t sym, aeg_jval v);
aeg_jscope *aeg_jscope_new(aeg_jrun *r, aeg_jscope *parent); /* NULL: recorded */
/* Start (or start again) the scope of `body`: only the names that it must see as undefined. */
bool aeg_jscope_start(aeg_jrun *r, aeg_jscope *s, const aeg_jbody *body);
/* A new scope, started. */
aeg_jscope *aeg_jscope_for(aeg_jrun *r, aeg_jscope *parent, const aeg_jbody *body);

bool aeg_jin_eval(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, aeg_jval *out);
/* A chain of filters; its innermost value is `base` when it has none of its own. */
bool aeg_jin_eval_filters(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, const aeg_jval *base, aeg_jval *out);
/* A call with `caller` (or NULL) as one more keyword argument. */
bool aeg_jin_eval_call(aeg_jrun *r, aeg_jscope *s, const aeg_jnode *node, const aeg_jval *caller, aeg_jval *out);
aeg_jexit aeg_jin_exec(aeg_jrun *r, aeg_jscope *s, const aeg_jbody *body);
bool aeg_jin_call_macro(aeg_jrun *r, const struct aeg_jmacro *m, const aeg_jcall *call, aeg_jval *out);
bool aeg_jin_from_json(aeg_jrun *r, const json_t *json, aeg_jval *out);
bool aeg_jin_loop_attribute(aeg_jrun *r, const struct aeg_jloop *loop, const char *name, size_t n, aeg_jval *out,
                            bool *found);

#endif
