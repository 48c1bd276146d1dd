/* SPDX-License-Identifier: MIT */
/*
 * /v1/sandboxes/{id}/processes: processes that outlive the request that started them. How their
 * output is read, and how a WebSocket carries both ways, is in api_attach.c.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/jw.h"
#include "http/api/api.h"
#include "http/api/problem.h"
#include "http/api/sandboxes/processes.h"
#include "http/server/reply.h"

enum {
    ONE_MAX = 1024 + PROCESS_TAG_MAX * 6, /* a process in JSON, without its command */
    ENV_MAX = 1000,
    TIMEOUT_MAX_S = 30 * 86400,
    MS_PER_S = 1000,
    INPUT_HIGH = 256 << 10, /* bytes that wait before the client is not read any more */
};

#define ROUND_UP 0.999 /* to whole milliseconds: 0 stands for no limit */

/* ---- as JSON ---- */

size_t process_json_room(const struct process *p)
{
    return ONE_MAX + p->command_n * 6 + (p->config ? strlen(p->config) : 0);
}

static void write_end(struct jw *w, const struct process *p)
{
    bool ended = !process_runs(p);

    jw_key(w, "exit_code");
    if (ended)
        jw_int(w, p->end.exit_code);
    else
        jw_null(w);
    jw_kv_string(w, "reason", ended ? end_reason_name(p->end.reason) : NULL);
    jw_key(w, "signal");
    if (ended && p->end.signal)
        jw_int(w, p->end.signal);
    else
        jw_null(w);
    jw_kv_string(w, "started_at", p->started_at);
    jw_kv_string(w, "ended_at", ended ? p->completed_at : NULL);
}

void process_write_json(struct jw *w, const struct process *p)
{
    jw_object(w);
    jw_kv_int(w, "pid", p->pid);
    jw_kv_string(w, "id", p->id);
    jw_kv_string(w, "tag", p->tag[0] ? p->tag : NULL);
    jw_kv_bytes(w, "command", p->command, p->command_n);
    jw_key(w, "config");
    if (p->config)
        jw_raw(w, p->config, strlen(p->config));
    else
        jw_null(w);
    jw_key(w, "terminal");
    if (p->terminal) {
        jw_object(w);
        jw_kv_int(w, "columns", p->terminal & 0xffff);
        jw_kv_int(w, "rows", p->terminal >> 16);
        jw_object_end(w);
    } else {
        jw_null(w);
    }
    jw_kv_string(w, "status", process_status_name(p->status));
    write_end(w, p);
    jw_key(w, "output");
    jw_object(w);
    jw_kv_int(w, "from", (int64_t)p->output.ring.first);
    jw_kv_int(w, "bytes", (int64_t)p->output.ring.next);
    jw_kv_bool(w, "closed", p->output.closed);
    jw_object_end(w);
    jw_object_end(w);
}

static void reply_process(struct http_call *c, int status, const struct process *p)
{
    struct buf body = BUF_INIT(process_json_room(p));
    struct jw w = JW(&body);

    process_write_json(&w, p);
    http_reply_json(c, status, &body);
}

/* ---- finding ---- */

struct process *process_of(struct http_call *c)
{
    const struct persistent *home = api_sandbox(c);
    const char *text = http_request(c)->param[1];
    size_t n = strlen(text);
    struct process *p = NULL;
    struct err e;

    if (!home)
        return NULL;
    if (n <= 10 && strspn(text, "0123456789") == n)
        p = process_by_pid(home, strtoll(text, NULL, 10));
    if (!p)
        p = process_by_id(home, text, n);
    if (!p)
        p = process_by_tag(home, text, n);
    if (p)
        return p;
    (void)err_set(&e, ERR_ABSENT, "there is no process '%.64s' in this sandbox", text);
    http_reply_error(c, &e);
    return NULL;
}

static void reply_ended(struct http_call *c)
{
    problem_refuse(c, 409, "The process has ended");
}

/* ---- start ---- */

struct process_body {
    struct bytes command, cwd, tag;
    struct shape_strings argv, env;
    bool input;
    struct terminal_body {
        int64_t columns, rows; /* 0: not given */
    } terminal;
    double timeout_s;
};

/* clang-format off */
#define AT(member) offsetof(struct terminal_body, member)
static const struct shape_field size_fields[] = {
    {"columns", SHAPE_INT, SHAPE_REQUIRED, AT(columns), 1, PROCESS_TERMINAL_MAX, .help = "of the terminal"},
    {"rows", SHAPE_INT, SHAPE_REQUIRED, AT(rows), 1, PROCESS_TERMINAL_MAX, .help = "of the terminal"},
};
#undef AT
const struct shape process_size_shape = {size_fields, ARRAY_LEN(size_fields), 0, "TerminalSize"};
#define AT(member) offsetof(struct process_body, member)
static const struct shape_field process_fields[] = {
    {"command", SHAPE_STRING, 0, AT(command), .help = "text for /bin/sh; either this or argv"},
    {"argv", SHAPE_LIST, 0, AT(argv), 0, PROCESS_ARGS_MAX, .help = "a program and its arguments; a name without a slash is looked for in PATH"},
    {"cwd", SHAPE_STRING, 0, AT(cwd), .help = "default: where commands of the sandbox begin; relative: below that"},
    {"env", SHAPE_STRINGS, 0, AT(env), 0, ENV_MAX, .help = "variables of this process, over those of the sandbox"},
    {"tag", SHAPE_STRING, 0, AT(tag), .help = "a name of your own to find it by"},
    {"stdin", SHAPE_BOOL, 0, AT(input), .help = "keep standard input open, to be written later; default false: it is empty"},
    {"terminal", SHAPE_NESTED, 0, AT(terminal), .inner = &process_size_shape, .help = "give it a terminal of that size"},
    {"timeout", SHAPE_NUMBER, 0, AT(timeout_s), 0, TIMEOUT_MAX_S, .help = "seconds after which it and everything it started is killed; default 0: never"},
};
#undef AT
/* clang-format on */
const struct shape process_shape = {process_fields, ARRAY_LEN(process_fields), SHAPE_NULLS,
                                    "ProcessStart"};

struct starting {
    struct activity activity;
    struct http_call *call; /* NULL: its client has left */
    struct process_asked asked;
    struct shaping shaping;
};

static void starting_free(struct starting *s)
{
    activity_end(&s->activity);
    process_asked_done(&s->asked);
    shaping_done(&s->shaping);
    free(s);
}

static void starting_drop(struct activity *a)
{
    starting_free((struct starting *)((char *)a - offsetof(struct starting, activity)));
}

void process_reply_fault(struct http_call *c, enum run_fault at, const char *words)
{
    struct err e;

    switch (at) {
    case RUN_NO_DIRECTORY:
        (void)err_set(&e, ERR_CALLER, "cwd: there is no such directory in the sandbox");
        break;
    case RUN_BUSY:
        (void)err_set(&e, ERR_BUSY, "the sandbox has no process left");
        break;
    case RUN_LOST:
        (void)err_set(&e, ERR_ABSENT, "the sandbox has ended");
        break;
    case RUN_NO_START:
    default:
        (void)err_set(&e, ERR_CALLER, "%s", words);
        break;
    }
    http_reply_error(c, &e);
}

static void on_started(void *user, struct process *p, const struct run_result *why)
{
    struct starting *s = user;
    struct http_call *c = s->call;

    if (c) {
        http_on_gone(c, NULL, NULL);
        if (p)
            reply_process(c, 201, p);
        else
            process_reply_fault(c, why->fault_at,
                                why->fault[0] ? why->fault : "the process cannot be started");
    }
    starting_free(s);
}

/* The process goes on without it. */
static void on_left(void *user)
{
    struct starting *s = user;

    s->call = NULL;
}

static int ask(const struct persistent *home, const struct process_body *b, struct starting *s,
               struct err *e)
{
    struct process_ask a = {
        .shell = b->command,
        .env = b->env.v,
        .env_n = b->env.n,
        .cwd = b->cwd,
        .tag = b->tag,
        .input_open = b->input,
        .terminal = plan_terminal((uint16_t)b->terminal.columns, (uint16_t)b->terminal.rows),
        .timeout_ms = (uint64_t)(b->timeout_s * MS_PER_S + ROUND_UP),
    };

    if ((b->command.n > 0) == (b->argv.n > 0))
        return err_set(e, ERR_CALLER, "either 'command' or 'argv' must be given");
    if (b->tag.n > 0 && !api_id_is_valid(b->tag.p, b->tag.n))
        return err_set(e, ERR_CALLER, "tag: [A-Za-z0-9._-]{1,128}, not starting with a dot");
    if (b->argv.n > 0) {
        a.file = b->argv.v[0].value;
        a.args = b->argv.v + 1;
        a.args_n = b->argv.n - 1;
    }
    return process_ask(home, &a, &s->asked, e);
}

void api_process_create(struct http_call *c)
{
    struct persistent *home = api_sandbox(c);
    struct process_body body = {0};
    struct starting *s = home ? calloc(1, sizeof *s) : NULL;
    enum run_fault at = RUN_NO_START;
    struct err e;

    if (!home)
        return;
    if (!s) {
        reply_status(c, 503);
        return;
    }
    s->call = c;
    if (!dialect_decode(c, &process_shape, &body, &s->shaping)) {
        starting_free(s);
        return;
    }
    if (ask(home, &body, s, &e) < 0) {
        api_reply_wrong(c, &e);
        starting_free(s);
        return;
    }
    activity_begin(home, &s->activity, starting_drop);
    http_on_gone(c, on_left, s);
    if (process_start(home, &s->asked.order, on_started, s, &at, &e) == 0)
        return;
    http_on_gone(c, NULL, NULL);
    process_reply_fault(c, at, e.text);
    starting_free(s);
}

/* ---- list, look at, end ---- */

void api_processes_list(struct http_call *c)
{
    const struct persistent *home = api_sandbox(c);
    struct buf body = BUF_INIT(ONE_MAX);
    struct jw w = JW(&body);
    const struct process *p;

    if (!home)
        return;
    TAILQ_FOREACH(p, &home->processes.list, link)
    body.max += process_json_room(p);
    (void)buf_reserve(&body, body.max); /* may be large: it is not to be moved while it grows */
    jw_object(&w);
    jw_key(&w, "processes");
    jw_array(&w);
    TAILQ_FOREACH(p, &home->processes.list, link)
    process_write_json(&w, p);
    jw_array_end(&w);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

void api_process_get(struct http_call *c)
{
    const struct process *p = process_of(c);

    if (p)
        reply_process(c, 200, p);
}

void api_process_delete(struct http_call *c)
{
    struct process *p = process_of(c);
    struct err e;

    if (!p)
        return;
    if (process_kill(p, &e) < 0)
        reply_ended(c);
    else
        http_reply(c, 204, NULL, NULL);
}

/* ---- signals, size ---- */

int process_signal_number(const char *text, size_t n)
{
    char name[16];
    long number;

    if (n == 0 || n >= sizeof name)
        return 0;
    memcpy(name, text, n);
    name[n] = '\0';
    if (strspn(name, "0123456789") == n) {
        number = strtol(name, NULL, 10);
        return number < NSIG ? (int)number : 0;
    }
    for (int i = 1; i < NSIG; i++) {
        const char *known = sigabbrev_np(i);

        if (known && (strcasecmp(known, name) == 0 ||
                      (strncasecmp(name, "SIG", 3) == 0 && strcasecmp(known, name + 3) == 0)))
            return i;
    }
    return 0;
}

struct signal_body {
    struct bytes signal;
    int to;
};

/* clang-format off */
static const char *const receivers[] = {"group", "process", NULL};
#define AT(member) offsetof(struct signal_body, member)
static const struct shape_field signal_fields[] = {
    {"signal", SHAPE_STRING, SHAPE_REQUIRED, AT(signal), .help = "SIGTERM, SIGKILL, SIGINT, ... or its number as a text"},
    {"to", SHAPE_CHOICE, 0, AT(to), .words = receivers, .help = "the process and its group (default), or the process alone"},
};
#undef AT
/* clang-format on */
const struct shape process_signal_shape = {signal_fields, ARRAY_LEN(signal_fields), SHAPE_NULLS,
                                           "ProcessSignal"};

void api_process_signal(struct http_call *c)
{
    struct process *p = process_of(c);
    struct signal_body b = {0};
    struct shaping s;
    struct err e;
    int number;

    if (!p)
        return;
    if (dialect_decode(c, &process_signal_shape, &b, &s)) {
        number = process_signal_number(b.signal.p, b.signal.n);
        if (number == 0) {
            (void)err_set(&e, ERR_CALLER, "signal: there is no such signal");
            api_reply_wrong(c, &e);
        } else if (process_signal(p, number, b.to == 0) < 0) {
            reply_ended(c);
        } else {
            http_reply(c, 204, NULL, NULL);
        }
    }
    shaping_done(&s);
}

void api_process_resize(struct http_call *c)
{
    struct process *p = process_of(c);
    struct terminal_body b = {0};
    struct shaping s;

    if (!p)
        return;
    if (dialect_decode(c, &process_size_shape, &b, &s)) {
        if (process_resize(p, plan_terminal((uint16_t)b.columns, (uint16_t)b.rows)) == 0)
            http_reply(c, 204, NULL, NULL);
        else if (process_runs(p))
            problem_refuse(c, 409, "The process has no terminal");
        else
            reply_ended(c);
    }
    shaping_done(&s);
}

/* ---- standard input ---- */

struct feeding {
    struct activity activity;
    struct http_call *call;
    char id[PROCESS_ID_MAX + 1];
    struct process_writer writer;
    bool whole;  /* the body has come */
    bool closes; /* then standard input ends */
};

static void feeding_free(struct feeding *f)
{
    process_writer_leave(&f->writer);
    activity_end(&f->activity);
    free(f);
}

static void feeding_drop(struct activity *a)
{
    feeding_free((struct feeding *)((char *)a - offsetof(struct feeding, activity)));
}

static void feeding_gone(void *user)
{
    feeding_free(user);
}

/* The call is not heard of any more. */
static struct http_call *feeding_over(struct feeding *f)
{
    struct http_call *c = f->call;

    http_on_gone(c, NULL, NULL);
    http_on_body(c, NULL, NULL, NULL);
    feeding_free(f);
    return c;
}

static void refuse_input(struct feeding *f)
{
    problem_refuse(feeding_over(f), 409,
                   "Standard input is closed, was never open, or is not read by any process");
}

static void input_done(struct feeding *f)
{
    struct process *p = process_by_id(f->activity.home, f->id, strlen(f->id));

    if (f->closes && p)
        (void)!process_input_end(p);
    http_reply(feeding_over(f), 204, NULL, NULL);
}

static void on_written(void *user, bool taken)
{
    struct feeding *f = user;

    if (!taken)
        refuse_input(f);
    else if (f->whole)
        input_done(f);
    else
        http_body_resume(f->call);
}

static int on_data(void *user, const char *bytes, size_t n)
{
    struct feeding *f = user;
    struct process *p = process_by_id(f->activity.home, f->id, strlen(f->id));
    enum run_input r;

    process_writer_leave(&f->writer);
    r = p ? process_write(p, bytes, n, &f->writer, on_written, f) : RUN_INPUT_CLOSED;
    if (r == RUN_INPUT_CLOSED)
        refuse_input(f);
    else if (r == RUN_INPUT_FULL)
        problem_refuse(feeding_over(f), 503, "Too many bytes wait for the process to read them");
    else if (f->writer.process && process_input_waiting(p) >= INPUT_HIGH)
        http_body_pause(f->call);
    return 0;
}

static void on_data_end(void *user)
{
    struct feeding *f = user;

    f->whole = true;
    if (!f->writer.process)
        input_done(f);
}

void api_process_input(struct http_call *c)
{
    struct process *p = process_of(c);
    struct feeding *f = p ? calloc(1, sizeof *f) : NULL;
    char close[8] = "";

    if (!p)
        return;
    if (!f) {
        reply_status(c, 503);
        return;
    }
    f->call = c;
    f->closes = http_query(c, "close", close, sizeof close) && strcmp(close, "true") == 0;
    memcpy(f->id, p->id, sizeof f->id);
    activity_begin(p->home, &f->activity, feeding_drop);
    http_on_gone(c, feeding_gone, f);
    http_on_body(c, on_data, on_data_end, f);
}

void api_process_input_end(struct http_call *c)
{
    struct process *p = process_of(c);

    if (!p)
        return;
    if (process_input_end(p) == 0)
        http_reply(c, 204, NULL, NULL);
    else if (p->terminal && process_runs(p))
        problem_refuse(c, 409, "The input of a terminal does not end; send it Ctrl+D (0x04)");
    else
        problem_refuse(c, 409, "Standard input is closed, or was never open");
}
