/* SPDX-License-Identifier: MIT */
/* Attacks from inside a jail, by the same port that serves requests. */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "selftest/carry.h"

enum { LOOK_MS = 10 };

struct inside {
    struct run *run;     /* owned */
    struct event *timer; /* owned: looks whether it holds */
};

static void on_done(void *user)
{
    struct job *j = user;

    j->done = true;
}

static void on_file(void *user, struct run_file *f)
{
    struct job *j = user;
    char name[64];

    (void)snprintf(name, sizeof name, "%.*s", f->name_n < 60 ? (int)f->name_n : 60, f->name);
    job_take_file(j, name, f->fd);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    job_look(user);
}

static int run_probe(struct carrier *c, struct job *j, const struct run_events *events,
                     struct run **ret, struct err *e)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    const char *argv[PROBE_ARGS];
    char room[PROBE_ROOM];
    const struct plan_file file = {
        "/workspace/probe", {probe_program, probe_program_n},
         0755
    };
    const struct plan plan = {
        .template = TEMPLATE_EXEC,
        .argv = argv,
        .envp = env,
        .cwd = "/workspace",
        .files = &file,
        .files_n = 1,
        .limits = j->errand.limits,
    };

    errand_probe_args(&j->errand, file.path, room, argv);
    return run_start(c->engine, &plan, &j->result, events, ret, e);
}

static int run_script(struct carrier *c, struct job *j, const struct run_events *events,
                      struct run **ret, struct err *e)
{
    enum attack_program p = j->errand.attack->program;
    const struct exec_var work = {
        {"WORK",               4                           },
        {j->errand.attack->id, strlen(j->errand.attack->id)}
    };
    const struct exec_spec spec = {
        .execution_id = "selftest",
        .language = p == PROGRAM_SH_CONTROL   ? "shell"
                    : p == PROGRAM_JS_CONTROL ? "javascript"
                                              : "python",
        .code = {j->errand.code.p,  j->errand.code.n },
        .event = {j->errand.event.p, j->errand.event.n},
        .vars = &work,
        .vars_n = p == PROGRAM_SH_CONTROL ? 1 : 0,
        .limits = j->errand.limits,
    };
    struct plan *plan = NULL;
    int r = c->langs->plan(&spec, &plan, e);

    if (r == 0)
        r = run_start(c->engine, plan, &j->result, events, ret, e);
    c->langs->plan_free(plan);
    return r;
}

static void inside_free(struct inside *in)
{
    if (!in)
        return;
    run_free(in->run);
    if (in->timer)
        event_free(in->timer);
    free(in);
}
DEFINE_FREEP(struct inside, inside_free)

static int start(struct carrier *c, struct job *j, struct err *e)
{
    cleanup_with(inside_freep) struct inside *in = calloc(1, sizeof *in);
    const struct timeval every = {.tv_usec = LOOK_MS * 1000};
    const struct run_events events = {
        .file = j->errand.attack->flags & FLAG_COLLECT ? on_file : NULL,
        .done = on_done,
        .user = j,
    };
    int r;

    if (!in)
        return err_set(e, ERR_HOST, "out of memory");
    in->timer = event_new(c->base, -1, EV_PERSIST, on_timer, j);
    if (!in->timer || event_add(in->timer, &every) < 0)
        return err_set(e, ERR_HOST, "out of memory");
    r = j->errand.attack->program == PROGRAM_PROBE ? run_probe(c, j, &events, &in->run, e)
                                                   : run_script(c, j, &events, &in->run, e);
    if (r == 0)
        j->carrier = take_ptr(&in);
    return r;
}

/* What it holds has been looked at: there is nothing more to wait for. */
static void wait_for(struct carrier *c, struct job *j)
{
    struct inside *in = j->carrier;

    while (!j->done && !j->holding)
        (void)event_base_loop(c->base, EVLOOP_ONCE);
    if (!j->errand.plants && j->holding)
        run_stop(in->run, END_CANCELLED);
    while (!j->done && !j->errand.plants)
        (void)event_base_loop(c->base, EVLOOP_ONCE);
}

static void end(struct carrier *c, struct job *j)
{
    struct inside *in = j->carrier;

    if (!j->done)
        run_stop(in->run, END_CANCELLED);
    while (!j->done)
        (void)event_base_loop(c->base, EVLOOP_ONCE);
    inside_free(in);
    j->carrier = NULL;
}

void carrier_in_jail(struct carrier *c)
{
    c->start = start;
    c->wait = wait_for;
    c->end = end;
}
