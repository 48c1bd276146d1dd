/* SPDX-License-Identifier: MIT */
/* sbx ps, kill, logs: processes of a persistent sandbox. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"
#include "cli/attach.h"
#include "cli/event_lines.h"
#include "cli/table.h"
#include "cli/talk.h"

enum { PIECE_MAX = 1 << 20 };

/* The program and its arguments, where they are known. */
static void put_command(struct buf *line, struct json_value p)
{
    cleanup_free char *command = member_text(p, "command");
    struct json_value args = json_member(json_member(p, "config"), "args"), arg;

    (void)buf_puts(line, command ? command : "");
    for (size_t at = 0; args.p && json_array_next(args, &at, &arg);) {
        (void)buf_putc(line, ' ');
        if (arg.type == JSON_STRING)
            (void)!json_decode_string(arg, JSON_LENIENT_UTF8, line);
    }
}

static void put_row(struct table *t, struct json_value p)
{
    static const char *const texts[] = {"pid", "id", "tag", "status", "exit_code"};
    cleanup_free char *since = member_text(p, "started_at");
    cleanup_with(buf_done) struct buf line = BUF_INIT(PIECE_MAX);

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char *text = member_text(p, texts[i]);

        table_cell(t, text);
        free(text);
    }
    table_age(t, since);
    put_command(&line, p);
    table_cell(t, line.p);
}

int cmd_ps(const struct args *a)
{
    static const char *const head[] = {"PID",  "ID",      "TAG",     "STATUS",
                                       "EXIT", "STARTED", "COMMAND", NULL};
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    struct json_value v, all, p;
    struct table table;

    if (a->n > 0)
        return args_wrong(a, NULL);
    if (talk_open(a, &t) < 0)
        return CMD_FAILED;
    path_sandbox(&t, &path);
    path_add(&path, "processes");
    if (talk_json(&t, "GET", path.p, NULL, &answer, &v) < 0)
        return CMD_FAILED;
    if (t.json) {
        talk_print(v);
        return 0;
    }
    all = json_member(v, "processes");
    table_init(&table, head);
    for (size_t at = 0; all.p && json_array_next(all, &at, &p);)
        if (args_option(a, "all") || member_is(p, "status", "running"))
            put_row(&table, p);
    table_print(&table, stdout);
    table_done(&table);
    return 0;
}

/* "TERM", "SIGTERM" and "15" are the same. */
static int put_signal(struct buf *body, const char *text)
{
    struct jw w = JW(body);
    char name[32];
    char *end;
    long number = strtol(text, &end, 10);

    if (!*end && (number <= 0 || number >= NSIG || !sigabbrev_np((int)number))) {
        (void)fprintf(stderr, "sbx: there is no signal %s\n", text);
        return -1;
    }
    if (!*end)
        text = sigabbrev_np((int)number);
    (void)snprintf(name, sizeof name, "%s%s", strncmp(text, "SIG", 3) == 0 ? "" : "SIG", text);
    jw_object(&w);
    jw_kv_string(&w, "signal", name);
    jw_object_end(&w);
    return 0;
}

int cmd_kill(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(buf_done) struct buf body = BUF_INIT(PIECE_MAX);
    const char *sig = args_option(a, "signal");
    int status = 0;

    if (a->n == 0)
        return args_wrong(a, "which process?");
    if ((sig && put_signal(&body, sig) < 0) || talk_open(a, &t) < 0)
        return CMD_FAILED;
    for (int i = 0; i < a->n; i++) {
        cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX);
        cleanup_with(http_answer_done) struct http_answer answer = {0};

        path_sandbox(&t, &path);
        path_add(&path, "processes", a->operand[i], sig ? "signal" : NULL);
        if (talk_ask(&t, sig ? "POST" : "DELETE", path.p, sig ? &body : NULL, &answer) < 0)
            status = CMD_FAILED;
        else if (t.json && answer.body.n)
            (void)fwrite(answer.body.p, 1, answer.body.n, stdout);
    }
    return status;
}

/* ---- logs ---- */

struct following {
    struct talk *talk;
    struct event_lines events;
    int64_t until; /* bytes of output after which it is enough; -1: all there will be */
    bool ended;
};

static void write_piece(const struct event_seen *ev, struct json_value v)
{
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(PIECE_MAX);
    struct json_value data = json_member(v, "data");

    if (data.p && data.type == JSON_STRING && base64_decode(data.p + 1, data.n - 2, &bytes) == 0 &&
        bytes.n)
        (void)!fd_write_all(strcmp(ev->name, "stderr") == 0 ? STDERR_FILENO : STDOUT_FILENO,
                            bytes.p, bytes.n);
}

static int on_event(void *user, const struct event_seen *ev)
{
    struct following *f = user;
    struct json_value v;
    struct err e;

    if (json_parse(ev->data, ev->n, 0, &v, &e) < 0)
        return 0;
    if (f->talk->json)
        (void)printf("{\"event\":\"%s\",\"id\":\"%s\",\"data\":%.*s}\n", ev->name, ev->id, (int)v.n,
                     v.p);
    else if (strcmp(ev->name, "gap") == 0)
        (void)fprintf(stderr, "sbx: %lld bytes are gone\n", (long long)member_int(v, "bytes"));
    else if (strcmp(ev->name, "end") != 0)
        write_piece(ev, v);
    (void)fflush(stdout);
    f->ended =
        strcmp(ev->name, "end") == 0 || (f->until >= 0 && strtoll(ev->id, NULL, 10) >= f->until);
    return f->ended ? -1 : 0;
}

static int on_part(void *user, const char *p, size_t n)
{
    struct following *f = user;

    return event_lines_feed(&f->events, p, n, on_event, f);
}

/* What there is, or with --follow what comes as well. */
static int follow(struct talk *t, const char *path, int64_t until)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(TALK_PATH_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    struct following f = {.talk = t, .until = until};
    struct http_request r = {.lines = {"Accept: text/event-stream"}, .part = on_part, .user = &f};
    struct err e = {0};
    int got;

    (void)buf_printf(&output, "%s/output?from=0", path);
    r.path = output.p;
    event_lines_init(&f.events, PIECE_MAX);
    got = http_ask(t->http, &r, &answer, &e);
    event_lines_done(&f.events);
    if (f.ended)
        return 0;
    if (got == 0 && (answer.status < 200 || answer.status >= 300))
        http_answer_words(&answer, &e);
    else if (got == 0)
        (void)err_set(&e, ERR_HOST, "the connection has ended before the process");
    talk_say(&e);
    return CMD_FAILED;
}

int cmd_logs(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    struct json_value v;
    int64_t bytes;

    if (a->n != 1)
        return args_wrong(a, "which process?");
    if (talk_open(a, &t) < 0)
        return CMD_FAILED;
    path_sandbox(&t, &path);
    path_add(&path, "processes", a->operand[0]);
    if (talk_json(&t, "GET", path.p, NULL, &answer, &v) < 0)
        return CMD_FAILED;
    bytes = member_int(json_member(v, "output"), "bytes");
    if (args_option(a, "follow"))
        return follow(&t, path.p, -1);
    return bytes > 0 ? follow(&t, path.p, bytes) : 0;
}
