/* SPDX-License-Identifier: MIT */
#include "init/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/child_signals.h"
#include "init/own_process.h"
#include "init/process_tree.h"
#include "init/runner.h"
#include "init/start.h"
#include "init/terminal.h"

enum {
    FD_CTL = RUNNER_FD + 1, /* the job is RUNNER_FD */
    FD_IN,
    FD_OUT,
    FD_ERR,
    FD_END,
    FD_CHLD = 63,
    FD_APART,          /* and the next three: free */
    PASSES_MAX = 2000, /* a tree that outruns so many kills is left to pid 1 */
    PASS_MS = 5,
};

struct state {
    int ctl; /* -1: the daemon has closed its end */
    int chld;
    struct rusage before; /* of programs that it ran before */
    pid_t program;
    bool exited; /* the program has, with `status` */
    bool told;   /* MAIN_EXITED was sent */
    int status;
    struct terminal *terminal; /* owned; NULL: none */
};

/* What programs are started with. */
struct with {
    const struct helper_conf *conf;
    struct starter starter;
};

/* A program between the fork and its exec. */
struct start {
    const struct job *job;
    int slave; /* of its terminal; -1: none */
    int error; /* errno; 0: it became the program */
    enum help_op op;
};

void helper_say(int sock, struct init_msg *m, const void *bytes, size_t n, int fd)
{
    char out[sizeof *m + HELP_DATA_MAX];

    m->name_n = (uint32_t)(n < HELP_DATA_MAX ? n : HELP_DATA_MAX);
    memcpy(out, m, sizeof *m);
    if (m->name_n > 0)
        memcpy(out + sizeof *m, bytes, m->name_n);
    if (fd_send(sock, out, sizeof *m + m->name_n, &fd, fd >= 0 ? 1 : 0) < 0)
        _exit(0);
}

void helper_done(int sock, int error, enum help_op op, const char *path)
{
    struct init_msg m = {.verb = HELP_DONE, .arg = error, .status = (int32_t)op};

    helper_say(sock, &m, path, path ? strlen(path) : 0, -1);
}

/* ---- starting a program ---- */

/* Ignored and blocked signals would be inherited. */
static void reset_signals(void)
{
    static const int changed[] = {SIGPIPE, SIGINT, SIGTERM, SIGCHLD, SIGXFSZ};
    sigset_t none;

    (void)sigemptyset(&none);
    for (size_t i = 0; i < ARRAY_LEN(changed); i++)
        (void)signal(changed[i], SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child, which shares the helper's memory but has its own descriptors, directory, limits and
 * signals. Only the standard descriptors, and that of the job if the program is to have it, lose
 * their close-on-exec flag. Returns on failure. */
static int take_streams(const struct job *j, int slave)
{
    int r = 0;

    (void)!process_apart();
    reset_signals();
    if (slave >= 0)
        r = terminal_become(slave);
    for (int i = 0; i < 3 && r == 0 && slave < 0; i++)
        r = dup2(FD_IN + i, i) < 0 ? -errno : 0;
    if (r == 0 && j->head.flags & JOB_CHANNEL)
        r = fcntl(RUNNER_FD, F_SETFD, 0) < 0 ? -errno : 0;
    return r ? r : runner_limit(&j->head);
}

static void become(void *user)
{
    struct start *s = user;
    int r = take_streams(s->job, s->slave);

    s->op = HELP_OP_START;
    if (r == 0 && chdir(s->job->cwd) < 0) {
        s->op = HELP_OP_DIRECTORY;
        r = -errno;
    }
    if (r == 0)
        r = runner_become(s->job);
    s->error = -r;
}

/* The program has a copy of our memory. The directory is entered here, where its failure can be
 * told; a helper of this kind runs one program. */
static pid_t fork_copy(struct start *s, const struct helper_host *host)
{
    pid_t pid;

    if (chdir(s->job->cwd) < 0) {
        s->op = HELP_OP_DIRECTORY;
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        if (take_streams(s->job, s->slave) < 0 || fd_close_from(RUNNER_FD + 1) < 0 ||
            process_visible(true) < 0)
            _exit(126);
        host->run(host->user, s->job);
        _exit(127);
    }
    return pid;
}

static pid_t start_job(struct start *s, const struct with *with, const struct job *j)
{
    pid_t pid;

    s->job = j;
    pid =
        with->conf->host ? fork_copy(s, with->conf->host) : starter_run(&with->starter, become, s);
    if (pid < 0)
        s->error = errno;
    if (pid > 0 && s->error) {
        (void)waitpid(pid, NULL, 0);
        return -1;
    }
    return pid;
}

static pid_t start_program(struct start *s, const struct with *with)
{
    struct job j;
    pid_t pid = -1;
    int r = runner_await(&j);

    if (r == 0)
        r = runner_strings(&j);
    s->error = -r;
    if (r == 0)
        pid = start_job(s, with, &j);
    free(j.argv);
    free(j.envp);
    free(j.strings);
    return pid;
}

static void fail(int ctl, const struct start *s)
{
    struct init_msg m = {.verb = INIT_FAILED, .arg = s->error, .status = (int32_t)s->op};
    char words[128];
    int n = snprintf(words, sizeof words, "%s: %s",
                     s->op == HELP_OP_DIRECTORY  ? "working directory"
                     : s->op == HELP_OP_TERMINAL ? "terminal"
                                                 : "start of the program",
                     strerror(s->error));

    helper_say(ctl, &m, words, (size_t)n, -1);
    _exit(0);
}

/* ---- while it runs ---- */

/* Reaps. True when no child is left. */
static bool reap(struct state *h)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
        if (pid > 0 && pid == h->program) {
            h->exited = true;
            h->status = status;
        }
    return pid < 0 && errno == ECHILD;
}

static int64_t cpu_us(const struct rusage *u)
{
    return (int64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 + u->ru_utime.tv_usec +
           u->ru_stime.tv_usec;
}

static void fill_usage(const struct state *h, struct init_msg *m)
{
    struct rusage u;

    m->maxrss = -1; /* it would be that of the largest program so far */
    if (getrusage(RUSAGE_CHILDREN, &u) < 0)
        return;
    m->cpu_us = cpu_us(&u) - cpu_us(&h->before);
    m->io_read = (int64_t)(u.ru_inblock - h->before.ru_inblock) * 512;
    m->io_write = (int64_t)(u.ru_oublock - h->before.ru_oublock) * 512;
}

/* The daemon may have closed its end: the tree lives on all the same. */
static void tell(const struct state *h, enum init_verb verb)
{
    struct init_msg m = {.verb = verb, .status = h->status, .pid = h->program};

    if (verb == INIT_EXITED)
        fill_usage(h, &m);
    if (h->ctl >= 0)
        (void)!fd_send(h->ctl, &m, sizeof m, NULL, 0);
}

/* What the program wrote to its terminal is there before its end is told. */
static bool terminal_waits(struct state *h)
{
    if (!h->terminal)
        return false;
    if (h->exited)
        terminal_end(h->terminal);
    if (h->ctl >= 0 && !terminal_is_over(h->terminal))
        return true;
    terminal_close(h->terminal);
    h->terminal = NULL;
    return false;
}

/* Usually the program is the last to end, and one message reports both. True: nothing is left. */
static bool settle(struct state *h)
{
    bool all = reap(h);

    if (h->exited && terminal_waits(h))
        return false;
    if (all) {
        tell(h, INIT_EXITED);
    } else if (h->exited && !h->told) {
        h->told = true;
        tell(h, INIT_MAIN_EXITED);
    }
    return all;
}

/* Until no child is left. A process that escapes one pass by forking is found by the next. */
static void end_tree(struct state *h)
{
    for (int pass = 0; !reap(h); pass++) {
        struct pollfd p = {.fd = h->chld, .events = POLLIN};

        if (pass == PASSES_MAX)
            _exit(1); /* pid 1 kills what is left */
        (void)tree_kill(getpid(), NULL, 0);
        if (poll(&p, 1, PASS_MS) > 0)
            signals_take(h->chld);
    }
    if (h->terminal)
        terminal_end(h->terminal);
    terminal_close(h->terminal); /* nobody waits for what had no room */
    h->terminal = NULL;
}

static void send_signal(const struct state *h, int64_t number, bool alone)
{
    if (!h->exited && number > 0 && number < NSIG)
        (void)kill(alone ? h->program : -h->program, (int)number);
    tell(h, INIT_SIGNALLED);
}

static void command(struct state *h)
{
    struct init_msg m;
    ssize_t got = fd_recv(h->ctl, &m, sizeof m, NULL, NULL);

    if (got == -EINTR || got == -EAGAIN)
        return;
    if (got != sizeof m)
        h->ctl = -1; /* it stays closed in poll(); the exit closes the descriptor */
    else if (m.verb == INIT_STOP)
        end_tree(h);
    else if (m.verb == INIT_SIGNAL)
        send_signal(h, m.arg, m.status != 0);
    else if (m.verb == HELP_RESIZE && h->terminal)
        terminal_resize(h->terminal, (uint32_t)m.size);
}

/* The terminal takes two of the program's descriptors. */
static void open_terminal(struct state *h, struct start *s, uint32_t size)
{
    int in = fcntl(FD_IN, F_DUPFD_CLOEXEC, FD_APART),
        out = fcntl(FD_OUT, F_DUPFD_CLOEXEC, FD_APART);
    int r = in < 0 || out < 0 ? -errno : terminal_open(size, in, out, &h->terminal, &s->slave);

    if (r == 0)
        return;
    s->op = HELP_OP_TERMINAL;
    s->error = -r;
    fail(h->ctl, s);
}

/* Until something happens; then what can be carried is. */
static void wait_for(struct state *h)
{
    struct pollfd p[2 + TERMINAL_FDS] = {
        {.fd = h->ctl,  .events = POLLIN},
        {.fd = h->chld, .events = POLLIN},
    };

    if (h->terminal)
        terminal_wait_for(h->terminal, p + 2);
    if (poll(p, h->terminal ? ARRAY_LEN(p) : 2, -1) < 0) {
        if (errno != EINTR)
            _exit(1);
        return;
    }
    if (h->terminal)
        terminal_carry(h->terminal);
    if (p[1].revents)
        signals_take(h->chld);
    if (p[0].revents)
        command(h);
}

static void run_program(int ctl, int chld, const struct with *with, const struct init_msg *m)
{
    struct start s = {.op = HELP_OP_START, .slave = -1};
    struct state h = {.ctl = ctl, .chld = chld};

    if (m->size != 0)
        open_terminal(&h, &s, (uint32_t)m->size);
    h.program = start_program(&s, with);
    (void)getrusage(RUSAGE_CHILDREN, &h.before);
    if (h.program <= 0)
        fail(ctl, &s);
    for (int fd = FD_IN; fd < FD_END; fd++)
        (void)close(fd);
    if (s.slave >= 0)
        (void)close(s.slave);
    (void)close(RUNNER_FD);
    tell(&h, INIT_READY);
    while (!settle(&h))
        wait_for(&h);
    terminal_close(h.terminal);
    if (h.ctl < 0 || m->arg == 0)
        _exit(0);
    helper_done(ctl, 0, HELP_OP_START, NULL); /* and waits for the next request */
}

/* ---- requests ---- */

/* The descriptors of a program: job, in, out, err. */
static int take_places(int fds[INIT_FDS_SPAWN])
{
    static const int places[INIT_FDS_SPAWN] = {RUNNER_FD, FD_IN, FD_OUT, FD_ERR};
    int r = 0;

    for (size_t i = 0; i < INIT_FDS_SPAWN && r == 0; i++) { /* one may sit on another's place */
        r = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_APART) < 0 ? -errno : 0;
        (void)close(fds[i]);
    }
    for (int i = 0; i < INIT_FDS_SPAWN && r == 0; i++) {
        r = dup3(FD_APART + i, places[i], O_CLOEXEC) < 0 ? -errno : 0;
        (void)close(FD_APART + i);
    }
    return r;
}

static void request(int ctl, int chld, const struct with *with)
{
    struct {
        struct init_msg m;
        char bytes[HELP_DATA_MAX + 1];
    } in;
    int fds[INIT_FDS_SPAWN];
    size_t fds_n = INIT_FDS_SPAWN;
    ssize_t got = fd_recv(ctl, &in, sizeof in.m + HELP_DATA_MAX, fds, &fds_n);

    if (got < (ssize_t)sizeof in.m)
        _exit(0); /* the daemon closed its end */
    in.bytes[(size_t)got - sizeof in.m] = '\0';
    if (in.m.verb == INIT_STOP || in.m.verb == INIT_SIGNAL || in.m.verb == HELP_RESIZE)
        return; /* its program ended before it was read */
    if (in.m.verb == HELP_RUN && fds_n == INIT_FDS_SPAWN && take_places(fds) == 0) {
        run_program(ctl, chld, with, &in.m);
        return;
    }
    if (!with->conf->files || !with->conf->files(ctl, &in.m, in.bytes, (size_t)got - sizeof in.m,
                                                 fds_n > 0 ? fds[0] : -1, with->conf->shared))
        _exit(1);
    fd_close_all(fds, fds_n);
}

void helper_run(int ctl, const struct helper_conf *conf)
{
    struct with with = {.conf = conf};
    int chld;

    if (dup3(ctl, FD_CHLD, O_CLOEXEC) < 0 || dup3(FD_CHLD, FD_CTL, O_CLOEXEC) < 0 ||
        fd_close_from(FD_CTL + 1) < 0)
        _exit(1);
    process_name("sandbox-helper");
    chld = signals_open(SIGNALS_ALONE); /* a stray `kill -TERM -1` does not end it */
    if (chld < 0 || dup3(chld, FD_CHLD, O_CLOEXEC) < 0 || process_adopt() < 0 ||
        starter_open(&with.starter) < 0 || (!conf->shared && chdir("/workspace") < 0))
        _exit(1);
    (void)close(chld);
    for (;;)
        request(FD_CTL, FD_CHLD, &with);
}
