/* SPDX-License-Identifier: Apache-2.0 */
/* What tokenizer.json can say, on a tokenizer small enough to work out by hand; and what it must not. */
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/json.h"
#include "support/t.h"
#include "text/tokenizer.h"
#include "text/tokenizer_bpe.h"
#include "text/tokenizer_table.h"
#include "unit/tokenizer_small.h"

static aegis_error err;
static aeg_memory memory = { .name = "tokenizer" };

typedef struct {
    uint8_t *table;
    size_t n;
    aeg_tokenizer *tok;
} opened;

static opened open_small(const small_tokenizer *s, const char *config)
{
    opened o = { .table = NULL };
    const char *json = small_tokenizer_json(s);
    T_OK(aeg_tokenizer_compile(json, strlen(json), config, config != NULL ? strlen(config) : 0, &o.table, &o.n, &memory, &err),
         &err);
    T_OK(aeg_tokenizer_open(&o.tok, o.table, o.n, &memory, &err), &err);
    return o;
}

static void close_small(opened *o)
{
    aeg_tokenizer_close(o->tok);
    aeg_free(&memory, o->table);
    t_no_leak(&memory);
    t_no_leak(aeg_json_memory());
}

/* `want` as text: ids separated by spaces. */
static void assert_ids(const opened *o, const char *text, uint32_t flags, const char *want)
{
    uint32_t ids[128];
    size_t count = 0;
    char got[1024] = "";
    T_OK(aeg_tokenizer_encode(o->tok, text, strlen(text), flags, ids, 128, &count, &err), &err);
    for (size_t i = 0, n = 0; i < count; i++)
        n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%u", i == 0 ? "" : " ", ids[i]);
    assert_string_equal(got, want);
}

static void merges_follow_rank_then_position(void **state)
{
    (void)state;
    opened o = open_small(&(small_tokenizer){ 0 }, NULL);
    /* h e|l l o -> "lo" (rank 1) before "ll" (rank 2); "hello" itself is made by no merge. */
    assert_ids(&o, "hello", 0, "256 108 258");
    assert_ids(&o, "lll", 0, "260 108");
    assert_ids(&o, "", 0, "");
    assert_ids(&o, " he \xC3\xA9", 0, "32 256 32 195 169");
    close_small(&o);

    o = open_small(&(small_tokenizer){ .merges = "[[\"h\", \"e\"], [\"l\", \"o\"], [\"l\", \"l\"]]" }, NULL);
    assert_ids(&o, "hello", 0, "256 108 258");
    close_small(&o);

    /* Given twice, a pair has its last rank. */
    o = open_small(&(small_tokenizer){ .merges = "[\"l o\", \"l l\", \"l o\"]" }, NULL);
    assert_ids(&o, "llo", 0, "260 111");
    close_small(&o);

    o = open_small(&(small_tokenizer){ .model_options = "\"ignore_merges\": true," }, NULL);
    assert_ids(&o, "hello", 0, "259");
    assert_ids(&o, "hellos", 0, "256 108 258 115");
    close_small(&o);
}

static void patterns_prefix_space_and_normal_form(void **state)
{
    (void)state;
    opened o = open_small(&(small_tokenizer){ .pre_tokenizer = "{\"type\": \"ByteLevel\", \"add_prefix_space\": true}" }, NULL);
    assert_ids(&o, "a", 0, "32 97");
    assert_ids(&o, " a", 0, "32 97");
    assert_ids(&o, "", 0, "");
    close_small(&o);

    /* No pattern: merges cross everything. The vocabulary spells a space as U+0120. */
    o = open_small(&(small_tokenizer){ .vocab = ", \"o\u0120\": 256", .merges = "[\"o \u0120\"]",
                                       .pre_tokenizer = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}" }, NULL);
    assert_ids(&o, "oo o", 0, "111 256 111");
    close_small(&o);

    o = open_small(&(small_tokenizer){ .vocab = ", \"12\": 256", .merges = "[\"1 2\"]",
                                       .pre_tokenizer = "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", \"individual_digits\": true},"
                                                        " {\"type\": \"Split\", \"pattern\": {\"String\": \".\"}, \"behavior\": \"Isolated\", \"invert\": false},"
                                                        " {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]}" }, NULL);
    assert_ids(&o, "12.a", 0, "49 50 46 97");
    close_small(&o);

    o = open_small(&(small_tokenizer){ .normalizer = "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}]}" }, NULL);
    assert_ids(&o, "e\u0301", 0, "195 169");
    close_small(&o);
    o = open_small(&(small_tokenizer){ .normalizer = "{\"type\": \"NFKC\"}" }, NULL);
    assert_ids(&o, "\ufb01", 0, "102 105");
    close_small(&o);
}

#define FLAGS(single, left, right, normal, special)                                                              \
    "\"single_word\": " #single ", \"lstrip\": " #left ", \"rstrip\": " #right ", \"normalized\": " #normal ", \"special\": " #special

static void added_tokens_match_as_their_flags_say(void **state)
{
    (void)state;
    opened o = open_small(&(small_tokenizer){
        .normalizer = "{\"type\": \"NFC\"}",
        .added = "[{\"id\": 300, \"content\": \"<a>\", " FLAGS(false, false, false, false, true) "},"
                 " {\"id\": 301, \"content\": \"<a>b\", " FLAGS(false, false, false, false, false) "},"
                 " {\"id\": 302, \"content\": \"<l>\", " FLAGS(false, true, false, false, true) "},"
                 " {\"id\": 303, \"content\": \"<r>\", " FLAGS(false, false, true, false, true) "},"
                 " {\"id\": 304, \"content\": \"ww\", " FLAGS(true, false, false, false, false) "},"
                 " {\"id\": 305, \"content\": \"e\u0301!\", " FLAGS(false, false, false, true, false) "}]" }, NULL);
    assert_int_equal(aeg_tokenizer_n_tokens(o.tok), 306);
    assert_ids(&o, "<a>x<a>bx<a", AEG_TOKENIZE_ADDED, "300 120 301 120 60 97");
    assert_ids(&o, "<a>", 0, "60 97 62");
    assert_ids(&o, "x \n<l> y", AEG_TOKENIZE_ADDED, "120 302 32 121");
    assert_ids(&o, "x <r> \u3000y", AEG_TOKENIZE_ADDED, "120 32 303 121");
    assert_ids(&o, "<a> <l>", AEG_TOKENIZE_ADDED, "300 302");
    assert_ids(&o, "ww aww \u00e9ww ww1 ww", AEG_TOKENIZE_ADDED, "304 32 97 119 119 32 195 169 119 119 32 119 119 49 32 304");
    assert_ids(&o, "\u00e9!e\u0301!", AEG_TOKENIZE_ADDED, "305 305"); /* matched after normalisation, both spellings */

    const uint8_t *bytes = NULL;
    size_t n = 0;
    uint32_t id = 0;
    assert_false(aeg_tokenizer_token(o.tok, 270, &bytes, &n)); /* an unused id */
    assert_false(aeg_tokenizer_token(o.tok, 306, &bytes, &n));
    assert_true(aeg_tokenizer_token(o.tok, 305, &bytes, &n) && n == 4 && memcmp(bytes, "e\u0301!", 4) == 0);
    assert_true(aeg_tokenizer_find(o.tok, "<a>", &id) && id == 300);
    assert_true(aeg_tokenizer_find(o.tok, "hello", &id) && id == 259);
    assert_false(aeg_tokenizer_find(o.tok, "nothing", &id));
    assert_true(aeg_tokenizer_is_special(o.tok, 300) && !aeg_tokenizer_is_special(o.tok, 301) && aeg_tokenizer_is_added(o.tok, 301));
    assert_false(aeg_tokenizer_is_special(o.tok, 12) || aeg_tokenizer_is_added(o.tok, 270) || aeg_tokenizer_is_special(o.tok, UINT32_MAX));
    close_small(&o);
}

static void templates_and_config_name_the_tokens_around_a_text(void **state)
{
    (void)state;
    const char *added = "[{\"id\": 261, \"content\": \"<s>\", " FLAGS(false, false, false, false, true) "},"
                        " {\"id\": 262, \"content\": \"</s>\", " FLAGS(false, false, false, false, true) "}]";
    const char *config = "{\"bos_token\": \"<s>\", \"eos_token\": {\"content\": \"</s>\"}, \"pad_token\": null, \"add_bos_token\": true}";
    opened o = open_small(&(small_tokenizer){ .added = added }, config);
    assert_ids(&o, "a", AEG_TOKENIZE_TEMPLATE, "261 97");
    assert_ids(&o, "a", 0, "97");
    assert_int_equal(aeg_tokenizer_bos(o.tok), 261);
    assert_int_equal(aeg_tokenizer_eos(o.tok), 262);
    assert_true(aeg_tokenizer_pad(o.tok) == AEG_TOKEN_NONE);
    close_small(&o);

    o = open_small(&(small_tokenizer){ .added = added, .post_processor =
        "{\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, {\"type\": \"TemplateProcessing\", \"single\":"
        " [{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}},"
        " {\"SpecialToken\": {\"id\": \"</s>\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\":"
        " {\"<s>\": {\"id\": \"<s>\", \"ids\": [261], \"tokens\": [\"<s>\"]}, \"</s>\": {\"id\": \"</s>\", \"ids\": [262], \"tokens\": [\"</s>\"]}}}]}" },
        config);
    assert_ids(&o, "a", AEG_TOKENIZE_TEMPLATE, "261 97 262");
    close_small(&o);

    /* Tokens that only the second file knows. */
    o = open_small(&(small_tokenizer){ 0 }, "{\"added_tokens_decoder\": {\"261\": {\"content\": \"<x>\", \"special\": true}}}");
    assert_ids(&o, "<x>", AEG_TOKENIZE_ADDED, "261");
    close_small(&o);
}

static void what_is_not_understood_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        small_tokenizer s;
        const char *part;
    } cases[] = {
        { { .normalizer = "{\"type\": \"Lowercase\"}" }, "normalizer 'Lowercase'" },
        { { .normalizer = "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Replace\"}]}" }, "'Replace'" },
        { { .pre_tokenizer = "null" }, "no 'ByteLevel'" },
        { { .pre_tokenizer = "{\"type\": \"Metaspace\"}" }, "pre-tokenizer 'Metaspace'" },
        { { .pre_tokenizer = "{\"type\": \"ByteLevel\", \"colour\": 1}" }, "'colour'" },
        { { .pre_tokenizer = "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"ByteLevel\"}, {\"type\": \"Digits\"}]}" }, "'Digits' after" },
        { { .pre_tokenizer = "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"},"
                             " \"behavior\": \"MergedWithNext\"}, {\"type\": \"ByteLevel\"}]}" }, "MergedWithNext" },
        { { .pre_tokenizer = "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a&&b]\"},"
                             " \"behavior\": \"Isolated\"}, {\"type\": \"ByteLevel\"}]}" }, "intersection" },
        { { .post_processor = "{\"type\": \"BertProcessing\"}" }, "'BertProcessing'" },
        { { .post_processor = "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"q\"}}]}" }, "step of" },
        { { .decoder = "null" }, "'decoder'" },
        { { .decoder = "{\"type\": \"WordPiece\"}" }, "decoder 'WordPiece'" },
        { { .model_options = "\"byte_fallback\": true," }, "'byte_fallback'" },
        { { .model_options = "\"dropout\": 0.1," }, "'dropout'" },
        { { .model_options = "\"end_of_word_suffix\": \"</w>\"," }, "'end_of_word_suffix'" },
        { { .model_options = "\"news\": 1," }, "'news'" },
        { { .vocab = ", \"he\": 255" }, "id 255 is given to two" },
        { { .vocab = ", \"he\": -1" }, "'he'" },
        { { .vocab = ", \"he\": 99999999" }, "'he'" },
        { { .vocab = ", \"he\": \"7\"" }, "'he'" },
        { { .merges = "[\"h e\", \"q z\"]" }, "merge 1, 'q' + 'z'" },
        { { .merges = "[\"he\"]" }, "merge 0" },
        { { .merges = "[[\"h\", \"e\", \"l\"]]" }, "merge 0" },
        { { .merges = "{}" }, "'merges'" },
        { { .added = "[{\"id\": 5, \"content\": \"<x>\"}]" }, "'<x>' has id 5" },
        { { .added = "[{\"id\": 300, \"content\": \"\"}]" }, "0 bytes" },
        { { .added = "[{\"id\": 300, \"content\": \"<x>\"}, {\"id\": 301, \"content\": \"<x>\"}]" }, "same text '<x>'" },
        { { .added = "[{\"id\": 300, \"content\": \"<x>\", \"shape\": 1}]" }, "'shape'" },
        { { .added = "[{\"content\": \"<x>\"}]" }, "added token" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t *table = NULL;
        size_t n = 0;
        const char *json = small_tokenizer_json(&cases[i].s);
        T_FAILS(aeg_tokenizer_compile(json, strlen(json), NULL, 0, &table, &n, &memory, &err), &err, AEGIS_E_MODEL, cases[i].part);
        t_no_leak(&memory);
        t_no_leak(aeg_json_memory());
    }
    static const char *const texts[] = { "", "[]", "{}", "{\"model\": 3}", "{\"model\": {\"type\": \"Unigram\"}}", "{\"model\": {\"vocab\": {}}}",
                                         "{\"model\": {\"vocab\": {}, \"merges\": []}}", "{\"extra\": 1}" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint8_t *table = NULL;
        size_t n = 0;
        T_FAILS(aeg_tokenizer_compile(texts[i], strlen(texts[i]), NULL, 0, &table, &n, &memory, &err), &err, AEGIS_E_MODEL, "");
        t_no_leak(&memory);
    }
}

/* A vocabulary without the letter of some byte could not encode every text. */
static void every_byte_needs_a_token(void **state)
{
    (void)state;
    uint8_t *table = NULL;
    size_t n = 0;
    char *json = (char *)(uintptr_t)small_tokenizer_json(&(small_tokenizer){ 0 });
    char *z = strstr(json, "\"z\": 122");
    assert_non_null(z);
    memcpy(z + 1, "0", 1); /* "0" twice */
    T_FAILS(aeg_tokenizer_compile(json, strlen(json), NULL, 0, &table, &n, &memory, &err), &err, AEGIS_E_MODEL, "");
    json = (char *)(uintptr_t)small_tokenizer_json(&(small_tokenizer){ .vocab = ", \"zz\": 256", .merges = "[]" });
    z = strstr(json, "\"z\": 122");
    memset(z, ' ', strlen("\"z\": 122,")); /* leaves the id out */
    T_FAILS(aeg_tokenizer_compile(json, strlen(json), NULL, 0, &table, &n, &memory, &err), &err, AEGIS_E_MODEL, "byte 0x7A has no token");
    t_no_leak(&memory);
}

static void a_damaged_table_is_refused(void **state)
{
    (void)state;
    opened o = open_small(&(small_tokenizer){ .model_options = "\"ignore_merges\": true," }, NULL);
    uint8_t *copy = aeg_malloc(&memory, o.n);
    aeg_tokenizer *tok = NULL;
    for (size_t i = 0; i < o.n; i += 7) {
        memcpy(copy, o.table, o.n);
        copy[i] ^= (uint8_t)(1u << (i % 8));
        T_FAILS(aeg_tokenizer_open(&tok, copy, o.n, &memory, &err), &err, AEGIS_E_MODEL, "tokenizer table");
        T_FAILS(aeg_tokenizer_open(&tok, o.table, i, &memory, &err), &err, AEGIS_E_MODEL, "tokenizer table");
    }
    memcpy(copy, o.table, o.n);
    copy[8] = 9; /* the version is looked at first, so that its message is the useful one */
    T_FAILS(aeg_tokenizer_open(&tok, copy, o.n, &memory, &err), &err, AEGIS_E_MODEL, "version 9");
    aeg_free(&memory, copy);
    close_small(&o);
}

/* Put one number of the table somewhere else, and the checksum right. */
static aegis_status open_forged(const opened *o, size_t at, uint32_t value, aeg_tokenizer **tok, uint8_t *copy)
{
    memcpy(copy, o->table, o->n);
    memcpy(copy + at, &value, sizeof(value));
    const uint64_t sum = XXH3_64bits(copy + 32, o->n - 32);
    memcpy(copy + 24, &sum, sizeof(sum));
    return aeg_tokenizer_open(tok, copy, o->n, &memory, &err);
}

static void numbers_that_would_lead_outside_are_refused(void **state)
{
    (void)state;
    opened o = open_small(&(small_tokenizer){ .added = "[{\"id\": 261, \"content\": \"<s>\"}]" }, NULL);
    aeg_token_table t;
    T_OK(aeg_token_table_view(&t, o.table, o.n, &err), &err);
    uint8_t *copy = aeg_malloc(&memory, o.n);
    aeg_tokenizer *tok = NULL;
    size_t at[AEG_TT_N_SECTIONS];
    for (int i = 0; i < AEG_TT_N_SECTIONS; i++)
        at[i] = (size_t)(t.section[i] - o.table);
    size_t used = at[AEG_TT_MERGES];
    while (aeg_tt_u32(o.table + used) == UINT32_MAX)
        used += 16;

    const struct {
        size_t at;
        uint32_t value;
        const char *part;
    } cases[] = {
        { used, 262, "unknown token" },                       /* left                         */
        { used + 12, 259, "does not join" },                  /* merged: longer than its parts */
        { used + 12, 97, "does not join" },                   /* merged: shorter              */
        { used + 8, UINT32_MAX, "no rank" },
        { at[AEG_TT_TOKEN_START] + 4 * 97, 5000, "length" },
        { at[AEG_TT_BYTE_IDS] + 4 * 97, 256, "byte 0x61" },   /* a token of two bytes         */
        { at[AEG_TT_BYTE_IDS] + 4 * 97, 262, "byte 0x61" },
        { at[AEG_TT_ADDED], 9999, "added token" },
        { at[AEG_TT_ADDED] + 8, 9999, "added token" },
        { at[AEG_TT_PATTERNS] + 4, 9999, "pattern" },
        { 32, 1u << 30, "count" },                            /* n_tokens                     */
        { 32 + 4, 7, "number of merges" },
        { 32 + 8, 0, "hash tables" },                         /* merge_slots                  */
        { 32 + 28, 1u << 20, "options" },
        { 32 + 32, 262, "bos" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        T_FAILS(open_forged(&o, cases[i].at, cases[i].value, &tok, copy), &err, AEGIS_E_MODEL, cases[i].part);
    T_OK(open_forged(&o, used, aeg_tt_u32(o.table + used), &tok, copy), &err); /* the forger's tools are right */
    aeg_tokenizer_close(tok);
    aeg_free(&memory, copy);
    close_small(&o);
}

/* With a checksum that fits, whatever opens must also encode within its bounds. */
T_PROPERTY(a_forged_table_is_refused_or_harmless, 400)
{
    opened o = open_small(&(small_tokenizer){ .model_options = t_below(2) ? "\"ignore_merges\": true," : "",
                                              .added = "[{\"id\": 261, \"content\": \"<s>\"}]" }, NULL);
    aeg_tokenizer *tok = NULL;
    for (uint64_t k = 1 + t_below(4); k-- > 0;) {
        uint8_t *at = o.table + 32 + t_below(o.n - 32);
        *at = t_below(2) ? (uint8_t)t_random() : (uint8_t)(*at + (t_below(2) ? 1 : -1));
    }
    const uint64_t sum = XXH3_64bits(o.table + 32, o.n - 32);
    memcpy(o.table + 24, &sum, sizeof(sum));
    if (aeg_tokenizer_open(&tok, o.table, o.n, &memory, &err) == AEGIS_OK) {
        uint32_t ids[64];
        size_t count = 0;
        const char *text = "hello <s> lollol he\xC3\xA9 \xFF hellohellohellohellohellohellohellohellohellohello";
        (void)aeg_tokenizer_encode(tok, text, strlen(text), AEG_TOKENIZE_ADDED | AEG_TOKENIZE_TEMPLATE, ids, 64, &count, &err);
        uint8_t out[64];
        aeg_tokenizer_decode(tok, ids, count < 64 ? count : 64, false, out, sizeof(out));
        aeg_tokenizer_close(tok);
    } else {
        T_CHECK(err.status == AEGIS_E_MODEL);
    }
    aeg_tokenizer_close(o.tok);
    aeg_free(&memory, o.table);
    t_no_leak(&memory);
}

static void a_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const char *json = small_tokenizer_json(&(small_tokenizer){ .normalizer = "{\"type\": \"NFC\"}",
        .pre_tokenizer = "{\"type\": \"ByteLevel\", \"add_prefix_space\": true}",
        .added = "[{\"id\": 261, \"content\": \"e\u0301\", \"normalized\": true}]" });
    uint32_t ids[256];
    for (uint64_t n = 1;; n++) {
        uint8_t *table = NULL;
        size_t table_n = 0, count = 0;
        aeg_tokenizer *tok = NULL;
        t_fault_at(n);
        aegis_status status = aeg_tokenizer_compile(json, strlen(json), NULL, 0, &table, &table_n, &memory, &err);
        if (status == AEGIS_OK)
            status = aeg_tokenizer_open(&tok, table, table_n, &memory, &err);
        if (status == AEGIS_OK) {
            char text[128];
            memset(text, 'h', sizeof(text));
            memcpy(text + 100, "e\xCC\x81 \xFF", 5);
            status = aeg_tokenizer_encode(tok, text, sizeof(text), AEG_TOKENIZE_ADDED, ids, 256, &count, &err);
        }
        const bool hit = t_fault_hit();
        t_fault_at(0);
        aeg_tokenizer_close(tok);
        aeg_free(&memory, table);
        t_no_leak(&memory);
        t_no_leak(aeg_json_memory());
        if (!hit) {
            assert_int_equal(status, AEGIS_OK);
            break;
        }
        if (status != AEGIS_OK) /* some are survived: without memory for JIT the interpreter matches */
            assert_int_equal(err.status, AEGIS_E_MEMORY);
    }
}

static void ignore_ids(void *ctx, const uint32_t *ids, size_t n)
{
    (void)ctx;
    (void)ids;
    (void)n;
}

/* A vocabulary made so that the end of a text decides its middle: symbols "Xy" S0 S1 S2 ..., each merging with the
 * next, the later pair first. A row of them pairs up from its right end, so a window that ends in the row pairs the
 * wrong way, further back than the margin. That must be noticed, and the ids must still be right. */
static void windows_that_do_not_fit_are_noticed(void **state)
{
    (void)state;
    enum { N = 300, TEXT = 80000 };
    static char vocab[1 << 15], merges[1 << 15], text[TEXT];
    size_t v = 0, m = 0;
    m += (size_t)snprintf(merges + m, sizeof(merges) - m, "[");
    for (int i = 0; i < N; i++) {
        v += (size_t)snprintf(vocab + v, sizeof(vocab) - v, ", \"%c%c\": %d", 'A' + i / 26, 'a' + i % 26, 256 + i);
        m += (size_t)snprintf(merges + m, sizeof(merges) - m, "%s\"%c %c\"", i == 0 ? "" : ",", 'A' + i / 26, 'a' + i % 26);
    }
    for (int i = N - 2; i >= 0; i--) {
        const int a = 'A' + i / 26, b = 'a' + i % 26, c = 'A' + (i + 1) / 26, d = 'a' + (i + 1) % 26;
        v += (size_t)snprintf(vocab + v, sizeof(vocab) - v, ", \"%c%c%c%c\": %d", a, b, c, d, 256 + N + i);
        m += (size_t)snprintf(merges + m, sizeof(merges) - m, ",\"%c%c %c%c\"", a, b, c, d);
    }
    snprintf(merges + m, sizeof(merges) - m, "]");
    opened o = open_small(&(small_tokenizer){ .vocab = vocab, .merges = merges,
        .pre_tokenizer = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}" }, NULL);

    aeg_token_table t;
    T_OK(aeg_token_table_view(&t, o.table, o.n, &err), &err);
    uint32_t *ids = aeg_malloc(&memory, TEXT * sizeof(*ids));
    int n_refused = 0;
    for (size_t shift = 0; shift < 2 * N; shift += 37) {
        aeg_bpe_room room = { .memory = &memory };
        size_t count = 0, n_whole = 0;
        bool exact = true;
        for (size_t i = 0; i < TEXT; i++) {
            const size_t k = (i + shift) % (2 * N) / 2;
            text[i] = (char)((i + shift) % 2 == 0 ? 'A' + k / 26 : 'a' + k % 26);
        }
        T_OK(aeg_bpe_windows(&t, &room, (const uint8_t *)text, TEXT, AEG_BPE_WINDOW, ignore_ids, NULL, &exact, &err), &err);
        n_refused += !exact;
        T_OK(aeg_tokenizer_encode(o.tok, text, TEXT, 0, ids, TEXT, &count, &err), &err);
        T_OK(aeg_bpe_long(&t, &room, (const uint8_t *)text, TEXT, &n_whole, &err), &err);
        assert_int_equal(count, n_whole);
        assert_memory_equal(ids, room.id, count * sizeof(ids[0]));
        aeg_bpe_room_free(&room);
    }
    assert_true(n_refused > 0);
    aeg_free(&memory, ids);
    close_small(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_follow_rank_then_position),
        cmocka_unit_test(patterns_prefix_space_and_normal_form),
        cmocka_unit_test(added_tokens_match_as_their_flags_say),
        cmocka_unit_test(templates_and_config_name_the_tokens_around_a_text),
        cmocka_unit_test(what_is_not_understood_is_refused_by_name),
        cmocka_unit_test(every_byte_needs_a_token),
        cmocka_unit_test(a_damaged_table_is_refused),
        cmocka_unit_test(numbers_that_would_lead_outside_are_refused),
        cmocka_unit_test(a_forged_table_is_refused_or_harmless),
        cmocka_unit_test(windows_that_do_not_fit_are_noticed),
        cmocka_unit_test(a_failed_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
