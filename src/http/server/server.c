/* SPDX-License-Identifier: MIT */
#include "http/server/server.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/os.h"
#include "http/server/conn.h"

enum {
    SERVER_BACKLOG = 1024,
    SERVER_FD_SHARE = 4,         /* one part in that many of the descriptors is not for clients */
    SERVER_PORT_TRIES = 16,      /* to find one port that is free on both address families */
    SERVER_IDLE_SHORT_MS = 2000, /* idle connections without the secret when few places are left */
};

const char *server_date(struct http_server *s)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = time(NULL);
    struct tm tm;

    if (now == s->date.at && s->date.text[0])
        return s->date.text;
    s->date.at = now;
    (void)gmtime_r(&now, &tm);
    /* Not strftime(): the names must be English in every locale. */
    (void)snprintf(s->date.text, sizeof s->date.text, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
                   days + 3 * tm.tm_wday, tm.tm_mday, months + 3 * tm.tm_mon,
                   (tm.tm_year + 1900) % 10000, tm.tm_hour, tm.tm_min, tm.tm_sec);
    return s->date.text;
}

static void listen_all(struct http_server *s, bool on)
{
    for (size_t i = 0; i < s->listeners.n; i++) {
        if (on)
            (void)event_add(s->listeners.event[i], NULL);
        else
            (void)event_del(s->listeners.event[i]);
    }
}

void server_on_closed(struct http_server *s, struct conn *c)
{
    LIST_REMOVE(c, link);
    LIST_INSERT_HEAD(&s->dead, c, link);
    places_leave(c);
    event_active(&s->reap, EV_TIMEOUT, 0);
}

static void free_dead(struct http_server *s)
{
    struct conn *c;

    while ((c = LIST_FIRST(&s->dead)) != NULL) {
        LIST_REMOVE(c, link);
        conn_free(c);
    }
}

/* Nothing of ours is on the stack any more: memory of closed connections goes back. */
static void on_reap(evutil_socket_t fd, short what, void *user)
{
    struct http_server *s = user;
    http_drained_fn *drained = s->drained.fn;

    (void)fd;
    (void)what;
    free_dead(s);
    if (s->state != SERVER_DRAINING || !LIST_EMPTY(&s->conns) || !drained)
        return;
    s->drained.fn = NULL;
    (void)event_del(&s->grace);
    drained(s->drained.user); /* may free the server: last */
}

static void on_accept_again(evutil_socket_t fd, short what, void *user)
{
    struct http_server *s = user;

    (void)fd;
    (void)what;
    if (s->state == SERVER_SERVING)
        listen_all(s, true);
}

/*
 * Out of descriptors or memory. The connection stays in the backlog and the
 * listener stays readable, so without a pause the loop would spin.
 */
static void accept_pause(struct http_server *s, int error)
{
    struct timeval pause = {0, SERVER_ACCEPT_PAUSE_MS * 1000};

    listen_all(s, false);
    (void)event_add(&s->accept_again, &pause);
    if (s->conf.log)
        log_event(s->conf.log, LOG_WARN, "accept_paused", LOG_STR("reason", strerror(error)),
                  LOG_INT("connections", (int64_t)s->count.open));
}

static void welcome(struct http_server *s, int fd)
{
    bool over = !places_make_room(s);
    struct conn *c;

    if (over && s->over_n >= SERVER_REFUSED_MAX) { /* too many even to listen to */
        places_turn_away(s, fd);
        (void)close(fd);
        return;
    }
    c = conn_new(s, fd);
    if (!c)
        return;
    if (over) {
        c->place = PLACE_NONE;
        s->over_n++;
        s->count.refused++;
        conn_refuse(c, 503);
    } else {
        s->count.open++;
        s->count.accepted++;
    }
    if (c->state != CONN_DEAD)
        conn_run(c);
}

static void on_accept(evutil_socket_t fd, short what, void *user)
{
    struct http_server *s = user;

    (void)what;
    for (int i = 0; i < SERVER_ACCEPT_BATCH && s->state == SERVER_SERVING; i++) {
        int client = os_accept(fd);

        if (client >= 0) {
            welcome(s, client);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            accept_pause(s, errno);
        if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

static uint16_t port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a;
    socklen_t n = sizeof a;

    memset(&a, 0, sizeof a);
    if (getsockname(fd, &a.any, &n) < 0)
        return 0;
    return ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

static int bind_one(struct http_server *s, const struct addrinfo *ai, struct err *e)
{
    cleanup_close int fd = os_socket(ai->ai_family, SOCK_STREAM, ai->ai_protocol);
    int one = 1;
    struct event *ev;

    if (fd < 0)
        return err_sys(e, -errno, "socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (ai->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, SERVER_BACKLOG) < 0)
        return err_sys(e, -errno, "listen on port %u", s->port ? s->port : s->conf.port);
    ev = event_new(s->base, fd, EV_READ | EV_PERSIST, on_accept, s);
    if (!ev)
        return err_set(e, ERR_HOST, "out of memory");
    if (s->port == 0)
        s->port = port_of(fd);
    s->listeners.event[s->listeners.n++] = ev;
    (void)take_fd(&fd);
    return 0;
}

static void unbind(struct http_server *s)
{
    for (size_t i = 0; i < s->listeners.n; i++) {
        int fd = event_get_fd(s->listeners.event[i]);

        event_free(s->listeners.event[i]);
        (void)close(fd);
    }
    s->listeners.n = 0;
    s->port = 0;
}

/* A kernel without that address family has no such address to listen on either. */
static bool is_absent_family(const struct err *e)
{
    return e->sys == EAFNOSUPPORT || e->sys == EADDRNOTAVAIL || e->sys == EPROTONOSUPPORT;
}

static void set_port(struct addrinfo *ai, uint16_t port)
{
    if (ai->ai_family == AF_INET6)
        ((struct sockaddr_in6 *)ai->ai_addr)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)ai->ai_addr)->sin_port = htons(port);
}

static int bind_list(struct http_server *s, struct addrinfo *list, struct err *e)
{
    for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
        if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
            continue;
        if (s->listeners.n == SERVER_LISTENERS_MAX)
            break;
        set_port(ai, s->port ? s->port : s->conf.port);
        if (bind_one(s, ai, e) < 0 && !is_absent_family(e))
            return -1;
    }
    if (s->listeners.n > 0)
        return 0;
    return e->kind != ERR_NONE ? -1 : err_set(e, ERR_HOST, "no address to listen on");
}

/* With port 0 the second family may find the first one's port taken: try another. */
static int bind_any(struct http_server *s, struct addrinfo *list, struct err *e)
{
    for (int i = 0; i < SERVER_PORT_TRIES; i++) {
        *e = (struct err){.kind = ERR_NONE};
        if (bind_list(s, list, e) == 0)
            return 0;
        unbind(s);
        if (s->conf.port != 0 || e->sys != EADDRINUSE)
            break;
    }
    return -1;
}

static int listen_on(struct http_server *s, struct err *e)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const char *host = s->conf.host;
    bool all = !host || !*host || strcmp(host, "*") == 0 || strcmp(host, "::") == 0;
    struct addrinfo *list = NULL;
    int r;

    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    r = getaddrinfo(all ? NULL : host, "0", &hints, &list);
    if (r != 0)
        return err_set(e, ERR_CALLER, "address '%s': %s", all ? "*" : host, gai_strerror(r));
    r = bind_any(s, list, e);
    freeaddrinfo(list);
    return r < 0 ? err_wrap(e, "address '%s'", all ? "*" : host) : 0;
}

static void default_u32(uint32_t *v, uint32_t value)
{
    if (*v == 0)
        *v = value;
}

static void default_u64(uint64_t *v, uint64_t value)
{
    if (*v == 0)
        *v = value;
}

static void set_defaults(struct http_server_conf *c)
{
    default_u32(&c->connections_max, 12000);
    default_u32(&c->head_ms, 5000);
    default_u32(&c->idle_ms, 30000);
    default_u32(&c->body_window_ms, 6000);
    default_u32(&c->stall_ms, 60000);
    default_u64(&c->body_rate, 1024);
    default_u64(&c->body_max, 1024 * 1024);
    default_u64(&c->buffered_max, 1024 * 1024 * 1024);
}

/*
 * Clients must not eat the descriptors that the daemon needs for its own work:
 * a quarter of them is out of their reach. Beyond the limit they get a 503.
 */
static void cap_connections(struct http_server *s)
{
    struct rlimit l;
    rlim_t room;

    if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur == RLIM_INFINITY)
        return;
    room = l.rlim_cur - l.rlim_cur / SERVER_FD_SHARE;
    if (s->conf.connections_max <= room)
        return;
    s->conf.connections_max = (uint32_t)room;
    if (s->conf.log)
        log_event(s->conf.log, LOG_WARN, "connections_capped",
                  LOG_INT("connections_max", (int64_t)room),
                  LOG_STR("reason", "the limit of open files is low"));
}

/* Timeouts of one length share a queue, so arming one does not depend on how many there are. */
static int set_clocks(struct http_server *s, struct err *e)
{
    uint32_t ms[CLOCK_COUNT] = {
        [CLOCK_HEAD] = s->conf.head_ms,
        [CLOCK_IDLE] = s->conf.idle_ms,
        [CLOCK_BODY] = s->conf.body_window_ms,
        [CLOCK_STALL] = s->conf.stall_ms,
        [CLOCK_LINGER] = CONN_LINGER_MS,
        [CLOCK_IDLE_SHORT] =
            s->conf.idle_ms < SERVER_IDLE_SHORT_MS ? s->conf.idle_ms : SERVER_IDLE_SHORT_MS,
    };

    for (int i = CLOCK_NONE + 1; i < CLOCK_COUNT; i++) {
        struct timeval tv = {ms[i] / 1000, (suseconds_t)(ms[i] % 1000 * 1000)};

        s->clock[i] = event_base_init_common_timeout(s->base, &tv);
        if (!s->clock[i])
            return err_set(e, ERR_HOST, "too many different timeouts");
    }
    return 0;
}

static void on_grace(evutil_socket_t fd, short what, void *user)
{
    struct http_server *s = user;
    struct conn *c;

    (void)fd;
    (void)what;
    while ((c = LIST_FIRST(&s->conns)) != NULL)
        conn_shutdown(c, true);
}

int http_server_open(struct event_base *base, const struct http_server_conf *conf, struct app *a,
                     struct http_server **ret, struct err *e)
{
    cleanup_with(http_server_freep) struct http_server *s = calloc(1, sizeof *s);

    if (!s)
        return err_set(e, ERR_HOST, "out of memory");
    s->base = base;
    s->conf = *conf;
    s->app = a;
    s->watch.fd = -1;
    set_defaults(&s->conf);
    cap_connections(s);
    LIST_INIT(&s->conns);
    LIST_INIT(&s->dead);
    LIST_INIT(&s->orphans);
    for (int i = 0; i < PLACE_KINDS; i++)
        TAILQ_INIT(&s->idle[i]);
    (void)event_assign(&s->accept_again, base, -1, 0, on_accept_again, s);
    (void)event_assign(&s->reap, base, -1, 0, on_reap, s);
    (void)event_assign(&s->grace, base, -1, 0, on_grace, s);
    (void)signal(SIGPIPE, SIG_IGN); /* writev() knows no MSG_NOSIGNAL */
    if (set_clocks(s, e) < 0 || watch_open(s, e) < 0 || listen_on(s, e) < 0)
        return -1;
    s->conf.host = NULL; /* borrowed for the call only */
    s->state = SERVER_SERVING;
    listen_all(s, true);
    *ret = take_ptr(&s);
    return 0;
}

void http_server_free(struct http_server *s)
{
    struct conn *c;
    struct http_call *call;

    if (!s)
        return;
    http_server_stop_accepting(s);
    while ((c = LIST_FIRST(&s->conns)) != NULL)
        conn_close(c);
    while ((call = LIST_FIRST(&s->orphans)) != NULL)
        call_orphan_free(call);
    free_dead(s);
    (void)event_del(&s->accept_again);
    (void)event_del(&s->reap);
    (void)event_del(&s->grace);
    watch_close(s);
    free(s);
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

const struct http_counters *http_server_counters(const struct http_server *s)
{
    return &s->count;
}

void http_server_stop_accepting(struct http_server *s)
{
    uint16_t port = s->port;

    if (s->state == SERVER_SERVING)
        s->state = SERVER_DEAF;
    unbind(s);
    s->port = port;
}

void http_server_drain(struct http_server *s, uint32_t grace_ms, http_drained_fn *done, void *user)
{
    struct timeval grace = {grace_ms / 1000, (suseconds_t)(grace_ms % 1000 * 1000)};
    struct conn *c, *next;

    http_server_stop_accepting(s);
    s->state = SERVER_DRAINING;
    s->drained.fn = done;
    s->drained.user = user;
    for (c = LIST_FIRST(&s->conns); c; c = next) {
        next = LIST_NEXT(c, link);
        conn_shutdown(c, false);
    }
    (void)event_add(&s->grace, &grace);
    event_active(&s->reap, EV_TIMEOUT, 0);
}
