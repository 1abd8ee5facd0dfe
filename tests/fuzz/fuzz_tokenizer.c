/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from outside that reach the tokenizer. The first byte says how they come in:
 *   'J' a tokenizer.json     'T' a tokenizer table, with size and checksum put right so that the rest is looked at
 *   anything else: a text for the demo's tokenizer; bit 0 of that byte: match added tokens. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/normalize.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static aeg_memory memory = { .name = "tokenizer", .ceiling = 256 << 20 };
static const char probe[] = "Hello world  <|im_start|>\n e\xCC\x81 12 \xFFlololololololololololololololololololololololololololololo";

#define MUST(condition)                                                        \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "fuzz_tokenizer: not true: %s\n", #condition);     \
            abort();                                                           \
        }                                                                      \
    } while (0)

/* Encode, decode and detokenise; a hostile pattern may end in an error, never in ids that do not exist. */
static void use(const aeg_tokenizer *tok, const char *text, size_t n, uint32_t flags)
{
    static aeg_detok d;
    aegis_error err;
    const size_t cap = 3 * n + 64;
    uint32_t *ids = malloc(cap * sizeof(*ids));
    size_t count = 0;
    MUST(ids != NULL);
    if (aeg_tokenizer_encode(tok, text, n, flags, ids, cap, &count, &err) == AEGIS_OK) {
        aeg_detok_init(&d, tok, true);
        for (size_t i = 0; i < count && i < cap; i++) {
            size_t step;
            MUST(ids[i] < aeg_tokenizer_n_tokens(tok));
            const char *out = aeg_detok_push(&d, ids[i], &step);
            MUST(aeg_utf8_valid((const uint8_t *)out, step) == step);
        }
    }
    free(ids);
}

static void try_table(const uint8_t *table, size_t n)
{
    aegis_error err;
    aeg_tokenizer *tok = NULL;
    if (aeg_tokenizer_open(&tok, table, n, &memory, &err) == AEGIS_OK)
        use(tok, probe, sizeof(probe) - 1, AEG_TOKENIZE_ADDED | AEG_TOKENIZE_TEMPLATE);
    else
        MUST(err.status == AEGIS_E_MODEL || err.status == AEGIS_E_MEMORY);
    aeg_tokenizer_close(tok);
}

static void try_json(const char *json, size_t n)
{
    aegis_error err;
    uint8_t *table = NULL;
    size_t table_n = 0;
    if (aeg_tokenizer_compile(json, n, NULL, 0, &table, &table_n, &memory, &err) == AEGIS_OK)
        try_table(table, table_n);
    else
        MUST(err.status == AEGIS_E_MODEL || err.status == AEGIS_E_MEMORY);
    aeg_free(&memory, table);
}

static void forge(const uint8_t *data, size_t n)
{
    uint8_t *table = malloc(n);
    MUST(table != NULL);
    memcpy(table, data, n);
    if (n >= 32) {
        const uint64_t size = n, sum = XXH3_64bits(table + 32, n - 32);
        memcpy(table + 16, &size, sizeof(size));
        memcpy(table + 24, &sum, sizeof(sum));
    }
    try_table(table, n);
    free(table);
}

/* Whatever the text, its ids decode to its repaired, normalised form. */
static void try_text(const aeg_tokenizer *tok, const char *text, size_t n, uint32_t flags)
{
    aegis_error err;
    uint8_t *valid = malloc(3 * n + 1), *normal = NULL;
    size_t normal_n = 0, count = 0;
    MUST(valid != NULL);
    const size_t valid_n = aeg_utf8_repair(valid, (const uint8_t *)text, n);
    MUST(aeg_normalize(valid, valid_n, AEG_NORMAL_NFC, &normal, &normal_n, &memory, &err) == AEGIS_OK);
    uint32_t *ids = malloc((3 * n + 64) * sizeof(*ids));
    uint8_t *back = malloc(normal_n + 1);
    MUST(ids != NULL && back != NULL);
    MUST(aeg_tokenizer_encode(tok, text, n, flags, ids, 3 * n + 64, &count, &err) == AEGIS_OK && count <= 3 * n + 64);
    const size_t back_n = aeg_tokenizer_decode(tok, ids, count, false, back, normal_n + 1);
    /* Added tokens cut the text before it is normalised, so marks right behind one stay as they are. */
    if (flags == 0)
        MUST(back_n == normal_n && (normal_n == 0 || memcmp(back, normal, normal_n) == 0));
    free(back);
    free(ids);
    aeg_free(&memory, normal);
    free(valid);
    use(tok, text, n, flags);
}

static aeg_tokenizer *demo(void)
{
    static aeg_tokenizer *tok;
    static uint8_t *table;
    aegis_error err;
    char *json = NULL;
    size_t n = 0, table_n = 0;
    if (tok != NULL)
        return tok;
    MUST(aeg_file_read(&json, &n, AEGIS_SOURCE_DIR "/models/demo/tokenizer.json", 1 << 24, &memory, &err) == AEGIS_OK);
    MUST(aeg_tokenizer_compile(json, n, NULL, 0, &table, &table_n, &memory, &err) == AEGIS_OK);
    MUST(aeg_tokenizer_open(&tok, table, table_n, &memory, &err) == AEGIS_OK);
    aeg_free(&memory, json);
    return tok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    aeg_tokenizer *tok = demo();
    const uint64_t before = memory.in_use;
    if (data[0] == 'J')
        try_json((const char *)data + 1, n - 1);
    else if (data[0] == 'T')
        forge(data + 1, n - 1);
    else
        try_text(tok, (const char *)data + 1, n - 1, data[0] & 1 ? AEG_TOKENIZE_ADDED : 0);
    MUST(memory.in_use == before);
    MUST(aeg_json_memory()->in_use == 0);
    return 0;
}
