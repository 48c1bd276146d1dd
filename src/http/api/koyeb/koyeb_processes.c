/* SPDX-License-Identifier: MIT */
/* /start_process /list_processes /kill_process /process_logs_streaming */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "app/sandbox/process.h"
#include "http/api/api.h"
#include "http/api/koyeb/koyeb.h"
#include "http/server/sse.h"

enum {
    ESCAPE_FACTOR = 6, /* one byte becomes at most \u00XX */
    REPLY_SLACK = 512,
    ID_MAX = 1024, /* of a process, in a request */
    NUMBER_MAX = 24,
    STAMP_MAX = 48,
};

/* ---- /start_process ---- */

struct starting {
    struct activity activity;
    struct http_call *call;
    struct koyeb_body body;
};

static void starting_free(struct starting *s)
{
    activity_end(&s->activity);
    koyeb_body_done(&s->body);
    free(s);
}

static void starting_drop(struct activity *a)
{
    starting_free((struct starting *)((char *)a - offsetof(struct starting, activity)));
}

static void reply_started(struct http_call *c, const struct process *p, const char *why)
{
    struct buf body = BUF_INIT(REPLY_SLACK + (why ? strlen(why) * ESCAPE_FACTOR : 0));
    struct jw w = koyeb_writer(&body, false);

    jw_object(&w);
    jw_kv_string(&w, "id", p ? p->id : "");
    jw_kv_int(&w, "pid", p ? p->pid : 0);
    jw_kv_string(&w, "status", p ? process_status_name(p->status) : "");
    if (why)
        jw_kv_string(&w, "error", why);
    jw_object_end(&w);
    http_reply_json(c, p ? 201 : 500, &body);
}

static void refuse(struct starting *s, enum run_fault at, const char *words)
{
    char text[540];

    if (at == RUN_NO_DIRECTORY || at == RUN_BUSY) {
        koyeb_reply_fault(s->call, at, &s->body);
        return;
    }
    (void)snprintf(text, sizeof text, "failed to start command: %s", words);
    reply_started(s->call, NULL, text);
}

static void on_started(void *user, struct process *p, const struct run_result *why)
{
    struct starting *s = user;
    char words[128] = "the sandbox has ended";

    if (p) {
        reply_started(s->call, p, NULL);
    } else {
        if (why->fault_sys > 0)
            koyeb_sys_words(why->fault_sys, words);
        refuse(s, why->fault_at, words);
    }
    starting_free(s);
}

void api_start_process(struct http_call *c)
{
    struct starting *s = calloc(1, sizeof *s);
    struct process_order start;
    enum run_fault at;
    struct persistent *p;
    struct err e;

    if (!s) {
        koyeb_no_memory(c);
        return;
    }
    s->call = c;
    if (!koyeb_body(c, &koyeb_command, &s->body)) {
        starting_free(s);
        return;
    }
    if (s->body.cmd.n == 0) {
        koyeb_wrong(c, "Command is required");
        starting_free(s);
        return;
    }
    p = koyeb_sandbox(c);
    if (!p) {
        starting_free(s);
        return;
    }
    start = (struct process_order){.command = koyeb_order(&s->body), .lines = true};
    activity_begin(p, &s->activity, starting_drop);
    if (process_start(p, &start, on_started, s, &at, &e) < 0) {
        refuse(s, at, e.text);
        starting_free(s);
    }
}

/* ---- /list_processes ---- */

static void write_process(struct jw *w, const struct process *p)
{
    bool ended = p->status != PROCESS_RUNNING;

    jw_object(w);
    jw_kv_bytes(w, "command", p->command, p->command_n);
    jw_kv_string(w, "id", p->id);
    jw_kv_int(w, "pid", p->pid);
    jw_kv_string(w, "status", process_status_name(p->status));
    jw_key(w, "exit_code");
    if (ended)
        jw_int(w, p->end.exit_code);
    else
        jw_null(w);
    jw_kv_string(w, "started_at", p->started_at);
    jw_kv_string(w, "completed_at", ended ? p->completed_at : NULL);
    jw_object_end(w);
}

void api_list_processes(struct http_call *c)
{
    struct persistent *home = koyeb_sandbox(c);
    struct buf body = BUF_INIT(REPLY_SLACK);
    struct jw w = koyeb_writer(&body, false);
    struct process *p;

    if (!home)
        return;
    TAILQ_FOREACH(p, &home->processes.list, link)
    body.max += p->command_n * ESCAPE_FACTOR + REPLY_SLACK;
    jw_object(&w);
    jw_key(&w, "processes");
    jw_array(&w);
    TAILQ_FOREACH(p, &home->processes.list, link)
    if (p->lines)
        write_process(&w, p);
    jw_array_end(&w);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

/* ---- /kill_process ---- */

static void reply_killed(struct http_call *c, const char *error, size_t n)
{
    struct buf body = BUF_INIT(n * ESCAPE_FACTOR + REPLY_SLACK);
    struct jw w = koyeb_writer(&body, false);

    jw_object(&w);
    jw_kv_bool(&w, "success", !error);
    if (error)
        jw_kv_bytes(&w, "error", error, n);
    else
        jw_kv_string(&w, "message", "Process killed successfully");
    jw_object_end(&w);
    http_reply_json(c, error ? 400 : 200, &body);
}

static void put_not_found(struct buf *out, const char *id, size_t n)
{
    *out = BUF_INIT(n + 64);
    (void)buf_puts(out, "process not found: ");
    (void)buf_put(out, id, n);
}

static void kill_process(struct http_call *c, const struct persistent *home, struct bytes id)
{
    struct process *p = process_of_lines(home, id.p, id.n);
    struct buf words;
    struct err e;

    if (!p) {
        put_not_found(&words, id.p, id.n);
        reply_killed(c, words.p, words.n);
        buf_done(&words);
    } else if (process_kill(p, &e) < 0) {
        reply_killed(c, e.text, strlen(e.text));
    } else {
        reply_killed(c, NULL, 0);
    }
}

void api_kill_process(struct http_call *c)
{
    struct koyeb_body body;
    struct persistent *home;

    if (!koyeb_body(c, &koyeb_id, &body)) {
        koyeb_body_done(&body);
        return;
    }
    if (body.id.n == 0) {
        koyeb_wrong(c, "Process ID is required");
    } else {
        home = koyeb_sandbox(c);
        if (home)
            kill_process(c, home, body.id);
    }
    koyeb_body_done(&body);
}

/* ---- /process_logs_streaming ---- */

struct following {
    struct activity activity;
    struct sse sse;
    struct logreader reader;
};

static void following_free(struct following *f)
{
    logreader_detach(&f->reader);
    activity_end(&f->activity);
    free(f);
}

static void following_drop(struct activity *a)
{
    following_free((struct following *)((char *)a - offsetof(struct following, activity)));
}

/* RFC 3339 in UTC, with as many digits of the fraction as it has. */
static void put_stamp(struct jw *w, const struct logline *l)
{
    char text[STAMP_MAX];
    struct tm tm;
    time_t at = (time_t)l->at_s;
    size_t n;

    (void)gmtime_r(&at, &tm);
    n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(text + n, sizeof text - n, ".%09d", l->at_ns);
    while (text[n - 1] == '0')
        n--;
    n -= text[n - 1] == '.';
    (void)snprintf(text + n, sizeof text - n, "Z");
    jw_kv_string(w, "timestamp", text);
}

static void send_line(struct following *f, const struct logline *l, uint64_t number)
{
    struct buf json = BUF_INIT((size_t)l->n * ESCAPE_FACTOR + REPLY_SLACK);
    struct jw w = koyeb_writer(&json, true);
    char id[NUMBER_MAX];

    (void)snprintf(id, sizeof id, "%llu", (unsigned long long)number);
    jw_object(&w);
    put_stamp(&w, l);
    jw_kv_string(&w, "stream", l->stream == RUN_OUT ? "stdout" : "stderr");
    jw_kv_bytes(&w, "data", l->text, l->n);
    jw_object_end(&w);
    if (!json.failed)
        (void)sse_send(&f->sse, "log", id, json.p, json.n);
    buf_done(&json);
}

static void send_gap(struct following *f, uint64_t lines)
{
    char json[64];
    int n = snprintf(json, sizeof json, "{\"dropped\":%llu}", (unsigned long long)lines);

    (void)sse_send(&f->sse, "gap", NULL, json, (size_t)n);
}

/* As much as the client takes. False: the stream has ended and is freed. */
static bool pump(struct following *f)
{
    static const char words[] = "{\"message\": \"stream ended\"}";
    const struct logline *l;
    uint64_t number, gap;

    while (!f->sse.full) {
        l = logreader_next(&f->reader, &number, &gap);
        if (gap)
            send_gap(f, gap);
        else if (l)
            send_line(f, l, number);
        else
            break;
    }
    if (f->sse.full || !logreader_at_end(&f->reader))
        return true;
    http_on_gone(f->sse.call, NULL, NULL);
    http_on_drain(f->sse.call, NULL, NULL);
    (void)sse_send(&f->sse, "complete", NULL, words, sizeof words - 1);
    sse_end(&f->sse);
    following_free(f);
    return false;
}

static void on_wake(void *user)
{
    (void)pump(user);
}

static void on_drained(void *user)
{
    struct following *f = user;

    sse_drained(&f->sse);
    (void)pump(f);
}

static void on_gone(void *user)
{
    following_free(user);
}

static void reply_unknown(struct http_call *c, const char *id)
{
    struct buf words, json = BUF_INIT(ID_MAX * ESCAPE_FACTOR + REPLY_SLACK);
    struct jw w = koyeb_writer(&json, true);
    struct sse sse;

    put_not_found(&words, id, strlen(id));
    (void)buf_puts(&json, "{\"error\": ");
    jw_bytes(&w, words.p, words.n);
    (void)buf_putc(&json, '}');
    sse_begin(&sse, c);
    (void)sse_send(&sse, "error", NULL, json.p, json.n);
    sse_end(&sse);
    buf_done(&words);
    buf_done(&json);
}

void api_process_logs(struct http_call *c)
{
    struct following *f;
    struct persistent *home;
    struct process *p;
    char id[ID_MAX];

    if (!http_query(c, "id", id, sizeof id) || !id[0]) {
        koyeb_wrong(c, "Process ID is required");
        return;
    }
    home = koyeb_sandbox(c);
    if (!home)
        return;
    p = process_of_lines(home, id, strlen(id));
    if (!p) {
        reply_unknown(c, id);
        return;
    }
    f = calloc(1, sizeof *f);
    if (!f) {
        koyeb_no_memory(c);
        return;
    }
    sse_begin(&f->sse, c);
    logreader_attach(&f->reader, &p->lines->log, sse_resume_at(http_header(c, "Last-Event-ID")),
                     on_wake, f);
    activity_begin(home, &f->activity, following_drop);
    http_on_gone(c, on_gone, f);
    http_on_drain(c, on_drained, f);
    (void)pump(f);
}
