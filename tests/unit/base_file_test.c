/* SPDX-License-Identifier: Apache-2.0 */
#include "support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    T_MEMORY(m);
    aegis_error err;
    const char *path = t_path(t_folder(), "a");
    uint8_t data[10000];
    t_fill_random(data, sizeof data);
    T_OK(aeg_file_write(path, data, sizeof data, &err), &err);
    char *out = NULL;
    size_t n = 0;
    T_OK(aeg_file_read(&out, &n, path, sizeof data, &m, &err), &err);
    assert_int_equal(n, sizeof data);
    assert_memory_equal(out, data, n);
    assert_int_equal(out[n], '\0');
    aeg_free(&m, out);

    T_OK(aeg_file_write(path, "", 0, &err), &err);
    T_OK(aeg_file_read(&out, &n, path, 0, &m, &err), &err);
    assert_int_equal(n, 0);
    assert_int_equal(out[0], '\0');
    aeg_free(&m, out);
    t_no_leak(&m);
}

static void limits_and_odd_files_are_refused(void **state)
{
    (void)state;
    T_MEMORY(m);
    aegis_error err;
    char *out = NULL;
    size_t n = 77;
    const char *folder = t_folder(), *path = t_path(folder, "a");
    t_write_file(path, "12345", 5);
    T_FAILS(aeg_file_read(&out, &n, path, 4, &m, &err), &err, AEGIS_E_MODEL, "5 bytes, expected at most 4");
    T_FAILS(aeg_file_read(&out, &n, t_path(folder, "b"), 9, &m, &err), &err, AEGIS_E_MODEL, "/b: No such file");
    assert_int_equal(err.os_code, ENOENT);
    T_FAILS(aeg_file_read(&out, &n, folder, 9, &m, &err), &err, AEGIS_E_MODEL, "not a regular file");
    T_FAILS(aeg_file_read(&out, &n, "/dev/zero", 9, &m, &err), &err, AEGIS_E_MODEL, "not a regular file");
    assert_null(out);
    assert_int_equal(n, 77);
    aeg_memory small = { .name = "small", .ceiling = 8 };
    T_FAILS(aeg_file_read(&out, &n, path, 9, &small, &err), &err, AEGIS_E_MEMORY, "no memory");
    t_no_leak(&m);
    t_no_leak(&small);
}

/* A named pipe without a writer would make open() wait for ever. */
static void a_pipe_does_not_hang(void **state)
{
    (void)state;
    T_MEMORY(m);
    aegis_error err;
    char *out = NULL;
    size_t n;
    const char *path = t_path(t_folder(), "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(5);
    T_FAILS(aeg_file_read(&out, &n, path, 9, &m, &err), &err, AEGIS_E_MODEL, "not a regular file");
    alarm(0);
}

static void a_short_file_is_an_io_error(void **state)
{
    (void)state;
    aegis_error err;
    char buf[16];
    const char *path = t_path(t_folder(), "a");
    t_write_file(path, "0123456789", 10);
    const int fd = open(path, O_RDONLY);
    T_OK(aeg_file_pread(fd, buf, 4, 6, "a", &err), &err);
    assert_memory_equal(buf, "6789", 4);
    T_FAILS(aeg_file_pread(fd, buf, 5, 6, "a", &err), &err, AEGIS_E_IO, "a: file ends at byte 10, expected 5 bytes at offset 6");
    T_FAILS(aeg_file_pread(fd, buf, 1, 100, "a", &err), &err, AEGIS_E_IO, "file ends");
    close(fd);
    T_FAILS(aeg_file_pread(fd, buf, 1, 0, "a", &err), &err, AEGIS_E_IO, "reading 1 bytes at offset 0");
    assert_int_equal(err.os_code, EBADF);
}

static void a_failed_write_leaves_the_old_file_and_no_rubbish(void **state)
{
    (void)state;
    aegis_error err;
    const char *folder = t_folder(), *target = t_path(folder, "taken");
    T_FAILS(aeg_file_write(t_path(folder, "no/such/x"), "x", 1, &err), &err, AEGIS_E_IO, "no/such/x");
    assert_int_equal(mkdir(target, 0755), 0);
    T_FAILS(aeg_file_write(target, "x", 1, &err), &err, AEGIS_E_IO, "rename");
    assert_int_equal(rmdir(target), 0);
    assert_int_equal(rmdir(folder), 0); /* empty: the temporary file is gone */
    T_FAILS(aeg_file_write("/dev/full/x", "x", 1, &err), &err, AEGIS_E_IO, "/dev/full");
}

static void folders_and_paths(void **state)
{
    (void)state;
    aegis_error err;
    const char *folder = t_folder(), *deep = t_path(folder, "a/b/c"), *file = t_path(folder, "f");
    T_OK(aeg_make_dirs(deep, &err), &err);
    T_OK(aeg_make_dirs(deep, &err), &err);
    assert_true(aeg_is_directory(deep));
    t_write_file(file, "x", 1);
    assert_true(aeg_file_exists(file) && !aeg_is_directory(file));
    assert_false(aeg_file_exists(t_path(folder, "none")));
    T_FAILS(aeg_make_dirs(file, &err), &err, AEGIS_E_IO, "not a folder");
    T_FAILS(aeg_make_dirs(t_path(folder, "f/x"), &err), &err, AEGIS_E_IO, "creating folder");
    T_FAILS(aeg_make_dirs("", &err), &err, AEGIS_E_USAGE, "path of 0 bytes");

    char out[AEG_PATH_MAX], name[AEG_PATH_MAX];
    T_OK(aeg_path_join(out, "a", "b", &err), &err);
    assert_string_equal(out, "a/b");
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    T_FAILS(aeg_path_join(out, "a", name, &err), &err, AEGIS_E_USAGE, "longer than 4095");
    name[AEG_PATH_MAX - 3] = '\0'; /* "a/" and 4093 bytes: the longest that fits */
    T_OK(aeg_path_join(out, "a", name, &err), &err);
    assert_int_equal(strlen(out), AEG_PATH_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(limits_and_odd_files_are_refused),
        cmocka_unit_test(a_pipe_does_not_hang),
        cmocka_unit_test(a_short_file_is_an_io_error),
        cmocka_unit_test(a_failed_write_leaves_the_old_file_and_no_rubbish),
        cmocka_unit_test(folders_and_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
