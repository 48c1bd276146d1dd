/* SPDX-License-Identifier: MIT */
/*
 * sbx exec, sbx sh: a process of a persistent sandbox whose streams are ours.
 */
#include <string.h>
#include <unistd.h>

#include "cli/attach.h"

enum { DESCRIPTION_MAX = 64 << 20 };

/* A process with these arguments; its id in *ret, owned. -1 after saying why. */
static int start(struct talk *t, bool input, char **ret)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX),
                                      body = BUF_INIT(DESCRIPTION_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    const char *cwd = args_option(t->args, "cwd");
    struct json_value v;
    struct jw w = JW(&body);
    long timeout = 0;

    jw_object(&w);
    jw_key(&w, "argv");
    jw_array(&w);
    for (int i = 0; i < t->args->n; i++)
        jw_string(&w, t->args->operand[i]);
    jw_array_end(&w);
    jw_kv_bool(&w, "stdin", input);
    if (cwd)
        jw_kv_string(&w, "cwd", cwd);
    if (put_pairs(&w, t->args, "env", "env") < 0 ||
        args_number(t->args, "timeout", 1, 1 << 24, 0, &timeout) < 0)
        return -1;
    if (timeout)
        jw_kv_int(&w, "timeout", timeout);
    jw_object_end(&w);
    path_sandbox(t, &path);
    path_add(&path, "processes");
    if (talk_json(t, "POST", path.p, &body, &answer, &v) < 0)
        return -1;
    if (args_option(t->args, "detach") && t->json)
        talk_print(v);
    *ret = member_text(v, "id");
    return *ret ? 0 : -1;
}

int cmd_exec(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX);
    cleanup_free char *id = NULL;
    bool detach = args_option(a, "detach") != NULL;

    if (a->n == 0)
        return args_wrong(a, "which program?");
    if (talk_open(a, &t) < 0 || start(&t, !detach, &id) < 0)
        return CMD_FAILED;
    if (detach) {
        if (!t.json)
            (void)printf("%s\n", id);
        return 0;
    }
    path_sandbox(&t, &path);
    path_add(&path, "processes", id, "output");
    path_query(&path, "from", "0");
    return attach_run(&t, &(struct attach){.path = path.p, .input = true});
}

/* What /bin/sh runs as these arguments: each in quotes. */
static void put_command(struct buf *out, char *const *words)
{
    for (; *words; words++) {
        (void)buf_puts(out, "'");
        for (const char *p = *words; *p; p++)
            (void)(*p == '\'' ? buf_puts(out, "'\\''") : buf_putc(out, *p));
        (void)buf_puts(out, words[1] ? "' " : "'");
    }
}

int cmd_sh(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX),
                                      command = BUF_INIT(TALK_PATH_MAX);
    const char *cwd = args_option(a, "cwd"), *process = args_option(a, "attach");

    if (process && a->n > 0)
        return args_wrong(a, "--attach goes back to a process, so there is no command to start");
    if (!isatty(STDIN_FILENO))
        return args_wrong(a, "standard input is no terminal; sbx exec runs a command without one");
    if (talk_open(a, &t) < 0)
        return CMD_FAILED;
    path_sandbox(&t, &path);
    path_add(&path, "terminals", process);
    if (!process) {
        attach_put_size(&path);
        put_command(&command, a->operand);
        path_query(&path, "keep", args_option(a, "keep") ? "true" : "false");
        if (command.n)
            path_query(&path, "command", command.p);
        if (cwd)
            path_query(&path, "cwd", cwd);
    }
    return attach_run(&t, &(struct attach){.path = path.p,
                                           .terminal = true,
                                           .input = true,
                                           .keeps = process || args_option(a, "keep")});
}
