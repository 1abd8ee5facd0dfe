/* SPDX-License-Identifier: Apache-2.0 */
/* The families by name. Most are the plain layer over blocks that the hyper-parameters choose; one with another order of the
 * blocks has a file of its own. */
#include <string.h>

#include "base/checked.h"
#include "format/hparams_io.h"
#include "model/model_parts.h"

enum { GDN = 1 << AEG_MIXER_GDN, ATTENTION = 1 << AEG_MIXER_ATTENTION, MLA = 1 << AEG_MIXER_MLA };

static const aeg_family families[] = {
    { "qwen35moe", aeg_model_plain_layer, GDN | ATTENTION, false }, /* Qwen3.5, Qwen3.6 MoE                    */
    { "qwen3next", aeg_model_plain_layer, GDN | ATTENTION, false }, /* Qwen3-Next, Qwen3-Coder-Next            */
    { "qwen3moe", aeg_model_plain_layer, ATTENTION, false },        /* Qwen3-30B-A3B, Qwen3-235B-A22B          */
    { "olmoe", aeg_model_plain_layer, ATTENTION, false },           /* OLMoE-1B-7B                             */
    { "deepseek2", aeg_model_plain_layer, MLA, false },             /* DeepSeek-V2/V3, Moonlight, GLM-4.7-Flash */
    { "xing4_0", aeg_model_xing4_layer, MLA, true },                /* Xing4.0                                 */
};

aegis_status aeg_family_find(const aeg_family **out, const aeg_hparams *hp, const char *path, aegis_error *err)
{
    const aeg_family *f = NULL;
    for (size_t i = 0; i < AEG_ARRAY_LEN(families); i++)
        if (strcmp(families[i].name, hp->family) == 0)
            f = &families[i];
    if (f == NULL)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: no forward pass for family '%s'", path, hp->family);
    for (uint32_t layer = 0; layer < hp->n_layers; layer++)
        if ((f->mixers >> hp->mixer[layer] & 1) == 0)
            return aeg_fail(err, AEGIS_E_MODEL, "%s: layer %u of family '%s' has mixer '%c', which it does not know", path, layer,
                            hp->family, aeg_mixer_letters[hp->mixer[layer]]);
    if (f->streams != (hp->hc_streams > 0))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: family '%s' with %u residual streams, expected %s", path, hp->family,
                        hp->hc_streams, f->streams ? "hyper-connections" : "none");
    *out = f;
    return AEGIS_OK;
}
