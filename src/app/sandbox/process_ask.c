/* SPDX-License-Identifier: MIT */
#include "app/sandbox/process_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jw.h"

enum { CONFIG_MAX = 64 << 20, BEFORE_ARGS = 5 };

static int check(struct bytes b, const char *what, struct err *e)
{
    return b.n > 0 && memchr(b.p, '\0', b.n)
               ? err_set(e, ERR_CALLER, "%s: a NUL byte is in it", what)
               : 0;
}

static int check_all(const struct process_ask *a, struct err *e)
{
    if (a->shell.n == 0 && a->file.n == 0)
        return err_set(e, ERR_CALLER, "there is no program to start");
    if (a->args_n > PROCESS_ARGS_MAX)
        return err_set(e, ERR_CALLER, "args: at most %d", PROCESS_ARGS_MAX);
    if (a->tag.n > PROCESS_TAG_MAX)
        return err_set(e, ERR_CALLER, "tag: at most %d bytes", PROCESS_TAG_MAX);
    if (check(a->shell, "command", e) < 0 || check(a->file, "command", e) < 0 ||
        check(a->cwd, "cwd", e) < 0 || check(a->tag, "tag", e) < 0)
        return -1;
    for (size_t i = 0; i < a->args_n; i++)
        if (check(a->args[i].value, "args", e) < 0)
            return -1;
    for (size_t i = 0; i < a->env_n; i++)
        if (!exec_var_is_name(a->env[i].name) || check(a->env[i].value, "env", e) < 0)
            return err_set(e, ERR_CALLER, "env: a name or a value that no variable can have");
    return 0;
}

/* A name is looked for by a shell, as it would be in a command. */
static int make_argv(const struct process_ask *a, struct process_asked *k)
{
    static const char *const by_path[] = {"/bin/sh", "sh", "-c", "exec \"$0\" \"$@\""};
    bool named = a->file.n > 0 && !memchr(a->file.p, '/', a->file.n);
    size_t n = 0;

    k->argv = calloc(a->args_n + BEFORE_ARGS + 2, sizeof *k->argv);
    if (!k->argv)
        return -1;
    if (named)
        for (; n < ARRAY_LEN(by_path); n++)
            k->argv[n] = by_path[n];
    else
        k->argv[n++] = a->file.p; /* the file, then what the program sees as its name */
    k->argv[n++] = a->file.p;
    for (size_t i = 0; i < a->args_n; i++)
        k->argv[n++] = a->args[i].value.p;
    return 0;
}

static int make_cwd(const struct persistent *home, const struct process_ask *a,
                    struct process_asked *k)
{
    const char *base = persistent_cwd(home);

    if (a->cwd.n == 0)
        return 0;
    if (a->cwd.p[0] == '/')
        k->cwd = strdup(a->cwd.p);
    else if (asprintf(&k->cwd, "%s/%s", base, a->cwd.p) < 0)
        k->cwd = NULL;
    return k->cwd ? 0 : -1;
}

/* As lists of processes show it. */
static int make_config(const struct process_ask *a, struct process_asked *k)
{
    struct jw w = JW(&k->config);

    k->config = BUF_INIT(CONFIG_MAX);
    jw_object(&w);
    jw_kv_bytes(&w, "cmd", a->shell.n ? a->shell.p : a->file.p,
                a->shell.n ? a->shell.n : a->file.n);
    jw_key(&w, "args");
    jw_array(&w);
    for (size_t i = 0; i < a->args_n; i++)
        jw_bytes(&w, a->args[i].value.p, a->args[i].value.n);
    jw_array_end(&w);
    jw_key(&w, "envs");
    jw_object(&w);
    for (size_t i = 0; i < a->env_n; i++) {
        jw_key(&w, a->env[i].name.p);
        jw_bytes(&w, a->env[i].value.p, a->env[i].value.n);
    }
    jw_object_end(&w);
    if (a->cwd.n > 0)
        jw_kv_bytes(&w, "cwd", a->cwd.p, a->cwd.n);
    jw_object_end(&w);
    return k->config.failed ? -1 : 0;
}

int process_ask(const struct persistent *home, const struct process_ask *a,
                struct process_asked *ret, struct err *e)
{
    *ret = (struct process_asked){0};
    if (check_all(a, e) < 0)
        return -1;
    if ((a->shell.n == 0 && make_argv(a, ret) < 0) || make_cwd(home, a, ret) < 0 ||
        make_config(a, ret) < 0) {
        process_asked_done(ret);
        return err_set(e, ERR_HOST, "no memory for a process");
    }
    ret->order = (struct process_order){
        .command =
            {
                      .cmd = a->shell.n > 0 ? a->shell : a->file,
                      .cwd = {ret->cwd, ret->cwd ? strlen(ret->cwd) : 0},
                      .env = a->env,
                      .env_n = a->env_n,
                      .timeout_ms = a->timeout_ms,
                      .argv = ret->argv,
                      .input_open = a->input_open || a->terminal,
                      .terminal = a->terminal,
                      },
        .tag = a->tag,
        .config = {ret->config.p,                          ret->config.n                       },
    };
    return 0;
}

void process_asked_done(struct process_asked *k)
{
    free(k->argv);
    free(k->cwd);
    buf_done(&k->config);
}
