/* SPDX-License-Identifier: MIT */
#include "app/daemon/inside_command.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "app/sandbox/process.h"

enum {
    WRITE_MAX = 4096, /* what a pipe that poll() calls writable takes without waiting */
    WORDS = 4,        /* before those of the command */
};

struct inside_command {
    struct activity activity; /* first: until its output is passed on */
    struct app *app;          /* borrowed */
    const char **argv;        /* owned */
    struct buf line;          /* its words, to be listed */
    struct process *process;  /* borrowed; NULL: it has not started, or has ended */
    struct process_reader reader;
    struct event writable[RUN_STREAMS];
    char held[WRITE_MAX]; /* read and not yet written */
    size_t held_n, written;
    int stream;
    bool running;
    inside_ended_fn *ended;
    void *user;
};

static const int descriptors[] = {[RUN_OUT] = STDOUT_FILENO, [RUN_ERR] = STDERR_FILENO};

static void let_go(struct inside_command *c)
{
    process_detach(&c->reader);
    c->process = NULL;
    c->running = false;
    activity_end(&c->activity);
}

static void on_drop(struct activity *a)
{
    let_go((struct inside_command *)a);
}

static void tell_end(struct inside_command *c, int status)
{
    let_go(c);
    c->ended(c->user, status);
}

/* ---- its output ---- */

/* False: the reader of our output is slow, and the event will tell. Output that nobody can read is
 * dropped. */
static bool write_held(struct inside_command *c)
{
    struct pollfd p = {.fd = descriptors[c->stream], .events = POLLOUT};
    ssize_t n;

    if (poll(&p, 1, 0) == 0) {
        (void)event_add(&c->writable[c->stream], NULL);
        return false;
    }
    n = write(p.fd, c->held + c->written, c->held_n - c->written);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    c->written += n < 0 ? c->held_n - c->written : (size_t)n;
    if (c->written == c->held_n)
        c->held_n = c->written = 0;
    return true;
}

static void pass_output(struct inside_command *c)
{
    struct bytering_piece piece;

    while (c->process) {
        if (c->held_n > 0) {
            if (!write_held(c))
                return;
            continue;
        }
        if (!process_read(&c->reader, sizeof c->held, &piece))
            break;
        if (piece.n > 0) /* 0: a gap */
            memcpy(c->held, piece.p, piece.n);
        c->held_n = piece.n;
        c->stream = piece.stream;
    }
    if (c->process && process_is_read(&c->reader))
        tell_end(c, c->process->end.exit_code < 0 ? INSIDE_BY_SIGNAL : c->process->end.exit_code);
}

static void on_output(void *user)
{
    struct inside_command *c = user;

    if (c->held_n == 0)
        pass_output(c);
}

static void on_writable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    pass_output(user);
}

/* ---- starting ---- */

static void on_started(void *user, struct process *p, const struct run_result *why)
{
    struct inside_command *c = user;

    if (!p) {
        log_event(&c->app->log, LOG_ERROR, "command_not_started", LOG_STR("error", why->fault));
        tell_end(c, INSIDE_NOT_STARTED);
        return;
    }
    c->process = p;
    process_attach(p, &c->reader, 0, on_output, c);
    pass_output(c);
}

/* The shell only finds the file: then it is the command. */
static int make_argv(struct inside_command *c, char *const *command)
{
    static const char *const before[WORDS + 1] = {"/bin/sh", "sh", "-c", "exec \"$@\"", "sh"};
    size_t n = 0;

    while (command[n])
        n++;
    c->argv = calloc(n + WORDS + 2, sizeof *c->argv);
    if (!c->argv)
        return -1;
    memcpy(c->argv, before, sizeof before);
    for (size_t i = 0; i < n; i++) {
        c->argv[WORDS + 1 + i] = command[i];
        (void)buf_printf(&c->line, "%s%s", i > 0 ? " " : "", command[i]);
    }
    return c->line.failed ? -1 : 0;
}

static int start(struct inside_command *c, struct err *e)
{
    const struct process_order order = {
        .command = {.cmd = {c->line.p, c->line.n}, .argv = c->argv},
          .lines = true
    };
    struct persistent *home;
    enum run_fault at;

    if (sandboxes_find(c->app->sandboxes, "default", &home, e) < 0 ||
        process_start(home, &order, on_started, c, &at, e) < 0)
        return err_wrap(e, "start the command inside");
    activity_begin(home, &c->activity, on_drop);
    c->running = true;
    return 0;
}

int inside_command_start(struct app *a, char *const *command, inside_ended_fn *ended, void *user,
                         struct inside_command **ret, struct err *e)
{
    struct inside_command *c = calloc(1, sizeof *c);

    if (!c)
        return err_set(e, ERR_HOST, "no memory for the command");
    c->app = a;
    c->ended = ended;
    c->user = user;
    c->line = BUF_INIT(a->config.code_max);
    for (size_t i = 0; i < RUN_STREAMS; i++)
        (void)event_assign(&c->writable[i], a->base, descriptors[i], EV_WRITE, on_writable, c);
    *ret = c;
    return make_argv(c, command) < 0 ? err_set(e, ERR_HOST, "no memory for the command")
                                     : start(c, e);
}

bool inside_command_is_running(const struct inside_command *c)
{
    return c->running;
}

void inside_command_signal(struct inside_command *c, int number)
{
    if (c->process)
        (void)!process_signal(c->process, number, true);
}

void inside_command_kill(struct inside_command *c)
{
    struct err ignored;

    if (c->process)
        (void)!process_kill(c->process, &ignored);
}

void inside_command_free(struct inside_command *c)
{
    if (!c)
        return;
    let_go(c);
    for (size_t i = 0; i < RUN_STREAMS; i++)
        (void)event_del(&c->writable[i]);
    buf_done(&c->line);
    free(c->argv);
    free(c);
}
