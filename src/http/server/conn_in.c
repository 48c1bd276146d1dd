/* SPDX-License-Identifier: MIT */
/* From bytes to a call that its handler has seen: head, route, authentication, limits, body. */
#include <string.h>

#include "http/server/conn.h"
#include "http/server/origin.h"
#include "http/server/reply.h"
#include "http/server/websocket.h"

bool conn_body_done(const struct conn *c)
{
    return c->body.chunked ? c->body.chunks.state == H1_CHUNK_DONE : c->body.left == 0;
}

bool conn_body_paused(const struct conn *c)
{
    return c->state == CONN_BODY && c->call && c->call->paused && c->call->state != CALL_ANSWERED;
}

/*
 * May another request follow this answer? Not after the rest of a body that is
 * too long to throw away, nor when the client still waits for 100 Continue: it
 * may send the body after this answer, or not.
 */
void conn_decide_keep(struct conn *c)
{
    bool rest = c->state == CONN_BODY && !conn_body_done(c);

    if (rest && (c->body.chunked || c->body.waits || c->body.left > CONN_SKIP_MAX))
        conn_after(c, NEXT_LINGER);
    if (c->srv->state == SERVER_DRAINING)
        conn_after(c, NEXT_CLOSE);
    if (rest && c->next == NEXT_CLOSE)
        conn_after(c, NEXT_LINGER);
}

void conn_refuse(struct conn *c, int status)
{
    conn_after(c, NEXT_LINGER);
    if (c->call && c->call->state != CALL_READING) {
        struct http_call *call = take_ptr(&c->call);
        bool begun = call->status != 0;

        call_leave(call);
        if (begun) {
            conn_close(c);
            return;
        }
    }
    if (!c->call)
        c->call = call_new_bare(c);
    if (c->call)
        reply_status(c->call, status);
    else
        conn_close(c);
}

/* "/path?query", or the same behind "http://authority" as proxies send it. */
static int split_target(const char *target, struct call_target *ret)
{
    const char *query;

    if (strncasecmp(target, "http://", 7) == 0) {
        target += 7;
        target += strcspn(target, "/?#");
        if (*target == '\0') {
            *ret = (struct call_target){"/", 1, target};
            return 0;
        }
    }
    if ((*target != '/' && *target != '*') || strchr(target, '#'))
        return 400;
    query = strchr(target, '?');
    ret->path = target;
    ret->path_n = query ? (size_t)(query - target) : strlen(target);
    ret->query = query ? query + 1 : target + ret->path_n;
    return 0;
}

static uint64_t body_limit(const struct http_server *s, const struct route *r)
{
    return r->body_max ? r->body_max(s->app) : s->conf.body_max;
}

static const char *secret_of(const struct http_call *call)
{
    const struct dialect *d = call->dialect;
    const char *given =
        d->secret ? d->secret(call) : auth_bearer(http_header(call, "authorization"));

    return given || !(call->route->flags & ROUTE_SOCKET) ? given : websocket_secret(call);
}

static int check_auth(struct http_call *call)
{
    struct http_server *s = call->srv;
    const struct dialect *d = call->dialect;
    struct err e = {.kind = ERR_NONE};
    enum auth_verdict v;

    if (!(call->route->flags & ROUTE_AUTH) || !s->conf.auth)
        return 0;
    if (call->route->flags & ROUTE_SIGNED && d->opens && d->opens(call))
        return 0;
    v = auth_check(s->conf.auth, secret_of(call), &e);
    if (v == AUTH_OK)
        places_trust(call->conn);
    if (v == AUTH_BROKEN && s->conf.log)
        log_event(s->conf.log, LOG_ERROR, "auth_claim_failed", LOG_STR("reason", e.text));
    return v == AUTH_OK ? 0 : v == AUTH_REFUSED ? 401 : 500;
}

/*
 * Before authentication: the claim of a pool must not be a web page's. What is public stays public.
 * Returns true when the request was refused, with words.
 */
static bool refuse_web_page(struct http_call *call, const struct h1_head *h)
{
    const struct http_server *s = call->srv;
    unsigned flags = call->route ? call->route->flags : 0;
    struct origin_facts f;
    const char *why;

    if (!(flags & ROUTE_AUTH) || !s->conf.auth || auth_has_secret(s->conf.auth))
        return false;
    f = (struct origin_facts){
        .host = http_header(call, "host"),
        .origin = http_header(call, "origin"),
        .fetch_site = http_header(call, "sec-fetch-site"),
        .content_type = http_header(call, "content-type"),
        .json = h1_has_body(h) && flags & ROUTE_BODY && !call->dialect->lenient,
    };
    why = origin_refuse(&f, s->conf.allowed_hosts ? s->conf.allowed_hosts : "");
    if (why)
        reply_refusal(call, 403, why);
    return why != NULL;
}

/* The order is part of the contract: path, authentication, method, body. */
static int judge(struct http_call *call, enum route_found found, const struct h1_head *h,
                 const struct call_target *t)
{
    char allow[ROUTE_ALLOW_MAX];
    int bad;

    if (found == ROUTE_NO_PATH)
        return 404;
    bad = check_auth(call);
    if (bad)
        return bad;
    if (found == ROUTE_NO_METHOD) {
        if (call->dialect->traits & DIALECT_ALLOW) {
            route_allow(&call->dialect->routes, t->path, t->path_n, allow);
            http_set_header(call, "Allow", allow);
        }
        return 405;
    }
    call->input.max = body_limit(call->srv, call->route);
    call->body = BUF_INIT(call->input.max);
    return h->length > 0 && (uint64_t)h->length > call->input.max ? 413 : 0;
}

static void dispatch(struct http_call *call)
{
    call_move(call, CALL_HANDLED);
    if (call->body.p)
        call->req.body = call->body.p;
    call->req.body_n = call->body.n;
    call->route->handler(call);
}

static void begin_body(struct conn *c, const struct h1_head *h)
{
    c->body = (struct conn_body){.chunked = h->chunked,
                                 .waits = h->expect && h1_has_body(h),
                                 .chunks = {.state = H1_CHUNK_SIZE},
                                 .left = h->length > 0 ? (uint64_t)h->length : 0};
    if (!h->keep)
        conn_after(c, NEXT_CLOSE);
    conn_move(c, CONN_BODY);
}

/* The request is welcome: tell a client that waits for it, unless the body is here already. */
static void welcome(struct conn *c, bool body_follows)
{
    struct evbuffer *out;

    if (c->body.waits && !body_follows) {
        out = conn_out(c);
        if (!out || evbuffer_add(out, "HTTP/1.1 100 Continue\r\n\r\n", 25) < 0)
            conn_after(c, NEXT_BREAK);
    }
    c->body.waits = false;
    if (c->call->route->flags & ROUTE_BODY_STREAM)
        dispatch(c->call);
}

/* The dialect that claims it, else the first that has a row for it, or that the path belongs to;
 * else the first of all. */
static enum route_found find_route(const struct http_server *s, const struct h1_head *h,
                                   const struct call_target *t, struct route_hit *hit,
                                   const struct dialect **ret)
{
    enum route_found found = ROUTE_NO_PATH;
    struct route_hit one;

    for (const struct dialect *const *d = s->conf.dialects; *d; d++) {
        *ret = *d;
        if ((*d)->claims && (*d)->claims(s->app, h))
            return route_find(&(*d)->routes, h->method, t->path, t->path_n, hit);
    }
    *ret = NULL;
    for (const struct dialect *const *d = s->conf.dialects; *d; d++) {
        const char *prefix = (*d)->prefix;
        enum route_found f;

        if ((*d)->traits & DIALECT_CLAIMED)
            continue;
        f = route_find(&(*d)->routes, h->method, t->path, t->path_n, &one);
        if (f == ROUTE_FOUND || (f == ROUTE_NO_METHOD && found == ROUTE_NO_PATH)) {
            *hit = one;
            *ret = *d;
            found = f;
        } else if (!*ret && prefix && t->path_n >= strlen(prefix) &&
                   memcmp(t->path, prefix, strlen(prefix)) == 0) {
            *ret = *d;
        }
        if (found == ROUTE_FOUND)
            return found;
    }
    if (!*ret)
        *ret = s->conf.dialects[0];
    return found;
}

static void accept_head(struct conn *c, const struct h1_head *h, bool body_follows)
{
    struct call_target t;
    struct route_hit hit;
    const struct dialect *dialect;
    enum route_found found;
    char plain[H1_TARGET_MAX + 1];
    int bad = split_target(h->target, &t);

    if (bad || !route_decode(t.path, t.path_n, plain)) {
        conn_refuse(c, 400);
        return;
    }
    found = find_route(c->srv, h, &t, &hit, &dialect);
    places_busy(c);
    begin_body(c, h);
    c->call = call_new(c, h, &t, found == ROUTE_NO_PATH ? NULL : &hit);
    if (!c->call) {
        conn_close(c);
        return;
    }
    c->call->dialect = dialect;
    if (refuse_web_page(c->call, h) || (dialect->admit && !dialect->admit(c->call)))
        return;
    bad = judge(c->call, found, h, &t);
    if (places_deny(c)) {
        places_turn_away(c->srv, c->fd);
        conn_close(c);
    } else if (bad)
        reply_status(c->call, bad);
    else
        welcome(c, body_follows);
}

static size_t take_head(struct conn *c, char *p, size_t n)
{
    struct h1_head h;
    ssize_t len = h1_head_end(p, n, &c->scanned);
    int bad;

    if (len < 0)
        conn_refuse(c, (int)-len);
    if (len <= 0)
        return 0;
    c->scanned = 0;
    conn_arm(c, CLOCK_NONE); /* the clock of the head, or of the idle time before it */
    bad = h1_parse_head(p, (size_t)len, &h);
    if (bad) {
        conn_refuse(c, bad);
        return 0;
    }
    accept_head(c, &h, n > (size_t)len);
    return (size_t)len;
}

/* Keeps payload for a handler that wants it whole. Returns 0 or the status to refuse with. */
static int keep_body(struct http_call *call, const char *p, size_t n)
{
    struct http_server *s = call->srv;

    if (!(call->route->flags & ROUTE_BODY))
        return 0;
    if (s->count.buffered + n > s->conf.buffered_max)
        return 503;
    if (buf_put(&call->body, p, n) < 0)
        return 500;
    s->count.buffered += n;
    return 0;
}

static int take_payload(struct conn *c, const char *p, size_t n)
{
    struct http_call *call = c->call;
    int bad;

    c->body.got += n;
    if (!call || call->state == CALL_ANSWERED)
        return 0; /* of the rest of a refused body; conn_decide_keep() has seen how long it is */
    if (c->body.got > call->input.max)
        return 413;
    if (!call->upgraded && !(call->route->flags & ROUTE_BODY_STREAM))
        return keep_body(call, p, n);
    bad = call->input.data ? call->input.data(call->input.user, p, n) : 0;
    if (bad && call->state != CALL_ANSWERED) {
        /* The handler said no itself: no need to tell it that its call is over. */
        call->on_gone.fn = NULL;
        if (call->status == 0)
            reply_status(call, bad);
        else
            http_stream_abort(call);
    }
    return 0;
}

static size_t take_body(struct conn *c, const char *p, size_t n)
{
    const char *data = p;
    size_t data_n;
    size_t used;
    int bad = 0;

    if (c->body.chunked) {
        ssize_t k = h1_chunk(&c->body.chunks, p, n, &data, &data_n);

        if (k < 0) {
            conn_refuse(c, 400);
            return 0;
        }
        used = (size_t)k;
    } else {
        used = data_n = n < c->body.left ? n : (size_t)c->body.left;
        c->body.left -= used;
    }
    if (data_n > 0)
        bad = take_payload(c, data, data_n);
    if (bad)
        conn_refuse(c, bad);
    return used;
}

/* The request is complete. */
void conn_body_end(struct conn *c)
{
    struct http_call *call = c->call;

    conn_move(c, CONN_ANSWER);
    if (!(call->route->flags & ROUTE_BODY_STREAM))
        dispatch(call);
    else if (call->input.end)
        call->input.end(call->input.user);
}

size_t conn_take(struct conn *c, char *p, size_t n)
{
    if (c->state == CONN_HEAD)
        return take_head(c, p, n);
    if (c->state == CONN_BODY)
        return take_body(c, p, n);
    return 0;
}
