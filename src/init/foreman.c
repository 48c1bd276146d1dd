/* SPDX-License-Identifier: MIT */
#include "init/foreman.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/ending.h"
#include "init/process.h"
#include "init/process_tree.h"
#include "init/steps.h"
#include "init/watch.h"
#include "init/worker.h"
#include "wire/wire.h"

enum {
    WORKERS_MAX = 4096,
    PURGE_MS = 5,
    PURGES_MAX = 400, /* what outruns so many kills takes everybody along */
};

struct state {
    const struct init *conf;
    int ctl, chld;
    unsigned purges; /* 0: nobody is left to be killed */
    size_t n;
    pid_t pid[WORKERS_MAX];
    uint32_t token[WORKERS_MAX];
};

/* The descriptor is taken. */
static void hire(struct state *s, uint32_t token, int fd)
{
    pid_t pid = s->n < WORKERS_MAX ? fork() : -1;

    if (pid == 0) {
        process_spread(s->conf->cpus);
        worker_run(fd, s->conf->shared);
    }
    (void)close(fd); /* after a failure the daemon sees the end of the other one */
    if (pid < 0)
        return;
    s->pid[s->n] = pid;
    s->token[s->n++] = token;
}

static void fire(struct state *s, uint32_t token)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->token[i] == token)
            (void)kill(s->pid[i], SIGKILL);
}

static void forget(struct state *s, pid_t pid)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->pid[i] == pid) {
            s->pid[i] = s->pid[--s->n];
            s->token[i] = s->token[s->n];
            s->purges = 1; /* it may have left a tree */
            return;
        }
}

static void reap(struct state *s)
{
    pid_t pid;

    signals_take(s->chld);
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
        forget(s, pid);
}

/* Everybody inside. */
static void kill_all(const struct state *s)
{
    if (s->conf->shared)
        (void)tree_kill(getpid(), NULL, 0);
    else
        (void)kill(-1, SIGKILL);
}

/* Ends whatever came to us. A tree that forks faster than it is killed meets a kill that cannot
 * miss, which costs the innocent theirs. */
static void purge(struct state *s)
{
    if (tree_kill(getpid(), s->pid, s->n) == 0)
        s->purges = 0;
    else if (++s->purges > PURGES_MAX)
        kill_all(s);
}

static void command(struct state *s)
{
    size_t n = 1;
    int fd = -1;
    struct init_msg m;
    ssize_t got = fd_recv(s->ctl, &m, sizeof m, &fd, &n);

    if (got != sizeof m)
        _exit(0); /* the daemon let go */
    if (m.verb == INIT_HIRE && n == 1)
        hire(s, m.token, take_fd(&fd));
    else if (m.verb == INIT_FIRE)
        fire(s, m.token);
    else if (m.verb == INIT_STOP)
        kill_all(s);
    if (n == 1)
        closep(&fd);
}

__attribute__((noreturn)) static void loop(struct state *s)
{
    struct pollfd p[] = {
        {.fd = s->ctl,  .events = POLLIN},
        {.fd = s->chld, .events = POLLIN},
    };

    for (;;) {
        int wait = s->purges ? PURGE_MS : s->conf->memory_max && s->n > 0 ? watch_ms : -1;

        if (poll(p, ARRAY_LEN(p), wait) < 0) {
            if (errno != EINTR)
                _exit(1);
            continue; /* what p says is from the last time */
        }
        if (s->conf->memory_max &&
            watch_exceeded(s->conf->shared ? getpid() : 0, s->conf->memory_max))
            kill_all(s);
        if (p[1].revents)
            reap(s);
        if (p[0].revents)
            command(s);
        if (s->purges)
            purge(s);
    }
}

/* Asked as the sandbox's user. */
static int writable(void)
{
    return (access("/usr", W_OK) == 0 ? OVERLAY_USR : 0) |
           (access("/usr/local/bin", W_OK) == 0 ? OVERLAY_LOCAL : 0) |
           (access("/etc", W_OK) == 0 ? OVERLAY_ETC : 0);
}

void foreman_run(const struct init *conf)
{
    struct state s = {.conf = conf, .ctl = conf->ctl, .chld = -1};
    struct init_msg ready = {.verb = INIT_READY, .arg = writable()};

    process_name("sandbox-init");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* workers write files, and say if one is too large */
    s.chld = signals_open(0);
    for (int fd = INIT_FD_JOB; fd < INIT_FD_END; fd++)
        (void)close(fd);
    if (s.chld < 0 || fd_send(s.ctl, &ready, sizeof ready, NULL, 0) < 0)
        _exit(1);
    loop(&s);
}
