/* SPDX-License-Identifier: MIT */
/*
 * sbx mcp: a server of the Model Context Protocol on standard input and output, for clients that
 * start their servers themselves. Standard output carries messages and nothing else.
 *
 * It ends when its input ends, when it is asked to, when the process that started it has ended, and
 * when the daemon that it has started itself has.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lines.h"
#include "cli/cmds.h"
#include "cli/http.h"
#include "cli/mcp_bridge.h"
#include "cli/private_daemon.h"

enum {
    PROBE_MS = 3000,
    LINE_DEFAULT = 4 << 20, /* as BODY_MAX_MCP */
    LINE_MOST = 64 << 20,
    READ_SIZE = 64 << 10,
    PIPE_SURE = 4096,  /* a pipe that can be written to takes so many bytes (PIPE_BUF) */
    REST_US = 2500000, /* requests under way may end in that time after the end of the input */
};

struct mcp {
    struct private_daemon own;
    struct bridge *bridge;
    struct buf line; /* what has come of a line; its maximum is the longest one */
    bool skipping;   /* to the end of a line that was too long */
    bool ended;      /* the input */
    uint64_t rest_until_us;
    int signals, parent; /* owned; parent -1: not watched */
};

/* ---- which daemon ---- */

static void on_field(void *user, const char *name, const char *value)
{
    bool *ours = user;

    if (strcmp(name, "www-authenticate") == 0 && strstr(value, "realm=\"sandbox-executor\""))
        *ours = true;
}

/* Does a daemon of this kind answer there, and take what we know as its secret? */
static bool is_usable(const struct daemon_at *at)
{
    bool closed = false;
    const struct http_request r = {
        .path = "/mcp", .whole_ms = PROBE_MS, .line = on_field, .user = &closed};
    struct http_answer answer = {0};
    struct http *h = NULL;
    struct err e;
    bool usable = http_open(at, &h, &e) == 0 && http_ask(h, &r, &answer, &e) == 0 &&
                  answer.status == 405 && answer.body.n > 0 &&
                  strstr(answer.body.p, "Mcp-Session-Id");

    if (closed)
        (void)fprintf(stderr, "sbx: the daemon at %s wants another secret (SANDBOX_SECRET)\n",
                      at->url);
    http_answer_done(&answer);
    http_close(h);
    return usable;
}

static int find_daemon(struct mcp *m, const char *url, bool own, struct daemon_at *ret,
                       struct err *e)
{
    if (daemon_at_find(url, ret, e) < 0)
        return -1;
    if (!own && (ret->said || is_usable(ret)))
        return 0;
    if (private_daemon_start(&m->own, ret, e) < 0)
        return -1;
    (void)fprintf(stderr, "sbx: started a daemon of its own at %s\n", ret->url);
    return 0;
}

/* ---- input ---- */

static void take_input(struct mcp *m, const char *p, size_t n)
{
    const char *end = p + n;

    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t part = (size_t)((nl ? nl : end) - p);

        if (!m->skipping && buf_put(&m->line, p, part) < 0) {
            bridge_line_too_long(m->bridge, m->line.max);
            m->skipping = true;
        }
        if (nl) {
            if (!m->skipping && m->line.n > 0)
                bridge_line(m->bridge, m->line.p, m->line.n);
            buf_clear(&m->line);
            m->skipping = false;
        }
        p += part + (nl ? 1 : 0);
    }
}

static void end_input(struct mcp *m)
{
    m->ended = true;
    m->rest_until_us = clock_us() + REST_US;
    if (!m->skipping && m->line.n > 0)
        bridge_line(m->bridge, m->line.p, m->line.n);
    buf_clear(&m->line);
}

static void read_input(struct mcp *m)
{
    char part[READ_SIZE];
    ssize_t n = read(STDIN_FILENO, part, sizeof part);

    if (n > 0)
        take_input(m, part, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        end_input(m);
}

/* ---- output ---- */

/* Never waits for a client that does not read. -1: it reads no more. */
static int write_output(struct buf *out)
{
    ssize_t n = send(STDOUT_FILENO, out->p, out->n, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0 && errno == ENOTSOCK)
        n = write(STDOUT_FILENO, out->p, out->n < PIPE_SURE ? out->n : PIPE_SURE);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -1;
    buf_consume(out, (size_t)n);
    return 0;
}

/* ---- the loop ---- */

enum { WATCH_SIGNALS, WATCH_OUT, WATCH_IN, WATCH_PARENT, WATCH_DAEMON, WATCHES };

static bool is_over(const struct mcp *m)
{
    if (!m->ended)
        return false;
    return clock_us() >= m->rest_until_us ||
           (!bridge_is_busy(m->bridge) && bridge_out(m->bridge)->n == 0);
}

/* 1: it goes on; 0: it is over, in order; -1: not. */
static int turn(struct mcp *m, struct err *e)
{
    struct buf *out = bridge_out(m->bridge);
    struct pollfd all[WATCHES] = {
        [WATCH_SIGNALS] = {.fd = m->signals,      .events = POLLIN },
        [WATCH_OUT] = {.fd = STDOUT_FILENO,   .events = POLLOUT},
        [WATCH_IN] = {.fd = STDIN_FILENO,    .events = POLLIN },
        [WATCH_PARENT] = {.fd = m->parent,       .events = POLLIN },
        [WATCH_DAEMON] = {.fd = m->own.watching, .events = POLLIN },
    };
    const bool wanted[WATCHES] = {true, out->n > 0, !m->ended && out->n < BRIDGE_OUT_ENOUGH,
                                  m->parent >= 0, m->own.watching >= 0};
    struct pollfd fds[WATCHES];
    size_t n = 0;

    for (size_t i = 0; i < WATCHES; i++)
        if (wanted[i])
            fds[n++] = all[i];
    if (bridge_turn(m->bridge, fds, n, m->ended ? 100 : -1, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (fds[i].revents == 0)
            continue;
        if (fds[i].fd == m->signals || fds[i].fd == m->parent)
            return 0;
        if (fds[i].fd == m->own.watching)
            return err_set(e, ERR_HOST, "the daemon of its own has ended");
        if (fds[i].fd == STDIN_FILENO)
            read_input(m);
        else if (write_output(out) < 0)
            return 0;
    }
    return is_over(m) ? 0 : 1;
}

static int watch(struct mcp *m, struct err *e)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    m->signals = signalfd(-1, &set, SFD_CLOEXEC);
    m->parent = getppid() > 1 ? (int)syscall(SYS_pidfd_open, getppid(), 0) : -1;
    return m->signals < 0 ? err_sys(e, -errno, "signalfd") : 0;
}

static size_t line_max(void)
{
    const char *text = getenv("BODY_MAX_MCP");
    unsigned long n = text ? strtoul(text, NULL, 10) : 0;

    return n == 0 ? LINE_DEFAULT : n > LINE_MOST ? LINE_MOST : n;
}

static int serve(const char *url, bool own)
{
    struct mcp m = {.own = PRIVATE_DAEMON, .line = BUF_INIT(line_max()), .signals = -1};
    struct daemon_at at;
    struct err e = {0};
    int r = watch(&m, &e);

    r = r < 0 ? r : find_daemon(&m, url, own, &at, &e);
    r = r < 0 ? r : bridge_open(&at, &m.bridge, &e);
    while (r == 0 && (r = turn(&m, &e)) > 0)
        r = 0;
    if (r < 0)
        (void)fprintf(stderr, "sbx: %s\n", e.text);
    bridge_close(m.bridge);
    private_daemon_end(&m.own);
    buf_done(&m.line);
    closep(&m.signals);
    closep(&m.parent);
    return r < 0 ? CMD_FAILED : EXIT_SUCCESS;
}

int cmd_mcp(const struct args *a)
{
    const char *url = args_option(a, "url");
    bool own = args_option(a, "private") != NULL;

    if (a->n > 0 || (own && url))
        return args_wrong(a, own && url ? "--private starts a daemon: there is no other" : NULL);
    return serve(url, own);
}
