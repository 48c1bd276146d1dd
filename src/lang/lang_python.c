/* SPDX-License-Identifier: MIT */
/*
 * Python: wrap/python.py reads the job from descriptor 3. A warmed interpreter
 * has it imported already; a cold one gets it as the text of -c.
 */
#include "lang/lang_job.h"
#include "lang/wrap.h"

/* Read when the interpreter or a numeric library starts. */
static const char *const start_vars[] = {
    "PYTHON", "LD_", "LC_", "LANG", "GLIBC_", "MALLOC_", "OMP_", "OPENBLAS_", "MKL_", NULL,
};

/* Nothing of a tenant may have been near the interpreter: no module of theirs, no variable. */
static bool is_untouched(const struct lang_job *j, const struct exec_spec *s)
{
    return j->plan.template != TEMPLATE_EXEC && s->vars_n == 0 && !s->dependencies && !s->workspace;
}

int lang_python_plan(const struct exec_spec *s, struct lang_job **ret, struct err *e)
{
    cleanup_with(lang_job_freep) struct lang_job *j = NULL;

    if (lang_job_new(s, &j, e) < 0)
        return -1;
    if (!lang_needs_cold(s, start_vars, "PYTHONPATH"))
        j->plan.template = s->science ? TEMPLATE_PYTHON_SCIENCE : TEMPLATE_PYTHON;
    if (is_untouched(j, s)) {
        j->compiled = s->compiled;
        j->plan.compiled = s->compiled.n > 0;
        j->plan.compiles = s->asks_compiled;
    }
    if (lang_job_frames(j, s, lang_python_mode(s), e) < 0)
        return -1;
    lang_job_arg(j, "/usr/bin/python3");
    lang_job_arg(j, "-B"); /* no __pycache__ among the artifacts */
    lang_job_arg(j, "-c");
    lang_job_wrapper(j, wrap_python);
    *ret = take_ptr(&j);
    return 0;
}
