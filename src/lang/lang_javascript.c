/* SPDX-License-Identifier: MIT */
/*
 * JavaScript: wrap/javascript.js reads the job from descriptor 3. A warmed
 * process has it loaded already; a cold one gets it as the text of -e.
 */
#include <stdio.h>

#include "lang/lang_job.h"
#include "lang/wrap.h"

enum { HEAP_MIN_MB = 16 };

/* Read when node, its libraries or its thread pool start. */
static const char *const start_vars[] = {
    "NODE_", "LD_", "LC_", "LANG", "GLIBC_", "MALLOC_", "UV_", "OPENSSL_", "SSL_", "ICU_", NULL,
};

/* Left alone, V8 sizes its heap for the machine and would be killed for garbage it could have
 * collected. A quarter stays for what is not on that heap. */
static void limit_heap(struct lang_job *j)
{
    uint64_t mb = j->plan.limits.memory_max / 4 * 3 >> 20;

    (void)snprintf(j->option, sizeof j->option, "--max-old-space-size=%llu",
                   (unsigned long long)(mb > HEAP_MIN_MB ? mb : HEAP_MIN_MB));
    lang_job_arg(j, j->option);
}

int lang_javascript_plan(const struct exec_spec *s, struct lang_job **ret, struct err *e)
{
    cleanup_with(lang_job_freep) struct lang_job *j = NULL;

    if (lang_job_new(s, &j, e) < 0 || lang_job_frames(j, s, s->mode, e) < 0)
        return -1;
    if (!s->node_modules && !lang_needs_cold(s, start_vars, NULL)) /* read at the start, too */
        j->plan.template = TEMPLATE_NODE;
    lang_job_arg(j, "/usr/bin/node");
    if (j->plan.limits.memory_max > 0)
        limit_heap(j);
    lang_job_arg(j, "-e");
    lang_job_wrapper(j, wrap_javascript);
    *ret = take_ptr(&j);
    return 0;
}
