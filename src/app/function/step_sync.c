/* SPDX-License-Identifier: MIT */
/* Changes go back to their mounts, where the request says so. */
#include "app/daemon/app.h"
#include "app/function/call.h"

static void on_sync_event(void *user, const struct mount *m, const struct sync_event *event)
{
    struct function_task *f = user;

    if (f->order.event)
        f->order.event(f->order.user, m, event);
}

static void on_synced(void *user, const struct sync_report *report)
{
    struct function_task *f = user;

    f->result.synced = report;
    task_continue(&f->task, TASK_NEXT);
}

enum task_go function_sync(struct function_task *f, struct call_tree *tree,
                           const struct changes *changes)
{
    struct sync_order order = {
        .tree = tree,
        .changes = changes,
        .rules = &tree->mount,
        .work = f->app->work,
        .event = on_sync_event,
        .done = on_synced,
        .user = f,
    };
    struct err ignored;

    if (!tree->mount.sync || sync_start(&order, &f->sync, &ignored) < 0)
        return TASK_NEXT;
    return TASK_WAIT;
}

enum task_go call_sync(struct task *t, struct err *e)
{
    struct call *c = call_of(t);

    (void)e;
    return c->on.result.changes ? function_sync(&c->on, c->program.tree, &c->collect.changes)
                                : TASK_NEXT;
}
