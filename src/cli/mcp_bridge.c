/* SPDX-License-Identifier: MIT */
#include "cli/mcp_bridge.h"

#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/jw.h"
#include "cli/event_lines.h"
#include "cli/http.h"

enum {
    METHOD_MAX = 64,
    VERSION_MAX = 32,
    SESSION_MAX = 256,
    NAME_MAX_BYTES = 6 << 10, /* of a tool, or of the address of a resource */
    LINE_ROOM = NAME_MAX_BYTES * 4 / 3 + 64,
    MS = 1000,            /* microseconds */
    AGAIN_US = 1000 * MS, /* until a stream of notifications is asked for again */
    REPEAT_US = 200 * MS, /* until a cancellation is told again */
    GOODBYE_MS = 2000,    /* the daemon has so long to end our session */
    ERROR_INTERNAL = -32603,
    ERROR_SHAPE = -32600,
};

enum message_kind {
    MESSAGE_REQUEST,
    MESSAGE_OPENING, /* initialize: a request whose answer has a session */
    MESSAGE_NOTE,    /* what has no answer */
    MESSAGE_LISTEN,  /* our own GET for notifications of the session */
};

/* One exchange with the daemon; freed when it is over. */
struct message {
    LIST_ENTRY(message) link;
    struct bridge *bridge;
    enum message_kind kind;
    bool modern;
    bool is_cancelled; /* its answer is not wanted */
    bool is_answered;
    bool is_stream;
    struct buf text;      /* owned */
    struct json_value id; /* in `text`; p == NULL: none */
    char method[METHOD_MAX + 1], version[VERSION_MAX + 1];
    char lines[4][LINE_ROOM];
    struct http_request asks;
    struct http_exchange *exchange; /* NULL: it has not begun */
    struct buf body;
    struct event_lines events;
    int status;
};
LIST_HEAD(message_list, message);

struct bridge {
    struct http *http; /* owned */
    struct buf out;
    struct message_list under_way;
    size_t under_way_n;
    char session[SESSION_MAX]; /* "": none */
    bool is_opening;           /* `initialize` is under way: what needs its session waits */
    struct buf waiting;        /* lines that do */
    bool listens;
    uint64_t listen_at_us; /* 0: it is not to be asked for */
    uint64_t repeat_at_us; /* 0: no cancellation is to be repeated */
};

/* ---- to the client ---- */

/* On one line: JSON has line breaks between its tokens only. */
static void put_line(struct bridge *b, const char *p, size_t n)
{
    size_t at = b->out.n;

    if (n == 0 || buf_put(&b->out, p, n) < 0 || buf_putc(&b->out, '\n') < 0)
        return;
    for (size_t i = at; i < b->out.n - 1; i++)
        if (b->out.p[i] == '\n' || b->out.p[i] == '\r')
            b->out.p[i] = ' ';
}

static void begin_answer(struct jw *w, struct json_value id)
{
    jw_object(w);
    jw_kv_string(w, "jsonrpc", "2.0");
    if (!id.p)
        return;
    jw_key(w, "id");
    jw_raw(w, id.p, id.n);
}

static void put_error(struct bridge *b, struct json_value id, int code, const char *words)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(BRIDGE_ANSWER_MAX);
    struct jw w = JW(&text);

    begin_answer(&w, id);
    jw_key(&w, "error");
    jw_object(&w);
    jw_kv_int(&w, "code", code);
    jw_kv_string(&w, "message", words);
    jw_object_end(&w);
    jw_object_end(&w);
    put_line(b, text.p, text.n);
}

void bridge_line_too_long(struct bridge *b, size_t most)
{
    char words[128];

    (void)snprintf(words, sizeof words, "a message has at most %zu bytes", most);
    put_error(b, (struct json_value){0}, ERROR_SHAPE, words);
}

struct buf *bridge_out(struct bridge *b)
{
    return &b->out;
}

/* ---- one message ---- */

static void message_free(struct message *m)
{
    LIST_REMOVE(m, link);
    m->bridge->under_way_n--;
    http_cancel(m->exchange);
    event_lines_done(&m->events);
    buf_done(&m->text);
    buf_done(&m->body);
    free(m);
}

static struct message *message_new(struct bridge *b, enum message_kind kind)
{
    struct message *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->bridge = b;
    m->kind = kind;
    m->text = BUF_INIT(BRIDGE_ANSWER_MAX);
    m->body = BUF_INIT(BRIDGE_ANSWER_MAX);
    event_lines_init(&m->events, BRIDGE_ANSWER_MAX);
    LIST_INSERT_HEAD(&b->under_way, m, link);
    b->under_way_n++;
    return m;
}

static bool is_request(const struct message *m)
{
    return m->kind == MESSAGE_REQUEST || m->kind == MESSAGE_OPENING;
}

bool bridge_is_busy(const struct bridge *b)
{
    const struct message *m;

    LIST_FOREACH(m, &b->under_way, link)
    if (is_request(m))
        return true;
    return false;
}

/* ---- what the daemon says ---- */

static void on_line(void *user, const char *name, const char *value)
{
    struct message *m = user;

    if (m->kind == MESSAGE_OPENING && strcmp(name, "mcp-session-id") == 0)
        (void)snprintf(m->bridge->session, sizeof m->bridge->session, "%s", value);
}

static int on_head(void *user, const struct http_head *head)
{
    struct message *m = user;

    m->status = head->status;
    m->is_stream = strcmp(head->type, "text/event-stream") == 0;
    return 0;
}

static int on_event(void *user, const struct event_seen *ev)
{
    struct message *m = user;
    struct json_value all;
    struct err e;

    if (ev->n == 0 || json_parse(ev->data, ev->n, 0, &all, &e) < 0 || m->is_cancelled)
        return 0;
    m->is_answered = m->is_answered || !json_member(all, "method").p;
    put_line(m->bridge, all.p, all.n);
    return 0;
}

static int on_part(void *user, const char *p, size_t n)
{
    struct message *m = user;

    if (m->is_stream)
        return event_lines_feed(&m->events, p, n, on_event, m);
    return buf_put(&m->body, p, n);
}

/* An answer that is not one of JSON-RPC, or one without the id that its request had. */
static void answer_refused(struct message *m)
{
    const struct http_answer answer = {.status = m->status, .body = m->body};
    struct json_value all = {0}, error;
    struct buf text = BUF_INIT(BRIDGE_ANSWER_MAX);
    struct jw w = JW(&text);
    struct err e;

    if (m->body.n > 0 && json_parse(m->body.p, m->body.n, 0, &all, &e) == 0 &&
        json_member(all, "jsonrpc").p) {
        error = json_member(all, "error");
        if (!m->id.p || json_member(all, "id").p || !error.p) {
            put_line(m->bridge, all.p, all.n);
        } else {
            begin_answer(&w, m->id);
            jw_key(&w, "error");
            jw_raw(&w, error.p, error.n);
            jw_object_end(&w);
            put_line(m->bridge, text.p, text.n);
        }
    } else {
        http_answer_words(&answer, &e);
        put_error(m->bridge, m->id, ERROR_INTERNAL, e.text);
    }
    buf_done(&text);
}

static void send_waiting(struct bridge *b)
{
    struct buf lines = b->waiting;
    const char *p = lines.p, *end = lines.p + lines.n;

    b->is_opening = false;
    b->waiting = BUF_INIT(lines.max);
    while (p < end) {
        size_t n = (size_t)((const char *)memchr(p, '\n', (size_t)(end - p)) - p);

        bridge_line(b, p, n);
        p += n + 1;
    }
    buf_done(&lines);
}

/* The stream of notifications is asked for once the client has said that it is ready. */
static void after(struct message *m)
{
    struct bridge *b = m->bridge;

    if (m->kind == MESSAGE_LISTEN) {
        b->listens = false;
        b->listen_at_us = m->status == 0 || m->status == 200 ? clock_us() + AGAIN_US : 0;
    } else if (m->kind == MESSAGE_NOTE && m->status == 202 && b->session[0] && !b->listens &&
               strcmp(m->method, "notifications/initialized") == 0) {
        b->listen_at_us = clock_us();
    }
}

static void on_done(void *user, const struct http_end *end)
{
    struct message *m = user;
    struct bridge *b = m->bridge;
    bool opened = m->kind == MESSAGE_OPENING;
    bool wanted = is_request(m) && !m->is_cancelled && !m->is_answered;

    m->exchange = NULL;
    if (wanted && !end->whole)
        put_error(b, m->id, ERROR_INTERNAL, end->e->text);
    else if (wanted && m->is_stream)
        put_error(b, m->id, ERROR_INTERNAL, "the daemon has ended the request without an answer");
    else if (wanted)
        answer_refused(m);
    after(m);
    message_free(m);
    if (opened)
        send_waiting(b);
}

/* ---- what the daemon is sent ---- */

/* May it stand in a header as it is? */
static bool is_plain(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] <= ' ' || p[i] > '~')
            return false;
    return n > 0;
}

static void add_line(struct message *m, const char *name, const char *value)
{
    size_t i = 0;

    while (m->asks.lines[i])
        i++;
    (void)snprintf(m->lines[i], sizeof m->lines[i], "%s: %s", name, value);
    m->asks.lines[i] = m->lines[i];
}

/* The member of params that Mcp-Name says again. */
static void add_name(struct message *m, struct json_value params)
{
    struct json_value v = json_member(params, "name");
    cleanup_with(buf_done) struct buf name = BUF_INIT(NAME_MAX_BYTES), text = BUF_INIT(LINE_ROOM);

    if (!v.p)
        v = json_member(params, "uri");
    if (!v.p || v.type != JSON_STRING || json_decode_string(v, 0, &name) < 0)
        return;
    if (is_plain(name.p, name.n)) {
        add_line(m, "Mcp-Name", name.p);
        return;
    }
    (void)buf_puts(&text, "=?base64?");
    if (base64_encode(name.p ? name.p : "", name.n, &text) == 0 && buf_puts(&text, "?=") == 0)
        add_line(m, "Mcp-Name", text.p);
}

static void start(struct message *m)
{
    struct bridge *b = m->bridge;
    struct err e;

    m->asks.line = on_line;
    m->asks.head = on_head;
    m->asks.part = on_part;
    m->asks.done = on_done;
    m->asks.user = m;
    add_line(m, "Accept",
             m->kind == MESSAGE_LISTEN ? "text/event-stream"
                                       : "application/json, text/event-stream");
    if (!m->modern && m->kind != MESSAGE_OPENING && b->session[0])
        add_line(m, "Mcp-Session-Id", b->session);
    if (http_start(b->http, &m->asks, &m->exchange, &e) == 0)
        return;
    if (is_request(m))
        put_error(b, m->id, ERROR_INTERNAL, e.text);
    message_free(m);
}

static void post(struct message *m)
{
    m->asks.path = "/mcp";
    m->asks.body = m->text.p;
    m->asks.body_n = m->text.n;
    start(m);
}

static void listen(struct bridge *b)
{
    struct message *m = message_new(b, MESSAGE_LISTEN);

    b->listen_at_us = 0;
    if (!m)
        return;
    b->listens = true;
    m->asks.path = "/mcp";
    start(m);
}

/* ---- cancellation ---- */

static void note_cancelled(struct bridge *b, struct json_value id)
{
    struct message *m = message_new(b, MESSAGE_NOTE);

    if (!m)
        return;
    (void)buf_puts(&m->text, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                             "\"params\":{\"requestId\":");
    (void)buf_put(&m->text, id.p, id.n);
    (void)buf_puts(&m->text, "}}");
    post(m);
}

/* The daemon may hear of the end of a request before it hears of the request: it is told again. */
static void repeat_cancellations(struct bridge *b)
{
    struct message *m, *next;

    b->repeat_at_us = 0;
    for (m = LIST_FIRST(&b->under_way); m; m = next) {
        next = LIST_NEXT(m, link);
        if (!m->is_cancelled || m->modern)
            continue;
        b->repeat_at_us = clock_us() + REPEAT_US;
        note_cancelled(b, m->id);
    }
}

/* In the modern era the connection is the request. */
static void cancel(struct message *m)
{
    if (m->modern) {
        message_free(m);
        return;
    }
    m->is_cancelled = true;
    repeat_cancellations(m->bridge);
}

static void cancel_named(struct bridge *b, struct json_value params)
{
    struct json_value id = json_member(params, "requestId");
    struct message *m;

    LIST_FOREACH(m, &b->under_way, link)
    if (is_request(m) && id.p && m->id.p && m->id.n == id.n && memcmp(m->id.p, id.p, id.n) == 0 &&
        !m->is_cancelled) {
        cancel(m);
        return;
    }
}

/* ---- what the client says ---- */

static void take_text(struct json_value v, char *out, size_t room)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(room);

    out[0] = '\0';
    if (v.p && v.type == JSON_STRING && json_decode_string(v, 0, &text) == 0 &&
        is_plain(text.p, text.n))
        (void)snprintf(out, room, "%s", text.p);
}

/* What the daemon has to refuse is sent as it is: it knows the words. */
static void classify(struct message *m)
{
    struct json_value all, params;
    struct err e;

    if (json_parse(m->text.p, m->text.n, 0, &all, &e) < 0 || all.type != JSON_OBJECT)
        return;
    (void)json_get(all, "id", &m->id);
    take_text(json_member(all, "method"), m->method, sizeof m->method);
    params = json_member(all, "params");
    take_text(json_member(json_member(params, "_meta"), "io.modelcontextprotocol/protocolVersion"),
              m->version, sizeof m->version);
    m->modern = m->version[0] != '\0';
    if (!m->id.p || !json_member(all, "method").p)
        m->kind = MESSAGE_NOTE;
    else if (!m->modern && strcmp(m->method, "initialize") == 0)
        m->kind = MESSAGE_OPENING;
    if (!m->modern)
        return;
    add_line(m, "MCP-Protocol-Version", m->version);
    if (m->method[0])
        add_line(m, "Mcp-Method", m->method);
    if (strcmp(m->method, "tools/call") == 0 || strcmp(m->method, "resources/read") == 0)
        add_name(m, params);
}

static void send_message(struct message *m)
{
    struct bridge *b = m->bridge;

    if (!m->modern && b->is_opening) {
        (void)buf_put(&b->waiting, m->text.p, m->text.n);
        (void)buf_putc(&b->waiting, '\n');
        message_free(m);
        return;
    }
    if (m->kind == MESSAGE_OPENING)
        b->is_opening = true;
    post(m);
}

static bool is_cancellation(const struct message *m)
{
    return m->kind == MESSAGE_NOTE && strcmp(m->method, "notifications/cancelled") == 0;
}

void bridge_line(struct bridge *b, const char *p, size_t n)
{
    struct message *m;
    struct json_value all;
    struct err e;

    while (n > 0 && (p[n - 1] == '\r' || p[n - 1] == ' '))
        n--;
    if (n == 0)
        return;
    m = message_new(b, MESSAGE_REQUEST);
    if (!m || buf_put(&m->text, p, n) < 0) {
        put_error(b, (struct json_value){0}, ERROR_INTERNAL, "out of memory");
        if (m)
            message_free(m);
        return;
    }
    classify(m);
    if (is_cancellation(m)) {
        message_free(m);
        if (json_parse(p, n, 0, &all, &e) == 0)
            cancel_named(b, json_member(all, "params"));
    } else if (b->under_way_n > BRIDGE_REQUESTS_MAX) {
        put_error(b, m->id, ERROR_SHAPE, "too many requests at the same time");
        message_free(m);
    } else {
        send_message(m);
    }
}

/* ---- all ---- */

static int until(uint64_t at_us, int timeout_ms)
{
    uint64_t now = clock_us();
    int ms = at_us <= now ? 0 : (int)((at_us - now) / MS) + 1;

    return at_us > 0 && (timeout_ms < 0 || ms < timeout_ms) ? ms : timeout_ms;
}

int bridge_turn(struct bridge *b, struct pollfd *fds, size_t fds_n, int timeout_ms, struct err *e)
{
    if (b->listen_at_us > 0 && clock_us() >= b->listen_at_us)
        listen(b);
    if (b->repeat_at_us > 0 && clock_us() >= b->repeat_at_us)
        repeat_cancellations(b);
    timeout_ms = until(b->listen_at_us, until(b->repeat_at_us, timeout_ms));
    if (http_wait(b->http, fds, fds_n, timeout_ms, e) < 0)
        return -1;
    return b->out.failed ? err_set(e, ERR_HOST, "the client does not read what it is sent") : 0;
}

int bridge_open(const struct daemon_at *at, struct bridge **ret, struct err *e)
{
    struct bridge *b = calloc(1, sizeof *b);

    if (!b)
        return err_set(e, ERR_HOST, "no memory");
    LIST_INIT(&b->under_way);
    b->out = BUF_INIT(BRIDGE_OUT_MAX);
    b->waiting = BUF_INIT(BRIDGE_ANSWER_MAX);
    if (http_open(at, &b->http, e) < 0) {
        free(b);
        return -1;
    }
    *ret = b;
    return 0;
}

static void end_session(struct bridge *b)
{
    struct http_request r = {.method = "DELETE", .path = "/mcp?linger=0", .whole_ms = GOODBYE_MS};
    struct http_answer answer = {0};
    char line[SESSION_MAX + 32];
    struct err e;

    (void)snprintf(line, sizeof line, "Mcp-Session-Id: %s", b->session);
    r.lines[0] = line;
    (void)!http_ask(b->http, &r, &answer, &e);
    http_answer_done(&answer);
}

void bridge_close(struct bridge *b)
{
    struct message *m;

    if (!b)
        return;
    while ((m = LIST_FIRST(&b->under_way)))
        message_free(m);
    if (b->session[0])
        end_session(b);
    http_close(b->http);
    buf_done(&b->out);
    buf_done(&b->waiting);
    free(b);
}
