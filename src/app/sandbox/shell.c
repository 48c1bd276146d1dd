/* SPDX-License-Identifier: MIT */
#include "app/sandbox/shell.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "app/daemon/app.h"
#include "proc/crew.h"

enum { ENV_SLACK = 64, ARGV_ITEMS = 5, MS_PER_S = 1000, US_PER_MS = 1000 };

struct shell {
    struct persistent *home; /* borrowed */
    struct ticket ticket;
    struct shell_order order; /* what it points to is the caller's, until it is started */
    struct command *command;  /* owned; NULL: it waits for its turn */
    struct shell_events events;
    struct event late; /* the time limit; before the start: of its waiting */
    uint64_t asked_us;
    bool timed_out;
};

static const char *const fixed[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "TMPDIR=/tmp",
    "LANG=C.UTF-8",
};

/* Pairs in a row; later ones replace earlier ones of the same name. */
struct environment {
    const char **pair; /* owned; pairs are borrowed or in `text` */
    size_t n, room;
    struct buf text;
};

static size_t name_n(const char *pair)
{
    return strcspn(pair, "=");
}

static int env_put(struct environment *v, const char *pair)
{
    size_t n = name_n(pair);

    for (size_t i = 0; i < v->n; i++)
        if (name_n(v->pair[i]) == n && memcmp(v->pair[i], pair, n) == 0) {
            v->pair[i] = pair;
            return 0;
        }
    if (v->n == v->room)
        return -1;
    v->pair[v->n++] = pair;
    return 0;
}

static bool has_nul(struct bytes b)
{
    return b.n > 0 && memchr(b.p, '\0', b.n);
}

/* The text has been reserved, so earlier pairs do not move. */
static int env_put_var(struct environment *v, struct bytes name, struct bytes value)
{
    size_t at = v->text.n;

    if (has_nul(name) || has_nul(value))
        return -1;
    (void)buf_put(&v->text, name.p, name.n);
    (void)buf_putc(&v->text, '=');
    (void)buf_put(&v->text, value.p, value.n);
    (void)buf_putc(&v->text, '\0');
    return v->text.failed ? -1 : env_put(v, v->text.p + at);
}

/* Appends "/part" for each part of a path, but not for empty ones and ".". */
static void put_parts(struct buf *out, struct bytes path)
{
    for (size_t i = 0, n; i < path.n; i += n + 1) {
        const char *slash = memchr(path.p + i, '/', path.n - i);

        n = slash ? (size_t)(slash - path.p) - i : path.n - i;
        if (n == 0 || (n == 1 && path.p[i] == '.'))
            continue;
        (void)buf_putc(out, '/');
        (void)buf_put(out, path.p + i, n);
    }
}

/* A link stays part of the name, and so does "..", which depends on the links before it. */
static int env_put_pwd(struct environment *v, const char *base, struct bytes cwd)
{
    size_t at = v->text.n, top;

    (void)buf_puts(&v->text, "PWD=");
    top = v->text.n;
    if (cwd.n == 0 || cwd.p[0] != '/')
        put_parts(&v->text, (struct bytes){base, strlen(base)});
    put_parts(&v->text, cwd);
    if (v->text.n == top)
        (void)buf_putc(&v->text, '/');
    (void)buf_putc(&v->text, '\0');
    return v->text.failed ? -1 : env_put(v, v->text.p + at);
}

static int env_make(struct environment *v, const struct persistent *p, const struct shell_order *o)
{
    const char *home = persistent_home(p), *cwd = persistent_cwd(p);
    size_t bytes = o->cwd.n + strlen(cwd) + strlen(home) + ENV_SLACK;
    int r = 0;

    for (size_t i = 0; i < o->env_n; i++)
        bytes += o->env[i].name.n + o->env[i].value.n + 2;
    v->room = ARRAY_LEN(fixed) + 2 + p->env_n + o->env_n;
    v->pair = calloc(v->room + 1, sizeof *v->pair);
    v->text = BUF_INIT(bytes);
    if (!v->pair || buf_reserve(&v->text, bytes) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(fixed) && r == 0; i++)
        r = env_put(v, fixed[i]);
    if (r == 0)
        r = env_put_var(v, (struct bytes){"HOME", 4}, (struct bytes){home, strlen(home)});
    if (r == 0)
        r = env_put_pwd(v, cwd, o->cwd);
    for (size_t i = 0; i < p->env_n && r == 0; i++)
        r = env_put(v, p->env[i]);
    for (size_t i = 0; i < o->env_n && r == 0; i++)
        r = env_put_var(v, o->env[i].name, o->env[i].value);
    return r;
}

static void env_done(struct environment *v)
{
    free(v->pair);
    buf_done(&v->text);
}

/* ---- events ---- */

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void on_started(void *user, int pid)
{
    struct shell *s = user;

    s->events.started(s->events.user, pid);
}

static void on_failed(void *user, enum command_fault why, int sys)
{
    struct shell *s = user;

    s->home->all->app->metrics.commands_refused += why == COMMAND_BUSY;
    s->events.failed(s->events.user, why, sys);
}

static void on_output(void *user, enum command_stream stream, const char *p, size_t n)
{
    struct shell *s = user;

    s->events.output(s->events.user, stream, p, n);
}

static void on_exited(void *user, int status)
{
    struct shell *s = user;

    if (s->events.exited)
        s->events.exited(s->events.user, code_of(status), !WIFEXITED(status));
}

static void account(const struct shell *s, int code)
{
    struct app *a = s->home->all->app;

    a->metrics.commands++;
    a->metrics.commands_timed_out += s->timed_out;
    log_event(&a->log, LOG_INFO, "command_done", LOG_STR("sandbox_id", s->home->id),
              LOG_STR("reason", end_reason_name(s->timed_out ? END_TIMEOUT
                                                : code < 0   ? END_SIGNAL
                                                             : END_EXIT)),
              LOG_INT("exit_code", code),
              LOG_INT("duration_us", (int64_t)(clock_us() - s->asked_us)));
}

static void on_done(void *user, int status)
{
    struct shell *s = user;
    const struct shell was = *s; /* it may be freed by done() */
    int code = s->timed_out ? -1 : code_of(status);

    (void)event_del(&s->late);
    s->events.done(s->events.user, code, s->timed_out);
    account(&was, code);
}

static void on_late(evutil_socket_t fd, short what, void *user)
{
    struct shell *s = user;

    (void)fd, (void)what;
    if (!s->command) {
        on_failed(s, crew_is_dead(s->home->crew) ? COMMAND_LOST : COMMAND_BUSY, 0);
        return;
    }
    s->timed_out = true;
    command_kill(s->command);
}

/* ---- starting ---- */

static int start(struct shell *s, struct err *e)
{
    cleanup_with(env_done) struct environment env = {0};
    const struct shell_order *o = &s->order;
    const char *const argv[ARGV_ITEMS] = {"/bin/sh", "sh", "-c", o->cmd.n ? o->cmd.p : "", NULL};
    const struct command_events events = {on_started, on_failed, on_output, on_exited, on_done, s};
    const struct timeval tv = {.tv_sec = (time_t)(o->timeout_ms / MS_PER_S),
                               .tv_usec = (suseconds_t)(o->timeout_ms % MS_PER_S * US_PER_MS)};
    struct plan plan = {.argv = argv,
                        .cwd = o->cwd.n ? o->cwd.p : persistent_cwd(s->home),
                        .input = o->input,
                        .limits = s->home->limits};

    if (env_make(&env, s->home, o) < 0)
        return err_set(e, ERR_CALLER, "the environment cannot be passed on");
    plan.envp = env.pair;
    if (command_start(s->home->crew, &plan, &events, &s->command, e) < 0)
        return -1;
    (void)event_del(&s->late);
    if (o->timeout_ms > 0)
        (void)event_add(&s->late, &tv);
    return 0;
}

/* Its turn has come. What fails now is told by the timer, as no callback comes from in here. */
static void on_granted(void *user)
{
    const struct timeval now = {0};
    struct shell *s = user;
    struct err ignored;

    if (start(s, &ignored) < 0)
        (void)event_add(&s->late, &now);
}

static int begin(struct shell *s, struct err *e)
{
    struct crew *c = s->home->crew;
    struct admission *a = crew_admission(c, CREW_COMMAND);
    const struct timeval wait = crew_wait(c);

    if (admission_ask(a, &s->ticket, e) < 0)
        return err_set(e, ERR_BUSY, "%zu commands wait in this sandbox already", a->queued);
    if (s->ticket.state == TICKET_GRANTED)
        return start(s, e);
    (void)event_add(&s->late, &wait);
    return 0;
}

int shell_start(struct persistent *p, const struct shell_order *o,
                const struct shell_events *events, struct shell **ret, enum command_fault *ret_why,
                struct err *e)
{
    struct shell *s;

    *ret_why = has_nul(o->cwd) ? COMMAND_NO_DIRECTORY : COMMAND_NO_START;
    if (has_nul(o->cwd) || has_nul(o->cmd))
        return err_set(e, ERR_CALLER, "the command or its directory contains a NUL byte");
    s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, ERR_HOST, "no memory for a command");
    *s = (struct shell){
        .home = p,
        .ticket = {.grant = on_granted, .user = s},
        .order = *o,
        .events = *events,
        .asked_us = clock_us()
    };
    (void)evtimer_assign(&s->late, p->all->app->base, on_late, s);
    if (begin(s, e) < 0) {
        if (e->kind == ERR_BUSY)
            *ret_why = COMMAND_BUSY;
        p->all->app->metrics.commands_refused += e->kind == ERR_BUSY;
        shell_free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void shell_pause(struct shell *s)
{
    if (s->command)
        command_pause(s->command);
}

void shell_resume(struct shell *s)
{
    if (s->command)
        command_resume(s->command);
}

void shell_kill(struct shell *s)
{
    if (s->command)
        command_kill(s->command);
}

void shell_free(struct shell *s)
{
    if (!s)
        return;
    (void)event_del(&s->late);
    command_free(s->command);
    admission_leave(crew_admission(s->home->crew, CREW_COMMAND), &s->ticket);
    free(s);
}
