/* SPDX-License-Identifier: MIT */
#include "app/sandbox/command.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "jail/inner.h"

enum {
    ENV_SLACK = 256 + PERSISTENT_ID_MAX + PERSISTENT_TEMPLATE_MAX,
    ENV_OURS_MAX = 8, /* variables of ours beside the fixed ones */
};

static const char *const fixed[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "TMPDIR=/tmp",
    "LANG=C.UTF-8",
};

/* Pairs in a row; a later one replaces an earlier one of the same name. */
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

/* A sandbox with a home of its own has a user with a name, and tells programs that look for it that
 * they are in a sandbox, in E2B's words. */
static int env_put_user(struct environment *v, const struct persistent *p)
{
    static const char *const fixed_ones[] = {"USER=user", "LOGNAME=user", "E2B_SANDBOX=true"};
    const char *template = p->label.template;
    int r = 0;

    if (!p->label.own_home)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(fixed_ones) && r == 0; i++)
        r = env_put(v, fixed_ones[i]);
    if (r == 0)
        r = env_put_var(v, (struct bytes){"E2B_SANDBOX_ID", 14},
                        (struct bytes){p->id, strlen(p->id)});
    return r ? r
             : env_put_var(v, (struct bytes){"E2B_TEMPLATE_ID", 15},
                           (struct bytes){template, strlen(template)});
}

static int env_make(struct environment *v, const struct persistent *p,
                    const struct command_order *o)
{
    const char *home = persistent_home(p), *cwd = persistent_cwd(p);
    size_t bytes = o->cwd.n + strlen(cwd) + strlen(home) + ENV_SLACK;
    int r = 0;

    for (size_t i = 0; i < o->env_n; i++)
        bytes += o->env[i].name.n + o->env[i].value.n + 2;
    v->room = ARRAY_LEN(fixed) + ENV_OURS_MAX + p->env_n + o->env_n;
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
    if (r == 0 && o->terminal)
        r = env_put(v, "TERM=xterm-256color");
    if (r == 0)
        r = env_put_user(v, p);
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

/* ---- ending ---- */

int command_exit_code(const struct command *c)
{
    const struct run_result *r = &c->result;

    return r->reason == END_EXIT || r->reason == END_PIDS ? r->exit_code : -1;
}

static void account(const struct command *c)
{
    struct app *a = c->home->all->app;
    const struct run_result *r = &c->result;

    if (command_failed(c)) {
        a->metrics.commands_refused += r->fault_at == RUN_BUSY;
        return;
    }
    metrics_count_command(&a->metrics, r);
    log_event(&a->log, LOG_INFO, "command_done", LOG_STR("sandbox_id", c->home->id),
              LOG_STR("reason", end_reason_name(r->reason)),
              LOG_INT("exit_code", command_exit_code(c)),
              LOG_INT("duration_us", (int64_t)timing_span(r->at.asked, r->at.ended)));
}

static void end(struct command *c)
{
    struct command was;

    c->result.at.collected = clock_us();
    was = *c; /* it may be freed by done() */
    c->events.done(c->events.user);
    account(&was);
}

static void fail(struct command *c, enum run_fault at)
{
    c->result.reason = END_FAILED;
    c->result.fault_at = at;
    end(c);
}

/* ---- events of the run ---- */

static void on_ready(void *user)
{
    struct command *c = user;

    if (c->events.started)
        c->events.started(c->events.user);
}

static void on_output(void *user, enum run_stream s, const char *p, size_t n)
{
    struct command *c = user;

    c->events.output(c->events.user, s, p, n);
}

static void on_frame(void *user, char kind, const char *p, size_t n)
{
    struct command *c = user;

    c->events.frame(c->events.user, kind, p, n);
}

static void on_exited(void *user)
{
    struct command *c = user;

    c->events.exited(c->events.user);
}

static void on_input(void *user)
{
    struct command *c = user;

    c->events.input(c->events.user);
}

static void on_done(void *user)
{
    end(user);
}

/* ---- starting ---- */

static int start(struct command *c, struct err *e)
{
    cleanup_with(env_done) struct environment env = {0};
    const struct command_order *o = &c->order;
    const char *const shell[] = {"/bin/sh", "sh", "-c", o->cmd.n ? o->cmd.p : "", NULL};
    const struct run_events events = {
        .ready = on_ready,
        .bytes = c->events.output ? on_output : NULL,
        .frame = c->events.frame ? on_frame : NULL,
        .exited = c->events.exited ? on_exited : NULL,
        .input = c->events.input ? on_input : NULL,
        .done = on_done,
        .user = c,
    };
    struct plan plan = {
        .template = o->template,
        .argv = o->argv ? o->argv : shell,
        .named = true,
        .cwd = o->cwd.n ? o->cwd.p : persistent_cwd(c->home),
        .input = o->input,
        .input_open = o->input_open,
        .terminal = o->terminal,
        .frames = o->frames,
        .limits = c->home->limits,
    };

    if (env_make(&env, c->home, o) < 0)
        return err_set(e, ERR_CALLER, "the environment cannot be passed on");
    plan.envp = env.pair;
    plan.limits.wall_ms = o->timeout_ms;
    plan.limits.output_max = o->output_max;
    if (o->frame_max > 0)
        plan.limits.result_max = o->frame_max;
    run_result_init(&c->result, &plan.limits);
    c->result.at.asked = c->asked_us;
    return run_start(c->home->inside.engine, &plan, &c->result, &events, &c->run, e);
}

static void on_wait(evutil_socket_t fd, short what, void *user)
{
    struct command *c = user;

    (void)fd, (void)what;
    fail(c, inner_is_dead(c->home->inside.jail) ? RUN_LOST : RUN_BUSY);
}

/* Its turn has come. What fails now is told by the timer: no callback comes from in here. */
static void on_granted(void *user)
{
    const struct timeval now = {0};
    struct command *c = user;
    struct err ignored;

    (void)event_del(c->wait);
    if (start(c, &ignored) < 0)
        (void)event_add(c->wait, &now);
}

static int begin(struct command *c, struct err *e)
{
    struct admission *a = &c->home->inside.commands;
    const uint64_t ms = c->home->all->app->config.sandbox_wait_ms;
    const struct timeval wait = {.tv_sec = (time_t)(ms / 1000),
                                 .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

    c->wait = evtimer_new(c->home->all->app->base, on_wait, c);
    if (!c->wait)
        return err_set(e, ERR_HOST, "no memory for a command");
    if (admission_ask(a, &c->ticket, e) < 0)
        return err_set(e, ERR_BUSY, "%zu commands wait in this sandbox already", a->queued);
    if (c->ticket.state == TICKET_GRANTED)
        return start(c, e);
    (void)event_add(c->wait, &wait);
    return 0;
}

int command_start(struct persistent *p, const struct command_order *o,
                  const struct command_events *events, struct command **ret, enum run_fault *ret_at,
                  struct err *e)
{
    struct command *c;

    *ret_at = has_nul(o->cwd) ? RUN_NO_DIRECTORY : RUN_NO_START;
    if (has_nul(o->cwd) || has_nul(o->cmd))
        return err_set(e, ERR_CALLER, "the command or its directory contains a NUL byte");
    c = calloc(1, sizeof *c);
    if (!c)
        return err_set(e, ERR_HOST, "no memory for a command");
    *c = (struct command){
        .home = p,
        .ticket = {.grant = on_granted, .user = c},
        .order = *o,
        .events = *events,
        .asked_us = clock_us(),
    };
    if (begin(c, e) < 0) {
        if (e->kind == ERR_BUSY)
            *ret_at = RUN_BUSY;
        p->all->app->metrics.commands_refused += e->kind == ERR_BUSY;
        command_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void command_pause(struct command *c)
{
    if (!c->run)
        return;
    run_output_pause(c->run);
    if (c->events.frame)
        run_frames_pause(c->run);
}

void command_resume(struct command *c)
{
    if (!c->run)
        return;
    run_output_resume(c->run);
    if (c->events.frame)
        run_frames_resume(c->run);
}

int command_send(struct command *c, const void *p, size_t n)
{
    return c->run ? run_send(c->run, p, n) : -1;
}

int command_interrupt(struct command *c)
{
    return c->run ? run_interrupt(c->run) : -1;
}

int command_signal(struct command *c, int number, bool group)
{
    return c->run ? run_signal(c->run, number, group) : -1;
}

int command_resize(struct command *c, uint32_t terminal)
{
    return c->run ? run_resize(c->run, terminal) : -1;
}

enum run_input command_input(struct command *c, const void *p, size_t n)
{
    return c->run ? run_input(c->run, p, n) : RUN_INPUT_CLOSED;
}

size_t command_input_waiting(const struct command *c)
{
    return c->run ? run_input_waiting(c->run) : 0;
}

void command_input_end(struct command *c)
{
    if (c->run)
        run_input_end(c->run);
}

void command_output_read(struct command *c)
{
    if (c->run)
        run_output_read(c->run);
}

void command_kill(struct command *c, enum end_reason why)
{
    if (c->run)
        run_stop(c->run, why);
}

void command_free(struct command *c)
{
    if (!c)
        return;
    if (c->wait)
        event_free(c->wait);
    run_free(c->run);
    run_result_done(&c->result);
    admission_leave(&c->home->inside.commands, &c->ticket);
    free(c);
}
