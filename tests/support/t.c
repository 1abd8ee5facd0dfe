/* SPDX-License-Identifier: Apache-2.0 */
#include "support/t.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- random numbers: splitmix64, so that a case is one 64-bit seed ---- */
static uint64_t the_state;
static bool seeded;

static uint64_t env_seed(bool *given)
{
    const char *text = getenv("AEGIS_TEST_SEED");
    *given = text != NULL && *text != '\0';
    return *given ? strtoull(text, NULL, 0) : 0;
}

uint64_t t_random(void)
{
    if (!seeded) {
        bool given;
        const uint64_t seed = env_seed(&given);
        the_state = given ? seed : 0x5eed;
        seeded = true;
    }
    the_state += 0x9e3779b97f4a7c15u;
    uint64_t z = the_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t t_below(uint64_t n) { return t_random() % n; }

uint64_t t_between(uint64_t lo, uint64_t hi) { return lo + t_below(hi - lo + 1); }

float t_normal(void)
{
    /* Twelve uniforms: variance 1, no libm, same numbers on every machine. */
    int64_t sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (int64_t)(t_random() >> 40);
    return (float)((double)sum / (double)(1 << 24) - 6.0);
}

void t_fill_random(void *dst, size_t n)
{
    uint8_t *p = dst;
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)t_random();
}

/* ---- properties ---- */
static const char *open_property; /* set while a case runs: a failed assertion leaves it set */
static uint64_t open_seed;

static void report_open_property(void)
{
    if (open_property != NULL)
        fprintf(stderr, "property %s failed; this case again: AEGIS_TEST_SEED=0x%llx\n", open_property,
                (unsigned long long)open_seed);
    open_property = NULL;
}

void t_property(const char *name, uint32_t n, void (*body)(void))
{
    static bool registered;
    if (!registered)
        atexit(report_open_property);
    registered = true;
    report_open_property(); /* of the property before this one */

    bool given;
    uint64_t seed = env_seed(&given);
    if (given)
        n = 1;
    else
        seed = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
    for (uint32_t i = 0; i < n; i++) {
        open_property = name;
        open_seed = seed;
        the_state = seed;
        seeded = true;
        body();
        open_property = NULL;
        seed = t_random();
    }
}

/* ---- checks ---- */
void t_check(bool ok, const char *what, const char *file, int line)
{
    if (!ok) {
        print_error("%s\n", what);
        _fail(file, line);
    }
}

void t_check_ok(aegis_status status, const aegis_error *err, const char *what, const char *file, int line)
{
    if (status != AEGIS_OK) {
        print_error("%s: status %d: %s\n", what, status, err == NULL ? "(no message)" : err->message);
        _fail(file, line);
    }
}

void t_check_fails(aegis_status status, const aegis_error *err, aegis_status want, const char *part,
                   const char *what, const char *file, int line)
{
    if (status != want) {
        print_error("%s: status %d, expected %d (%s)\n", what, status, want,
                    status == AEGIS_OK || err == NULL ? "no message" : err->message);
        _fail(file, line);
    }
    if (err != NULL && strstr(err->message, part) == NULL) {
        print_error("%s: message '%s', expected it to contain '%s'\n", what, err->message, part);
        _fail(file, line);
    }
}

/* ---- files ---- */
enum { MAX_FOLDERS = 256, PATH_BYTES = 4096 };
static char *folders[MAX_FOLDERS];
static size_t n_folders;
static pid_t folder_owner; /* a forked child must not remove its parent's files */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static void remove_folders(void)
{
    if (getpid() != folder_owner)
        return;
    for (size_t i = 0; i < n_folders; i++) {
        nftw(folders[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
        free(folders[i]);
    }
    n_folders = 0;
}

const char *t_folder(void)
{
    if (n_folders == 0 && folder_owner == 0) {
        folder_owner = getpid();
        atexit(remove_folders);
    }
    const char *base = getenv("TMPDIR");
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/aegis-test-XXXXXX", base != NULL && *base != '\0' ? base : "/tmp");
    T_CHECK(n_folders < MAX_FOLDERS);
    T_CHECK(mkdtemp(path) != NULL);
    folders[n_folders] = strdup(path);
    return folders[n_folders++];
}

const char *t_path(const char *folder, const char *name)
{
    static char buffers[8][PATH_BYTES];
    static size_t next;
    char *out = buffers[next++ % 8];
    T_CHECK(snprintf(out, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES);
    return out;
}

void t_write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL)
        fail_msg("%s: cannot be written", path);
    T_CHECK(n == 0 || fwrite(data, 1, n, f) == n);
    T_CHECK(fclose(f) == 0);
}

char *t_read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        fail_msg("%s: cannot be read", path);
    T_CHECK(fseek(f, 0, SEEK_END) == 0);
    const long size = ftell(f);
    T_CHECK(size >= 0);
    rewind(f);
    char *data = malloc((size_t)size + 1);
    T_CHECK(data != NULL && fread(data, 1, (size_t)size, f) == (size_t)size);
    fclose(f);
    data[size] = '\0';
    if (n != NULL)
        *n = (size_t)size;
    return data;
}

void t_free(void *p) { free(p); }

/* ---- memory ---- */
aeg_arena t_arena(uint64_t bytes)
{
    aeg_arena arena;
    aegis_error err;
    T_OK(aeg_arena_map(&arena, "test", bytes, false, &err), &err);
    return arena;
}

void t_no_leak(const aeg_memory *m)
{
    if (m->in_use != 0)
        fail_msg("%s: %llu bytes are still in use", m->name, (unsigned long long)m->in_use);
}

static uint64_t fault_left;
static bool fault_was_hit;

static int fail_nth(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    if (fault_left == 0 || --fault_left != 0)
        return 0;
    fault_was_hit = true;
    return 1;
}

void t_fault_at(uint64_t n)
{
    fault_left = n;
    fault_was_hit = false;
    aeg_memory_set_fault(n == 0 ? NULL : fail_nth, NULL);
}

bool t_fault_hit(void) { return fault_was_hit; }
