/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers from GGUF metadata, against ids of independent tokenizers on the same files (tests/data/README.md). */
#include "support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/tokenizer.h"
#include "text/tokenizer_gguf.h"
#include "text/tokenizer_spm.h"
#include "support/gguf_write.h"

static const char data_folder[] = AEGIS_SOURCE_DIR "/tests/data/gguf";

static aegis_status compile(const char *path, uint8_t **table, size_t *n, aeg_memory *memory, aegis_error *err)
{
    aeg_gguf g;
    aegis_status status = aeg_gguf_open(&g, path, memory, err);
    *table = NULL;
    if (status == AEGIS_OK)
        status = aeg_tokenizer_compile_gguf(&g, table, n, memory, err);
    aeg_gguf_close(&g);
    return status;
}

typedef struct {
    aeg_memory memory;
    uint8_t *table;
    size_t n;
    aeg_tokenizer *tok;
} opened;

static void open_file(opened *o, const char *path)
{
    aegis_error err = { 0 };
    *o = (opened){ .memory.name = "tokenizer" };
    T_OK(compile(path, &o->table, &o->n, &o->memory, &err), &err);
    T_CHECK(o->table != NULL);
    T_OK(aeg_tokenizer_open(&o->tok, o->table, o->n, &o->memory, &err), &err);
}

static const char xing4_config[] = "{\"bos_token\": \"<_start>\", \"eos_token\": {\"content\": \"<_end>\"}, \"pad_token\": \"<_pad>\"}";

static void open_spm(opened *o, const char *path)
{
    aegis_error err = { 0 };
    size_t n;
    *o = (opened){ .memory.name = "tokenizer" };
    char *model = t_read_file(path, &n);
    T_OK(aeg_tokenizer_compile_spm((const uint8_t *)model, n, xing4_config, sizeof xing4_config - 1, &o->table, &o->n, &o->memory, &err),
         &err);
    T_OK(aeg_tokenizer_open(&o->tok, o->table, o->n, &o->memory, &err), &err);
    t_free(model);
}

static void close_file(opened *o)
{
    aeg_tokenizer_close(o->tok);
    aeg_free(&o->memory, o->table);
    t_no_leak(&o->memory);
}

static size_t encode(const opened *o, const char *text, size_t n, uint32_t flags, uint32_t *ids, size_t cap)
{
    aegis_error err = { 0 };
    size_t count = 0;
    T_OK(aeg_tokenizer_encode(o->tok, text, n, flags, ids, cap, &count, &err), &err);
    T_CHECK(count <= cap);
    return count;
}

static json_t *load_json(const char *path)
{
    aegis_error err = { 0 };
    json_t *root = NULL;
    size_t n;
    char *text = t_read_file(path, &n);
    T_OK(aeg_json_parse(&root, text, n, path, AEGIS_E_MODEL, &err), &err);
    t_free(text);
    return root;
}

static void check_ids(const char *name, bool spm)
{
    enum { CAP = 4096 };
    static uint32_t ids[CAP];
    char file[80];
    opened o;
    snprintf(file, sizeof file, "%s-%s", name, spm ? "tokenizer.model" : "metadata.gguf");
    (spm ? open_spm : open_file)(&o, t_path(data_folder, file));
    snprintf(file, sizeof file, "%s-tokens.json", name);
    json_t *cases = load_json(t_path(data_folder, file));
    size_t i;
    json_t *c;
    json_array_foreach(cases, i, c) {
        const json_t *text = json_object_get(c, "text"), *want = json_object_get(c, "ids");
        const size_t n = encode(&o, json_string_value(text), json_string_length(text), AEG_TOKENIZE_ADDED, ids, CAP);
        bool same = n == json_array_size(want);
        for (size_t k = 0; same && k < n; k++)
            same = ids[k] == (uint32_t)json_integer_value(json_array_get(want, k));
        if (!same)
            print_message("%s: '%s' has other ids\n", name, json_string_value(text));
        T_CHECK(same);
    }
    T_CHECK(i > 10);
    json_decref(cases);
    close_file(&o);
}

static void xing4_has_the_ids_of_its_rules(void **state) { (void)state, check_ids("xing4", false), check_ids("xing4", true); }
static void deepseek_has_the_ids_of_its_engine(void **state) { (void)state, check_ids("deepseek", false); }
static void olmoe_has_the_ids_of_its_engine(void **state) { (void)state, check_ids("olmoe", false); }

/* --- scores -------------------------------------------------------------------------------------------------------------- */

static void check_decoded(const opened *o, const uint32_t *ids, size_t n, bool skip, const char *want)
{
    uint8_t out[256];
    char streamed[256] = "";
    size_t at = 0, got;
    aeg_detok d;
    aeg_detok_init(&d, o->tok, skip);
    for (size_t i = 0; i < n; i++) {
        const char *p = aeg_detok_push(&d, ids[i], &got);
        memcpy(streamed + at, p, got);
        at += got;
    }
    T_CHECK(at == strlen(want) && memcmp(streamed, want, at) == 0);
    T_CHECK(aeg_tokenizer_decode(o->tok, ids, n, skip, out, sizeof out) == at && memcmp(out, want, at) == 0);
}

static void decoding_takes_the_space_of_a_run_away(void **state)
{
    (void)state;
    opened o;
    open_file(&o, t_path(data_folder, "xing4-metadata.gguf"));
    enum { END = 2, USER = 4, OBSERVATION = 7, SPACE = 466, ONE = 25, BYTES = 76 };
    static const uint32_t run[] = { USER, SPACE, ONE, SPACE, ONE, END, SPACE, SPACE, ONE };
    static const uint32_t silent[] = { OBSERVATION, SPACE, ONE }, unknown[] = { 0 };
    check_decoded(&o, run, 9, false, "<_user>1 1<_end> 1");
    check_decoded(&o, run, 9, true, "1 1  1"); /* one run then: only its first piece loses its space */
    check_decoded(&o, silent, 3, false, "1");
    check_decoded(&o, unknown, 1, false, " \xe2\x81\x87 ");
    uint32_t id;
    T_CHECK(aeg_tokenizer_find(o.tok, "<_user>", &id) && id == USER);
    T_CHECK(aeg_tokenizer_eos(o.tok) == END && aeg_tokenizer_bos(o.tok) == 1 && aeg_tokenizer_pad(o.tok) == 3);
    close_file(&o);
}

/* The GGUF file was made from the model file: one table. Cut or changed anywhere, the model file is refused or still one. */
static void a_model_file_gives_the_same_table(void **state)
{
    (void)state;
    opened a, b;
    aegis_error err = { 0 };
    size_t n;
    open_file(&a, t_path(data_folder, "xing4-metadata.gguf"));
    open_spm(&b, t_path(data_folder, "xing4-tokenizer.model"));
    T_CHECK(a.n == b.n && memcmp(a.table, b.table, a.n) == 0);
    close_file(&a);
    close_file(&b);
    char *model = t_read_file(t_path(data_folder, "xing4-tokenizer.model"), &n);
    for (size_t i = 0; i < 3 * n; i++) {
        T_MEMORY(memory);
        uint8_t *table = NULL;
        size_t table_n = 0, cut = i < n ? i : n;
        if (i >= n)
            model[i % n] ^= (char)(i < 2 * n ? 0x81 : 1 << t_below(8));
        const aegis_status status = aeg_tokenizer_compile_spm((const uint8_t *)model, cut, NULL, 0, &table, &table_n, &memory, &err);
        T_CHECK(status == AEGIS_OK || (status == AEGIS_E_MODEL && err.message[0] != '\0'));
        aeg_free(&memory, table);
        t_no_leak(&memory);
        if (i >= n) {
            t_free(model);
            model = t_read_file(t_path(data_folder, "xing4-tokenizer.model"), &n);
        }
    }
    t_free(model);
}

/* What the config registers, and no more, is found in text. */
static void a_config_says_what_is_registered(void **state)
{
    static const char config[] = "{\"added_tokens_decoder\": {\"4\": {\"content\": \"<_user>\", \"special\": true}}, \"add_bos_token\": true,"
                                 " \"bos_token\": \"<_start>\"}";
    static const char wrong[] = "{\"added_tokens_decoder\": {\"5\": {\"content\": \"<_user>\"}}}";
    (void)state;
    opened o = { .memory.name = "tokenizer" };
    aegis_error err = { 0 };
    uint32_t ids[40];
    size_t n;
    char *model = t_read_file(t_path(data_folder, "xing4-tokenizer.model"), &n);
    const uint8_t *bytes = (const uint8_t *)model;
    T_OK(aeg_tokenizer_compile_spm(bytes, n, config, sizeof config - 1, &o.table, &o.n, &o.memory, &err), &err);
    T_OK(aeg_tokenizer_open(&o.tok, o.table, o.n, &o.memory, &err), &err);
    T_CHECK(encode(&o, "<_user>", 7, AEG_TOKENIZE_ADDED, ids, 40) == 1 && ids[0] == 4);
    T_CHECK(encode(&o, "<_bot>", 6, AEG_TOKENIZE_ADDED, ids, 40) > 1);
    T_CHECK(encode(&o, "1", 1, AEG_TOKENIZE_TEMPLATE, ids, 40) == 3 && ids[0] == 1 && ids[2] == 25);
    close_file(&o);
    T_FAILS(aeg_tokenizer_compile_spm(bytes, n, wrong, sizeof wrong - 1, &o.table, &o.n, &o.memory, &err), &err, AEGIS_E_MODEL,
            "'added_tokens_decoder' has '5'");
    t_no_leak(&o.memory);
    t_free(model);
}

/* What SentencePiece does, step by step over all pairs: the score of the joined text decides, the leftmost on ties. */
typedef struct {
    uint32_t id;
    uint32_t at, n; /* in the chunk */
} symbol;

typedef struct {
    const opened *o;
    const aeg_gguf_kv *scores;
} slow;

static bool piece_of(const slow *s, const char *text, uint32_t n, uint32_t *id)
{
    char copy[AEG_TOKEN_MAX_BYTES + 1];
    const uint8_t *bytes;
    size_t bytes_n;
    memcpy(copy, text, n);
    copy[n] = '\0';
    for (*id = 0; *id < aeg_tokenizer_n_tokens(s->o->tok); ++*id) {
        const bool byte = *id >= 40 && *id < 40 + 256; /* the file's byte pieces, see below */
        if (!byte && !aeg_tokenizer_is_added(s->o->tok, *id) && aeg_tokenizer_token(s->o->tok, *id, &bytes, &bytes_n) &&
            bytes_n == n && memcmp(bytes, copy, n) == 0)
            return true;
    }
    return false;
}

static size_t slow_encode(const slow *s, const char *chunk, uint32_t n, uint32_t *ids)
{
    static symbol symbols[600];
    size_t count = 0;
    for (uint32_t i = 0; i < n;) {
        uint32_t length = 1;
        while (i + length < n && ((uint8_t)chunk[i + length] & 0xC0) == 0x80)
            length++;
        uint32_t id;
        if (piece_of(s, chunk + i, length, &id)) {
            symbols[count++] = (symbol){ id, i, length };
        } else {
            for (uint32_t k = 0; k < length; k++)
                symbols[count++] = (symbol){ 40 + (uint8_t)chunk[i + k], i + k, 0 }; /* n = 0: joins nothing */
        }
        i += length;
    }
    for (;;) {
        size_t best = SIZE_MAX;
        double best_score = 0;
        uint32_t best_id = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            uint32_t id;
            double score = 0;
            if (symbols[i].n == 0 || symbols[i + 1].n == 0 ||
                !piece_of(s, chunk + symbols[i].at, symbols[i].n + symbols[i + 1].n, &id))
                continue;
            aeg_gguf_number_at(s->scores, id, &score);
            if (best == SIZE_MAX || score > best_score)
                best = i, best_score = score, best_id = id;
        }
        if (best == SIZE_MAX)
            break;
        symbols[best] = (symbol){ best_id, symbols[best].at, symbols[best].n + symbols[best + 1].n };
        memmove(symbols + best + 1, symbols + best + 2, (count - best - 2) * sizeof symbols[0]);
        count--;
    }
    for (size_t i = 0; i < count; i++)
        ids[i] = symbols[i].id;
    return count;
}

/* A vocabulary with ambiguous cuts ("aaa" is a + aa and aa + a), equal scores, and pieces whose "x" is no piece. */
static const char *write_small(const char *folder)
{
    static const char *const pieces[] = { "\xe2\x96\x81", "a", "b", "c", "\xc3\xa9", "aa", "aaa", "ab", "ba", "bab", "\xe2\x96\x81" "a",
                                          "\xe2\x96\x81\xe2\x96\x81", "a\xc3\xa9", "abc", "bc", "aaaa", "\xe2\x96\x81" "ab",
                                          "bx", "xx" };
    static const float scores[] = { -20, -20, -20, -20, -20, -1, -2, -3, -3, -4, -5, -6, -3, -7, -3, -2, -5, -1, -1 };
    enum { N = 19, FIRST = 40, USER = 38 };
    gw w = { 0 };
    gw_head(&w, 3, 0, 5);
    gw_key_text(&w, "general.architecture", "llama");
    gw_key_text(&w, "tokenizer.ggml.model", "llama");
    gw_key_array(&w, "tokenizer.ggml.tokens", AEG_GGUF_STRING, FIRST + 256 + N);
    for (uint32_t i = 0; i < FIRST + 256 + N; i++) {
        char text[16];
        snprintf(text, sizeof text, i < FIRST ? "<unused%u>" : "<0x%02X>", i < FIRST ? i : i - FIRST);
        gw_text(&w, i == USER ? "\n" : i < FIRST + 256 ? text : pieces[i - FIRST - 256]);
    }
    gw_key_array(&w, "tokenizer.ggml.scores", AEG_GGUF_F32, FIRST + 256 + N);
    for (uint32_t i = 0; i < FIRST + 256 + N; i++)
        gw_raw(&w, i < FIRST + 256 ? &(float){ 0 } : &scores[i - FIRST - 256], 4);
    gw_key_array(&w, "tokenizer.ggml.token_type", AEG_GGUF_I32, FIRST + 256 + N);
    for (uint32_t i = 0; i < FIRST + 256 + N; i++)
        gw_int(&w, i == USER ? AEG_PIECE_USER : i < FIRST ? AEG_PIECE_UNUSED : i < FIRST + 256 ? AEG_PIECE_BYTE : AEG_PIECE_NORMAL, 4);
    const char *path = t_path(folder, "small.gguf");
    gw_write(&w, path);
    gw_free(&w);
    return path;
}

static struct {
    opened o;
    aeg_gguf g;
    bool open;
} small;

static void open_small(void)
{
    if (small.open)
        return;
    aegis_error err = { 0 };
    const char *path = write_small(t_folder());
    open_file(&small.o, path);
    T_OK(aeg_gguf_open(&small.g, path, &small.o.memory, &err), &err);
    small.open = true;
}

/* The table and its heap give what joining by score gives, for short pieces and long ones. */
T_PROPERTY(merging_by_rank_is_merging_by_score, 400)
{
    static const char *const letters[] = { "a", "a", "b", "c", "\xc3\xa9", " ", "\xe2\x96\x81", "x", "\xe4\xbb\x8a", "\n" };
    char text[400] = "", chunk[401] = " ";
    uint32_t ids[800], want[800];
    open_small();
    const uint64_t n = t_between(1, t_below(4) == 0 ? 120 : 24);
    for (uint64_t i = 0; i < n; i++) {
        const char *letter = letters[t_below(10)];
        strcat(text, letter);
        strcat(chunk, strcmp(letter, "\xe2\x96\x81") == 0 ? " " : letter);
    }
    const slow s = { .o = &small.o, .scores = aeg_gguf_find(&small.g, "tokenizer.ggml.scores") };
    size_t n_want = 0;
    for (const char *p = chunk; *p != '\0';) { /* a user symbol is a border */
        const size_t length = strcspn(p, "\n");
        n_want += slow_encode(&s, p, (uint32_t)length, want + n_want);
        p += length;
        if (*p == '\n')
            want[n_want++] = 38, p++;
    }
    const size_t got = encode(&small.o, text, strlen(text), 0, ids, 800);
    T_CHECK(got == n_want && memcmp(ids, want, got * sizeof ids[0]) == 0);
}

/* Windows of a megabyte-long piece give the ids of the whole. */
static void long_texts_are_cut_in_windows(void **state)
{
    enum { N = 300000 };
    (void)state;
    open_small();
    char *text = malloc(N);
    uint32_t *ids = malloc(2 * N * sizeof *ids);
    uint8_t *back = malloc(N + 1);
    for (uint32_t i = 0; i < N; i++)
        text[i] = "aabc x"[t_below(6)];
    const size_t n = encode(&small.o, text, N, 0, ids, 2 * N);
    T_CHECK(aeg_tokenizer_decode(small.o.tok, ids, n, false, back, N + 1) == N && memcmp(back, text, N) == 0);
    free(back);
    free(ids);
    free(text);
}

/* --- the same tokenizer in two files --------------------------------------------------------------------------------------- */

/* The demo's tokenizer.json as a GGUF file: tokens by id, merges as "left right", added tokens by type. */
static const char *demo_as_gguf(const char *folder, const json_t *root, const char *pre)
{
    const json_t *model = json_object_get(root, "model"), *merges = json_object_get(model, "merges");
    json_t *vocab = json_object_get(model, "vocab"), *added = json_object_get(root, "added_tokens"), *v;
    enum { MAX = 8192 };
    static const char *texts[MAX];
    static int types[MAX];
    const char *key;
    size_t i, n = 0;
    json_object_foreach(vocab, key, v) {
        const size_t id = (size_t)json_integer_value(v);
        T_CHECK(id < MAX);
        texts[id] = key, types[id] = AEG_PIECE_NORMAL, n = id + 1 > n ? id + 1 : n;
    }
    json_array_foreach(added, i, v) {
        const size_t id = (size_t)json_integer_value(json_object_get(v, "id"));
        T_CHECK(id < MAX);
        texts[id] = json_string_value(json_object_get(v, "content")), n = id + 1 > n ? id + 1 : n;
        types[id] = json_is_true(json_object_get(v, "special")) ? AEG_PIECE_CONTROL : AEG_PIECE_USER;
    }
    gw w = { 0 };
    gw_head(&w, 3, 0, 6);
    gw_key_text(&w, "general.architecture", "qwen35moe");
    gw_key_text(&w, "tokenizer.ggml.model", "gpt2");
    gw_key_text(&w, "tokenizer.ggml.pre", pre);
    gw_key_array(&w, "tokenizer.ggml.tokens", AEG_GGUF_STRING, n);
    for (i = 0; i < n; i++)
        gw_text(&w, texts[i] == NULL ? "[PAD]" : texts[i]);
    gw_key_array(&w, "tokenizer.ggml.token_type", AEG_GGUF_I32, n);
    for (i = 0; i < n; i++)
        gw_int(&w, (uint64_t)(texts[i] == NULL ? AEG_PIECE_UNUSED : types[i]), 4);
    gw_key_array(&w, "tokenizer.ggml.merges", AEG_GGUF_STRING, json_array_size(merges));
    json_array_foreach(merges, i, v) {
        char text[600];
        snprintf(text, sizeof text, "%s %s", json_string_value(json_array_get(v, 0)), json_string_value(json_array_get(v, 1)));
        gw_text(&w, json_is_string(v) ? json_string_value(v) : text);
    }
    const char *path = t_path(folder, "demo.gguf");
    gw_write(&w, path);
    gw_free(&w);
    return path;
}

static void the_demo_has_the_same_ids_from_both_forms(void **state)
{
    enum { CAP = 20000 };
    static uint32_t a[CAP], b[CAP];
    (void)state;
    T_MEMORY(memory);
    aegis_error err = { 0 };
    size_t n, json_n, table_n;
    uint8_t *table;
    aeg_tokenizer *tok;
    opened o;
    char *json = t_read_file(AEGIS_SOURCE_DIR "/models/demo/tokenizer.json", &json_n);
    T_OK(aeg_tokenizer_compile(json, json_n, NULL, 0, &table, &table_n, &memory, &err), &err);
    T_OK(aeg_tokenizer_open(&tok, table, table_n, &memory, &err), &err);
    json_t *root = load_json(AEGIS_SOURCE_DIR "/models/demo/tokenizer.json");
    open_file(&o, demo_as_gguf(t_folder(), root, "qwen35"));
    json_decref(root);
    char *text = t_read_file(AEGIS_SOURCE_DIR "/tests/data/eval.txt", &n);
    const size_t n_b = encode(&o, text, n, AEG_TOKENIZE_ADDED, b, CAP);
    size_t n_a = 0;
    T_OK(aeg_tokenizer_encode(tok, text, n, AEG_TOKENIZE_ADDED, a, CAP, &n_a, &err), &err);
    T_CHECK(n_a > 1000 && n_a == n_b && memcmp(a, b, n_a * sizeof a[0]) == 0);
    static const char turn[] = "<|im_start|>user\ncaf\xc3\xa9 x = 12345;\t\n\n  <think></think><|im_end|>";
    T_OK(aeg_tokenizer_encode(tok, turn, sizeof turn - 1, AEG_TOKENIZE_ADDED, a, CAP, &n_a, &err), &err);
    T_CHECK(encode(&o, turn, sizeof turn - 1, AEG_TOKENIZE_ADDED, b, CAP) == n_a && memcmp(a, b, n_a * sizeof a[0]) == 0);
    T_CHECK(aeg_tokenizer_n_tokens(tok) == aeg_tokenizer_n_tokens(o.tok));
    for (uint32_t id = 0; id < aeg_tokenizer_n_tokens(tok); id++)
        T_CHECK(aeg_tokenizer_is_special(tok, id) == aeg_tokenizer_is_special(o.tok, id) &&
                aeg_tokenizer_is_added(tok, id) == aeg_tokenizer_is_added(o.tok, id));
    t_free(text);
    t_free(json);
    aeg_tokenizer_close(tok);
    aeg_free(&memory, table);
    close_file(&o);
}

/* Every named set of patterns compiles and cuts text without losing any. */
static void all_patterns_are_understood(void **state)
{
    static const char *const names[] = { "deepseek-llm", "deepseek-v3", "glm4", "gpt-2", "kimi-k2", "llama-bpe", "olmo", "qwen2",
                                         "qwen35", "llama3", "chatglm-bpe", "deepseek-r1-qwen" };
    static const char text[] = "Hello WORLD's caf\xc3\xa9 12345 x=1;\r\n\n\t  \xe4\xbb\x8a\xe5\xa4\xa9 \xd0\x9c\xd0\xb8\xd1\x80 !? ";
    uint32_t ids[400];
    uint8_t back[200];
    (void)state;
    json_t *root = load_json(AEGIS_SOURCE_DIR "/models/demo/tokenizer.json");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        opened o;
        open_file(&o, demo_as_gguf(t_folder(), root, names[i]));
        const size_t n = encode(&o, text, sizeof text - 1, 0, ids, 400);
        T_CHECK(aeg_tokenizer_decode(o.tok, ids, n, false, back, sizeof back) == sizeof text - 1 &&
                memcmp(back, text, sizeof text - 1) == 0);
        close_file(&o);
    }
    T_MEMORY(memory);
    aegis_error err = { 0 };
    uint8_t *table;
    size_t n;
    T_FAILS(compile(demo_as_gguf(t_folder(), root, "qwen99"), &table, &n, &memory, &err), &err, AEGIS_E_MODEL,
            "'tokenizer.ggml.pre' is 'qwen99', expected one of deepseek-llm");
    t_no_leak(&memory);
    json_decref(root);
}

/* --- what is refused --------------------------------------------------------------------------------------------------------- */

static void refused(gw *w, const char *part)
{
    T_MEMORY(memory);
    aegis_error err = { 0 };
    uint8_t *table;
    size_t n;
    const char *path = t_path(t_folder(), "bad.gguf");
    gw_write(w, path);
    gw_free(w);
    T_FAILS(compile(path, &table, &n, &memory, &err), &err, AEGIS_E_MODEL, part);
    t_no_leak(&memory);
}

static void begin(gw *w, uint64_t n_kv, const char *model, uint64_t n_tokens)
{
    gw_head(w, 3, 0, n_kv);
    gw_key_text(w, "tokenizer.ggml.model", model);
    gw_key_text(w, "tokenizer.ggml.pre", "gpt-2");
    gw_key_array(w, "tokenizer.ggml.tokens", AEG_GGUF_STRING, n_tokens);
    for (uint64_t i = 0; i < n_tokens; i++)
        gw_text(w, i == 0 ? "a" : i == 1 ? "b" : "ab");
}

static void broken_vocabularies_are_refused(void **state)
{
    (void)state;
    gw w = { 0 };
    begin(&w, 3, "bert", 3);
    refused(&w, "'tokenizer.ggml.model' is 'bert', expected gpt2 or llama");
    begin(&w, 3, "gpt2", 0);
    refused(&w, "'tokenizer.ggml.tokens' is missing or not of 1 to");
    begin(&w, 3, "gpt2", 3);
    refused(&w, "'tokenizer.ggml.merges' is missing");
    begin(&w, 3, "llama", 3);
    refused(&w, "'tokenizer.ggml.scores' is missing");
    begin(&w, 4, "gpt2", 3), gw_key_array(&w, "tokenizer.ggml.token_type", AEG_GGUF_I32, 2), gw_raw(&w, NULL, 8);
    refused(&w, "'tokenizer.ggml.token_type' has 2 entries for 3 tokens");
    begin(&w, 4, "gpt2", 3), gw_key_array(&w, "tokenizer.ggml.merges", AEG_GGUF_STRING, 1), gw_text(&w, "a");
    refused(&w, "'tokenizer.ggml.merges'[0] is 'a', expected two tokens");
    begin(&w, 4, "gpt2", 3), gw_key_array(&w, "tokenizer.ggml.merges", AEG_GGUF_STRING, 1), gw_text(&w, "b a");
    refused(&w, "'b a': not all three tokens are in the vocabulary");
    begin(&w, 5, "gpt2", 3), gw_key_array(&w, "tokenizer.ggml.merges", AEG_GGUF_STRING, 1), gw_text(&w, "a b");
    gw_key_u32(&w, "tokenizer.ggml.eos_token_id", 3);
    refused(&w, "'tokenizer.ggml.eos_token_id' is 3, expected 0 to 2");
    begin(&w, 5, "gpt2", 3), gw_key_array(&w, "tokenizer.ggml.merges", AEG_GGUF_STRING, 1), gw_text(&w, "a b");
    gw_key_bool(&w, "tokenizer.ggml.add_bos_token", 1);
    refused(&w, "'tokenizer.ggml.add_bos_token' without");
    begin(&w, 4, "llama", 3), gw_key_array(&w, "tokenizer.ggml.scores", AEG_GGUF_F32, 3), gw_raw(&w, NULL, 12);
    refused(&w, "no byte piece '<0x00>'");
    gw_head(&w, 3, 0, 2), gw_key_text(&w, "tokenizer.ggml.model", "gpt2");
    gw_key_array(&w, "tokenizer.ggml.tokens", AEG_GGUF_STRING, 1), gw_int(&w, 2, 8), gw_raw(&w, "\xff\xfe", 2);
    refused(&w, "token 0 has 2 bytes or is not UTF-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xing4_has_the_ids_of_its_rules), cmocka_unit_test(deepseek_has_the_ids_of_its_engine),
        cmocka_unit_test(olmoe_has_the_ids_of_its_engine), cmocka_unit_test(decoding_takes_the_space_of_a_run_away),
        cmocka_unit_test(a_model_file_gives_the_same_table), cmocka_unit_test(a_config_says_what_is_registered),
        cmocka_unit_test(merging_by_rank_is_merging_by_score), cmocka_unit_test(long_texts_are_cut_in_windows),
        cmocka_unit_test(the_demo_has_the_same_ids_from_both_forms), cmocka_unit_test(all_patterns_are_understood),
        cmocka_unit_test(broken_vocabularies_are_refused),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (small.open) {
        aeg_gguf_close(&small.g);
        close_file(&small.o);
    }
    return failed;
}
