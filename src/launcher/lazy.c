/* SPDX-License-Identifier: MIT */
#include "launcher/lazy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "core/plan_parts.h"
#include "launcher/lent_list.h"

#define STAGE  "/mnt"
#define LAYERS ".lazy"
#define SHOWN  "t"
enum { PATH_ROOM = 64, OPTIONS_ROOM = 512, STAGED_MAX = 3, TICK_NS = 1000000, TICKS_MAX = 250 };

/* ---- stubs ---- */

static int mark(int fd, const char *name, const char *value)
{
    return fsetxattr(fd, name, value, strlen(value), 0) < 0 ? -errno : 0;
}

/* An empty file has nothing to be read. */
static int stub_file(int shown, const char *path, const char *host, const struct lazy_row *row)
{
    cleanup_close int fd =
        fd_open_beneath(shown, path, O_WRONLY | O_CREAT | O_EXCL, row->mode & 0777, FD_LINKS_NEVER);
    int r;

    if (fd < 0 || row->size == 0)
        return fd < 0 ? fd : 0;
    if (ftruncate(fd, (off_t)row->size) < 0)
        return -errno;
    r = mark(fd, "trusted.overlay.metacopy", "");
    return r ? r : mark(fd, "trusted.overlay.redirect", host);
}

/* One component behind the other, so that nothing but the last is made. */
static int stub_directory(int shown, const char *path)
{
    const char *slash = strrchr(path, '/');
    char parent[LAZY_TEXT_MAX + 1];
    cleanup_close int dir = -1;

    (void)snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - path) : 1,
                   slash ? path : ".");
    dir = fd_open_beneath(shown, parent, O_PATH | O_DIRECTORY, 0, FD_LINKS_NEVER);
    if (dir < 0)
        return dir;
    return mkdirat(dir, slash ? slash + 1 : path, 0755) < 0 ? -errno : 0;
}

/* ---- the list ---- */

static int list_open(int fd, struct lent_list *ret)
{
    struct stat st;
    void *p;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size < 1 || st.st_size > LAZY_LIST_MAX)
        return -EPROTO;
    p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    *ret = (struct lent_list){p, p, (const char *)p + st.st_size};
    return 0;
}

static void list_close(struct lent_list *l)
{
    (void)munmap((void *)(uintptr_t)l->p, (size_t)(l->end - l->p));
}

/* ---- one directory ---- */

static int make(int dir, const char *name, uid_t uid)
{
    if (mkdirat(dir, name, 0755) < 0 || fchownat(dir, name, uid, uid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

/* Returns the directory of what is shown, opened. */
static int layers_make(int layers, size_t i, uid_t uid)
{
    cleanup_close int dir = -1, upper = -1, shown = -1;
    char name[PATH_ROOM];
    int r;

    (void)snprintf(name, sizeof name, "%zu", i);
    r = make(layers, name, 0);
    dir = r < 0 ? -1 : openat(layers, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0)
        r = dir < 0 ? -errno : make(dir, "w", 0);
    if (r == 0)
        r = make(dir, "e", 0);
    if (r == 0)
        r = make(dir, "u", 0);
    upper = r < 0 ? -1 : openat(dir, "u", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0)
        r = upper < 0 ? -errno : make(upper, SHOWN, uid);
    shown = r < 0 ? -1 : openat(upper, SHOWN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0)
        r = shown < 0 ? -errno : mark(shown, "trusted.overlay.opaque", "y");
    return r ? r : take_fd(&shown);
}

/* Up to the next directory's row. As the sandbox's user, so that the stubs are its own. */
static int stubs_make(int shown, struct lent_list *l, uid_t uid)
{
    uid_t user = (uid_t)setfsuid(uid);
    gid_t group = (gid_t)setfsgid(uid);
    struct lent_list before = *l;
    struct lent_entry e;
    int r;

    while ((r = lent_next(l, &e)) > 0 && e.row.kind != LAZY_MOUNT) {
        r = e.row.kind == LAZY_DIR ? stub_directory(shown, e.path)
                                   : stub_file(shown, e.path, e.host, &e.row);
        if (r < 0)
            break;
        before = *l;
    }
    if (r >= 0)
        *l = before;
    (void)setfsuid(user);
    (void)setfsgid(group);
    return r < 0 ? r : 0;
}

/* What is at the stage, for one who is not root: read with that user's rights and no others. The
 * kernel wants two layers where nothing can be written; the second is an empty directory. */
static int stage_as_user(const char *base, size_t i, uid_t user, gid_t group)
{
    char options[OPTIONS_ROOM];
    uid_t own = (uid_t)setfsuid(user); /* takes root's power over files, too */
    gid_t own_group = (gid_t)setfsgid(group);
    int r = 0;

    (void)snprintf(options, sizeof options,
                   "lowerdir=" STAGE ":%s/%zu/e,metacopy=off,redirect_dir=nofollow", base, i);
    if (mount("lent", STAGE, "overlay", MS_NOSUID | MS_NODEV | MS_RDONLY, options) < 0)
        r = -errno;
    (void)setfsuid(own);
    (void)setfsgid(own_group);
    return r;
}

static int stage_overlay(const char *base, size_t i, int *ret)
{
    char options[OPTIONS_ROOM];

    (void)snprintf(options, sizeof options,
                   "lowerdir=" STAGE ",upperdir=%s/%zu/u,workdir=%s/%zu/w,metacopy=on,"
                   "redirect_dir=on,index=off",
                   base, i, base, i);
    if (mount("lent", STAGE, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
        return -errno;
    *ret = sys_open_tree(AT_FDCWD, STAGE "/" SHOWN, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    return *ret < 0 ? -errno : 0;
}

/* The overlay as a detached mount of what it shows. `base`: directory of the layers. What was
 * stacked at the stage stays with it. */
static int overlay_open(const char *base, size_t i, int lower, const struct lazy *z)
{
    cleanup_close int tree = -1;
    int r;

    if (sys_move_mount(lower, "", AT_FDCWD, STAGE, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return -errno;
    r = z->user != 0 ? stage_as_user(base, i, z->user, z->group) : 0;
    if (r == 0)
        r = stage_overlay(base, i, &tree);
    for (int n = 0; n < STAGED_MAX && umount2(STAGE, MNT_DETACH) == 0; n++)
        ;
    return r ? r : take_fd(&tree);
}

/* Where it is to be seen; directories on the way are made. */
static int place_open(int tree, const char *path, uid_t uid)
{
    char part[LAZY_TEXT_MAX + 1];
    int dir = fd_dup(tree);

    while (*path && dir >= 0) {
        size_t n = strcspn(path, "/");
        int next;

        (void)snprintf(part, sizeof part, "%.*s", (int)n, path);
        if (mkdirat(dir, part, 0755) == 0)
            (void)!fchownat(dir, part, uid, uid, AT_SYMLINK_NOFOLLOW);
        next = fd_open_beneath(dir, part, O_PATH | O_DIRECTORY, 0, FD_LINKS_NEVER);
        closep(&dir);
        dir = next;
        path += n + (path[n] == '/');
    }
    return dir;
}

static int lend(const struct lazy *z, size_t i, int tree, int layers, struct lent_list *l)
{
    cleanup_close int shown = -1, overlay = -1, place = -1;
    struct lent_entry e;
    int r = lent_next(l, &e);

    if (r <= 0 || e.row.kind != LAZY_MOUNT)
        return r < 0 ? r : -EPROTO;
    shown = layers_make(layers, i, z->uid);
    r = shown < 0 ? shown : stubs_make(shown, l, z->uid);
    if (r < 0)
        return r;
    overlay = overlay_open("/workspace/" LAYERS, i, z->lower[i], z);
    if (overlay < 0)
        return overlay;
    place = place_open(tree, e.path, z->uid);
    if (place < 0)
        return place;
    return sys_move_mount(overlay, "", place, "",
                          MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
               ? -errno
               : 0;
}

/* Whatever changes from now on has a later time than any stub (init.c). Times of files move on
 * within ten milliseconds, unless the clock is set back meanwhile: then the stubs stay newer than
 * what follows, and init takes all of them for changed, which costs time and nothing else. */
static void wait_for_tick(void)
{
    const struct timespec pause = {.tv_nsec = TICK_NS};
    struct timespec made, now;
    int ticks = 0;

    (void)clock_gettime(CLOCK_REALTIME, &made);
    do {
        (void)nanosleep(&pause, NULL);
        (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (++ticks < TICKS_MAX && (now.tv_sec < made.tv_sec ||
                                     (now.tv_sec == made.tv_sec && now.tv_nsec <= made.tv_nsec)));
}

int lazy_mount(const struct lazy *z, int tree)
{
    cleanup_close int layers = -1;
    struct lent_list l = {0};
    int r;

    if (sys_setgroups_none() < 0) /* the overlays remember who has mounted them */
        return -errno;
    r = make(tree, LAYERS, 0);
    layers = r < 0 ? -1 : openat(tree, LAYERS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r < 0 || layers < 0)
        return r < 0 ? r : -errno;
    r = list_open(z->list, &l);
    if (r < 0)
        return r;
    for (size_t i = 0; i < z->n && r == 0; i++)
        r = lend(z, i, tree, layers, &l);
    list_close(&l);
    /* the layers stay with their overlays; nobody can reach them by name */
    if (r == 0 && mount("none", "/workspace/" LAYERS, "tmpfs",
                        MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "size=4k,mode=0555") < 0)
        r = -errno;
    if (r == 0)
        wait_for_tick();
    return r;
}

/* ---- can this kernel do it? ---- */

static int probe_read(int tree)
{
    cleanup_close int fd = openat(tree, "probe", O_RDONLY | O_CLOEXEC);
    char text[4] = "";

    return fd >= 0 && read(fd, text, 2) == 2 && text[0] == 'o' ? 0 : -ENOTSUP;
}

/* A directory with one file, opened. */
static int probe_host(int base)
{
    cleanup_close int dir = -1, fd = -1;
    int r = make(base, "host", 0);

    dir = r < 0 ? -1 : openat(base, "host", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = dir < 0 ? -1 : openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return r < 0 ? r : -errno;
    r = fd_write_all(fd, "ok", 2);
    return r ? r : take_fd(&dir);
}

static int probe(int template, uid_t user, gid_t group)
{
    const struct lazy z = {.user = user, .group = group};
    const struct lazy_row row = {.size = 2, .kind = LAZY_FILE, .mode = 0644};
    cleanup_close int base = -1, host = -1, shown = -1, lower = -1, tree = -1;
    int r = 0;

    if (setns(template, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0 ||
        mount("probe", "/workspace", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0755") < 0)
        return -errno;
    base = open("/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    host = base < 0 ? -errno : probe_host(base);
    if (host < 0)
        return host;
    shown = r < 0 ? -1 : layers_make(base, 0, 0);
    if (r == 0)
        r = shown < 0 ? shown : stub_file(shown, "probe", "/file", &row);
    lower = r < 0 ? -1 : sys_clone_mount(host, MOUNT_ATTR_RDONLY);
    if (r == 0)
        r = lower < 0 ? lower : 0;
    tree = r < 0 ? -1 : overlay_open("/workspace", 0, lower, &z);
    if (r == 0)
        r = tree < 0 ? tree : probe_read(tree);
    return r;
}

int lazy_probe(int template, uid_t user, gid_t group)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(-probe(template, user, group) & 255);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}
