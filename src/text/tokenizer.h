/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer.h - text to token ids and back.
 *
 * Two steps, because a public tokenizer.json of 11 MB costs over 50 MB as a JSON tree. While packing,
 * aeg_tokenizer_compile() turns it into one flat table (10 MB, "tokenizer.bin", layout in
 * tokenizer_table.h). While running, aeg_tokenizer_open() uses that table in place.
 *
 * The bytes that text is made of never fail: broken UTF-8 is encoded as if each maximal broken part
 * were U+FFFD (what Python's errors="replace" gives), and every byte has a token.
 *
 * Memory: the caller owns the table and keeps it until close. encode() allocates scratch from `memory`
 * and frees it before it returns: 1.5 MiB if the pattern cuts a long piece (22 bytes per byte of the piece
 * in cases that a vocabulary must be made for), 3 bytes per byte of text that is not valid UTF-8, and
 * about 20 bytes per byte (NFKC: 60) of a span between added tokens that must be normalised because it
 * is in another form. ASCII needs nothing. Everything else allocates nothing after open.
 * Thread: an open tokenizer is immutable, so any number of threads may use it; an aeg_detok has one owner.
 */
#ifndef AEG_TEXT_TOKENIZER_H
#define AEG_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

typedef struct aeg_tokenizer aeg_tokenizer;

#define AEG_TOKEN_NONE UINT32_MAX /* an id that no token has */

enum {
    AEG_TOKEN_MAX_BYTES = 1024,             /* longest token; public vocabularies stay below 300 */
    AEG_TOKENIZER_MAX_TEXT = 256 << 20,     /* longest text of one encode call, bytes            */
    AEG_TOKENIZER_MAX_JSON = 256 << 20,     /* longest tokenizer.json                            */
};

enum {
    AEG_TOKENIZE_ADDED = 1,    /* spellings of added tokens in the text become those tokens. Off for
                                  text that a user typed, or it could forge a turn of the conversation */
    AEG_TOKENIZE_TEMPLATE = 2, /* put the model's own tokens around the text (mostly BOS), if it has any */
};

/* Compile a Hugging Face tokenizer.json (byte-level BPE) and, if not NULL, its tokenizer_config.json.
 * *out (free with aeg_free) is a table that aeg_tokenizer_open() accepts. AEGIS_E_MODEL names whatever
 * is broken or not understood: a tokenizer that we only nearly follow would be worse than none. */
aegis_status aeg_tokenizer_compile(const char *json, size_t n, const char *config_json, size_t config_n,
                                   uint8_t **out, size_t *out_n, aeg_memory *memory, aegis_error *err);

/* Check every offset and id of the table, then use it in place. AEGIS_E_MODEL if it is damaged. */
aegis_status aeg_tokenizer_open(aeg_tokenizer **out, const uint8_t *table, size_t n, aeg_memory *memory,
                                aegis_error *err);
void aeg_tokenizer_close(aeg_tokenizer *tok); /* NULL allowed */

/* *count becomes the number of tokens of the whole text, even where it is more than `cap`; the first
 * min(cap, *count) are in `ids` (NULL if cap is 0). A failed call leaves *count as it was.
 * AEGIS_E_USAGE: text too long. AEGIS_E_MEMORY: scratch refused. */
aegis_status aeg_tokenizer_encode(const aeg_tokenizer *tok, const char *text, size_t n, uint32_t flags,
                                  uint32_t *ids, size_t cap, size_t *count, aegis_error *err);

/* Ids are 0 .. n_tokens-1, added tokens included; a few in between may be unused. A model may have more
 * rows than that (padding): such ids are no tokens and decode to nothing. */
uint32_t aeg_tokenizer_n_tokens(const aeg_tokenizer *tok);

/* The bytes of a token (a loan from the table; not always whole characters). False if `id` is no token. */
bool aeg_tokenizer_token(const aeg_tokenizer *tok, uint32_t id, const uint8_t **bytes, size_t *n);

/* The token spelt exactly `text`; added tokens first. A search through the vocabulary: not for hot paths. */
bool aeg_tokenizer_find(const aeg_tokenizer *tok, const char *text, uint32_t *id);

/* Special tokens steer the model and are not text: skip_special drops them. <think> is added, not special. */
bool aeg_tokenizer_is_special(const aeg_tokenizer *tok, uint32_t id);
bool aeg_tokenizer_is_added(const aeg_tokenizer *tok, uint32_t id);

/* Named by tokenizer_config.json; AEG_TOKEN_NONE if it does not name one. */
uint32_t aeg_tokenizer_bos(const aeg_tokenizer *tok);
uint32_t aeg_tokenizer_eos(const aeg_tokenizer *tok);
uint32_t aeg_tokenizer_pad(const aeg_tokenizer *tok);

/* The tokens' bytes one after another, exactly as they are (the end may be half a character). Returns the
 * bytes needed, even where that is more than `cap`; at most `cap` are written. */
size_t aeg_tokenizer_decode(const aeg_tokenizer *tok, const uint32_t *ids, size_t n_ids, bool skip_special,
                            uint8_t *out, size_t cap);

/* Decoding token by token for a screen or a stream: what comes out is valid UTF-8 at every step and, all
 * together, the repaired form of aeg_tokenizer_decode(). Holds back at most 3 bytes. */
typedef struct {
    const aeg_tokenizer *tok;
    bool skip_special;
    bool run_start; /* the next piece is the first behind a special token, or of all */
    uint32_t n_held;
    uint8_t held[4];
    uint8_t out[3 * (AEG_TOKEN_MAX_BYTES + 4)];
} aeg_detok;

void aeg_detok_init(aeg_detok *d, const aeg_tokenizer *tok, bool skip_special);

/* Bytes that can be shown now (perhaps 0); valid until the next call on `d`. */
const char *aeg_detok_push(aeg_detok *d, uint32_t id, size_t *n);

/* What is held back, as one U+FFFD, or nothing. `d` is ready for another text afterwards. */
const char *aeg_detok_flush(aeg_detok *d, size_t *n);

#endif
