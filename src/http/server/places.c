/* SPDX-License-Identifier: MIT */
/*
 * Who gets a place among CONNECTIONS_MAX connections.
 *
 * A connection is trusted once a request on it has brought the secret. One part in
 * PLACES_RESERVED_SHARE of the places is for trusted connections only. When a new connection
 * needs a place, the one that has been idle longest is closed: one without trust if the places
 * for those are taken, and a trusted one only while trusted connections have more than their
 * share. A connection is idle from the end of its last answer (or from its beginning) until a
 * whole request head has come: bytes that trickle in do not make it younger. A connection with a
 * request under way is never closed here.
 *
 * A new connection is read even where only places of the share are left, because it may bring the
 * secret. If it then asks for something public instead, it is turned away.
 */
#include <stdio.h>
#include <sys/socket.h>

#include "http/server/conn.h"

enum {
    PLACES_RESERVED_SHARE = 4, /* one place in that many is for trusted connections */
    PLACES_FEW_SHARE = 8,      /* fewer than one place in that many left: idle times are short */
    PLACES_LOOK_MAX = 16,      /* idle connections looked at for one to close */
};

static uint64_t reserved(const struct http_server *s)
{
    return s->conf.connections_max / PLACES_RESERVED_SHARE;
}

/* Connections without trust. */
static uint64_t strangers(const struct http_server *s)
{
    return s->count.open - s->trusted_n;
}

/*
 * Closes the connection that has been idle longest. Its unread input is read
 * first: a request among it is answered, and may bring the secret. A connection that is idle again
 * after that is closed; one whose request is under way is kept, and the next is looked at.
 */
static void close_longest_idle(struct http_server *s, enum conn_place place)
{
    struct conn *c;

    for (int i = 0; i < PLACES_LOOK_MAX && (c = TAILQ_FIRST(&s->idle[place])) != NULL; i++) {
        if (conn_has_unread(c))
            conn_read_now(c);
        if (c->state != CONN_DEAD && (!c->idle || c->place != place))
            continue;
        s->count.gave_way++;
        conn_close(c);
        return;
    }
}

bool places_make_room(struct http_server *s)
{
    uint64_t max = s->conf.connections_max;

    if (s->count.open >= max || strangers(s) >= max - reserved(s))
        close_longest_idle(s, PLACE_STRANGER);
    if (s->count.open >= max && s->trusted_n > reserved(s))
        close_longest_idle(s, PLACE_TRUSTED);
    return s->count.open < max;
}

bool places_are_few(const struct http_server *s)
{
    uint64_t max = s->conf.connections_max;

    return s->count.open + max / PLACES_FEW_SHARE >= max;
}

void places_trust(struct conn *c)
{
    if (c->place != PLACE_STRANGER)
        return;
    c->place = PLACE_TRUSTED;
    c->srv->trusted_n++;
}

bool places_deny(const struct conn *c)
{
    const struct http_server *s = c->srv;

    return c->place == PLACE_STRANGER && strangers(s) > s->conf.connections_max - reserved(s);
}

void places_busy(struct conn *c)
{
    if (!c->idle)
        return;
    c->idle = false;
    TAILQ_REMOVE(&c->srv->idle[c->place], c, idle_link);
}

void places_rest(struct conn *c)
{
    bool waits = c->state == CONN_HEAD && !conn_is_sending(c);

    if (c->idle || c->place == PLACE_NONE || c->call || (!waits && c->state != CONN_LINGER))
        return;
    c->idle = true;
    TAILQ_INSERT_TAIL(&c->srv->idle[c->place], c, idle_link);
}

void places_leave(struct conn *c)
{
    struct http_server *s = c->srv;

    places_busy(c);
    if (c->place == PLACE_NONE)
        s->over_n--;
    else
        s->count.open--;
    if (c->place == PLACE_TRUSTED)
        s->trusted_n--;
}

void places_turn_away(struct http_server *s, int fd)
{
    char text[256];
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 503 Service Unavailable\r\nDate: %s\r\nContent-Length: 0\r\n"
                     "Connection: close\r\nRetry-After: 1\r\n\r\n",
                     server_date(s));

    s->count.refused++;
    (void)send(fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}
