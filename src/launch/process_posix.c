/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/os.h"
#include "launch/process.h"

/* Where a handler finds the pipe: it has nothing to look it up in. Above what init gives numbers
 * to, below what it moves things to. */
enum { SIGNALS_FD = 63 };

void process_name(const char *name)
{
    (void)name; /* it is called what it was started as */
}

int process_adopt(void)
{
    return 0; /* nobody can: tree_posix.c finds them in another way */
}

int process_follow(void)
{
    return 0; /* init sees the end of a pipe instead: struct init, leash */
}

int process_apart(void)
{
    return setpgid(0, 0) < 0 ? -errno : 0;
}

int process_lead(void)
{
    return setsid() < 0 ? -errno : 0;
}

void process_spread(const struct cpus *cpus)
{
    (void)cpus;
}

void process_stand_back(bool on)
{
    (void)on;
}

int process_visible(bool on)
{
    (void)on;
    return 0;
}

int process_lock(void)
{
    return 0;
}

int process_user(uid_t uid, gid_t gid)
{
    return os_become(uid, gid) < 0 ? -errno : 0;
}

int process_limits(void)
{
    return 0;
}

int64_t process_maxrss(long told)
{
#ifdef __APPLE__
    return told;
#else
    return (int64_t)told * 1024;
#endif
}

long process_newest(void)
{
    return -1;
}

/* ---- children ---- */

static void on_child(int number)
{
    int before = errno;

    (void)number;
    (void)!write(SIGNALS_FD, "c", 1); /* full: it is readable already */
    errno = before;
}

int signals_open(unsigned flags)
{
    struct sigaction act = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    cleanup_close int from = -1, to = -1;
    sigset_t blocked;
    int pair[2], r = fd_pipe(pair);

    if (r < 0)
        return r;
    from = pair[0], to = pair[1];
    (void)sigemptyset(&blocked);
    if (flags & SIGNALS_ALONE)
        (void)sigfillset(&blocked);
    (void)sigdelset(&blocked, SIGCHLD);
    r = fd_nonblock(from, true);
    if (r == 0)
        r = fd_nonblock(to, true);
    if (r == 0)
        r = fd_move(to, SIGNALS_FD);
    if (r < 0)
        return r;
    (void)sigemptyset(&act.sa_mask);
    if (sigaction(SIGCHLD, &act, NULL) < 0 || sigprocmask(SIG_SETMASK, &blocked, NULL) < 0)
        return -errno;
    return take_fd(&from);
}

bool signals_next(int fd, pid_t from, int *ret_value)
{
    (void)from, (void)ret_value; /* nobody says so: there are no warmed interpreters */
    signals_take(fd);
    return false;
}

void signals_take(int fd)
{
    char many[64];

    while (read(fd, many, sizeof many) == (ssize_t)sizeof many) {
    }
}
