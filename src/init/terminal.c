/* SPDX-License-Identifier: MIT */
#include "init/terminal.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TURN = 16 }; /* reads before others of the helper get their turn */

void terminal_resize(struct terminal *t, uint32_t size)
{
    const struct winsize ws = {.ws_col = (unsigned short)size,
                               .ws_row = (unsigned short)(size >> 16)};

    if (t->master >= 0)
        (void)ioctl(t->master, TIOCSWINSZ, &ws);
}

/* The other end by its number, not by its name: nobody can have put something else there. */
static int open_pair(int *ret_master, int *ret_slave)
{
    cleanup_close int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    int unlocked = 0, slave;

    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
        return -errno;
    slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return -errno;
    *ret_master = take_fd(&master);
    *ret_slave = slave;
    return 0;
}

static void nonblock(int fd)
{
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int terminal_open(uint32_t size, int in, int out, struct terminal **ret, int *ret_slave)
{
    struct terminal *t = malloc(sizeof *t);
    int r = t ? open_pair(&t->master, ret_slave) : -ENOMEM;

    if (r < 0) {
        free(t);
        return r;
    }
    t->in = in;
    t->out = out;
    t->ending = false;
    t->in_n = t->in_at = t->out_n = t->out_at = 0;
    nonblock(in);
    nonblock(out);
    terminal_resize(t, size);
    *ret = t;
    return 0;
}

static void shut(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

void terminal_close(struct terminal *t)
{
    if (!t)
        return;
    shut(&t->master);
    shut(&t->in);
    shut(&t->out);
    free(t);
}

int terminal_become(int slave)
{
    if (ioctl(slave, TIOCSCTTY, 0) < 0)
        return -errno;
    for (int i = 0; i < 3; i++)
        if (dup2(slave, i) < 0)
            return -errno;
    return 0;
}

bool terminal_is_over(const struct terminal *t)
{
    return t->master < 0 && t->out_at == t->out_n;
}

/* -1 is not waited for, nor is what would have no room. */
void terminal_wait_for(const struct terminal *t, struct pollfd p[TERMINAL_FDS])
{
    bool reads = t->master >= 0 && t->out_at == t->out_n;
    bool writes = t->master >= 0 && t->in_at < t->in_n;
    short master = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));

    p[0] = (struct pollfd){.fd = master ? t->master : -1, .events = master};
    p[1] = (struct pollfd){.fd = writes ? -1 : t->in, .events = POLLIN};
    p[2] = (struct pollfd){.fd = t->out_at < t->out_n ? t->out : -1, .events = POLLOUT};
}

static bool must_wait(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* False: nothing more can be done now. */
static bool flush(struct terminal *t)
{
    ssize_t n;

    if (t->out_at == t->out_n)
        return true;
    n = t->out < 0 ? (ssize_t)(t->out_n - t->out_at)
                   : write(t->out, t->from + t->out_at, t->out_n - t->out_at);
    if (n < 0 && !must_wait(n)) { /* nobody reads it: the program goes on */
        shut(&t->out);
        n = (ssize_t)(t->out_n - t->out_at);
    }
    if (n > 0)
        t->out_at += (size_t)n;
    return t->out_at == t->out_n;
}

static void carry_out(struct terminal *t)
{
    for (int i = 0; i < TURN && flush(t) && t->master >= 0; i++) {
        ssize_t n = read(t->master, t->from, sizeof t->from);

        if (n <= 0 && (!must_wait(n) || (t->ending && errno == EAGAIN))) {
            shut(&t->master); /* EIO: nobody has the other end any more */
            break;
        }
        if (n <= 0)
            break;
        t->out_n = (size_t)n;
        t->out_at = 0;
    }
    (void)flush(t);
}

static void carry_in(struct terminal *t)
{
    ssize_t n;

    if (t->in_at == t->in_n && t->in >= 0) {
        n = read(t->in, t->to, sizeof t->to);
        if (n == 0 || (n < 0 && !must_wait(n)))
            shut(&t->in);
        t->in_n = n > 0 ? (size_t)n : 0;
        t->in_at = 0;
    }
    if (t->in_at == t->in_n || t->master < 0)
        return;
    n = write(t->master, t->to + t->in_at, t->in_n - t->in_at);
    if (n > 0)
        t->in_at += (size_t)n;
    else if (!must_wait(n))
        t->in_at = t->in_n;
}

void terminal_carry(struct terminal *t)
{
    carry_in(t);
    carry_out(t);
}

void terminal_end(struct terminal *t)
{
    t->ending = true;
    shut(&t->in);
    t->in_at = t->in_n;
    carry_out(t);
}
