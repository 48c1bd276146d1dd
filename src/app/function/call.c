/* SPDX-License-Identifier: MIT */
#include "app/function/call.h"

#include <stdlib.h>

#include "app/daemon/app.h"
#include "app/function/kept_calls.h"
#include "core/languages.h"

/* clang-format off */
static const struct task_step steps[] = {
    {"parse",    TASK_PREPARING,  call_parse},
    {"check",    TASK_PREPARING,  call_check},
    {"packages", TASK_PREPARING,  function_packages, .stop = packages_give_up},
    {"admit",    TASK_QUEUED,     task_admit},
    {"mounts",   TASK_STARTING,   function_load},
    {"inspect",  TASK_STARTING,   call_inspect, .stop = inspect_give_up},
    {"bind",     TASK_STARTING,   call_bind},
    {"compile",  TASK_STARTING,   call_compile},
    {"compiled", TASK_STARTING,   function_compiled},
    {"run",      TASK_STARTING,   call_run},
    {"collect",  TASK_COLLECTING, call_collect, .always = true},
    {"judge",    TASK_COLLECTING, call_judge,   .always = true},
    {"sync",     TASK_COLLECTING, call_sync,    .always = true},
    {"render",   TASK_COLLECTING, function_render,  .always = true},
    {"webhook",  TASK_COLLECTING, function_webhook, .always = true},
};
/* clang-format on */

/* ---- the end ---- */

static void log_done(const struct call *c)
{
    const struct function_task *f = &c->on;
    const struct run_result *r = &f->task.result;

    log_event(
        &f->app->log, LOG_INFO, "call_done", LOG_STR("execution_id", f->id),
        LOG_STR("request_id", f->request_id),
        LOG_STR("language", c->program.lang >= 0 ? call_lang((size_t)c->program.lang)->name : ""),
        LOG_STR("status", call_status_name(f->result.outcome.status)),
        LOG_STR("reason", f->result.ran ? end_reason_name(r->reason) : ""),
        LOG_INT("duration_us", (int64_t)(r->at.collected - r->at.asked)));
    if (f->result.ran && r->reason == END_FAILED)
        log_event(&f->app->log, LOG_ERROR, "sandbox_failed", LOG_STR("execution_id", f->id),
                  LOG_STR("error", r->fault));
}

/* Changes that may still go back to their mounts. */
static void keep(struct call *c)
{
    struct program *p = &c->program;
    struct kept_given given = {.id = c->on.id,
                               .tree = p->tree,
                               .changes = &c->collect.changes,
                               .request = &p->request,
                               .text = &p->text,
                               .bytes = p->text.n + p->request.shaping.arena.n};

    if (!c->on.result.changes || !kept_calls_want(&given))
        return;
    for (size_t i = 0; i < p->request.attached.n; i++)
        given.bytes += p->request.attached.files[i].content.n;
    if (!kept_calls_add(c->on.app->functions.changes, &given))
        return;
    p->tree = NULL;
    p->text = BUF_INIT(0);
    p->request = (struct call_request){0};
}

static void answer(struct task *t)
{
    struct call *c = call_of(t);
    bool heard = c->on.order.done || c->tells;

    if (t->refused.kind == ERR_NONE)
        log_done(c);
    function_answer(&c->on);
    if (heard)
        keep(c);
}

static void call_free(struct call *c)
{
    struct calls *all = &c->on.app->functions.calls;

    TAILQ_REMOVE(&all->active, c, link);
    all->n--;
    all->telling -= c->tells;
    function_done(&c->on);
    collect_done(&c->collect);
    binding_done(&c->binding);
    program_done(&c->program);
    free(c);
}

static void account(struct task *t)
{
    struct app *a = function_of(t)->app;

    call_free(call_of(t));
    app_idle_check(a);
}

static const struct task_kind kind = {
    .name = "call",
    .steps = steps,
    .steps_n = ARRAY_LEN(steps),
    .answer = answer,
    .account = account,
};

/* ---- the beginning ---- */

int app_call(struct app *a, const struct function_order *o, struct call **ret, struct err *e)
{
    struct call *c;

    if (a->life.stopping) {
        buf_done(o->text);
        return err_set(e, ERR_BUSY, "the service is shutting down");
    }
    c = calloc(1, sizeof *c);
    if (!c || program_init(&c->program, a, c->on.id, o->text) < 0) {
        buf_done(o->text);
        free(c);
        return err_set(e, ERR_HOST, "no memory for a call");
    }
    function_init(&c->on, a, &kind, &c->program, o);
    TAILQ_INSERT_TAIL(&a->functions.calls.active, c, link);
    a->functions.calls.n++;
    *ret = c;
    if (task_begin(&c->on.task, e) == 0)
        return 0;
    call_free(c);
    return -1;
}

/* ---- ending early ---- */

void call_abandon(struct call *c)
{
    function_forget(&c->on);
    if (!c->tells)
        task_stop(&c->on.task, END_CANCELLED);
    else
        call_resume(c); /* items go nowhere now */
}

void call_resume(struct call *c)
{
    if (c->on.task.state == TASK_RUNNING)
        run_frames_resume(c->on.task.run);
}

/* ---- all of them ---- */

void calls_init(struct calls *c)
{
    TAILQ_INIT(&c->active);
}

void calls_done(struct calls *c)
{
    for (struct call *next; (next = TAILQ_FIRST(&c->active));)
        call_free(next);
}

void calls_stop_all(struct calls *c, enum end_reason why)
{
    struct call *one, *next;

    for (one = TAILQ_FIRST(&c->active); one; one = next) {
        next = TAILQ_NEXT(one, link);
        task_stop(&one->on.task, why);
    }
}

void calls_stop_unattended(struct calls *c, enum end_reason why)
{
    struct call *one, *next;

    for (one = TAILQ_FIRST(&c->active); one; one = next) {
        next = TAILQ_NEXT(one, link);
        if (!one->on.order.done)
            task_stop(&one->on.task, why);
    }
}
