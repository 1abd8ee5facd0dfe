/* SPDX-License-Identifier: Apache-2.0 */
/* driver - stands in for libFuzzer: feeds files, and all files of folders, to the target once. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    const long n = ftell(f);
    rewind(f);
    /* Exactly n bytes on the heap: the address sanitizer sees a read one byte past them. */
    uint8_t *data = malloc(n > 0 ? (size_t)n : 1);
    if (n < 0 || data == NULL || fread(data, 1, (size_t)n, f) != (size_t)n) {
        perror(path);
        exit(1);
    }
    fclose(f);
    fprintf(stderr, "%s\n", path); /* before the call: a crash names its input */
    LLVMFuzzerTestOneInput(data, (size_t)n);
    free(data);
    return 1;
}

static int run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        exit(1);
    }
    if (!S_ISDIR(st.st_mode))
        return run_file(path);
    struct dirent **names;
    const int n = scandir(path, &names, NULL, alphasort);
    if (n < 0) {
        perror(path);
        exit(1);
    }
    int n_run = 0;
    for (int i = 0; i < n; i++) {
        char inner[4096];
        if (names[i]->d_name[0] != '.' &&
            snprintf(inner, sizeof inner, "%s/%s", path, names[i]->d_name) < (int)sizeof inner)
            n_run += run_path(inner);
        free(names[i]);
    }
    free(names);
    return n_run;
}

int main(int argc, char **argv)
{
    int n_run = 0;
    if (LLVMFuzzerInitialize != NULL)
        LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        n_run += run_path(argv[i]);
    fprintf(stderr, "%d inputs\n", n_run);
    return n_run > 0 ? 0 : 1;
}
