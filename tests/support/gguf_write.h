/* SPDX-License-Identifier: Apache-2.0 */
/* support/gguf_write.h - GGUF files for tests, byte by byte, so that they can lie as well. */
#ifndef AEG_TESTS_SUPPORT_GGUF_WRITE_H
#define AEG_TESTS_SUPPORT_GGUF_WRITE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint8_t *p; /* free with gw_free */
    size_t n, room;
} gw;

void gw_raw(gw *w, const void *data, size_t n); /* data NULL: zeros */
void gw_int(gw *w, uint64_t v, uint32_t bytes);
void gw_text(gw *w, const char *s);             /* length and bytes */
void gw_free(gw *w);
void gw_write(const gw *w, const char *path);

void gw_head(gw *w, uint32_t version, uint64_t n_tensors, uint64_t n_kv);
/* type: aeg_gguf_type of an integer */
void gw_key(gw *w, const char *key, uint32_t type);
void gw_key_int(gw *w, const char *key, uint32_t type, uint64_t v, uint32_t bytes);
void gw_key_u32(gw *w, const char *key, uint32_t v);
void gw_key_f32(gw *w, const char *key, float v);
void gw_key_bool(gw *w, const char *key, int v);
void gw_key_text(gw *w, const char *key, const char *v);
void gw_key_array(gw *w, const char *key, uint32_t type, uint64_t n); /* the elements follow */
void gw_tensor(gw *w, const char *name, uint32_t n_dims, const uint64_t *ne, uint32_t type, uint64_t offset);
void gw_pad(gw *w, size_t align);

#endif
