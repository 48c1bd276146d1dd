/* SPDX-License-Identifier: MIT */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/os.h"
#include "core/plan.h"
#include "init/child_signals.h"
#include "init/ending.h"
#include "init/first.h"
#include "init/helpers.h"
#include "init/listener.h"
#include "init/own_process.h"
#include "init/put.h"
#include "init/scan.h"
#include "init/steps.h"
#include "init/watch.h"
#include "wire/wire.h"

enum {
    NUMBERS_ONCE = 300, /* process numbers below are given once: then the kernel begins at 300 */
};

struct state {
    const struct init *conf;
    int ctl, signals;
    int workspace; /* directory */
    int64_t oom;   /* times it had to kill */
    bool ended;    /* EXITED was sent */
    struct scan_birth born;
    struct scan_dirs dirs; /* of them */
    pid_t first;           /* the program */
};

static void tell(const struct state *s, const struct init_msg *m)
{
    if (fd_send(s->ctl, m, sizeof *m, NULL, 0) < 0)
        _exit(0); /* nobody is left to report to */
}

static void tell_failure(const struct state *s, const char *what, int error)
{
    if (steps_tell(s->ctl, what, -error) < 0)
        _exit(0);
}

/* ---- starting ---- */

/* If it is gone already, the loop will see. */
static int open_gate(int gate)
{
    static const char open = 1;
    int r = write(gate, &open, sizeof open) < 0 && errno != EPIPE ? -errno : 0;

    (void)close(gate);
    return r;
}

/* The descriptors are taken. */
static void spawn(struct state *s, int fds[INIT_FDS_SPAWN])
{
    int error;

    s->first = fork();
    if (s->first == 0)
        first_become(s->conf->host, fds);
    error = errno;
    fd_close_all(fds, INIT_FDS_SPAWN);
    if (s->first < 0)
        tell_failure(s, "start a process", error);
}

/* ---- ending ---- */

/* Of what was reaped. */
static void fill_usage(struct init_msg *m)
{
    struct rusage u;

    if (getrusage(RUSAGE_CHILDREN, &u) < 0)
        return;
    m->cpu_us = (int64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec +
                u.ru_stime.tv_usec;
    m->maxrss = (int64_t)u.ru_maxrss * 1024;
    m->io_read = (int64_t)u.ru_inblock * 512;
    m->io_write = (int64_t)u.ru_oublock * 512;
}

static void ended(struct state *s, int status)
{
    struct init_msg m = {.verb = INIT_EXITED, .status = status};

    if (s->ended)
        return;
    s->ended = true;
    m.oom = s->oom;
    ending_wait(s->conf, s->signals, s->first, NULL);
    fill_usage(&m);
    m.arg = scan_entries(s->workspace);
    tell(s, &m);
}

/* The number that was given out last in our namespace, where they are given out one after the
 * other, to threads even; -1: not known. */
static long newest_number(void)
{
    cleanup_close int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    char text[128] = "";
    const char *last;

    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return -1;
    last = strrchr(text, ' ');
    return last ? strtol(last, NULL, 10) : -1;
}

/* How many threads a process has: the kernel tells their number as links of the directory that
 * lists them; -1: not known. */
static long threads_of(pid_t pid)
{
    char path[32];
    struct stat st;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return stat(path, &st) == 0 && st.st_nlink > 2 ? (long)st.st_nlink - 2 : -1;
}

/* Has no number been given to anybody but the threads of the first process, which were counted
 * before? Numbers rise by one, and no thread or process that ever was can be missing from them, as
 * long as they have not begun again. */
static bool alone_with_first(const struct state *s, long threads)
{
    long newest = newest_number();

    return threads > 0 && newest < NUMBERS_ONCE && newest == s->first + threads - 1;
}

/* kill(-1) looks at every process of the host, which may be many, and the answer waits for it. A
 * fork that the signal does not stop has its number by then. */
static void kill_alone(const struct state *s, long threads)
{
    (void)kill(s->first, SIGKILL);
    if (!alone_with_first(s, threads))
        (void)kill(-1, SIGKILL);
}

/*
 * The first process says that it is done and about to leave. If there has never been another one,
 * nothing is gained by waiting until its memory is gone. That, and how many threads it has, is not
 * for it to say: the kernel is asked. Saying so and going on regardless ends with the same signal
 * as always.
 */
static void said_done(struct state *s, int value)
{
    struct init_msg m = init_left(value);
    long threads = threads_of(s->first);

    if (s->ended || !s->conf->accounted || !alone_with_first(s, threads))
        return; /* its exit will tell */
    s->ended = true;
    kill_alone(s, threads);
    m.arg = scan_entries(s->workspace);
    tell(s, &m);
}

static void on_signal(struct state *s)
{
    int status, value;
    pid_t pid;

    while (signals_next(s->signals, s->first, &value))
        said_done(s, value);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
        if (pid > 0 && pid == s->first)
            ended(s, status);
}

/* ---- commands ---- */

static void stop(struct state *s)
{
    int status = SIGKILL;

    ending_wait(s->conf, s->signals, s->first, &status);
    ended(s, status);
}

/* A soft interrupt: SIGINT as a terminal would send it. The group is that of the program alone. */
static void signal_first(struct state *s, int64_t number)
{
    struct init_msg m = {.verb = INIT_SIGNALLED};

    if (!s->ended && s->first > 1 && number == SIGINT)
        (void)kill(-s->first, SIGINT);
    tell(s, &m);
}

static void put(const struct state *s, const struct init_msg *m, const char *name, int fd)
{
    struct init_msg done = {.verb = INIT_PUT_DONE};

    done.arg = -put_file(s->workspace, name, fd, m->arg, m->size);
    tell(s, &done);
}

static void command(struct state *s)
{
    struct {
        struct init_msg m;
        char name[INIT_NAME_MAX + 1];
    } in;
    const struct init_msg *m = &in.m;
    cleanup_close int fd = -1;
    size_t fds_n = 1;
    ssize_t got = fd_recv(s->ctl, &in, sizeof *m + INIT_NAME_MAX, &fd, &fds_n);

    if (fds_n == 0)
        fd = -1;
    if (got < (ssize_t)sizeof *m || m->name_n != (size_t)got - sizeof *m)
        _exit(0); /* the daemon let go */
    in.name[m->name_n] = '\0';
    if (m->verb == INIT_STOP)
        stop(s);
    else if (m->verb == INIT_SCAN)
        scan_workspace(&(struct scan_order){s->workspace, s->ctl, m->arg != 0, s->born, &s->dirs});
    else if (m->verb == INIT_LISTEN)
        listener_hand_out(s->ctl, m->arg);
    else if (m->verb == INIT_SIGNAL)
        signal_first(s, m->arg);
    else if (m->verb == INIT_PUT && fd >= 0)
        put(s, m, in.name, fd);
}

static void loop(struct state *s)
{
    struct pollfd p[] = {
        {.fd = s->ctl,     .events = POLLIN},
        {.fd = s->signals, .events = POLLIN},
    };

    for (;;) {
        int r = poll(p, ARRAY_LEN(p), s->conf->memory_max && !s->ended ? watch_ms : -1);

        if (r < 0 && errno != EINTR)
            return;
        if (r < 0)
            continue; /* what p says is from the last time */
        if (p[0].revents & POLLHUP)
            _exit(0); /* the daemon let go */
        if (s->conf->memory_max && !s->ended &&
            watch_exceeded(s->conf->shared ? getpid() : 0, s->conf->memory_max)) {
            s->oom++;
            stop(s);
        }
        if (p[1].revents)
            on_signal(s);
        if (p[0].revents)
            command(s);
    }
}

void init_run(const struct init *conf)
{
    struct state s = {.conf = conf, .ctl = conf->ctl, .signals = -1, .workspace = -1};
    struct init_msg ready = {.verb = INIT_READY};
    int first[INIT_FDS_SPAWN] = {INIT_FD_JOB, INIT_FD_IN, INIT_FD_OUT, INIT_FD_ERR};

    if (conf->persistent)
        helpers_run(conf);
    process_name("sandbox-init");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that is too large is an error, not our end */
    s.signals = signals_open(SIGNALS_DONE);
    if (s.signals < 0) { /* the end of the program would never be seen */
        tell_failure(&s, "signals of init", -s.signals);
        _exit(1);
    }
    s.workspace =
        conf->tree >= 0 ? conf->tree : open("/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (conf->lazy) {
        scan_note(s.workspace, &s.dirs);
        s.born = scan_birth_now();
    }
    s.first = conf->first;
    if (s.first > 0) {
        int r = open_gate(conf->gate);

        if (r < 0) {
            tell_failure(&s, "gate", -r);
            _exit(1);
        }
    } else {
        process_spread(conf->cpus);
        spawn(&s, first);
    }
    tell(&s, &ready);
    on_signal(&s); /* one that was there before us may have ended before us */
    loop(&s);
    _exit(1);
}
