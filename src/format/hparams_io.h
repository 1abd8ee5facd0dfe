/* SPDX-License-Identifier: Apache-2.0 */
/* format/hparams_io.h - hyper-parameters checked, and read from the manifest of a store. Thread: any.
 *
 * A manifest has a fixed set of members and the optional ones below, each left out where it has the value of
 * aeg_hparams_init: what a family does not use is not written, and manifests of before a member existed stay as they are.
 */
#ifndef AEG_FORMAT_HPARAMS_IO_H
#define AEG_FORMAT_HPARAMS_IO_H

#include <stddef.h>

#include "base/error.h"
#include "base/json.h"
#include "format/hparams.h"

/* Every count within hparams.h's limits and the relations between them; AEGIS_E_MODEL names `path` and the value. */
aegis_status aeg_hparams_check(const aeg_hparams *h, const char *path, aegis_error *err);

/* The "hparams" object of a manifest (docs/store-format.md), checked. On failure *out is untouched. */
aegis_status aeg_hparams_parse(aeg_hparams *out, const json_t *object, const char *path, aegis_error *err);

/* One letter per mixer in the member "mixers". */
extern const char aeg_mixer_letters[AEG_N_MIXERS];

typedef enum { AEG_FIELD_U32, AEG_FIELD_F32, AEG_FIELD_BOOL, AEG_FIELD_CHOICE } aeg_field_kind;

/* An optional member: a field of aeg_hparams. */
typedef struct {
    const char *name;
    size_t offset;
    aeg_field_kind kind;
    const char *const *choices; /* of AEG_FIELD_CHOICE (a uint8_t): texts by value, NULL at the end */
} aeg_hparams_field;

extern const aeg_hparams_field aeg_hparams_optional[];
extern const size_t aeg_n_hparams_optional;

/* Has the field the same value in both? */
bool aeg_hparams_same(const aeg_hparams_field *field, const aeg_hparams *a, const aeg_hparams *b);

#endif
