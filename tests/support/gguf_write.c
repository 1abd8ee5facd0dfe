/* SPDX-License-Identifier: Apache-2.0 */
#include "support/gguf_write.h"

#include <stdlib.h>
#include <string.h>

#include "format/gguf.h"
#include "support/t.h"

void gw_raw(gw *w, const void *data, size_t n)
{
    if (w->n + n > w->room) {
        w->room = 2 * (w->n + n) + 1024;
        w->p = realloc(w->p, w->room);
        T_CHECK(w->p != NULL);
    }
    if (n == 0)
        return; /* nothing may have been allocated yet, and memcpy takes no null pointer even then */
    if (data != NULL)
        memcpy(w->p + w->n, data, n);
    else
        memset(w->p + w->n, 0, n);
    w->n += n;
}

void gw_int(gw *w, uint64_t v, uint32_t bytes)
{
    uint8_t b[8];
    for (uint32_t i = 0; i < 8; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    gw_raw(w, b, bytes);
}

void gw_text(gw *w, const char *s)
{
    gw_int(w, strlen(s), 8);
    gw_raw(w, s, strlen(s));
}

void gw_free(gw *w)
{
    free(w->p);
    *w = (gw){ 0 };
}

void gw_write(const gw *w, const char *path) { t_write_file(path, w->p, w->n); }

void gw_head(gw *w, uint32_t version, uint64_t n_tensors, uint64_t n_kv)
{
    gw_raw(w, "GGUF", 4);
    gw_int(w, version, 4);
    gw_int(w, n_tensors, 8);
    gw_int(w, n_kv, 8);
}

void gw_key(gw *w, const char *key, uint32_t type)
{
    gw_text(w, key);
    gw_int(w, type, 4);
}

void gw_key_int(gw *w, const char *key, uint32_t type, uint64_t v, uint32_t bytes)
{
    gw_key(w, key, type);
    gw_int(w, v, bytes);
}

void gw_key_u32(gw *w, const char *key, uint32_t v) { gw_key_int(w, key, AEG_GGUF_U32, v, 4); }

void gw_key_f32(gw *w, const char *key, float v)
{
    gw_key(w, key, AEG_GGUF_F32);
    gw_raw(w, &v, sizeof v);
}

void gw_key_bool(gw *w, const char *key, int v) { gw_key_int(w, key, AEG_GGUF_BOOL, (uint64_t)v, 1); }

void gw_key_text(gw *w, const char *key, const char *v)
{
    gw_key(w, key, AEG_GGUF_STRING);
    gw_text(w, v);
}

void gw_key_array(gw *w, const char *key, uint32_t type, uint64_t n)
{
    gw_key(w, key, AEG_GGUF_ARRAY);
    gw_int(w, type, 4);
    gw_int(w, n, 8);
}

void gw_tensor(gw *w, const char *name, uint32_t n_dims, const uint64_t *ne, uint32_t type, uint64_t offset)
{
    gw_text(w, name);
    gw_int(w, n_dims, 4);
    for (uint32_t i = 0; i < n_dims; i++)
        gw_int(w, ne[i], 8);
    gw_int(w, type, 4);
    gw_int(w, offset, 8);
}

void gw_pad(gw *w, size_t align) { gw_raw(w, NULL, (align - w->n % align) % align); }
