/* SPDX-License-Identifier: MIT */
/* Which function is meant, and which argument goes where. */
#include "app/function/call.h"
#include "core/languages.h"

enum { BIND_INLINE = 1 << 20 }; /* larger requests and larger inspections do not block the loop */

/* By the inspector, where it was asked; otherwise the wrapper will see. */
static int find(struct call *c, struct json_value *ret_function, struct err *e)
{
    const struct buf *inspected = &c->program.inspected;
    unsigned flags = program_flags(&c->program);
    struct binding *b = &c->binding;
    struct json_value v;

    if (inspected->n == 0) {
        if (b->source == SIGNATURE_CONVENTION)
            b->source = SIGNATURE_INFERRED; /* by the wrapper, from the function itself */
        return 0;
    }
    if (json_parse(inspected->p, inspected->n, 0, &v, e) < 0)
        return err_type(e, ERR_NONE, "InspectionError");
    if (binding_find(b, flags, v, ret_function, e) < 0)
        return -1;
    return ret_function->p && !(flags & CALL_COMPILED) ? binding_infer(b, *ret_function, e) : 0;
}

static void bind(struct task *t)
{
    struct call *c = call_of(t);
    struct binding *b = &c->binding;
    struct program *p = &c->program;
    unsigned flags = program_flags(p);
    struct json_value function = {0};
    struct err e;

    if (find(c, &function, &e) < 0 ||
        binding_args(b, (enum call_lang_id)p->lang, &p->request, &e) < 0 ||
        (flags & CALL_COMPILED && binding_declared(b, flags, &p->request, function, &e) < 0)) {
        c->on.error = e;
    } else if (flags & CALL_MODULE && b->args.names_n > 0) {
        (void)err_set(&c->on.error, ERR_CALLER, "arguments of a module have no names");
    }
}

enum task_go call_bind(struct task *t, struct err *e)
{
    struct call *c = call_of(t);

    (void)e;
    if (c->on.uninspected.kind != ERR_NONE)
        return function_fail(&c->on, &c->on.uninspected);
    return function_do(&c->on, bind,
                       c->program.text.n > BIND_INLINE || c->program.inspected.n > BIND_INLINE);
}
