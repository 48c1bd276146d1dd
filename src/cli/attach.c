/* SPDX-License-Identifier: MIT */
#include "cli/attach.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/stops.h"
#include "cli/ws_client.h"

enum {
    INPUT_CHUNK = 32 << 10,
    WAITING_MAX = 1 << 20, /* so much may wait to be sent before more is read */
    SIGNALLED = 128,
};

/* Between Enter and "~." that leaves a terminal whose process hears nothing any more. */
enum leaving { LEAVE_TEXT, LEAVE_LINE, LEAVE_TILDE };

struct attached_here {
    const struct attach *asked; /* borrowed */
    struct ws_client *ws;
    enum leaving leaving;
    bool raw, eof, left, ended;
    int interrupts, status;
    struct termios before;
};

/* ---- from there ---- */

int attach_status(struct json_value process)
{
    int64_t code = member_int(process, "exit_code"), sig = member_int(process, "signal");

    if (member_is(process, "reason", "timeout"))
        return CMD_TIMEOUT;
    if (code > 0 || (code == 0 && sig == 0 && member_is(process, "status", "completed")))
        return (int)code;
    return sig > 0 ? SIGNALLED + (int)sig : CMD_FAILED;
}

static int on_text(struct attached_here *h, const char *p, size_t n)
{
    struct json_value v;
    struct err e;

    if (json_parse(p, n, 0, &v, &e) < 0)
        return 0;
    if (member_is(v, "type", "gap"))
        (void)fprintf(stderr, "sbx: %lld bytes of output are gone\n",
                      (long long)member_int(v, "bytes"));
    if (!member_is(v, "type", "end"))
        return 0;
    h->ended = true;
    h->status = attach_status(json_member(v, "process"));
    return -1;
}

static int on_message(void *user, bool text, const char *p, size_t n)
{
    struct attached_here *h = user;
    int fd = STDOUT_FILENO;

    if (text)
        return on_text(h, p, n);
    if (!h->asked->terminal && n > 0) {
        fd = *p == 2 ? STDERR_FILENO : STDOUT_FILENO;
        p++;
        n--;
    }
    if (fd_write_all(fd, p, n) < 0 && fd == STDOUT_FILENO) {
        /* nobody reads us any more: the process is told as by a pipe */
        h->status = SIGNALLED + SIGPIPE;
        h->left = true;
        return -1;
    }
    return 0;
}

/* ---- from here ---- */

static void send_json(struct attached_here *h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void send_json(struct attached_here *h, const char *fmt, ...)
{
    char text[128];
    va_list all;
    int n;

    va_start(all, fmt);
    n = vsnprintf(text, sizeof text, fmt, all);
    va_end(all);
    (void)!ws_send(h->ws, true, text, (size_t)n);
}

static void send_signal(struct attached_here *h, const char *name)
{
    send_json(h, "{\"type\":\"signal\",\"signal\":\"%s\"}", name);
}

static bool window(struct winsize *ret)
{
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, ret) == 0 && ret->ws_col > 0 && ret->ws_row > 0;
}

void attach_put_size(struct buf *path)
{
    struct winsize w;
    char number[16];

    if (!window(&w))
        return;
    (void)snprintf(number, sizeof number, "%u", w.ws_col);
    path_query(path, "columns", number);
    (void)snprintf(number, sizeof number, "%u", w.ws_row);
    path_query(path, "rows", number);
}

static void send_size(struct attached_here *h)
{
    struct winsize w;

    if (window(&w))
        send_json(h, "{\"type\":\"resize\",\"columns\":%d,\"rows\":%d}", w.ws_col, w.ws_row);
}

/* Is this the end of "Enter ~ ."? */
static bool is_leaving(struct attached_here *h, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (h->leaving == LEAVE_TILDE && p[i] == '.')
            return true;
        h->leaving = p[i] == '\r' || p[i] == '\n'              ? LEAVE_LINE
                     : h->leaving == LEAVE_LINE && p[i] == '~' ? LEAVE_TILDE
                                                               : LEAVE_TEXT;
    }
    return false;
}

static void take_input(struct attached_here *h)
{
    char part[INPUT_CHUNK];
    ssize_t n = read(STDIN_FILENO, part, sizeof part);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        h->eof = true;
        send_json(h, "{\"type\":\"input_end\"}");
    } else if (h->raw && is_leaving(h, part, (size_t)n)) {
        h->left = true;
    } else {
        (void)!ws_send(h->ws, false, part, (size_t)n);
    }
}

static void take_signal(struct attached_here *h, int signals)
{
    int sig = stops_take(signals);

    if (sig == 0)
        return;
    if (sig == SIGWINCH) {
        if (h->asked->terminal)
            send_size(h);
        return;
    }
    h->interrupts++;
    if (h->asked->terminal) { /* its keys are the program's; this is for us alone */
        h->left = true;
        return;
    }
    send_signal(h, h->interrupts > 2 ? "SIGKILL"
                   : sig == SIGINT   ? "SIGINT"
                   : sig == SIGHUP   ? "SIGHUP"
                                     : "SIGTERM");
    if (sig == SIGHUP)
        h->left = true;
}

/* ---- both ---- */

static int carry(struct attached_here *h, int signals)
{
    int r = 1;

    while ((r = ws_move(h->ws, on_message, h)) == 1 && !h->left) {
        bool reads = h->asked->input && !h->eof && ws_waiting(h->ws) < WAITING_MAX;
        struct pollfd fds[] = {
            {.fd = ws_fd(h->ws),              .events = ws_wants(h->ws)},
            {.fd = signals,                   .events = POLLIN         },
            {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN         },
        };

        if (poll(fds, ARRAY_LEN(fds), -1) < 0)
            continue;
        if (fds[1].revents)
            take_signal(h, signals);
        if (fds[2].revents)
            take_input(h);
    }
    if (h->left && r == 1)
        (void)!ws_move(h->ws, on_message, h); /* what is queued goes out */
    return r;
}

static void terminal_raw(struct attached_here *h)
{
    struct termios raw;

    if (!h->asked->terminal || !isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &h->before) < 0)
        return;
    raw = h->before;
    cfmakeraw(&raw);
    h->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
    h->leaving = LEAVE_LINE;
}

static void terminal_restore(const struct attached_here *h)
{
    if (h->raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &h->before);
}

int attach_run(struct talk *t, const struct attach *a)
{
    struct attached_here h = {.asked = a, .status = CMD_FAILED};
    cleanup_close int signals = stops_open();
    struct err e = {0};
    int r;

    (void)fflush(stdout);
    (void)signal(SIGPIPE, SIG_IGN);
    if (signals < 0)
        return CMD_FAILED;
    if (ws_open(&t->at, a->path, &h.ws, &e) < 0) {
        talk_say(&e);
        return CMD_FAILED;
    }
    terminal_raw(&h);
    if (a->terminal)
        send_size(&h); /* it may have changed meanwhile */
    r = carry(&h, signals);
    terminal_restore(&h);
    ws_close(h.ws);
    if (h.left && h.raw)
        (void)fprintf(stderr, "\nsbx: left; the program %s\n", a->keeps ? "goes on" : "ends");
    else if (!h.left && !h.ended)
        (void)fprintf(stderr, "sbx: the connection %s; sbx ps tells what became of the process\n",
                      r < 0 ? "broke" : "has ended");
    return h.status;
}
