/* SPDX-License-Identifier: Apache-2.0 */
/* expert/store_manifest.h - reading manifest.json of a store: the text, its checksum, its members. Internal to
 * expert/; the packer writes what this reads (docs/store-format.md). */
#ifndef AEG_EXPERT_STORE_MANIFEST_H
#define AEG_EXPERT_STORE_MANIFEST_H

#include "base/json.h"
#include "expert/store.h"

enum { AEG_MANIFEST_MAX_BYTES = 16 << 20 };

/* Parse <folder>/manifest.json and check its own checksum. *key is the hash of the text without the member hit_curve:
 * the checksum of the manifest as it was packed. Decref *out. */
aegis_status aeg_manifest_load(json_t **out, const char *folder, aeg_memory *memory, uint64_t *key, aegis_error *err);

aegis_status aeg_manifest_type(const json_t *o, const char *key, const char *where, aeg_weight_type *out,
                               aegis_error *err);
aegis_status aeg_manifest_hash(const json_t *o, const char *where, uint64_t *out, aegis_error *err);
/* "name" must be `found`; AEGIS_E_MODEL otherwise. */
aegis_status aeg_manifest_expect(const json_t *o, const char *key, const char *where, uint64_t expected,
                                 uint64_t *out, aegis_error *err);

/* Replace <folder>/manifest.json by the same text with `json` as its hit_curve (expert/hit_curve.h). */
aegis_status aeg_manifest_set_hit_curve(const char *folder, const char *json, aeg_memory *memory, aegis_error *err);

#endif
