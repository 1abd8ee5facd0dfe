/* SPDX-License-Identifier: Apache-2.0 */
/* A store of the tiny model for one test program, and its manifest as packed. */
#ifndef TINY_STORE_H
#define TINY_STORE_H

#include <stddef.h>

extern char store_path[4096];
extern char *manifest; /* as packed; the program frees it with t_free */
extern size_t manifest_n;

/* A group set-up of cmocka. */
int pack_once(void **state);

#endif
