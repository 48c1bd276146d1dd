/* SPDX-License-Identifier: MIT */
/* sbx sandbox create|ls|rm|pause|resume: persistent sandboxes as a whole. */
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "cli/talk.h"

enum { BODY_MAX = 16 << 20 };

static int put_number(struct jw *w, const struct args *a, const char *option, const char *name)
{
    long n;

    if (args_number(a, option, 0, 1L << 40, -1, &n) < 0)
        return -1;
    if (n >= 0)
        jw_kv_int(w, name, n);
    return 0;
}

static void put_text(struct jw *w, const struct args *a, const char *option)
{
    const char *text = args_option(a, option);

    if (text)
        jw_kv_string(w, option, text);
}

static int write_wishes(const struct args *a, struct buf *body)
{
    struct jw w = JW(body);
    bool limits = args_option(a, "memory") || args_option(a, "disk") || args_option(a, "pids");

    jw_object(&w);
    if (a->n == 1)
        jw_kv_string(&w, "name", a->operand[0]);
    if (put_pairs(&w, a, "env", "env") < 0 || put_pairs(&w, a, "metadata", "metadata") < 0 ||
        put_number(&w, a, "timeout", "timeout") < 0 ||
        put_number(&w, a, "lifetime", "lifetime") < 0)
        return -1;
    if (limits) {
        jw_key(&w, "limits");
        jw_object(&w);
        if (put_number(&w, a, "memory", "memory_mb") < 0 ||
            put_number(&w, a, "disk", "disk_mb") < 0 || put_number(&w, a, "pids", "pids") < 0)
            return -1;
        jw_object_end(&w);
    }
    if (args_option(a, "network")) {
        jw_key(&w, "network");
        put_value(&w, args_option(a, "network"));
    }
    put_text(&w, a, "template");
    put_text(&w, a, "packages");
    put_text(&w, a, "isolation");
    jw_object_end(&w);
    return 0;
}

int cmd_sandbox_create(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(buf_done) struct buf body = BUF_INIT(BODY_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    cleanup_free char *name = NULL;
    struct json_value v;

    if (a->n > 1)
        return args_wrong(a, "one name at most");
    if (talk_open(a, &t) < 0 || write_wishes(a, &body) < 0 ||
        talk_json(&t, "POST", "/v1/sandboxes", &body, &answer, &v) < 0)
        return CMD_FAILED;
    name = member_text(v, "name");
    if (t.json)
        talk_print(v);
    else
        (void)printf("%s\n", name ? name : "");
    return 0;
}

static void put_row(struct table *t, struct json_value s)
{
    static const char *const texts[] = {"name", "id", "state", "template"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char *text = member_text(s, texts[i]);

        table_cell(t, text);
        free(text);
    }
    table_number(t, member_int(s, "processes"));
    {
        char *since = member_text(s, "created_at");

        table_age(t, since);
        free(since);
    }
}

static void list(struct json_value v, bool quiet)
{
    static const char *const head[] = {"NAME", "ID", "STATE", "TEMPLATE", "PROCESSES", "AGE", NULL};
    struct json_value all = json_member(v, "sandboxes"), s;
    struct table t;

    table_init(&t, head);
    for (size_t at = 0; all.p && json_array_next(all, &at, &s);) {
        char *name = quiet ? member_text(s, "name") : NULL;

        if (name)
            (void)printf("%s\n", name);
        else
            put_row(&t, s);
        free(name);
    }
    if (!quiet)
        table_print(&t, stdout);
    table_done(&t);
}

int cmd_sandbox_ls(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    const char *state = args_option(a, "state"), *metadata = args_option(a, "metadata");
    struct json_value v;

    if (a->n > 0)
        return args_wrong(a, NULL);
    path_add(&path, "v1", "sandboxes");
    path_query(&path, "limit", "1000");
    if (state)
        path_query(&path, "state", state);
    if (metadata)
        path_query(&path, "metadata", metadata);
    if (talk_open(a, &t) < 0 || talk_json(&t, "GET", path.p, NULL, &answer, &v) < 0)
        return CMD_FAILED;
    if (t.json)
        talk_print(v);
    else
        list(v, args_option(a, "quiet") != NULL);
    return 0;
}

/* The same for each of them; the last failure counts. */
static int each(const struct args *a, const char *method, const char *verb)
{
    cleanup_with(talk_close) struct talk t = {0};
    int status = 0;

    if (a->n == 0)
        return args_wrong(a, "which sandbox?");
    if (talk_open(a, &t) < 0)
        return CMD_FAILED;
    for (int i = 0; i < a->n; i++) {
        cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX);
        cleanup_with(http_answer_done) struct http_answer answer = {0};

        path_add(&path, "v1", "sandboxes", a->operand[i], verb);
        if (talk_ask(&t, method, path.p, NULL, &answer) < 0)
            status = CMD_FAILED;
        else if (t.json && answer.body.n)
            (void)fwrite(answer.body.p, 1, answer.body.n, stdout);
        else if (!t.json)
            (void)printf("%s\n", a->operand[i]);
    }
    return status;
}

int cmd_sandbox_rm(const struct args *a)
{
    return each(a, "DELETE", NULL);
}

int cmd_sandbox_pause(const struct args *a)
{
    return each(a, "POST", "pause");
}

int cmd_sandbox_resume(const struct args *a)
{
    return each(a, "POST", "resume");
}
