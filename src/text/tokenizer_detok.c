/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/utf8.h"
#include "text/tokenizer_open.h"

void aeg_detok_init(aeg_detok *d, const aeg_tokenizer *tok, bool skip_special)
{
    d->tok = tok;
    d->skip_special = skip_special;
    d->run_start = true;
    d->n_held = 0;
}

const char *aeg_detok_push(aeg_detok *d, uint32_t id, size_t *n)
{
    const uint8_t *bytes;
    size_t n_bytes;
    *n = 0;
    if (!aeg_tokenizer_text(d->tok, id, d->skip_special, &d->run_start, &bytes, &n_bytes) || n_bytes == 0)
        return (const char *)d->out;

    uint8_t text[AEG_TOKEN_MAX_BYTES + sizeof(d->held)];
    memcpy(text, d->held, d->n_held);
    memcpy(text + d->n_held, bytes, n_bytes);
    const size_t total = d->n_held + n_bytes;
    d->n_held = 0;
    size_t written = 0;
    for (size_t i = 0; i < total;) {
        uint32_t code, length;
        const aeg_utf8_kind kind = aeg_utf8_step(text + i, total - i, &code, &length);
        if (kind == AEG_UTF8_SHORT) {
            memcpy(d->held, text + i, length);
            d->n_held = length;
        } else if (kind == AEG_UTF8_OK) {
            memcpy(d->out + written, text + i, length);
            written += length;
        } else {
            memcpy(d->out + written, "\xEF\xBF\xBD", 3);
            written += 3;
        }
        i += length;
    }
    *n = written;
    return (const char *)d->out;
}

const char *aeg_detok_flush(aeg_detok *d, size_t *n)
{
    d->run_start = true;
    *n = d->n_held > 0 ? 3 : 0;
    memcpy(d->out, "\xEF\xBF\xBD", 3);
    d->n_held = 0;
    return (const char *)d->out;
}
