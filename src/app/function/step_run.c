/* SPDX-License-Identifier: MIT */
/* The function is called: the wrapper of its language becomes a plan, and the plan runs. */
#include "app/function/build.h"
#include "app/function/call.h"
#include "core/languages.h"
#include "lang/lang_call.h"

/* What is no JSON only the program itself can have sent. */
static void on_item(void *user, const char *json, size_t n)
{
    struct function_task *f = user;

    if (f->order.item && function_item(f, json, n) == ITEM_LAST)
        run_frames_pause(f->task.run);
}

static void on_progress(void *user, const char *json, size_t n)
{
    struct function_task *f = user;

    if (f->order.progress)
        f->order.progress(f->order.user, json, n);
}

static size_t given_bytes(const struct call_args *a)
{
    size_t n = 4; /* the brackets of both */

    for (size_t i = 0; i < a->n; i++)
        n += (i > 0) + (a->at[i].p ? a->at[i].n : 4);
    for (size_t i = 0; i < a->names_n; i++)
        n += (i > 0) + a->names[i].key.n + 1 + a->names[i].value.n;
    return n;
}

static int plan(struct call *c, struct err *e)
{
    struct program *p = &c->program;
    const struct binding *b = &c->binding;
    struct lang_call spec = {
        .id = p->id,
        .lang = (enum call_lang_id)p->lang,
        .request = &p->request,
        .function = b->function,
        .body = b->body,
        .stream = c->on.result.streamed,
        .options_at = b->options_at,
        .args = &b->args,
        .limits = p->limits,
        .wasm = p->wasm,
        .dirs = program_dirs_text(p),
        .packages = program_packages(p),
        .made = (const char *const *)p->tree->made,
        .made_n = p->tree->made_n,
        .rights = p->fenced ? &p->rights : NULL,
    };

    if (call_tree_lend(p->tree, &p->request, spec.rights, &spec.lazy, e) < 0)
        return -1;
    if (p->build)
        spec.program = (struct bytes){p->build->made.p, p->build->made.n};
    spec.mode = p->lang == CALL_WASM ? CALL_MODE_INLINE
                                     : lang_call_mode(&p->request, given_bytes(&b->args));
    c->on.result.mode = spec.mode;
    if (lang_call_plan(&spec, &c->on.task.plan, e) < 0)
        return -1;
    return call_collect_begin(c, e);
}

enum task_go call_run(struct task *t, struct err *e)
{
    const struct run_events events = {
        .item = on_item, .file = call_on_file, .progress = on_progress};
    struct call *c = call_of(t);
    struct err why;

    (void)e;
    if (plan(c, &why) < 0)
        return function_fail(&c->on, &why);
    return task_run_plan(t, &events);
}
