/* SPDX-License-Identifier: MIT */
#include "init/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/files.h"
#include "init/process.h"
#include "init/process_tree.h"
#include "init/runner.h"
#include "init/start.h"

enum {
    WORKER_FD = 3,
    PASSES_MAX = 2000, /* a tree that outruns so many kills is left to init */
    PASS_MS = 5,
};

struct state {
    int sock, chld, null;
    bool shared;   /* others live beside us */
    pid_t program; /* 0: it has ended, or none was started */
    bool running;  /* a command has not been reported as done */
    bool exited;   /* its program has ended with `status`, which has not been told */
    int status;
    struct starter starter;
    struct {
        struct init_msg m;
        char bytes[WORKER_DATA_MAX + 1];
    } in;
};

/* A command between the fork and its exec. */
struct start {
    const struct job *job;
    const int *fds; /* in, out, err */
    int error;      /* errno; 0: it became the program */
    enum worker_op op;
};

void worker_say(int sock, struct init_msg *m, const void *bytes, size_t n, int fd)
{
    char out[sizeof *m + WORKER_DATA_MAX];

    m->name_n = (uint32_t)(n < WORKER_DATA_MAX ? n : WORKER_DATA_MAX);
    memcpy(out, m, sizeof *m);
    if (m->name_n > 0)
        memcpy(out + sizeof *m, bytes, m->name_n);
    if (fd_send(sock, out, sizeof *m + m->name_n, &fd, fd >= 0 ? 1 : 0) < 0)
        _exit(0);
}

void worker_done(int sock, int error, enum worker_op op, const char *path)
{
    struct init_msg m = {.verb = WORKER_DONE, .arg = error, .status = (int32_t)op};

    worker_say(sock, &m, path, path ? strlen(path) : 0, -1);
}

/* ---- running a command ---- */

/* Handlers there are none, but ignored and blocked signals would be inherited. */
static void reset_signals(void)
{
    static const int changed[] = {SIGPIPE, SIGINT, SIGTERM, SIGCHLD, SIGXFSZ};
    sigset_t none;

    (void)sigemptyset(&none);
    for (size_t i = 0; i < ARRAY_LEN(changed); i++)
        (void)signal(changed[i], SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child, which may have our memory but its own descriptors, directory, limits and signals.
 * Only the standard descriptors lose their close-on-exec flag. Returns on failure. */
static void become(void *user)
{
    struct start *s = user;
    int r = 0;

    (void)!process_apart();
    reset_signals();
    s->op = WORKER_OP_START;
    for (int i = 0; i < 3 && r == 0; i++)
        r = dup2(s->fds[i], i) < 0 ? -errno : 0;
    if (r == 0)
        r = runner_limit(&s->job->head);
    if (r == 0 && chdir(s->job->cwd) < 0) {
        s->op = WORKER_OP_DIRECTORY;
        r = -errno;
    }
    if (r == 0)
        r = runner_become(s->job);
    s->error = -r;
}

static pid_t start_program(const struct state *w, const struct job *j, const int fds[3],
                           int *ret_error, enum worker_op *ret_op)
{
    struct start s = {.job = j, .fds = fds, .op = WORKER_OP_START};
    pid_t pid = starter_run(&w->starter, become, &s);

    *ret_error = pid < 0 ? errno : s.error;
    *ret_op = s.op;
    if (pid > 0 && s.error) {
        (void)waitpid(pid, NULL, 0);
        return -1;
    }
    return pid;
}

/* The bytes of a job that did not fit into the message. */
static char *map_job(int fd, size_t *ret_n)
{
    struct stat st;
    char *p;

    if (fstat(fd, &st) < 0 || st.st_size <= 0 ||
        st.st_size > JOB_STRINGS_MAX + (off_t)sizeof(struct job_head))
        return NULL;
    p = malloc((size_t)st.st_size);
    if (!p || pread(fd, p, (size_t)st.st_size, 0) != st.st_size) {
        free(p);
        return NULL;
    }
    *ret_n = (size_t)st.st_size;
    return p;
}

static int parse_job(char *bytes, size_t n, struct job *ret)
{
    size_t at = 0;

    *ret = (struct job){0};
    if (n < sizeof ret->head)
        return -EPROTO;
    memcpy(&ret->head, bytes, sizeof ret->head);
    if (ret->head.strings_n != n - sizeof ret->head)
        return -EPROTO;
    ret->strings = bytes + sizeof ret->head;
    return runner_split(ret, &at);
}

/* fds: out, err, then standard input and the job, if they came. */
static void run(struct state *w, size_t n, const int *fds, size_t fds_n)
{
    bool with_in = w->in.m.arg & WORKER_RUN_IN, with_job = w->in.m.arg & WORKER_RUN_JOB;
    struct init_msg m = {.verb = WORKER_STARTED};
    cleanup_free char *large = NULL;
    enum worker_op op = WORKER_OP_START;
    char *bytes = w->in.bytes;
    struct job j = {0};
    int error = EPROTO;

    if (fds_n != 2u + with_in + with_job)
        _exit(1);
    if (with_job) {
        large = map_job(fds[fds_n - 1], &n);
        bytes = large;
    }
    if (bytes && parse_job(bytes, n, &j) == 0) {
        const int streams[] = {with_in ? fds[2] : w->null, fds[0], fds[1]};

        w->program = start_program(w, &j, streams, &error, &op);
    }
    free(j.argv);
    free(j.envp);
    if (w->program <= 0) {
        w->program = 0;
        worker_done(w->sock, error, op, NULL);
        return;
    }
    w->running = true;
    m.pid = w->program;
    worker_say(w->sock, &m, NULL, 0, -1);
}

/* Takes in whoever has died. True when nobody is left. */
static bool reap(struct state *w)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
        if (pid > 0 && pid == w->program) {
            w->program = 0;
            w->exited = true;
            w->status = status;
        }
    return pid < 0 && errno == ECHILD;
}

/* Usually the program is the last to end, and one message tells both ends. */
static void settle(struct state *w)
{
    bool all = reap(w);
    struct init_msg m = {.token = w->exited};

    if (!w->running || w->program || (!all && !w->exited))
        return;
    m.verb = all ? WORKER_DONE : WORKER_EXITED;
    m.size = w->status;
    m.status = all ? WORKER_OP_START : w->status;
    w->exited = false;
    w->running = !all;
    worker_say(w->sock, &m, NULL, 0, -1);
}

/* Until nobody is left. What escapes a pass by forking is found by the next. */
static void end_tree(struct state *w)
{
    for (int pass = 0; !reap(w); pass++) {
        struct pollfd p = {.fd = w->chld, .events = POLLIN};

        if (pass == PASSES_MAX)
            _exit(1); /* init kills whatever comes to it */
        (void)tree_kill(getpid(), NULL, 0);
        if (poll(&p, 1, PASS_MS) > 0)
            signals_take(w->chld);
    }
}

/* ---- requests ---- */

static void command(struct state *w)
{
    int fds[WORKER_FDS];
    size_t fds_n = WORKER_FDS, n;
    ssize_t got = fd_recv(w->sock, &w->in, sizeof w->in.m + WORKER_DATA_MAX, fds, &fds_n);

    if (got < (ssize_t)sizeof w->in.m) {
        end_tree(w);
        _exit(0);
    }
    n = (size_t)got - sizeof w->in.m;
    w->in.bytes[n] = '\0';
    if (w->in.m.verb == WORKER_KILL)
        end_tree(w);
    else if (w->running)
        _exit(1); /* one thing at a time: the daemon knows that */
    else if (w->in.m.verb == WORKER_RUN)
        run(w, n, fds, fds_n);
    else if (!files_serve(w->sock, &w->in.m, w->in.bytes, n, fds_n > 0 ? fds[0] : -1, w->shared))
        _exit(1);
    fd_close_all(fds, fds_n);
    settle(w);
}

__attribute__((noreturn)) static void loop(struct state *w)
{
    struct pollfd p[2] = {
        {.fd = w->sock, .events = POLLIN},
        {.fd = w->chld, .events = POLLIN},
    };

    for (;;) {
        if (poll(p, 2, -1) < 0) {
            if (errno != EINTR)
                _exit(1);
            continue; /* what p says is from the last time */
        }
        if (p[1].revents) {
            signals_take(w->chld);
            settle(w);
        }
        if (p[0].revents)
            command(w);
    }
}

void worker_run(int sock, bool shared)
{
    struct state *w = calloc(1, sizeof *w);

    if (!w || (sock != WORKER_FD && fd_move(sock, WORKER_FD) < 0) ||
        fd_close_from(WORKER_FD + 1) < 0)
        _exit(1);
    process_name("sandbox-worker");
    if (process_adopt() < 0)
        _exit(1);
    w->sock = WORKER_FD;
    w->shared = shared;
    w->chld = signals_open(SIGNALS_ALONE); /* a stray `kill -TERM -1` is not meant for us */
    w->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (w->chld < 0 || w->null < 0 || starter_open(&w->starter) < 0 ||
        (!shared && chdir("/workspace") < 0))
        _exit(1);
    loop(w);
}
