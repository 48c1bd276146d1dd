/* SPDX-License-Identifier: MIT */
#include "walls/confine.h"

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
#include "base/sys.h"
#include "init/order.h"
#include "walls/overlay.h"
#include "walls/root.h"
#include "walls/seccomp.h"
#include "walls/top_dirs.h"

enum { LAST_CAP_GUESS = 63 };

static int write_self(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
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

/* The launcher makes a workspace with lent directories, which takes the host's root, while we were
 * cloned. */
static int take_lent(int *ret_tree)
{
    int r = -EIO;
    size_t n = 1;

    if (fd_recv(INIT_FD_LENT, &r, sizeof r, ret_tree, &n) != sizeof r)
        return -EIO;
    return r == 0 && n != 1 ? -EIO : r;
}

int confine_mounts(const struct confine *c)
{
    cleanup_close int tree = -1;
    struct root_private p = {
        .uid = c->uid,
        .workspace_max = c->msg->workspace_max,
        .workspace_files = c->msg->workspace_files,
        .tmp_max = c->msg->tmp_max,
        .workspace = c->workspace >= 0 ? INIT_FD_END : -1,
        .dependencies = c->dependencies >= 0 ? INIT_FD_DEPENDENCIES : -1,
        .lent = c->lent >= 0,
    };
    const char *which;
    int r = p.lent ? take_lent(&tree) : 0;

    if (r < 0)
        return r;
    if (p.lent && p.workspace >= 0)
        return -EINVAL;
    if (p.lent)
        p.workspace = tree;
    r = root_mount_private(&p, &which);
    if (c->workspace >= 0)
        (void)close(INIT_FD_END);
    if (c->dependencies >= 0)
        (void)close(INIT_FD_DEPENDENCIES);
    if (p.lent)
        (void)close(INIT_FD_LENT);
    closep(&tree);
    tree = -1;
    if (r == 0 && launch_has_tree(c->msg))
        r = mount_dirs(c, &p);
    return r == 0 && c->msg->flags & LAUNCH_PERSISTENT ? overlay_mount(&p) : r;
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
    if (r == 0)
        r = write_self("/proc/self/gid_map", map);
    /* All sandboxes of one zygote, and without root all of a daemon, are charged to one user of the
     * host: none may have all of its instances. A persistent one needs one for each watch. */
    if (r == 0 && !(c->msg->flags & LAUNCH_PERSISTENT))
        r = write_self("/proc/sys/user/max_inotify_instances", "16");
    return r;
}

static int step_capabilities(const struct confine *c)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                               SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                               SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

    (void)c;
    for (int cap = 0; cap <= LAST_CAP_GUESS; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno != EINVAL || cap == 0)
                return -errno;
            break; /* past the kernel's last */
        }
    if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
        return -errno;
    return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

static int step_filter(const struct confine *c)
{
    return filter_install(c->filter);
}

static const struct confine_step steps[] = {
    {"host network",        step_host_network     },
    {"descriptors",         step_descriptors      },
    {"private mounts",      confine_mounts        },
    {"out-of-memory score", step_oom_score        },
    {"working directory",   step_directory        },
    {"user namespace",      step_user             },
    {"resource limits",     step_limits           },
    {"capabilities",        step_capabilities     },
    {"undumpable init",     step_undumpable       },
    {"no new privileges",   step_no_new_privileges},
    {"system call filter",  step_filter           },
};

enum { STEP_DESCRIPTORS = 1 };

void confine_self(const struct confine *c)
{
    steps_run(steps, ARRAY_LEN(steps), STEP_DESCRIPTORS, c);
}
