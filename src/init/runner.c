/* SPDX-License-Identifier: MIT */
#include "init/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/os.h"
#include "core/plan.h"
#include "init/fence.h"
#include "init/room_map.h"

/* Blocks of a job: lists and strings. */
enum { BLOCK_STEP = 16, BLOCK_MAX = 192 };

bool runner_has_job(int ms)
{
    struct pollfd p = {.fd = RUNNER_FD, .events = POLLIN};

    return poll(&p, 1, ms) > 0;
}

/* What is freed is what malloc gives out next. */
void runner_touch(size_t n)
{
    char *p = malloc(n);

    if (p)
        explicit_bzero(p, n); /* what nobody reads the compiler would leave out */
    free(p);
}

static void rehearse(void)
{
    for (size_t n = BLOCK_STEP; n <= BLOCK_MAX; n += BLOCK_STEP)
        runner_touch(n);
}

static int read_exact(void *p, size_t n)
{
    ssize_t got = fd_read_full(RUNNER_FD, p, n);

    if (got < 0)
        return (int)got;
    return (size_t)got == n ? 0 : -ENODATA;
}

static bool head_is_sane(const struct job_head *h)
{
    return h->magic == JOB_MAGIC && h->argc >= 1 && h->argc <= JOB_ITEMS_MAX &&
           h->envc <= JOB_ITEMS_MAX && h->filec <= JOB_ITEMS_MAX && h->strings_n >= 1 &&
           h->strings_n <= JOB_STRINGS_MAX;
}

/* The next NUL-terminated string, or NULL when there is none left. */
static char *next_string(const struct job *j, size_t *at)
{
    char *s = j->strings + *at, *end;

    if (*at >= j->head.strings_n)
        return NULL;
    end = memchr(s, '\0', j->head.strings_n - *at);
    if (!end)
        return NULL;
    *at += (size_t)(end - s) + 1;
    return s;
}

static int take_strings(struct job *j, char **list, uint32_t n, size_t *at)
{
    for (uint32_t i = 0; i < n; i++) {
        list[i] = next_string(j, at);
        if (!list[i])
            return -EPROTO;
    }
    list[n] = NULL;
    return 0;
}

int runner_split(struct job *j, size_t *at)
{
    int r;

    if (!head_is_sane(&j->head))
        return -EPROTO;
    j->argv = calloc((size_t)j->head.argc + 1, sizeof *j->argv);
    j->envp = calloc((size_t)j->head.envc + 1, sizeof *j->envp);
    if (!j->argv || !j->envp)
        return -ENOMEM;
    j->cwd = next_string(j, at);
    if (!j->cwd)
        return -EPROTO;
    r = take_strings(j, j->argv, j->head.argc, at);
    return r ? r : take_strings(j, j->envp, j->head.envc, at);
}

static int read_strings(struct job *j, size_t *at)
{
    int r;

    j->strings = malloc(j->head.strings_n);
    if (!j->strings)
        return -ENOMEM;
    r = read_exact(j->strings, j->head.strings_n);
    return r ? r : runner_split(j, at);
}

int runner_strings(struct job *j)
{
    size_t at = 0;

    return read_strings(j, &at);
}

static int lower(int what, rlim_t soft, rlim_t hard)
{
    struct rlimit now, l = {soft, hard};

    if (setrlimit(what, &l) == 0)
        return 0;
    if (errno != EPERM || getrlimit(what, &now) < 0) /* EPERM: it is lower already */
        return -errno;
    if (l.rlim_max > now.rlim_max)
        l.rlim_max = now.rlim_max;
    if (l.rlim_cur > l.rlim_max)
        l.rlim_cur = l.rlim_max;
    return setrlimit(what, &l) < 0 ? -errno : 0;
}

int runner_limit(const struct job_head *h)
{
    int r = h->nofile ? lower(RLIMIT_NOFILE, h->nofile, h->nofile) : 0;

    if (r == 0 && h->nproc)
        r = lower(RLIMIT_NPROC, (rlim_t)h->nproc + 1, (rlim_t)h->nproc + 1);
    if (r == 0 && h->file_max)
        r = lower(RLIMIT_FSIZE, h->file_max, h->file_max);
    if (r == 0 && h->cpu_s) /* first a signal that can be named, a second later the end */
        r = lower(RLIMIT_CPU, h->cpu_s, h->cpu_s + 1);
    return r;
}

static int make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST && errno != EROFS) {
            *slash = '/';
            return -errno;
        }
        *slash = '/';
    }
    return 0;
}

static int write_file(char *path, const struct job_file *f)
{
    cleanup_close int fd = -1;
    char part[16384];
    int r = f->rights & PLAN_THERE ? 0 : make_parents(path);

    if (f->rights & PLAN_THERE)
        return 0;
    if (r < 0 || path[strlen(path) - 1] == '/') /* a directory: its parents are all of it */
        return r;
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
              (f->mode & 0777) | S_IWUSR);
    if (fd < 0)
        return -errno;
    for (uint64_t left = f->size; left > 0 && r == 0;) {
        size_t n = left < sizeof part ? (size_t)left : sizeof part;

        r = read_exact(part, n);
        if (r == 0)
            r = fd_write_all(fd, part, n);
        left -= n;
    }
    return r;
}

/* A run that ends before this has lost nothing: what is not there never came. */
static int tell_placed(const struct job *j)
{
    static const char frame[] = "L00000000";

    return j->head.flags & JOB_TELLS ? fd_write_all(RUNNER_FD, frame, sizeof frame - 1) : 0;
}

static int write_files(const char *room, struct job *j, size_t *at)
{
    cleanup_free struct job_file *files = calloc((size_t)j->head.filec + 1, sizeof *files);
    cleanup_free char **paths = calloc((size_t)j->head.filec + 1, sizeof *paths);
    int r = files && paths ? read_exact(files, j->head.filec * sizeof *files) : -ENOMEM;

    for (uint32_t i = 0; i < j->head.filec && r == 0; i++) {
        paths[i] = next_string(j, at);
        if (room && paths[i])
            paths[i] = room_path(room, paths[i]);
        r = paths[i] && paths[i][0] == '/' ? write_file(paths[i], &files[i]) : -EPROTO;
    }
    if (r == 0 && j->head.flags & JOB_FENCED)
        r = fence_raise(paths, files, j->head.filec);
    return r == 0 ? tell_placed(j) : r;
}

/* One that is not there yet is made, if it may be. */
static int enter_directory(const char *path)
{
    cleanup_free char *copy = NULL;

    if (chdir(path) == 0)
        return 0;
    if (errno != ENOENT)
        return -1;
    copy = strdup(path);
    if (!copy || make_parents(copy) < 0 || mkdir(path, 0755) < 0)
        return -1;
    return chdir(path);
}

int runner_await(struct job *ret)
{
    int r;

    *ret = (struct job){0};
    r = read_exact(&ret->head, sizeof ret->head);
    return r == 0 && !head_is_sane(&ret->head) ? -EPROTO : r;
}

int runner_apply(const char *room, struct job *j, const char **ret_what)
{
    size_t at = 0;
    int r;

    *ret_what = "job";
    r = read_strings(j, &at);
    if (r == 0 && room)
        r = room_map(room, j);
    if (r == 0) {
        *ret_what = "files";
        r = write_files(room, j, &at);
    }
    if (r == 0) {
        *ret_what = "limits";
        r = runner_limit(&j->head);
    }
    if (r == 0 && enter_directory(j->cwd) < 0) {
        *ret_what = "working directory";
        r = -errno;
    }
    return r;
}

int runner_read(const char *room, struct job *ret, const char **ret_what)
{
    int r = runner_await(ret);

    *ret_what = "job";
    return r ? r : runner_apply(room, ret, ret_what);
}

void runner_fail(const char *what, int r)
{
    char json[256], frame[320];
    int n = snprintf(json, sizeof json,
                     "{\"type\":\"StartError\",\"message\":\"%s: %s\",\"stack\":\"\"}", what,
                     strerror(-r));
    int k = snprintf(frame, sizeof frame, "E%08x%s", (unsigned)n, json);

    (void)!write(RUNNER_FD, frame, (size_t)k);
    (void)dprintf(2, "%s: %s\n", what, strerror(-r));
    _exit(r == -ENOENT ? 127 : 126);
}

int runner_become(const struct job *j)
{
    bool named = j->head.flags & JOB_NAMED && j->head.argc > 1;

    (void)execve(j->argv[0], j->argv + named, j->envp);
    return -errno;
}

void runner_take(const char *room, struct job *ret)
{
    const char *what;
    int r = runner_read(room, ret, &what);

    if (r == -ENODATA)
        _exit(0); /* never used */
    if (r < 0)
        runner_fail(what, r);
}

void runner_start(const struct job *j)
{
    if (!(j->head.flags & JOB_CHANNEL) && fcntl(RUNNER_FD, F_SETFD, FD_CLOEXEC) < 0)
        runner_fail("channel", -errno);
    runner_fail("exec", runner_become(j));
}

void runner_exec(void *user)
{
    struct job j;

    if (!runner_has_job(0))
        rehearse();
    runner_take(user, &j);
    runner_start(&j);
}

/* ---- how a warmed interpreter ends ---- */

enum { LINGER_MS = 100 }; /* longer than any reader needs */

/* In memory, an entry is twenty bytes of its directory, and there are always two: itself and the
 * one above. Elsewhere sizes tell nothing. */
enum { EMPTY = 40 };

static bool kept_nothing(void)
{
    struct statfs fs;
    struct stat st;

    return statfs("/workspace", &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
           stat("/workspace", &st) == 0 && st.st_size == EMPTY;
}

static bool tell_daemon(int status, const char *last, size_t last_n)
{
    char frame[] = "Q00000001?"; /* FRAME_LEFT */
    const struct iovec v[] = {
        {.iov_base = (char *)last, .iov_len = last_n          },
        {.iov_base = frame,        .iov_len = sizeof frame - 1},
    };

    frame[sizeof frame - 2] = (char)status;
    return writev(RUNNER_FD, v, ARRAY_LEN(v)) == (ssize_t)(last_n + sizeof frame - 1);
}

static void tell_init(int status)
{
    const union sigval done = {.sival_int = status};

    (void)sigqueue(1, INIT_SIGNAL_DONE, done);
}

/* Bytes that went to a disk are reported by the reaper of the process. */
static bool is_first_and_clean(void)
{
    struct rusage u;

    return getppid() == 1 && getrusage(RUSAGE_SELF, &u) == 0 && !u.ru_inblock && !u.ru_oublock;
}

/*
 * The reader of the answer goes first: what is left takes as long as the run. One that is alone
 * with itself, and in no hurry, need not end at all, but goes with its sandbox: its own end would
 * take the processor on which the daemon is about to wake. If it is not taken at its word, the end
 * of the stream says so. In a rush that would be one more waking for each.
 */
static void linger(bool stays)
{
    struct pollfd p = {.fd = RUNNER_FD, .events = POLLIN};

    if (stays)
        (void)poll(&p, 1, LINGER_MS);
    else
        (void)sched_yield();
}

void runner_leave(uint32_t flags, int status, bool threads, const char *last, size_t last_n)
{
    bool known = is_first_and_clean();

    status &= 255;
    if (known && flags & JOB_LEAVES && kept_nothing() && tell_daemon(status, last, last_n)) {
        linger(!threads && flags & JOB_STAYS);
        _exit(status);
    }
    (void)!fd_write_all(RUNNER_FD, last, last_n);
    if (known) {
        tell_init(status);
        linger(false);
    }
    _exit(status);
}
