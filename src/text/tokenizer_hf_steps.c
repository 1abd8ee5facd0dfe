/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "text/tokenizer_hf.h"

enum { MAX_DEPTH = 4 }; /* of Sequences in Sequences; public files have 1 */

/* What ByteLevel cuts by when use_regex is on: the pattern of GPT-2. */
static const char gpt2_pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static aegis_status step_type(aeg_hf_reader *r, const json_t *value, const char *what, int depth, const char **type)
{
    if (depth > MAX_DEPTH)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": '%s' is nested too deep", what);
    if (!json_is_object(value))
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": '%s' is not an object", what);
    return aeg_json_get_string(value, "type", AEG_HF_PATH, type, r->err);
}

static aegis_status not_understood(aeg_hf_reader *r, const char *what, const char *type)
{
    return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": %s '%.60s' is not understood", what, type);
}

aegis_status aeg_hf_normalizer(aeg_hf_reader *r, const json_t *value, int depth)
{
    if (value == NULL || json_is_null(value))
        return AEGIS_OK;
    const char *type = NULL;
    AEG_TRY(step_type(r, value, "normalizer", depth, &type));
    if (strcmp(type, "NFC") == 0) {
        r->s.options |= AEG_TT_NFC;
        return AEGIS_OK;
    }
    if (strcmp(type, "NFKC") == 0) { /* before or after NFC, NFKC is what comes out */
        r->s.options |= AEG_TT_NFKC;
        return AEGIS_OK;
    }
    if (strcmp(type, "Sequence") != 0)
        return not_understood(r, "normalizer", type);
    const json_t *list = NULL;
    AEG_TRY(aeg_json_get_array(value, "normalizers", AEG_HF_PATH, &list, r->err));
    for (size_t i = 0; i < json_array_size(list); i++)
        AEG_TRY(aeg_hf_normalizer(r, json_array_get(list, i), depth + 1));
    return AEGIS_OK;
}

static aegis_status add_pattern(aeg_hf_reader *r, const char *text, size_t n, uint32_t flags)
{
    if (r->s.n_patterns == AEG_TT_MAX_PATTERNS)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": more than %d patterns", AEG_TT_MAX_PATTERNS);
    if (n == 0 || n > AEG_TT_MAX_PATTERN)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": a pattern of %zu bytes, expected 1 to %d", n, AEG_TT_MAX_PATTERN);
    r->s.patterns[r->s.n_patterns++] = (aeg_source_pattern){ .text = text, .n = (uint32_t)n, .flags = flags };
    return AEGIS_OK;
}

/* A pattern that matches `text` itself: ASCII other than letters, digits and controls behind backslashes. */
static aegis_status add_literal(aeg_hf_reader *r, const char *text, size_t n, uint32_t flags)
{
    char *quoted = (char *)aeg_hf_pool(r, 2 * n);
    if (quoted == NULL)
        return AEGIS_E_MODEL;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c <= ' ' || c > '~';
        if (!plain)
            quoted[at++] = '\\';
        quoted[at++] = c;
    }
    return add_pattern(r, quoted, at, flags);
}

static aegis_status add_split(aeg_hf_reader *r, const json_t *value)
{
    static const char *const keys[] = { "type", "pattern", "behavior", "invert", NULL };
    AEG_TRY(aeg_hf_only_keys(r, value, "pre-tokenizer 'Split'", keys));
    const char *behavior = NULL;
    AEG_TRY(aeg_json_get_string(value, "behavior", AEG_HF_PATH, &behavior, r->err));
    const bool invert = json_is_true(json_object_get(value, "invert"));
    uint32_t flags = 0;
    if (strcmp(behavior, "Removed") == 0 && invert)
        flags = AEG_TT_DROP_GAPS; /* "remove what does not match" */
    else if (strcmp(behavior, "Isolated") != 0)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": pre-tokenizer 'Split' with behavior '%.40s'%s is not understood",
                        behavior, invert ? " and invert" : "");
    const json_t *pattern = json_object_get(value, "pattern");
    const json_t *regex = json_object_get(pattern, "Regex"), *literal = json_object_get(pattern, "String");
    if (json_is_string(regex))
        return add_pattern(r, json_string_value(regex), json_string_length(regex), flags);
    if (json_is_string(literal))
        return add_literal(r, json_string_value(literal), json_string_length(literal), flags);
    return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": pre-tokenizer 'Split' has neither a 'Regex' nor a 'String'");
}

static aegis_status add_byte_level(aeg_hf_reader *r, const json_t *value)
{
    static const char *const keys[] = { "type", "add_prefix_space", "trim_offsets", "use_regex", NULL };
    AEG_TRY(aeg_hf_only_keys(r, value, "pre-tokenizer 'ByteLevel'", keys));
    if (json_is_true(json_object_get(value, "add_prefix_space"))) {
        /* After a Split it would put a space before every piece: no known model does. */
        if (r->s.n_patterns > 0)
            return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": 'add_prefix_space' after a 'Split' is not understood");
        r->s.options |= AEG_TT_PREFIX_SPACE;
    }
    const json_t *use_regex = json_object_get(value, "use_regex");
    if (use_regex == NULL || json_is_true(use_regex))
        return add_pattern(r, gpt2_pattern, sizeof(gpt2_pattern) - 1, 0);
    return AEGIS_OK;
}

static aegis_status pre_tokenizer(aeg_hf_reader *r, const json_t *value, int depth, bool *byte_level)
{
    const char *type = NULL;
    AEG_TRY(step_type(r, value, "pre_tokenizer", depth, &type));
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = NULL;
        AEG_TRY(aeg_json_get_array(value, "pretokenizers", AEG_HF_PATH, &list, r->err));
        for (size_t i = 0; i < json_array_size(list); i++)
            AEG_TRY(pre_tokenizer(r, json_array_get(list, i), depth + 1, byte_level));
        return AEGIS_OK;
    }
    if (*byte_level)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": pre-tokenizer '%.60s' after 'ByteLevel' is not understood", type);
    if (strcmp(type, "ByteLevel") == 0) {
        *byte_level = true;
        return add_byte_level(r, value);
    }
    if (strcmp(type, "Digits") == 0) {
        const bool single = json_is_true(json_object_get(value, "individual_digits"));
        return add_pattern(r, single ? "\\p{N}" : "\\p{N}+", single ? 5 : 6, 0);
    }
    if (strcmp(type, "Split") == 0)
        return add_split(r, value);
    return not_understood(r, "pre-tokenizer", type);
}

aegis_status aeg_hf_pre_tokenizer(aeg_hf_reader *r, const json_t *value)
{
    bool byte_level = false;
    if (value != NULL && !json_is_null(value))
        AEG_TRY(pre_tokenizer(r, value, 0, &byte_level));
    if (!byte_level)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": no 'ByteLevel' pre-tokenizer; only byte-level BPE is understood");
    return AEGIS_OK;
}

/* One step of a template: the ids of a special token before or after the text. */
static aegis_status template_step(aeg_hf_reader *r, const json_t *step, const json_t *specials, bool *seen_text)
{
    const json_t *name = json_object_get(json_object_get(step, "SpecialToken"), "id");
    const json_t *sequence = json_object_get(json_object_get(step, "Sequence"), "id");
    if (json_is_string(sequence) && strcmp(json_string_value(sequence), "A") == 0 && !*seen_text) {
        *seen_text = true;
        return AEGIS_OK;
    }
    const json_t *ids = json_object_get(json_object_get(specials, json_is_string(name) ? json_string_value(name) : ""), "ids");
    uint32_t *list = *seen_text ? r->s.suffix : r->s.prefix, *n = *seen_text ? &r->s.n_suffix : &r->s.n_prefix;
    if (json_array_size(ids) == 0 || json_array_size(ids) > AEG_TT_MAX_TEMPLATE - *n)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": a step of 'TemplateProcessing' is not understood");
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= r->s.n_tokens)
            return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": 'TemplateProcessing' names an unknown token");
        list[(*n)++] = (uint32_t)json_integer_value(id);
    }
    return AEGIS_OK;
}

aegis_status aeg_hf_post_processor(aeg_hf_reader *r, const json_t *value, int depth)
{
    if (value == NULL || json_is_null(value))
        return AEGIS_OK;
    const char *type = NULL;
    AEG_TRY(step_type(r, value, "post_processor", depth, &type));
    if (strcmp(type, "ByteLevel") == 0) /* only moves offsets */
        return AEGIS_OK;
    const json_t *list = NULL;
    if (strcmp(type, "Sequence") == 0) {
        AEG_TRY(aeg_json_get_array(value, "processors", AEG_HF_PATH, &list, r->err));
        for (size_t i = 0; i < json_array_size(list); i++)
            AEG_TRY(aeg_hf_post_processor(r, json_array_get(list, i), depth + 1));
        return AEGIS_OK;
    }
    if (strcmp(type, "TemplateProcessing") != 0)
        return not_understood(r, "post-processor", type);
    bool seen_text = false;
    AEG_TRY(aeg_json_get_array(value, "single", AEG_HF_PATH, &list, r->err));
    for (size_t i = 0; i < json_array_size(list); i++)
        AEG_TRY(template_step(r, json_array_get(list, i), json_object_get(value, "special_tokens"), &seen_text));
    if (!seen_text)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": 'TemplateProcessing' without the text itself");
    return AEGIS_OK;
}

aegis_status aeg_hf_decoder(aeg_hf_reader *r, const json_t *value, int depth)
{
    const char *type = NULL;
    AEG_TRY(step_type(r, value, "decoder", depth, &type));
    if (strcmp(type, "ByteLevel") == 0)
        return AEGIS_OK;
    const json_t *list = NULL;
    if (strcmp(type, "Sequence") != 0)
        return not_understood(r, "decoder", type);
    AEG_TRY(aeg_json_get_array(value, "decoders", AEG_HF_PATH, &list, r->err));
    if (json_array_size(list) == 0)
        return aeg_fail(r->err, AEGIS_E_MODEL, AEG_HF_PATH ": an empty decoder 'Sequence'");
    for (size_t i = 0; i < json_array_size(list); i++)
        AEG_TRY(aeg_hf_decoder(r, json_array_get(list, i), depth + 1));
    return AEGIS_OK;
}
