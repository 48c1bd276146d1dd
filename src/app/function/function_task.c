/* SPDX-License-Identifier: MIT */
#include "app/function/function_task.h"

#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/execution/webhook_member.h"
#include "app/function/inspection.h"
#include "base/random.h"
#include "core/languages.h"
#include "lang/lang_call.h"

enum { ID_RANDOM = 16 };

/* ---- life ---- */

void function_init(struct function_task *f, struct app *a, const struct task_kind *kind,
                   struct program *p, const struct function_order *o)
{
    task_init(&f->task, kind, &a->tasks, a->engine);
    f->task.result.at.asked = o->asked_us;
    f->task.plan_free = lang_call_free;
    f->app = a;
    f->program = p;
    f->order = *o;
    f->order.text = NULL;
    (void)snprintf(f->request_id, sizeof f->request_id, "%s", o->request_id);
    (void)snprintf(f->id, sizeof f->id, "call_");
    random_base36(f->id + strlen(f->id), ID_RANDOM);
    f->result = (struct call_result){
        .id = f->id,
        .run = &f->task.result,
        .request = &p->request,
        .lang = -1,
        .jail = a->jail,
        .streamed = o->item != NULL,
        .shown_max = o->shown_max,
    };
}

void function_done(struct function_task *f)
{
    if (f->inspect)
        inspect_cancel(take_ptr(&f->inspect));
    sync_free(take_ptr(&f->sync));
    task_done(&f->task);
    buf_done(&f->json);
    webhook_drop(take_ptr(&f->webhook));
}

void function_forget(struct function_task *f)
{
    f->order.done = NULL;
    f->order.refused = NULL;
    f->order.item = NULL;
    f->order.event = NULL;
    f->order.progress = NULL;
}

/* ---- how a step went ---- */

enum task_go function_fail(struct function_task *f, const struct err *e)
{
    f->result.failed = true;
    call_outcome_fail(&f->result.outcome, e);
    return TASK_END;
}

static enum task_go went(struct function_task *f)
{
    if (f->task.refused.kind != ERR_NONE)
        return TASK_REFUSE;
    return f->error.kind != ERR_NONE ? function_fail(f, &f->error) : TASK_NEXT;
}

static void beside_run(struct work *w)
{
    struct task *t = container_of(w, struct task, work);

    t->beside(t);
}

static void beside_done(struct work *w)
{
    struct task *t = container_of(w, struct task, work);

    task_continue(t, went(function_of(t)));
}

enum task_go function_do(struct function_task *f, task_fn *fn, bool beside)
{
    struct task *t = &f->task;

    if (!beside) {
        fn(t);
        return went(f);
    }
    t->beside = fn;
    t->work = (struct work){.run = beside_run, .done = beside_done, .lane = WORK_LONG};
    work_submit(t->host->work, &t->work);
    return TASK_WAIT;
}

/* ---- what it says ---- */

enum function_item function_item(struct function_task *f, const char *json, size_t n)
{
    struct json_value v;
    struct err ignored;
    bool room;

    if (json_parse(json, n, 0, &v, &ignored) < 0)
        return ITEM_NONE;
    room = !f->order.item || f->order.item(f->order.user, f->result.items, json, n);
    f->result.items++;
    return room ? ITEM_TAKEN : ITEM_LAST;
}

void function_answer(struct function_task *f)
{
    if (f->task.refused.kind != ERR_NONE) {
        if (f->order.refused)
            f->order.refused(f->order.user, &f->task.refused);
    } else if (f->order.done) {
        f->order.done(f->order.user, &f->result, &f->json);
    }
}
