/* SPDX-License-Identifier: Apache-2.0 */
/* unit/st_write.h - safetensors files for tests: the tensors of a model renamed, split, converted. */
#ifndef AEG_TESTS_ST_WRITE_H
#define AEG_TESTS_ST_WRITE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char name[200], dtype[8];
    uint32_t rank;
    uint64_t dim[8];
    const uint8_t *data;
    size_t n;
} st_item;

typedef struct {
    st_item *items;
    size_t n;
} st_list;

/* Every tensor of a file (path as t_tensors_open). The data is a loan from the list until st_free. */
st_list st_load(const char *path);
st_item *st_get(st_list *l, const char *name); /* fails the test if absent */
st_item *st_add(st_list *l);                   /* a new, zeroed item; earlier pointers are invalid */
void st_remove(st_list *l, const char *name);
/* Memory that lives until st_free. */
void *st_room(size_t n);
void st_free(st_list *l);

/* Items [first, first + n) as a file; offsets follow each other. */
void st_write(const char *path, const st_list *l, size_t first, size_t n);

#endif
