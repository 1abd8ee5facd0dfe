/* SPDX-License-Identifier: Apache-2.0 */
/* model_key.h - the name of a source's store in the cache: what it is called, and a hash of its path, the size and time of its
 * files and the options of packing, so that whatever changes is packed anew. Thread: any. */
#ifndef AEG_CLI_MODEL_KEY_H
#define AEG_CLI_MODEL_KEY_H

#include "model_source.h"

/* source: the full path of a GGUF file or a folder. AEGIS_E_MODEL: the folder is no model. */
aegis_status aeg_model_key(char key[AEG_SOURCE_KEY], const aeg_cli *cli, const char *source, aegis_error *err);

#endif
