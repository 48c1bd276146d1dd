/* SPDX-License-Identifier: MIT */
/* The answer: the value of the result becomes text, by the function that the API brought. */
#include "app/execution/webhook_member.h"
#include "app/function/function_task.h"

enum { RENDER_INLINE = 256 * 1024 }; /* larger answers do not block the loop */

static size_t bytes_of(const struct call_result *r)
{
    size_t n = r->run->out.n + r->run->err.n + r->run->result.n + r->run->error.n;

    return n + (r->changes ? changes_bytes(r->changes) : 0);
}

bool function_is_large(const struct function_task *f)
{
    return bytes_of(&f->result) > RENDER_INLINE;
}

static void render(struct task *t)
{
    struct function_task *f = function_of(t);

    f->order.render(&f->result, &f->json);
}

enum task_go function_render(struct task *t, struct err *e)
{
    struct function_task *f = function_of(t);

    (void)e;
    t->result.at.collected = clock_us();
    if (t->refused.kind != ERR_NONE || (!f->order.done && !f->webhook))
        return TASK_NEXT;
    if (function_is_large(f))
        return task_beside(t, render, WORK_LONG);
    render(t);
    return TASK_NEXT;
}

static void on_safe(void *user)
{
    task_continue(user, TASK_NEXT);
}

enum task_go function_webhook(struct task *t, struct err *e)
{
    struct function_task *f = function_of(t);

    (void)e;
    if (!f->webhook || t->refused.kind != ERR_NONE)
        return TASK_NEXT;
    task_release(t);
    webhook_send(take_ptr(&f->webhook), f->id, buf_whole(&f->json), on_safe, t);
    return TASK_WAIT;
}
