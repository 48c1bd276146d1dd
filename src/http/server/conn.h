/* SPDX-License-Identifier: MIT */
/*
 * Inside the HTTP folder: a connection, its call and the server they hang from.
 * Handlers see http_call.h only.
 *
 *   accept ─▶ HEAD ──▶ BODY ──▶ ANSWER ──▶ HEAD (keep-alive)
 *               │        │         │
 *               │        ◀─upgrade─┤
 *               └────────┴─────────┴─▶ CLOSING ─▶ LINGER ─▶ DEAD
 *
 * HEAD     waiting for a request head, or for anything at all
 * BODY     reading a body; without a call: discarding the rest of one that was
 *          answered early
 *          after http_upgrade(): whatever the client sends, without end
 * ANSWER   the request is complete, the handler owes the answer
 * CLOSING  the last answer is on its way out
 * LINGER   our side is shut; what the client still sends is thrown away, because
 *          closing with unread input would reset the connection: its next
 *          send() would fail, and it would never read the answer. Bounded by
 *          bytes, by silence and by time (CONN_LINGER_*)
 * DEAD     closed; the memory goes back when the loop is out of our functions
 *
 * Rules that keep this simple:
 *  - One request at a time per connection. Pipelined ones wait in `in`.
 *  - Functions a handler calls only append to `out`, set flags and kick the
 *    connection; reading, writing, closing and calling back happen in loop
 *    callbacks only. A handler is never re-entered.
 *  - Input is parsed only while less than HTTP_STREAM_HIGH of output waits.
 *  - A client that leaves is noticed through reading while we read, and
 *    through the server's watch (conn_io.c) while we do not.
 */
#pragma once

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <time.h>

#include "base/buf.h"
#include "http/server/dialect.h"
#include "http/server/h1.h"
#include "http/server/http_call.h"
#include "http/server/route.h"
#include "http/server/server.h"

enum {
    CONN_READ_MAX = 64 * 1024,          /* one recv(); the server's shared buffer */
    CONN_AHEAD_MAX = 16 * 1024,         /* bytes read ahead while a call is answered */
    CONN_IN_MAX = CONN_READ_MAX * 2,    /* input that waits; the sum of the two fits */
    CONN_WRITE_MAX = 1024 * 1024,       /* one turn of writing, then the others run */
    CONN_SKIP_MAX = 64 * 1024,          /* rest of a refused body worth reading */
    CONN_LINGER_MAX = 64 * 1024 * 1024, /* bytes thrown away before closing */
    CONN_LINGER_MS = 5000,              /* a client that has sent nothing for so long will not */
    CONN_LINGER_TURNS = 6,              /* and how often one that goes on sending is waited for */
    CONN_OUT_MAX = 64 * 1024 * 1024,    /* a writer that ignores the high mark ends here */
    CALL_EXTRA_MAX = 4096,              /* extra response headers of one call */
    CALL_ID_MAX = 128,                  /* a caller's X-Request-Id */
    SERVER_LISTENERS_MAX = 8,
    SERVER_REFUSED_MAX = 64,     /* connections over the limit that may still hear why */
    SERVER_ACCEPT_BATCH = 64,    /* connections accepted in one turn */
    SERVER_ACCEPT_PAUSE_MS = 100 /* out of descriptors: try again then */
};

enum conn_state {
    CONN_HEAD,
    CONN_BODY,
    CONN_ANSWER,
    CONN_CLOSING,
    CONN_LINGER,
    CONN_DEAD,
    CONN_STATE_COUNT,
};

/* Whose place among the connections this one has; see places.c. */
enum conn_place {
    PLACE_STRANGER, /* no request on it has brought the secret */
    PLACE_TRUSTED,  /* one has */
    PLACE_KINDS,
    PLACE_NONE = PLACE_KINDS, /* beyond the limit: told so, not counted */
};

/* How the end of the client, or more of its bytes, is noticed. Written by conn_io.c. */
enum conn_ear {
    EAR_NONE,
    EAR_READ,  /* `rd` is added */
    EAR_WATCH, /* the server's watch has it: its end is seen, nothing is read */
    EAR_ENDED, /* the client sends no more; for good */
};

/* What follows the answer under way. Only conn_after() writes it; it only grows during a request.
 */
enum conn_next {
    NEXT_REQUEST,
    NEXT_CLOSE,
    NEXT_LINGER, /* close, but input may be unread then */
    NEXT_BREAK,  /* memory or the output limit failed us: close at the next kick */
};

/* The clocks; at most one runs per connection. */
enum conn_clock {
    CLOCK_NONE,
    CLOCK_HEAD,
    CLOCK_IDLE,
    CLOCK_IDLE_SHORT, /* the same when few places are left */
    CLOCK_BODY,
    CLOCK_STALL,
    CLOCK_LINGER,
    CLOCK_COUNT,
};

/* The body of the request under way. */
struct conn_body {
    bool chunked;
    bool waits; /* the client waits for 100 Continue and has not got it */
    struct h1_chunks chunks;
    uint64_t left; /* Content-Length framing */
    uint64_t got;  /* payload so far */
};

/* Input thrown away before closing. */
struct conn_waste {
    size_t n;
    unsigned turns;
};

struct conn_file {
    int fd; /* owned; -1: none */
    uint64_t at, left;
};

struct conn {
    struct http_server *srv; /* borrowed */
    LIST_ENTRY(conn) link;
    TAILQ_ENTRY(conn) idle_link;
    struct event rd, wr, timer, kick;
    struct http_call *call; /* owned; NULL between requests */
    struct evbuffer *out;   /* owned; NULL while nothing waits */
    struct conn_file file;  /* follows `out` */
    struct buf in;          /* input not yet parsed */
    size_t scanned;         /* of `in`, for the end of the head */
    struct conn_body body;
    struct conn_waste waste;
    uint64_t sent; /* bytes written */
    uint64_t mark; /* of what the clock measures, at its last tick */
    int fd;        /* owned */
    enum conn_state state;
    enum conn_clock clock;
    enum conn_place place;
    enum conn_ear ear;
    enum conn_next next;
    bool idle; /* in the server's queue of idle connections */
    bool held; /* input waits for something else than more input */
};

/* Offsets into text; small, because an idle stream keeps them. */
struct call_field {
    uint16_t name, value;
};

/* Only call_move() writes it. */
enum call_state {
    CALL_READING,   /* the handler has not seen it */
    CALL_HANDLED,   /* the handler owes the answer */
    CALL_STREAMING, /* an answer of unknown length has begun */
    CALL_ANSWERED,  /* the answer is complete; what the handler still says is ignored */
};

struct http_call {
    struct http_server *srv;   /* borrowed */
    struct conn *conn;         /* borrowed; NULL: the client left, and there is no gone callback */
    const struct route *route; /* borrowed; NULL: no path matched */
    const struct dialect *dialect;
    LIST_ENTRY(http_call) orphan_link;
    struct http_request req;
    struct buf body, extra;
    struct {
        http_gone_fn *fn;
        void *user;
    } on_gone;
    struct {
        http_drain_fn *fn;
        void *user;
    } on_drain;
    struct {
        http_data_fn *data;
        http_end_fn *end;
        void *user;
        uint64_t max;
    } input; /* the request's body, as it comes */
    uint64_t started_us;
    int status; /* of the answer, once begun */
    int minor;  /* HTTP/1.<minor> */
    enum call_state state;
    bool choked, paused;
    bool counted; /* the length of the answer's body was told: no chunks, and `left` of it to go */
    uint64_t left;
    bool upgraded; /* bytes go both ways without framing (http_upgrade()) */
    uint16_t fields_n;
    const struct call_field *field; /* in the same memory as the call, like text and req */
    const char *text;
};

LIST_HEAD(conn_list, conn);
TAILQ_HEAD(conn_queue, conn);
LIST_HEAD(call_list, http_call);

enum server_state {
    SERVER_DEAF, /* no new connections */
    SERVER_SERVING,
    SERVER_DRAINING, /* none, and those there are end */
};

struct http_server {
    struct event_base *base; /* borrowed */
    struct http_server_conf conf;
    struct app *app; /* borrowed */
    struct {
        struct event *event[SERVER_LISTENERS_MAX]; /* owned, with their descriptors */
        size_t n;
    } listeners;
    uint16_t port;
    struct event accept_again, reap, grace;
    struct {
        struct event *event; /* owned */
        int fd;              /* owned: an epoll set, see conn_watch.c */
    } watch;
    const struct timeval *clock[CLOCK_COUNT];
    struct conn_list conns, dead;
    struct conn_queue idle[PLACE_KINDS]; /* longest first */
    struct conn *parsing;                /* whose input is parsed now: it needs no kick */
    struct conn *draining;               /* whose writer is told to go on now */
    uint64_t trusted_n;
    struct call_list orphans;
    uint32_t over_n;
    struct http_counters count;
    struct {
        http_drained_fn *fn;
        void *user;
    } drained;
    enum server_state state;
    struct {
        time_t at;
        char text[32]; /* "Sun, 06 Nov 1994 08:49:37 GMT" */
    } date;
    char rbuf[CONN_READ_MAX]; /* what recv() fills; used within one callback only */
};

/* conn.c: life, clocks, the loop's callbacks */
struct conn *conn_new(struct http_server *s, int fd); /* takes fd also on failure (NULL) */
void conn_close(struct conn *c);                      /* idempotent; tells the call */
void conn_free(struct conn *c);                       /* from the reaper and the server's end */
void conn_kick(struct conn *c);                       /* look at it again soon */
void conn_move(struct conn *c, enum conn_state to);   /* the only writer of c->state */
void conn_after(struct conn *c, enum conn_next next); /* at least that */
void conn_arm(struct conn *c, enum conn_clock clock);
void conn_run(struct conn *c); /* parse what waits, write, arm what belongs to the state */
void conn_shutdown(struct conn *c, bool now); /* draining begins (or its time is over) */
void conn_on_eof(struct conn *c);             /* the client will send no more, or is gone */
bool conn_at_rest(const struct conn *c);      /* between requests, nothing to send */
bool conn_has_unread(const struct conn *c);   /* input that is not read yet */
void conn_read_now(struct conn *c); /* what the loop would do next with it; may close it */

/* conn_in.c: from bytes to a dispatched call */
size_t conn_take(struct conn *c, char *p, size_t n); /* one step; bytes consumed, 0: no more now */
void conn_refuse(struct conn *c, int status);        /* answers and closes */
void conn_decide_keep(struct conn *c); /* as an answer begins: may the next one follow? */
void conn_body_end(struct conn *c);
bool conn_body_done(const struct conn *c);
bool conn_body_paused(const struct conn *c);

/* conn_io.c: sockets */
size_t conn_pending(const struct conn *c);  /* bytes in memory that are to be sent */
bool conn_is_sending(const struct conn *c); /* those, or a file */
struct evbuffer *conn_out(struct conn *c);  /* NULL and c->broken when memory is out */
void conn_flush(struct conn *c);
ssize_t conn_read(struct conn *c,
                  size_t max);               /* into srv->rbuf: bytes, 0 EOF, -1 not now, -2 gone */
size_t conn_read_room(const struct conn *c); /* how much may be read now */
void conn_listen(struct conn *c);            /* reads or watches, as the state wants it */
void conn_deaf(struct conn *c);              /* neither */
void conn_ended(struct conn *c);             /* never again: the client sends no more */
void conn_linger(struct conn *c);

/* conn_watch.c: who leaves while nothing is read from it */
bool watch_add(struct conn *c); /* conn_on_eof() follows; false: out of memory */
void watch_drop(struct conn *c);
int watch_open(struct http_server *s, struct err *e);
void watch_close(struct http_server *s);

/* http_call.c */
struct call_target {
    const char *path; /* raw */
    size_t path_n;
    const char *query; /* NUL-terminated */
};
/* `hit` is NULL when no path matched; the dialect is to be set. The target points into the head.
 * NULL: out of memory. */
struct http_call *call_new(struct conn *c, const struct h1_head *h, const struct call_target *t,
                           const struct route_hit *hit);
struct http_call *call_new_bare(struct conn *c); /* for answers to what is no request */
void call_move(struct http_call *call, enum call_state to);
void call_free(struct http_call *call);
void call_orphan_free(struct http_call *call);
/* The client is gone. Tells the handler and frees the call; a call whose handler asked for no
 * notice lives on as an orphan until it is answered. */
void call_leave(struct http_call *call);
/* reply.c */
void call_put_last_chunk(struct http_call *call);

/* places.c: who gets a place when there are many connections */
bool places_make_room(struct http_server *s);         /* closes an idle one; false: no room */
bool places_are_few(const struct http_server *s);     /* idle ones should not stay long */
void places_trust(struct conn *c);                    /* a request on it brought the secret */
bool places_deny(const struct conn *c);               /* is its place one for trusted ones? */
void places_busy(struct conn *c);                     /* a request has come */
void places_rest(struct conn *c);                     /* the end of a callback: is it idle now? */
void places_leave(struct conn *c);                    /* it is closed */
void places_turn_away(struct http_server *s, int fd); /* a short 503; the caller closes */

/* server.c */
const char *server_date(struct http_server *s);
void server_on_closed(struct http_server *s, struct conn *c);
