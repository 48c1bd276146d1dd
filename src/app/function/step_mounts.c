/* SPDX-License-Identifier: MIT */
/* The files of mounts come from the disk, and what may be written to them. */
#include "app/function/function_task.h"

static void load(struct task *t)
{
    struct function_task *f = function_of(t);
    struct err e;

    if (program_load(f->program, &e) < 0)
        f->error = e;
}

enum task_go function_load(struct task *t, struct err *e)
{
    struct function_task *f = function_of(t);

    (void)e;
    return program_has_files(f->program) ? function_do(f, load, true) : TASK_NEXT;
}
