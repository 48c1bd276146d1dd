/* SPDX-License-Identifier: MIT */
/*
 * /run and /run_streaming: a shell command in a persistent sandbox.
 *
 * /run waits for the program and for the ends of both streams, whether its client
 * does or not. /run_streaming sends a line as an event when it is complete; its
 * client's end is the end of everything the command started, and its slowness
 * slows the command. Below /v1/sandboxes the answer of /run says how the command ended and how long
 * each stage took, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/daemon/timing.h"
#include "app/sandbox/command.h"
#include "base/lines.h"
#include "core/denial.h"
#include "http/api/api.h"
#include "http/api/koyeb/koyeb.h"
#include "http/server/sse.h"

enum {
    ENCODE_INLINE = 1 << 20,   /* larger answers are made on a worker thread */
    REPLY_SLACK = 4096,        /* an answer beside its texts */
    ESCAPE_FACTOR = 6,         /* one byte becomes at most \u00XX */
    STREAM_LINE_MAX = 1 << 20, /* a longer line is more than one event */
    EVENT_SLACK = 128,
};

static const char *const stream_names[] = {[RUN_OUT] = "stdout", [RUN_ERR] = "stderr"};

/* ---- /run ---- */

struct running {
    struct work work; /* first */
    struct activity activity;
    struct http_call *call;  /* NULL: its client has gone */
    struct command *command; /* owned */
    struct koyeb_body body;
    struct buf reply;
    bool encoding;
};

static void running_free(struct running *r)
{
    activity_end(&r->activity);
    command_free(r->command);
    koyeb_body_done(&r->body);
    buf_done(&r->reply);
    free(r);
}

static void running_drop(struct activity *a)
{
    struct running *r = (struct running *)((char *)a - offsetof(struct running, activity));

    r->call = NULL;
    work_forget(&r->work);
    if (r->encoding)
        activity_end(a);
    else
        running_free(r);
}

static void write_end(struct jw *w, const struct run_result *res)
{
    const struct stamps *at = &res->at;

    jw_key(w, "termination");
    jw_object(w);
    jw_kv_string(w, "reason", end_reason_name(res->reason));
    if (res->signal)
        jw_kv_int(w, "signal", res->signal);
    jw_object_end(w);
    jw_key(w, "timings");
    jw_object(w);
    jw_kv_double(w, "queue_ms", timing_ms(at->asked, at->started), 3);
    jw_kv_double(w, "start_ms", timing_ms(at->started, at->running), 3);
    jw_kv_double(w, "run_ms", timing_ms(at->running, at->ended), 3);
    jw_kv_double(w, "total_ms", timing_ms(at->asked, at->collected), 3);
    jw_object_end(w);
}

/* Also on a worker thread. */
static void encode(struct work *work)
{
    struct running *r = (struct running *)work;
    struct run_result *res = &r->command->result;
    struct buf *streams[RUN_STREAMS] = {&res->out, &res->err};
    int code = command_exit_code(r->command);
    const unsigned denied =
        code == 0 ? 0 : denials_find(&(struct denial_facts){.said = {&res->err}});
    struct jw w;
    char words[64];

    r->reply = BUF_INIT((res->out.n + res->err.n) * ESCAPE_FACTOR + REPLY_SLACK);
    w = koyeb_writer(&r->reply, false);
    jw_object(&w);
    for (size_t i = 0; i < RUN_STREAMS; i++) {
        jw_kv_bytes(&w, stream_names[i], streams[i]->p ? streams[i]->p : "", streams[i]->n);
        buf_done(streams[i]);
    }
    (void)snprintf(words, sizeof words, "Command timed out after %g seconds", r->body.timeout_s);
    if (code != 0)
        jw_kv_string(&w, "error", res->reason == END_TIMEOUT ? words : "Non-zero exit code");
    jw_kv_int(&w, "code", code);
    if (res->out_truncated)
        jw_kv_bool(&w, "stdout_truncated", true);
    if (res->err_truncated)
        jw_kv_bool(&w, "stderr_truncated", true);
    denials_json(&w, denied, DENIAL_PERSISTENT);
    if (!r->body.shaping.lenient) {
        if (denied)
            jw_kv_string(&w, "hint", denials_hint(denied, DENIAL_PERSISTENT));
        write_end(&w, res);
    }
    jw_object_end(&w);
}

static void encoded(struct work *work)
{
    struct running *r = (struct running *)work;

    r->encoding = false;
    if (r->call) {
        http_on_gone(r->call, NULL, NULL);
        http_reply_json(r->call, 200, &r->reply);
    }
    running_free(r);
}

/* The command has ended; only its answer is not made any more. */
static void encode_gone(void *user)
{
    struct running *r = user;

    r->call = NULL;
    work_forget(&r->work);
}

static void run_done(void *user)
{
    struct running *r = user;
    const struct run_result *res = &r->command->result;
    size_t n = res->out.n + res->err.n;

    if (command_failed(r->command)) {
        koyeb_reply_fault(r->call, res->fault_at, &r->body);
        running_free(r);
        return;
    }
    r->work.run = encode;
    r->work.done = encoded;
    r->work.lane = work_lane_of(n);
    if (http_is_left(r->call)) {
        encoded(&r->work); /* an answer without a body ends the call */
        return;
    }
    if (n > ENCODE_INLINE) {
        r->encoding = true;
        http_on_gone(r->call, encode_gone, r);
        work_submit(http_app(r->call)->work, &r->work);
        return;
    }
    encode(&r->work);
    encoded(&r->work);
}

void api_run(struct http_call *c)
{
    struct running *r = calloc(1, sizeof *r);
    const struct command_events events = {.done = run_done, .user = r};
    struct command_order order;
    struct persistent *p;
    enum run_fault at;
    struct err e;

    if (!r) {
        koyeb_no_memory(c);
        return;
    }
    r->call = c;
    if (!koyeb_body(c, &koyeb_command, &r->body) || !(p = koyeb_sandbox(c))) {
        running_free(r);
        return;
    }
    order = koyeb_order(&r->body);
    order.output_max = http_app(c)->config.run_output_max;
    if (command_start(p, &order, &events, &r->command, &at, &e) < 0) {
        koyeb_reply_fault(c, at, &r->body);
        running_free(r);
        return;
    }
    activity_begin(p, &r->activity, running_drop);
}

/* ---- /run_streaming ---- */

struct streaming {
    struct activity activity;
    struct http_call *call;
    struct sse sse;
    struct command *command; /* owned */
    struct koyeb_body body;
    struct lines lines[RUN_STREAMS];
    enum run_stream feeding;
};

static void streaming_free(struct streaming *s)
{
    activity_end(&s->activity);
    command_free(s->command);
    koyeb_body_done(&s->body);
    for (size_t i = 0; i < RUN_STREAMS; i++)
        lines_done(&s->lines[i]);
    free(s);
}

static void streaming_drop(struct activity *a)
{
    streaming_free((struct streaming *)((char *)a - offsetof(struct streaming, activity)));
}

/* Its client has gone: the whole tree ends. */
static void streaming_gone(void *user)
{
    streaming_free(user);
}

static void streaming_drained(void *user)
{
    struct streaming *s = user;

    sse_drained(&s->sse);
    if (s->command)
        command_resume(s->command);
}

static void on_line(void *user, const char *p, size_t n)
{
    struct streaming *s = user;
    struct buf json = BUF_INIT(n * ESCAPE_FACTOR + EVENT_SLACK);
    struct jw w = koyeb_writer(&json, true);

    while (n > 0 && p[n - 1] == '\r')
        n--;
    jw_object(&w);
    jw_kv_bytes(&w, "data", p, n);
    jw_kv_string(&w, "stream", stream_names[s->feeding]);
    jw_object_end(&w);
    if (!json.failed && !sse_send(&s->sse, "output", NULL, json.p, json.n) && s->command)
        command_pause(s->command);
    buf_done(&json);
}

/* Output may come before a helper has told of the start: it can be killed in between. */
static void stream_started(void *user)
{
    struct streaming *s = user;

    if (s->sse.call)
        return;
    http_on_drain(s->call, streaming_drained, s);
    sse_begin(&s->sse, s->call);
}

static void stream_failed(struct streaming *s, enum run_fault at)
{
    static const char words[] = "{\"error\": \"Failed to start command\"}";

    http_on_gone(s->call, NULL, NULL);
    http_on_drain(s->call, NULL, NULL);
    if ((at == RUN_NO_DIRECTORY || at == RUN_BUSY) && !s->sse.call) {
        koyeb_reply_fault(s->call, at, &s->body);
    } else {
        if (!s->sse.call)
            sse_begin(&s->sse, s->call);
        (void)sse_send(&s->sse, "error", NULL, words, sizeof words - 1);
        sse_end(&s->sse);
    }
    streaming_free(s);
}

static void stream_output(void *user, enum run_stream stream, const char *p, size_t n)
{
    struct streaming *s = user;

    stream_started(s);
    s->feeding = stream;
    lines_feed(&s->lines[stream], p, n, on_line, s);
}

static void stream_done(void *user)
{
    struct streaming *s = user;
    int code = command_exit_code(s->command), n;
    char json[64];

    if (command_failed(s->command)) {
        stream_failed(s, s->command->result.fault_at);
        return;
    }
    stream_started(s);
    n = snprintf(json, sizeof json, "{\"code\":%d,\"error\":%s}", code, code ? "true" : "false");
    for (int i = 0; i < RUN_STREAMS; i++) {
        s->feeding = (enum run_stream)i;
        lines_end(&s->lines[i], on_line, s);
    }
    http_on_gone(s->call, NULL, NULL);
    http_on_drain(s->call, NULL, NULL);
    (void)sse_send(&s->sse, "complete", NULL, json, (size_t)n);
    sse_end(&s->sse);
    streaming_free(s);
}

void api_run_streaming(struct http_call *c)
{
    struct streaming *s = calloc(1, sizeof *s);
    const struct command_events events = {
        .started = stream_started, .output = stream_output, .done = stream_done, .user = s};
    struct command_order order;
    struct persistent *p;
    enum run_fault at;
    struct err e;

    if (!s) {
        koyeb_no_memory(c);
        return;
    }
    s->call = c;
    for (size_t i = 0; i < RUN_STREAMS; i++)
        s->lines[i] = LINES_INIT(STREAM_LINE_MAX);
    if (!koyeb_body(c, &koyeb_command, &s->body) || !(p = koyeb_sandbox(c))) {
        streaming_free(s);
        return;
    }
    order = koyeb_order(&s->body);
    if (command_start(p, &order, &events, &s->command, &at, &e) < 0) {
        stream_failed(s, at);
        return;
    }
    activity_begin(p, &s->activity, streaming_drop);
    http_on_gone(c, streaming_gone, s);
}
