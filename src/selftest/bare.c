/* SPDX-License-Identifier: MIT */
/*
 * The carrier without a jail: programs are started as they are. Only for a machine to be thrown
 * away, of which we are pid 1.
 */
#include "selftest/bare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum { BARE_MS = 20000, KEPT_MAX = 16 << 20, LEAKED_FD = 9, LINGER_MS = 100 };

struct bare {
    pid_t pid; /* owned */
    int out, err;
};

static const char work[] = "/workspace";
#define SCORE "100"

/* A fresh tmpfs is simpler than walking what an attack has left. */
static void clear_workspace(const struct witness *w)
{
    static const char *const places[] = {"/dev/shm", "/tmp", "/var/tmp"};
    char path[PATH_MAX];

    (void)umount2(work, MNT_DETACH);
    (void)mount("scratch", work, "tmpfs", 0, "size=512m,nr_inodes=20000,mode=0755");
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        (void)snprintf(path, sizeof path, "%s/large", places[i]);
        (void)unlink(path);
        (void)snprintf(path, sizeof path, "%s/planted-%s", places[i], witness_mark(w));
        (void)unlink(path);
    }
}

/* ---- starting ---- */

static int put_program(const char *path, const char *p, size_t n)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

    return fd < 0 ? -errno : fd_write_all(fd, p, n);
}

__attribute__((noreturn)) static void become(const struct job *j, const int out[2],
                                             const int err[2])
{
    const char *args[PROBE_ARGS] = {"/usr/bin/python3", "-B", "-c", j->errand.code.p, NULL};
    char room[PROBE_ROOM];
    cleanup_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int leaked;

    (void)setenv("SELFTEST_EVENT", j->errand.event.p ? j->errand.event.p : "{}", 1);
    if (j->errand.attack->program == PROGRAM_PROBE)
        errand_probe_args(&j->errand, "/workspace/probe", room, args);
    if (unshare(CLONE_NEWNS) < 0 || chdir(work) < 0 || dup2(null, 0) < 0 || dup2(out[1], 1) < 0 ||
        dup2(err[1], 2) < 0)
        _exit(126);
    (void)setsid();
    if (j->errand.attack->flags & FLAG_LEAK) {
        leaked = open(witness_dir(j->errand.witness), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)dup2(leaked, LEAKED_FD);
    }
    (void)execv(args[0], (char *const *)(uintptr_t)args);
    _exit(127);
}

static int start(struct carrier *c, struct job *j, struct err *e)
{
    struct bare *b = calloc(1, sizeof *b);
    int out[2], err[2];

    (void)c;
    if (!b || fd_pipe(out) < 0 || fd_pipe(err) < 0)
        return free(b), err_set(e, ERR_HOST, "out of memory or descriptors");
    j->result.out.max = j->result.err.max = KEPT_MAX;
    if (put_program("/workspace/probe", probe_program, probe_program_n) < 0)
        return free(b), err_set(e, ERR_HOST, "the workspace is full");
    b->pid = fork();
    if (b->pid == 0)
        become(j, out, err);
    (void)close(out[1]);
    (void)close(err[1]);
    b->out = out[0];
    b->err = err[0];
    j->carrier = b;
    return b->pid < 0 ? err_sys(e, -errno, "fork") : 0;
}

/* ---- waiting ---- */

static bool read_some(int *fd, struct buf *to)
{
    char part[65536];
    ssize_t n = *fd < 0 ? 0 : read(*fd, part, sizeof part);

    if (n > 0)
        return buf_put(to, part, (size_t)n) == 0 || true;
    fd_close_all(fd, 1);
    return false;
}

/* What was said since it was looked at. */
static bool drained(int *fd, struct buf *to)
{
    struct pollfd p = {.fd = *fd, .events = POLLIN};

    return *fd < 0 || poll(&p, 1, 0) <= 0 || !read_some(fd, to);
}

static void ended(struct job *j, int status)
{
    j->done = true;
    j->result.reason = WIFEXITED(status) ? END_EXIT : END_SIGNAL;
    j->result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A child that holds the pipe open is not waited for: its parent's end is the end. */
static void wait_for(struct carrier *c, struct job *j)
{
    struct bare *b = j->carrier;
    uint64_t deadline = clock_us() + BARE_MS * 1000ull, linger = 0;
    int status = 0;

    (void)c;
    while (!j->holding && (b->out >= 0 || b->err >= 0) && clock_us() < deadline) {
        struct pollfd p[2] = {
            {.fd = b->out, .events = POLLIN},
            {.fd = b->err, .events = POLLIN},
        };

        if (poll(p, 2, 20) > 0) {
            if (p[0].revents)
                (void)read_some(&b->out, &j->result.out);
            if (p[1].revents)
                (void)read_some(&b->err, &j->result.err);
        }
        job_look(j);
        if (!linger && waitpid(b->pid, &status, WNOHANG) == b->pid) {
            ended(j, status);
            linger = clock_us() + LINGER_MS * 1000ull;
        } else if (!linger && job_is_through(j)) {
            linger = clock_us() + LINGER_MS * 1000ull; /* it need not end to have succeeded */
        }
        if (linger && clock_us() > linger)
            break;
    }
}

/* ---- what a careless daemon would do with the results ---- */

static void collect(struct job *j, const char *dir, int depth)
{
    DIR *d = opendir(dir);

    for (struct dirent *at; d && (at = readdir(d));) {
        char path[PATH_MAX];
        cleanup_close int fd = -1;
        struct stat st;

        (void)snprintf(path, sizeof path, "%s/%s", dir, at->d_name);
        if (at->d_name[0] == '.' || stat(path, &st) < 0)
            continue;
        if (S_ISDIR(st.st_mode)) {
            if (depth < 3)
                collect(j, path, depth + 1);
            continue;
        }
        if (S_ISSOCK(st.st_mode))
            (void)snprintf(j->leak, sizeof j->leak, "a socket among the results");
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0)
            job_take_file(j, at->d_name, fd);
    }
    if (d)
        (void)closedir(d);
}

static void end(struct carrier *c, struct job *j)
{
    struct bare *b = j->carrier;

    (void)c;
    if (j->errand.attack->flags & FLAG_COLLECT)
        collect(j, work, 0);
    while (!drained(&b->out, &j->result.out))
        ;
    if (!j->done) {
        (void)kill(b->pid, SIGKILL);
        (void)waitpid(b->pid, NULL, 0);
        j->result.reason = END_CANCELLED;
    }
    fd_close_all(&b->out, 1);
    fd_close_all(&b->err, 1);
    free(b);
    j->carrier = NULL;
}

/* Raising one's own score for the out-of-memory killer takes no privilege; it is raised so that it
 * can be lowered again. */
void bare_prepare(void)
{
    cleanup_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        (void)!write(fd, SCORE, strlen(SCORE));
}

void carrier_bare(struct carrier *c)
{
    c->start = start;
    c->wait = wait_for;
    c->end = end;
}

void bare_sweep(const struct witness *w)
{
    DIR *d = opendir("/proc");

    for (struct dirent *at; d && (at = readdir(d));) {
        pid_t pid = (pid_t)strtol(at->d_name, NULL, 10);

        if (pid > 1 && pid != witness_victim(w))
            (void)kill(pid, SIGKILL);
    }
    if (d)
        (void)closedir(d);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    clear_workspace(w);
}
