/* SPDX-License-Identifier: MIT */
/*
 * sbx port: a port of this host that leads to a server in a sandbox, over HTTP with WebSockets.
 *
 *   client ──▶ HEAD: its request's head is read, and sent on with the fields that name the port
 *                └──▶ FLOW: bytes both ways, until both sides have ended
 *
 * One request per connection: the daemon is asked to close it, and so the client opens another.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/os.h"
#include "cli/connected.h"
#include "cli/stops.h"
#include "cli/talk.h"

enum {
    LINKS_MAX = 200,
    HEAD_MAX = 64 << 10,
    AHEAD_MAX = 256 << 10, /* bytes that wait for one side before no more are read from the other */
    PIECE = 32 << 10,
    BACKLOG = 64,
};

struct link {
    int local;              /* owned */
    struct connected *conn; /* owned; NULL: the head is not complete yet */
    struct buf to_daemon, to_local;
    bool local_ended, daemon_ended, over;
    LIST_ENTRY(link) entry;
};

struct forwarding {
    struct talk *talk;
    long port;      /* inside */
    char *id, *key; /* owned; of the sandbox, and what opens its ports, or NULL */
    int listener;
    size_t links_n;
    LIST_HEAD(link_list, link) links;
};

/* ---- one connection ---- */

static void link_free(struct forwarding *f, struct link *l)
{
    LIST_REMOVE(l, entry);
    f->links_n--;
    closep(&l->local);
    connected_close(l->conn);
    buf_done(&l->to_daemon);
    buf_done(&l->to_local);
    free(l);
}

static void link_new(struct forwarding *f)
{
    struct link *l;
    int fd = os_accept(f->listener);

    if (fd < 0)
        return;
    l = calloc(1, sizeof *l);
    if (!l) {
        (void)close(fd);
        return;
    }
    *l = (struct link){
        .local = fd, .to_daemon = BUF_INIT(2 * AHEAD_MAX), .to_local = BUF_INIT(2 * AHEAD_MAX)};
    LIST_INSERT_HEAD(&f->links, l, entry);
    f->links_n++;
}

/* Lines that are between the client and us, or that we say ourselves. */
static bool is_left_out(const char *line, bool upgrades)
{
    static const char *const names[] = {"E2b-", "Proxy-", "Keep-Alive:"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strncasecmp(line, names[i], strlen(names[i])) == 0)
            return true;
    return !upgrades && strncasecmp(line, "Connection:", 11) == 0;
}

/* "GET /path HTTP/1.1" and its fields, up to the empty line at `end`, as the daemon wants them. */
static int put_head(const struct forwarding *f, char *head, const char *end, struct buf *out)
{
    bool upgrades = strcasestr(head, "\r\nUpgrade:") != NULL;
    char *path = strchr(head, ' '), *line = strstr(head, "\r\n");
    char *version = path ? strchr(path + 1, ' ') : NULL;

    if (!version || version > line || path[1] != '/')
        return -1;
    (void)buf_put(out, head, (size_t)(path + 1 - head));
    (void)buf_puts(out, connected_prefix(&f->talk->at));
    (void)buf_put(out, path + 1, (size_t)(line - path - 1));
    (void)buf_puts(out, "\r\n");
    for (char *at = line + 2; at < end; at = strstr(at, "\r\n") + 2)
        if (!is_left_out(at, upgrades))
            (void)buf_put(out, at, (size_t)(strstr(at, "\r\n") + 2 - at));
    if (!upgrades)
        (void)buf_puts(out, "Connection: close\r\n");
    if (f->key)
        (void)buf_printf(out, "E2b-Traffic-Access-Token: %s\r\n", f->key);
    return buf_printf(out, "E2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: %ld\r\n\r\n", f->id, f->port);
}

static void refuse(struct link *l, const char *status, const char *why)
{
    (void)buf_printf(&l->to_local,
                     "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                     "Content-Length: %zu\r\n\r\n%s\n",
                     status, strlen(why) + 1, why);
    l->daemon_ended = l->local_ended = true;
    buf_clear(&l->to_daemon);
}

static void begin(struct forwarding *f, struct link *l)
{
    cleanup_with(buf_done) struct buf head = BUF_INIT(2 * HEAD_MAX);
    char *end = l->to_daemon.n ? strstr(l->to_daemon.p, "\r\n\r\n") : NULL;
    struct err e = {0};

    if (!end) {
        if (l->to_daemon.n > HEAD_MAX)
            refuse(l, "431 Request Header Fields Too Large", "the head is too large");
        else if (l->local_ended)
            l->over = true;
        return;
    }
    if (put_head(f, l->to_daemon.p, end + 2, &head) < 0) {
        refuse(l, "400 Bad Request", "sbx port carries requests of HTTP");
    } else if (connected_open(&f->talk->at, &l->conn, &e) < 0) {
        talk_say(&e);
        refuse(l, "502 Bad Gateway", e.text);
    } else {
        buf_consume(&l->to_daemon, (size_t)(end + 4 - l->to_daemon.p));
        (void)buf_put(&head, l->to_daemon.p ? l->to_daemon.p : "", l->to_daemon.n);
        buf_clear(&l->to_daemon);
        (void)buf_put(&l->to_daemon, head.p, head.n);
    }
}

static void read_local(struct link *l)
{
    char part[PIECE];
    ssize_t n = read(l->local, part, sizeof part);

    if (n > 0)
        (void)buf_put(&l->to_daemon, part, (size_t)n);
    else if (n == 0)
        l->local_ended = true;
    else if (errno != EAGAIN && errno != EINTR)
        l->over = true;
}

static void read_daemon(struct link *l)
{
    char part[PIECE];
    ssize_t n = 1;

    while (l->to_local.n < AHEAD_MAX && (n = connected_read(l->conn, part, sizeof part)) > 0)
        (void)buf_put(&l->to_local, part, (size_t)n);
    if (n == 0 || n == -EIO)
        l->daemon_ended = true;
}

static void write_both(struct link *l)
{
    ssize_t n;

    if (l->conn && l->to_daemon.n > 0) {
        n = connected_write(l->conn, l->to_daemon.p, l->to_daemon.n);
        if (n > 0)
            buf_consume(&l->to_daemon, (size_t)n);
        else if (n == -EIO)
            buf_clear(&l->to_daemon); /* its answer may still be there to be read */
    }
    if (l->to_local.n > 0) {
        n = send(l->local, l->to_local.p, l->to_local.n, MSG_NOSIGNAL);
        if (n > 0)
            buf_consume(&l->to_local, (size_t)n);
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            l->over = true;
    }
    if (l->daemon_ended && l->to_local.n == 0)
        l->over = true;
}

/* ---- all of them ---- */

enum { FIXED = 2 }; /* the listener, and signals */

static size_t watch(struct forwarding *f, struct pollfd *fds, int stops)
{
    size_t n = FIXED;
    struct link *l;

    fds[0] = (struct pollfd){.fd = f->links_n < LINKS_MAX ? f->listener : -1, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = stops, .events = POLLIN};
    LIST_FOREACH(l, &f->links, entry)
    {
        bool hears = !l->local_ended && l->to_daemon.n < AHEAD_MAX;
        bool hears_daemon = l->conn && !l->daemon_ended && l->to_local.n < AHEAD_MAX;

        fds[n++] = (struct pollfd){
            .fd = l->local,
            .events = (short)((hears ? POLLIN : 0) | (l->to_local.n ? POLLOUT : 0))};
        fds[n++] = (struct pollfd){
            .fd = l->conn ? connected_fd(l->conn) : -1,
            .events = (short)((hears_daemon ? POLLIN : 0) | (l->to_daemon.n ? POLLOUT : 0))};
        if (!fds[n - 2].events) /* its end is not looked at while it is not read */
            fds[n - 2].fd = -1;
    }
    return n;
}

static void turn(struct forwarding *f, const struct pollfd *fds)
{
    size_t i = FIXED;
    struct link *l, *next;

    for (l = LIST_FIRST(&f->links); l; l = next, i += 2) {
        next = LIST_NEXT(l, entry);
        if (fds[i].revents & (POLLIN | POLLHUP | POLLERR))
            read_local(l);
        if (!l->over && !l->conn && !l->daemon_ended)
            begin(f, l);
        if (l->conn && fds[i + 1].revents)
            read_daemon(l);
        if (!l->over)
            write_both(l);
        if (l->over)
            link_free(f, l);
    }
}

static int serve(struct forwarding *f, int stops)
{
    struct pollfd fds[FIXED + 2 * LINKS_MAX];
    int sig;

    for (;;) {
        size_t n = watch(f, fds, stops);

        if (poll(fds, n, -1) < 0 && errno != EINTR)
            return CMD_FAILED;
        if (fds[1].revents && (sig = stops_take(stops)) && sig != SIGWINCH)
            return sig == SIGINT ? CMD_INTERRUPTED : 0;
        turn(f, fds);
        if (fds[0].revents)
            link_new(f);
    }
}

static int listen_at(long port, long *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = os_socket(AF_INET, SOCK_STREAM, 0), yes = 1;

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) < 0) {
        (void)fprintf(stderr, "sbx: 127.0.0.1:%ld: %s\n", port, strerror(errno));
        closep(&fd);
        return -1;
    }
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* Which sandbox it is, and what opens its ports. -1 after saying why. */
static int find_sandbox(struct forwarding *f)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    struct json_value v;

    path_sandbox(f->talk, &path);
    if (talk_json(f->talk, "GET", path.p, NULL, &answer, &v) < 0)
        return -1;
    f->id = member_text(v, "id");
    f->key = member_text(json_member(v, "access"), "traffic_token");
    return f->id ? 0 : -1;
}

/* "8000", or "9000:8000": here and there. */
static bool ports_read(const char *text, long *here, long *there)
{
    char *end;

    *here = *there = strtol(text, &end, 10);
    if (*end == ':' && end != text) {
        text = end + 1;
        *there = strtol(text, &end, 10);
    }
    return !*end && end != text && *here >= 0 && *here < 65536 && *there > 0 && *there < 65536;
}

int cmd_port(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    struct forwarding f = {.talk = &t, .listener = -1};
    cleanup_close int stops = -1;
    struct link *l;
    long here;
    int status;

    if (a->n != 1 || !ports_read(a->operand[0], &here, &f.port))
        return args_wrong(a, "which port?");
    if (talk_open(a, &t) < 0 || find_sandbox(&f) < 0 || (stops = stops_open()) < 0 ||
        (f.listener = listen_at(here, &here)) < 0)
        return CMD_FAILED;
    LIST_INIT(&f.links);
    if (t.json)
        (void)printf("{\"url\":\"http://127.0.0.1:%ld\",\"port\":%ld}\n", here, f.port);
    else
        (void)printf("http://127.0.0.1:%ld leads to port %ld of %s\n", here, f.port, t.sandbox);
    (void)fflush(stdout);
    status = serve(&f, stops);
    while ((l = LIST_FIRST(&f.links)))
        link_free(&f, l);
    closep(&f.listener);
    free(f.id);
    free(f.key);
    return status;
}
