/* SPDX-License-Identifier: MIT */
#include "http/api/e2b/connect.h"

#include <errno.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "app/daemon/app.h"
#include "base/jw.h"
#include "http/api/e2b/envelope.h"

enum {
    ERROR_JSON_MAX = 16 * 1024,
    ERROR_TEXT_MAX = 1024,
    PING_S = 90, /* when the client names no interval */
    PING_MAX_S = 3600,
    TIMEOUT_DIGITS = 10, /* of Connect-Timeout-Ms, by the protocol */
    MS_PER_S = 1000,
    US_PER_MS = 1000,
};

#define STREAM_TYPE "application/connect+json"

/* clang-format off */
static const struct {
    const char *name;
    int status; /* of a unary answer */
} codes[] = {
    [CONNECT_CANCELED]            = {"canceled",            499},
    [CONNECT_UNKNOWN]             = {"unknown",             500},
    [CONNECT_INVALID_ARGUMENT]    = {"invalid_argument",    400},
    [CONNECT_DEADLINE_EXCEEDED]   = {"deadline_exceeded",   504},
    [CONNECT_NOT_FOUND]           = {"not_found",           404},
    [CONNECT_ALREADY_EXISTS]      = {"already_exists",      409},
    [CONNECT_PERMISSION_DENIED]   = {"permission_denied",   403},
    [CONNECT_RESOURCE_EXHAUSTED]  = {"resource_exhausted",  429},
    [CONNECT_FAILED_PRECONDITION] = {"failed_precondition", 400},
    [CONNECT_ABORTED]             = {"aborted",             409},
    [CONNECT_OUT_OF_RANGE]        = {"out_of_range",        400},
    [CONNECT_UNIMPLEMENTED]       = {"unimplemented",       501},
    [CONNECT_INTERNAL]            = {"internal",            500},
    [CONNECT_UNAVAILABLE]         = {"unavailable",         503},
    [CONNECT_DATA_LOSS]           = {"data_loss",           500},
    [CONNECT_UNAUTHENTICATED]     = {"unauthenticated",     401},
};

static const enum connect_code kinds[] = {
    [ERR_NONE]   = CONNECT_INTERNAL,
    [ERR_CALLER] = CONNECT_INVALID_ARGUMENT,
    [ERR_DENIED] = CONNECT_PERMISSION_DENIED,
    [ERR_ABSENT] = CONNECT_NOT_FOUND,
    [ERR_BUSY]   = CONNECT_RESOURCE_EXHAUSTED,
    [ERR_HOST]   = CONNECT_INTERNAL,
    [ERR_BUG]    = CONNECT_INTERNAL,
};
/* clang-format on */
_Static_assert(ARRAY_LEN(codes) == CONNECT_CODE_COUNT, "every code has a name");
_Static_assert(ARRAY_LEN(kinds) == ERR_KIND_COUNT, "every kind has a code");

enum connect_code connect_code_of(const struct err *e)
{
    return kinds[e->kind];
}

static bool is_stream(const struct http_call *c)
{
    const char *type = http_header(c, "content-type");

    return type && strncasecmp(type, STREAM_TYPE, sizeof STREAM_TYPE - 1) == 0;
}

/* ---- the request ---- */

/* The message: the body, or what is in its only envelope. False: answered. */
static bool take_message(struct http_call *c, const char **ret, size_t *ret_n)
{
    const struct http_request *r = http_request(c);
    struct envelope one;

    *ret = r->body;
    *ret_n = r->body_n;
    if (!is_stream(c))
        return true;
    if (envelope_take(r->body, r->body_n, r->body_n, &one) != ENVELOPE_OK || one.flags ||
        one.n + ENVELOPE_HEAD != r->body_n) {
        connect_refuse(c, CONNECT_INVALID_ARGUMENT, "the body is not one plain envelope");
        return false;
    }
    *ret = one.p;
    *ret_n = one.n;
    return true;
}

bool connect_decode(struct http_call *c, const struct shape *shape, void *target, struct shaping *s)
{
    char words[SHAPE_WORDS_MAX];
    const char *text;
    size_t n;

    shaping_init(s, http_app(c));
    s->lenient = true; /* a message may have members that are newer than this program */
    if (!take_message(c, &text, &n))
        return false;
    if (n == 0)
        text = "{}", n = 2;
    if (shape_parse(shape, text, n, target, s) == 0)
        return true;
    shape_words(s, words);
    connect_refuse(c, CONNECT_INVALID_ARGUMENT, "%s", words);
    return false;
}

uint64_t connect_timeout_ms(const struct http_call *c)
{
    const char *text = http_header(c, "connect-timeout-ms");
    size_t n = text ? strspn(text, "0123456789") : 0;

    if (n == 0 || n > TIMEOUT_DIGITS || text[n])
        return 0;
    return strtoull(text, NULL, 10);
}

/* ---- answers ---- */

void connect_reply(struct http_call *c, struct buf *json)
{
    http_reply(c, 200, "application/json", json);
}

void connect_reply_empty(struct http_call *c)
{
    struct buf json = BUF_INIT(2);

    (void)buf_puts(&json, "{}");
    connect_reply(c, &json);
}

static void write_error(struct jw *w, enum connect_code code, const char *words)
{
    jw_object(w);
    jw_kv_string(w, "code", codes[code].name);
    jw_kv_string(w, "message", words);
    jw_object_end(w);
}

static size_t send_envelope(struct http_call *c, unsigned flags, const char *json, size_t n)
{
    unsigned char head[ENVELOPE_HEAD];

    envelope_head(flags, n, head);
    (void)http_stream_write(c, head, sizeof head);
    return http_stream_write(c, json, n);
}

/* The last envelope, and the end. words NULL: no error. */
static void end_call(struct http_call *c, enum connect_code code, const char *words)
{
    struct buf json = BUF_INIT(ERROR_JSON_MAX);
    struct jw w = JW(&json);

    jw_object(&w);
    if (words) {
        jw_key(&w, "error");
        write_error(&w, code, words);
    }
    jw_object_end(&w);
    (void)send_envelope(c, ENVELOPE_END, json.p, json.n);
    http_stream_end(c);
    buf_done(&json);
}

static void refuse(struct http_call *c, enum connect_code code, const char *words)
{
    struct buf json = BUF_INIT(ERROR_JSON_MAX);
    struct jw w = JW(&json);

    if (is_stream(c)) {
        http_stream_begin(c, 200, STREAM_TYPE);
        end_call(c, code, words);
        return;
    }
    write_error(&w, code, words);
    http_reply(c, codes[code].status, "application/json", &json);
}

void connect_refuse(struct http_call *c, enum connect_code code, const char *fmt, ...)
{
    char words[ERROR_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    refuse(c, code, words);
}

void connect_refuse_err(struct http_call *c, const struct err *e)
{
    refuse(c, connect_code_of(e), e->text);
}

/* ---- streams ---- */

static void arm_ping(struct connect_stream *s)
{
    const struct timeval tv = {.tv_sec = s->ping_s};

    (void)event_add(&s->ping_timer, &tv);
}

static void on_ping(evutil_socket_t fd, short what, void *user)
{
    struct connect_stream *s = user;

    (void)fd, (void)what;
    if (s->started && !s->full) /* what waits in a full queue keeps the connection busy itself */
        (void)connect_send(s, s->ping, strlen(s->ping));
    else
        arm_ping(s);
}

static void forget_call(struct connect_stream *s)
{
    s->call = NULL;
    (void)event_del(&s->ping_timer);
    (void)event_del(&s->deadline);
}

static void on_deadline(evutil_socket_t fd, short what, void *user)
{
    struct connect_stream *s = user;

    (void)fd, (void)what;
    connect_fail(s, CONNECT_DEADLINE_EXCEEDED, "the time limit of the request has passed");
    s->on->expired(s->user);
}

static void on_gone(void *user)
{
    struct connect_stream *s = user;

    forget_call(s);
    s->on->gone(s->user);
}

static void on_drained(void *user)
{
    struct connect_stream *s = user;

    s->full = false;
    s->on->drained(s->user);
}

/* Keepalive-Ping-Interval, in seconds. */
static uint32_t ping_interval(const struct http_call *c)
{
    const char *text = http_header(c, "keepalive-ping-interval");
    long n = text ? strtol(text, NULL, 10) : PING_S;

    return n < 1 || n > PING_MAX_S ? PING_S : (uint32_t)n;
}

void connect_begin(struct connect_stream *s, struct http_call *c, const char *ping,
                   const struct connect_events *on, void *user)
{
    struct event_base *base = http_app(c)->base;
    uint64_t timeout = connect_timeout_ms(c);

    *s = (struct connect_stream){
        .call = c, .on = on, .user = user, .ping = ping, .ping_s = ping_interval(c)};
    (void)event_assign(&s->ping_timer, base, -1, 0, on_ping, s);
    (void)event_assign(&s->deadline, base, -1, 0, on_deadline, s);
    http_on_gone(c, on_gone, s);
    http_on_drain(c, on_drained, s);
    http_set_header(c, "Cache-Control", "no-cache");
    http_set_header(c, "X-Accel-Buffering", "no");
    http_stream_begin(c, 200, STREAM_TYPE);
    arm_ping(s);
    if (timeout > 0 && on->expired) {
        const struct timeval tv = {.tv_sec = (time_t)(timeout / MS_PER_S),
                                   .tv_usec = (suseconds_t)(timeout % MS_PER_S * US_PER_MS)};

        (void)event_add(&s->deadline, &tv);
    }
}

bool connect_send(struct connect_stream *s, const char *json, size_t n)
{
    if (!s->call)
        return true;
    s->started = true;
    s->full = send_envelope(s->call, 0, json, n) >= HTTP_STREAM_HIGH;
    arm_ping(s);
    return !s->full;
}

/* words NULL: no error. */
static void end_stream(struct connect_stream *s, enum connect_code code, const char *words)
{
    struct http_call *c = s->call;

    if (!c)
        return;
    forget_call(s);
    http_on_gone(c, NULL, NULL);
    http_on_drain(c, NULL, NULL);
    end_call(c, code, words);
}

void connect_end(struct connect_stream *s)
{
    end_stream(s, CONNECT_UNKNOWN, NULL);
}

void connect_fail(struct connect_stream *s, enum connect_code code, const char *words)
{
    end_stream(s, code, words);
}

void connect_done(struct connect_stream *s)
{
    struct http_call *c = s->call;

    if (!c)
        return;
    forget_call(s);
    http_on_gone(c, NULL, NULL);
    http_on_drain(c, NULL, NULL);
    http_stream_abort(c);
}
