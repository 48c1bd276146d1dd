/* SPDX-License-Identifier: MIT */
#include "http/server/conn.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/os.h"

enum { PATIENCE_MS = 60000 };

/* clang-format off */
static const struct {
    const char *name;
    unsigned next; /* legal successors */
} states[] = {
    [CONN_HEAD]    = {"head",    BIT(CONN_BODY) | BIT(CONN_CLOSING) | BIT(CONN_DEAD)},
    [CONN_BODY]    = {"body",    BIT(CONN_HEAD) | BIT(CONN_ANSWER) | BIT(CONN_CLOSING) |
                                 BIT(CONN_DEAD)},
    [CONN_ANSWER]  = {"answer",  BIT(CONN_HEAD) | BIT(CONN_BODY) | BIT(CONN_CLOSING) |
                                 BIT(CONN_DEAD)},
    [CONN_CLOSING] = {"closing", BIT(CONN_LINGER) | BIT(CONN_DEAD)},
    [CONN_LINGER]  = {"linger",  BIT(CONN_DEAD)},
    [CONN_DEAD]    = {"dead",    0},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(states) == CONN_STATE_COUNT, "every state has a row");

void conn_move(struct conn *c, enum conn_state to)
{
    assert(states[c->state].next & BIT(to));
    c->state = to;
}

void conn_after(struct conn *c, enum conn_next next)
{
    if (c->next < next)
        c->next = next;
}

/* What must grow while this clock runs. */
static uint64_t progress(const struct conn *c, enum conn_clock clock)
{
    return clock == CLOCK_BODY     ? c->body.got
           : clock == CLOCK_STALL  ? c->sent
           : clock == CLOCK_LINGER ? c->waste.n
                                   : 0;
}

void conn_arm(struct conn *c, enum conn_clock clock)
{
    if (c->clock == clock)
        return; /* clocks are absolute: what happens meanwhile does not wind them up */
    c->clock = clock;
    c->mark = progress(c, clock);
    if (clock == CLOCK_NONE)
        (void)event_del(&c->timer);
    else
        (void)event_add(&c->timer, c->srv->clock[clock]);
}

/* A writer that goes on because the client took everything waits for the next turn of the loop: a
 * client that reads fast would have all of a long answer made in one. */
void conn_kick(struct conn *c)
{
    static const struct timeval next_turn = {0};

    if (c->srv->draining == c)
        (void)event_add(&c->kick, &next_turn);
    else if (c->srv->parsing != c) /* parse() looks at it again anyway */
        event_active(&c->kick, EV_TIMEOUT, 0);
}

void conn_close(struct conn *c)
{
    struct http_call *call = take_ptr(&c->call);

    if (c->state == CONN_DEAD)
        return;
    conn_deaf(c);
    conn_move(c, CONN_DEAD);
    (void)event_del(&c->wr);
    (void)event_del(&c->timer);
    (void)event_del(&c->kick);
    (void)close(c->fd);
    c->fd = -1;
    server_on_closed(c->srv, c);
    if (call)
        call_leave(call);
}

void conn_free(struct conn *c)
{
    if (c->out)
        evbuffer_free(c->out);
    if (c->file.fd >= 0)
        (void)close(c->file.fd);
    buf_done(&c->in);
    free(c);
}

bool conn_at_rest(const struct conn *c)
{
    return c->state == CONN_HEAD && c->in.n == 0 && conn_pending(c) == 0;
}

/* The record of a finished call. The query may carry secrets: it is not logged. */
static void log_call(const struct http_call *call)
{
    const struct log *l = call->srv->conf.log;

    if (l && l->level <= LOG_DEBUG)
        log_event(l, LOG_DEBUG, "http_request", LOG_STR("method", call->req.method),
                  LOG_STR("path", call->req.path), LOG_INT("status", call->status),
                  LOG_INT("duration_us", (int64_t)(clock_us() - call->started_us)),
                  LOG_STR("request_id", call->req.id));
}

/* The answer is queued completely. What is next? */
static void end_call(struct conn *c)
{
    log_call(c->call);
    call_free(take_ptr(&c->call));
    if (c->next != NEXT_REQUEST || (c->srv->state == SERVER_DRAINING && c->in.n == 0))
        conn_move(c, CONN_CLOSING);
    else if (c->state != CONN_BODY || conn_body_done(c))
        conn_move(c, CONN_HEAD);
}

/* Takes one step that needs no input. False when there is none. */
static bool settle(struct conn *c)
{
    bool awake = c->state == CONN_HEAD || c->state == CONN_BODY || c->state == CONN_ANSWER;

    if (!awake)
        return false;
    if (c->next == NEXT_BREAK) {
        conn_close(c);
        return false;
    }
    if (c->call && c->call->state == CALL_ANSWERED) {
        if (c->file.fd >= 0)
            return false;
        end_call(c);
        return true;
    }
    if (c->state == CONN_BODY && conn_body_done(c) && !conn_body_paused(c)) {
        if (c->call)
            conn_body_end(c);
        else
            conn_move(c, CONN_HEAD);
        return true;
    }
    if (!c->call && c->ear == EAR_ENDED) {
        conn_move(c, CONN_CLOSING);
        return true;
    }
    return false;
}

static bool may_parse(const struct conn *c)
{
    if (conn_pending(c) >= HTTP_STREAM_HIGH || (c->call && c->call->state == CALL_ANSWERED))
        return false;
    return c->state == CONN_HEAD || (c->state == CONN_BODY && !conn_body_paused(c));
}

/* Parses p[0..n) as far as it goes. Returns the bytes consumed. */
static size_t parse(struct conn *c, char *p, size_t n)
{
    size_t used = 0, k = 1;

    c->srv->parsing = c;
    while (settle(c))
        ;
    while (k > 0 && used < n && may_parse(c)) {
        k = conn_take(c, p + used, n - used);
        used += k;
        while (settle(c))
            ;
    }
    c->srv->parsing = NULL;
    c->held = used < n && k > 0;
    return used;
}

/* A clock that runs already goes on. */
static enum conn_clock idle_clock(const struct conn *c)
{
    if (c->clock == CLOCK_IDLE || c->clock == CLOCK_IDLE_SHORT)
        return c->clock;
    return c->place == PLACE_STRANGER && places_are_few(c->srv) ? CLOCK_IDLE_SHORT : CLOCK_IDLE;
}

/* The clock that belongs to the state the connection rests in. */
static enum conn_clock clock_for(const struct conn *c)
{
    bool sending = conn_is_sending(c);

    switch (c->state) {
    case CONN_HEAD:
        if (conn_pending(c) >= HTTP_STREAM_HIGH)
            return CLOCK_STALL;
        if (c->in.n > 0 || c->clock == CLOCK_HEAD) /* from the first moment on (conn_new) */
            return CLOCK_HEAD;
        return sending ? CLOCK_STALL : idle_clock(c);
    case CONN_BODY:
        if (conn_pending(c) >= HTTP_STREAM_HIGH)
            return CLOCK_STALL;
        if (conn_body_paused(c) || (c->call && c->call->upgraded))
            return CLOCK_NONE;
        return CLOCK_BODY;
    case CONN_ANSWER:
        return sending ? CLOCK_STALL : CLOCK_NONE;
    case CONN_CLOSING:
        return CLOCK_STALL;
    case CONN_LINGER:
        return CLOCK_LINGER;
    case CONN_DEAD:
    case CONN_STATE_COUNT:
        break;
    }
    return CLOCK_NONE;
}

/* A writer that had to stop may go on. */
static void tell_drained(struct conn *c)
{
    struct http_server *srv = c->srv;
    struct http_call *call = c->call;

    if (!call || !call->choked || call->state == CALL_ANSWERED ||
        conn_pending(c) >= HTTP_STREAM_HIGH)
        return;
    call->choked = false;
    if (!call->on_drain.fn)
        return;
    srv->draining = c;
    call->on_drain.fn(call->on_drain.user);
    srv->draining = NULL;
}

/* Writes, then arms what belongs to the state. The end of every callback. */
static void rest(struct conn *c)
{
    if (c->state == CONN_DEAD || c->state == CONN_LINGER)
        return;
    conn_flush(c);
    if (c->state == CONN_DEAD)
        return;
    /* A file that has gone out ends its call; an emptied queue lets waiting input through. */
    if ((c->call && c->call->state == CALL_ANSWERED && c->file.fd < 0) || (c->held && may_parse(c)))
        conn_kick(c);
    if (c->state == CONN_CLOSING && !conn_is_sending(c))
        conn_linger(c);
    if (c->state == CONN_DEAD)
        return;
    places_rest(c);
    conn_listen(c);
    conn_arm(c, clock_for(c));
    tell_drained(c);
}

void conn_run(struct conn *c)
{
    size_t used = parse(c, c->in.p, c->in.n);

    if (c->state == CONN_DEAD)
        return;
    if (used < c->in.n)
        buf_consume(&c->in, used);
    else
        buf_done(&c->in); /* an idle connection holds no input memory */
    rest(c);
}

/* n fresh bytes are in the server's buffer. */
static void input(struct conn *c, size_t n)
{
    char *p = c->srv->rbuf;
    size_t used = 0;

    if (c->in.n == 0) {
        used = parse(c, p, n);
        if (c->state == CONN_DEAD)
            return;
        if (used == n) {
            rest(c);
            return;
        }
    }
    if (buf_put(&c->in, p + used, n - used) < 0) {
        conn_close(c);
        return;
    }
    if (used == 0 && c->in.n > n)
        conn_run(c);
    else
        rest(c);
}

/*
 * Nothing more comes: the client left, or has only closed its side and still reads. What would be
 * ended because it left, and what has not come whole, ends; whatever goes on anyway is answered.
 */
static bool ends_with_input(const struct conn *c)
{
    const struct http_call *call = c->call;

    return call && call->state != CALL_ANSWERED && (call->on_gone.fn || c->state != CONN_ANSWER);
}

void conn_on_eof(struct conn *c)
{
    if (c->state == CONN_DEAD)
        return;
    if (c->state == CONN_LINGER || ends_with_input(c) || conn_at_rest(c)) {
        conn_close(c);
        return;
    }
    conn_ended(c);
    conn_after(c, NEXT_CLOSE);
    conn_run(c);
}

static void throw_away(struct conn *c)
{
    ssize_t n = conn_read(c, CONN_READ_MAX);

    if (n == -1)
        return;
    if (n > 0)
        c->waste.n += (size_t)n;
    if (n <= 0 || c->waste.n > CONN_LINGER_MAX)
        conn_close(c);
}

static void on_read(evutil_socket_t fd, short what, void *user)
{
    struct conn *c = user;
    size_t room;
    ssize_t n;

    (void)fd;
    (void)what;
    if (c->state == CONN_LINGER) {
        throw_away(c);
        return;
    }
    room = conn_read_room(c);
    if (room == 0) { /* since we were woken so much was written that nothing more is taken in */
        conn_listen(c);
        return;
    }
    n = conn_read(c, room);
    if (n > 0)
        input(c, (size_t)n);
    else if (n == 0)
        conn_on_eof(c);
    else if (n == -2)
        conn_close(c);
}

void conn_read_now(struct conn *c)
{
    on_read(c->fd, EV_READ, c);
}

static void on_write(evutil_socket_t fd, short what, void *user)
{
    struct conn *c = user;

    (void)fd;
    (void)what;
    conn_flush(c);
    if (c->state != CONN_DEAD)
        conn_run(c);
}

static void on_kick(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    conn_run(user);
}

/* It has been answered: it is waited for, but not forever, and not when we are to end. */
static bool goes_on_sending(struct conn *c)
{
    return c->waste.n != c->mark && ++c->waste.turns < CONN_LINGER_TURNS &&
           c->srv->state != SERVER_DRAINING;
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct conn *c = user;
    enum conn_clock clock = c->clock;

    (void)fd;
    (void)what;
    c->clock = CLOCK_NONE;
    if ((clock == CLOCK_BODY && c->body.got - c->mark >= c->srv->conf.body_rate) ||
        (clock == CLOCK_STALL && c->sent != c->mark) ||
        (clock == CLOCK_LINGER && goes_on_sending(c))) {
        conn_arm(c, clock);
        return;
    }
    c->srv->count.timeouts += clock != CLOCK_IDLE && clock != CLOCK_IDLE_SHORT;
    if ((clock == CLOCK_HEAD && c->in.n > 0) || (clock == CLOCK_BODY && c->call)) {
        conn_refuse(c, 408);
        if (c->state != CONN_DEAD)
            conn_run(c);
        return;
    }
    conn_close(c);
}

/* Small answers at once; a peer that vanished without a word is found within about a minute. */
static void set_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY,   1 },
        {SOL_SOCKET,  SO_KEEPALIVE,  1 },
        {IPPROTO_TCP, TCP_KEEPIDLE,  30},
        {IPPROTO_TCP, TCP_KEEPINTVL, 10},
        {IPPROTO_TCP, TCP_KEEPCNT,   3 },
    };

    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
    os_patience(fd, PATIENCE_MS);
}

struct conn *conn_new(struct http_server *s, int fd)
{
    cleanup_close int taken = fd;
    struct conn *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->srv = s;
    c->fd = take_fd(&taken);
    c->file.fd = -1;
    c->in = BUF_INIT(CONN_IN_MAX);
    set_options(fd);
    (void)event_assign(&c->rd, s->base, fd, EV_READ | EV_PERSIST, on_read, c);
    (void)event_assign(&c->wr, s->base, fd, EV_WRITE, on_write, c);
    (void)event_assign(&c->timer, s->base, -1, 0, on_timer, c);
    (void)event_assign(&c->kick, s->base, -1, 0, on_kick, c);
    LIST_INSERT_HEAD(&s->conns, c, link);
    conn_arm(c, CLOCK_HEAD);
    return c;
}

/* Is there a request on its way that we would cut off? */
bool conn_has_unread(const struct conn *c)
{
    char byte;

    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/*
 * Ends a call from our side: its handler is told. What has begun is broken off, without a last
 * chunk or an answer that asks for it again: a client must not take it for whole, or for not begun.
 */
static void end_early(struct conn *c)
{
    struct http_call *call = c->call;

    if (call->status != 0 && (call->state != CALL_STREAMING || c->file.fd >= 0))
        return;
    conn_after(c, NEXT_LINGER);
    if (call->state == CALL_READING) {
        conn_refuse(c, 503);
        return;
    }
    c->call = NULL;
    call_leave(call);
    conn_move(c, CONN_CLOSING);
    conn_kick(c);
}

void conn_shutdown(struct conn *c, bool now)
{
    bool busy = c->call && c->call->state != CALL_ANSWERED;

    if (now) {
        if (busy)
            end_early(c);
        if (c->state != CONN_DEAD)
            conn_flush(c);
        conn_close(c);
        return;
    }
    if (busy && c->call->state == CALL_STREAMING &&
        (c->call->upgraded || c->call->route->flags & ROUTE_FOLLOW))
        end_early(c);
    else if (conn_at_rest(c) && !conn_has_unread(c))
        conn_close(c);
    else if (c->state == CONN_HEAD && c->in.n == 0 && !conn_has_unread(c))
        conn_move(c, CONN_CLOSING);
}
