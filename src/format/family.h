/* SPDX-License-Identifier: Apache-2.0 */
/* format/family.h - the families of models by name, as GGUF's general.architecture spells them. Thread: any.
 *
 * A family is a forward pass (model/FAMILY.c) and the readers that fill aeg_hparams for it.
 * docs/howto/add-a-family.md says what a further one takes.
 */
#ifndef AEG_FORMAT_FAMILY_H
#define AEG_FORMAT_FAMILY_H

#include <stdbool.h>

bool aeg_family_known(const char *name);

/* "qwen35moe, qwen3moe, ...": for messages. */
extern const char aeg_family_list[];

#endif
