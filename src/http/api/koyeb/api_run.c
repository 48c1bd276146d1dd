/* SPDX-License-Identifier: MIT */
/*
 * /run and /run_streaming: a shell command in a persistent sandbox.
 *
 * /run waits for the program and for the ends of both streams, whether its client
 * does or not. /run_streaming sends a line as an event when it is complete; its
 * client's end is the end of everything the command started, and its slowness
 * slows the command.
 */
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/sandbox/shell.h"
#include "base/lines.h"
#include "core/denial.h"
#include "http/api/api.h"
#include "http/api/koyeb/koyeb.h"
#include "http/server/sse.h"

enum {
    ENCODE_INLINE = 1 << 20,   /* larger answers are made on a worker */
    REPLY_SLACK = 4096,        /* an answer beside its texts */
    ESCAPE_FACTOR = 6,         /* one byte becomes at most \u00XX */
    STREAM_LINE_MAX = 1 << 20, /* a longer line is more than one event */
    EVENT_SLACK = 128,
};

static const char *const stream_names[] = {[COMMAND_OUT] = "stdout", [COMMAND_ERR] = "stderr"};

/* ---- /run ---- */

struct running {
    struct work work; /* first */
    struct activity activity;
    struct http_call *call; /* NULL: nobody to answer */
    struct shell *shell;    /* owned */
    struct koyeb_body body;
    struct buf out[COMMAND_STREAMS];
    bool truncated[COMMAND_STREAMS];
    struct buf reply;
    int code;
    bool timed_out, encoding;
};

static void running_free(struct running *r)
{
    activity_end(&r->activity);
    shell_free(r->shell);
    koyeb_body_done(&r->body);
    for (size_t i = 0; i < COMMAND_STREAMS; i++)
        buf_done(&r->out[i]);
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

/* Also on a worker thread. */
static void encode(struct work *work)
{
    struct running *r = (struct running *)work;
    const unsigned denied =
        r->code == 0 ? 0 : denials_find(&(struct denial_facts){.said = {&r->out[COMMAND_ERR]}});
    struct jw w;
    char words[64];

    r->reply = BUF_INIT((r->out[0].n + r->out[1].n) * ESCAPE_FACTOR + REPLY_SLACK);
    w = koyeb_writer(&r->reply, false);
    jw_object(&w);
    for (size_t i = 0; i < COMMAND_STREAMS; i++) {
        jw_kv_bytes(&w, stream_names[i], r->out[i].p ? r->out[i].p : "", r->out[i].n);
        buf_done(&r->out[i]);
    }
    (void)snprintf(words, sizeof words, "Command timed out after %g seconds", r->body.timeout_s);
    if (r->code != 0)
        jw_kv_string(&w, "error", r->timed_out ? words : "Non-zero exit code");
    jw_kv_int(&w, "code", r->code);
    if (r->truncated[COMMAND_OUT])
        jw_kv_bool(&w, "stdout_truncated", true);
    if (r->truncated[COMMAND_ERR])
        jw_kv_bool(&w, "stderr_truncated", true);
    denials_json(&w, denied, DENIAL_PERSISTENT);
    if (denied && !r->body.shaping.lenient)
        jw_kv_string(&w, "hint", denials_hint(denied, DENIAL_PERSISTENT));
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

static void run_started(void *user, int pid)
{
    (void)user, (void)pid;
}

static void run_failed(void *user, enum command_fault why, int sys)
{
    struct running *r = user;

    (void)sys;
    koyeb_reply_fault(r->call, why, &r->body);
    running_free(r);
}

static void run_output(void *user, enum command_stream s, const char *p, size_t n)
{
    struct running *r = user;
    size_t room = r->out[s].max - r->out[s].n;

    r->truncated[s] |= n > room;
    if (buf_put(&r->out[s], p, n < room ? n : room) < 0)
        r->truncated[s] = true;
}

static void run_done(void *user, int code, bool timed_out)
{
    struct running *r = user;
    struct app *a = http_app(r->call);

    r->code = code;
    r->timed_out = timed_out;
    r->work.run = encode;
    r->work.done = encoded;
    r->work.lane = work_lane_of(r->out[0].n + r->out[1].n);
    if (http_is_left(r->call)) {
        encoded(&r->work); /* an answer without a body ends the call */
        return;
    }
    if (r->out[0].n + r->out[1].n > ENCODE_INLINE) {
        r->encoding = true;
        http_on_gone(r->call, encode_gone, r);
        work_submit(a->work, &r->work);
        return;
    }
    encode(&r->work);
    encoded(&r->work);
}

void api_run(struct http_call *c)
{
    const struct shell_events events = {run_started, run_failed, run_output, NULL, run_done, NULL};
    struct shell_events own = events;
    struct running *r = calloc(1, sizeof *r);
    struct persistent *p;
    enum command_fault why;
    struct shell_order order;
    struct err e;

    if (!r) {
        koyeb_no_memory(c);
        return;
    }
    r->call = c;
    own.user = r;
    for (size_t i = 0; i < COMMAND_STREAMS; i++)
        r->out[i] = BUF_INIT(http_app(c)->config.run_output_max);
    if (!koyeb_body(c, &koyeb_command, &r->body) || !(p = koyeb_sandbox(c))) {
        running_free(r);
        return;
    }
    order = koyeb_order(&r->body);
    if (shell_start(p, &order, &own, &r->shell, &why, &e) < 0) {
        koyeb_reply_fault(c, why, &r->body);
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
    struct shell *shell; /* owned */
    struct koyeb_body body;
    struct lines lines[COMMAND_STREAMS];
    enum command_stream feeding;
    bool begun;
};

static void streaming_free(struct streaming *s)
{
    activity_end(&s->activity);
    shell_free(s->shell);
    koyeb_body_done(&s->body);
    for (size_t i = 0; i < COMMAND_STREAMS; i++)
        lines_done(&s->lines[i]);
    free(s);
}

static void streaming_drop(struct activity *a)
{
    streaming_free((struct streaming *)((char *)a - offsetof(struct streaming, activity)));
}

/* Nobody listens: the whole tree goes. */
static void streaming_gone(void *user)
{
    streaming_free(user);
}

static void streaming_drained(void *user)
{
    struct streaming *s = user;

    sse_drained(&s->sse);
    if (s->shell)
        shell_resume(s->shell);
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
    if (!json.failed && !sse_send(&s->sse, "output", NULL, json.p, json.n) && s->shell)
        shell_pause(s->shell);
    buf_done(&json);
}

static void stream_started(void *user, int pid)
{
    struct streaming *s = user;

    (void)pid;
    s->begun = true;
    http_on_drain(s->call, streaming_drained, s);
    sse_begin(&s->sse, s->call);
}

static void stream_failed(void *user, enum command_fault why, int sys)
{
    static const char words[] = "{\"error\": \"Failed to start command\"}";
    struct streaming *s = user;

    (void)sys;
    http_on_gone(s->call, NULL, NULL);
    if (why == COMMAND_NO_DIRECTORY || why == COMMAND_BUSY) {
        koyeb_reply_fault(s->call, why, &s->body);
    } else {
        sse_begin(&s->sse, s->call);
        (void)sse_send(&s->sse, "error", NULL, words, sizeof words - 1);
        sse_end(&s->sse);
    }
    streaming_free(s);
}

static void stream_output(void *user, enum command_stream stream, const char *p, size_t n)
{
    struct streaming *s = user;

    s->feeding = stream;
    lines_feed(&s->lines[stream], p, n, on_line, s);
}

static void stream_done(void *user, int code, bool timed_out)
{
    struct streaming *s = user;
    char json[64];
    int n =
        snprintf(json, sizeof json, "{\"code\":%d,\"error\":%s}", code, code ? "true" : "false");

    (void)timed_out;
    for (int i = 0; i < COMMAND_STREAMS; i++) {
        s->feeding = (enum command_stream)i;
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
    const struct shell_events events = {stream_started, stream_failed, stream_output,
                                        NULL,           stream_done,   NULL};
    struct shell_events own = events;
    struct streaming *s = calloc(1, sizeof *s);
    struct persistent *p;
    enum command_fault why;
    struct shell_order order;
    struct err e;

    if (!s) {
        koyeb_no_memory(c);
        return;
    }
    s->call = c;
    own.user = s;
    for (size_t i = 0; i < COMMAND_STREAMS; i++)
        s->lines[i] = LINES_INIT(STREAM_LINE_MAX);
    if (!koyeb_body(c, &koyeb_command, &s->body) || !(p = koyeb_sandbox(c))) {
        streaming_free(s);
        return;
    }
    order = koyeb_order(&s->body);
    if (shell_start(p, &order, &own, &s->shell, &why, &e) < 0) {
        stream_failed(s, why, 0);
        return;
    }
    activity_begin(p, &s->activity, streaming_drop);
    http_on_gone(c, streaming_gone, s);
}
