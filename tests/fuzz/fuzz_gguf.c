/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a GGUF header: an error with a sentence, or tables whose texts and values lie inside the bytes and whose
 * tensors lie inside the file. The first two bytes say how much of the file was read and how much of it follows. */
#include <stdlib.h>
#include <string.h>

#include "format/gguf_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void look_at(const aeg_gguf_kv *kv, const uint8_t *bytes, size_t n)
{
    volatile uint8_t sum = 0;
    int64_t v;
    double d;
    if ((const uint8_t *)kv->key.p < bytes || (const uint8_t *)kv->key.p + kv->key.n > bytes + n)
        abort();
    if (kv->type != AEG_GGUF_STRING) {
        for (uint64_t i = 0; i < kv->count && i < 1000; i++)
            sum = (uint8_t)(sum + aeg_gguf_int_at(kv, i, &v) + aeg_gguf_number_at(kv, i, &d));
        return;
    }
    aeg_gguf_text text;
    for (aeg_gguf_strings each = aeg_gguf_each(kv); aeg_gguf_next(&each, &text);)
        for (size_t i = 0; i < text.n; i++)
            sum = (uint8_t)(sum + (uint8_t)text.p[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2)
        return 0;
    aegis_error err = { 0 };
    aeg_gguf_head head;
    bool more = false;
    const uint64_t file_bytes = n - 2 + (uint64_t)data[0] * 64;
    const size_t read = n - 2 - (n - 2) * data[1] / 512;
    uint8_t *bytes = malloc(read == 0 ? 1 : read);
    if (bytes == NULL)
        abort();
    memcpy(bytes, data + 2, read);
    const aegis_status status = aeg_gguf_parse(&head, NULL, NULL, bytes, read, file_bytes, "fuzz", &more, &err);
    if (status != AEGIS_OK && (status != AEGIS_E_MODEL || err.message[0] == '\0'))
        abort();
    if (status == AEGIS_OK && !more) {
        aeg_gguf_kv *kv = calloc(head.n_kv + 1u, sizeof *kv);
        aeg_gguf_tensor *tensors = calloc(head.n_tensors + 1u, sizeof *tensors);
        if (kv == NULL || tensors == NULL || head.header_bytes > read)
            abort();
        if (aeg_gguf_parse(&head, kv, tensors, bytes, read, file_bytes, "fuzz", &more, &err) != AEGIS_OK || more)
            abort();
        for (uint32_t i = 0; i < head.n_kv; i++)
            look_at(&kv[i], bytes, read);
        for (uint32_t i = 0; i < head.n_tensors; i++)
            if (tensors[i].t.bytes > file_bytes || tensors[i].t.offset > file_bytes - tensors[i].t.bytes)
                abort();
        aeg_gguf_sort(kv, head.n_kv, "fuzz", &err);
        free(kv);
        free(tensors);
    }
    free(bytes);
    return 0;
}
