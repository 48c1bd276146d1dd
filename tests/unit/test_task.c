/* SPDX-License-Identifier: MIT */
/* A task: its steps, its end, and the order of that, on a fake jail. */
#include <cmocka.h>
#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "app/task.h"
#include "base/clock.h"
#include "fake/fake_jail.h"
#include "store/work_threads.h"
#include "wire/wire.h"

enum { TASKS = 3 };

struct world;

struct sample {
    struct task task;
    struct world *w;
    const char *name;
    bool accounted;
};

struct world {
    struct event_base *base;
    struct fake_jail jail;
    struct run_engine *engine;
    struct work_pool *work;
    struct admission admission;
    struct task_host host;
    uint64_t refused;
    char said[512]; /* what happened, in order */
    struct sample t[TASKS];
};

static struct sample *of(struct task *t)
{
    return container_of(t, struct sample, task);
}

static void say(struct task *t, const char *what)
{
    struct sample *s = of(t);
    char *end = s->w->said + strlen(s->w->said);

    (void)snprintf(end, sizeof s->w->said - (size_t)(end - s->w->said), "%s%s ", s->name, what);
}

static enum task_go step_prepare(struct task *t, struct err *e)
{
    (void)e;
    say(t, "prepare");
    return TASK_NEXT;
}

static enum task_go step_refuse(struct task *t, struct err *e)
{
    (void)t;
    (void)err_set(e, ERR_CALLER, "not that");
    return TASK_REFUSE;
}

static enum task_go step_fail(struct task *t, struct err *e)
{
    (void)e;
    return task_fail(t, END_DISK, "no room");
}

static enum task_go step_wait(struct task *t, struct err *e)
{
    (void)e;
    say(t, "wait");
    return TASK_WAIT;
}

static void wait_stop(struct task *t)
{
    say(t, "give-up");
}

/* What it waits for is there before it waits. */
static enum task_go step_early(struct task *t, struct err *e)
{
    (void)e;
    task_continue(t, TASK_NEXT);
    return TASK_WAIT;
}

static void beside(struct task *t)
{
    say(t, "beside");
}

static enum task_go step_beside(struct task *t, struct err *e)
{
    (void)e;
    return task_beside(t, beside, WORK_SHORT);
}

static enum task_go step_run(struct task *t, struct err *e)
{
    static const char *const argv[] = {"/bin/fake", NULL};
    const struct plan plan = {.argv = argv, .envp = argv + 1, .cwd = "/", .limits = t->limits};
    static const struct run_events events = {0};

    (void)e;
    say(t, "run");
    return task_run(t, &plan, &events, NULL);
}

static enum task_go step_collect(struct task *t, struct err *e)
{
    (void)e;
    say(t, "collect");
    return TASK_NEXT;
}

static void answered(struct task *t)
{
    struct sample *s = of(t);

    assert_int_equal(t->state, TASK_DONE);
    say(t, "answer");
    if (t->result.at.started) /* the sandbox is released, the place given back afterwards */
        assert_true(s->w->jail.released < s->w->jail.taken);
}

static void accounted(struct task *t)
{
    say(t, "account");
    of(t)->accounted = true;
}

#define KIND(n, ...)                                                                               \
    static const struct task_step n##_steps[] = {__VA_ARGS__};                                     \
    static const struct task_kind n = {                                                            \
        .name = #n,                                                                                \
        .steps = n##_steps,                                                                        \
        .steps_n = ARRAY_LEN(n##_steps),                                                           \
        .answer = answered,                                                                        \
        .account = accounted,                                                                      \
    }

/* clang-format off */
KIND(two_runs,
    {"prepare", TASK_PREPARING,  step_prepare},
    {"admit",   TASK_QUEUED,     task_admit},
    {"first",   TASK_STARTING,   step_run},
    {"second",  TASK_STARTING,   step_run},
    {"collect", TASK_COLLECTING, step_collect, .always = true});
KIND(one_run,
    {"admit",   TASK_QUEUED,     task_admit},
    {"run",     TASK_STARTING,   step_run},
    {"collect", TASK_COLLECTING, step_collect, .always = true});
KIND(refuses,
    {"prepare", TASK_PREPARING,  step_prepare},
    {"refuse",  TASK_PREPARING,  step_refuse},
    {"collect", TASK_COLLECTING, step_collect, .always = true});
KIND(fails,
    {"admit",   TASK_QUEUED,     task_admit},
    {"fail",    TASK_STARTING,   step_fail},
    {"run",     TASK_STARTING,   step_run},
    {"collect", TASK_COLLECTING, step_collect, .always = true});
KIND(waits,
    {"admit",   TASK_QUEUED,     task_admit},
    {"wait",    TASK_STARTING,   step_wait, .stop = wait_stop},
    {"collect", TASK_COLLECTING, step_collect, .always = true});
KIND(busy,
    {"beside",  TASK_PREPARING,  step_beside},
    {"early",   TASK_PREPARING,  step_early},
    {"admit",   TASK_QUEUED,     task_admit},
    {"collect", TASK_COLLECTING, step_collect, .always = true});
/* clang-format on */

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct err e;

    assert_non_null(w);
    (void)signal(SIGPIPE, SIG_IGN);
    w->base = event_base_new();
    fake_jail_init(&w->jail);
    assert_int_equal(run_engine_open(w->base, &w->jail.jail, &w->engine, &e), 0);
    assert_int_equal(work_pool_open(w->base, &w->work, &e), 0);
    admission_init(&w->admission, 1, 1);
    task_host_init(&w->host, &w->admission, w->work, &w->refused);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    work_pool_close(w->work);
    run_after_all(w->engine);
    for (size_t i = 0; i < TASKS; i++)
        if (w->t[i].w)
            task_done(&w->t[i].task);
    run_engine_close(w->engine);
    assert_int_equal(w->jail.taken, w->jail.released);
    assert_int_equal(w->admission.granted, 0);
    fake_jail_done(&w->jail);
    event_base_free(w->base);
    free(w);
    return 0;
}

static int begin(struct world *w, size_t i, const struct task_kind *kind, struct err *e)
{
    static const char *const names[] = {"a:", "b:", "c:"};
    struct sample *s = &w->t[i];

    *s = (struct sample){.w = w, .name = names[i]};
    s->task.limits = (struct limits){.wall_ms = 60000, .output_max = 1000, .result_max = 1000};
    task_init(&s->task, kind, &w->host, w->engine);
    return task_begin(&s->task, e);
}

static void begins(struct world *w, size_t i, const struct task_kind *kind)
{
    struct err e;

    assert_int_equal(begin(w, i, kind, &e), 0);
}

static void until_accounted(struct world *w, size_t i)
{
    while (!w->t[i].accounted)
        assert_int_equal(event_base_loop(w->base, EVLOOP_ONCE), 0);
}

static void ends(struct world *w, size_t i)
{
    fake_program_gone(&w->jail, i);
    fake_init_says(&w->jail, i, INIT_EXITED, 0, 0);
}

static void until_taken(struct world *w, size_t n)
{
    while (w->jail.taken < n)
        assert_int_equal(event_base_loop(w->base, EVLOOP_ONCE), 0);
}

static void steps_follow_each_other_under_one_ticket(void **state)
{
    struct world *w = *state;

    begins(w, 0, &two_runs);
    assert_int_equal(w->t[0].task.state, TASK_RUNNING);
    assert_int_equal(w->admission.granted, 1);
    ends(w, 0);
    until_taken(w, 2);
    assert_int_equal(w->admission.granted, 1);
    ends(w, 1);
    until_accounted(w, 0);
    assert_string_equal(w->said, "a:prepare a:run a:run a:collect a:answer a:account ");
    assert_int_equal(w->t[0].task.result.reason, END_EXIT);
}

/* The next one is begun between the answer and the account, when the sandbox is gone. */
static void the_end_has_one_order(void **state)
{
    struct world *w = *state;

    begins(w, 0, &one_run);
    begins(w, 1, &one_run);
    assert_int_equal(w->t[1].task.state, TASK_QUEUED);
    ends(w, 0);
    until_accounted(w, 0);
    assert_string_equal(w->said, "a:run a:collect a:answer b:run a:account ");
    assert_int_equal(w->jail.released, 1);
    ends(w, 1);
    until_accounted(w, 1);
}

static void what_is_refused_was_never_there(void **state)
{
    struct world *w = *state;
    struct err e;

    assert_int_equal(begin(w, 0, &refuses, &e), -1);
    assert_string_equal(e.text, "not that");
    assert_string_equal(w->said, "a:prepare ");
    assert_true(TAILQ_EMPTY(&w->host.active));
    begins(w, 0, &one_run);
    begins(w, 1, &one_run);
    assert_int_equal(begin(w, 2, &one_run, &e), -1); /* one place, one in the queue */
    assert_int_equal(e.kind, ERR_BUSY);
    assert_int_equal(w->refused, 1);
}

static void a_failure_skips_to_what_is_always_done(void **state)
{
    struct world *w = *state;

    begins(w, 0, &fails);
    assert_string_equal(w->said, "a:collect "); /* the answer never comes from inside */
    until_accounted(w, 0);
    assert_string_equal(w->said, "a:collect a:answer a:account ");
    assert_int_equal(w->t[0].task.result.reason, END_DISK);
    assert_string_equal(w->t[0].task.result.fault, "no room");
}

static void a_stop_gives_up_what_a_step_waits_for(void **state)
{
    struct world *w = *state;

    begins(w, 0, &waits);
    begins(w, 1, &one_run);
    task_stop(&w->t[0].task, END_CANCELLED);
    task_stop(&w->t[0].task, END_SHUTDOWN); /* the first reason counts */
    until_accounted(w, 0);
    assert_string_equal(w->said, "a:wait a:give-up a:collect a:answer b:run a:account ");
    assert_int_equal(w->t[0].task.result.reason, END_CANCELLED);
    task_stop(&w->t[1].task, END_SHUTDOWN);
    assert_int_equal(fake_init_hears(&w->jail, 0), INIT_STOP);
    fake_program_gone(&w->jail, 0);
    fake_init_says(&w->jail, 0, INIT_EXITED, SIGKILL, 0);
    until_accounted(w, 1);
    assert_int_equal(w->t[1].task.result.reason, END_SHUTDOWN);
}

static void a_queued_one_leaves_the_queue(void **state)
{
    struct world *w = *state;

    begins(w, 0, &one_run);
    begins(w, 1, &one_run);
    task_stop(&w->t[1].task, END_CANCELLED);
    assert_int_equal(w->admission.queued, 0);
    until_accounted(w, 1);
    assert_int_equal(w->jail.taken, 1);
    assert_int_equal(w->t[1].task.result.reason, END_CANCELLED);
}

static void a_worker_and_an_early_end_are_waited_for(void **state)
{
    struct world *w = *state;

    begins(w, 0, &busy);
    until_accounted(w, 0);
    assert_string_equal(w->said, "a:beside a:collect a:answer a:account ");
}

#define WORLD(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD(steps_follow_each_other_under_one_ticket),
        WORLD(the_end_has_one_order),
        WORLD(what_is_refused_was_never_there),
        WORLD(a_failure_skips_to_what_is_always_done),
        WORLD(a_stop_gives_up_what_a_step_waits_for),
        WORLD(a_queued_one_leaves_the_queue),
        WORLD(a_worker_and_an_early_end_are_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
