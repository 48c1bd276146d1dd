/* SPDX-License-Identifier: MIT */
/*
 * Answers. Everything here appends to the connection's output and kicks it;
 * nothing is written to the socket before the handler has returned.
 */
#include "http/server/reply.h"

#include <stdio.h>
#include <string.h>

#include "base/digits.h"
#include "base/jw.h"
#include "base/os.h"
#include "http/server/conn.h"

enum {
    REPLY_HEAD_MAX = 1024, /* status line and our own fields */
    REPLY_COPY_MAX = 4096, /* bodies up to this are copied, larger ones referenced */
    REPLY_PIECE = 4 << 20, /* of a referenced body, whose memory goes when it is sent */
    REPLY_UNKNOWN = -1,    /* length of a stream */
};

/* clang-format off */
static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {101, "Switching Protocols"},
    {200, "OK"},                   {201, "Created"},             {202, "Accepted"},
    {204, "No Content"},           {206, "Partial Content"},     {304, "Not Modified"},
    {307, "Temporary Redirect"},   {400, "Bad Request"},         {401, "Unauthorized"},
    {403, "Forbidden"},            {404, "Not Found"},           {405, "Method Not Allowed"},
    {408, "Request Timeout"},      {409, "Conflict"},            {410, "Gone"},
    {411, "Length Required"},      {412, "Precondition Failed"}, {413, "Content Too Large"},
    {414, "URI Too Long"},         {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"}, {417, "Expectation Failed"}, {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"}, {501, "Not Implemented"},    {502, "Bad Gateway"},
    {503, "Service Unavailable"},  {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"}, {507, "Insufficient Storage"},
};

/* clang-format on */

const char *reply_reason(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}

static bool has_no_body(int status)
{
    return status == 204 || status == 304;
}

static void put_field(struct buf *b, const char *name, const char *value)
{
    (void)buf_puts(b, name);
    (void)buf_puts(b, value);
    (void)buf_puts(b, "\r\n");
}

static void put_length(struct buf *b, int64_t length)
{
    struct jw w = JW(b);

    (void)buf_puts(b, "Content-Length: ");
    jw_int(&w, length); /* by hand (jw.c) */
    (void)buf_puts(b, "\r\n");
}

/* Content-Length, or chunks, or (for HTTP/1.0) nothing but the end of the connection. */
static void put_framing(struct http_call *c, struct buf *b, int64_t length)
{
    if (has_no_body(c->status))
        return;
    if (length >= 0)
        put_length(b, length);
    else if (c->minor > 0)
        (void)buf_puts(b, "Transfer-Encoding: chunked\r\n");
    else
        conn_after(c->conn, NEXT_CLOSE);
}

/* By hand, as all of a head: printf is the largest thing that an answer would have to wait for. */
static void put_status(struct buf *b, int status)
{
    char digits[3];

    (void)digits_before(digits + sizeof digits, (uint64_t)status, sizeof digits);
    (void)buf_puts(b, "HTTP/1.1 ");
    (void)buf_put(b, digits, sizeof digits);
    put_field(b, " ", reply_reason(status));
}

static void put_head(struct http_call *c, const char *type, int64_t length)
{
    struct evbuffer *out = conn_out(c->conn);
    struct buf b = BUF_INIT(REPLY_HEAD_MAX + CALL_EXTRA_MAX);

    (void)buf_reserve(&b, REPLY_HEAD_MAX / 2);
    put_status(&b, c->status);
    put_field(&b, "Date: ", server_date(c->srv));
    if (type && !has_no_body(c->status))
        put_field(&b, "Content-Type: ", type);
    put_framing(c, &b, length);
    conn_decide_keep(c->conn);
    if (c->conn->next != NEXT_REQUEST)
        (void)buf_puts(&b, "Connection: close\r\n");
    else if (c->minor == 0 || (length < 0 && c->dialect->traits & DIALECT_KEEP_ALIVE))
        (void)buf_puts(&b, "Connection: keep-alive\r\n");
    if (c->dialect->traits & DIALECT_REQUEST_ID)
        put_field(&b, "X-Request-Id: ", c->req.id);
    (void)buf_puts(&b, "X-Content-Type-Options: nosniff\r\n");
    (void)buf_put(&b, c->extra.p, c->extra.n);
    (void)buf_puts(&b, "\r\n");
    if (b.failed || !out || evbuffer_add(out, b.p, b.n) < 0)
        conn_after(c->conn, NEXT_BREAK);
    buf_done(&b);
}

/*
 * Begins the answer. False when no client waits for one: the call has been answered, or its
 * client is gone; then the call is freed.
 */
static bool begin(struct http_call *c, int status, const char *type, int64_t length)
{
    if (c->state >= CALL_STREAMING)
        return false;
    if (!c->conn) {
        call_orphan_free(c);
        return false;
    }
    c->status = status;
    c->srv->count.requests[status / 100 % 6]++;
    put_head(c, type, length);
    return true;
}

static void finish(struct http_call *c)
{
    call_move(c, CALL_ANSWERED);
    conn_kick(c->conn);
}

/* Text that is sent from where it lies, piece by piece. */
struct pieces {
    char *p;  /* owned */
    size_t n; /* pieces that are not sent yet */
};

/* Giving hundreds of megabytes back takes the kernel long: each piece goes when it has been sent.
 */
static void free_piece(const void *p, size_t n, void *user)
{
    struct pieces *all = user;

    if (--all->n > 0) {
        os_give_back((char *)(uintptr_t)p, n);
        return;
    }
    free(all->p);
    free(all);
}

static int put_pieces(struct evbuffer *out, char *p, size_t n)
{
    struct pieces *all = malloc(sizeof *all);
    size_t at = 0;

    if (!all)
        return free(p), -1;
    *all = (struct pieces){p, 1}; /* one for ourselves */
    while (at < n) {
        size_t part = n - at < REPLY_PIECE ? n - at : REPLY_PIECE;

        all->n++;
        if (evbuffer_add_reference(out, p + at, part, free_piece, all) < 0) {
            all->n--;
            break;
        }
        at += part;
    }
    free_piece(p, 0, all);
    return at == n ? 0 : -1;
}

/* Takes the buffer's memory. */
static void put_body(struct conn *c, struct buf *body)
{
    struct evbuffer *out = body->n > 0 ? conn_out(c) : NULL;
    size_t n = body->n;

    if (!out)
        return;
    if (n <= REPLY_COPY_MAX) {
        if (evbuffer_add(out, body->p, n) < 0)
            conn_after(c, NEXT_BREAK);
        return;
    }
    if (put_pieces(out, buf_take(body, NULL), n) < 0)
        conn_after(c, NEXT_BREAK);
}

void http_reply(struct http_call *c, int status, const char *type, struct buf *body)
{
    /* A body that outgrew its buffer would be a lie. */
    if (body && body->failed) {
        buf_done(body);
        reply_status(c, 500);
        return;
    }
    if (begin(c, status, type, body ? (int64_t)body->n : 0)) {
        if (body && !c->req.head && !has_no_body(status))
            put_body(c->conn, body);
        finish(c);
    }
    if (body)
        buf_done(body);
}

void http_reply_static(struct http_call *c, int status, const char *type, const void *p, size_t n)
{
    struct evbuffer *out;

    if (!begin(c, status, type, (int64_t)n))
        return;
    out = conn_out(c->conn);
    if (out && n > 0 && !c->req.head && evbuffer_add_reference(out, p, n, NULL, NULL) < 0)
        conn_after(c->conn, NEXT_BREAK);
    finish(c);
}

void http_reply_json(struct http_call *c, int status, struct buf *json)
{
    if (c->dialect->reply) {
        c->dialect->reply(c, status, json);
        return;
    }
    if (json->n == 0 || json->p[json->n - 1] != '\n') {
        json->max++; /* the room was for the value */
        (void)buf_putc(json, '\n');
    }
    http_reply(c, status, "application/json", json);
}

void http_reply_text(struct http_call *c, int status, const char *text)
{
    size_t n = strlen(text);
    struct buf body = BUF_INIT(n + 1);

    (void)buf_put(&body, text, n);
    if (n == 0 || text[n - 1] != '\n')
        (void)buf_putc(&body, '\n');
    http_reply(c, status, "text/plain; charset=utf-8", &body);
}

void reply_status(struct http_call *c, int status)
{
    if (status == 503)
        http_set_header(c, "Retry-After", "1");
    c->dialect->refuse(c, status, NULL);
}

void reply_refusal(struct http_call *c, int status, const char *words)
{
    c->dialect->refuse(c, status, words);
}

/* clang-format off */
static const int kinds[] = {
    [ERR_NONE]   = 500,
    [ERR_CALLER] = 400,
    [ERR_DENIED] = 403,
    [ERR_ABSENT] = 404,
    [ERR_BUSY]   = 503,
    [ERR_HOST]   = 500,
    [ERR_BUG]    = 500,
};
/* clang-format on */
_Static_assert(ARRAY_LEN(kinds) == ERR_KIND_COUNT, "every kind has a status");

int reply_status_of(const struct err *e)
{
    return kinds[e->kind];
}

void http_reply_error(struct http_call *c, const struct err *e)
{
    if (reply_status_of(e) == 503)
        http_set_header(c, "Retry-After", "1");
    c->dialect->error(c, e);
}

void http_reply_file(struct http_call *c, int status, const char *type, int fd, uint64_t offset,
                     uint64_t length)
{
    cleanup_close int taken = fd;

    if (!begin(c, status, type, (int64_t)length))
        return;
    if (!c->req.head && length > 0)
        c->conn->file = (struct conn_file){take_fd(&taken), offset, length};
    finish(c);
}

void http_stream_begin(struct http_call *c, int status, const char *type)
{
    if (c->state >= CALL_STREAMING)
        return;
    if (c->conn) {
        c->status = status;
        c->srv->count.requests[status / 100 % 6]++;
        put_head(c, type, REPLY_UNKNOWN);
        conn_kick(c->conn);
    }
    call_move(c, CALL_STREAMING);
}

/* The answer's own words, and nothing of ours but what frames it. */
static void put_relayed(struct http_call *c, const struct http_relayed *r)
{
    struct evbuffer *out = conn_out(c->conn);
    struct buf b = BUF_INIT(REPLY_HEAD_MAX + r->fields_n);
    char digits[3];

    (void)digits_before(digits + sizeof digits, (uint64_t)r->status, sizeof digits);
    (void)buf_puts(&b, "HTTP/1.1 ");
    (void)buf_put(&b, digits, sizeof digits);
    put_field(&b, " ", r->reason);
    (void)buf_put(&b, r->fields, r->fields_n);
    put_framing(c, &b, r->length);
    conn_decide_keep(c->conn);
    if (c->conn->next != NEXT_REQUEST)
        (void)buf_puts(&b, "Connection: close\r\n");
    else if (c->minor == 0)
        (void)buf_puts(&b, "Connection: keep-alive\r\n");
    (void)buf_puts(&b, "\r\n");
    if (b.failed || !out || evbuffer_add(out, b.p, b.n) < 0)
        conn_after(c->conn, NEXT_BREAK);
    buf_done(&b);
}

void http_relay_begin(struct http_call *c, const struct http_relayed *r)
{
    if (c->state >= CALL_STREAMING)
        return;
    if (c->conn) {
        c->status = r->status;
        c->counted = r->length >= 0 || has_no_body(r->status);
        c->left = c->counted && !c->req.head && !has_no_body(r->status) ? (uint64_t)r->length : 0;
        c->srv->count.requests[r->status / 100 % 6]++;
        put_relayed(c, r);
        conn_kick(c->conn);
    }
    call_move(c, CALL_STREAMING);
}

/* The connection is the call's alone from now on, and ends with it. */
void http_upgrade(struct http_call *c, const char *protocol)
{
    struct buf b = BUF_INIT(REPLY_HEAD_MAX + CALL_EXTRA_MAX);
    struct conn *conn = c->conn;
    struct evbuffer *out;

    if (c->state >= CALL_STREAMING)
        return;
    c->status = 101;
    c->upgraded = true;
    call_move(c, CALL_STREAMING);
    if (!conn)
        return;
    c->srv->count.requests[1]++;
    put_status(&b, c->status);
    (void)buf_puts(&b, "Connection: Upgrade\r\n");
    put_field(&b, "Upgrade: ", protocol);
    (void)buf_put(&b, c->extra.p, c->extra.n);
    (void)buf_puts(&b, "\r\n");
    out = conn_out(conn);
    if (b.failed || !out || evbuffer_add(out, b.p, b.n) < 0)
        conn_after(conn, NEXT_BREAK);
    buf_done(&b);
    conn_after(conn, NEXT_LINGER);
    c->input.max = UINT64_MAX;
    conn->body = (struct conn_body){.left = UINT64_MAX};
    if (conn->state == CONN_ANSWER)
        conn_move(conn, CONN_BODY);
    conn_kick(conn);
}

static void put_chunk(struct http_call *c, const void *p, size_t n)
{
    struct evbuffer *out = conn_out(c->conn);
    bool chunked = c->minor > 0 && !c->upgraded && !c->counted;

    if (!out || (chunked && evbuffer_add_printf(out, "%zx\r\n", n) < 0) ||
        evbuffer_add(out, p, n) < 0 || (chunked && evbuffer_add(out, "\r\n", 2) < 0))
        conn_after(c->conn, NEXT_BREAK);
}

size_t http_stream_write(struct http_call *c, const void *p, size_t n)
{
    size_t waiting;

    if (!c->conn || c->state != CALL_STREAMING)
        return 0;
    if (c->counted) {
        n = n < c->left ? n : (size_t)c->left;
        c->left -= n;
    }
    /* An empty chunk would end the stream. */
    if (n > 0 && !c->req.head && c->conn->next != NEXT_BREAK) {
        put_chunk(c, p, n);
        conn_kick(c->conn);
    }
    waiting = conn_pending(c->conn);
    c->choked |= waiting >= HTTP_STREAM_HIGH;
    if (waiting > CONN_OUT_MAX)
        conn_after(c->conn, NEXT_BREAK);
    return waiting;
}

void http_stream_end(struct http_call *c)
{
    if (c->state != CALL_STREAMING)
        return;
    if (!c->conn) {
        call_orphan_free(c);
        return;
    }
    if (c->counted && c->left > 0) { /* the client must not take it for whole */
        http_stream_abort(c);
        return;
    }
    call_put_last_chunk(c);
    finish(c);
}

void http_stream_abort(struct http_call *c)
{
    if (c->state != CALL_STREAMING)
        return;
    if (!c->conn) {
        call_orphan_free(c);
        return;
    }
    call_move(c, CALL_ANSWERED);
    conn_after(c->conn, NEXT_BREAK);
    conn_kick(c->conn);
}

void call_put_last_chunk(struct http_call *c)
{
    struct evbuffer *out;

    if (c->minor == 0 || c->req.head || c->upgraded || c->counted)
        return; /* it ends with the connection, or has no body at all */
    out = conn_out(c->conn);
    if (!out || evbuffer_add(out, "0\r\n\r\n", 5) < 0)
        conn_after(c->conn, NEXT_BREAK);
}
