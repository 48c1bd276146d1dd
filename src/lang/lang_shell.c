/* SPDX-License-Identifier: MIT */
/*
 * Shell: bash itself, no wrapper and no frames; the returned value is always
 * null. The program is an argument, or a file when it is too long for one. When
 * the request gives no standard input, the event's text is it.
 */
#include <speedups.h>
#include <string.h>

#include "lang/lang_job.h"

/* Read by the loader and the C library, before a shell that was started ahead has its job. */
static const char *const start_vars[] = {"LD_", "GLIBC_", "MALLOC_", "LOCPATH", NULL};

enum { ARGUMENT_MAX = 120 * 1024 }; /* bytes of a program given as an argument */

static int give_code(struct lang_job *j, const struct exec_spec *s, struct err *e)
{
    const char *path;

    if (s->code.n > ARGUMENT_MAX) {
        path = lang_job_file(j, s, "program", ".sh", s->code);
        if (!path)
            return err_set(e, ERR_HOST, "out of memory");
        lang_job_arg(j, path);
        return 0;
    }
    j->code = BUF_INIT(s->code.n);
    if (buf_put(&j->code, s->code.p, s->code.n) < 0)
        return err_set(e, ERR_HOST, "out of memory");
    lang_job_arg(j, "-c");
    lang_job_arg(j, "--"); /* a program may begin with a dash */
    lang_job_arg(j, j->code.p);
    lang_job_arg(j, "bash"); /* $0, the name in bash's own messages */
    if (SPEEDUP_SHELL_AHEAD && !lang_needs_cold(s, start_vars, NULL))
        j->plan.template = TEMPLATE_SHELL; /* of just these arguments (init/prestart.c) */
    return 0;
}

int lang_shell_plan(const struct exec_spec *s, struct lang_job **ret, struct err *e)
{
    cleanup_with(lang_job_freep) struct lang_job *j = NULL;
    struct exec_spec with_input = *s;

    if (s->code.n > 0 && memchr(s->code.p, '\0', s->code.n))
        return err_set(e, ERR_CALLER, "a shell program cannot contain a NUL byte");
    if (s->mode == EXEC_HANDLER)
        return err_set(e, ERR_CALLER, "a shell program has no handler: leave out mode 'handler'");
    if (!s->input.p)
        with_input.input = s->event;
    if (lang_job_new(&with_input, &j, e) < 0)
        return -1;
    lang_job_arg(j, "/bin/bash");
    if (give_code(j, s, e) < 0)
        return -1;
    *ret = take_ptr(&j);
    return 0;
}
