/* SPDX-License-Identifier: MIT */
/*
 * What a call did to the files, read while the dead sandbox is still there; then what all of it
 * means for the caller.
 */
#include "app/daemon/app.h"
#include "app/function/call.h"

enum { JUDGE_INLINE = 256 * 1024 }; /* larger results are not looked at in the loop */

/* ---- collecting ---- */

static enum task_go settle(struct call *c)
{
    struct task *t = &c->on.task;
    struct collect *k = &c->collect;

    if (k->beside)
        return TASK_WAIT;
    if (t->result.scanned && !k->complete &&
        !collect_complete(k, t->result.files_left_out, &t->result.error))
        return TASK_WAIT;
    return TASK_NEXT;
}

static void on_collected(void *user)
{
    struct task *t = user;

    if (task_waits_in(t, call_collect) && settle(call_of(t)) == TASK_NEXT)
        task_continue(t, TASK_NEXT);
}

int call_collect_begin(struct call *c, struct err *e)
{
    struct program *p = &c->program;
    const struct collect_order order = {
        .work = c->on.app->work,
        .run = &c->on.task.run,
        .tree = p->tree,
        .request = &p->request,
        .lang = (enum call_lang_id)p->lang,
        .wasm = p->wasm,
        .fenced = p->fenced,
        .dirs = p->dirs.n > 0,
        .contents = p->request.reporting.contents,
        .before = p->request.attached.files,
        .before_n = p->request.attached.n,
        .next = on_collected,
        .user = c,
    };

    if (collect_begin(&c->collect, &order) < 0)
        return err_set(e, ERR_HOST, "out of memory");
    return 0;
}

void call_on_file(void *user, struct run_file *f)
{
    collect_file(&call_of(user)->collect, f);
}

enum task_go call_collect(struct task *t, struct err *e)
{
    (void)e;
    return settle(call_of(t));
}

/* ---- judging ---- */

static void judge(struct task *t)
{
    struct call *c = call_of(t);
    struct program *p = &c->program;
    struct call_result *r = &c->on.result;

    r->source = c->binding.source;
    r->function = c->binding.function;
    r->lang = p->lang;
    r->wasm = p->wasm;
    r->jail = p->where.jail;
    r->tree = p->tree;
    r->left_out = t->result.files_left_out;
    if (r->failed)
        return;
    r->ran = true;
    call_outcome_reach(&t->result, &p->limits, &r->outcome);
    if (call_outcome_unfound(&r->outcome, &t->result.error, r->function))
        r->source = SIGNATURE_CONVENTION;
    if (!t->result.scanned)
        return;
    r->changes = &c->collect.changes;
    collect_judge(&c->collect, &r->outcome);
    if (p->tree->lent && p->request.reporting.contents)
        call_tree_recall(p->tree, &p->request, &c->collect.changes);
}

/* Reads files of the host, too, where there are mounts. */
enum task_go call_judge(struct task *t, struct err *e)
{
    const struct call *c = call_of(t);

    (void)e;
    if (c->program.tree->mount.n > 0 || t->result.result.n + t->result.error.n > JUDGE_INLINE)
        return task_beside(t, judge, WORK_LONG);
    judge(t);
    return TASK_NEXT;
}
