/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/tokenizer_small.h"

#include <stdint.h>
#include <stdio.h>

#include "base/utf8.h"

static char buffer[64 << 10];

static const char *or_else(const char *s, const char *otherwise) { return s != NULL ? s : otherwise; }

/* Written from the rule, not from the code under test: printable Latin-1 stands for itself, the rest is U+0100 up. */
static size_t put_letter(char *out, int byte)
{
    const int printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    int code = byte;
    if (!printable) {
        code = 256;
        for (int b = 0; b < byte; b++)
            code += !((b > 32 && b < 127) || (b > 160 && b != 173));
    }
    size_t n = 0;
    if (code == '"' || code == '\\')
        out[n++] = '\\';
    return n + aeg_utf8_put((uint8_t *)out + n, (uint32_t)code);
}

const char *small_tokenizer_json(const small_tokenizer *s)
{
    size_t n = 0;
    n += (size_t)snprintf(buffer + n, sizeof(buffer) - n, "{\"version\": \"1.0\", \"added_tokens\": %s,\n",
                          or_else(s->added, "[]"));
    n += (size_t)snprintf(buffer + n, sizeof(buffer) - n, "\"normalizer\": %s, \"pre_tokenizer\": %s,\n",
                          or_else(s->normalizer, "null"),
                          or_else(s->pre_tokenizer, "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}"));
    n += (size_t)snprintf(buffer + n, sizeof(buffer) - n, "\"post_processor\": %s, \"decoder\": %s,\n",
                          or_else(s->post_processor, "null"), or_else(s->decoder, "{\"type\": \"ByteLevel\"}"));
    n += (size_t)snprintf(buffer + n, sizeof(buffer) - n, "\"model\": {\"type\": \"BPE\", %s \"vocab\": {",
                          or_else(s->model_options, ""));
    for (int b = 0; b < 256; b++) {
        n += (size_t)snprintf(buffer + n, sizeof(buffer) - n, "%s\"", b == 0 ? "" : ", ");
        n += put_letter(buffer + n, b);
        n += (size_t)snprintf(buffer + n, sizeof(buffer) - n, "\": %d", b);
    }
    n += (size_t)snprintf(buffer + n, sizeof(buffer) - n, "%s},\n\"merges\": %s}}\n",
                          or_else(s->vocab, ", \"he\": 256, \"hel\": 257, \"lo\": 258, \"hello\": 259, \"ll\": 260"),
                          or_else(s->merges, "[\"h e\", \"l o\", \"l l\"]"));
    return buffer;
}
