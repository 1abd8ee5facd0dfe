/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer_spm.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/tokenizer_gguf.h"
#include "text/tokenizer_score.h"

#define PATH "tokenizer.model"
#define CONFIG "tokenizer_config.json"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };  /* wire types */
enum { PIECES = 1, TRAINER = 2, NORMALIZER = 3 };          /* fields of the model */
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_KIND = 3, TRAINER_SUFFIX = 24, KIND_BPE = 2 };
enum { NORMALIZER_RULES = 2, NORMALIZER_PREFIX = 3, NORMALIZER_EXTRA = 4, NORMALIZER_ESCAPE = 5 };

/* Bytes of one message that are left. */
typedef struct {
    const uint8_t *p;
    size_t n;
} span;

typedef struct {
    uint32_t number, wire;
    uint64_t value; /* VARINT and the fixed ones */
    span bytes;     /* BYTES */
} field;

typedef struct {
    aeg_memory *memory;
    aegis_error *err;
    aeg_tokenizer_source s;
    aeg_score_piece *pieces;
    uint8_t *pool;
    bool space; /* a text begins with one */
} reader;

/* --- protobuf ------------------------------------------------------------------------------------------------------------ */

static bool get_varint(span *s, uint64_t *out)
{
    *out = 0;
    for (uint32_t shift = 0; s->n > 0 && shift < 64; shift += 7) {
        const uint8_t byte = *s->p++;
        s->n--;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* The next field of a message; false if it is broken. */
static bool get_field(span *s, field *f)
{
    uint64_t key = 0, n = 0;
    *f = (field){ 0 };
    if (!get_varint(s, &key) || key > UINT32_MAX)
        return false;
    f->number = (uint32_t)(key >> 3);
    f->wire = (uint32_t)key & 7;
    if (f->wire == VARINT)
        return get_varint(s, &f->value);
    if (f->wire == BYTES && !get_varint(s, &n))
        return false;
    n = f->wire == FIXED64 ? 8 : f->wire == FIXED32 ? 4 : n;
    if ((f->wire != BYTES && f->wire != FIXED64 && f->wire != FIXED32) || n > s->n)
        return false;
    f->bytes = (span){ s->p, (size_t)n };
    for (size_t i = (size_t)n; f->wire != BYTES && i-- > 0;)
        f->value = f->value << 8 | s->p[i];
    s->p += n;
    s->n -= (size_t)n;
    return true;
}

static aegis_status broken(const reader *r, const char *what)
{
    return aeg_fail(r->err, AEGIS_E_MODEL, PATH ": %s is not a valid protobuf message", what);
}

/* --- the model ------------------------------------------------------------------------------------------------------------- */

static aegis_status get_piece(reader *r, span s, aeg_score_piece *out)
{
    *out = (aeg_score_piece){ .type = AEG_PIECE_NORMAL };
    while (s.n > 0) {
        field f;
        if (!get_field(&s, &f))
            return broken(r, "a piece");
        if (f.number == PIECE_TEXT && f.wire == BYTES) {
            if (f.bytes.n > 2 * AEG_TOKEN_MAX_BYTES || aeg_utf8_valid(f.bytes.p, f.bytes.n) != f.bytes.n)
                return aeg_fail(r->err, AEGIS_E_MODEL, PATH ": piece %u has %zu bytes or is not UTF-8", r->s.n_tokens, f.bytes.n);
            out->text = f.bytes.p;
            out->n = (uint32_t)f.bytes.n;
        } else if (f.number == PIECE_SCORE && f.wire == FIXED32) {
            const uint32_t bits = (uint32_t)f.value;
            memcpy(&out->score, &bits, sizeof bits);
        } else if (f.number == PIECE_TYPE && f.wire == VARINT) {
            if (f.value < AEG_PIECE_NORMAL || f.value > AEG_PIECE_BYTE)
                return aeg_fail(r->err, AEGIS_E_MODEL, PATH ": piece %u has type %llu, expected 1 to 6", r->s.n_tokens,
                                (unsigned long long)f.value);
            out->type = (uint8_t)f.value;
        }
    }
    out->registered = aeg_score_registered(out->text, out->n);
    return AEGIS_OK;
}

static aegis_status check_trainer(const reader *r, span s)
{
    uint64_t kind = 1; /* unigram, where it is not said */
    while (s.n > 0) {
        field f;
        if (!get_field(&s, &f))
            return broken(r, "the trainer's part");
        if (f.number == TRAINER_KIND)
            kind = f.value;
        if (f.number == TRAINER_SUFFIX && f.value != 0)
            return aeg_fail(r->err, AEGIS_E_MODEL, PATH ": spaces as suffixes are not supported");
    }
    return kind == KIND_BPE ? AEGIS_OK
                            : aeg_fail(r->err, AEGIS_E_MODEL, PATH ": trained as kind %llu, expected 2 (BPE)", (unsigned long long)kind);
}

static aegis_status check_normalizer(reader *r, span s)
{
    bool extra = true, escape = true;
    while (s.n > 0) {
        field f;
        if (!get_field(&s, &f))
            return broken(r, "the normalizer's part");
        if (f.number == NORMALIZER_RULES && f.bytes.n > 0)
            return aeg_fail(r->err, AEGIS_E_MODEL, PATH ": normalisation rules (%zu bytes) are not supported", f.bytes.n);
        r->space = f.number == NORMALIZER_PREFIX ? f.value != 0 : r->space;
        extra = f.number == NORMALIZER_EXTRA ? f.value != 0 : extra;
        escape = f.number == NORMALIZER_ESCAPE ? f.value != 0 : escape;
    }
    if (extra || !escape)
        return aeg_fail(r->err, AEGIS_E_MODEL, PATH ": spaces are %s, expected all to be kept and escaped",
                        extra ? "removed where there are several" : "not escaped");
    return AEGIS_OK;
}

static aegis_status count_pieces(const reader *r, span s, uint32_t *n, size_t *texts)
{
    *n = 0;
    *texts = 1;
    while (s.n > 0) {
        field f;
        if (!get_field(&s, &f))
            return broken(r, "the file");
        *n += f.number == PIECES && f.wire == BYTES;
        *texts += f.bytes.n;
        if (*n > AEG_TT_MAX_TOKENS)
            return aeg_fail(r->err, AEGIS_E_MODEL, PATH ": more than %d pieces", AEG_TT_MAX_TOKENS);
    }
    return *n > 0 ? AEGIS_OK : aeg_fail(r->err, AEGIS_E_MODEL, PATH ": no pieces");
}

static aegis_status read_model(reader *r, span s)
{
    uint32_t n = 0;
    size_t texts = 0;
    bool trainer = false;
    AEG_TRY(count_pieces(r, s, &n, &texts));
    r->s.tokens = aeg_calloc(r->memory, n, sizeof r->s.tokens[0]);
    r->s.added = aeg_calloc(r->memory, n, sizeof r->s.added[0]);
    r->pieces = aeg_calloc(r->memory, n, sizeof r->pieces[0]);
    r->pool = aeg_malloc(r->memory, texts);
    if (r->s.tokens == NULL || r->s.added == NULL || r->pieces == NULL || r->pool == NULL)
        return aeg_fail(r->err, AEGIS_E_MEMORY, PATH ": no memory for %u pieces", n);
    while (s.n > 0) {
        field f;
        if (!get_field(&s, &f))
            return broken(r, "the file");
        if (f.number == PIECES && f.wire == BYTES) {
            AEG_TRY(get_piece(r, f.bytes, &r->pieces[r->s.n_tokens]));
            r->s.n_tokens++;
        } else if (f.number == TRAINER && f.wire == BYTES) {
            trainer = true;
            AEG_TRY(check_trainer(r, f.bytes));
        } else if (f.number == NORMALIZER && f.wire == BYTES) {
            AEG_TRY(check_normalizer(r, f.bytes));
        }
    }
    return trainer ? AEGIS_OK : aeg_fail(r->err, AEGIS_E_MODEL, PATH ": does not say how it was trained");
}

/* --- tokenizer_config.json --------------------------------------------------------------------------------------------------- */

static uint32_t find_piece(const reader *r, const char *text, size_t n)
{
    for (uint32_t id = 0; id < r->s.n_tokens; id++)
        if (r->pieces[id].n == n && memcmp(r->pieces[id].text, text, n) == 0)
            return id;
    return AEG_TOKEN_NONE;
}

/* "added_tokens_decoder": { "4": { "content": "<_user>", "special": true } }: those, and no other, are found in text. */
static aegis_status read_registered(reader *r, const json_t *config)
{
    json_t *list = json_object_get(config, "added_tokens_decoder"), *entry;
    const char *key;
    if (json_object_size(list) == 0)
        return AEGIS_OK;
    for (uint32_t id = 0; id < r->s.n_tokens; id++)
        r->pieces[id].registered = false;
    json_object_foreach(list, key, entry) {
        char *end = NULL;
        const unsigned long id = strtoul(key, &end, 10);
        const json_t *content = json_object_get(entry, "content");
        if (*end != '\0' || id >= r->s.n_tokens || !json_is_string(content) ||
            find_piece(r, json_string_value(content), json_string_length(content)) != id)
            return aeg_fail(r->err, AEGIS_E_MODEL, CONFIG ": 'added_tokens_decoder' has '%.40s', which is no piece of " PATH, key);
        r->pieces[id].registered = true;
        if (json_is_true(json_object_get(entry, "special")) && r->pieces[id].type != AEG_PIECE_UNKNOWN)
            r->pieces[id].type = AEG_PIECE_CONTROL;
    }
    return AEGIS_OK;
}

static uint32_t named(const reader *r, const json_t *config, const char *key)
{
    const json_t *v = json_object_get(config, key);
    if (json_is_object(v))
        v = json_object_get(v, "content");
    return json_is_string(v) ? find_piece(r, json_string_value(v), json_string_length(v)) : AEG_TOKEN_NONE;
}

static aegis_status read_ends(reader *r, const json_t *config)
{
    aeg_tokenizer_source *s = &r->s;
    const bool bos = json_is_true(json_object_get(config, "add_bos_token")), eos = json_is_true(json_object_get(config, "add_eos_token"));
    s->bos = named(r, config, "bos_token");
    s->eos = named(r, config, "eos_token");
    s->pad = named(r, config, "pad_token");
    if ((bos && s->bos == AEG_TOKEN_NONE) || (eos && s->eos == AEG_TOKEN_NONE))
        return aeg_fail(r->err, AEGIS_E_MODEL, CONFIG ": 'add_bos_token' or 'add_eos_token' without a known token");
    if (bos)
        s->prefix[s->n_prefix++] = s->bos;
    if (eos)
        s->suffix[s->n_suffix++] = s->eos;
    return AEGIS_OK;
}

aegis_status aeg_tokenizer_compile_spm(const uint8_t *model, size_t n, const char *config_json, size_t config_n, uint8_t **out,
                                       size_t *out_n, aeg_memory *memory, aegis_error *err)
{
    reader r = { .memory = memory, .err = err, .space = true };
    json_t *config = NULL;
    aegis_status status = AEGIS_OK;
    r.s.bos = r.s.eos = r.s.pad = AEG_TOKEN_NONE;
    AEG_TRY_GOTO(read_model(&r, (span){ model, n }));
    if (config_json != NULL)
        AEG_TRY_GOTO(aeg_json_parse(&config, config_json, config_n, CONFIG, AEGIS_E_MODEL, err));
    AEG_TRY_GOTO(read_registered(&r, config));
    AEG_TRY_GOTO(aeg_score_source(&r.s, r.pieces, r.pool, r.space, PATH, memory, err));
    AEG_TRY_GOTO(read_ends(&r, config));
    status = aeg_tokenizer_build(&r.s, out, out_n, memory, err);
done:
    json_decref(config);
    aeg_free(memory, r.pool);
    aeg_free(memory, r.pieces);
    aeg_free(memory, r.s.merges);
    aeg_free(memory, r.s.added);
    aeg_free(memory, r.s.tokens);
    return status;
}
