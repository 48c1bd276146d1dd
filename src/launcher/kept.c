/* SPDX-License-Identifier: MIT */
#include "launcher/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "launcher/users.h"

/* Half-made; a name of a workspace never begins with a dot. */
static const char half[] = ".new";

static void root_init(struct kept_root *r, const char *path)
{
    struct stat st;

    r->dir = -1;
    if (!*path || strlen(path) >= sizeof r->path || stat(path, &st) < 0)
        return;
    (void)snprintf(r->path, sizeof r->path, "%s", path);
    r->dev = st.st_dev;
    r->ino = st.st_ino;
}

void kept_init(struct kept *k, const char *path, const char *own, uid_t daemon, bool rootless)
{
    *k = (struct kept){.user = daemon, .rootless = rootless};
    root_init(&k->root, path);
    root_init(&k->own, own);
}

void kept_be_plain(struct kept *k, gid_t group)
{
    k->plain = true;
    k->group = group;
}

static void root_enter(struct kept_root *r)
{
    cleanup_close int dir = r->path[0] ? open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct stat st;

    if (dir >= 0 && fstat(dir, &st) == 0 && st.st_dev == r->dev && st.st_ino == r->ino)
        r->dir = take_fd(&dir);
}

void kept_enter(struct kept *k)
{
    struct stat st;

    root_enter(&k->root);
    root_enter(&k->own);
    if (k->plain && k->root.dir >= 0 && fstat(k->root.dir, &st) == 0 && st.st_uid == geteuid() &&
        st.st_uid != k->user) /* there is no mount to lead past it */
        (void)!fchmod(k->root.dir, (st.st_mode & 07777) | 0011);
}

/* ---- users ---- */

static void closedirp(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/* -1: not one. */
static int owner_of(int dir, const char *name, uid_t *ret)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    *ret = st.st_uid;
    return 0;
}

unsigned kept_range(const struct kept *k, const struct users *any, bool *ret_there)
{
    cleanup_with(closedirp) DIR *d = k->root.path[0] ? opendir(k->root.path) : NULL;
    uid_t uid;

    *ret_there = true;
    if (k->own.path[0] && owner_of(AT_FDCWD, k->own.path, &uid) == 0 && users_is_kept(any, uid))
        return users_range_of(any, uid);
    for (const struct dirent *at; d && (at = readdir(d));)
        if (owner_of(dirfd(d), at->d_name, &uid) == 0 && users_is_kept(any, uid))
            return users_range_of(any, uid);
    *ret_there = false;
    return (unsigned)(k->root.ino ^ k->root.dev) % USERS_RANGES;
}

void kept_add_stranger(const struct kept *k)
{
    uid_t uid;

    if (k->own.path[0] && owner_of(AT_FDCWD, k->own.path, &uid) == 0 && uid != k->user)
        users_add_stranger(k->users, uid);
}

/* Behind the highest in use. A user is given away again only after all his files are gone. */
static int find_next(struct kept *k)
{
    int again = openat(k->root.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedirp) DIR *d = again >= 0 ? fdopendir(again) : NULL;
    uid_t first = users_kept(k->users), uid;
    struct stat own;

    if (!d) {
        closep(&again);
        return -EIO;
    }
    k->next = first;
    if (k->own.dir >= 0 && fstat(k->own.dir, &own) == 0 && own.st_uid >= first &&
        own.st_uid - first < USERS_KEPT)
        k->next = own.st_uid + 1;
    for (const struct dirent *at; (at = readdir(d));)
        if (owner_of(k->root.dir, at->d_name, &uid) == 0 && uid >= k->next &&
            uid - first < USERS_KEPT)
            k->next = uid + 1;
    return 0;
}

static int take_user(struct kept *k, uid_t *ret)
{
    int r = k->next == 0 && !k->plain ? find_next(k) : 0;

    if (k->plain) {
        *ret = k->user;
        return 0;
    }
    if (r < 0)
        return r;
    if (k->next - users_kept(k->users) >= USERS_KEPT)
        return -EUSERS;
    *ret = k->next++;
    return 0;
}

/* ---- workspaces ---- */

static int open_directory(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* FUSE file systems and the like cannot rename only where nothing is. Nothing but this launcher
 * makes names here, and a plain rename of a directory replaces nothing but an empty one. */
static int give_name(struct kept *k, const char *name)
{
    int r = fd_rename_new(k->root.dir, half, name);
    struct stat st;

    if (r != -EINVAL && r != -ENOSYS && r != -EOPNOTSUPP)
        return r;
    if (fstatat(k->root.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(k->root.dir, half, k->root.dir, name) < 0 ? -errno : 0;
}

/* It gets its owner before it gets its name: a crash in between leaves nothing half-owned. */
static int make(struct kept *k, const char *name)
{
    cleanup_close int dir = -1;
    uid_t uid = 0;
    int r = k->rootless ? 0 : take_user(k, &uid);

    if (r < 0)
        return r;
    if (mkdirat(k->root.dir, half, 0700) < 0 && errno != EEXIST)
        return -errno;
    dir = open_directory(k->root.dir, half);
    if (dir < 0 || (!k->rootless && fchown(dir, uid, k->plain ? k->group : uid) < 0))
        return -errno;
    return give_name(k, name);
}

static int open_or_make(struct kept *k, const char *name)
{
    int fd = open_directory(k->root.dir, name), r;

    if (fd >= 0 || errno != ENOENT)
        return fd >= 0 ? fd : -errno;
    r = make(k, name);
    if (r < 0 && r != -EEXIST)
        return r;
    fd = open_directory(k->root.dir, name);
    return fd >= 0 ? fd : -errno;
}

/* The own workspace, open once more; root's and the daemon's becomes that of a user of ours. */
static int open_own(struct kept *k)
{
    cleanup_close int dir = open_directory(k->own.dir, ".");
    uid_t uid = 0;
    struct stat st;
    int r;

    if (dir < 0 || fstat(dir, &st) < 0)
        return -errno;
    if (k->rootless || (st.st_uid != 0 && (k->plain || st.st_uid != k->user)))
        return take_fd(&dir);
    r = take_user(k, &uid);
    if (r < 0)
        return r;
    return fchown(dir, uid, (gid_t)-1) < 0 ? -errno : take_fd(&dir);
}

static bool name_is_own(const char *name)
{
    return strcmp(name, PLAN_WORKSPACE_OWN) == 0;
}

static bool name_is_safe(const char *name, size_t max)
{
    return memchr(name, '\0', max) && name[0] && name[0] != '.' && !strchr(name, '/');
}

static int owner_check(struct kept *k, const char *name, uid_t uid, struct err *e)
{
    if (k->rootless || (k->plain && uid == k->user))
        return 0;
    if (name_is_own(name) && uid != 0 && (k->plain || !users_is_kept(k->users, uid))) {
        if (!k->plain)
            users_add_stranger(k->users, uid); /* the operator's choice */
        return 0;
    }
    if (k->plain || !users_is_kept(k->users, uid))
        return err_set(e, ERR_HOST, "workspace '%s' belongs to user %u and was not made here", name,
                       (unsigned)uid);
    if (!users_may_use(k->users, uid))
        return err_set(e, ERR_HOST,
                       "workspace '%s' belongs to user %u, whom a sandbox of another daemon may be "
                       "using; it can be used again when that daemon has ended",
                       name, (unsigned)uid);
    return 0;
}

int kept_open(struct kept *k, const char *name, size_t name_max, int *ret_tree, uid_t *ret_uid,
              struct err *e)
{
    cleanup_close int dir = -1;
    struct stat st;
    int tree;

    if (!name_is_safe(name, name_max))
        return err_set(e, ERR_CALLER, "bad workspace name");
    if ((name_is_own(name) ? k->own.dir : k->root.dir) < 0)
        return err_set(e, ERR_HOST, "there is no directory for kept workspaces");
    dir = name_is_own(name) ? open_own(k) : open_or_make(k, name);
    if (dir < 0)
        return err_sys(e, dir, "workspace '%s'", name);
    if (fstat(dir, &st) < 0)
        return err_sys(e, -errno, "workspace '%s'", name);
    if (owner_check(k, name, st.st_uid, e) < 0)
        return -1;
    tree = k->plain ? take_fd(&dir) : kept_mount(dir, false);
    if (tree < 0)
        return err_sys(e, tree, "mount workspace '%s'", name);
    *ret_tree = tree;
    *ret_uid = k->rootless ? 0 : st.st_uid;
    return 0;
}

int kept_look(const struct kept *k, const char *name, size_t name_max)
{
    int fd;

    if (!name_is_safe(name, name_max))
        return -EINVAL;
    if ((name_is_own(name) ? k->own.dir : k->root.dir) < 0)
        return -ENOENT;
    fd = name_is_own(name) ? open_directory(k->own.dir, ".") : open_directory(k->root.dir, name);
    return fd >= 0 ? fd : -errno;
}

int kept_discard(struct kept *k, const char *name, size_t name_max, char ret_gone[KEPT_GONE_MAX])
{
    uid_t uid;
    int r;

    if (!name_is_safe(name, name_max) || name_is_own(name))
        return -EINVAL;
    if (k->root.dir < 0 || owner_of(k->root.dir, name, &uid) < 0)
        return -ENOENT;
    if (!k->rootless && (k->plain ? uid != k->user : !users_is_kept(k->users, uid)))
        return -EPERM;
    do { /* an empty directory of that name is replaced, and not missed */
        (void)snprintf(ret_gone, KEPT_GONE_MAX, KEPT_GONE "%u", k->gone++);
        r = renameat(k->root.dir, name, k->root.dir, ret_gone) < 0 ? -errno : 0;
    } while (r == -ENOTEMPTY || r == -EEXIST);
    return r;
}

/* ---- what is only read ---- */

/* Two components, neither of them hidden. */
static bool pair_is_safe(const char *name, size_t max)
{
    const char *slash = memchr(name, '\0', max) ? strchr(name, '/') : NULL;

    return slash && slash > name && name[0] != '.' && slash[1] && slash[1] != '.' &&
           !strchr(slash + 1, '/');
}

int kept_open_read_only(const struct kept *k, const char *name, size_t name_max, int *ret_tree,
                        struct err *e)
{
    cleanup_close int dir = -1;
    int tree;

    if (!pair_is_safe(name, name_max))
        return err_set(e, ERR_CALLER, "bad name of dependencies");
    if (k->root.dir < 0)
        return err_set(e, ERR_HOST, "there is no directory for dependencies");
    if (k->plain)
        return err_set(e, ERR_HOST, "dependencies of a session need a jail that can mount them");
    dir =
        fd_open_beneath(k->root.dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, FD_LINKS_NEVER);
    if (dir < 0)
        return err_sys(e, dir, "dependencies '%s'", name);
    tree = kept_mount(dir, true);
    if (tree < 0)
        return err_sys(e, tree, "mount dependencies '%s'", name);
    *ret_tree = tree;
    return 0;
}

int kept_mount(int dir, bool read_only)
{
    return sys_clone_mount(dir, read_only ? MOUNT_ATTR_RDONLY : 0);
}
