/* SPDX-License-Identifier: MIT */
/*
 * sbx python, node, bash: lines to a live interpreter of a sandbox. What is typed becomes a cell
 * when it is complete; what it prints and shows comes as it does. Ctrl-C interrupts the cell.
 */
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/event_lines.h"
#include "cli/line_edit.h"
#include "cli/stops.h"
#include "cli/table.h"
#include "cli/talk.h"

enum { CELL_MAX = 2 << 20, EVENT_BYTES_MAX = 64 << 20 };

struct repl {
    struct talk *talk;
    const char *language;
    char *context; /* owned; id */
    struct event_lines events;
    struct http_answer refusal;
    bool stream, over, whole, failed;
    struct err e;
};

/* ---- is it complete? ---- */

/* Brackets that are open, quotes of three, and whether the last line begins a block. */
static bool is_open(const char *language, const char *text)
{
    bool python = strcmp(language, "python") == 0;
    int depth = 0;
    char quote = 0;
    bool three = false, colon = false;

    for (const char *p = text; *p; p++) {
        if (quote) {
            if (*p == '\\' && p[1])
                p++;
            else if (three && strncmp(p, (char[]){quote, quote, quote, 0}, 3) == 0)
                quote = 0, p += 2;
            else if (!three && (*p == quote || (*p == '\n' && quote != '`')))
                quote = 0;
            continue;
        }
        if (*p == '#' && python) {
            p += strcspn(p, "\n");
            if (!*p)
                break;
        }
        if (*p == '"' || *p == '\'' || (*p == '`' && !python)) {
            quote = *p;
            three = python && p[1] == quote && p[2] == quote;
            p += three ? 2 : 0;
        }
        depth += strchr("([{", *p) ? 1 : strchr(")]}", *p) ? -1 : 0;
        colon = !isspace((unsigned char)*p) ? *p == ':' || *p == '\\' : colon;
    }
    return depth > 0 || three || (quote == '`') || (python && colon);
}

/* A block of Python ends with an empty line. */
static bool is_complete(const char *language, const struct buf *text, bool last_is_empty)
{
    const char *p = text->n ? text->p : "";
    bool block = strcmp(language, "python") == 0 && strstr(p, ":\n");
    char *decorated = *p == '@' ? strchr(p, '\n') : NULL;

    if (last_is_empty)
        return true;
    if (strcmp(language, "bash") == 0)
        return text->n < 2 || text->p[text->n - 2] != '\\';
    return !block && !(decorated && !decorated[1]) && !is_open(language, p);
}

/* ---- one cell ---- */

static void print_data(struct json_value v)
{
    struct json_value data = json_member(v, "data"), key, value;
    cleanup_free char *text = member_text(data, "text/plain");

    if (text)
        (void)printf("%s%s", text, *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
    for (size_t at = 0; data.p && json_object_next(data, &at, &key, &value);)
        if (key.n > 8 && memcmp(key.p, "\"image/", 7) == 0)
            (void)printf("[%.*s]\n", (int)key.n - 2, key.p + 1);
}

static void print_error(struct json_value v)
{
    struct json_value error = json_member(v, "error");
    cleanup_free char *trace = member_text(error.p ? error : v, "traceback");
    cleanup_free char *name = member_text(error.p ? error : v, "name");
    cleanup_free char *value = member_text(error.p ? error : v, "value");

    if (trace && *trace && *trace != '[')
        (void)fprintf(stderr, "%s\n", trace);
    else
        (void)fprintf(stderr, "%s: %s\n", name ? name : "error", value ? value : "");
}

static int on_event(void *user, const struct event_seen *ev)
{
    struct repl *r = user;
    struct json_value v;
    struct err e;

    if (json_parse(ev->data, ev->n, 0, &v, &e) < 0)
        return 0;
    if (r->talk->json) {
        (void)printf("{\"event\":\"%s\",\"data\":%.*s}\n", ev->name, (int)v.n, v.p);
    } else if (strcmp(ev->name, "stdout") == 0 || strcmp(ev->name, "stderr") == 0) {
        cleanup_free char *text = member_text(v, "text");

        (void)fputs(text ? text : "", ev->name[3] == 'o' ? stdout : stderr);
    } else if (strcmp(ev->name, "display") == 0) {
        print_data(v);
    } else if (strcmp(ev->name, "error") == 0) {
        print_error(v);
    }
    if (strcmp(ev->name, "end") == 0)
        r->failed = !member_is(v, "status", "ok");
    (void)fflush(stdout);
    return 0;
}

static int on_head(void *user, const struct http_head *head)
{
    struct repl *r = user;

    r->refusal.status = head->status;
    r->stream = head->status == 200;
    return 0;
}

static int on_part(void *user, const char *p, size_t n)
{
    struct repl *r = user;

    return r->stream ? event_lines_feed(&r->events, p, n, on_event, r)
                     : buf_put(&r->refusal.body, p, n);
}

static void on_done(void *user, const struct http_end *end)
{
    struct repl *r = user;

    r->over = true;
    r->whole = end->whole;
    if (end->e)
        r->e = *end->e;
}

static void interrupt(struct repl *r)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    struct err e;

    path_sandbox(r->talk, &path);
    path_add(&path, "contexts", r->context, "interrupt");
    (void)!http_ask(r->talk->http, &(struct http_request){.method = "POST", .path = path.p},
                    &answer, &e);
}

/* -1 after saying why: there is no interpreter any more, or no daemon. */
static int run_cell(struct repl *r, const char *code, int stops)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX), body = BUF_INIT(2 * CELL_MAX);
    struct http_request ask = {.lines = {"Accept: text/event-stream"},
                               .head = on_head,
                               .part = on_part,
                               .done = on_done,
                               .user = r};
    struct http_exchange *x;
    struct jw w = JW(&body);
    int got, sig;

    jw_object(&w);
    jw_kv_string(&w, "code", code);
    jw_kv_string(&w, "context", r->context);
    jw_kv_int(&w, "timeout", 0);
    jw_object_end(&w);
    path_sandbox(r->talk, &path);
    path_add(&path, "cells");
    ask.path = path.p;
    ask.body = body.p;
    ask.body_n = body.n;
    r->over = r->whole = r->stream = r->failed = false;
    r->refusal = (struct http_answer){.body = BUF_INIT(CELL_MAX)};
    event_lines_init(&r->events, EVENT_BYTES_MAX);
    got = http_start(r->talk->http, &ask, &x, &r->e);
    while (got == 0 && !r->over) {
        struct pollfd fd = {.fd = stops, .events = POLLIN};

        got = http_wait(r->talk->http, &fd, 1, -1, &r->e);
        sig = stops_take(stops);
        if (sig == SIGINT)
            interrupt(r);
        else if (sig && sig != SIGWINCH)
            got = err_set(&r->e, ERR_CALLER, "ended by a signal");
    }
    event_lines_done(&r->events);
    if (got == 0 && r->whole && !r->stream) {
        http_answer_words(&r->refusal, &r->e);
        got = -1;
    } else if (got == 0 && !r->whole) {
        got = -1;
    }
    http_answer_done(&r->refusal);
    if (got < 0)
        talk_say(&r->e);
    return got;
}

/* ---- the conversation ---- */

static int read_cell(struct repl *r, struct line_edit *l, struct buf *cell)
{
    cleanup_with(buf_done) struct buf line = BUF_INIT(CELL_MAX);
    char first[32];
    enum line_end end;

    (void)snprintf(first, sizeof first, "%s> ", r->language);
    buf_clear(cell);
    do {
        end = line_edit_read(l, cell->n ? "... " : first, &line);
        if (end == LINE_STOPPED) {
            buf_clear(cell);
            continue;
        }
        if (end == LINE_OVER)
            return cell->n ? 0 : -1;
        line_edit_remember(l, line.p ? line.p : "");
        (void)buf_printf(cell, "%s\n", line.p ? line.p : "");
    } while (end == LINE_STOPPED || !is_complete(r->language, cell, line.n == 0));
    return 0;
}

static int converse(struct repl *r, int stops)
{
    cleanup_with(buf_done) struct buf cell = BUF_INIT(CELL_MAX);
    struct line_edit *l = line_edit_new();
    int got = l ? 0 : -1;

    while (got == 0 && read_cell(r, l, &cell) == 0)
        if (cell.n > strspn(cell.p, " \n"))
            got = run_cell(r, cell.p, stops);
    line_edit_free(l);
    return got < 0 ? CMD_FAILED : 0;
}

/* All of standard input as one cell. */
static int run_input(struct repl *r, int stops)
{
    cleanup_with(buf_done) struct buf code = BUF_INIT(CELL_MAX);
    char part[16384];
    ssize_t n;

    while ((n = read(STDIN_FILENO, part, sizeof part)) > 0)
        if (buf_put(&code, part, (size_t)n) < 0) {
            (void)fprintf(stderr, "sbx: standard input is too long\n");
            return CMD_FAILED;
        }
    if (run_cell(r, code.p ? code.p : "", stops) < 0)
        return CMD_FAILED;
    return r->failed ? 1 : 0;
}

/* An interpreter of our own, unless one was named; it ends with us. */
static int context(struct repl *r, const char *method)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX), body = BUF_INIT(4096);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    struct json_value v;
    struct jw w = JW(&body);

    path_sandbox(r->talk, &path);
    path_add(&path, "contexts", r->context);
    if (r->context)
        return talk_ask(r->talk, method, path.p, NULL, &answer);
    jw_object(&w);
    jw_kv_string(&w, "language", r->language);
    jw_object_end(&w);
    if (talk_json(r->talk, method, path.p, &body, &answer, &v) < 0)
        return -1;
    r->context = member_text(v, "id");
    return r->context ? 0 : -1;
}

static int repl(const struct args *a, const char *language)
{
    cleanup_with(talk_close) struct talk t = {0};
    struct repl r = {.talk = &t, .language = language};
    const char *named = args_option(a, "context"), *code = args_option(a, "code");
    cleanup_close int stops = -1;
    int status;

    if (a->n > 0)
        return args_wrong(a, NULL);
    if (talk_open(a, &t) < 0)
        return CMD_FAILED;
    r.context = named ? strdup(named) : NULL;
    if ((!named && context(&r, "POST") < 0) || (stops = stops_open()) < 0)
        return CMD_FAILED;
    if (code)
        status = run_cell(&r, code, stops) < 0 ? CMD_FAILED : r.failed ? 1 : 0;
    else
        status = isatty(STDIN_FILENO) ? converse(&r, stops) : run_input(&r, stops);
    if (!named)
        (void)!context(&r, "DELETE");
    free(r.context);
    return status;
}

int cmd_python(const struct args *a)
{
    return repl(a, "python");
}

int cmd_node(const struct args *a)
{
    return repl(a, "javascript");
}
