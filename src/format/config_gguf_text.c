/* SPDX-License-Identifier: Apache-2.0 */
/* Stops, beginning and sampling defaults of a GGUF file. */
#include <string.h>

#include "format/config_gguf.h"

enum { CONTROL = 3 }; /* a token type */

static void add_eos(aeg_hparams *h, int64_t id)
{
    for (uint32_t i = 0; i < h->n_eos; i++)
        if (h->eos[i] == (uint32_t)id)
            return;
    if (h->n_eos < AEG_MAX_EOS)
        h->eos[h->n_eos++] = (uint32_t)id;
}

/* The file names one end; control tokens of these spellings end an answer as well, as the generation_config.json of their
 * models says, or would begin somebody else's turn. */
static bool ends_answer(aeg_gguf_text t, const char *family)
{
    static const char deepseek_end[] = "<\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"; /* cut so that e is no hex digit */
    static const char *const endings[] = { "<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|EOT|>",
                                           "<end_of_turn>", "[EOS]", "[EOT]", deepseek_end };
    static const char *const xing[] = { "<_end>", "<_start>", "<_pad>", "<_user>", "<_bot>", "<_system>", "<tool_response>",
                                        "</tool_response>" };
    for (size_t i = 0; i < AEG_ARRAY_LEN(endings); i++)
        if (aeg_gguf_text_is(t, endings[i]))
            return true;
    for (size_t i = 0; i < AEG_ARRAY_LEN(xing) && strcmp(family, "xing4_0") == 0; i++)
        if (aeg_gguf_text_is(t, xing[i]))
            return true;
    return false;
}

static aegis_status add_endings(aeg_hparams *h, const aeg_gguf *g, aegis_error *err)
{
    const aeg_gguf_kv *tokens, *types;
    AEG_TRY(aeg_gguf_array(g, "tokenizer.ggml.tokens", AEG_GGUF_STRINGS, &tokens, err));
    AEG_TRY(aeg_gguf_array(g, "tokenizer.ggml.token_type", AEG_GGUF_INTS, &types, err));
    aeg_gguf_text text;
    aeg_gguf_strings each = aeg_gguf_each(tokens);
    for (uint64_t i = 0; types != NULL && i < types->count && i < h->vocab_size && aeg_gguf_next(&each, &text); i++) {
        int64_t type = 0;
        if (aeg_gguf_int_at(types, i, &type) && type == CONTROL && ends_answer(text, h->family))
            add_eos(h, (int64_t)i);
    }
    return AEGIS_OK;
}

static aegis_status get_sampling(aeg_hparams *h, const aeg_gguf *g, aegis_error *err)
{
    const struct {
        const char *key;
        double *out;
    } numbers[] = {
        { "general.sampling.temp", &h->temperature }, { "general.sampling.top_p", &h->top_p },
        { "general.sampling.min_p", &h->min_p },      { "general.sampling.penalty_repeat", &h->repeat_penalty },
    };
    for (size_t i = 0; i < AEG_ARRAY_LEN(numbers); i++) {
        bool found = false;
        double v = 0;
        AEG_TRY(aeg_gguf_number(g, numbers[i].key, &v, &found, err));
        if (found && v >= 0)
            *numbers[i].out = aeg_gguf_short(v);
    }
    int64_t top_k = h->top_k_sampling;
    AEG_TRY(aeg_gguf_int(g, "general.sampling.top_k", -1, INT32_MAX, &top_k, NULL, err));
    h->top_k_sampling = (int32_t)top_k;
    return AEGIS_OK;
}

aegis_status aeg_config_gguf_text(aeg_hparams *h, const aeg_gguf *g, aegis_error *err)
{
    static const char *const ends[] = { "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id" };
    int64_t bos = -1;
    AEG_TRY(aeg_gguf_int(g, "tokenizer.ggml.bos_token_id", 0, (int64_t)h->vocab_size - 1, &bos, NULL, err));
    h->bos_id = (int32_t)bos;
    for (size_t i = 0; i < AEG_ARRAY_LEN(ends); i++) {
        bool found = false;
        int64_t id = 0;
        AEG_TRY(aeg_gguf_int(g, ends[i], 0, (int64_t)h->vocab_size - 1, &id, &found, err));
        if (found)
            add_eos(h, id);
    }
    AEG_TRY(add_endings(h, g, err));
    return get_sampling(h, g, err);
}
