/* SPDX-License-Identifier: MIT */
/*
 * Readers of a process: its output as server-sent events, or both ways on a WebSocket.
 *
 * Events: stdout, stderr, terminal with {"data": BASE64}, whose id is the number of the byte behind
 * it; gap {"bytes": N}; end with the process. A client that comes back with that id (Last-Event-ID
 * or ?from=) goes on where it was.
 *
 * WebSocket: binary messages are bytes: what the client sends is input; what it gets are the bytes
 * of the terminal, or, of a process without one, 1 (stdout) or 2 (stderr) and the bytes. Text
 * messages are JSON objects with a type: start, gap, input_closed and end to the client; resize,
 * signal and input_end from it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "http/api/api.h"
#include "http/api/sandboxes/processes.h"
#include "http/server/reply.h"
#include "http/server/sse.h"
#include "http/server/websocket.h"

enum {
    PIECE_MAX = 32 * 1024,
    EVENT_MAX = PIECE_MAX * 2 + 256,
    INPUT_HIGH = 256 << 10,
    NUMBER_MAX = 24,
    COMMAND_MAX = 4096, /* text of a terminal's command in a query */
};

struct attached {
    struct activity activity;
    struct process_reader reader;
    struct process_writer writer;
    struct websocket *socket; /* NULL: events */
    struct sse sse;
    bool full;
    bool ends_it; /* the process ends when the client leaves */
};

static void attached_free(struct attached *a)
{
    process_writer_leave(&a->writer);
    process_detach(&a->reader);
    activity_end(&a->activity);
    free(a);
}

static void attached_drop(struct activity *activity)
{
    struct attached *a =
        (struct attached *)((char *)activity - offsetof(struct attached, activity));

    websocket_close(a->socket, WS_CLOSE_AWAY, "the daemon ends");
    attached_free(a);
}

static void on_gone(void *user)
{
    struct attached *a = user;
    struct process *p = a->reader.process;
    struct err ignored;

    if (a->ends_it && p)
        (void)!process_kill(p, &ignored);
    attached_free(a);
}

/* ---- what is sent ---- */

static const char *stream_name(const struct process *p, int stream)
{
    return p->terminal ? "terminal" : stream == RUN_OUT ? "stdout" : "stderr";
}

static void put_event(struct attached *a, const char *event, uint64_t next, const struct buf *json)
{
    char id[NUMBER_MAX];

    (void)snprintf(id, sizeof id, "%llu", (unsigned long long)next);
    a->full = !sse_send(&a->sse, event, id, json->p, json->n);
}

static void put_text(struct attached *a, const struct buf *json)
{
    if (!json->failed)
        a->full = !websocket_send(a->socket, true, json->p, json->n);
}

/* {"type": TYPE, "bytes": N} or, as an event, without the type. */
static void send_gap(struct attached *a, const struct bytering_piece *piece)
{
    struct buf json = BUF_INIT(128);
    struct jw w = JW(&json);

    jw_object(&w);
    if (a->socket)
        jw_kv_string(&w, "type", "gap");
    jw_kv_int(&w, "bytes", (int64_t)piece->gap);
    jw_object_end(&w);
    if (a->socket)
        put_text(a, &json);
    else
        put_event(a, "gap", piece->at, &json);
    buf_done(&json);
}

static void send_bytes(struct attached *a, const struct process *p,
                       const struct bytering_piece *piece)
{
    struct buf out = BUF_INIT(EVENT_MAX);

    if (a->socket && p->terminal) {
        a->full = !websocket_send(a->socket, false, piece->p, piece->n);
    } else if (a->socket) {
        (void)buf_putc(&out, piece->stream == RUN_OUT ? 1 : 2);
        (void)buf_put(&out, piece->p, piece->n);
        a->full = !websocket_send(a->socket, false, out.p, out.n);
    } else {
        (void)buf_puts(&out, "{\"data\":\"");
        (void)!base64_encode(piece->p, piece->n, &out);
        (void)buf_puts(&out, "\"}");
        put_event(a, stream_name(p, piece->stream), piece->at + piece->n, &out);
    }
    buf_done(&out);
}

/* An object with the process in it. */
static void send_process(struct attached *a, const char *type, const struct process *p)
{
    struct buf json = BUF_INIT(process_json_room(p) + 128);
    struct jw w = JW(&json);

    jw_object(&w);
    if (a->socket)
        jw_kv_string(&w, "type", type);
    if (a->socket)
        jw_kv_int(&w, "from", (int64_t)a->reader.at);
    jw_key(&w, "process");
    process_write_json(&w, p);
    jw_object_end(&w);
    if (a->socket)
        put_text(a, &json);
    else
        put_event(a, type, a->reader.at, &json);
    buf_done(&json);
}

/* As much as the client takes; at the end of everything it is freed. */
static void pump(void *user)
{
    struct attached *a = user;
    const struct process *p = a->reader.process;
    struct bytering_piece piece;

    while (!a->full && process_read(&a->reader, PIECE_MAX, &piece))
        if (piece.gap > 0)
            send_gap(a, &piece);
        else
            send_bytes(a, p, &piece);
    if (a->full || !process_is_read(&a->reader))
        return;
    send_process(a, "end", p);
    if (a->socket) {
        websocket_close(a->socket, WS_CLOSE_NORMAL, "the process has ended");
    } else {
        http_on_gone(a->sse.call, NULL, NULL);
        http_on_drain(a->sse.call, NULL, NULL);
        sse_end(&a->sse);
    }
    attached_free(a);
}

static void on_drained(void *user)
{
    struct attached *a = user;

    a->full = false;
    sse_drained(&a->sse);
    pump(a);
}

/* ---- what comes ---- */

static void on_written(void *user, bool taken)
{
    static const char words[] = "{\"type\":\"input_closed\"}";
    struct attached *a = user;
    const struct buf json = {.p = (char *)(uintptr_t)words, .n = sizeof words - 1};

    if (!taken)
        put_text(a, &json);
    websocket_resume(a->socket);
}

static void take_bytes(struct attached *a, struct process *p, const char *bytes, size_t n)
{
    enum run_input r;

    process_writer_leave(&a->writer);
    r = process_write(p, bytes, n, &a->writer, on_written, a);
    if (r != RUN_INPUT_TAKEN)
        on_written(a, false);
    else if (a->writer.process && process_input_waiting(p) >= INPUT_HIGH)
        websocket_pause(a->socket);
}

struct order_body {
    struct bytes type, signal;
    int64_t columns, rows;
};

/* clang-format off */
#define AT(member) offsetof(struct order_body, member)
static const struct shape_field order_fields[] = {
    {"type", SHAPE_STRING, SHAPE_REQUIRED, AT(type)},
    {"signal", SHAPE_STRING, 0, AT(signal)},
    {"columns", SHAPE_INT, 0, AT(columns), 1, PROCESS_TERMINAL_MAX},
    {"rows", SHAPE_INT, 0, AT(rows), 1, PROCESS_TERMINAL_MAX},
};
#undef AT
static const struct shape order_shape = {order_fields, ARRAY_LEN(order_fields), SHAPE_NULLS, NULL};
/* clang-format on */

/* NULL: it was carried out, or the process has ended meanwhile; else what is wrong with it. */
static const char *obey(struct process *p, const struct order_body *b)
{
    int number;

    if (strcmp(b->type.p, "resize") == 0) {
        if (b->columns == 0 || b->rows == 0)
            return "resize: columns and rows are missing";
        (void)!process_resize(p, plan_terminal((uint16_t)b->columns, (uint16_t)b->rows));
        return NULL;
    }
    if (strcmp(b->type.p, "signal") == 0) {
        number = b->signal.p ? process_signal_number(b->signal.p, b->signal.n) : 0;
        if (number == 0)
            return "signal: there is no such signal";
        (void)!process_signal(p, number, true);
        return NULL;
    }
    if (strcmp(b->type.p, "input_end") != 0)
        return "type: resize, signal or input_end";
    (void)!process_input_end(p);
    return NULL;
}

static void on_message(void *user, bool text, const char *bytes, size_t n)
{
    struct attached *a = user;
    struct process *p = a->reader.process;
    struct order_body b = {0};
    char words[SHAPE_WORDS_MAX];
    const char *wrong = words;
    struct shaping s;

    if (!text) {
        take_bytes(a, p, bytes, n);
        return;
    }
    shaping_init(&s, NULL);
    if (shape_parse(&order_shape, bytes, n, &b, &s) == 0)
        wrong = obey(p, &b);
    else
        shape_words(&s, words);
    shaping_done(&s);
    if (!wrong)
        return;
    websocket_close(take_ptr(&a->socket), WS_CLOSE_POLICY, wrong);
    on_gone(a);
}

/* ---- attaching ---- */

/* ?from=: a number, or "now"; a client that comes back says it with Last-Event-ID. */
static bool take_from(struct http_call *c, uint64_t *ret)
{
    const char *last = http_header(c, "last-event-id");
    char text[NUMBER_MAX] = "0";
    char *end;

    if (!http_query(c, "from", text, sizeof text) && last)
        (void)snprintf(text, sizeof text, "%s", last);
    *ret = PROCESS_FROM_NOW;
    if (strcmp(text, "now") == 0)
        return true;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno;
}

static struct attached *attached_new(struct http_call *c, struct process *p, uint64_t *ret_from)
{
    struct attached *a;
    struct err e;

    if (!take_from(c, ret_from)) {
        (void)err_set(&e, ERR_CALLER, "from: the number of a byte, or 'now'");
        api_reply_wrong(c, &e);
        return NULL;
    }
    a = calloc(1, sizeof *a);
    if (!a) {
        reply_status(c, 503);
        return NULL;
    }
    activity_begin(p->home, &a->activity, attached_drop);
    return a;
}

void process_attach_websocket(struct http_call *c, struct process *p, bool ends_it)
{
    struct websocket_events events = {
        .message = on_message, .drained = on_drained, .closed = on_gone};
    uint64_t from;
    struct attached *a = attached_new(c, p, &from);

    if (!a)
        return;
    events.user = a;
    a->socket = websocket_accept(c, &events);
    if (!a->socket) {
        attached_free(a);
        return;
    }
    a->ends_it = ends_it;
    process_attach(p, &a->reader, from, pump, a);
    send_process(a, "start", p);
    pump(a);
}

void api_process_output(struct http_call *c)
{
    struct process *p = process_of(c);
    struct attached *a;
    uint64_t from;

    if (!p)
        return;
    if (websocket_wanted(c)) {
        process_attach_websocket(c, p, false);
        return;
    }
    a = attached_new(c, p, &from);
    if (!a)
        return;
    sse_begin(&a->sse, c);
    http_on_gone(c, on_gone, a);
    http_on_drain(c, on_drained, a);
    process_attach(p, &a->reader, from, pump, a);
    pump(a);
}

void api_terminal_attach(struct http_call *c)
{
    struct process *p = websocket_check(c) ? process_of(c) : NULL;

    if (!p)
        return;
    if (p->terminal)
        process_attach_websocket(c, p, false);
    else
        reply_refusal(c, 409, "The process has no terminal");
}

/* ---- a terminal and its WebSocket at once ---- */

struct opening {
    struct activity activity;
    struct http_call *call;     /* NULL: its client has left */
    struct process_asked asked; /* its texts are views of these */
    char command[COMMAND_MAX], cwd[SANDBOXES_PATH_MAX], tag[PROCESS_TAG_MAX + 1];
    bool ends_it;
};

static void opening_free(struct opening *o)
{
    activity_end(&o->activity);
    process_asked_done(&o->asked);
    free(o);
}

static void opening_drop(struct activity *a)
{
    opening_free((struct opening *)((char *)a - offsetof(struct opening, activity)));
}

static void opening_left(void *user)
{
    struct opening *o = user;

    o->call = NULL;
}

static void on_started(void *user, struct process *p, const struct run_result *why)
{
    struct opening *o = user;
    struct http_call *c = o->call;
    struct err ignored;

    if (c)
        http_on_gone(c, NULL, NULL);
    if (c && p)
        process_attach_websocket(c, p, o->ends_it);
    else if (c)
        process_reply_fault(c, why->fault_at,
                            why->fault[0] ? why->fault : "the terminal cannot be started");
    else if (p) /* nobody has heard of it */
        (void)!process_kill(p, &ignored);
    opening_free(o);
}

/* A number of a query from 1 on; its default when it is absent. False: it is none. */
static bool take_number(const struct http_call *c, const char *name, uint16_t *ret)
{
    char text[8], *end;
    long n;

    if (!http_query(c, name, text, sizeof text))
        return true;
    n = strtol(text, &end, 10);
    *ret = (uint16_t)n;
    return text[0] && !*end && n >= 1 && n <= PROCESS_TERMINAL_MAX;
}

static int ask(const struct http_call *c, const struct persistent *home, struct opening *o,
               struct err *e)
{
    static const char login[] = "exec /bin/bash -i -l";
    char keep[8] = "";
    uint16_t columns = 80, rows = 24;
    struct process_ask a = {
        .shell = {login, sizeof login - 1}
    };

    if (!take_number(c, "columns", &columns) || !take_number(c, "rows", &rows))
        return err_set(e, ERR_CALLER, "columns, rows: numbers from 1 to %d", PROCESS_TERMINAL_MAX);
    if (http_query(c, "command", o->command, sizeof o->command))
        a.shell = (struct bytes){o->command, strlen(o->command)};
    if (http_query(c, "cwd", o->cwd, sizeof o->cwd))
        a.cwd = (struct bytes){o->cwd, strlen(o->cwd)};
    if (http_query(c, "tag", o->tag, sizeof o->tag))
        a.tag = (struct bytes){o->tag, strlen(o->tag)};
    if (a.tag.n > 0 && !api_id_is_valid(o->tag, a.tag.n))
        return err_set(e, ERR_CALLER, "tag: [A-Za-z0-9._-]{1,128}, not starting with a dot");
    o->ends_it = http_query(c, "keep", keep, sizeof keep) && strcmp(keep, "false") == 0;
    a.terminal = plan_terminal(columns, rows);
    return process_ask(home, &a, &o->asked, e);
}

void api_terminal_open(struct http_call *c)
{
    struct persistent *home = websocket_check(c) ? api_sandbox(c) : NULL;
    struct opening *o = home ? calloc(1, sizeof *o) : NULL;
    enum run_fault at = RUN_NO_START;
    struct err e;

    if (!home)
        return;
    if (!o) {
        reply_status(c, 503);
        return;
    }
    o->call = c;
    if (ask(c, home, o, &e) < 0) {
        api_reply_wrong(c, &e);
        opening_free(o);
        return;
    }
    activity_begin(home, &o->activity, opening_drop);
    http_on_gone(c, opening_left, o);
    if (process_start(home, &o->asked.order, on_started, o, &at, &e) == 0)
        return;
    http_on_gone(c, NULL, NULL);
    process_reply_fault(c, at, e.text);
    opening_free(o);
}
