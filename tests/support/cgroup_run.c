/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_run - run a command inside a new memory cgroup and report what it made the machine hold.
 *
 *   cgroup_run [-o REPORT] LIMIT_BYTES COMMAND ...     LIMIT_BYTES 0 = no limit, only measure
 *
 * REPORT (default: standard error) gets one JSON object:
 *   {"version":1,"limit":N,"peak":N,"failcnt":N,"oom_kills":N,"max_rss":N,"status":N}
 * peak: memory.max_usage_in_bytes (v1) or memory.peak (v2; 0 where the kernel has no such file);
 * failcnt: memory.failcnt or the "max" line of memory.events, charges that met the limit;
 * max_rss: the command's largest resident set (wait4). Exit: the command's own status (128 + signal),
 * 77 where no cgroup can be made, 2 usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    int version;
    char folder[2048];
} cgroup;

static bool write_text(const char *folder, const char *file, const char *text)
{
    char path[2304];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t n = (ssize_t)strlen(text);
    const bool ok = write(fd, text, (size_t)n) == n;
    close(fd);
    return ok;
}

static bool read_text(const char *folder, const char *file, char *out, size_t size)
{
    char path[2304];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, out, size - 1);
    close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static unsigned long long number_after(const char *text, const char *key)
{
    const char *p = strstr(text, key);
    return p == NULL ? 0 : strtoull(p + strlen(key), NULL, 10);
}

static unsigned long long read_number(const cgroup *g, const char *file)
{
    char text[64];
    return read_text(g->folder, file, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

/* Our own cgroup's path in the hierarchy whose line in /proc/self/cgroup contains `key`. */
static bool own_path(const char *key, char *out, size_t size)
{
    char text[4096], *save = NULL;
    if (!read_text("/proc/self", "cgroup", text, sizeof text))
        return false;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        const char *p = strstr(line, key);
        if (p != NULL && (key[0] == ':' || p == line)) {
            snprintf(out, size, "%s", strcmp(p + strlen(key), "/") == 0 ? "" : p + strlen(key));
            return true;
        }
    }
    return false;
}

static bool make_folder(cgroup *g, int version, const char *parent, const char *limit_file)
{
    char path[2304];
    snprintf(g->folder, sizeof g->folder, "%.1900s/aegis-test-%ld", parent, (long)getpid());
    if (mkdir(g->folder, 0755) != 0)
        return false;
    snprintf(path, sizeof path, "%s/%s", g->folder, limit_file);
    g->version = version;
    if (access(path, W_OK) == 0)
        return true;
    rmdir(g->folder);
    return false;
}

/* v1 first: where both are mounted, v2 has no memory controller. In v2 a cgroup with processes cannot
 * have limited children, so a sibling below the root is the second try. */
static bool make_cgroup(cgroup *g)
{
    char own[1024], parent[2048];
    if (own_path(":memory:", own, sizeof own)) {
        snprintf(parent, sizeof parent, "/sys/fs/cgroup/memory%s", own);
        if (make_folder(g, 1, parent, "memory.limit_in_bytes") ||
            make_folder(g, 1, "/sys/fs/cgroup/memory", "memory.limit_in_bytes"))
            return true;
    }
    if (own_path("0::", own, sizeof own)) {
        snprintf(parent, sizeof parent, "/sys/fs/cgroup%s", own);
        write_text(parent, "cgroup.subtree_control", "+memory");
        if (make_folder(g, 2, parent, "memory.max"))
            return true;
        write_text("/sys/fs/cgroup", "cgroup.subtree_control", "+memory");
        if (make_folder(g, 2, "/sys/fs/cgroup", "memory.max"))
            return true;
    }
    return false;
}

static bool set_limit(const cgroup *g, unsigned long long limit)
{
    char text[32];
    if (limit == 0)
        return true;
    snprintf(text, sizeof text, "%llu", limit);
    /* Swapping would hide a budget that is too small; these files may be absent. */
    write_text(g->folder, g->version == 1 ? "memory.swappiness" : "memory.swap.max", "0");
    return write_text(g->folder, g->version == 1 ? "memory.limit_in_bytes" : "memory.max", text);
}

static void report(FILE *out, const cgroup *g, unsigned long long limit, const struct rusage *use, int status)
{
    char events[1024] = "";
    unsigned long long peak, failcnt, kills;
    if (g->version == 1) {
        peak = read_number(g, "memory.max_usage_in_bytes");
        failcnt = read_number(g, "memory.failcnt");
        read_text(g->folder, "memory.oom_control", events, sizeof events);
        kills = number_after(events, "oom_kill ");
    } else {
        peak = read_number(g, "memory.peak");
        read_text(g->folder, "memory.events", events, sizeof events);
        failcnt = number_after(events, "max ");
        kills = number_after(events, "oom_kill ");
    }
    fprintf(out,
            "{\"version\":%d,\"limit\":%llu,\"peak\":%llu,\"failcnt\":%llu,\"oom_kills\":%llu,"
            "\"max_rss\":%llu,\"status\":%d}\n",
            g->version, limit, peak, failcnt, kills, (unsigned long long)use->ru_maxrss * 1024, status);
}

/* The child joins the cgroup before exec, so that everything the command touches is charged there. */
static _Noreturn void child(const cgroup *g, char **command)
{
    if (!write_text(g->folder, "cgroup.procs", "0"))
        _exit(77);
    execvp(command[0], command);
    fprintf(stderr, "cgroup_run: %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

int main(int argc, char **argv)
{
    const char *report_path = NULL;
    int at = 1;
    if (argc > 2 && strcmp(argv[1], "-o") == 0) {
        report_path = argv[2];
        at = 3;
    }
    char *end = NULL;
    const unsigned long long limit = at < argc ? strtoull(argv[at], &end, 10) : 0;
    if (argc < at + 2 || *end != '\0') {
        fprintf(stderr, "usage: cgroup_run [-o REPORT] LIMIT_BYTES COMMAND ...\n");
        return 2;
    }
    cgroup g;
    if (!make_cgroup(&g)) {
        fprintf(stderr, "cgroup_run: no memory cgroup can be made here (needs root and a memory controller)\n");
        return 77;
    }
    int rc = 77;
    struct rusage use = { 0 };
    if (!set_limit(&g, limit)) {
        fprintf(stderr, "cgroup_run: the limit cannot be set in %s\n", g.folder);
    } else {
        fflush(NULL);
        const pid_t pid = fork();
        if (pid == 0)
            child(&g, argv + at + 1);
        int status = 0;
        while (pid > 0 && wait4(pid, &status, 0, &use) < 0 && errno == EINTR)
            ;
        rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        FILE *out = report_path == NULL ? stderr : fopen(report_path, "w");
        if (pid < 0 || out == NULL) {
            fprintf(stderr, "cgroup_run: %s\n", strerror(errno));
            rc = 1;
        } else {
            report(out, &g, limit, &use, rc);
            if (out != stderr)
                fclose(out);
        }
    }
    /* The kernel empties a cgroup a moment after its last process is reaped. */
    for (int i = 0; i < 100 && rmdir(g.folder) != 0 && errno == EBUSY; i++)
        usleep(10000);
    return rc;
}
