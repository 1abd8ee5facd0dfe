/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

aeg_utf8_kind aeg_utf8_step(const uint8_t *s, size_t n, uint32_t *code, uint32_t *length)
{
    const uint8_t lead = s[0];
    *length = 1;
    if (lead < 0x80) {
        *code = lead;
        return AEG_UTF8_OK;
    }
    if (lead < 0xC2 || lead > 0xF4)
        return AEG_UTF8_BROKEN;

    /* Only the second byte has a narrower range than 80..BF: it is what excludes overlong forms,
     * surrogates and values above U+10FFFF. */
    const uint32_t total = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint8_t low = 0x80, high = 0xBF;
    switch (lead) {
    case 0xE0: low = 0xA0; break;
    case 0xED: high = 0x9F; break;
    case 0xF0: low = 0x90; break;
    case 0xF4: high = 0x8F; break;
    default: break;
    }
    uint32_t value = total == 2 ? lead & 0x1Fu : total == 3 ? lead & 0x0Fu : lead & 0x07u;
    for (uint32_t i = 1; i < total; i++) {
        *length = i;
        if (i == n)
            return AEG_UTF8_SHORT;
        if (s[i] < low || s[i] > high)
            return AEG_UTF8_BROKEN;
        value = value << 6 | (s[i] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    *length = total;
    *code = value;
    return AEG_UTF8_OK;
}

size_t aeg_utf8_valid(const uint8_t *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint64_t word;
        if (n - i >= sizeof(word)) {
            memcpy(&word, s + i, sizeof(word));
            if ((word & 0x8080808080808080u) == 0) {
                i += sizeof(word);
                continue;
            }
        }
        uint32_t code, length;
        if (aeg_utf8_step(s + i, n - i, &code, &length) != AEG_UTF8_OK)
            return i;
        i += length;
    }
    return n;
}

size_t aeg_utf8_repair(uint8_t *out, const uint8_t *s, size_t n)
{
    size_t written = 0;
    for (size_t i = 0; i < n;) {
        uint32_t code, length;
        if (aeg_utf8_step(s + i, n - i, &code, &length) == AEG_UTF8_OK) {
            memcpy(out + written, s + i, length);
            written += length;
        } else {
            memcpy(out + written, "\xEF\xBF\xBD", 3);
            written += 3;
        }
        i += length;
    }
    return written;
}

static bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

size_t aeg_utf8_show(char *out, size_t room, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    const uint8_t *s = (const uint8_t *)text;
    size_t written = 0;
    for (size_t left = strlen(text); left > 0;) {
        uint32_t code, length;
        const bool plain = aeg_utf8_step(s, left, &code, &length) == AEG_UTF8_OK && !is_control(code);
        if (room - written <= (plain ? length : 4 * length))
            break;
        for (uint32_t i = 0; i < length; i++) {
            if (plain) {
                out[written++] = (char)s[i];
                continue;
            }
            memcpy(out + written, (const char[]){ '\\', 'x', hex[s[i] >> 4], hex[s[i] & 15] }, 4);
            written += 4;
        }
        s += length;
        left -= length;
    }
    out[written] = '\0';
    return written;
}

uint32_t aeg_utf8_put(uint8_t *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}
