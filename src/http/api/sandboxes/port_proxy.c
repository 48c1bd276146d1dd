/* SPDX-License-Identifier: MIT */
#include "http/api/sandboxes/port_proxy.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/server/h1.h"
#include "http/server/http_call.h"

enum {
    HEAD_MAX = H1_HEAD_MAX,
    FIELDS_MAX = 2 * H1_HEAD_MAX,
    CHUNK_LINE_MAX = 24,
};

/* How the body of the answer ends. */
enum framing {
    FRAMED_NONE,   /* there is no body */
    FRAMED_LENGTH, /* after so many bytes */
    FRAMED_CHUNKS,
    FRAMED_CLOSE, /* with the connection */
};

enum exchange_state {
    EXCHANGE_DIALLING,
    EXCHANGE_HEAD, /* the head of the answer is awaited */
    EXCHANGE_BODY,
    EXCHANGE_TUNNEL, /* after 101 */
    EXCHANGE_OVER,
};

struct exchange {
    struct http_call *call; /* borrowed; NULL: it is answered, or the client left */
    struct port *port;      /* owned; NULL: not there, or closed */
    struct proxy_order order;
    char id[PERSISTENT_ID_MAX + 1];
    enum exchange_state state;
    enum framing framing;
    bool upload_chunked; /* the body of the request is sent on in chunks */
    uint64_t left;       /* FRAMED_LENGTH */
    struct h1_chunks chunks;
    struct buf head; /* of the request, until it is sent; then of the answer */
};

/* Frees what no one points to any more: the call has ended. */
static void exchange_free(struct exchange *x)
{
    port_close(take_ptr(&x->port));
    buf_done(&x->head);
    free(x);
}

static struct http_call *take_call(struct exchange *x)
{
    struct http_call *c = take_ptr(&x->call);

    if (c) {
        http_on_gone(c, NULL, NULL);
        http_on_drain(c, NULL, NULL);
        http_on_body(c, NULL, NULL, NULL);
    }
    x->state = EXCHANGE_OVER;
    return c;
}

/* ---- the request ---- */

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(name, list[i]) == 0)
            return true;
    return false;
}

/* Does a browser ask for a page that it takes for one of ours? Its cookies are those of everything
 * at this host, whatever the port. */
static bool is_shown(const struct exchange *x)
{
    return x->order.our_origin && http_header(x->call, "sec-fetch-site");
}

/* Fields that are about this hop, or that were for us. */
static bool is_ours(const struct exchange *x, const char *name)
{
    static const char *const ours[] = {
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "content-length",
        "upgrade",
        "expect",
        "e2b-sandbox-id",
        "e2b-sandbox-port",
        "x-access-token",
        "x-api-key",
        "e2b-traffic-access-token",
    };

    return is_one_of(name, ours, ARRAY_LEN(ours)) ||
           (x->order.our_origin && strcasecmp(name, "authorization") == 0) ||
           (is_shown(x) && strcasecmp(name, "cookie") == 0);
}

static void put_field(struct buf *b, const char *name, const char *value)
{
    (void)buf_puts(b, name);
    (void)buf_puts(b, ": ");
    (void)buf_puts(b, value);
    (void)buf_puts(b, "\r\n");
}

static void write_request(struct exchange *x)
{
    struct http_call *c = x->call;
    const char *upgrade = http_header(c, "upgrade"), *name, *value;
    int64_t length = http_body_length(c);
    struct buf *b = &x->head;

    *b = BUF_INIT(FIELDS_MAX);
    (void)buf_printf(b, "%s %s HTTP/1.1\r\n", http_request(c)->method, x->order.target);
    for (size_t i = 0; http_header_at(c, i, &name, &value); i++)
        if (!is_ours(x, name))
            put_field(b, name, value);
    if (!http_header(c, "host"))
        put_field(b, "Host", "localhost");
    if (http_header(c, "content-length"))
        put_field(b, "Content-Length", http_header(c, "content-length"));
    if (length < 0)
        put_field(b, "Transfer-Encoding", "chunked");
    x->upload_chunked = length < 0;
    if (upgrade && http_wants_upgrade(c, upgrade)) {
        put_field(b, "Connection", "Upgrade");
        put_field(b, "Upgrade", upgrade);
    } else {
        put_field(b, "Connection", "close");
    }
    (void)buf_puts(b, "\r\n");
}

static int on_body(void *user, const char *p, size_t n)
{
    struct exchange *x = user;
    char line[CHUNK_LINE_MAX];
    size_t waiting;

    if (!x->port)
        return 0;
    if (x->upload_chunked)
        (void)port_write(x->port, line, (size_t)snprintf(line, sizeof line, "%zx\r\n", n));
    waiting = port_write(x->port, p, n);
    if (x->upload_chunked)
        waiting = port_write(x->port, "\r\n", 2);
    if (waiting >= PORT_HIGH)
        http_body_pause(x->call);
    return 0;
}

static void on_body_end(void *user)
{
    struct exchange *x = user;

    if (x->port && x->upload_chunked)
        (void)port_write(x->port, "0\r\n\r\n", 5);
}

/* ---- the end ---- */

static void on_gone(void *user)
{
    struct exchange *x = user;

    x->call = NULL;
    exchange_free(x);
}

/* Before the answer has begun. */
static void refuse(struct exchange *x, enum port_failure why)
{
    struct http_call *c = take_call(x);

    x->order.refuse(c, x->id, x->order.port, why);
    exchange_free(x);
}

static void complete(struct exchange *x)
{
    struct http_call *c = take_call(x);

    http_stream_end(c);
    exchange_free(x);
}

static void break_off(struct exchange *x)
{
    struct http_call *c = take_call(x);

    http_stream_abort(c);
    exchange_free(x);
}

/* ---- the answer ---- */

static bool is_hop(const char *name)
{
    static const char *const hop[] = {"connection",        "keep-alive",     "proxy-connection",
                                      "transfer-encoding", "content-length", "te",
                                      "trailer",           "upgrade"};

    return is_one_of(name, hop, ARRAY_LEN(hop));
}

/* Fields by which an answer decides about all of its origin, which is the daemon's. */
static bool is_of_origin(const struct exchange *x, const char *name)
{
    static const char *const origin[] = {"service-worker-allowed",
                                         "clear-site-data",
                                         "strict-transport-security",
                                         "alt-svc",
                                         "nel",
                                         "report-to",
                                         "reporting-endpoints"};

    return x->order.our_origin && (is_one_of(name, origin, ARRAY_LEN(origin)) ||
                                   (is_shown(x) && strcasecmp(name, "set-cookie") == 0));
}

/* A page of a tenant must not act as one of the daemon's: it gets an origin that no other has. */
static void show_apart(const struct exchange *x, struct buf *fields)
{
    if (x->order.our_origin)
        put_field(fields, "Content-Security-Policy",
                  "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts");
}

static void begin_tunnel(struct exchange *x, const struct h1_answer *a)
{
    const char *protocol = h1_field(&a->head, "upgrade");

    for (size_t i = 0; i < a->head.fields_n; i++)
        if (!is_hop(a->head.field[i].name))
            http_set_header(x->call, a->head.field[i].name, a->head.field[i].value);
    x->state = EXCHANGE_TUNNEL;
    x->upload_chunked = false;
    http_upgrade(x->call, protocol);
}

static void begin_answer(struct exchange *x, const struct h1_answer *a)
{
    struct buf fields = BUF_INIT(FIELDS_MAX);
    const struct h1_head *h = &a->head;
    bool bodiless = http_request(x->call)->head || a->status == 204 || a->status == 304;

    for (size_t i = 0; i < h->fields_n; i++)
        if (!is_hop(h->field[i].name) && !is_of_origin(x, h->field[i].name))
            put_field(&fields, h->field[i].name, h->field[i].value);
    show_apart(x, &fields);
    x->framing = bodiless         ? FRAMED_NONE
                 : h->chunked     ? FRAMED_CHUNKS
                 : h->length >= 0 ? FRAMED_LENGTH
                                  : FRAMED_CLOSE;
    x->left = h->length > 0 ? (uint64_t)h->length : 0;
    x->chunks = (struct h1_chunks){.state = H1_CHUNK_SIZE};
    x->state = EXCHANGE_BODY;
    http_relay_begin(x->call, &(struct http_relayed){.status = a->status,
                                                     .reason = a->reason,
                                                     .fields = fields.p ? fields.p : "",
                                                     .fields_n = fields.n,
                                                     .length = h->length});
    buf_done(&fields);
}

/* Did the client ask for the protocol that the server changes to? */
static bool may_upgrade(const struct exchange *x, const struct h1_answer *a)
{
    const char *protocol = h1_field(&a->head, "upgrade");

    return protocol && http_wants_upgrade(x->call, protocol);
}

/* The complete head x->head.p[0..n). False: the exchange is over. */
static bool take_head(struct exchange *x, size_t n)
{
    struct h1_answer a;

    if (!h1_parse_answer(x->head.p, n, &a) || (a.status == 101 && !may_upgrade(x, &a))) {
        refuse(x, PORT_FAILED);
        return false;
    }
    if (a.status == 101)
        begin_tunnel(x, &a);
    else if (a.status >= 200)
        begin_answer(x, &a);
    return true; /* 100 Continue and the like: another head follows */
}

/* Collects the head; what follows it stays in x->head. False: over, or more is needed. */
static bool collect_head(struct exchange *x, const char *p, size_t n)
{
    (void)buf_put(&x->head, p, n);
    while (x->state == EXCHANGE_HEAD) {
        size_t scanned = 0, had = x->head.n < HEAD_MAX ? x->head.n : HEAD_MAX;
        ssize_t end = x->head.failed ? -1 : h1_head_end(x->head.p, had, &scanned);

        if (end < 0 || (end == 0 && x->head.n >= HEAD_MAX)) {
            refuse(x, PORT_FAILED);
            return false;
        }
        if (end == 0 || !take_head(x, (size_t)end))
            return false;
        buf_consume(&x->head, (size_t)end);
    }
    return true;
}

/* Bytes of the body, without their framing. False: the exchange is over. */
static bool pass(struct exchange *x, const char *p, size_t n, bool *ret_full)
{
    size_t data_n = n;
    const char *data = p;

    while (n > 0 && x->framing == FRAMED_CHUNKS) {
        ssize_t used = h1_chunk(&x->chunks, p, n, &data, &data_n);

        if (used < 0) {
            break_off(x);
            return false;
        }
        *ret_full |= http_stream_write(x->call, data, data_n) >= HTTP_STREAM_HIGH;
        p += used;
        n -= (size_t)used;
        if (x->chunks.state == H1_CHUNK_DONE)
            break;
    }
    if (x->framing == FRAMED_LENGTH) {
        data_n = n < x->left ? n : (size_t)x->left;
        x->left -= data_n;
    }
    if (x->framing == FRAMED_LENGTH || x->framing == FRAMED_CLOSE)
        *ret_full |= http_stream_write(x->call, data, data_n) >= HTTP_STREAM_HIGH;
    if (x->framing == FRAMED_NONE || (x->framing == FRAMED_LENGTH && x->left == 0) ||
        (x->framing == FRAMED_CHUNKS && x->chunks.state == H1_CHUNK_DONE)) {
        complete(x);
        return false;
    }
    return true;
}

static bool on_data(void *user, const char *p, size_t n)
{
    struct exchange *x = user;
    struct buf rest;
    bool full = false;

    if (x->state == EXCHANGE_TUNNEL)
        return http_stream_write(x->call, p, n) < HTTP_STREAM_HIGH;
    if (x->state == EXCHANGE_BODY)
        return pass(x, p, n, &full) && !full;
    if (!collect_head(x, p, n))
        return true;
    rest = x->head;
    x->head = BUF_INIT(0);
    if (x->state == EXCHANGE_TUNNEL)
        full = http_stream_write(x->call, rest.p, rest.n) >= HTTP_STREAM_HIGH;
    else
        (void)pass(x, rest.p, rest.n, &full);
    buf_done(&rest);
    return !full;
}

/* ---- the connection ---- */

static void on_opened(void *user)
{
    struct exchange *x = user;

    write_request(x);
    if (x->head.failed) {
        refuse(x, PORT_FAILED);
        return;
    }
    (void)port_write(x->port, x->head.p, x->head.n);
    buf_done(&x->head);
    x->head = BUF_INIT(2 * HEAD_MAX + PORT_HIGH);
    x->state = EXCHANGE_HEAD;
    http_body_resume(x->call);
}

static void on_failed(void *user, enum port_failure why)
{
    refuse(user, why);
}

static void on_ended(void *user)
{
    struct exchange *x = user;

    if (x->state == EXCHANGE_TUNNEL || (x->state == EXCHANGE_BODY && x->framing == FRAMED_CLOSE))
        complete(x);
    else if (x->state == EXCHANGE_BODY)
        break_off(x);
    else
        refuse(x, PORT_FAILED);
}

static void on_port_drained(void *user)
{
    struct exchange *x = user;

    http_body_resume(x->call);
}

static void on_call_drained(void *user)
{
    struct exchange *x = user;

    port_resume(x->port);
}

static const struct port_events port_events = {on_opened, on_failed, on_data, on_ended,
                                               on_port_drained};

void proxy_call(struct http_call *c, const struct proxy_order *o)
{
    struct exchange *x = calloc(1, sizeof *x);
    struct err e;

    if (!x) {
        o->refuse(c, o->home->id, o->port, PORT_BUSY);
        return;
    }
    *x = (struct exchange){.call = c, .order = *o};
    (void)snprintf(x->id, sizeof x->id, "%s", o->home->id);
    http_body_pause(c); /* until there is someone to send it to */
    if (port_dial(o->home, o->port, &port_events, x, &x->port, &e) < 0) {
        (void)take_call(x);
        free(x);
        o->refuse(c, o->home->id, o->port, e.kind == ERR_BUSY ? PORT_BUSY : PORT_FAILED);
        return;
    }
    http_on_gone(c, on_gone, x);
    http_on_drain(c, on_call_drained, x);
    http_on_body(c, on_body, on_body_end, x);
}
