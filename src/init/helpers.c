/* SPDX-License-Identifier: MIT */
#include "init/helpers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/child_signals.h"
#include "init/ending.h"
#include "init/files.h"
#include "init/helper.h"
#include "init/listener.h"
#include "init/order.h"
#include "init/own_process.h"
#include "init/process_tree.h"
#include "init/steps.h"
#include "init/warm.h"
#include "init/watch.h"
#include "wire/wire.h"

enum {
    HELPERS_MAX = 4096,
    PURGE_MS = 5,
    PURGES_MAX = 400, /* a tree that outruns so many kills is ended with all others */
    PURGES_WAIT = 40, /* so long for the number of a helper, which must not be killed */
};

struct state {
    const struct init *conf;
    int ctl, chld;
    struct warm warm;
    unsigned purges; /* passes so far; 0: there is nothing to kill */
    size_t n;
    pid_t pid[HELPERS_MAX];
    uint32_t token[HELPERS_MAX];
};

/* The helper could not be started: says so on its control socket. */
static void refuse(int ctl, int error)
{
    struct init_msg m = {.verb = INIT_FAILED, .arg = error, .status = HELP_OP_START};

    (void)!fd_send(ctl, &m, sizeof m, NULL, 0);
}

static void remember(struct state *s, uint32_t token, pid_t pid)
{
    s->pid[s->n] = pid;
    s->token[s->n++] = token;
}

static void help(struct state *s, uint32_t token, int ctl)
{
    pid_t pid = s->n < HELPERS_MAX ? fork() : -1;

    if (pid == 0) {
        process_spread(s->conf->cpus);
        helper_run(ctl, &(struct helper_conf){.files = files_serve, .shared = s->conf->shared});
    }
    if (pid < 0)
        refuse(ctl, EAGAIN);
    else
        remember(s, token, pid);
}

/* The numbers of helpers that the warm process has made. */
static void meet(struct state *s)
{
    uint32_t token;
    pid_t pid;

    while (s->warm.gate >= 0 && warm_read(&s->warm, &token, &pid))
        remember(s, token, pid);
}

static void end_help(struct state *s, uint32_t token)
{
    if (warm_end(&s->warm, token))
        return;
    for (size_t i = 0; i < s->n; i++)
        if (s->token[i] == token)
            (void)kill(s->pid[i], SIGKILL);
}

static void forget(struct state *s, pid_t pid, int status)
{
    if (pid == s->warm.pid)
        warm_lost(&s->warm);
    for (size_t i = 0; i < s->n; i++)
        if (s->pid[i] == pid) {
            s->pid[i] = s->pid[--s->n];
            s->token[i] = s->token[s->n];
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                s->purges = 1; /* it may have left a tree */
            return;
        }
    s->purges = 1;
}

static void reap(struct state *s)
{
    int status;
    pid_t pid;

    signals_take(s->chld);
    meet(s); /* one that has ended said its number before */
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
        if (pid > 0)
            forget(s, pid, status);
}

static void kill_all(const struct state *s)
{
    if (s->conf->shared)
        (void)tree_kill(getpid(), NULL, 0);
    else
        (void)kill(-1, SIGKILL);
}

/* Kills everything that is not below a helper. A tree that forks faster than this kills is ended by
 * one kill of every process, helpers included. */
static void purge(struct state *s)
{
    meet(s);
    if (s->warm.asked_n > 0 && s->purges < PURGES_WAIT)
        s->purges++;
    else if (tree_kill(getpid(), s->pid, s->n) == 0)
        s->purges = 0;
    else if (++s->purges > PURGES_MAX)
        kill_all(s);
}

static void command(struct state *s)
{
    cleanup_close int fd = -1;
    size_t n = 1;
    struct init_msg m;
    ssize_t got = fd_recv(s->ctl, &m, sizeof m, &fd, &n);

    if (got == -EINTR)
        return;
    if (got != sizeof m)
        _exit(0); /* the daemon closed its end */
    if (n == 0)
        fd = -1;
    if (m.verb == INIT_HELP && fd >= 0 && m.arg != 0 && s->n + s->warm.asked_n < HELPERS_MAX &&
        warm_ask(&s->warm, m.token, fd))
        return;
    if (m.verb == INIT_HELP && fd >= 0)
        help(s, m.token, fd);
    else if (m.verb == INIT_END_HELP)
        end_help(s, m.token);
    else if (m.verb == INIT_LISTEN)
        listener_hand_out(s->ctl, m.arg);
    else if (m.verb == INIT_STOP)
        kill_all(s);
}

__attribute__((noreturn)) static void loop(struct state *s)
{
    struct pollfd p[] = {
        {.fd = s->ctl,      .events = POLLIN},
        {.fd = s->chld,                 .events = POLLIN},
        {.events = POLLIN},
    };

    for (;;) {
        int wait = s->purges ? PURGE_MS : s->conf->memory_max && s->n > 0 ? watch_ms : -1;

        p[2].fd = s->warm.gate;
        if (poll(p, ARRAY_LEN(p), wait) < 0) {
            if (errno != EINTR)
                _exit(1);
            continue; /* revents are those of the last poll */
        }
        if (s->conf->memory_max &&
            watch_exceeded(s->conf->shared ? getpid() : 0, s->conf->memory_max))
            kill_all(s);
        if (p[2].revents)
            meet(s);
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

void helpers_run(const struct init *conf)
{
    struct state s = {.conf = conf, .ctl = conf->ctl, .chld = -1, .warm = {.gate = -1}};
    struct init_msg ready = {.verb = INIT_READY, .arg = writable()};

    process_name("sandbox-init");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* helpers write files, and report one that is too large */
    for (int fd = INIT_FD_JOB; fd < INIT_FD_END; fd++)
        (void)close(fd); /* before the signals are opened, which take one of these numbers */
    s.chld = signals_open(0);
    if (conf->first > 0) {
        s.warm.gate = conf->gate;
        s.warm.pid = conf->first;
        remember(&s, 0, conf->first); /* no token of the daemon's */
    }
    if (s.chld < 0 || fd_send(s.ctl, &ready, sizeof ready, NULL, 0) < 0)
        _exit(1);
    loop(&s);
}
