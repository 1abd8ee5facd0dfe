/* SPDX-License-Identifier: Apache-2.0 */
/* pack/folder.h - a folder that appears complete or not at all.
 *
 * Work happens in "<dst>.aegis-part", beside the destination and locked; finishing renames it. What a killed
 * packer left there is removed by the next one. Thread: owner only.
 */
#ifndef AEG_PACK_FOLDER_H
#define AEG_PACK_FOLDER_H

#include <stdint.h>

#include "base/error.h"
#include "base/file.h"

typedef struct {
    char dst[AEG_PATH_MAX];    /* without trailing slashes */
    char part[AEG_PATH_MAX];
    char parent[AEG_PATH_MAX];
    int fd;                    /* of `part`, holds the lock; -1: not begun */
} aeg_pack_folder;

/* AEGIS_E_USAGE if dst exists and is not an empty folder. Nothing is written. */
aegis_status aeg_folder_check(aeg_pack_folder *f, const char *dst, aegis_error *err);
/* Free bytes where dst will be, AEGIS_E_IO naming the missing amount if `needed` is more. */
aegis_status aeg_folder_space(const aeg_pack_folder *f, uint64_t needed, aegis_error *err);
aegis_status aeg_folder_begin(aeg_pack_folder *f, aegis_error *err);
/* A file of the folder that has begun, of this size and with nothing in it: it reads as zeros and takes no room. */
aegis_status aeg_folder_hole(const aeg_pack_folder *f, const char *name, uint64_t bytes, aegis_error *err);
aegis_status aeg_folder_finish(aeg_pack_folder *f, aegis_error *err);
void aeg_folder_abandon(aeg_pack_folder *f); /* remove what was written; harmless when finished or not begun */

#endif
