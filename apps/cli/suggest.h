/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - the name someone probably meant. Thread: any. */
#ifndef AEG_CLI_SUGGEST_H
#define AEG_CLI_SUGGEST_H

#include "options.h"

/* Edits (insert, delete, replace, swap neighbours) between two words; words over 40 bytes count as far apart. */
uint32_t aeg_suggest_distance(const char *a, size_t n_a, const char *b, size_t n_b);

/* The nearest name among the options of `command`; false if none is near. */
bool aeg_suggest_option(char out[AEG_OPTION_NAME_MAX], aeg_command command, const char *name, size_t n);
bool aeg_suggest_command(char out[AEG_OPTION_NAME_MAX], const char *name);

#endif
