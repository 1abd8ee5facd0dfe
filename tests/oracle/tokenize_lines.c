/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize_lines - our tokenizer for an oracle to compare with.
 *
 *   tokenize_lines TOKENIZER.json [CONFIG.json]          records on stdin: 4 bytes little-endian length, then the
 *                                                        text; one line of ids per record on stdout
 *   tokenize_lines TOKENIZER.json --time FILE [REPEAT]   processor time to encode and decode FILE
 *   tokenize_lines --patterns                            the named patterns, as one JSON object
 *
 * Added tokens in the text are matched, as the oracle does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer.h"
#include "text/tokenizer_pre.h"

static aeg_memory memory = { .name = "tokenizer" };

static void must(aegis_status status, const aegis_error *err)
{
    if (status == AEGIS_OK)
        return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static aeg_tokenizer *open_json(const char *path, const char *config_path, uint8_t **table)
{
    aegis_error err;
    char *json = NULL, *config = NULL;
    size_t n = 0, config_n = 0, table_n = 0;
    aeg_tokenizer *tok = NULL;
    must(aeg_file_read(&json, &n, path, AEG_TOKENIZER_MAX_JSON, &memory, &err), &err);
    if (config_path != NULL)
        must(aeg_file_read(&config, &config_n, config_path, AEG_TOKENIZER_MAX_JSON, &memory, &err), &err);
    must(aeg_tokenizer_compile(json, n, config, config_n, table, &table_n, &memory, &err), &err);
    must(aeg_tokenizer_open(&tok, *table, table_n, &memory, &err), &err);
    fprintf(stderr, "%u tokens, table of %zu bytes\n", aeg_tokenizer_n_tokens(tok), table_n);
    aeg_free(&memory, config);
    aeg_free(&memory, json);
    return tok;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* one thread; the machine may be busy */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void time_file(const aeg_tokenizer *tok, const char *path, int repeat)
{
    aegis_error err;
    char *text = NULL;
    size_t n = 0, count = 0;
    must(aeg_file_read(&text, &n, path, AEG_TOKENIZER_MAX_TEXT, &memory, &err), &err);
    uint32_t *ids = malloc((n + 1) * sizeof(*ids));
    uint8_t *back = malloc(n + 1);
    if (ids == NULL || back == NULL)
        exit(1);
    for (int i = 0; i < repeat; i++) {
        memory.peak = memory.in_use;
        const uint64_t before = memory.in_use;
        const double start = seconds();
        must(aeg_tokenizer_encode(tok, text, n, AEG_TOKENIZE_ADDED, ids, n + 1, &count, &err), &err);
        const double encoded = seconds();
        const size_t n_back = aeg_tokenizer_decode(tok, ids, count, false, back, n + 1);
        const double decoded = seconds();
        printf("%zu bytes, %zu tokens: encode %.3f s (%.1f MB/s, %.1f bytes of scratch per byte), decode %.3f s, %s\n", n,
               count, encoded - start, 1e-6 * (double)n / (encoded - start),
               (double)(memory.peak - before) / (double)n, decoded - encoded,
               n_back == n && memcmp(back, text, n) == 0 ? "same bytes back" : "other bytes back");
    }
    free(back);
    free(ids);
    aeg_free(&memory, text);
}

static int serve_records(const aeg_tokenizer *tok)
{
    aegis_error err;
    uint8_t head[4];
    while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
        const size_t n = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
        size_t count = 0;
        char *text = malloc(n + 1);
        uint32_t *ids = malloc((3 * n + 8) * sizeof(*ids));
        if (text == NULL || ids == NULL || fread(text, 1, n, stdin) != n)
            return 1;
        must(aeg_tokenizer_encode(tok, text, n, AEG_TOKENIZE_ADDED, ids, 3 * n + 8, &count, &err), &err);
        for (size_t i = 0; i < count; i++)
            printf("%s%u", i == 0 ? "" : " ", ids[i]);
        putchar('\n');
        free(ids);
        free(text);
    }
    return 0;
}

static int print_patterns(void)
{
    char names[1024];
    json_t *all = json_object();
    aeg_pre_list(names, sizeof(names));
    for (char *save, *name = strtok_r(names, ", ", &save); name != NULL; name = strtok_r(NULL, ", ", &save)) {
        const aeg_pre *pre = aeg_pre_find(name, strlen(name));
        json_t *list = json_array();
        for (int i = 0; i < AEG_TT_MAX_PATTERNS && pre->patterns[i] != NULL; i++)
            json_array_append_new(list, json_string(pre->patterns[i]));
        json_object_set_new(all, name, list);
    }
    const int rc = json_dumpf(all, stdout, 0);
    json_decref(all);
    return rc == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--patterns") == 0)
        return print_patterns();
    if (argc < 2) {
        fprintf(stderr, "usage: tokenize_lines --patterns | TOKENIZER.json [CONFIG.json | --time FILE [REPEAT]]\n");
        return 2;
    }
    uint8_t *table = NULL;
    const int timing = argc > 3 && strcmp(argv[2], "--time") == 0;
    aeg_tokenizer *tok = open_json(argv[1], argc > 2 && !timing ? argv[2] : NULL, &table);
    int rc = 0;
    if (timing)
        time_file(tok, argv[3], argc > 4 ? atoi(argv[4]) : 1);
    else
        rc = serve_records(tok);
    aeg_tokenizer_close(tok);
    aeg_free(&memory, table);
    return rc;
}
