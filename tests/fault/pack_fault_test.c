/* SPDX-License-Identifier: Apache-2.0 */
/* Packing when the world fails: every allocation, read and write in turn, a full disk, a kill. Nothing half-made is
 * left, and the next pack of the same destination works. System calls are wrapped by the linker. */
#include "support/t.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aegis/pack.h"
#include "base/json.h"

#define TINY AEGIS_SOURCE_DIR "/tests/data/qwen35moe-tiny"

ssize_t __real_pread(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at);
ssize_t __real_pwrite(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_rename(const char *a, const char *b);
int __wrap_rename(const char *a, const char *b);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *ctx);

/* What the n-th call of each kind does from now on; 0: nothing special. */
static struct {
    int read_at, read_errno; /* errno 0: a short read */
    int write_at, write_errno;
    int sync_at, rename_at, kill_at;
    bool no_threads, short_writes;
} plan;
static _Atomic int n_reads, n_writes, n_syncs, n_renames;
static bool hit;

static void start(void)
{
    n_reads = n_writes = n_syncs = n_renames = 0;
    hit = false;
}

ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at)
{
    if (++n_reads == plan.read_at) {
        hit = true;
        errno = plan.read_errno;
        return plan.read_errno != 0 ? -1 : __real_pread(fd, p, n > 4096 ? n / 2 & ~(size_t)4095 : n, at);
    }
    return __real_pread(fd, p, n, at);
}

ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at)
{
    const int call = ++n_writes;
    if (call == plan.kill_at)
        raise(SIGKILL);
    if (call == plan.write_at) {
        hit = true;
        errno = plan.write_errno;
        return -1;
    }
    return __real_pwrite(fd, p, plan.short_writes && n > 4096 ? 4096 : n, at);
}

int __wrap_fsync(int fd)
{
    (void)fd; /* the tests are about order and errors, not about power: far faster without */
    if (++n_syncs != plan.sync_at)
        return 0;
    hit = true;
    errno = EIO;
    return -1;
}

int __wrap_rename(const char *a, const char *b)
{
    if (++n_renames != plan.rename_at)
        return __real_rename(a, b);
    hit = true;
    errno = EIO;
    return -1;
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *ctx)
{
    return plan.no_threads ? EAGAIN : __real_pthread_create(t, a, f, ctx);
}

static char folder[4096], dst[4200], part[4300];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", t_folder());
    snprintf(dst, sizeof dst, "%s/store", folder);
    snprintf(part, sizeof part, "%s.aegis-part", dst);
    return 0;
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

static const char *source = TINY;

static aegis_status pack(aegis_error *err)
{
    /* small buffers: many reads and writes */
    const aegis_pack_options options = { .expert_bits = AEGIS_BITS_KEEP, .memory_bytes = 1800 << 10 };
    start();
    memset(err, 0, sizeof *err);
    return aegis_pack(source, dst, &options, NULL, err);
}

static void remove_store(void)
{
    char command[5000];
    snprintf(command, sizeof command, "rm -r '%s'", dst);
    T_CHECK(system(command) == 0);
}

static void check_store(void)
{
    aegis_error err;
    memset(&plan, 0, sizeof plan);
    T_OK(aegis_store_verify(dst, NULL, NULL, &err), &err);
    T_CHECK(!exists(part));
    remove_store();
}

/* Before each test: whatever a failed one left. */
static int clean(void **state)
{
    (void)state;
    memset(&plan, 0, sizeof plan);
    if (exists(dst))
        remove_store();
    return 0;
}

static void nothing_is_left(aegis_status status, const aegis_error *err, aegis_status want)
{
    if (status != want || err->message[0] == '\0')
        fail_msg("status %d: %s", status, err->message);
    T_CHECK(!exists(dst) && !exists(part));
    T_CHECK(aeg_json_memory()->in_use == 0);
}

static void every_allocation(void **state)
{
    (void)state;
    aegis_error err;
    for (uint64_t n = 1;; n++) {
        t_fault_at(n);
        const aegis_status status = pack(&err);
        const bool fault = t_fault_hit();
        t_fault_at(0);
        if (!fault) {
            T_OK(status, &err);
            T_CHECK(n > 150);
            break;
        }
        nothing_is_left(status, &err, AEGIS_E_MEMORY);
    }
    check_store();
}

static void every_read(void **state)
{
    (void)state;
    aegis_error err;
    for (plan.read_at = 1;; plan.read_at++) {
        plan.read_errno = EIO;
        const aegis_status status = pack(&err);
        if (!hit) {
            T_OK(status, &err);
            T_CHECK(plan.read_at > 50);
            break;
        }
        nothing_is_left(status, &err, AEGIS_E_IO);
    }
    check_store();
}

/* Rows that are gathered (in_proj_qkvz): many small reads. */
static void every_read_of_a_model_with_woven_rows(void **state)
{
    source = AEGIS_MODELS_DIR "/qwen3next-tiny";
    every_read(state);
    source = TINY;
}

static void short_reads_and_writes_are_continued(void **state)
{
    (void)state;
    aegis_error err;
    for (plan.read_at = 1; plan.read_at < 60; plan.read_at += 3) {
        plan.read_errno = 0;
        plan.short_writes = true;
        T_OK(pack(&err), &err);
        const int at = plan.read_at;
        check_store();
        plan.read_at = at;
    }
    memset(&plan, 0, sizeof plan);
}

static void every_write(void **state)
{
    (void)state;
    static const int codes[] = { ENOSPC, EIO, EDQUOT };
    aegis_error err;
    for (plan.write_at = 1;; plan.write_at++) {
        plan.write_errno = codes[plan.write_at % 3];
        const aegis_status status = pack(&err);
        if (!hit) {
            T_OK(status, &err);
            T_CHECK(plan.write_at > 10);
            break;
        }
        T_CHECK(err.os_code == plan.write_errno);
        nothing_is_left(status, &err, AEGIS_E_IO);
    }
    check_store();
}

static void every_sync_and_the_rename(void **state)
{
    (void)state;
    aegis_error err;
    for (plan.sync_at = 1;; plan.sync_at++) {
        const aegis_status status = pack(&err);
        if (!hit) {
            T_OK(status, &err);
            T_CHECK(plan.sync_at > 7);
            break;
        }
        T_CHECK(status == AEGIS_E_IO && !exists(part));
        if (exists(dst)) /* only the parent's sync comes after the rename */
            remove_store();
    }
    check_store();
    plan.rename_at = 1;
    nothing_is_left(pack(&err), &err, AEGIS_E_IO);
    memset(&plan, 0, sizeof plan);
}

static void without_a_thread(void **state)
{
    (void)state;
    aegis_error err;
    plan.no_threads = true;
    T_OK(pack(&err), &err);
    check_store();
}

static void a_killed_packer_leaves_no_store_and_does_no_harm(void **state)
{
    (void)state;
    aegis_error err;
    for (int at = 1; at < 200; at = at * 2 + 1) {
        const pid_t child = fork();
        T_CHECK(child >= 0);
        if (child == 0) {
            plan.kill_at = at;
            _exit(pack(&err) == AEGIS_OK ? 0 : 1);
        }
        int status;
        T_CHECK(waitpid(child, &status, 0) == child);
        if (WIFEXITED(status)) {
            T_CHECK(at > 7 && WEXITSTATUS(status) == 0); /* fewer writes than that */
            check_store();
            break;
        }
        T_CHECK(WTERMSIG(status) == SIGKILL && !exists(dst));
        T_OK(pack(&err), &err);
        check_store();
    }
}

/* What a quota or RLIMIT_FSIZE does: the kernel refuses, the process gets EFBIG. */
static void a_file_size_limit_is_an_error(void **state)
{
    (void)state;
    const pid_t child = fork();
    T_CHECK(child >= 0);
    if (child == 0) {
        const struct rlimit limit = { 1 << 20, 1 << 20 };
        aegis_error err;
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        const aegis_status status = pack(&err);
        _exit(status == AEGIS_E_IO && err.os_code == EFBIG ? 0 : 3);
    }
    int status;
    T_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    T_CHECK(!exists(dst) && !exists(part));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_allocation, clean),
        cmocka_unit_test_setup(every_read, clean),
        cmocka_unit_test_setup(every_read_of_a_model_with_woven_rows, clean),
        cmocka_unit_test_setup(short_reads_and_writes_are_continued, clean),
        cmocka_unit_test_setup(every_write, clean),
        cmocka_unit_test_setup(every_sync_and_the_rename, clean),
        cmocka_unit_test_setup(without_a_thread, clean),
        cmocka_unit_test_setup(a_killed_packer_leaves_no_store_and_does_no_harm, clean),
        cmocka_unit_test_setup(a_file_size_limit_is_an_error, clean),
    };
    return cmocka_run_group_tests_name("pack faults", tests, make_folder, NULL);
}
