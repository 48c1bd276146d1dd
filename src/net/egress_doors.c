/* SPDX-License-Identifier: MIT */
#include "net/egress_doors.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"
#include "wire/spawn.h"

enum {
    LISTENERS_MAX = EGRESS_PORTS_MAX + 4,
    HELLO_MS = 20000,
    ROWS_GROW = 8,
    LIVES_MAX = 16, /* doors in a row that have died */
};

struct egress_door {
    TAILQ_ENTRY(egress_door) link;
    struct egress *egress; /* borrowed */
    uint32_t id, serial;
    unsigned lives;
    int channel, theirs; /* owned; theirs: not handed over yet */
    struct event words;
    enum egress_verb unsent; /* 0: the master knows everything */
    struct egress_policy policy;
    struct {
        uint32_t port;
        int fd; /* owned: a copy, for the door that replaces this one */
    } listener[LISTENERS_MAX];
    size_t listeners_n;
    struct egress_row *row;     /* owned */
    size_t rows_n, rows_before; /* before: those of a door that has died */
    uint32_t left_out;
    uint64_t bytes, bytes_before;
    egress_row_fn *on_row;
    void *user;
    struct {
        egress_fn *fn;
        void *user;
    } asked, changed;
};

struct egress {
    struct event_base *base; /* borrowed */
    const struct log *log;   /* borrowed */
    int sock;                /* owned */
    pid_t guard;
    bool lost;
    struct event words, room;
    uint32_t next_id;
    size_t doors_n, doors_max;
    TAILQ_HEAD(, egress_door) doors;
    struct egress_order order; /* what is being sent or read */
};

/* ---- the program ---- */

static int await_hello(struct egress *g, struct err *e)
{
    struct pollfd p = {.fd = g->sock, .events = POLLIN};

    if (poll(&p, 1, HELLO_MS) <= 0 ||
        fd_recv_exact(g->sock, &g->order, sizeof g->order, NULL, 0) != 1 ||
        g->order.verb != EGRESS_HELLO)
        return err_set(e, ERR_HOST, "sandbox-egress did not start");
    return fd_nonblock(g->sock, true) < 0 ? err_set(e, ERR_HOST, "socket of sandbox-egress") : 0;
}

int egress_start(const char *directory, const char *hosts, struct egress **ret, struct err *e)
{
    char *const argv[] = {(char *)"sandbox-egress", (char *)hosts, NULL};
    struct egress *g = calloc(1, sizeof *g);

    if (!g)
        return err_set(e, ERR_HOST, "no memory for sandbox-egress");
    g->sock = -1;
    TAILQ_INIT(&g->doors);
    if (program_start(directory, "sandbox-egress", argv, &g->sock, &g->guard, e) < 0 ||
        await_hello(g, e) < 0) {
        egress_close(g);
        return -1;
    }
    *ret = g;
    return 0;
}

/* ---- telling the master ---- */

/* 0: told; -EAGAIN: when there is room. */
static int tell_master(struct egress_door *d)
{
    struct egress *g = d->egress;
    int r;

    g->order = (struct egress_order){
        .verb = d->unsent, .id = d->id, .serial = d->serial, .policy = d->policy};
    r = fd_send(g->sock, &g->order, sizeof g->order, &d->theirs, d->unsent == EGRESS_OPEN);
    if (r == -EAGAIN) {
        (void)event_add(&g->room, NULL);
        return r;
    }
    if (d->unsent == EGRESS_OPEN)
        fd_close_all(&d->theirs, 1); /* not told: the channel ends, and the door is lost */
    d->unsent = 0;
    return 0;
}

static void on_room(evutil_socket_t fd, short what, void *user)
{
    struct egress *g = user;
    struct egress_door *d;

    (void)fd, (void)what;
    TAILQ_FOREACH(d, &g->doors, link)
    {
        if (d->unsent && tell_master(d) < 0)
            return;
    }
}

static void lose(struct egress *g)
{
    g->lost = true;
    (void)event_del(&g->words);
    (void)event_del(&g->room);
    log_event(g->log, LOG_ERROR, "egress_lost", LOG_INT("doors", (int64_t)g->doors_n));
}

static void on_master(evutil_socket_t fd, short what, void *user)
{
    struct egress *g = user;
    ssize_t n = fd_recv(fd, &g->order, sizeof g->order, NULL, NULL);

    (void)what;
    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n != sizeof g->order)
        lose(g);
    else if (g->order.verb == EGRESS_HELLO)
        log_event(g->log, LOG_WARN, "egress_restarted", LOG_INT("doors", (int64_t)g->doors_n));
}

int egress_open(struct egress *g, struct event_base *base, const struct log *log, size_t doors_max,
                struct err *e)
{
    g->base = base;
    g->log = log;
    g->doors_max = doors_max;
    (void)event_assign(&g->words, base, g->sock, EV_READ | EV_PERSIST, on_master, g);
    (void)event_assign(&g->room, base, g->sock, EV_WRITE, on_room, g);
    return event_add(&g->words, NULL) < 0 ? err_set(e, ERR_HOST, "no memory for events") : 0;
}

void egress_close(struct egress *g)
{
    struct egress_door *d;

    if (!g)
        return;
    while ((d = TAILQ_FIRST(&g->doors)))
        egress_door_close(d);
    if (g->base) {
        (void)event_del(&g->words);
        (void)event_del(&g->room);
    }
    fd_close_all(&g->sock, 1); /* all of them see it and end */
    if (g->guard > 0)
        (void)waitpid(g->guard, NULL, 0);
    free(g);
}

size_t egress_doors(const struct egress *g)
{
    return g->doors_n;
}

/* ---- what a door says ---- */

static void answer(egress_fn **fn, void *user)
{
    egress_fn *now = *fn;

    *fn = NULL;
    if (now)
        now(user);
}

static bool row_room(struct egress_door *d, size_t i)
{
    struct egress_row *grown;

    if (i < d->rows_n)
        return true;
    if (i != d->rows_n || i >= EGRESS_ROWS_MAX)
        return false;
    grown = i % ROWS_GROW ? d->row : realloc(d->row, (i + ROWS_GROW) * sizeof *grown);
    if (!grown)
        return false;
    d->row = grown;
    d->rows_n++;
    return true;
}

static void on_row(struct egress_door *d, const struct egress_word *w)
{
    size_t i = d->rows_before + w->index;
    bool fresh = i >= d->rows_n;

    if (w->row.verdict >= EGRESS_VERDICT_COUNT || w->index >= EGRESS_ROWS_MAX || !row_room(d, i))
        return;
    d->row[i] = w->row;
    d->row[i].host[EGRESS_NAME_MAX] = '\0';
    if (fresh && d->on_row)
        d->on_row(d->user, &d->row[i]);
}

static int door_begin(struct egress_door *d, struct err *e);

/* Another one in its place; nobody is left waiting. */
static void replace(struct egress_door *d)
{
    struct egress *g = d->egress;
    struct err e;

    (void)event_del(&d->words);
    fd_close_all(&d->channel, 1);
    fd_close_all(&d->theirs, 1);
    d->rows_before = d->rows_n;
    d->bytes_before = d->bytes;
    log_event(g->log, LOG_WARN, "egress_door_lost", LOG_INT("door", d->id));
    if (!g->lost && ++d->lives < LIVES_MAX && door_begin(d, &e) < 0)
        log_event(g->log, LOG_ERROR, "egress_door_failed", LOG_STR("error", e.text));
    answer(&d->changed.fn, d->changed.user); /* the new one knows nothing else */
    answer(&d->asked.fn, d->asked.user);
}

static void on_words(evutil_socket_t fd, short what, void *user)
{
    struct egress_door *d = user;
    struct egress_word w;
    int r = fd_recv_exact(d->channel, &w, sizeof w, NULL, 0);

    (void)fd, (void)what;
    if (r == -EAGAIN)
        return;
    if (r != 1) {
        replace(d);
        return;
    }
    d->left_out = w.left_out;
    d->bytes = d->bytes_before + w.bytes;
    if (w.verb == EGRESS_ROW)
        on_row(d, &w);
    else if (w.verb == EGRESS_TOLD)
        answer(&d->asked.fn, d->asked.user);
    else if (w.verb == EGRESS_SET_DONE && w.serial == d->serial)
        answer(&d->changed.fn, d->changed.user);
}

/* ---- doors ---- */

static void send_listener(const struct egress_door *d, size_t i)
{
    const struct egress_word w = {.verb = EGRESS_SERVE, .port = d->listener[i].port};

    (void)!fd_send(d->channel, &w, sizeof w, &d->listener[i].fd, 1); /* lost: its end is seen */
}

static int door_begin(struct egress_door *d, struct err *e)
{
    int pair[2], r = fd_message_pair(pair);

    if (r < 0)
        return err_sys(e, r, "channel of a door");
    d->channel = pair[0];
    d->theirs = pair[1];
    (void)event_assign(&d->words, d->egress->base, d->channel, EV_READ | EV_PERSIST, on_words, d);
    if (fd_nonblock(d->channel, true) < 0 || event_add(&d->words, NULL) < 0) {
        fd_close_all(pair, 2);
        d->channel = d->theirs = -1;
        return err_set(e, ERR_HOST, "no memory for a door");
    }
    d->unsent = EGRESS_OPEN;
    (void)tell_master(d);
    for (size_t i = 0; i < d->listeners_n; i++)
        send_listener(d, i);
    return 0;
}

int egress_door_open(struct egress *g, const struct egress_policy *p, egress_row_fn *row,
                     void *user, struct egress_door **ret, struct err *e)
{
    struct egress_door *d;

    if (!g || g->lost)
        return err_set(e, ERR_HOST,
                       "there is no way out of sandboxes here: sandbox-egress does "
                       "not run");
    if (g->doors_n >= g->doors_max)
        return err_set(e, ERR_BUSY, "%zu sandboxes have a network already (EGRESS_DOORS_MAX)",
                       g->doors_n);
    d = calloc(1, sizeof *d);
    if (!d)
        return err_set(e, ERR_HOST, "no memory for a door");
    d->egress = g;
    d->id = ++g->next_id;
    d->policy = *p;
    d->on_row = row;
    d->user = user;
    if (door_begin(d, e) < 0) {
        free(d);
        return -1;
    }
    TAILQ_INSERT_TAIL(&g->doors, d, link);
    g->doors_n++;
    *ret = d;
    return 0;
}

void egress_door_serve(struct egress_door *d, uint32_t port, int fd)
{
    if (d->listeners_n == LISTENERS_MAX) {
        (void)close(fd);
        return;
    }
    d->listener[d->listeners_n].port = port;
    d->listener[d->listeners_n].fd = fd;
    d->listeners_n++;
    if (d->channel >= 0)
        send_listener(d, d->listeners_n - 1);
}

void egress_door_change(struct egress_door *d, const struct egress_policy *p, egress_fn *fn,
                        void *user)
{
    struct egress *g = d->egress;

    d->policy = *p;
    d->serial++;
    d->changed.fn = fn;
    d->changed.user = user;
    if (d->channel < 0) {
        event_active(&d->words, EV_READ, 0); /* its end is seen there */
        return;
    }
    g->order = (struct egress_order){
        .verb = EGRESS_SET, .id = d->id, .serial = d->serial, .policy = d->policy};
    if (fd_send(d->channel, &g->order, sizeof g->order, NULL, 0) < 0)
        (void)shutdown(d->channel, SHUT_RDWR); /* likewise: another one begins with this policy */
    if (d->unsent != EGRESS_OPEN)
        d->unsent = EGRESS_CHANGE;
    (void)tell_master(d);
}

void egress_door_ask(struct egress_door *d, egress_fn *fn, void *user)
{
    const struct egress_word w = {.verb = EGRESS_ASK};

    d->asked.fn = fn;
    d->asked.user = user;
    if (d->channel < 0 || fd_send(d->channel, &w, sizeof w, NULL, 0) < 0)
        event_active(&d->words, EV_READ, 0); /* its end is seen there */
}

const struct egress_row *egress_door_rows(const struct egress_door *d, size_t *ret_n,
                                          uint32_t *ret_left_out)
{
    *ret_n = d->rows_n;
    *ret_left_out = d->left_out;
    return d->row;
}

uint64_t egress_door_bytes(const struct egress_door *d)
{
    return d->bytes;
}

const struct egress_policy *egress_door_policy(const struct egress_door *d)
{
    return &d->policy;
}

void egress_door_close(struct egress_door *d)
{
    if (!d)
        return;
    TAILQ_REMOVE(&d->egress->doors, d, link);
    d->egress->doors_n--;
    if (d->channel >= 0)
        (void)event_del(&d->words);
    fd_close_all(&d->channel, 1);
    fd_close_all(&d->theirs, 1);
    for (size_t i = 0; i < d->listeners_n; i++)
        (void)close(d->listener[i].fd);
    free(d->row);
    free(d);
}
