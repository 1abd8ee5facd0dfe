/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/st_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/t.h"
#include "support/t_tensors.h"

static void *rooms[256];
static size_t n_rooms;
static t_tensors *source;

void *st_room(size_t n)
{
    T_CHECK(n_rooms < sizeof rooms / sizeof rooms[0]);
    void *p = calloc(1, n + 1);
    T_CHECK(p != NULL);
    return rooms[n_rooms++] = p;
}

st_list st_load(const char *path)
{
    st_list l = { 0 };
    source = t_tensors_open(path);
    l.items = calloc(t_tensors_count(source), sizeof *l.items);
    T_CHECK(l.items != NULL);
    for (size_t i = 0; i < t_tensors_count(source); i++) {
        const t_tensor *t = t_tensors_at(source, i);
        st_item *x = &l.items[l.n++];
        snprintf(x->name, sizeof x->name, "%s", t->name);
        snprintf(x->dtype, sizeof x->dtype, "%s", t->dtype);
        x->rank = t->n_dims;
        memcpy(x->dim, t->dim, sizeof x->dim);
        x->data = t->data;
        x->n = t->n_bytes;
    }
    return l;
}

st_item *st_get(st_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->items[i].name, name) == 0)
            return &l->items[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

st_item *st_add(st_list *l)
{
    l->items = realloc(l->items, (l->n + 1) * sizeof *l->items);
    T_CHECK(l->items != NULL);
    memset(&l->items[l->n], 0, sizeof *l->items);
    return &l->items[l->n++];
}

void st_remove(st_list *l, const char *name)
{
    st_item *x = st_get(l, name);
    *x = l->items[--l->n];
}

void st_free(st_list *l)
{
    while (n_rooms > 0)
        free(rooms[--n_rooms]);
    free(l->items);
    t_tensors_close(source);
    source = NULL;
    *l = (st_list){ 0 };
}

void st_write(const char *path, const st_list *l, size_t first, size_t n)
{
    char *header = malloc(n * 400 + 16);
    T_CHECK(header != NULL);
    size_t len = (size_t)sprintf(header, "{");
    uint64_t at = 0;
    for (size_t i = first; i < first + n; i++) {
        const st_item *x = &l->items[i];
        len += (size_t)sprintf(header + len, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i == first ? "" : ",", x->name, x->dtype);
        for (uint32_t d = 0; d < x->rank; d++)
            len += (size_t)sprintf(header + len, "%s%" PRIu64, d == 0 ? "" : ",", x->dim[d]);
        len += (size_t)sprintf(header + len, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + x->n);
        at += x->n;
    }
    len += (size_t)sprintf(header + len, "}");
    FILE *f = fopen(path, "wb");
    T_CHECK(f != NULL);
    for (int i = 0; i < 8; i++)
        fputc((int)(len >> (8 * i) & 255), f);
    fwrite(header, 1, len, f);
    for (size_t i = first; i < first + n; i++)
        fwrite(l->items[i].data, 1, l->items[i].n, f);
    T_CHECK(fclose(f) == 0);
    free(header);
}
