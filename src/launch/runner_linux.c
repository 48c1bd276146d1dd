/* SPDX-License-Identifier: MIT */
/* How a warmed interpreter leaves: there are none elsewhere. */
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/runner.h"

enum { LINGER_MS = 100 }; /* then whoever was told has other worries */

/* The kernel tells their number as links of the directory that lists them. */
static int threads_count(void)
{
    struct stat st;

    return stat("/proc/self/task", &st) == 0 && st.st_nlink > 2 ? (int)st.st_nlink - 2 : 1;
}

/* In memory, an entry is twenty bytes of its directory, and there are always two: itself and the
 * one above. Elsewhere sizes tell nothing. */
enum { EMPTY = 40 };

static bool kept_nothing(void)
{
    struct statfs fs;
    struct stat st;

    return statfs("/workspace", &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
           stat("/workspace", &st) == 0 && st.st_size == EMPTY;
}

static bool tell_daemon(int status, int threads, const char *last, size_t last_n)
{
    char frame[] = "Q00000002??"; /* FRAME_LEFT */
    const struct iovec v[] = {
        {.iov_base = (char *)last, .iov_len = last_n          },
        {.iov_base = frame,        .iov_len = sizeof frame - 1},
    };

    frame[sizeof frame - 3] = (char)status;
    frame[sizeof frame - 2] = (char)threads;
    return threads <= UCHAR_MAX &&
           writev(RUNNER_FD, v, ARRAY_LEN(v)) == (ssize_t)(last_n + sizeof frame - 1);
}

static void tell_init(int status)
{
    const union sigval done = {.sival_int = threads_count() << 8 | status};

    (void)sigqueue(1, INIT_SIGNAL_DONE, done);
}

/* Bytes that went to a disk are told by whoever reaps the process. */
static bool is_first_and_clean(void)
{
    struct rusage u;

    return getppid() == 1 && getrusage(RUSAGE_SELF, &u) == 0 && !u.ru_inblock && !u.ru_oublock;
}

/*
 * Whoever was told goes first: what is left takes as long as the run. One that is alone with
 * itself, and in no hurry, need not end at all, but goes with its sandbox: its own end would take
 * the processor on which whoever is answered is about to wake. If it is not taken at its word, the
 * end of the stream says so. In a rush that would be one more waking for each.
 */
static void linger(bool stays)
{
    struct pollfd p = {.fd = RUNNER_FD, .events = POLLIN};

    if (stays)
        (void)poll(&p, 1, LINGER_MS);
    else
        (void)sched_yield();
}

void runner_leave(uint32_t flags, int status, bool threads, const char *last, size_t last_n)
{
    bool known = is_first_and_clean();
    int n = threads ? threads_count() : 1;

    status &= 255;
    if (known && flags & JOB_LEAVES && kept_nothing() && tell_daemon(status, n, last, last_n)) {
        linger(n == 1 && flags & JOB_STAYS);
        _exit(status);
    }
    (void)!fd_write_all(RUNNER_FD, last, last_n);
    if (known) {
        tell_init(status);
        linger(false);
    }
    _exit(status);
}
