/* SPDX-License-Identifier: MIT */
/*
 * A plan under construction, for the languages only. It owns all it points to,
 * so neither the request nor its body has to outlive the queue.
 */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "core/exec_spec.h"
#include "core/plan.h"

enum {
    LANG_STRING_MAX = EXEC_VAR_MAX, /* one argument or variable */
    LANG_VARS_MAX = 1000,           /* environment variables of one request */
    LANG_ENV_MAX = 1024 * 1024,     /* bytes of the environment; the kernel takes about two MiB
                                       of arguments and environment together */
    LANG_ARGS_MAX = 24,
    LANG_FILES_MAX = 2,  /* of ours, beside those of the request */
    LANG_FIXED_VARS = 8, /* room for the variables that are always or often there */
};

struct lang_job {
    struct plan plan;   /* first member: the port hands out its address */
    struct bytes event; /* what the program is told; n == 0: nothing. Borrowed: only for planning */
    struct bytes compiled; /* what its text was compiled to; n == 0: not known. The same */
    const char *argv[LANG_ARGS_MAX + 1];
    size_t argc;
    struct plan_file *files; /* owned, and so are paths and contents */
    char **env;              /* owned, and so is each string */
    size_t env_n, env_bytes;
    struct buf code, input, frames; /* owned */
    char *workspace;                /* owned, or NULL */
    char option[48];                /* an argument made of a number */
};

/* What all languages share: environment, event, input, limits, workspace. Validates. */
must_check int lang_job_new(const struct exec_spec *s, struct lang_job **ret, struct err *e);
void lang_job_free(struct lang_job *j); /* NULL is fine */
DEFINE_FREEP(struct lang_job, lang_job_free)

/* `arg` must live as long as the job. */
void lang_job_arg(struct lang_job *j, const char *arg);
/* The same for the text of a wrapper. */
void lang_job_wrapper(struct lang_job *j, const char *text);
/* A file in /tmp whose name contains the execution's, so that runs which share a /tmp do not meet.
 * Returns its path, owned by the job; NULL when memory ran out. */
const char *lang_job_file(struct lang_job *j, const struct exec_spec *s, const char *stem,
                          const char *suffix, struct bytes content);
/* The frames that a wrapper reads: code, what it was compiled to, event, context, go. */
must_check int lang_job_frames(struct lang_job *j, const struct exec_spec *s, enum exec_mode mode,
                               struct err *e);

/* Python that brings an event or a session comes from a control plane, whose contract is that a
 * program without handler() has failed; unless the request said otherwise. That contract runs
 * JavaScript and shell as scripts. */
enum exec_mode lang_python_mode(const struct exec_spec *s);

/* Does a variable of the request begin with one of these? An interpreter reads such variables when
 * it starts, so a warmed one would ignore them. `except` is one name that does no harm, or NULL. */
bool lang_needs_cold(const struct exec_spec *s, const char *const prefixes[], const char *except);

/* Turns a request into a job, one function per language. */
typedef int lang_plan_fn(const struct exec_spec *s, struct lang_job **ret, struct err *e);
lang_plan_fn lang_python_plan;
lang_plan_fn lang_javascript_plan;
lang_plan_fn lang_shell_plan;
