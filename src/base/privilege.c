/* SPDX-License-Identifier: MIT */
#include "base/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

void privilege_all_files(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &l);
    }
}

/* The namespace that everything began in maps all users to themselves. */
bool privilege_is_host_root(void)
{
    cleanup_close int fd = geteuid() == 0 ? open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC) : -1;
    char text[128];
    unsigned inside = 0, outside = 0, count = 0;
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (n <= 0)
        return geteuid() == 0;
    text[n] = '\0';
    return sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 &&
           outside == 0 && count == UINT32_MAX;
}

int privilege_become(uid_t uid, gid_t gid)
{
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return -1;
    return 0;
}

int privilege_give_up(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};

    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? -errno
               : 0;
}
