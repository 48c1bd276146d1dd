/* SPDX-License-Identifier: MIT */
/* Which functions does the code define? Asked where only its text can tell. */
#include "app/daemon/app.h"
#include "app/function/call.h"
#include "app/function/inspection.h"
#include "core/languages.h"

static void take_answer(struct function_task *f, const struct inspect_answer *answer)
{
    struct buf *to = &f->program->inspected;

    if (answer->status != INSPECT_OK) {
        (void)err_set(&f->uninspected, ERR_HOST, "%s", answer->message);
        (void)err_type(&f->uninspected, ERR_NONE,
                       answer->status == INSPECT_UNAVAILABLE ? "InspectionNotAvailable"
                                                             : "InspectionError");
        return;
    }
    *to = BUF_INIT(answer->json.n + 1);
    if (buf_put(to, answer->json.p, answer->json.n) < 0)
        (void)err_set(&f->uninspected, ERR_HOST, "out of memory");
}

static void on_inspected(void *user, const struct inspect_answer *answer)
{
    struct function_task *f = user;

    f->inspect = NULL;
    take_answer(f, answer);
    task_continue(&f->task, TASK_NEXT);
}

enum task_go function_inspect(struct function_task *f, struct err *e)
{
    struct inspect_order order = {.language = call_lang((size_t)f->program->lang)->inspect,
                                  .code = f->program->request.code,
                                  .admitted = true,
                                  .done = on_inspected,
                                  .user = f};
    struct inspect_answer known;

    if (inspect_known(f->app, order.language, order.code, &known)) {
        take_answer(f, &known);
        return TASK_NEXT;
    }
    if (inspect_start(f->app, &order, &f->inspect, e) == 0)
        return TASK_WAIT;
    if (e->kind == ERR_BUSY)
        return TASK_REFUSE;
    f->uninspected = *e;
    *e = (struct err){0};
    (void)err_type(&f->uninspected, ERR_NONE, "InspectionError");
    return TASK_NEXT;
}

void inspect_give_up(struct task *t)
{
    struct function_task *f = function_of(t);

    if (f->inspect)
        inspect_cancel(take_ptr(&f->inspect));
}

enum task_go call_inspect(struct task *t, struct err *e)
{
    struct call *c = call_of(t);

    if (!binding_needs_inspector(&c->binding, program_flags(&c->program), &c->program.request))
        return TASK_NEXT;
    return function_inspect(&c->on, e);
}
