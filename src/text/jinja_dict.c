/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that grow and dicts that keep the order of insertion. Old arrays stay in the arena. */
#include <string.h>

#include "base/checked.h"
#include "text/jinja_run.h"

enum { SMALL_DICT = 8 }; /* pairs up to which a scan beats an index */

aeg_jlist *aeg_jlist_new(aeg_jrun *r, aeg_jflavor flavor, size_t cap)
{
    aeg_jlist *l;
    if (!aeg_jrun_alloc(r, 1, sizeof *l, &l))
        return NULL;
    *l = (aeg_jlist){ .flavor = flavor, .cap = cap };
    if (cap > 0 && !aeg_jrun_alloc(r, cap, sizeof(aeg_jval), &l->items))
        return NULL;
    return l;
}

bool aeg_jlist_push(aeg_jrun *r, aeg_jlist *l, aeg_jval v)
{
    if (l->n == l->cap) {
        const size_t cap = l->cap < 4 ? 8 : l->cap * 2;
        aeg_jval *items;
        AEG_JTRY(aeg_jrun_alloc(r, cap, sizeof *items, &items));
        if (l->n > 0)
            memcpy(items, l->items, l->n * sizeof *items);
        l->items = items;
        l->cap = cap;
    }
    l->items[l->n++] = v;
    return true;
}

aeg_jdict *aeg_jdict_new(aeg_jrun *r)
{
    aeg_jdict *d;
    if (!aeg_jrun_alloc(r, 1, sizeof *d, &d))
        return NULL;
    *d = (aeg_jdict){ 0 };
    return d;
}

static void index_pair(aeg_jdict *d, size_t pair)
{
    size_t at = d->pairs[pair].hash & (d->n_index - 1);
    while (d->index[at] != 0)
        at = (at + 1) & (d->n_index - 1);
    d->index[at] = (uint32_t)pair + 1;
}

static bool grow(aeg_jrun *r, aeg_jdict *d)
{
    const size_t cap = d->cap == 0 ? SMALL_DICT : d->cap * 2;
    if (cap > UINT32_MAX / 4)
        return aeg_jrun_no_memory(r);
    aeg_jpair *pairs;
    AEG_JTRY(aeg_jrun_alloc(r, cap, sizeof *pairs, &pairs));
    if (d->n > 0)
        memcpy(pairs, d->pairs, d->n * sizeof *pairs);
    uint32_t *index = NULL;
    if (cap > SMALL_DICT) {
        AEG_JTRY(aeg_jrun_alloc(r, cap * 2, sizeof *index, &index));
        memset(index, 0, cap * 2 * sizeof *index);
    }
    d->pairs = pairs;
    d->cap = cap;
    d->index = index;
    d->n_index = index == NULL ? 0 : cap * 2;
    for (size_t i = 0; index != NULL && i < d->n; i++)
        index_pair(d, i);
    return true;
}

static bool find(aeg_jrun *r, const aeg_jdict *d, const aeg_jval *key, uint64_t hash, aeg_jpair **out)
{
    *out = NULL;
    size_t at = d->index == NULL ? 0 : hash & (d->n_index - 1);
    for (size_t i = 0; i < (d->index == NULL ? d->n : d->n_index); i++) {
        size_t pair = i;
        if (d->index != NULL) {
            if (d->index[at] == 0)
                return true;
            pair = d->index[at] - 1;
            at = (at + 1) & (d->n_index - 1);
        }
        aeg_jpair *p = &d->pairs[pair];
        bool same = false;
        if (p->dead || p->hash != hash)
            continue;
        AEG_JTRY(aeg_jv_equal(r, &p->key, key, &same));
        if (same) {
            *out = p;
            return true;
        }
    }
    return true;
}

bool aeg_jdict_find(aeg_jrun *r, const aeg_jdict *d, const aeg_jval *key, aeg_jpair **out)
{
    uint64_t hash;
    AEG_JTRY(aeg_jv_hash(r, key, &hash));
    return find(r, d, key, hash, out);
}

bool aeg_jdict_set(aeg_jrun *r, aeg_jdict *d, aeg_jval key, aeg_jval value)
{
    uint64_t hash;
    aeg_jpair *p;
    AEG_JTRY(aeg_jv_hash(r, &key, &hash));
    AEG_JTRY(find(r, d, &key, hash, &p));
    if (p != NULL) {
        p->value = value; /* the key stays the first one, as in Python */
        return true;
    }
    if (d->n == d->cap)
        AEG_JTRY(grow(r, d));
    d->pairs[d->n] = (aeg_jpair){ .key = key, .value = value, .hash = hash };
    if (d->index != NULL)
        index_pair(d, d->n);
    d->n++;
    d->n_live++;
    return true;
}

bool aeg_jdict_remove(aeg_jrun *r, aeg_jdict *d, const aeg_jval *key, aeg_jval *out, bool *found)
{
    aeg_jpair *p;
    AEG_JTRY(aeg_jdict_find(r, d, key, &p));
    *found = p != NULL;
    if (p == NULL)
        return true;
    *out = p->value;
    p->dead = true;
    d->n_live--;
    return true;
}
