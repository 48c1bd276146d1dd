/* SPDX-License-Identifier: MIT */
#include "walls/top_dirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define STAGE "/mnt"
enum { PATH_ROOM = 320, NAME_ROOM = 256 };

/* Not to be replaced: programs and the kernel live there. */
static const char *const fixed[] = {"usr",  "bin", "sbin", "lib", "lib32",     "lib64", "libx32",
                                    "proc", "dev", "etc",  "tmp", "workspace", ".",     ".."};

static bool is_fixed(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (strcmp(fixed[i], name) == 0)
            return true;
    return false;
}

/* The next name into out; NULL at the end. */
static const char *next_name(const char *names, char out[NAME_ROOM])
{
    size_t n = strcspn(names, "/");

    if (n == 0 || n >= NAME_ROOM)
        return NULL;
    memcpy(out, names, n);
    out[n] = '\0';
    return names[n] ? names + n + 1 : names + n;
}

static bool is_named(const char *names, const char *name)
{
    char one[NAME_ROOM];

    while ((names = next_name(names, one)))
        if (strcmp(one, name) == 0)
            return true;
    return false;
}

/* ---- the directories ---- */

static int make_one(int tree, const char *name, uid_t uid)
{
    if (mkdirat(tree, name, 0755) < 0)
        return -errno;
    return fchownat(tree, name, uid, uid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int dirs_make(int tree, const char *names, uid_t uid)
{
    char one[NAME_ROOM];
    int r = make_one(tree, "workspace", uid);

    while (r == 0 && (names = next_name(names, one)))
        r = is_fixed(one) ? -EINVAL : make_one(tree, one, uid);
    return r;
}

static int bind(const char *from_dir, const char *name, unsigned long flags)
{
    char from[PATH_ROOM], to[PATH_ROOM];

    (void)snprintf(from, sizeof from, "%s/%s", from_dir, name);
    (void)snprintf(to, sizeof to, STAGE "/%s", name);
    if (mkdir(to, 0755) < 0)
        return -errno;
    return mount(from, to, NULL, MS_BIND | flags, NULL) < 0 ? -errno : 0;
}

static int bind_all(const char *names)
{
    char one[NAME_ROOM];
    int r = bind("/workspace", "workspace", MS_REC); /* with what is lent */

    while (r == 0 && (names = next_name(names, one)))
        r = bind("/workspace", one, MS_REC);
    return r;
}

/* ---- the root ---- */

static int copy_link(const char *name)
{
    char from[PATH_ROOM], to[PATH_ROOM], target[PATH_ROOM];
    ssize_t n;

    (void)snprintf(from, sizeof from, "/%s", name);
    (void)snprintf(to, sizeof to, STAGE "/%s", name);
    n = readlink(from, target, sizeof target - 1);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    return symlink(target, to) < 0 ? -errno : 0;
}

static int share(const struct dirent *at, const char *names)
{
    const char *name = at->d_name;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "workspace") == 0 ||
        is_named(names, name))
        return 0;
    if (at->d_type == DT_LNK)
        return copy_link(name);
    if (strcmp(name, "mnt") == 0)
        return mkdir(STAGE "/mnt", 0755) < 0 ? -errno : 0;
    return at->d_type == DT_DIR ? bind("", name, MS_REC) : 0;
}

static int share_root(const char *names)
{
    DIR *d = opendir("/");
    int r = 0;

    if (!d)
        return -errno;
    for (struct dirent *at; r == 0 && (at = readdir(d));)
        r = share(at, names);
    (void)closedir(d);
    return r;
}

/* Not pivot_root, which the keeper's filter refuses already: the new root goes on top of the old
 * one, which nothing can name any more. */
static int enter(void)
{
    if (mount(NULL, STAGE, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) <
            0 ||
        chdir(STAGE) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
        chdir("/") < 0)
        return -errno;
    return 0;
}

int dirs_mount(const struct root_private *p, const char *names, int *ret_tree)
{
    cleanup_close int tree = open("/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (tree < 0)
        return -errno;
    if (p->workspace >= 0 && !p->lent) /* a kept one is of the host: nothing may be added to it */
        return -EINVAL;
    r = p->lent ? 0 : dirs_make(tree, names, p->uid);
    if (r == 0 &&
        mount("root", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,nr_inodes=256,mode=0755") < 0)
        r = -errno;
    if (r == 0)
        r = share_root(names);
    if (r == 0)
        r = bind_all(names);
    if (r == 0)
        r = enter();
    if (r == 0)
        *ret_tree = take_fd(&tree);
    return r;
}
