/* SPDX-License-Identifier: MIT */
#include "app/daemon/host_check.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/privilege.h"

enum { STATUS_MAX = 8192, MOUNTS_MAX = 65536, CAP_SYS_ADMIN_BIT = 21 };

static size_t read_text(const char *path, char *out, size_t max)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, out, max - 1);

    out[n < 0 ? 0 : n] = '\0';
    return n < 0 ? 0 : (size_t)n;
}

/* A number of /proc/sys; -1: there is no such setting. */
static long sysctl_of(const char *path)
{
    char text[32];

    return read_text(path, text, sizeof text) == 0 ? -1 : strtol(text, NULL, 10);
}

static bool status_field(const char *name, int base, unsigned long long *ret)
{
    char text[STATUS_MAX];
    const char *at;

    (void)read_text("/proc/self/status", text, sizeof text);
    at = strstr(text, name);
    if (!at)
        return false;
    *ret = strtoull(at + strlen(name), NULL, base);
    return true;
}

static bool is_root(void)
{
    return privilege_is_host_root();
}

static bool clone_is_off(void)
{
    return !is_root() && sysctl_of("/proc/sys/kernel/unprivileged_userns_clone") == 0;
}

static bool none_allowed(void)
{
    return sysctl_of("/proc/sys/user/max_user_namespaces") == 0;
}

static bool apparmor_restricts(void)
{
    return !is_root() && sysctl_of("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1;
}

static bool root_without_admin(void)
{
    unsigned long long caps = 0;

    return is_root() && status_field("\nCapEff:", 16, &caps) && !(caps >> CAP_SYS_ADMIN_BIT & 1);
}

static bool filtered(void)
{
    unsigned long long mode = 0;

    return status_field("\nSeccomp:", 10, &mode) && mode == 2;
}

/* Is something mounted over a part of /proc? The kernel then refuses a fresh one to user
 * namespaces. */
static bool proc_is_masked(void)
{
    cleanup_free char *text = malloc(MOUNTS_MAX);

    if (!text || is_root() || read_text("/proc/self/mountinfo", text, MOUNTS_MAX) == 0)
        return false;
    return strstr(text, " /proc/kcore ") || strstr(text, " /proc/sys ") ||
           strstr(text, " /proc/keys ") || strstr(text, " /proc/timer_list ");
}

static bool groups_read_only(void)
{
    return access("/sys/fs/cgroup", F_OK) == 0 && access("/sys/fs/cgroup", W_OK) < 0 && is_root();
}

static bool groups_not_delegated(void)
{
    return !is_root() && access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
}

/* clang-format off */
static const struct {
    bool (*applies)(void);
    const char *words;
} rows[] = {
    {clone_is_off,
     "unprivileged user namespaces are switched off: sysctl -w kernel.unprivileged_userns_clone=1, "
     "or start as root"},
    {none_allowed,         "no user namespace may be made: sysctl -w user.max_user_namespaces=10000"},
    {apparmor_restricts,
     "AppArmor restricts user namespaces (Ubuntu 23.10 and newer): give sandbox-launcher a profile "
     "with 'userns,' (docs/operators.md has one), or start as root"},
    {root_without_admin,
     "root here lacks CAP_SYS_ADMIN, as in a container: docker run --cap-add SYS_ADMIN, "
     "Kubernetes securityContext.capabilities.add"},
    {filtered,
     "somebody else's system call filter is in force, as in a container: it must allow mount, "
     "umount2, pivot_root, unshare, setns, clone3 and mount_setattr (docker run --security-opt "
     "seccomp=unconfined, Kubernetes seccompProfile)"},
    {proc_is_masked,
     "parts of /proc are masked, so no user namespace gets a /proc of its own: docker run "
     "--security-opt systempaths=unconfined, Kubernetes procMount: Unmasked"},
    {groups_read_only,
     "the control groups are mounted read-only: docker run --cgroupns=private with a writable "
     "/sys/fs/cgroup, or ISOLATION_LEVEL=basic"},
    {groups_not_delegated,
     "control groups have to be delegated to an ordinary user: systemd-run --user --scope "
     "-p Delegate=yes, or Delegate=yes in the unit; or ISOLATION_LEVEL=basic"},
};
/* clang-format on */

const char *advice_next(size_t *inout_at)
{
    while (*inout_at < ARRAY_LEN(rows)) {
        size_t i = (*inout_at)++;

        if (rows[i].applies())
            return rows[i].words;
    }
    return NULL;
}

unsigned advice_look(void)
{
    unsigned found = 0;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].applies())
            found |= BIT(i);
    return found;
}

const char *advice_words(size_t bit)
{
    return bit < ARRAY_LEN(rows) ? rows[bit].words : NULL;
}
