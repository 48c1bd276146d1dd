/* SPDX-License-Identifier: MIT */
#include "init/own_process.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/sys.h"
#include "wire/cpus.h"

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

int process_limit(int what, rlim_t limit)
{
    struct rlimit now, l = {limit, limit};

    if (getrlimit(what, &now) == 0 && now.rlim_max < limit)
        l.rlim_cur = l.rlim_max = now.rlim_max;
    return setrlimit(what, &l) < 0 ? -errno : 0;
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
        int r = process_limit(rows[i].what, rows[i].limit);

        if (r < 0)
            return r;
    }
    return 0;
}
