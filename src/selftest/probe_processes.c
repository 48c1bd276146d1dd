/* SPDX-License-Identifier: MIT */
/* Namespaces, identities, signals, other processes, and other ways into the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "selftest/probe.h"

enum { X32 = 0x40000000 };

typedef void attack_fn(const struct probe *p, long with);

__attribute__((noreturn)) static void judge(const struct probe *p, long r, const char *what)
{
    if (r >= 0)
        was_breached(p, what);
    was_held(p, r);
}

/* ---- namespaces ---- */

static void by_unshare(const struct probe *p, long flags)
{
    long r;

    if (p->fake)
        fake_success(SYS_unshare);
    r = TRY(p, SYS_unshare, flags);
    if (r == 0)
        was_breached_holding(p, "in namespaces of its own", "namespace", 0);
    was_held(p, r);
}

/* In a child, so that both sides can be told apart. */
static void child_judge(const struct probe *p, long r)
{
    const long nap[2] = {20, 0};
    char text[24];

    if (r < 0)
        was_held(p, r);
    if (r == 0) {
        (void)SYS(SYS_nanosleep, ADDRESS(nap));
        leave(0);
    }
    was_breached_holding(p, "a child in namespaces of its own", "namespace", 0);
    SAY(say_result(r, text));
}

static void by_clone(const struct probe *p, long flags)
{
    (void)p;
    child_judge(p, SYS(SYS_clone, flags | SIGCHLD));
}

static void by_clone3(const struct probe *p, long flags)
{
    struct clone_args a = {.flags = (uint64_t)flags, .exit_signal = SIGCHLD};

    (void)p;
    child_judge(p, SYS(SYS_clone3, ADDRESS(&a), sizeof a));
}

/* Into the namespaces of pid 1, which is somebody else's process everywhere. */
static void by_setns(const struct probe *p, long which)
{
    static const char paths[][20] = {"/proc/1/ns/mnt", "/proc/1/ns/net", "/proc/1/ns/pid",
                                     "/proc/1/ns/uts"};
    long fd = TRY(p, SYS_openat, AT_FDCWD, ADDRESS(paths[which]), O_RDONLY);

    if (fd < 0)
        was_held(p, fd);
    judge(p, TRY(p, SYS_setns, fd, 0), "entered the namespace of pid 1");
}

static void by_pidfd(const struct probe *p, long pid)
{
    long fd = TRY(p, SYS_pidfd_open, pid ? pid : p->victim, 0);

    if (fd < 0)
        was_held(p, fd);
    judge(p, TRY(p, SYS_setns, fd, CLONE_NEWNET), "entered namespaces by a pidfd");
}

/* ---- identities ---- */

static void by_setuid(const struct probe *p, long nr)
{
    long r;

    (void)p;
    r = nr == SYS_setresuid ? SYS(nr, 0, 0, 0) : SYS(nr, 0);
    if (r == 0 && (SYS(SYS_geteuid) == 0 || SYS(SYS_getegid) == 0))
        was_breached_holding(p, "root", "status", 0);
    was_held(p, r < 0 ? r : -EPERM);
}

static void by_setgroups(const struct probe *p, long unused)
{
    const unsigned groups[2] = {0, 6};

    (void)unused;
    if (p->fake)
        fake_success(SYS_setgroups);
    judge(p, TRY(p, SYS_setgroups, 2, ADDRESS(groups)), "groups of its choice");
}

static void by_capset(const struct probe *p, long unused)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct all[2] = {
        {1u << CAP_SYS_ADMIN, 1u << CAP_SYS_ADMIN, 0},
        {0,                   0,                   0}
    };
    long r = SYS(SYS_capset, ADDRESS(&head), ADDRESS(all));

    (void)p, (void)unused;
    if (r == 0)
        was_breached_holding(p, "CAP_SYS_ADMIN", "status", 0);
    was_held(p, r);
}

static void by_prctl(const struct probe *p, long option)
{
    long r = -EPERM;

    (void)p;
    if (option == PR_CAP_AMBIENT) {
        struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
        struct __user_cap_data_struct now[2];

        if (SYS(SYS_capget, ADDRESS(&head), ADDRESS(now)) == 0) {
            now[0].inheritable |= now[0].permitted;
            (void)SYS(SYS_capset, ADDRESS(&head), ADDRESS(now));
        }
        r = SYS(SYS_prctl, option, PR_CAP_AMBIENT_RAISE, CAP_SYS_CHROOT, 0, 0);
    } else if (option == PR_SET_SECUREBITS) {
        r = TRY(p, SYS_prctl, option, 0, 0, 0, 0);
    } else if (option == PR_GET_NO_NEW_PRIVS) {
        r = SYS(SYS_prctl, option, 0, 0, 0, 0) == 1 ? -EPERM : 0;
    } else if (option == PR_CAPBSET_READ) {
        for (long cap = 0; cap < 64 && r < 0; cap++)
            r = SYS(SYS_prctl, option, cap, 0, 0, 0) == 1 ? 0 : -EPERM;
    }
    judge(p, r, "a privilege");
}

/* ---- signals ---- */

static void by_kill(const struct probe *p, long signal)
{
    long r = SYS(SYS_kill, p->victim, signal);

    judge(p, r, "signalled a process of the host");
}

static void by_kill_all(const struct probe *p, long signal)
{
    const long nap[2] = {0, 50000000}; /* a signal takes a moment to be seen */

    (void)p;
    (void)SYS(SYS_kill, -1, signal);
    (void)SYS(SYS_nanosleep, ADDRESS(nap));
    was_held(p, -ESRCH); /* the witness outside knows better */
}

static void by_kill_init(const struct probe *p, long signal)
{
    const long nap[2] = {0, 50000000};

    (void)p;
    (void)SYS(SYS_kill, 1, signal);
    (void)SYS(SYS_nanosleep, ADDRESS(nap));
    was_held(p, -EPERM); /* a process that reports is still alive */
}

static void by_pidfd_signal(const struct probe *p, long unused)
{
    long fd = SYS(SYS_pidfd_open, p->victim, 0);

    (void)unused;
    judge(p, fd < 0 ? fd : SYS(SYS_pidfd_send_signal, fd, SIGKILL, 0, 0), "signalled by a pidfd");
}

/* ---- priorities ---- */

static void by_priority(const struct probe *p, long unused)
{
    (void)unused;
    if (p->fake)
        fake_success(SYS_setpriority);
    judge(p, TRY(p, SYS_setpriority, 0, 0, -20), "nice -20");
}

static void by_realtime(const struct probe *p, long policy)
{
    const int priority = 1;

    if (p->fake)
        fake_success(SYS_sched_setscheduler);
    judge(p, TRY(p, SYS_sched_setscheduler, 0, policy, ADDRESS(&priority)), "a real-time process");
}

static void by_io_priority(const struct probe *p, long unused)
{
    (void)unused;
    if (p->fake)
        fake_success(SYS_ioprio_set);
    judge(p, TRY(p, SYS_ioprio_set, 1, 0, 1 << 13), "real-time disk access");
}

static void by_lock(const struct probe *p, long unused)
{
    const long size = 8 << 20;
    long at = SYS(SYS_mmap, 0, size, 3, 0x22, -1, 0), r;

    (void)unused;
    if (p->fake)
        fake_success(SYS_mlock);
    r = TRY(p, SYS_mlock, at, size);
    judge(p, r == -ENOMEM ? -EPERM : r, "8 MiB locked in memory");
}

/* ---- terminals ---- */

static void by_ioctl(const struct probe *p, long request)
{
    long fd = TRY(p, SYS_openat, AT_FDCWD, ADDRESS("/dev/ptmx"), O_RDWR | O_NOCTTY), r, slave;
    int zero = 0;
    char text[24];

    if (fd < 0)
        was_held(p, fd);
    (void)SYS(SYS_ioctl, fd, TIOCSPTLCK, ADDRESS(&zero));
    slave = SYS(SYS_ioctl, fd, TIOCGPTPEER, O_RDWR | O_NOCTTY);
    (void)SYS(SYS_setsid);
    (void)SYS(SYS_ioctl, slave, TIOCSCTTY, 0);
    if (p->fake)
        fake_success(SYS_ioctl);
    r = TRY(p, SYS_ioctl, slave < 0 ? fd : slave, request, ADDRESS("x"));
    if (r >= 0 || r == -ENOTTY || r == -EINVAL || r == -EIO) /* the terminal's own answer */
        was_breached(p, say_result(r, text));
    was_held(p, r);
}

/* Of a socket; each has the kernel load a module before it looks at anything else. */
static void by_socket_ioctl(const struct probe *p, long request)
{
    long fd = SYS(SYS_socket, AF_INET, SOCK_DGRAM, 0), r;
    char text[24];

    if (p->fake)
        fake_success(SYS_ioctl);
    r = TRY(p, SYS_ioctl, fd, request, 0);
    if (!is_refusal(r)) /* ENOPKG: it was looked for */
        was_breached(p, say_result(r, text));
    was_held(p, r);
}

/* ---- other doors into the kernel ---- */

static void by_foreign_calls(const struct probe *p, long x32)
{
#if defined __x86_64__
    long me = SYS(SYS_getpid), r;

    if (p->fake)
        fake_success(X32 + SYS_getpid);
    r = x32 ? TRY(p, X32 + SYS_getpid) : try_foreign(p);
    if (r == me)
        was_breached(p, "answered");
    was_held(p, r);
#else
    (void)p, (void)x32;
    SAY("ABSENT on this architecture");
    leave(0);
#endif
}

/* Calls that this program's authors have never heard of. */
static void by_unknown_call(const struct probe *p, long nr)
{
    long r;

    if (p->fake)
        fake_success(nr);
    r = TRY(p, nr, 0, 0, 0, 0, 0, 0);
    if (r != -ENOSYS)
        was_breached(p, "answered");
    was_held(p, r);
}

static const struct {
    char id[24];
    attack_fn *run;
    long with;
} attacks[] = {
    {"unshare-user",        by_unshare,       CLONE_NEWUSER               },
    {"unshare-user-net",    by_unshare,       CLONE_NEWUSER | CLONE_NEWNET},
    {"unshare-user-mount",  by_unshare,       CLONE_NEWUSER | CLONE_NEWNS },
    {"unshare-user-pid",    by_unshare,       CLONE_NEWUSER | CLONE_NEWPID},
    {"unshare-mount",       by_unshare,       CLONE_NEWNS                 },
    {"unshare-net",         by_unshare,       CLONE_NEWNET                },
    {"unshare-ipc",         by_unshare,       CLONE_NEWIPC                },
    {"unshare-cgroup",      by_unshare,       CLONE_NEWCGROUP             },
    {"clone-user",          by_clone,         CLONE_NEWUSER               },
    {"clone-user-net",      by_clone,         CLONE_NEWUSER | CLONE_NEWNET},
    {"clone-mount",         by_clone,         CLONE_NEWNS                 },
    {"clone3-user",         by_clone3,        CLONE_NEWUSER               },
    {"clone3-user-pid",     by_clone3,        CLONE_NEWUSER | CLONE_NEWPID},
    {"setns-mount",         by_setns,         0                           },
    {"setns-net",           by_setns,         1                           },
    {"setns-pid",           by_setns,         2                           },
    {"setns-uts",           by_setns,         3                           },
    {"setns-pidfd",         by_pidfd,         1                           },
    {"setns-victim",        by_pidfd,         0                           },
    {"setuid",              by_setuid,        SYS_setuid                  },
    {"setgid",              by_setuid,        SYS_setgid                  },
    {"setresuid",           by_setuid,        SYS_setresuid               },
    {"setgroups",           by_setgroups,     0                           },
    {"capset",              by_capset,        0                           },
    {"ambient",             by_prctl,         PR_CAP_AMBIENT              },
    {"securebits",          by_prctl,         PR_SET_SECUREBITS           },
    {"no-new-privs",        by_prctl,         PR_GET_NO_NEW_PRIVS         },
    {"bounding-set",        by_prctl,         PR_CAPBSET_READ             },
    {"kill-victim",         by_kill,          SIGKILL                     },
    {"stop-victim",         by_kill,          SIGSTOP                     },
    {"kill-all",            by_kill_all,      SIGKILL                     },
    {"stop-all",            by_kill_all,      SIGSTOP                     },
    {"kill-init",           by_kill_init,     SIGKILL                     },
    {"stop-init",           by_kill_init,     SIGSTOP                     },
    {"pidfd-signal",        by_pidfd_signal,  0                           },
    {"nice",                by_priority,      0                           },
    {"fifo",                by_realtime,      SCHED_FIFO                  },
    {"round-robin",         by_realtime,      SCHED_RR                    },
    {"io-realtime",         by_io_priority,   0                           },
    {"mlock",               by_lock,          0                           },
    {"tiocsti",             by_ioctl,         TIOCSTI                     },
    {"tiocsti-high-bits",   by_ioctl,         TIOCSTI | 1l << 32          },
    {"tioclinux",           by_ioctl,         TIOCLINUX                   },
    {"tioclinux-high-bits", by_ioctl,         TIOCLINUX | 1l << 32        },
    {"tioccons",            by_ioctl,         TIOCCONS                    },
    {"tiocsetd",            by_ioctl,         TIOCSETD                    },
    {"vlan-ioctl",          by_socket_ioctl,  SIOCGIFVLAN                 },
    {"bridge-ioctl",        by_socket_ioctl,  SIOCGIFBR                   },
    {"int-0x80",            by_foreign_calls, 0                           },
    {"x32",                 by_foreign_calls, 1                           },
    {"future-call",         by_unknown_call,  480                         },
    {"far-future-call",     by_unknown_call,  4000                        },
};

void probe_processes(const struct probe *p)
{
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++)
        if (text_same(attacks[i].id, p->id))
            attacks[i].run(p, attacks[i].with);
}
