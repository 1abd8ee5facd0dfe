/* SPDX-License-Identifier: Apache-2.0 */
#include "expert/store_manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/file.h"

static const char manifest_name[] = "manifest.json";

static bool parse_hash(const char *text, uint64_t *out)
{
    uint64_t v = 0;
    for (int i = 0; i < 16; i++) {
        const char c = text[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        v = v << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *out = v;
    return text[16] == '\0' || text[16] == '"';
}

static const char hash_member[] = "\"xxh3\": \"", hash_end[] = "\"\n}\n", curve_member[] = "\"hit_curve\":";
enum { TAIL_BYTES = sizeof hash_member - 1 + 16 + sizeof hash_end - 1 };

/* Where the members that the packer writes end: before the member hit_curve if that is the last one before the
 * checksum, else before the checksum at `tail`. */
static size_t packed_end(const char *text, size_t tail)
{
    const size_t n = sizeof curve_member - 1;
    size_t at = tail;
    /* Numbers and brackets only: nothing else can hide in what the key leaves out. */
    while (at > 0 && text[at - 1] != '\0' && strchr("0123456789.,[] \n", text[at - 1]) != NULL)
        at--;
    return at >= n && memcmp(text + at - n, curve_member, n) == 0 ? at - n : tail;
}

/* The text ends with  "xxh3": "<16 digits>"\n}\n  and the digits are the hash of all before that member. *packed is
 * where that, or the hit curve before it, begins. */
static aegis_status check_text(const char *text, size_t n, size_t *packed, aegis_error *err)
{
    uint64_t expected = 0;
    if (n < TAIL_BYTES || memcmp(text + n - TAIL_BYTES, hash_member, sizeof hash_member - 1) != 0 ||
        memcmp(text + n - (sizeof hash_end - 1), hash_end, sizeof hash_end - 1) != 0 ||
        !parse_hash(text + n - TAIL_BYTES + sizeof hash_member - 1, &expected))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: does not end with its checksum (truncated or edited?)", manifest_name);
    const uint64_t found = XXH3_64bits(text, n - TAIL_BYTES);
    if (found != expected)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: checksum %016" PRIx64 ", expected %016" PRIx64, manifest_name, found,
                        expected);
    *packed = packed_end(text, n - TAIL_BYTES);
    return AEGIS_OK;
}

aegis_status aeg_manifest_load(json_t **out, const char *folder, aeg_memory *memory, uint64_t *key, aegis_error *err)
{
    char path[AEG_PATH_MAX];
    char *text = NULL;
    size_t n = 0, packed = 0;
    json_t *root = NULL;
    *out = NULL;
    AEG_TRY(aeg_path_join(path, folder, manifest_name, err));
    AEG_TRY(aeg_file_read(&text, &n, path, AEG_MANIFEST_MAX_BYTES, memory, err));
    aegis_status status = check_text(text, n, &packed, err);
    if (status == AEGIS_OK)
        *key = XXH3_64bits(text, packed);
    if (status == AEGIS_OK)
        status = aeg_json_parse(&root, text, n, manifest_name, AEGIS_E_MODEL, err);
    aeg_free(memory, text);
    AEG_TRY(status);
    if (json_object_get(root, "hit_curve") != NULL && packed == n - TAIL_BYTES) {
        json_decref(root);
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'hit_curve' is not a list of numbers just before the checksum", manifest_name);
    }
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_t *version = json_object_get(root, "version");
    if (format == NULL || strcmp(format, "aegis-store") != 0)
        status = aeg_fail(err, AEGIS_E_MODEL, "%s: 'format' is not \"aegis-store\"", manifest_name);
    else if (!json_is_integer(version) || json_integer_value(version) != AEG_STORE_VERSION)
        status = aeg_fail(err, AEGIS_E_MODEL, "%s: version %lld, expected %d: pack the model again", manifest_name,
                          (long long)json_integer_value(version), AEG_STORE_VERSION);
    if (status == AEGIS_OK)
        *out = root;
    else
        json_decref(root);
    return status;
}

/* A plain kind (all that scales can be), or a ggml type. */
static bool kind_of(const char *name, uint8_t *kind)
{
    const uint32_t k = aeg_weight_kind_named(name);
    *kind = (uint8_t)k;
    return k < AEG_N_WEIGHT_KINDS;
}

aegis_status aeg_manifest_type(const json_t *o, const char *key, const char *where, aeg_weight_type *out,
                               aegis_error *err)
{
    const char *text;
    char scale[8], again[AEG_TYPE_TEXT];
    unsigned bits = 0, group = 0;
    aeg_weight_type t = { 0 };
    AEG_TRY(aeg_json_get_string(o, key, where, &text, err));
    if (sscanf(text, "affine %2u-bit g%3u %4s", &bits, &group, scale) == 3 && kind_of(scale, &t.scale_kind)) {
        t.kind = AEG_W_AFFINE;
        t.bits = (uint8_t)bits;
        t.group = group <= 255 ? (uint8_t)group : 0;
    } else if (!kind_of(text, &t.kind)) {
        return aeg_fail(err, AEGIS_E_MODEL, "%s: unknown type '%.60s'", where, text);
    }
    /* back to text: whatever sscanf was lenient about is caught here */
    if (!aeg_weight_type_valid(t) || strcmp(aeg_weight_type_text(again, t), text) != 0)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: unknown type '%.60s'", where, text);
    *out = t;
    return AEGIS_OK;
}

aegis_status aeg_manifest_hash(const json_t *o, const char *where, uint64_t *out, aegis_error *err)
{
    const char *text;
    AEG_TRY(aeg_json_get_string(o, "xxh3", where, &text, err));
    if (strlen(text) != 16 || !parse_hash(text, out))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: 'xxh3' is '%.40s', expected 16 lower-case hexadecimal digits", where, text);
    return AEGIS_OK;
}

aegis_status aeg_manifest_expect(const json_t *o, const char *key, const char *where, uint64_t expected, uint64_t *out,
                                 aegis_error *err)
{
    uint64_t v = 0;
    AEG_TRY(aeg_json_get_u64(o, key, where, &v, err));
    if (v != expected)
        return aeg_fail(err, AEGIS_E_MODEL, "%s: '%s' is %" PRIu64 ", expected %" PRIu64, where, key, v, expected);
    if (out != NULL)
        *out = v;
    return AEGIS_OK;
}

aegis_status aeg_manifest_set_hit_curve(const char *folder, const char *json, aeg_memory *memory, aegis_error *err)
{
    char path[AEG_PATH_MAX];
    char *text = NULL;
    size_t n = 0, packed = 0;
    AEG_TRY(aeg_path_join(path, folder, manifest_name, err));
    AEG_TRY(aeg_file_read(&text, &n, path, AEG_MANIFEST_MAX_BYTES, memory, err));
    aegis_status status = check_text(text, n, &packed, err);
    const size_t room = packed + sizeof curve_member + strlen(json) + sizeof " ,\n " + TAIL_BYTES;
    char *made = status == AEGIS_OK ? aeg_malloc(memory, room) : NULL;
    if (status == AEGIS_OK && made == NULL)
        status = aeg_fail(err, AEGIS_E_MEMORY, "%s: no memory for its %zu bytes", path, room);
    if (status == AEGIS_OK) {
        memcpy(made, text, packed);
        size_t m = packed + (size_t)snprintf(made + packed, room - packed, "%s %s,\n ", curve_member, json);
        const uint64_t hash = XXH3_64bits(made, m);
        m += (size_t)snprintf(made + m, room - m, "%s%016" PRIx64 "%s", hash_member, hash, hash_end);
        status = aeg_file_write(path, made, m, err);
    }
    aeg_free(memory, made);
    aeg_free(memory, text);
    return status;
}
