/* SPDX-License-Identifier: MIT */
#include "http/server/websocket.h"

#include <stdlib.h>
#include <string.h>

#include "http/server/conn.h"
#include "http/server/origin.h"
#include "http/server/reply.h"

#define PROTOCOL "sandbox-executor" /* that our messages are of; no other is known */

struct websocket {
    struct http_call *call;
    struct ws_frames *frames; /* owned */
    struct websocket_events events;
    struct event timer;
    bool heard;    /* since the last tick */
    bool asked;    /* for a sign of life, and has not given one */
    bool farewell; /* our close frame was sent: the handler hears nothing any more */
};

static void websocket_free(struct websocket *w)
{
    (void)event_del(&w->timer);
    ws_frames_free(w->frames);
    free(w);
}

static void tell_closed(struct websocket *w)
{
    if (!w->farewell)
        w->events.closed(w->events.user);
    websocket_free(w);
}

/* The call is over: nothing of it may come back to us. */
static void end(struct websocket *w)
{
    struct http_call *c = w->call;

    http_on_gone(c, NULL, NULL);
    http_on_drain(c, NULL, NULL);
    http_on_body(c, NULL, NULL, NULL);
    tell_closed(w);
    http_stream_end(c);
}

/* ---- what happens to it ---- */

static void on_message(void *user, bool text, const char *p, size_t n)
{
    struct websocket *w = user;

    if (!w->farewell)
        w->events.message(w->events.user, text, p, n);
}

static void on_write(void *user, const void *p, size_t n)
{
    struct websocket *w = user;

    (void)http_stream_write(w->call, p, n);
}

static int on_data(void *user, const char *p, size_t n)
{
    struct websocket *w = user;

    w->heard = true;
    w->asked = false;
    if (!ws_frames_feed(w->frames, p, n))
        end(w);
    return 0;
}

static void on_gone(void *user)
{
    tell_closed(user);
}

static void on_drained(void *user)
{
    struct websocket *w = user;

    if (!w->farewell && w->events.drained)
        w->events.drained(w->events.user);
}

static void arm(struct websocket *w, unsigned ms)
{
    const struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

    w->heard = false;
    (void)event_add(&w->timer, &tv);
}

/* Of a client that is paused nothing is heard: what it sends is not read. */
static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct websocket *w = user;
    bool silent = !w->heard && !w->call->paused;

    (void)fd, (void)what;
    if (w->farewell || (silent && (w->asked || !ws_frames_ping(w->frames)))) {
        end(w);
        return;
    }
    w->asked = silent;
    arm(w, WEBSOCKET_PING_MS);
}

/* ---- the handshake ---- */

bool websocket_wanted(const struct http_call *c)
{
    return http_wants_upgrade(c, "websocket");
}

const char *websocket_secret(const struct http_call *c)
{
    static const char begin[] = PROTOCOL ", bearer.";
    const char *value = http_header(c, "sec-websocket-protocol");

    if (!value || !websocket_wanted(c) || strncmp(value, begin, sizeof begin - 1) != 0)
        return NULL;
    return value + sizeof begin - 1;
}

bool websocket_check(struct http_call *c)
{
    const struct http_server *s = c->srv;
    const char *version = http_header(c, "sec-websocket-version");
    const char *allowed = s->conf.allowed_hosts ? s->conf.allowed_hosts : "";
    char accept[WS_ACCEPT_MAX];

    if (!websocket_wanted(c)) {
        http_set_header(c, "Upgrade", "websocket");
        reply_refusal(c, 426, "This is a WebSocket: ask for it with 'Connection: Upgrade'");
    } else if (!version || strcmp(version, "13") != 0) {
        http_set_header(c, "Sec-WebSocket-Version", "13");
        reply_refusal(c, 426, "Sec-WebSocket-Version must be 13");
    } else if (!ws_accept_key(http_header(c, "sec-websocket-key"), accept)) {
        reply_refusal(c, 400, "Sec-WebSocket-Key must be 16 bytes in base64");
    } else if (!origin_is_ours(http_header(c, "origin"), http_header(c, "host"), allowed)) {
        reply_refusal(c, 403, "The Origin is neither this host nor one of ALLOWED_HOSTS");
    } else {
        return true;
    }
    return false;
}

static struct websocket *websocket_new(struct http_call *c, const struct websocket_events *events)
{
    struct websocket *w = calloc(1, sizeof *w);
    const struct ws_frames_events frames = {
        .message = on_message,
        .write = on_write,
        .user = w,
    };

    if (!w)
        return NULL;
    w->call = c;
    w->events = *events;
    w->frames = ws_frames_new(&frames, WS_MESSAGE_MAX);
    if (!w->frames) {
        free(w);
        return NULL;
    }
    (void)evtimer_assign(&w->timer, c->srv->base, on_timer, w);
    return w;
}

struct websocket *websocket_accept(struct http_call *c, const struct websocket_events *events)
{
    char accept[WS_ACCEPT_MAX];
    struct websocket *w;

    if (!websocket_check(c))
        return NULL;
    w = websocket_new(c, events);
    if (!w || !ws_accept_key(http_header(c, "sec-websocket-key"), accept)) {
        reply_status(c, 500);
        return NULL;
    }
    http_set_header(c, "Sec-WebSocket-Accept", accept);
    if (websocket_secret(c))
        http_set_header(c, "Sec-WebSocket-Protocol", PROTOCOL);
    http_on_gone(c, on_gone, w);
    http_on_drain(c, on_drained, w);
    http_on_body(c, on_data, NULL, w);
    http_upgrade(c, "websocket");
    arm(w, WEBSOCKET_PING_MS);
    return w;
}

/* ---- for the handler ---- */

bool websocket_send(struct websocket *w, bool text, const void *p, size_t n)
{
    (void)!ws_frames_send(w->frames, text, p, n);
    return http_stream_write(w->call, NULL, 0) < HTTP_STREAM_HIGH;
}

void websocket_pause(struct websocket *w)
{
    http_body_pause(w->call);
}

void websocket_resume(struct websocket *w)
{
    http_body_resume(w->call);
}

void websocket_close(struct websocket *w, uint16_t code, const char *reason)
{
    if (!w)
        return;
    ws_frames_close(w->frames, code, reason);
    w->farewell = true;
    http_body_resume(w->call);
    arm(w, WEBSOCKET_FAREWELL_MS);
}
