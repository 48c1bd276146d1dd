/* SPDX-License-Identifier: MIT */
/* The packages that a program asks for: found, installed if they are not there, and held. */
#include <string.h>

#include "app/function/function_task.h"
#include "app/packages/asked.h"

enum { WORDS_MAX = 400 }; /* of an installer's last ones: the error has room for these */

/* The end says what went wrong. */
static enum task_go fail(struct function_task *f, const struct package_set *s)
{
    size_t skip = s->error.n > WORDS_MAX ? s->error.n - WORDS_MAX : 0;
    struct err e;

    (void)err_set(&e, s->failed_here ? ERR_HOST : ERR_CALLER,
                  "the packages could not be installed: %s%.*s", skip ? "..." : "",
                  (int)(s->error.n - skip), s->error.p ? s->error.p + skip : "");
    (void)err_type(&e, ERR_NONE, "PackageInstallError");
    return function_fail(f, &e);
}

static enum task_go hold(struct function_task *f, struct package_set *s)
{
    struct err e;

    if (s->state != PACKAGE_SET_READY)
        return fail(f, s);
    f->program->packages = package_set_hold(s);
    if (f->program->packages)
        return TASK_NEXT;
    (void)err_set(&e, ERR_HOST, "no memory for packages");
    return function_fail(f, &e);
}

static void on_ready(void *user, struct package_set *s)
{
    struct function_task *f = user;

    task_continue(&f->task, hold(f, s));
}

void packages_give_up(struct task *t)
{
    package_set_leave(&function_of(t)->packages);
}

/* What could be said wrongly, or finds no room, refuses the call; the rest is its result. */
enum task_go function_packages(struct task *t, struct err *e)
{
    struct function_task *f = function_of(t);
    struct json_value asked = f->program->request.packages;
    struct package_set *s;
    struct err why;

    if (!asked.p)
        return TASK_NEXT;
    if (package_set_asked(f->app, asked, f->request_id, &s, &why) < 0) {
        if (why.kind == ERR_CALLER || why.kind == ERR_BUSY) {
            *e = why;
            return TASK_REFUSE;
        }
        (void)err_type(&why, ERR_NONE, "PackagesNotAvailable");
        return function_fail(f, &why);
    }
    if (s->state != PACKAGE_SET_INSTALLING)
        return hold(f, s);
    f->packages = (struct package_waiter){.done = on_ready, .user = f};
    package_set_wait(s, &f->packages);
    return TASK_WAIT;
}
