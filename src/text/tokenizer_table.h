/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokenizer_table.h - layout of tokenizer.bin, version 1, and a checked view of it.
 *
 * All numbers little-endian; nothing needs alignment. Header (AEG_TT_HEADER bytes):
 *    0 magic "AEGISTOK"   8 u32 version   12 u32 n_sections   16 u64 bytes of the whole table
 *   24 u64 XXH3-64 of everything from byte 32   32 u32 fields[AEG_TT_N_FIELDS], see below
 *   then n_sections x { u64 offset, u64 bytes }, in the order of the enum below.
 * Merge slots are 16 bytes { u32 left, right, rank, merged }; left = 0xFFFFFFFF means empty. The slot
 * of a pair is found from aeg_tt_slot(aeg_tt_hash(pair)), then by walking on (round the end) up to an
 * empty slot. Added tokens are 16 bytes { u32 id, flags, text_offset, text_bytes }, those matched in
 * raw text first, then those matched in normalised text, each group in byte order of its text.
 * Patterns are 12 bytes { u32 offset, bytes, flags }. Thread: any.
 */
#ifndef AEG_TEXT_TOKENIZER_TABLE_H
#define AEG_TEXT_TOKENIZER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tables are used in place: little-endian only"
#endif

enum { AEG_TT_VERSION = 1 };
enum { AEG_TT_MAX_PATTERNS = 8, AEG_TT_MAX_PATTERN = 4096, AEG_TT_MAX_TEMPLATE = 8 };
enum { AEG_TT_MAX_TOKENS = 1 << 22 }; /* 16 times the largest public vocabulary */

/* Longest run of used slots. With slots filled to 60 % about 100 is normal; more than this means
 * pairs chosen to collide, which would make every lookup slow. */
enum { AEG_TT_MAX_WALK = 1024 };

/* Section order. */
enum {
    AEG_TT_TOKEN_START,  /* u32[n_tokens + 1] into TOKEN_BYTES                */
    AEG_TT_TOKEN_FLAGS,  /* u8[n_tokens]                                      */
    AEG_TT_TOKEN_BYTES,
    AEG_TT_BYTE_IDS,     /* u32[256]: the token of each single byte           */
    AEG_TT_MERGES,       /* merge_slots x 16                                  */
    AEG_TT_VOCAB,        /* u32[vocab_slots]: ids by hash of their bytes      */
    AEG_TT_ADDED,        /* n_added x 16                                      */
    AEG_TT_ADDED_TEXT,
    AEG_TT_PATTERNS,     /* n_patterns x 12                                   */
    AEG_TT_PATTERN_TEXT,
    AEG_TT_TEMPLATE,     /* u32[n_prefix + n_suffix]                          */
    AEG_TT_N_SECTIONS,
};

/* Field order in the header. */
typedef struct {
    uint32_t n_tokens;
    uint32_t n_merges;
    uint32_t merge_slots;
    uint32_t vocab_slots;  /* 0 unless AEG_TT_IGNORE_MERGES or _SCORES        */
    uint32_t n_added;
    uint32_t n_added_raw;
    uint32_t n_patterns;
    uint32_t options;
    uint32_t bos, eos, pad; /* 0xFFFFFFFF: none                               */
    uint32_t n_prefix, n_suffix;
    uint32_t reserved[3];  /* 0                                               */
} aeg_tt_fields;

enum {
    AEG_TT_N_FIELDS = sizeof(aeg_tt_fields) / sizeof(uint32_t),
    AEG_TT_HEADER = 32 + sizeof(aeg_tt_fields) + AEG_TT_N_SECTIONS * 16,
};

/* SCORES: a SentencePiece vocabulary (tokenizer_score.h): merging starts from characters, several merges share a rank, added
 * tokens of the normalised group are always found. CHUNK_SPACE: text between special tokens gets a space in front. */
enum { AEG_TT_NFC = 1, AEG_TT_NFKC = 2, AEG_TT_IGNORE_MERGES = 4, AEG_TT_PREFIX_SPACE = 8, AEG_TT_SCORES = 16,
       AEG_TT_CHUNK_SPACE = 32, AEG_TT_ALL_OPTIONS = 63 };
/* Token flags. BYTE: stands for a byte of a character that has no token, with SCORES. */
enum { AEG_TT_PRESENT = 1, AEG_TT_IS_ADDED = 2, AEG_TT_SPECIAL = 4, AEG_TT_BYTE = 8 };
enum { AEG_TT_SINGLE_WORD = 1, AEG_TT_LSTRIP = 2, AEG_TT_RSTRIP = 4, AEG_TT_NORMALIZED = 8 }; /* added flags */
enum { AEG_TT_DROP_GAPS = 1 };                                                            /* pattern flags */

typedef struct {
    aeg_tt_fields f;
    const uint8_t *section[AEG_TT_N_SECTIONS];
    size_t section_bytes[AEG_TT_N_SECTIONS];
} aeg_token_table;

/* Check the whole table (sizes, offsets, ids, order, checksum); on success every access through the view
 * stays inside it, hash walks end, and a merge joins lengths exactly. */
aegis_status aeg_token_table_view(aeg_token_table *out, const uint8_t *bytes, size_t n, aegis_error *err);

static inline uint32_t aeg_tt_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint64_t aeg_tt_hash_pair(uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
    return h * 0xD6E8FEB86659FD93u;
}

uint64_t aeg_tt_hash_bytes(const uint8_t *bytes, size_t n);

static inline uint32_t aeg_tt_slot(uint64_t hash, uint32_t n_slots)
{
    return (uint32_t)((hash >> 32) * n_slots >> 32);
}

/* Token bytes; `id` must be below n_tokens. */
static inline const uint8_t *aeg_tt_token(const aeg_token_table *t, uint32_t id, uint32_t *n)
{
    const uint8_t *start = t->section[AEG_TT_TOKEN_START] + (size_t)id * 4;
    *n = aeg_tt_u32(start + 4) - aeg_tt_u32(start);
    return t->section[AEG_TT_TOKEN_BYTES] + aeg_tt_u32(start);
}

/* The token whose bytes these are, from the hash of the vocabulary; false also if the table has none. */
bool aeg_tt_find(const aeg_token_table *t, const uint8_t *bytes, size_t n, uint32_t *id);

/* The merge of a pair: its rank, or UINT32_MAX. */
static inline uint32_t aeg_tt_merge(const aeg_token_table *t, uint32_t left, uint32_t right, uint32_t *merged)
{
    const uint8_t *slots = t->section[AEG_TT_MERGES];
    uint32_t slot = aeg_tt_slot(aeg_tt_hash_pair(left, right), t->f.merge_slots);
    for (;;) {
        const uint8_t *s = slots + (size_t)slot * 16;
        const uint32_t l = aeg_tt_u32(s);
        if (l == left && aeg_tt_u32(s + 4) == right) {
            *merged = aeg_tt_u32(s + 12);
            return aeg_tt_u32(s + 8);
        }
        if (l == UINT32_MAX)
            return UINT32_MAX;
        if (++slot == t->f.merge_slots)
            slot = 0;
    }
}

#endif
