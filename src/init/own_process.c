/* SPDX-License-Identifier: MIT */
#include "init/own_process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "wire/cpus.h"
#include "wire/init_control.h"

enum { QUEUES_MAX = 64 << 10, SIGNALS_MAX = 4096 };

void process_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name);
}

int process_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int process_follow(void)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -errno : 0;
}

int process_apart(void)
{
    return setsid() < 0 ? -errno : 0;
}

void process_spread(const struct cpus *cpus)
{
    (void)sched_setaffinity(0, sizeof cpus->set, &cpus->set);
}

int process_visible(bool on)
{
    return prctl(PR_SET_DUMPABLE, on, 0, 0, 0) < 0 ? -errno : 0;
}

int process_lock(void)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int process_user(uid_t uid, gid_t gid)
{
    return sys_setgroups_none() < 0 || sys_setresgid(gid) < 0 || sys_setresuid(uid) < 0 ? -errno
                                                                                        : 0;
}

int process_limits(void)
{
    static const struct {
        int what;
        rlim_t limit;
    } rows[] = {
        {RLIMIT_SIGPENDING, SIGNALS_MAX},
        {RLIMIT_MSGQUEUE,   QUEUES_MAX },
        {RLIMIT_NICE,       0          },
        {RLIMIT_RTPRIO,     0          },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rlimit now, l = {rows[i].limit, rows[i].limit};

        if (getrlimit(rows[i].what, &now) == 0 && now.rlim_max < l.rlim_max)
            l.rlim_cur = l.rlim_max = now.rlim_max;
        if (setrlimit(rows[i].what, &l) < 0)
            return -errno;
    }
    return 0;
}

int64_t process_maxrss(long told)
{
    return (int64_t)told * 1024;
}

long process_newest(void)
{
    cleanup_close int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    char text[128] = "";
    const char *last;

    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return -1;
    last = strrchr(text, ' ');
    return last ? strtol(last, NULL, 10) : -1;
}

/* The kernel tells their number as links of the directory that lists them. */
long process_threads(pid_t pid)
{
    char path[32];
    struct stat st;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return stat(path, &st) == 0 && st.st_nlink > 2 ? (long)st.st_nlink - 2 : -1;
}

/* ---- children ---- */

int signals_open(unsigned flags)
{
    sigset_t blocked, heard;
    int fd;

    (void)sigemptyset(&heard);
    (void)sigaddset(&heard, SIGCHLD);
    if (flags & SIGNALS_DONE) /* blocked: else pid 1 would never get it */
        (void)sigaddset(&heard, INIT_SIGNAL_DONE);
    blocked = heard;
    if (flags & SIGNALS_ALONE)
        (void)sigfillset(&blocked);
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
    fd = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

bool signals_next(int fd, pid_t from, int *ret_value)
{
    struct signalfd_siginfo si;

    while (read(fd, &si, sizeof si) == sizeof si)
        if (si.ssi_signo == INIT_SIGNAL_DONE && si.ssi_code == SI_QUEUE &&
            (pid_t)si.ssi_pid == from) {
            *ret_value = si.ssi_int;
            return true;
        }
    return false;
}

void signals_take(int fd)
{
    struct signalfd_siginfo si;

    (void)!read(fd, &si, sizeof si);
}
