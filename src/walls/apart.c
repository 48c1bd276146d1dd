/* SPDX-License-Identifier: MIT */
#include "walls/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"

#define STAGE "/srv" /* where the new root is put together; any directory that is there */

enum { MOUNTS_MAX = 64, PATH_ROOM = 160 };

struct mounts {
    struct {
        unsigned parent;
        char at[PATH_ROOM];
    } of[MOUNTS_MAX];
    size_t n;
    unsigned root; /* number of the mount at / */
};

static void filep(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

/* All mounts but the root and the empty one, those that hold others first. */
static int list(struct mounts *m)
{
    cleanup_with(filep) FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[1024], at[PATH_ROOM];
    unsigned id, parent;

    *m = (struct mounts){0};
    if (!f)
        return -errno;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%u %u %*s %*s %159s", &id, &parent, at) != 3)
            continue;
        if (strcmp(at, "/") == 0) {
            m->root = id;
        } else if (strcmp(at, APART_EMPTY) != 0) {
            if (m->n == MOUNTS_MAX)
                return -E2BIG;
            m->of[m->n].parent = parent;
            (void)snprintf(m->of[m->n++].at, PATH_ROOM, "%s", at);
        }
    }
    return 0;
}

static int mount_over(const char *lower, const char *at, unsigned long flags)
{
    char options[2 * PATH_ROOM + sizeof "lowerdir=:" APART_EMPTY];

    (void)snprintf(options, sizeof options, "lowerdir=%s:" APART_EMPTY, lower);
    return mount("overlay", at, "overlay", MS_RDONLY | MS_NOSUID | flags, options) < 0 ? -errno : 0;
}

/* /usr, and directories like /lib where that is no link; not /proc, nor a device. */
static bool is_system(const char *at)
{
    return !strchr(at + 1, '/') && strcmp(at, "/proc") != 0 && strcmp(at, "/dev") != 0;
}

/* What the host has mounted below it would be hidden: it comes over the overlay, as it is. */
static int cover(const struct mounts *m, const char *at)
{
    char path[2 * PATH_ROOM], below[2 * PATH_ROOM];
    int trees[MOUNTS_MAX], r;
    size_t n = strlen(at);

    for (size_t i = 0; i < m->n; i++) {
        bool inside = strncmp(m->of[i].at, at, n) == 0 && m->of[i].at[n] == '/';

        (void)snprintf(below, sizeof below, STAGE "%s", m->of[i].at);
        trees[i] =
            inside ? sys_open_tree(AT_FDCWD, below, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) : -1;
    }
    (void)snprintf(path, sizeof path, STAGE "%s", at);
    r = mount_over(path, path, MS_NODEV);
    for (size_t i = 0; i < m->n; i++) {
        (void)snprintf(below, sizeof below, STAGE "%s", m->of[i].at);
        if (trees[i] >= 0 && r == 0 &&
            sys_move_mount(trees[i], "", AT_FDCWD, below, MOVE_MOUNT_F_EMPTY_PATH) < 0)
            r = -errno;
        closep(&trees[i]);
    }
    return r;
}

static int move_all(const struct mounts *m)
{
    char to[2 * PATH_ROOM];
    int r = 0;

    for (size_t i = 0; i < m->n && r == 0; i++) {
        if (m->of[i].parent != m->root)
            continue; /* comes with the one that it is in */
        (void)snprintf(to, sizeof to, STAGE "%s", m->of[i].at);
        if (mount(m->of[i].at, to, NULL, MS_MOVE, NULL) < 0)
            return -errno;
        if (is_system(m->of[i].at))
            r = cover(m, m->of[i].at);
    }
    return r;
}

int apart_enter(bool inodes, int devices)
{
    struct mounts m;
    int r;

    if (unshare(CLONE_NEWNS) < 0)
        return -errno;
    if (devices >= 0 && sys_move_mount(devices, "", AT_FDCWD, "/dev", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return -errno;
    if (!inodes)
        return 0;
    r = list(&m);
    if (r == 0)
        r = mount_over("/", STAGE, 0);
    if (r == 0)
        r = move_all(&m);
    if (r < 0)
        return r;
    /* Over the old root, which nothing leads to any more. Taking that down would have the kernel
     * wait for all processors. */
    if (chdir(STAGE) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
        chdir("/") < 0)
        return -errno;
    return 0;
}

/* Not the kernel's nature: it may be over in a moment, and says nothing about the next slot. */
static bool is_shortage(int error)
{
    static const int shortages[] = {ENOMEM, ENOSPC, EAGAIN, EINTR, EMFILE, ENFILE, EIO};

    for (size_t i = 0; i < ARRAY_LEN(shortages); i++)
        if (error == shortages[i])
            return true;
    return false;
}

int apart_probe(int template)
{
    pid_t pid = fork();
    int status;

    if (pid < 0)
        return -errno;
    if (pid == 0)
        _exit(setns(template, CLONE_NEWNS) < 0 || chdir("/") < 0 ? errno : -apart_enter(true, -1));
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -EIO;
    return is_shortage(WEXITSTATUS(status)) ? -WEXITSTATUS(status) : WEXITSTATUS(status) == 0;
}
