/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_value.h - the values a template computes with, and Python's rules for them.
 *
 * A value is small and copied; what it points to lives in the arena of its render. Functions that can
 * fail return false with the error already recorded in the run (jinja_run.h).
 */
#ifndef AEG_TEXT_JINJA_VALUE_H
#define AEG_TEXT_JINJA_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct aeg_jrun aeg_jrun;

typedef enum {
    JV_UNDEFINED, JV_NONE, JV_BOOL, JV_INT, JV_FLOAT, JV_STRING, JV_LIST, JV_DICT, JV_NAMESPACE,
    JV_FUNCTION, JV_METHOD, JV_MACRO, JV_LOOP, JV_CYCLER, JV_JOINER,
    JV_UNSET, /* an argument that was not given; never visible to a template */
} aeg_jtype;

/* Python's sequences differ in what they print, equal and allow. */
typedef enum { JL_LIST, JL_TUPLE, JL_RANGE, JL_GENERATOR, JL_KEYS, JL_VALUES, JL_ITEMS } aeg_jflavor;

/* What an undefined value came from, for the message. */
typedef enum { JU_NAME, JU_ATTRIBUTE, JU_HINT } aeg_jorigin;

typedef struct aeg_jval aeg_jval;
typedef struct aeg_jcall aeg_jcall;
typedef struct aeg_jdict aeg_jdict;

/* A filter, test, method or function: `self` is the piped value or the object (NONE for functions). */
typedef bool aeg_jfn(aeg_jrun *r, const aeg_jval *self, const aeg_jcall *call, aeg_jval *out);

typedef struct {
    const char *name;
    aeg_jfn *fn;
} aeg_jbuiltin;

typedef struct {
    aeg_jval *items;
    size_t n, cap;
    aeg_jflavor flavor;
    int64_t start, stop, step; /* JL_RANGE, for its repr */
} aeg_jlist;

struct aeg_jval {
    uint8_t type;
    uint8_t sub;        /* JV_STRING: 1 = marked safe; JV_UNDEFINED: aeg_jorigin */
    uint8_t owner;      /* JV_UNDEFINED/JU_ATTRIBUTE: aeg_jtype of the object    */
    union {
        bool b;
        int64_t i;
        double f;
        struct {
            const char *p;
            size_t n;
        } s;            /* strings; undefined: its name or hint */
        aeg_jlist *list;
        aeg_jdict *dict; /* dict and namespace */
        const aeg_jbuiltin *builtin;
        struct aeg_jmethod *method;
        struct aeg_jmacro *macro;
        struct aeg_jloop *loop;
        struct aeg_jcycle *cycle;
    } u;
};

struct aeg_jmethod {
    aeg_jval self;
    const aeg_jbuiltin *builtin;
};

/* cycler and joiner */
struct aeg_jcycle {
    const aeg_jval *items;
    size_t n, pos;
};

typedef struct {
    aeg_jval key, value;
    uint64_t hash;
    bool dead; /* popped; keeps its place so that the index stays right */
} aeg_jpair;

struct aeg_jdict {
    aeg_jpair *pairs;
    size_t n, cap;   /* pairs used, dead ones included */
    size_t n_live;
    uint32_t *index; /* open addressing, pair + 1; NULL while small */
    size_t n_index;  /* a power of two */
};

#define AEG_JTRY(expr) do { if (!(expr)) return false; } while (0)

static inline aeg_jval aeg_jv_none(void) { return (aeg_jval){ .type = JV_NONE }; }
static inline aeg_jval aeg_jv_bool(bool b) { return (aeg_jval){ .type = JV_BOOL, .u.b = b }; }
static inline aeg_jval aeg_jv_int(int64_t i) { return (aeg_jval){ .type = JV_INT, .u.i = i }; }
static inline aeg_jval aeg_jv_float(double f) { return (aeg_jval){ .type = JV_FLOAT, .u.f = f }; }
static inline aeg_jval aeg_jv_list(aeg_jlist *l) { return (aeg_jval){ .type = JV_LIST, .u.list = l }; }
static inline aeg_jval aeg_jv_text(const char *p, size_t n)
{
    return (aeg_jval){ .type = JV_STRING, .u.s = { p, n } };
}
aeg_jval aeg_jv_cstr(const char *s);
aeg_jval aeg_jv_undefined(aeg_jorigin origin, const char *p, size_t n);

static inline bool aeg_jv_is_number(const aeg_jval *v) { return v->type >= JV_BOOL && v->type <= JV_FLOAT; }
static inline bool aeg_jv_is_integer(const aeg_jval *v) { return v->type == JV_BOOL || v->type == JV_INT; }
static inline int64_t aeg_jv_as_int(const aeg_jval *v) { return v->type == JV_BOOL ? v->u.b : v->u.i; }
double aeg_jv_as_float(const aeg_jval *v); /* of a number */

const char *aeg_jv_type_name(const aeg_jval *v); /* as Python names it */
bool aeg_jv_truth(const aeg_jval *v);
bool aeg_jv_equal(aeg_jrun *r, const aeg_jval *a, const aeg_jval *b, bool *out);
/* -1, 0, 1; 2 for an unordered pair (NaN); a TypeError for unlike types. `op` is for its message. */
bool aeg_jv_order(aeg_jrun *r, const aeg_jval *a, const aeg_jval *b, const char *op, int *out);
bool aeg_jv_hash(aeg_jrun *r, const aeg_jval *v, uint64_t *out); /* a TypeError for lists and dicts */

aeg_jlist *aeg_jlist_new(aeg_jrun *r, aeg_jflavor flavor, size_t cap); /* NULL: recorded */
bool aeg_jlist_push(aeg_jrun *r, aeg_jlist *l, aeg_jval v);
aeg_jdict *aeg_jdict_new(aeg_jrun *r);
bool aeg_jdict_set(aeg_jrun *r, aeg_jdict *d, aeg_jval key, aeg_jval value);
bool aeg_jdict_find(aeg_jrun *r, const aeg_jdict *d, const aeg_jval *key, aeg_jpair **out); /* NULL: absent */
bool aeg_jdict_remove(aeg_jrun *r, aeg_jdict *d, const aeg_jval *key, aeg_jval *out, bool *found);

#endif
