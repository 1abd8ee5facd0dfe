/* SPDX-License-Identifier: Apache-2.0 */
/* base/json.h - Jansson with its memory counted, and typed getters that name what is wrong.
 *
 * Jansson has one process-wide allocator; aeg_json_init() points it at one counter. `path` in the
 * getters is only for the message ("config.json", "manifest.json: tensor 'x'").
 * Thread: aeg_json_init once, before any other; the rest any.
 */
#ifndef AEG_BASE_JSON_H
#define AEG_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

/* The counter that every JSON value of the process is charged to. */
aeg_memory *aeg_json_memory(void);

/* Idempotent; called by aeg_json_parse as well. */
void aeg_json_init(void);

/* Strict: UTF-8, no duplicate keys, nothing after the value, nesting at most 64. `status` is what a bad
 * text yields (AEGIS_E_MODEL for files, AEGIS_E_USAGE for arguments). Decref the result. */
aegis_status aeg_json_parse(json_t **out, const char *text, size_t n, const char *path,
                            aegis_status status, aegis_error *err);

/* Required members: AEGIS_E_MODEL naming path, key, what was found, what was expected. */
aegis_status aeg_json_get_u32(const json_t *object, const char *key, const char *path, uint32_t min,
                              uint32_t max, uint32_t *out, aegis_error *err);
aegis_status aeg_json_get_u64(const json_t *object, const char *key, const char *path, uint64_t *out,
                              aegis_error *err);
aegis_status aeg_json_get_f64(const json_t *object, const char *key, const char *path, double *out,
                              aegis_error *err);
/* A loan that lives as long as `object`. */
aegis_status aeg_json_get_string(const json_t *object, const char *key, const char *path,
                                 const char **out, aegis_error *err);
aegis_status aeg_json_get_object(const json_t *object, const char *key, const char *path,
                                 const json_t **out, aegis_error *err);
aegis_status aeg_json_get_array(const json_t *object, const char *key, const char *path,
                                const json_t **out, aegis_error *err);

#endif
