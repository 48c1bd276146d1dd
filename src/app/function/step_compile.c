/* SPDX-License-Identifier: MIT */
/* A program of C or C++ is made, unless one of the same text is there already. */
#include <stdlib.h>

#include "app/function/build.h"
#include "app/function/call.h"
#include "core/languages.h"
#include "function/dispatch.h"
#include "lang/lang_call.h"

static void on_file(void *user, struct run_file *file)
{
    build_on_file(function_of(user)->program->build, file);
}

enum task_go function_compile(struct function_task *f)
{
    const struct run_events events = {.file = on_file};
    struct build *b = f->program->build;
    struct plan *plan = NULL;
    enum task_go how;
    struct err e;

    if (!b || b->made.n > 0)
        return TASK_NEXT;
    if (build_plan(b, &plan, &e) < 0)
        return function_fail(f, &e);
    how = task_run(&f->task, plan, &events, &b->result);
    lang_compile_free(plan);
    return how;
}

/* What the compiler is given; for a module, what its code is. */
static int prepare(struct call *c, struct err *e)
{
    struct program *p = &c->program;
    unsigned flags = program_flags(p);
    struct json_value output = {0};
    struct dispatch d = {
        .cpp = p->lang == CALL_CPP,
        .body = c->binding.body,
        .function = c->binding.function,
        .signature = c->binding.signature,
    };

    if (!(flags & (CALL_COMPILED | CALL_MODULE)))
        return 0;
    p->build = build_new(p);
    if (!p->build)
        return err_set(e, ERR_HOST, "out of memory");
    if (flags & CALL_MODULE)
        return build_take_module(p->build, e);
    if (p->request.schema.p && json_get(p->request.schema, "output", &output))
        d.output = output;
    dispatch_code(&d, p->request.code, &p->build->code);
    if (dispatch_write(&d, &p->build->dispatcher, e) < 0 || build_look_up(p->build, e) < 0)
        return err_type(e, ERR_CALLER, "SignatureError");
    return 0;
}

enum task_go call_compile(struct task *t, struct err *e)
{
    struct call *c = call_of(t);
    struct err why;

    (void)e;
    if (prepare(c, &why) < 0 || program_dirs(&c->program, &why) < 0)
        return function_fail(&c->on, &why);
    free(take_ptr(&c->binding.signature));
    return function_compile(&c->on);
}

/* The compiler's own words are the message, and all of them are in stderr. */
enum task_go function_compiled(struct task *t, struct err *e)
{
    struct function_task *f = function_of(t);
    struct build *b = f->program->build;
    struct err why;

    (void)e;
    if (!b || b->result.at.ended == 0 || build_end(b, &why) == 0)
        return TASK_NEXT;
    (void)buf_put(&t->result.err, b->result.err.p ? b->result.err.p : "", b->result.err.n);
    return function_fail(f, &why);
}
