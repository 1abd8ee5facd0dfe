/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's tokenizer: ids that other implementations found, long pieces, decoding in steps. */
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "support/t.h"
#include "text/tokenizer.h"
#include "text/tokenizer_bpe.h"

static aegis_error err;
static aeg_memory memory = { .name = "tokenizer" };
static uint8_t *table;
static size_t table_n;
static aeg_tokenizer *tok;

static int open_demo(void **state)
{
    (void)state;
    size_t n = 0, config_n = 0;
    char *json = t_read_file(AEGIS_SOURCE_DIR "/models/demo/tokenizer.json", &n);
    char *config = t_read_file(AEGIS_SOURCE_DIR "/models/demo/tokenizer_config.json", &config_n);
    T_OK(aeg_tokenizer_compile(json, n, config, config_n, &table, &table_n, &memory, &err), &err);
    T_OK(aeg_tokenizer_open(&tok, table, table_n, &memory, &err), &err);
    t_free(config);
    t_free(json);
    t_no_leak(aeg_json_memory());
    return 0;
}

static int close_demo(void **state)
{
    (void)state;
    aeg_tokenizer_close(tok);
    aeg_free(&memory, table);
    t_no_leak(&memory);
    return 0;
}

static size_t encode(const char *text, size_t n, uint32_t flags, uint32_t *ids, size_t cap)
{
    size_t count = 0;
    const uint64_t before = memory.in_use;
    T_OK(aeg_tokenizer_encode(tok, text, n, flags, ids, cap, &count, &err), &err);
    T_CHECK(memory.in_use == before);
    return count;
}

/* eval-ids.bin holds what @huggingface/tokenizers found (tests/oracle/tokenizer/compare.mjs --ids). */
static void eval_text_has_the_oracles_ids(void **state)
{
    (void)state;
    size_t n = 0, want_n = 0;
    char *text = t_read_file(AEGIS_SOURCE_DIR "/tests/data/eval.txt", &n);
    char *want = t_read_file(AEGIS_SOURCE_DIR "/tests/data/eval-ids.bin", &want_n);
    static uint32_t ids[16384];
    assert_int_equal(want_n, 2048 * 4);
    assert_true(encode(text, n, AEG_TOKENIZE_ADDED, ids, 16384) >= 2048);
    assert_memory_equal(ids, want, want_n);
    /* `count` is for the whole text even if only a few fit, and nothing is written past them. */
    uint32_t few[4] = { 0, 0, 0, 77 };
    assert_int_equal(encode(text, n, 0, few, 3), encode(text, n, 0, NULL, 0));
    assert_memory_equal(few, ids, 12);
    assert_int_equal(few[3], 77);
    t_free(want);
    t_free(text);
}

/* The goldens' ids come from transformers; their text is not stored, but decoding gives it. */
static void golden_prompts_come_back_from_their_text(void **state)
{
    (void)state;
    size_t n = 0, checked = 0;
    char *file = t_read_file(AEGIS_SOURCE_DIR "/tests/data/demo-golden-mlx4.safetensors", &n);
    uint64_t header_n;
    memcpy(&header_n, file, 8);
    json_t *header = NULL, *v;
    T_OK(aeg_json_parse(&header, file + 8, header_n, "golden", AEGIS_E_MODEL, &err), &err);
    const char *key;
    json_object_foreach(header, key, v) {
        const size_t key_n = strlen(key);
        if (key_n < 4 || strcmp(key + key_n - 4, ".ids") != 0)
            continue;
        static uint32_t ids[2048], again[4096];
        static uint8_t text[1 << 16];
        const json_t *offsets = json_object_get(v, "data_offsets");
        const size_t from = (size_t)json_integer_value(json_array_get(offsets, 0));
        const size_t to = (size_t)json_integer_value(json_array_get(offsets, 1));
        assert_true(to - from <= sizeof(ids) && 8 + header_n + to <= n);
        memcpy(ids, file + 8 + header_n + from, to - from);
        const size_t n_ids = (to - from) / 4;
        const size_t text_n = aeg_tokenizer_decode(tok, ids, n_ids, false, text, sizeof(text));
        assert_true(text_n <= sizeof(text));
        assert_int_equal(encode((char *)text, text_n, AEG_TOKENIZE_ADDED, again, 4096), n_ids);
        assert_memory_equal(again, ids, to - from);
        checked++;
    }
    assert_true(checked >= 10);
    json_decref(header);
    t_free(file);
}

static void added_tokens_need_the_flag(void **state)
{
    (void)state;
    uint32_t ids[64], id = 0;
    const char *text = "<|im_start|>user\nhi<|im_end|>";
    assert_true(aeg_tokenizer_find(tok, "<|im_start|>", &id) && id == 6132);
    assert_true(aeg_tokenizer_find(tok, "<|im_end|>", &id) && id == 6133);
    assert_int_equal(aeg_tokenizer_eos(tok), 6133);
    assert_int_equal(aeg_tokenizer_pad(tok), 6131);
    assert_true(aeg_tokenizer_bos(tok) == AEG_TOKEN_NONE);
    assert_int_equal(aeg_tokenizer_n_tokens(tok), 6144);
    assert_true(aeg_tokenizer_find(tok, "</think>", &id) && id == 6143 && !aeg_tokenizer_is_special(tok, id) &&
                aeg_tokenizer_is_added(tok, id));
    size_t n = encode(text, strlen(text), AEG_TOKENIZE_ADDED, ids, 64);
    assert_true(ids[0] == 6132 && ids[n - 1] == 6133);
    uint8_t out[64];
    assert_int_equal(aeg_tokenizer_decode(tok, ids, n, true, out, sizeof(out)), 7);
    assert_memory_equal(out, "user\nhi", 7);
    n = encode(text, strlen(text), 0, ids, 64);
    for (size_t i = 0; i < n; i++)
        assert_false(aeg_tokenizer_is_added(tok, ids[i]));
    assert_int_equal(aeg_tokenizer_decode(tok, ids, n, true, out, 3), strlen(text)); /* needed, not written */
}

static size_t random_text(uint8_t *out, size_t room)
{
    size_t n = 0;
    const uint64_t kind = t_below(5);
    for (uint64_t k = t_below(room / 4); k-- > 0;) {
        static const char *const words[] = { " the", "ing", "  ", "\n", "</think>", "<|im_", "1", "'s", "e\xCC\x81", "\xE4\xBB\x8A" };
        const char *word = words[t_below(10)];
        if (kind == 0)
            out[n++] = (uint8_t)t_random();
        else if (kind == 1)
            n += aeg_utf8_put(out + n, (uint32_t)t_below(0xD800));
        else if (n + strlen(word) <= room)
            n += strlen(strcpy((char *)out + n, word));
    }
    return n;
}

/* Token by token: valid UTF-8 at every step, and together what decoding in one go gives once repaired. */
T_PROPERTY(detokenising_in_steps_equals_decoding_at_once, 400)
{
    static aeg_detok d;
    static uint8_t whole[1 << 16], repaired[3 << 16], stepped[3 << 16];
    uint32_t ids[64];
    const size_t n_ids = t_below(64);
    const bool skip = t_below(2);
    for (size_t i = 0; i < n_ids; i++) /* mostly single bytes: tokens that are parts of characters */
        ids[i] = (uint32_t)(t_below(3) ? t_below(256) : t_below(6200));
    const size_t n = aeg_tokenizer_decode(tok, ids, n_ids, skip, whole, sizeof(whole));
    const size_t want_n = aeg_utf8_repair(repaired, whole, n);
    size_t got_n = 0, step_n = 0;
    aeg_detok_init(&d, tok, skip);
    for (size_t i = 0; i <= n_ids; i++) {
        const char *step = i < n_ids ? aeg_detok_push(&d, ids[i], &step_n) : aeg_detok_flush(&d, &step_n);
        T_CHECK(aeg_utf8_valid((const uint8_t *)step, step_n) == step_n);
        memcpy(stepped + got_n, step, step_n);
        got_n += step_n;
    }
    T_CHECK(got_n == want_n && memcmp(stepped, repaired, got_n) == 0);
}

T_PROPERTY(text_in_normal_form_comes_back_and_broken_text_repaired, 300)
{
    static uint8_t text[1024], repaired[3072], back[8192], normal[8192];
    static uint32_t ids[4096], same[4096];
    const size_t n = random_text(text, sizeof(text));
    const size_t count = encode((char *)text, n, AEG_TOKENIZE_ADDED, ids, 4096);
    T_CHECK(count <= 4096);
    /* Broken bytes are encoded as U+FFFD is. */
    const size_t repaired_n = aeg_utf8_repair(repaired, text, n);
    T_CHECK(encode((char *)repaired, repaired_n, AEG_TOKENIZE_ADDED, same, 4096) == count);
    T_CHECK(memcmp(ids, same, count * sizeof(ids[0])) == 0);
    /* Decoding gives the normal form: encoded again it is what it was. */
    const size_t back_n = aeg_tokenizer_decode(tok, ids, count, false, back, sizeof(back));
    T_CHECK(encode((char *)back, back_n, AEG_TOKENIZE_ADDED, same, 4096) == count);
    const size_t normal_n = aeg_tokenizer_decode(tok, same, count, false, normal, sizeof(normal));
    T_CHECK(normal_n == back_n && memcmp(normal, back, back_n) == 0);
}

/* ---- byte-pair merging ---- */

/* The definition, word for word: join the leftmost pair of lowest rank, start over. */
static size_t merge_slowly(const aeg_token_table *t, const uint8_t *piece, size_t n, uint32_t *ids)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = aeg_tt_u32(t->section[AEG_TT_BYTE_IDS] + piece[i] * 4u);
    for (;;) {
        uint32_t best = UINT32_MAX, best_id = 0, merged = 0;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const uint32_t rank = aeg_tt_merge(t, ids[i], ids[i + 1], &merged);
            if (rank < best) {
                best = rank;
                best_id = merged;
                at = i;
            }
        }
        if (best == UINT32_MAX)
            return n;
        ids[at] = best_id;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof(ids[0]));
        n--;
    }
}

typedef struct {
    uint32_t *ids;
    size_t n;
} collected;

static void collect(void *ctx, const uint32_t *ids, size_t n)
{
    collected *c = ctx;
    memcpy(c->ids + c->n, ids, n * sizeof(ids[0]));
    c->n += n;
}

static void fill_piece(uint8_t *piece, size_t n)
{
    static const char letters[] = "etaoinshrdlu \n";
    const uint64_t kind = t_below(4);
    for (size_t i = 0; i < n; i++)
        piece[i] = kind == 0   ? (uint8_t)t_random()
                   : kind == 1 ? (uint8_t)letters[t_below(sizeof(letters) - 1)]
                   : kind == 2 ? (uint8_t)" a"[t_below(40) == 0]
                               : (uint8_t)('a' + t_below(3));
}

T_PROPERTY(short_and_long_merging_equal_the_definition, 400)
{
    aeg_token_table t;
    uint8_t piece[300];
    uint32_t want[300], ids[AEG_BPE_SHORT];
    aeg_bpe_room room = { .memory = &memory };
    T_OK(aeg_token_table_view(&t, table, table_n, &err), &err);
    size_t n = 1 + t_below(sizeof(piece)), n_long = 0;
    fill_piece(piece, n);
    T_OK(aeg_bpe_long(&t, &room, piece, n, &n_long, &err), &err);
    T_CHECK(n_long == merge_slowly(&t, piece, n, want) && memcmp(room.id, want, n_long * sizeof(want[0])) == 0);
    n = 1 + t_below(AEG_BPE_SHORT);
    const size_t n_want = merge_slowly(&t, piece, n, want);
    T_CHECK(aeg_bpe_short(&t, piece, (uint32_t)n, ids) == n_want && memcmp(ids, want, n_want * sizeof(ids[0])) == 0);
    aeg_bpe_room_free(&room);
}

T_PROPERTY(windows_give_the_ids_of_the_whole_piece, 30)
{
    enum { MAX = 60000 };
    static uint8_t piece[MAX];
    static uint32_t ids[MAX];
    aeg_token_table t;
    aeg_bpe_room room = { .memory = &memory }, whole = { .memory = &memory };
    collected c = { .ids = ids };
    bool exact = false;
    size_t n_whole = 0;
    T_OK(aeg_token_table_view(&t, table, table_n, &err), &err);
    const size_t n = 1 + t_below(MAX);
    fill_piece(piece, n);
    T_OK(aeg_bpe_windows(&t, &room, piece, n, AEG_BPE_MIN_WINDOW + t_below(5000), collect, &c, &exact, &err), &err);
    T_OK(aeg_bpe_long(&t, &whole, piece, n, &n_whole, &err), &err);
    T_CHECK(exact && c.n == n_whole && memcmp(ids, whole.id, c.n * sizeof(ids[0])) == 0);
    aeg_bpe_room_free(&room);
    aeg_bpe_room_free(&whole);
}

/* A megabyte without a place to cut; the time limit of the test is what a quadratic merge would miss. */
static void a_megabyte_in_one_piece_needs_little_time_and_room(void **state)
{
    (void)state;
    const size_t n = 1000000;
    char *text = aeg_malloc(&memory, n);
    uint32_t *ids = aeg_malloc(&memory, n * sizeof(*ids));
    uint8_t *back = aeg_malloc(&memory, n);
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < n; i++)
            text[i] = kind == 0 ? 'a' : kind == 1 ? ' ' : (char)('a' + t_below(26));
        memory.peak = memory.in_use;
        const uint64_t before = memory.in_use;
        const size_t count = encode(text, n, 0, ids, n);
        assert_true(memory.peak - before < (3 << 19)); /* 1.5 MiB, as the header promises */
        assert_int_equal(aeg_tokenizer_decode(tok, ids, count, false, back, n), n);
        assert_memory_equal(back, text, n);
    }
    aeg_free(&memory, back);
    aeg_free(&memory, ids);
    aeg_free(&memory, text);
}

static void limits_are_errors_and_the_tokenizer_goes_on(void **state)
{
    (void)state;
    size_t count = 5;
    uint32_t ids[8];
    T_FAILS(aeg_tokenizer_encode(tok, "", (size_t)AEG_TOKENIZER_MAX_TEXT + 1, 0, ids, 8, &count, &err), &err, AEGIS_E_USAGE,
            "268435457 bytes");
    memory.ceiling = memory.in_use + 4096;
    char text[2000];
    memset(text, 'q', sizeof(text));
    T_FAILS(aeg_tokenizer_encode(tok, text, sizeof(text), 0, ids, 8, &count, &err), &err, AEGIS_E_MEMORY, "2000 bytes");
    assert_int_equal(count, 5);
    memory.ceiling = 0;
    assert_int_equal(encode("The grep utility searches", 25, 0, ids, 8), 6);
    assert_int_equal(ids[0], 459);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eval_text_has_the_oracles_ids),
        cmocka_unit_test(golden_prompts_come_back_from_their_text),
        cmocka_unit_test(added_tokens_need_the_flag),
        cmocka_unit_test(detokenising_in_steps_equals_decoding_at_once),
        cmocka_unit_test(text_in_normal_form_comes_back_and_broken_text_repaired),
        cmocka_unit_test(short_and_long_merging_equal_the_definition),
        cmocka_unit_test(windows_give_the_ids_of_the_whole_piece),
        cmocka_unit_test(a_megabyte_in_one_piece_needs_little_time_and_room),
        cmocka_unit_test(limits_are_errors_and_the_tokenizer_goes_on),
    };
    return cmocka_run_group_tests(tests, open_demo, close_demo);
}
