/* SPDX-License-Identifier: MIT */
#include "launch/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/dirs.h"
#include "launch/overlay.h"
#include "launch/root.h"
#include "launch/seccomp.h"
#include "launch/sys.h"

enum {
    DUP_BASE = 64,   /* above every number we assign */
    OOM_SCORE = 500, /* inside dies before outside */
    LAST_CAP_GUESS = 63,
    STACK_MAX = 8 << 20,
    LOCKED_MAX = 64 << 10,
    SIGNALS_MAX = 4096,
};

typedef int step_fn(const struct confine *c); /* 0 or -errno */

static int write_self(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* Numbers first, because later steps open and close things. Two moves: a source may sit on
 * another's target. Standard streams become /dev/null until a program gets its own. */
static int step_descriptors(const struct confine *c)
{
    const int trees[] = {c->workspace, c->dependencies};
    int moved[LAUNCH_FDS_PREPARE], mounts[ARRAY_LEN(trees)], null;

    for (size_t i = 0; i < LAUNCH_FDS_PREPARE; i++)
        moved[i] = fcntl(c->fds[i], F_DUPFD_CLOEXEC, DUP_BASE);
    for (size_t i = 0; i < ARRAY_LEN(trees); i++)
        mounts[i] = trees[i] < 0 ? -1 : fcntl(trees[i], F_DUPFD_CLOEXEC, DUP_BASE);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return -errno;
    for (int i = 0; i < 3; i++)
        if (dup2(null, i) < 0)
            return -errno;
    for (int i = 0; i < LAUNCH_FDS_PREPARE; i++)
        if (moved[i] < 0 || dup3(moved[i], INIT_FD_CTL + i, O_CLOEXEC) < 0)
            return -errno;
    for (int i = 0; i < (int)ARRAY_LEN(trees); i++)
        if (trees[i] < 0)
            (void)close(INIT_FD_END + i);
        else if (mounts[i] < 0 || dup3(mounts[i], INIT_FD_END + i, O_CLOEXEC) < 0)
            return -errno;
    return close_range(INIT_FD_LAST, ~0u, 0) < 0 ? -errno : 0;
}

/* Only where it was asked for by name. What stays: no capability over it, no other namespace. */
static int step_host_network(const struct confine *c)
{
    if (!(c->msg->flags & LAUNCH_HOST_NET))
        return 0;
    if (c->host_net < 0)
        return -ENOENT;
    return setns(c->host_net, CLONE_NEWNET) < 0 ? -errno : 0;
}

static int step_session(const struct confine *c)
{
    (void)c;
    (void)umask(022);
    return setsid() < 0 ? -errno : 0;
}

/* Init wants the tmpfs as a whole, under a number that it knows. */
static int mount_dirs(const struct confine *c, const struct root_private *p)
{
    cleanup_close int tree = -1;
    char names[LAUNCH_DIRS_MAX];
    int r;

    memcpy(names, c->msg->dirs, sizeof names);
    names[sizeof names - 1] = '\0';
    r = dirs_mount(p, names, &tree);
    if (r < 0)
        return r;
    if (tree == INIT_FD_END)
        return take_fd(&tree), 0;
    return dup3(tree, INIT_FD_END, O_CLOEXEC) < 0 ? -errno : 0;
}

static int step_mounts(const struct confine *c)
{
    const struct root_private p = {
        .uid = c->uid,
        .workspace_max = c->msg->workspace_max,
        .workspace_files = c->msg->workspace_files,
        .tmp_max = c->msg->tmp_max,
        .workspace = c->workspace >= 0 ? INIT_FD_END : -1,
        .dependencies = c->dependencies >= 0 ? INIT_FD_DEPENDENCIES : -1,
    };
    const char *which;
    int r = root_mount_private(&p, &which);

    if (c->workspace >= 0)
        (void)close(INIT_FD_END);
    if (c->dependencies >= 0)
        (void)close(INIT_FD_DEPENDENCIES);
    if (r == 0 && c->msg->dirs[0])
        r = mount_dirs(c, &p);
    return r == 0 && c->msg->flags & LAUNCH_PERSISTENT ? overlay_mount(&p) : r;
}

static int step_name(const struct confine *c)
{
    (void)c;
    return sethostname("sandbox", 7) < 0 || setdomainname("", 0) < 0 ? -errno : 0;
}

static int step_oom_score(const struct confine *c)
{
    char text[8];

    (void)c;
    (void)snprintf(text, sizeof text, "%d", OOM_SCORE);
    return write_self("/proc/self/oom_score_adj", text);
}

static int step_directory(const struct confine *c)
{
    (void)c;
    return chdir("/workspace") < 0 ? -errno : 0;
}

/* A user that owns nothing outside, and inside a user namespace where even a regained capability
 * would be worth nothing: the mount, pid and network namespaces belong to the parent's. Changing
 * ids makes a process undumpable and its /proc files root's, so that is undone for the maps. */
static int step_user(const struct confine *c)
{
    char map[48];
    int r;

    if (!c->rootless &&
        (sys_setgroups_none() < 0 || sys_setresgid(c->uid) < 0 || sys_setresuid(c->uid) < 0))
        return -errno;
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 || unshare(CLONE_NEWUSER) < 0)
        return -errno;
    (void)snprintf(map, sizeof map, "%d %u 1", SANDBOX_UID, (unsigned)c->uid);
    r = write_self("/proc/self/setgroups", "deny");
    if (r == 0)
        r = write_self("/proc/self/uid_map", map);
    return r ? r : write_self("/proc/self/gid_map", map);
}

static int step_limits(const struct confine *c)
{
    /* Counted in the new user namespace, where init is one. A control group counts better and is
     * to be met first, because it also tells that it refused. */
    const rlim_t slack = c->msg->flags & LAUNCH_WATCH_MEMORY ? 0 : 16;
    const struct {
        __rlimit_resource_t what;
        rlim_t limit;
    } rows[] = {
        {RLIMIT_CORE,       0                           },
        {RLIMIT_MEMLOCK,    LOCKED_MAX                  },
        {RLIMIT_STACK,      STACK_MAX                   },
        {RLIMIT_SIGPENDING, SIGNALS_MAX                 },
        {RLIMIT_MSGQUEUE,   LOCKED_MAX                  },
        {RLIMIT_NICE,       0                           },
        {RLIMIT_RTPRIO,     0                           },
        {RLIMIT_NPROC,      c->msg->pids_max + 1 + slack},
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

static int step_capabilities(const struct confine *c)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                               SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                               SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

    (void)c;
    for (int cap = 0; cap <= LAST_CAP_GUESS; cap++) /* EINVAL: past the kernel's last */
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            break;
    if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
        return -errno;
    return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* Init shares its user with the tenant: it must not be readable or traceable. */
static int step_undumpable(const struct confine *c)
{
    (void)c;
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

static int step_no_new_privileges(const struct confine *c)
{
    (void)c;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int step_filter(const struct confine *c)
{
    return filter_install(c->filter);
}

static const struct {
    const char *name;
    step_fn *run;
} steps[] = {
    {"host network",        step_host_network     },
    {"descriptors",         step_descriptors      },
    {"session",             step_session          },
    {"private mounts",      step_mounts           },
    {"host name",           step_name             },
    {"out-of-memory score", step_oom_score        },
    {"working directory",   step_directory        },
    {"user namespace",      step_user             },
    {"resource limits",     step_limits           },
    {"capabilities",        step_capabilities     },
    {"undumpable init",     step_undumpable       },
    {"no new privileges",   step_no_new_privileges},
    {"system call filter",  step_filter           },
};

enum { STEP_DESCRIPTORS = 1 }; /* until it has run, the control socket is where it was */

__attribute__((noreturn)) static void report(const char *step, int r, int ctl)
{
    char bytes[sizeof(struct init_msg) + 128];
    struct init_msg m = {.verb = INIT_FAILED, .arg = -r};

    m.name_n =
        (uint32_t)snprintf(bytes + sizeof m, sizeof bytes - sizeof m, "%s: %s", step, strerror(-r));
    memcpy(bytes, &m, sizeof m);
    (void)!fd_send(ctl, bytes, sizeof m + m.name_n, NULL, 0);
    _exit(1);
}

void confine_self(const struct confine *c)
{
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int r = steps[i].run(c);

        if (r < 0)
            report(steps[i].name, r, i > STEP_DESCRIPTORS ? INIT_FD_CTL : c->fds[0]);
    }
}
