/* SPDX-License-Identifier: Apache-2.0 */
#include "format/family.h"

#include <string.h>

const char aeg_family_list[] = "qwen35moe, qwen3moe, qwen3next, olmoe, deepseek2, xing4_0";

bool aeg_family_known(const char *name)
{
    const size_t n = strchr(name, ',') == NULL ? strlen(name) : 0;
    for (const char *at = aeg_family_list; n > 0 && (at = strstr(at, name)) != NULL; at += n)
        if ((at == aeg_family_list || at[-1] == ' ') && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}
