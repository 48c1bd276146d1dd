/* SPDX-License-Identifier: MIT */
/* The body is read, and whether there can be such a call is checked. */
#include "app/daemon/app.h"
#include "app/execution/webhook_member.h"
#include "app/function/call.h"

enum {
    PARSE_INLINE = 1 << 20, /* larger bodies do not block the loop */
    MS_PER_S = 1000,
};

/* Everything that the request alone decides; the rest needs the loop. */
static void parse(struct task *t)
{
    struct program *p = function_of(t)->program;
    struct err e;

    if (call_request_parse(&p->request, p->text.p ? p->text.p : "", p->text.n, &e) < 0)
        t->refused = e;
}

enum task_go call_parse(struct task *t, struct err *e)
{
    struct function_task *f = function_of(t);

    (void)e;
    return function_do(f, parse, f->program->text.n > PARSE_INLINE);
}

static void use_limits(struct call *c, uint64_t wall_ms)
{
    struct task *t = &c->on.task;
    uint64_t asked = t->result.at.asked;

    t->limits = app_limits(c->on.app, wall_ms);
    if (c->on.order.memory_max > 0 && c->on.order.memory_max < t->limits.memory_max)
        t->limits.memory_max = c->on.order.memory_max;
    c->program.limits = t->limits;
    t->engine = c->program.where.engine;
    run_result_init(&t->result, &t->limits);
    t->result.at.asked = asked;
}

static int check(struct call *c, struct err *e)
{
    const struct config *conf = &c->on.app->config;
    struct program *p = &c->program;
    const struct call_request *r = &p->request;
    uint64_t wall = r->wall_ms ? r->wall_ms : conf->timeout_s * MS_PER_S;

    if (program_check(p, e) < 0)
        return -1;
    if (wall > conf->timeout_max_s * MS_PER_S)
        return err_set(e, ERR_CALLER, "timeout: at most %zu seconds", (size_t)conf->timeout_max_s);
    use_limits(c, wall);
    if (binding_begin(&c->binding, r, e) < 0)
        return -1;
    return program_has_files(p) ? mount_parse(&p->tree->mount, r->mount, r->permissions, e) : 0;
}

/* What is sent if we are killed before there is a result. */
static void promise(struct function_task *f)
{
    struct buf body = BUF_INIT(0);
    struct err e;

    (void)err_set(&e, ERR_HOST, WEBHOOK_KILLED);
    (void)function_fail(f, &e);
    f->order.render(&f->result, &body);
    webhook_promise(f->webhook, f->id, &body);
    f->result.failed = false;
    f->result.outcome = (struct call_outcome){0};
}

enum task_go call_check(struct task *t, struct err *e)
{
    struct call *c = call_of(t);
    struct err why;

    if (webhook_take(c->on.app, c->program.request.webhook, &c->on.webhook, &why) < 0) {
        *e = why;
        return TASK_REFUSE;
    }
    c->tells = c->on.webhook != NULL;
    c->on.app->functions.calls.telling += c->tells;
    if (c->tells)
        promise(&c->on);
    return check(c, &why) < 0 ? function_fail(&c->on, &why) : TASK_NEXT;
}
