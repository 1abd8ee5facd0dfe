/* SPDX-License-Identifier: Apache-2.0 */
#include "model_key.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* FNV-1a, 64 bits: names stores of one user, guards nothing. */
static uint64_t mix(uint64_t hash, const void *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t mix_text(uint64_t hash, const char *text) { return mix(hash, text, strlen(text) + 1); }

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), n_end = strlen(end);
    return n >= n_end && strcmp(name + n - n_end, end) == 0;
}

typedef struct {
    uint32_t n_weights;       /* *.safetensors */
    bool config;              /* config.json   */
    char gguf[NAME_MAX + 1];  /* the first by name that can be a model; "": none */
} folder_facts;

static void note_file(folder_facts *facts, const char *name)
{
    facts->n_weights += ends_with(name, ".safetensors");
    facts->config |= strcmp(name, "config.json") == 0;
    if (ends_with(name, ".gguf") && strncmp(name, "mmproj", 6) != 0 && (facts->gguf[0] == '\0' || strcmp(name, facts->gguf) < 0))
        snprintf(facts->gguf, sizeof facts->gguf, "%s", name);
}

/* Files of a source; order of readdir does not matter, so each file is hashed alone and the hashes are added. */
static aegis_status hash_folder(const char *folder, uint64_t *hash, folder_facts *facts, aegis_error *err)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return aeg_fail_os(err, AEGIS_E_MODEL, errno, "%s", folder);
    uint64_t sum = 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        struct stat st;
        note_file(facts, name);
        if (!ends_with(name, ".safetensors") && !ends_with(name, ".json") && !ends_with(name, ".jinja") &&
            !ends_with(name, ".model"))
            continue;
        if (fstatat(dirfd(dir), name, &st, 0) != 0 || !S_ISREG(st.st_mode))
            continue;
        const int64_t changed[3] = { st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
        sum += mix(mix_text(UINT64_C(0xcbf29ce484222325), name), changed, sizeof changed);
    }
    closedir(dir);
    *hash = mix(*hash, &sum, sizeof sum);
    return AEGIS_OK;
}

/* Name, size and time of a file; false if it cannot be looked at. */
static bool hash_file(const char *path, uint64_t *hash)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    const int64_t facts[3] = { st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
    const char *base = strrchr(path, '/');
    *hash = mix(mix_text(*hash, base == NULL ? path : base + 1), facts, sizeof facts);
    return true;
}

/* A GGUF file, or all parts of "...-00001-of-00003.gguf"; one that is missing is the packer's to complain about. */
static void hash_parts(const char *path, uint64_t *hash)
{
    static const char first[] = "-00001-of-";
    char part[AEG_PATH_MAX];
    const size_t n = strlen(path), suffix = sizeof first - 1 + sizeof "00000.gguf" - 1;
    const unsigned long parts = n > suffix && n < sizeof part && memcmp(path + n - suffix, first, sizeof first - 1) == 0
                                    ? strtoul(path + n - suffix + sizeof first - 1, NULL, 10)
                                    : 1;
    hash_file(path, hash);
    for (unsigned long i = 2; i <= parts; i++) {
        snprintf(part, sizeof part, "%.*s-%05lu%s", (int)(n - suffix), path, i, path + n - suffix + 6);
        hash_file(part, hash);
    }
}

aegis_status aeg_model_key(char key[AEG_SOURCE_KEY], const aeg_cli *cli, const char *source, aegis_error *err)
{
    /* Change the text when stores of the same source get another layout. */
    uint64_t hash = mix_text(UINT64_C(0xcbf29ce484222325), "store 1");
    folder_facts facts = { 0 }, unused = { 0 };
    const int32_t bits[2] = { cli->expert_bits, cli->dense_bits };
    hash = mix(mix_text(hash, source), bits, sizeof bits);
    if (!aeg_is_directory(source))
        hash_parts(source, &hash);
    else
        AEG_TRY(hash_folder(source, &hash, &facts, err));
    if (aeg_is_directory(source) && (facts.n_weights == 0 || !facts.config))
        return aeg_fail(err, AEGIS_E_MODEL, "%s: neither a store (no manifest.json) nor a model folder (no %s); of a GGUF model name "
                        "the file%s%s", cli->model, facts.n_weights == 0 ? "*.safetensors" : "config.json",
                        facts.gguf[0] != '\0' ? ", here " : "", facts.gguf);
    if (cli->tokenizer != NULL)
        AEG_TRY(hash_folder(cli->tokenizer, &hash, &unused, err));

    char name[64];
    const char *base = strrchr(source, '/');
    snprintf(name, sizeof name, "%s", base != NULL && base[1] != '\0' ? base + 1 : "model");
    for (char *p = name; *p != '\0'; p++)
        if (!((*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || strchr("._-", *p)))
            *p = '_';
    if (name[0] == '.' || name[0] == '-')
        name[0] = '_';
    snprintf(key, AEG_SOURCE_KEY, "%s-%016" PRIx64, name, hash);
    return AEGIS_OK;
}
