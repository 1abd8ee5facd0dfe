/* SPDX-License-Identifier: Apache-2.0 */
/* format/hparams_io.h - hyper-parameters checked, and read from the manifest of a store. Thread: any. */
#ifndef AEG_FORMAT_HPARAMS_IO_H
#define AEG_FORMAT_HPARAMS_IO_H

#include "base/error.h"
#include "base/json.h"
#include "format/hparams.h"

/* Every count within hparams.h's limits and the relations between them; AEGIS_E_MODEL names `path` and the value. */
aegis_status aeg_hparams_check(const aeg_hparams *h, const char *path, aegis_error *err);

/* The "hparams" object of a manifest (docs/store-format.md), checked. On failure *out is untouched. */
aegis_status aeg_hparams_parse(aeg_hparams *out, const json_t *object, const char *path, aegis_error *err);

#endif
