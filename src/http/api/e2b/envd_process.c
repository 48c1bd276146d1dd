/* SPDX-License-Identifier: MIT */
/*
 * process.Process: commands and terminals of a sandbox, over the same processes as
 * /v1/sandboxes/{id}/processes.
 *
 * Start answers a stream that follows the process; a client that leaves ends nothing. Connect
 * follows one from now on. Both end once the process has ended and its streams have, or at once
 * after a signal.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/sandbox/process.h"
#include "app/sandbox/process_ask.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/jw.h"
#include "http/api/e2b/connect.h"
#include "http/api/e2b/e2b.h"
#include "http/api/e2b/envd_entry.h"
#include "http/api/e2b/envelope.h"

enum {
    PIECE_MAX = 32 * 1024,
    EVENT_MAX = PIECE_MAX * 2 + 256,
    MESSAGES_MAX = 20000, /* of one StreamInput */
    ENDED_KEPT_S = 30,    /* Connect to one that has ended is answered for so long */
    SIZE_MAX_CELLS = 65535,
    US_PER_S = 1000000,
};

#define KEEPALIVE "{\"event\":{\"keepalive\":{}}}"

/* ---- which process ---- */

struct selector {
    int64_t pid; /* 0: by tag */
    struct bytes tag;
};

/* clang-format off */
#define AT(member) offsetof(struct selector, member)
static const struct shape_field selector_fields[] = {
    {"pid", SHAPE_INT, 0, AT(pid), 0, UINT32_MAX},
    {"tag", SHAPE_STRING, 0, AT(tag)},
};
#undef AT
static const struct shape selector_shape = {selector_fields, ARRAY_LEN(selector_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};
/* clang-format on */

/* NULL: answered. */
static struct process *find(struct http_call *c, const struct persistent *home,
                            const struct selector *s)
{
    struct process *p = s->pid > 0     ? process_by_pid(home, s->pid)
                        : s->tag.n > 0 ? process_by_tag(home, s->tag.p, s->tag.n)
                                       : NULL;

    if (p && !process_runs(p) && clock_us() - p->end.at_us > (uint64_t)ENDED_KEPT_S * US_PER_S)
        p = NULL;
    if (p)
        return p;
    if (s->pid > 0)
        connect_refuse(c, CONNECT_NOT_FOUND, "process with pid %lld not found", (long long)s->pid);
    else
        connect_refuse(c, CONNECT_NOT_FOUND, "process with tag '%.*s' not found", (int)s->tag.n,
                       s->tag.p ? s->tag.p : "");
    return NULL;
}

static struct process *find_running(struct http_call *c, const struct persistent *home,
                                    const struct selector *s)
{
    struct process *p = find(c, home, s);

    if (!p || process_runs(p))
        return p;
    connect_refuse(c, CONNECT_NOT_FOUND, "process with pid %d has ended", p->pid);
    return NULL;
}

/* ---- streams ---- */

struct starting;
struct follow {
    struct activity activity;
    struct starting *starting; /* what waits for the process, until it has started */
    struct http_call *call;    /* until the stream begins; NULL: the client has left */
    struct connect_stream stream;
    struct process_reader reader;
    bool begun;
    bool starter; /* its deadline is the process's */
};

static void follow_free(struct follow *f)
{
    process_detach(&f->reader);
    if (f->begun)
        connect_done(&f->stream);
    activity_end(&f->activity);
    free(f);
}

static void follow_drop(struct activity *a)
{
    follow_free((struct follow *)((char *)a - offsetof(struct follow, activity)));
}

static void send_start(struct follow *f, int pid)
{
    char json[64];
    int n = snprintf(json, sizeof json, "{\"event\":{\"start\":{\"pid\":%d}}}", pid);

    (void)connect_send(&f->stream, json, (size_t)n);
}

static bool send_data(struct follow *f, const struct process *p, const struct bytering_piece *piece)
{
    const char *name = p->terminal ? "pty" : piece->stream == RUN_OUT ? "stdout" : "stderr";
    struct buf json = BUF_INIT(EVENT_MAX);
    bool room;

    (void)buf_puts(&json, "{\"event\":{\"data\":{\"");
    (void)buf_puts(&json, name);
    (void)buf_puts(&json, "\":\"");
    (void)!base64_encode(piece->p, piece->n, &json);
    (void)buf_puts(&json, "\"}}}");
    room = connect_send(&f->stream, json.p, json.n);
    buf_done(&json);
    return room;
}

/* "killed", "segmentation fault": as Go names them. */
static void signal_words(int number, char out[64])
{
    const char *words = sigdescr_np(number);

    (void)snprintf(out, 64, "signal: %s", words ? words : "unknown");
    if (out[8] >= 'A' && out[8] <= 'Z')
        out[8] = (char)(out[8] - 'A' + 'a');
}

static void send_end(struct follow *f, const struct process *p)
{
    int code = p->end.exit_code, killer = p->end.signal ? p->end.signal : SIGKILL;
    struct buf json = BUF_INIT(EVENT_MAX);
    struct jw w = JW(&json);
    char words[64];

    if (code < 0)
        signal_words(killer, words);
    else
        (void)snprintf(words, sizeof words, "exit status %d", code);
    (void)buf_puts(&json, "{\"event\":{\"end\":");
    jw_object(&w);
    jw_kv_int(&w, "exitCode", code < 0 ? -1 : code);
    jw_kv_bool(&w, "exited", code >= 0);
    jw_kv_string(&w, "status", words);
    if (code != 0)
        jw_kv_string(&w, "error", words);
    jw_object_end(&w);
    (void)buf_puts(&json, "}}");
    (void)connect_send(&f->stream, json.p, json.n);
    buf_done(&json);
}

/* As much as the client takes. It may be freed. */
static void pump(void *user)
{
    struct follow *f = user;
    const struct process *p = f->reader.process;
    struct bytering_piece piece;

    while (!f->stream.full && process_read(&f->reader, PIECE_MAX, &piece))
        if (piece.n > 0 && !send_data(f, p, &piece))
            break;
    if (f->stream.full || !process_is_read(&f->reader))
        return;
    if (f->starter && p->end.reason == END_TIMEOUT) {
        connect_fail(&f->stream, CONNECT_DEADLINE_EXCEEDED, "the process ran into its time limit");
    } else {
        send_end(f, p);
        connect_end(&f->stream);
    }
    follow_free(f);
}

static void on_over(void *user)
{
    follow_free(user);
}

static const struct connect_events start_events = {on_over, pump, NULL};
static const struct connect_events connect_events = {on_over, pump, on_over};

static struct follow *follow_new(struct http_call *c, struct persistent *home)
{
    struct follow *f = calloc(1, sizeof *f);

    if (!f) {
        connect_refuse(c, CONNECT_RESOURCE_EXHAUSTED, "no memory for a stream");
        return NULL;
    }
    f->call = c;
    activity_begin(home, &f->activity, follow_drop);
    return f;
}

static void follow(struct follow *f, struct process *p, uint64_t from)
{
    f->begun = true;
    connect_begin(&f->stream, f->call, KEEPALIVE, f->starter ? &start_events : &connect_events, f);
    send_start(f, p->pid);
    process_attach(p, &f->reader, from, pump, f);
    pump(f);
}

/* ---- Start ---- */

struct size_body {
    struct {
        int64_t cols, rows;
    } size;
};

struct start_body {
    struct {
        struct bytes cmd, cwd;
        struct shape_strings args, envs;
    } process;
    struct json_value pty;
    struct bytes tag;
    bool input;
};

/* clang-format off */
#define AT(member) offsetof(struct start_body, process.member) - offsetof(struct start_body, process)
static const struct shape_field config_fields[] = {
    {"cmd", SHAPE_STRING, 0, AT(cmd)},
    {"args", SHAPE_LIST, 0, AT(args), 0, PROCESS_ARGS_MAX},
    {"envs", SHAPE_STRINGS, 0, AT(envs)},
    {"cwd", SHAPE_STRING, 0, AT(cwd)},
};
#undef AT
static const struct shape config_shape = {config_fields, ARRAY_LEN(config_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};
#define AT(member) offsetof(struct size_body, size.member) - offsetof(struct size_body, size)
static const struct shape_field size_fields[] = {
    {"cols", SHAPE_INT, 0, AT(cols), 0, SIZE_MAX_CELLS},
    {"rows", SHAPE_INT, 0, AT(rows), 0, SIZE_MAX_CELLS},
};
#undef AT
static const struct shape size_shape = {size_fields, ARRAY_LEN(size_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};
static const struct shape_field pty_fields[] = {
    {"size", SHAPE_NESTED, 0, offsetof(struct size_body, size), .inner = &size_shape},
};
static const struct shape pty_shape = {pty_fields, ARRAY_LEN(pty_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};
#define AT(member) offsetof(struct start_body, member)
static const struct shape_field start_fields[] = {
    {"process", SHAPE_NESTED, 0, AT(process), .inner = &config_shape},
    {"pty", SHAPE_RAW, 0, AT(pty), .accepts = BIT(JSON_OBJECT)},
    {"tag", SHAPE_STRING, 0, AT(tag)},
    {"stdin", SHAPE_BOOL, 0, AT(input)},
};
#undef AT
static const struct shape start_shape = {start_fields, ARRAY_LEN(start_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};
/* clang-format on */

/* False: answered. */
static bool take_size(struct http_call *c, struct json_value v, struct shaping *s, uint32_t *ret)
{
    struct size_body b = {
        .size = {80, 24}
    };

    *ret = 0;
    if (!v.p)
        return true;
    if (shape_value(&pty_shape, v, "pty", &b, s) < 0 || b.size.cols < 1 || b.size.rows < 1) {
        connect_refuse(c, CONNECT_INVALID_ARGUMENT, "pty.size: cols and rows are from 1 to %d",
                       SIZE_MAX_CELLS);
        return false;
    }
    *ret = plan_terminal((uint16_t)b.size.cols, (uint16_t)b.size.rows);
    return true;
}

struct starting {
    struct follow *follow; /* owned until the process has started */
    struct start_body body;
    struct shaping shaping;
    struct process_asked asked;
    char *cwd; /* owned */
};

static void starting_free(struct starting *s)
{
    free(s->cwd);
    shaping_done(&s->shaping);
    process_asked_done(&s->asked);
    free(s);
}

static void refuse(const struct starting *s, struct http_call *c, enum run_fault at,
                   const char *words)
{
    if (at == RUN_NO_DIRECTORY)
        connect_refuse(c, CONNECT_INVALID_ARGUMENT, "cwd '%s' does not exist",
                       s->asked.cwd ? s->asked.cwd : "");
    else if (at == RUN_BUSY)
        connect_refuse(c, CONNECT_RESOURCE_EXHAUSTED, "the sandbox has no process left");
    else if (at == RUN_LOST)
        connect_refuse(c, CONNECT_UNAVAILABLE, "the sandbox has ended");
    else
        connect_refuse(c, CONNECT_INVALID_ARGUMENT, "%s", words);
}

static void on_started(void *user, struct process *p, const struct run_result *why)
{
    struct starting *s = user;
    struct follow *f = take_ptr(&s->follow);
    struct http_call *c = f ? f->call : NULL;

    if (f)
        f->activity.drop = follow_drop;
    if (c)
        http_on_gone(c, NULL, NULL);
    if (c && !p)
        refuse(s, c, why->fault_at, why->fault[0] ? why->fault : "the process cannot be started");
    if (c && p)
        follow(f, p, 0);
    else if (f)
        follow_free(f);
    starting_free(s);
}

/* The process goes on without it. */
static void on_left(void *user)
{
    struct starting *s = user;

    follow_free(take_ptr(&s->follow));
}

static void starter_drop(struct activity *a)
{
    struct follow *f = (struct follow *)((char *)a - offsetof(struct follow, activity));

    starting_free(f->starting); /* its process is dropped without a word, too */
    follow_free(f);
}

/* The user that is named, and where it begins. False: answered. */
static bool take_user(struct http_call *c, const struct persistent *home, struct starting *s)
{
    const struct bytes cwd = s->body.process.cwd;
    char user[ENVD_USER_MAX];
    struct err e;

    if (!envd_user(c, user)) {
        connect_refuse(c, CONNECT_UNAUTHENTICATED, "there is no user of that name in the sandbox");
        return false;
    }
    if (strcmp(user, "root") == 0) {
        connect_refuse(c, CONNECT_PERMISSION_DENIED,
                       "no process of a sandbox is root here: run it as 'user'");
        return false;
    }
    if (cwd.n == 0 || envd_path(home, user, cwd.p, cwd.n, &s->cwd, &e) == 0)
        return true;
    connect_refuse_err(c, &e);
    return false;
}

static bool ask(struct http_call *c, struct persistent *home, struct starting *s)
{
    const struct start_body *b = &s->body;
    struct process_ask a = {
        .file = b->process.cmd,
        .args = b->process.args.v,
        .args_n = b->process.args.n,
        .env = b->process.envs.v,
        .env_n = b->process.envs.n,
        .cwd = {s->cwd, s->cwd ? strlen(s->cwd) : 0},
        .tag = b->tag,
        .input_open = b->input,
        .timeout_ms = connect_timeout_ms(c),
    };
    struct err e;

    if (!take_size(c, b->pty, &s->shaping, &a.terminal))
        return false;
    if (process_ask(home, &a, &s->asked, &e) == 0)
        return true;
    connect_refuse_err(c, &e);
    return false;
}

void e2b_process_start(struct http_call *c)
{
    struct persistent *home = e2b_sandbox(c);
    struct starting *s = home ? calloc(1, sizeof *s) : NULL;
    enum run_fault at;
    struct err e;

    if (!home)
        return;
    if (!s) {
        connect_refuse(c, CONNECT_RESOURCE_EXHAUSTED, "no memory for a process");
        return;
    }
    s->body.input = true;
    if (!connect_decode(c, &start_shape, &s->body, &s->shaping) || !take_user(c, home, s) ||
        !ask(c, home, s) || !(s->follow = follow_new(c, home))) {
        starting_free(s);
        return;
    }
    s->follow->starter = true;
    s->follow->starting = s;
    s->follow->activity.drop = starter_drop;
    http_on_gone(c, on_left, s);
    if (process_start(home, &s->asked.order, on_started, s, &at, &e) == 0)
        return;
    http_on_gone(c, NULL, NULL);
    refuse(s, c, at, e.text);
    follow_free(take_ptr(&s->follow));
    starting_free(s);
}

/* ---- Connect ---- */

struct one_body {
    struct selector process;
    struct json_value input, pty, signal;
};

/* clang-format off */
#define AT(member) offsetof(struct one_body, member)
static const struct shape_field one_fields[] = {
    {"process", SHAPE_NESTED, 0, AT(process), .inner = &selector_shape},
    {"input", SHAPE_RAW, 0, AT(input), .accepts = BIT(JSON_OBJECT)},
    {"pty", SHAPE_RAW, 0, AT(pty), .accepts = BIT(JSON_OBJECT)},
    {"signal", SHAPE_RAW, 0, AT(signal)},
};
#undef AT
static const struct shape one_shape = {one_fields, ARRAY_LEN(one_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};
/* clang-format on */

/* The sandbox and what is asked about one of its processes. NULL: answered. */
static struct persistent *take_one(struct http_call *c, struct one_body *b, struct shaping *s)
{
    struct persistent *home = e2b_sandbox(c);

    *b = (struct one_body){0};
    return home && connect_decode(c, &one_shape, b, s) ? home : NULL;
}

void e2b_process_connect(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    struct one_body b;
    struct persistent *home = take_one(c, &b, &s);
    struct process *p = home ? find(c, home, &b.process) : NULL;
    struct follow *f = p ? follow_new(c, home) : NULL;

    if (f)
        follow(f, p, PROCESS_FROM_NOW);
}

/* ---- List ---- */

void e2b_process_list(struct http_call *c)
{
    const struct persistent *home = e2b_sandbox(c);
    struct buf json = BUF_INIT(256);
    struct jw w = JW(&json);
    const struct process *p;

    if (!home)
        return;
    TAILQ_FOREACH(p, &home->processes.list, link)
    json.max += 256 + PROCESS_TAG_MAX * 6 + (p->config ? strlen(p->config) : 0);
    (void)buf_reserve(&json, json.max); /* may be large: it is not to be moved while it grows */
    jw_object(&w);
    jw_key(&w, "processes");
    jw_array(&w);
    TAILQ_FOREACH(p, &home->processes.list, link)
    if (p->config && process_runs(p)) {
        jw_object(&w);
        jw_key(&w, "config");
        jw_raw(&w, p->config, strlen(p->config));
        jw_kv_int(&w, "pid", p->pid);
        if (p->tag[0])
            jw_kv_string(&w, "tag", p->tag);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_object_end(&w);
    connect_reply(c, &json);
}

/* ---- SendInput, StreamInput, CloseStdin ---- */

struct input_body {
    struct bytes input, pty;
};

/* clang-format off */
#define AT(member) offsetof(struct input_body, member)
static const struct shape_field input_fields[] = {
    {"stdin", SHAPE_STRING, 0, AT(input)},
    {"pty", SHAPE_STRING, 0, AT(pty)},
};
#undef AT
static const struct shape input_shape = {input_fields, ARRAY_LEN(input_fields), SHAPE_NULLS | SHAPE_OPEN, NULL};
/* clang-format on */

struct writing {
    struct activity activity;
    struct http_call *call;
    struct process_writer writer;
    bool streamed; /* StreamInput: the answer is a stream with one message */
};

static void writing_free(struct writing *k)
{
    process_writer_leave(&k->writer);
    activity_end(&k->activity);
    free(k);
}

static void writing_drop(struct activity *a)
{
    writing_free((struct writing *)((char *)a - offsetof(struct writing, activity)));
}

static void on_writer_gone(void *user)
{
    writing_free(user);
}

static void nothing(void *user)
{
    (void)user;
}

static void reply_stream(struct http_call *c)
{
    static const struct connect_events none = {nothing, nothing, NULL};
    struct connect_stream s;

    connect_begin(&s, c, KEEPALIVE, &none, NULL);
    (void)connect_send(&s, "{}", 2);
    connect_end(&s);
}

static void reply_input(struct http_call *c, bool taken, bool streamed)
{
    if (taken && streamed)
        reply_stream(c);
    else if (taken)
        connect_reply_empty(c);
    else
        connect_refuse(c, CONNECT_INTERNAL, "the process does not read its standard input");
}

static void on_written(void *user, bool taken)
{
    struct writing *k = user;

    http_on_gone(k->call, NULL, NULL);
    reply_input(k->call, taken, k->streamed);
    writing_free(k);
}

/* Padding may be left out. */
static int decode_base64(struct bytes text, struct buf *out)
{
    struct buf padded = BUF_INIT(text.n + 4);
    int r;

    *out = BUF_INIT(text.n + 4);
    if (text.n % 4 == 0)
        return base64_decode(text.p, text.n, out);
    (void)buf_put(&padded, text.p, text.n);
    while (padded.n % 4 != 0)
        (void)buf_putc(&padded, '=');
    r = base64_decode(padded.p, padded.n, out);
    buf_done(&padded);
    return r;
}

/* The bytes of an input for that process. False: answered. */
static bool take_input(struct http_call *c, const struct process *p, const struct json_value *v,
                       struct buf *out)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    struct input_body b = {0};
    struct bytes text;

    shaping_init(&s, NULL);
    s.lenient = true;
    if (!v->p || shaping_reserve(&s, v->n) < 0 ||
        shape_value(&input_shape, *v, "input", &b, &s) < 0) {
        connect_refuse(c, CONNECT_INVALID_ARGUMENT, "input: an object with 'stdin' or 'pty'");
        return false;
    }
    if ((b.pty.p != NULL) != (p->terminal != 0) && (b.pty.p || b.input.p)) {
        connect_refuse(c, CONNECT_INTERNAL,
                       p->terminal ? "the process has a pty, no stdin" : "the process has no pty");
        return false;
    }
    text = b.pty.p ? b.pty : b.input;
    if (decode_base64(text, out) == 0)
        return true;
    connect_refuse(c, CONNECT_INVALID_ARGUMENT, "input: not base64");
    return false;
}

static void write_input(struct http_call *c, struct process *p, const struct buf *bytes,
                        bool streamed)
{
    struct writing *k = calloc(1, sizeof *k);
    enum run_input r;

    if (!k) {
        connect_refuse(c, CONNECT_RESOURCE_EXHAUSTED, "no memory for the input");
        return;
    }
    k->call = c;
    k->streamed = streamed;
    r = process_write(p, bytes->p, bytes->n, &k->writer, on_written, k);
    if (r == RUN_INPUT_TAKEN && k->writer.process) {
        activity_begin(p->home, &k->activity, writing_drop);
        http_on_gone(c, on_writer_gone, k);
        return;
    }
    if (r == RUN_INPUT_FULL)
        connect_refuse(c, CONNECT_RESOURCE_EXHAUSTED,
                       "more than %d bytes wait for the process to read them", RUN_INPUT_MAX);
    else
        reply_input(c, r == RUN_INPUT_TAKEN, streamed);
    writing_free(k);
}

void e2b_process_send_input(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(0);
    struct one_body b;
    struct persistent *home = take_one(c, &b, &s);
    struct process *p = home ? find_running(c, home, &b.process) : NULL;

    if (p && take_input(c, p, &b.input, &bytes))
        write_input(c, p, &bytes, false);
}

struct streamed_body {
    struct one_body start, data;
};

/* clang-format off */
static const struct shape_field streamed_fields[] = {
    {"start", SHAPE_NESTED, 0, offsetof(struct streamed_body, start), .inner = &one_shape},
    {"data", SHAPE_NESTED, 0, offsetof(struct streamed_body, data), .inner = &one_shape},
};
/* clang-format on */
static const struct shape streamed_shape = {streamed_fields, ARRAY_LEN(streamed_fields),
                                            SHAPE_NULLS | SHAPE_OPEN, NULL};

/* One message of StreamInput: the first names the process, the others have bytes, or nothing to
 * keep the connection alive. False: answered. */
static bool take_streamed(struct http_call *c, const struct persistent *home,
                          const struct envelope *one, struct process **p, struct buf *bytes)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    cleanup_with(buf_done) struct buf more = BUF_INIT(0);
    struct streamed_body b = {0};

    shaping_init(&s, NULL);
    s.lenient = true;
    if (one->flags || shape_parse(&streamed_shape, one->p, one->n, &b, &s) < 0) {
        connect_refuse(c, CONNECT_INVALID_ARGUMENT, "a message of the stream is malformed");
        return false;
    }
    if (!*p) {
        *p = find_running(c, home, &b.start.process);
        return *p != NULL;
    }
    if (!b.data.input.p)
        return true;
    if (!take_input(c, *p, &b.data.input, &more))
        return false;
    bytes->max += more.n;
    return more.n == 0 || buf_put(bytes, more.p, more.n) == 0;
}

void e2b_process_stream_input(struct http_call *c)
{
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(0);
    const struct persistent *home = e2b_sandbox(c);
    const struct http_request *r = http_request(c);
    struct process *p = NULL;
    struct envelope one;
    size_t n = 0;

    if (!home)
        return;
    for (size_t at = 0; at < r->body_n; at += one.n + ENVELOPE_HEAD) {
        if (n++ == MESSAGES_MAX) {
            connect_refuse(c, CONNECT_RESOURCE_EXHAUSTED, "a stream of more than %d messages",
                           MESSAGES_MAX);
            return;
        }
        if (envelope_take(r->body + at, r->body_n - at, r->body_n, &one) != ENVELOPE_OK) {
            connect_refuse(c, CONNECT_INVALID_ARGUMENT, "the stream is not one of envelopes");
            return;
        }
        if (!take_streamed(c, home, &one, &p, &bytes))
            return;
    }
    if (p)
        write_input(c, p, &bytes, true);
    else
        connect_refuse(c, CONNECT_INVALID_ARGUMENT, "the stream names no process");
}

void e2b_process_close_stdin(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    struct one_body b;
    struct persistent *home = take_one(c, &b, &s);
    struct process *p = home ? find_running(c, home, &b.process) : NULL;

    if (!p)
        return;
    if (process_input_end(p) == 0)
        connect_reply_empty(c);
    else if (p->terminal)
        connect_refuse(c, CONNECT_FAILED_PRECONDITION,
                       "the input of a terminal does not end; send it Ctrl+D (0x04)");
    else
        connect_refuse(c, CONNECT_FAILED_PRECONDITION, "stdin is not open");
}

/* ---- SendSignal, Update ---- */

static int signal_of(struct json_value v)
{
    static const struct {
        const char *text;
        int number;
    } known[] = {
        {"\"SIGNAL_SIGKILL\"", SIGKILL},
        {"\"SIGNAL_SIGTERM\"", SIGTERM},
        {"9",                  SIGKILL},
        {"15",                 SIGTERM},
    };

    for (size_t i = 0; v.p && i < ARRAY_LEN(known); i++)
        if (strlen(known[i].text) == v.n && memcmp(known[i].text, v.p, v.n) == 0)
            return known[i].number;
    return 0;
}

void e2b_process_send_signal(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    struct one_body b;
    struct persistent *home = take_one(c, &b, &s);
    struct process *p = home ? find_running(c, home, &b.process) : NULL;
    int number = signal_of(b.signal);

    if (!p)
        return;
    if (number == 0)
        connect_refuse(c, CONNECT_UNIMPLEMENTED, "signal: SIGNAL_SIGKILL or SIGNAL_SIGTERM");
    else if (process_signal(p, number, true) < 0)
        connect_refuse(c, CONNECT_NOT_FOUND, "process with pid %d has ended", p->pid);
    else
        connect_reply_empty(c);
}

void e2b_process_update(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    struct one_body b;
    struct persistent *home = take_one(c, &b, &s);
    struct process *p = home ? find_running(c, home, &b.process) : NULL;
    uint32_t size;

    if (!p || !take_size(c, b.pty, &s, &size))
        return;
    if (size && process_resize(p, size) < 0)
        connect_refuse(c, CONNECT_INTERNAL, "the process has no pty");
    else
        connect_reply_empty(c);
}
